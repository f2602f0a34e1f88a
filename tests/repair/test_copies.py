"""What replaces a server's data: which server is copied, and by which statements.

test_copies_live.py does what the texts state on real servers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repair.model.replication_model import Model, ModelServer
from repair.model.strategy_case import KnownBeside
from repair.strategies.copy_commands import can_clone, copying
from repair.strategies.copy_donors import DOUBTS, donor_of_copy
from repair.strategies.done_by_hand import by_hand
from repair.strategies.instruction_context import Situation
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_finding
from topology.catalogue.findings import Finding, Severity
from topology.catalogue.verdict_table import CATALOGUE
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion

NEW = ServerVersion(9, 7, 4)
OLD = ServerVersion(5, 6, 24)
SERVERS = model(
    server("a", "a:1-9", purged="a:1-6"),
    server("b", "a:1-3", channel("a")),
    server("c", "a:1-9", channel("a")),
    server("d", "a:1-8", channel("a")),
)
PURGED = a_finding("P1", "a:4-6")


def donor(servers: Model, *others: Finding, finding: Finding = PURGED) -> tuple[str, str] | None:
    """Return the server to copy to b, and the note about it."""
    situation = Situation(finding, servers, KnownBeside((finding, *others)))
    found = donor_of_copy(situation, servers["b"])
    return None if found is None else (found.server.name, found.note)


def test_the_source_is_copied_unless_something_is_against_it() -> None:
    assert donor(SERVERS) == ("a", "")
    elsewhere = (
        a_finding("E4", "a:2", source="c", replica="d"),
        a_finding("H1", "a:9", source="a", replica="d"),  # d misses it, not a
        a_finding("E4", "a:2", source="a", replica="b"),  # about the two servers themselves
        replace(a_finding("E4", "a:2", source="a", replica="d"), severity=Severity.INFO),
        a_finding("E6", "a:2", source="a", replica="c"),
    )
    assert donor(SERVERS, *elsewhere) == ("a", "")


def test_a_server_with_the_same_transactions_replaces_a_doubtful_source() -> None:
    e4 = a_finding("E4", "a:2", source="a", replica="d")
    found = donor(SERVERS, e4)
    assert found is not None
    name, note = found
    assert name == "c"
    assert note.startswith("copy c, not a: the audit reports E4 as in the catalogue, a → d: ")
    assert note.endswith("c has executed the same")
    extra = donor(SERVERS, a_finding("E1", "a:9", source="d", replica="a"))
    assert extra is not None
    assert extra[0] == "c"


def test_no_donor_is_named_that_has_less_or_more_or_is_doubtful_itself() -> None:
    e4 = a_finding("E4", "a:2", source="a", replica="d")
    for servers, findings in (
        (SERVERS.replace(server("c", "a:1-8", channel("a"))), (e4,)),
        (SERVERS.replace(server("c", "a:1-9 c:1", channel("a"))), (e4,)),
        (SERVERS, (e4, a_finding("A2", "a:9", source="a", replica="c"))),
        (SERVERS, (replace(e4, replica="c"),)),
        (SERVERS.replace(server("c", "a:1-9", channel("a"), version=OLD)), (e4,)),
    ):
        found = donor(servers, *findings)
        assert found is not None
        name, note = found
        assert name == "a"
        assert note.startswith("a is a doubtful donor: the audit reports E4")
        assert note.endswith("answer that finding first")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"has_log": False}, "a writes no binary log, so it cannot serve b afterwards"),
        ({"sends_by_sets": False}, "gtid_mode of a is not ON, so it serves no replica by auto"),
    ],
)
def test_a_source_that_cannot_serve_is_not_copied(facts: dict[str, Any], why: str) -> None:
    found = donor(SERVERS.replace(replace(SERVERS["a"], **facts)))
    assert found is not None
    assert found[0] == "c"
    assert why in found[1]
    text = by_hand("reclone", PURGED, SERVERS.replace(replace(SERVERS["a"], **facts)))
    assert "SOURCE_HOST = '(host of c)'" in text


def test_for_an_unread_source_a_server_that_has_all_is_copied() -> None:
    unread = model(*(SERVERS[name] for name in "bcd"))
    found = donor(unread)
    assert found is not None
    assert found[0] == "c"
    assert "because a was not read completely: c has all that the other servers" in found[1]
    text = by_hand("reclone", PURGED, unread)
    assert "SOURCE_HOST = '(host of c)'" in text
    assert "Point b back to a when an audit has read both" in text
    apart = unread.replace(server("d", "a:1-8 d:1", channel("a")))
    assert donor(apart) is None
    assert by_hand("reclone", PURGED, apart).startswith("replace the server's data with a backup")


def test_the_note_stands_before_the_copy_and_the_channel_is_that_of_the_source() -> None:
    e4 = a_finding("E4", "a:2", source="a", replica="d")
    text = by_hand("reclone", PURGED, SERVERS, KnownBeside((PURGED, e4)))
    assert text.startswith("copy c, not a: ")
    assert "'(user of the clone)'@'(host of c)':(port of c)" in text
    assert "SOURCE_HOST = '(host of a)'" in text


def test_every_doubt_is_a_code_with_a_rule() -> None:
    assert all(CATALOGUE[code].has_rule for code in DOUBTS)


@pytest.mark.parametrize(
    ("one", "other", "permitted"),
    [
        ((8, 0, 17), (8, 0, 17), True),
        ((8, 0, 16), (8, 0, 16), False),
        ((8, 0, 36), (8, 0, 37), False),
        ((8, 0, 37), (8, 0, 40), True),
        ((8, 4, 0), (8, 4, 3), True),
        ((8, 0, 40), (8, 4, 3), False),
        ((9, 1, 0), (9, 2, 0), False),
        ((5, 7, 44), (5, 7, 44), False),
    ],
)
def test_clone_needs_versions_that_it_permits(
    one: tuple[int, int, int], other: tuple[int, int, int], *, permitted: bool
) -> None:
    versions = ServerVersion(*one), ServerVersion(*other)
    assert can_clone(*versions) is can_clone(*reversed(versions)) is permitted


def of(name: str, version: ServerVersion, vendor: Vendor | None = None) -> ModelServer:
    return replace(server(name, "a:1-3", version=version), vendor=vendor)


def test_a_clone_states_what_it_deletes_and_leaves_the_account_open() -> None:
    text = copying(of("a", NEW), of("b", NEW), own=gtids(""))
    for words in (
        "IDENTIFIED BY '(password of the clone)'`",
        "`SET GLOBAL clone_valid_donor_list = '(host of a):(port of a)'`",
        "needs BACKUP_ADMIN on a. Yours needs CLONE_ADMIN, SYSTEM_VARIABLES_ADMIN",
        "these tables would be empty in a clone, without an error",
        "deletes all data, accounts and binary logs of b, even if it fails later",
        "with error 3707 it only stops: start it",
        "gtid_executed of a, all of it in gtid_purged, and no binary log of before",
        "b keeps its server_uuid",
    ):
        assert words in text
    assert "mysqldump" not in text
    assert text.index("ENGINE <> 'InnoDB'") < text.index("CLONE INSTANCE")


@pytest.mark.parametrize(
    ("donor_version", "lock", "reset"),
    [
        (OLD, "--master-data=2", "RESET MASTER"),
        (ServerVersion(5, 7, 44), "--master-data=2", "RESET MASTER"),
        (ServerVersion(8, 0, 25), "--master-data=2", "RESET MASTER"),
        (ServerVersion(8, 0, 26), "--source-data=2", "RESET BINARY LOGS AND GTIDS"),
    ],
)
def test_a_dump_is_taken_under_a_lock_before_anything_is_deleted(
    donor_version: ServerVersion, lock: str, reset: str
) -> None:
    here = NEW if "GTIDS" in reset else OLD
    text = copying(of("a", donor_version), of("b", here), own=gtids("b:1"))
    assert f" --single-transaction {lock} --set-gtid-purged=ON --default-character-set" in text
    assert text.index("`mysqldump") < text.index("`DROP DATABASE") < text.index(f"`{reset}`")
    assert text.index(f"`{reset}`") < text.index("`mysql --host=(host of b)")
    assert "the dump sets gtid_purged, which b refuses while gtid_executed has" in text
    assert "b must get a new server_uuid: stop it, remove auto.cnf" in text
    assert "`FLUSH LOCAL PRIVILEGES`" in text
    assert ("upgrade them to" in text) is (donor_version != here)


@pytest.mark.parametrize("vendors", [(Vendor.RDS, None), (None, Vendor.AZURE)])
def test_a_service_restores_by_its_own_tools(vendors: tuple[Vendor | None, Vendor | None]) -> None:
    text = copying(of("a", NEW, vendors[0]), of("b", NEW, vendors[1]), own=gtids(""))
    assert text.startswith("restore b from a new snapshot or backup of a with the tools of its")
    assert "CLONE" not in text
    assert copying(of("a", NEW, Vendor.PERCONA), of("b", NEW), own=gtids("")).count("CLONE IN")


def test_the_page_names_the_privileges_and_options_of_the_texts() -> None:
    page = (Path(__file__).parents[2] / "docs/repair-copy.md").read_text()
    clone = copying(of("a", NEW), of("b", NEW), own=gtids("b:1"))
    dump = copying(of("a", OLD), of("b", OLD), own=gtids(""))
    for pattern, text in (
        (r"[A-Z_]+_ADMIN", clone),
        (r"--(?:master-data=2|default-character-set=utf8mb4)", dump),
        (r"RESET MASTER|FLUSH LOCAL PRIVILEGES", dump),
        (r"auto\.cnf|error 3707|super_read_only must be OFF", clone),
    ):
        named = set(re.findall(pattern, text))
        assert named
        assert not [each for each in named if each not in page]
