"""`handshake` without servers: what it refuses, and what it shows of three servers that differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gtid_audit import exits
from gtid_audit.cli import run
from gtid_audit.exits import UsageProblem
from gtid_audit.views.handshake_text import outcome_counts, show_handshakes
from gtid_audit.views.handshakes import Handshakes, handshakes_of, handshakes_of_consumer
from tests.consumers import a_consumer, an_unread_consumer
from tests.snapshots import a_cluster, an_unread
from tests.topology.test_group_handshake import left, member, server
from tests.topology.test_handshake import one, sets
from tests.topology.test_unlike_contents import compared, with_differences
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot, UnreadFact, UnreadReason

THREE = (
    one("a", "a:1-5", purged="a:1-4"),
    one("b", "a:1-7 b:1"),
    one("c", "a:1-2"),
)


def shown(
    *servers: ServerSnapshot, offered: str | None = None, promote: str | None = None
) -> Handshakes:
    snapshot = a_cluster("shop", *servers)
    audit = audit_cluster(snapshot)
    gtids = None if offered is None else sets(offered)
    return handshakes_of(snapshot, audit, Policy(), offered=gtids, promote=promote)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs either DSNs or --fleet FILE --cluster NAME"),
        (["mysql://root@127.0.0.1:1/"], "at least two DSNs"),
        (["mysql://root@127.0.0.1:1/", "--fleet", "fleet.yaml"], "needs either DSNs or"),
        (["--fleet", "fleet.yaml"], "--fleet and --cluster must be used together"),
        (["--cluster", "shop", "mysql://root@127.0.0.1:1/"], "must be used together"),
        (
            ["mysql://root@127.0.0.1:1/", "--offered", "", "--promote", "b"],
            "--offered and --promote are two questions",
        ),
        (
            ["mysql://root@127.0.0.1:1/", "--offered", "", "--consumer", "b"],
            "--offered and --consumer are two questions",
        ),
        (["mysql://root@127.0.0.1:1/"] * 2 + ["--consumer", "b"], "--consumer needs --fleet FILE"),
        (["mysql://root@127.0.0.1:1/", "--offered", "x"], "operand A"),
        (["mysql://root@127.0.0.1:1/"] * 2, "two DSNs refer to the same server: 127.0.0.1:1"),
    ],
)
def test_wrong_usage_is_refused_with_the_reason(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["handshake", *arguments]) == exits.USAGE
    assert message in capsys.readouterr().err


def test_the_table_has_a_row_for_each_replica(capsys: pytest.CaptureFixture[str]) -> None:
    show_handshakes(shown(*THREE))
    text = capsys.readouterr().out
    rows = [line.split("  ") for line in text.splitlines() if line.startswith("  ")][:4]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["from", "a", "b", "c"],
        ["a", "-", "loses 2", "hides 3"],
        ["b", "1236 has more", "-", "hides 6"],
        ["c", "1236 purged", "yes, +6", "-"],
    ]
    assert "b ◀── a" in text
    assert "Got fatal error 1236 from source" in text


def test_the_table_shows_what_a_group_answers(capsys: pytest.CaptureFixture[str]) -> None:
    two = (member("a", "g:1-9", sees="ab"), member("b", "g:1-9", sees="ab"))
    show_handshakes(shown(*two, left("c", "g:1-5 c:1"), server("d", "g:1-9")))
    text = capsys.readouterr().out
    rows = [line.split("  ") for line in text.splitlines() if line.startswith("  ")][:5]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["from", "a", "b", "c", "d"],
        ["a", "-", "group", "3092 has more", "yes"],
        ["b", "group", "-", "3092 has more", "yes"],
        ["c", "3092 has more", "3092 has more", "-", "hides 1"],
        ["d", "yes", "yes", "hides 4", "-"],
    ]
    assert text.count("c ◀── group") == 1  # once, although four cells have it
    assert "the group refuses to let it join" in " ".join(text.split())
    assert "Run it again" not in text
    show_handshakes(shown(*two, left("c", "g:1-5"), server("d", "g:1-9")))
    text = capsys.readouterr().out
    rows = [line.split("  ") for line in text.splitlines() if line.startswith("  ")][:5]
    assert [cell.strip() for cell in rows[3] if cell.strip()] == [
        *("c", "may join, +4", "may join, +4", "-", "yes, +4")
    ]
    assert [cell.strip() for cell in rows[1] if cell.strip()] == [
        *("a", "-", "group", "once joined", "yes")
    ]
    purged = [member(name, "g:1-9", sees="ab", purged="g:1-8") for name in "ab"]
    show_handshakes(shown(*purged, left("c", "g:1-5")))
    text = " ".join(capsys.readouterr().out.split())
    assert "needs a clone" in text
    assert "needs transactions that each member has purged, a the least" in text
    assert "13467: No valid or ONLINE members exist" in text


def test_two_members_that_do_not_get_each_others_transactions_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_handshakes(shown(member("a", "a:1-3 g:1-9", sees="ab"), member("b", "g:1-9", sees="ab")))
    text = " ".join(capsys.readouterr().out.split())
    assert "a ◀── b what Both are ONLINE, and one of them had these when it joined (E1)" in text
    assert "b ◀── a" in text
    assert "hides 3" in text
    assert "loses 3" in text
    assert "its receiver drops them" not in text


def test_the_document_has_the_groups() -> None:
    two = (member("a", "g:1-9", sees="ab"), member("b", "g:1-9", sees="ab"))
    document = json.loads(json.dumps(shown(*two, left("c", "g:1-5")).document()))
    [group] = document["groups"]
    assert (group["primaries"], group["members"], group["outside"]) == (["a"], ["a", "b"], ["c"])
    cells = {(each["replica"], each["source"]): each for each in document["answers"]}
    linked, joins = cells["a", "b"], cells["c", "a"]
    assert (linked["outcome"], linked["group"], linked["joins"]) == ("group", group["name"], None)
    assert (joins["outcome"], joins["joins"], joins["through"]) == ("served", "c", "a")


def test_a_promotion_shows_what_breaks_and_the_order(capsys: pytest.CaptureFixture[str]) -> None:
    show_handshakes(shown(*THREE, promote="a"))
    text = capsys.readouterr().out
    assert text.startswith(" CRITICAL   shop · 3 servers · promote a")
    assert "b would be the better candidate." in text
    assert "  1. Stop all writes of clients" in text
    # b could send it, and what a has lost: a would refuse c then.
    assert "rebuild this server from a backup or a clone" in " ".join(text.split())
    show_handshakes(shown(*THREE, promote="b"))
    assert "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'b.example'" in capsys.readouterr().out


def test_an_offered_set_shows_one_answer_for_each_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_handshakes(shown(*THREE, an_unread("d"), offered="a:1-2"))
    text = capsys.readouterr().out
    assert text.startswith(" UNKNOWN   shop · 4 servers · offered: 2 GTIDs")
    assert "d was not read: connection: no answer" in text
    assert "1236 purged" in text


def test_a_server_that_was_read_in_part_is_shown_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unread = UnreadFact("channels", UnreadReason.PRIVILEGE, "Access denied")
    partial = one("b", "a:1-5", channels=None, unread=(unread,))
    for promote in (None, "a"):
        found = shown(one("a", "a:1-5"), partial, promote=promote)
        assert found.document()["verdict"] == "UNKNOWN"
        assert found.document()["unknown"] == [{"server": "b", "reason": "channels: Access denied"}]
        assert outcome_counts(found)["unread"] == 1
        show_handshakes(found)
        text = " ".join(capsys.readouterr().out.split())
        assert "b was read in part: channels: Access denied" in text
        assert "Not known: the channels of b. Run it again, or audit the servers." in text


def test_the_document_has_all_of_it() -> None:
    document = json.loads(json.dumps(shown(*THREE, promote="a").document()))
    assert list(document) == [
        "schema_version",
        "cluster",
        "read_at",
        "verdict",
        "servers",
        "offered",
        "answers",
        "groups",
        "contents_compared",
        "promotion",
        "unknown",
    ]
    assert len(document["answers"]) == 6
    [refused] = [each for each in document["answers"] if each["refusal"] == "more_gtids"]
    assert (refused["source"], refused["replica"], refused["errno"]) == ("a", "b", 13114)
    assert (refused["gtid_set"], refused["gtid_count"]) == (str(sets("a:6-7")), 2)
    assert document["promotion"]["missing"][-1] == {
        "gtid_set": str(sets("a:6-7")),
        "donor": None,
        "receiver": None,
        "holders": ["b"],
    }
    assert document["promotion"]["best"] == "b"
    assert shown(*THREE, promote="a").document() == shown(*THREE, promote="a").document()


def test_contents_that_differ_are_shown_with_what_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    servers = (one("a", "a:1-5"), one("b", "a:1-5"))
    snapshot = a_cluster("shop", *servers).with_contents(compared(("a", "b")))
    audit = with_differences(snapshot, "a:5", ("a", "b"))
    found = handshakes_of(snapshot, audit, Policy(), offered=None, promote=None)
    assert found.document()["contents_compared"] == [["a", "b"]]
    show_handshakes(found)
    text = " ".join(capsys.readouterr().out.split())
    assert "hides 1" in text
    assert f"another content on both: {sets('a:5')}. An audit compares only some" in text


def test_a_name_that_is_no_server_is_refused() -> None:
    with pytest.raises(UsageProblem, match="no server 'z'; the servers are a, b, c"):
        shown(*THREE, promote="z")


FLEET = """defaults: {user: u}
clusters:
  - {name: shop, servers: [{name: a, host: h}], consumers: [{name: cdc, set: "@x"}]}
  - {name: bare, servers: [{name: a, host: i}]}
"""


@pytest.mark.parametrize(
    ("cluster", "message"),
    [("shop", "no consumer 'x'; the consumers are cdc"), ("bare", "it has no consumers")],
)
def test_a_consumer_that_the_file_does_not_have_is_refused(
    cluster: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    arguments = ("--fleet", str(tmp_path / "fleet.yaml"), "--cluster", cluster, "--consumer", "x")
    assert run(("handshake", *arguments)) == exits.USAGE
    assert message in capsys.readouterr().err


def test_a_consumer_is_shown_with_each_server_and_an_unread_one_is_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    busy = a_consumer("cdc", sets("a:1-3"), later=sets("a:1-9"))
    snapshot = a_cluster("shop", *THREE)
    found = handshakes_of_consumer(snapshot, audit_cluster(snapshot), Policy(), busy)
    assert {each.source: each.outcome.value for each in found.matrix.answers} == {
        "a": "served",  # what it has since is not extra: it read on
        "b": "served",
        "c": "diverged",
    }
    unread = an_unread_consumer("cdc", "no answer")
    shown = handshakes_of_consumer(snapshot, audit_cluster(snapshot), Policy(), unread)
    assert shown.verdict is Verdict.UNKNOWN
    show_handshakes(shown)
    assert "cdc was not read: no answer" in capsys.readouterr().out
