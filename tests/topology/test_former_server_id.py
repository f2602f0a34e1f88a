"""What a replica may drop: its server_id was another one before, or another server has it."""

from __future__ import annotations

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server
from tests.topology.test_log_places import gtids, three
from topology.audit_cluster import audit_cluster
from topology.facts.former_ids import maybe_own_server_id
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.worker import WorkerSnapshot

WORDS = "its applier drops"


@pytest.mark.parametrize(
    ("value", "origin_is_read", "words"),
    [
        ("EXPLICIT", False, ""),
        ("DYNAMIC", False, "was changed while it ran"),
        (None, False, "may have been changed while it ran"),  # no version before 8.0 shows it
        ("DYNAMIC", True, ""),  # its server_id is another one: C2 compares them
    ],
)
def test_a_server_id_that_was_set_since_is_named(
    value: str | None, words: str, *, origin_is_read: bool
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
    if origin_is_read:
        servers.append(a_server("c", C, waits))
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
