"""What a replica may drop: its server_id was another one before, or another server has it."""

from __future__ import annotations

from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import HERE, NOON, A, B, C, a_channel, a_cluster, a_server
from tests.topology.test_log_places import gtids, three
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.facts.former_ids import maybe_own_server_id
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.snapshot import LogPosition
from topology.readings.worker import WorkerSnapshot

WORDS = "its applier drops"
FORMER = UUID("dddddddd-0000-0000-0000-000000000000")


@pytest.mark.parametrize(
    ("value", "origin", "words"),
    [
        ("EXPLICIT", "", ""),
        ("DYNAMIC", "", "was changed while it ran"),
        (None, "", "may have been changed while it ran"),  # no version before 8.0 shows it
        ("DYNAMIC", "read", ""),  # its server_id is another one: C2 compares them
        # Its UUID is the name of its group: any member may have committed them.
        ("DYNAMIC", "of a group", "was changed while it ran"),
    ],
)
def test_a_server_id_that_was_set_since_is_named(
    value: str | None, origin: str, words: str
) -> None:
    waits = f"{C}:1-2"
    settings: tuple[tuple[str, str], ...] = (("gtid_mode", "ON"),)
    if value is not None:
        settings += (("server_id_source", value),)
    channel = a_channel("a", A, gtid_retrieved=GtidSet.parse(waits))
    servers = [
        a_server("a", A, f"{A}:1-9,{waits}"),
        a_server("b", B, f"{A}:1-9", channels=(channel,), settings=settings),
    ]
    if origin:
        named = (("group_replication_group_name", str(C)),) if origin == "of a group" else ()
        servers.append(a_server("c", C, waits, settings=(("gtid_mode", "ON"), *named)))
    audit = audit_cluster(a_cluster("pair", *servers))
    [found] = [each for each in audit.findings if each.code == "T2"]
    assert found.gtid_set == GtidSet.parse(waits)
    assert (WORDS in found.explanation) is bool(words)
    assert words in found.explanation


@pytest.mark.parametrize(
    ("applying", "owned", "words"),
    [
        ("", "", "drops 3 transactions of these"),
        (f"{C}:1", "", "drops 2 transactions of these"),  # a worker executes that one
        (f"{C}:1", f"{C}:4", "drops 2 transactions of these"),  # a session has the fourth
    ],
)
def test_only_what_waits_in_the_relay_log_may_be_dropped(
    applying: str, owned: str, words: str
) -> None:
    """The source has C:1-4 of a server that was not read, and b has received C:1-3."""
    worker = WorkerSnapshot(1, GtidSet.parse(applying), 0, "")
    received = GtidSet.parse(f"{C}:1-3")
    channel = a_channel("a", A, gtid_retrieved=received, workers=(worker,))
    b = a_server(
        "b",
        B,
        f"{A}:1-9",
        channels=(channel,),
        gtid_owned=GtidSet.parse(",".join(filter(None, (applying, owned)))),
        settings=(("gtid_mode", "ON"), ("server_id_source", "DYNAMIC")),
    )
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1-9,{C}:1-4"), b))
    [found] = [each for each in audit.findings if each.code == "T2"]
    assert found.gtid_set >= received
    assert words in found.explanation


@pytest.mark.parametrize(("server_id", "expected"), [(7, ""), (3, "C:10"), (None, "C:10")])
def test_the_log_of_any_server_shows_who_committed_a_transaction(
    server_id: int | None, expected: str
) -> None:
    """b, the source of c, is still committing C:10: only the log of its own source a has it."""
    known = tuple(CommitRecord(gtids(f"C:{gno}"), 7, NOON, True) for gno in (4, 9))
    of_a = () if server_id is None else (CommitRecord(gtids("C:10"), server_id, NOON, True),)
    graph, servers = three(
        a={"gtid_executed": gtids("C:1-10"), "history_evidence": HistoryEvidence(None, of_a)},
        b={"gtid_owned": gtids("C:10"), "history_evidence": HistoryEvidence(None, known)},
    )
    found = maybe_own_server_id(graph.edges[1], graph=graph, servers=servers)
    assert found == gtids(expected)


@pytest.mark.parametrize(
    ("unread", "server_id", "has_it", "is_open"),
    [
        ("access denied", None, False, True),
        ("access denied", 7, False, False),  # it was read before: not the server_id of c
        ("access denied", None, True, False),  # b has it: T3 of its replica c says it
        ("", None, False, False),  # the log was read: what it does not have is gone
        (None, None, False, False),  # no log was read for this audit
    ],
)
def test_a_former_uuid_further_up_whose_server_id_was_not_read_is_unknown(
    unread: str | None, server_id: int | None, *, has_it: bool, is_open: bool
) -> None:
    """a → b → c, and a has a transaction that c drops if it committed it under a former UUID."""
    former = GtidSet.parse(f"{FORMER}:1")
    read = () if server_id is None else (CommitRecord(former, server_id, NOON, True),)
    history = None if unread is None else HistoryEvidence(None, read, unread)
    assert HERE is not None, "a file with a number"
    behind = LogPosition.of(file=HERE.file, position=HERE.position - 1)
    has = former if has_it else GtidSet()
    from_a = a_channel("a", A, gtid_retrieved=has, received_to=behind, applied_to=behind)
    from_b = a_channel("b", B, received_to=behind, applied_to=behind)
    servers = (
        a_server("a", A, former, server_id=1, history_evidence=history),
        a_server("b", B, has, server_id=2, channels=(from_a,)),
        a_server("c", C, "", server_id=3, channels=(from_b,)),
    )
    audit = audit_cluster(a_cluster("chain", *servers))
    found = [each for each in audit.unknown if "its receiver drops" in each.fact]
    assert [each.server for each in found] == (["c"] if is_open else [])
    assert all("which a has" in each.fact and "access denied" in each.reason for each in found)
    assert (audit.verdict is Verdict.UNKNOWN) is is_open
