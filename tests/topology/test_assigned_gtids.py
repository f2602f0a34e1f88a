"""E1 and E2 behind a file position: the channel may have given the GTIDs."""

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade
from topology.facts.assigned_gtids import assigned_text, maybe_assigned
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.snapshot import ServerSnapshot
from topology.readings.version import ServerVersion

EXTRA = f"{B}:1-2"


def replica(*, ids: tuple[int, int] | None, auto_position: bool = False) -> ServerSnapshot:
    """Return b with two transactions of its own UUID, and the server_ids in its log."""
    channel = replace(a_channel("a", A), auto_position=auto_position)
    server = a_server("b", B, f"{A}:1-9,{EXTRA}", server_id=2, channels=(channel,))
    if ids is None:  # asked, and not read
        return replace(server, history_evidence=HistoryEvidence(None, (), unread="refused"))
    gtids = [GtidSet.parse(f"{B}:{number}") for number in (1, 2)]
    records = tuple(
        CommitRecord(gtid, each, NOON, True) for gtid, each in zip(gtids, ids, strict=True)
    )
    return replace(server, history_evidence=HistoryEvidence(None, records))


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (replica(ids=(2, 2)), ""),
        (replica(ids=(3, 3)), ""),  # of neither: it came by another way
        (replica(ids=(1, 1)), f"has {B}:1-2 with the server_id of a."),
        (replica(ids=(2, 1)), f"has {B}:2 with the server_id of a."),
        (replica(ids=None), "does not show which server committed it"),
        (replica(ids=None, auto_position=True), ""),  # such a channel gives none
        (
            replica(ids=(1, 1), auto_position=True),
            f"has {B}:1-2 with the server_id of a.",
        ),  # it did
        (replace(replica(ids=None), history_evidence=None), ""),  # no log was read at all
        (replace(replica(ids=None), version=ServerVersion(8, 0, 22)), ""),  # nor this version
        (replace(replica(ids=(2, 2)), gtid_purged=GtidSet.parse(EXTRA)), "does not show which"),
    ],
)
def test_the_server_id_in_the_log_decides(server: ServerSnapshot, words: str) -> None:
    source = a_server("a", A, f"{A}:1-9", server_id=1)
    audit = audit_cluster(a_cluster("pair", source, server))
    [found] = [each for each in audit.findings if each.code in ("E1", "E2")]
    assert words in found.explanation
    is_told = "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS" in found.explanation
    assert is_told is bool(words)
    assert found.grade is (Grade.LIKELY if words else Grade.PROVED)


def test_the_server_ids_of_what_is_purged_are_not_looked_up() -> None:
    """b has purged B:1-4 since: its log shows both ends of what is left of B:1-9."""
    records = tuple(
        CommitRecord(GtidSet.parse(f"{B}:{number}"), 1, NOON, True) for number in (5, 9)
    )
    server = a_server(
        "b",
        B,
        f"{A}:1-9,{B}:1-9",
        server_id=2,
        gtid_purged=GtidSet.parse(f"{B}:1-4"),
        channels=(a_channel("a", A),),
        history_evidence=HistoryEvidence(None, records),
    )
    source = a_server("a", A, f"{A}:1-9", server_id=1)
    [edge] = gather_facts(a_cluster("pair", source, server), Policy()).edges
    text = assigned_text(edge, GtidSet.parse(f"{B}:1-9"), server, source)
    assert f"has {B}:5:9 with the server_id of a." in text
    assert maybe_assigned(edge, server) == GtidSet.parse(f"{B}:5:9")
