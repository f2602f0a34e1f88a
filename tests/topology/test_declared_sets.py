"""Extra GTIDs whose source was given its set: what shows that it may have their rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, a_channel, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Grade
from topology.facts.declared_sets import DECLARED
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogStart
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ServerSnapshot

FIRST = (BinaryLog("binlog.000001", 500), BinaryLog("binlog.000002", 500))
BEGUN = HistoryEvidence(LogStart("binlog.000001", NOON, GtidSet()), ())


def own(numbers: str) -> GtidSet:
    return GtidSet.parse(f"{B}:{numbers}")


def committed(seconds: int) -> HistoryEvidence:
    """Return what the log of `b` shows: both ends of the extra set, committed after noon."""
    at = NOON + timedelta(seconds=seconds)
    return HistoryEvidence(
        None, tuple(CommitRecord(own(n), 2, at, is_exact=True) for n in ("6", "7"))
    )


def later(server: ServerSnapshot) -> ServerSnapshot:
    at = NOON + timedelta(seconds=1)
    return replace(server, phase=2, read_started=at, read_ended=at, server_clock=at)


def audited(*, log: HistoryEvidence | None = None, **source: Any) -> ClusterAudit:
    """Audit b, which replicates from a and has two transactions that a does not have."""
    facts = {"gtid_purged": own("1-5"), "binary_logs": FIRST, "history_evidence": BEGUN, **source}
    both = GtidSet.parse(f"{A}:1-5")
    a = a_server("a", A, own("1-5") | both, **facts)
    b = a_server("b", B, own("1-7") | both, channels=(a_channel("a", A),), history_evidence=log)
    return audit_cluster(ClusterSnapshot("pair", (a, b), (later(a), later(b))))


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"log": committed(-60)},
        {"log": committed(0)},
        {"log": committed(60), "history_evidence": None},
        {"binary_logs": FIRST[1:]},  # after a RESET it may have purged logs as well
        {"binary_logs": None},
    ],
)
def test_a_source_that_was_given_its_set_may_have_the_rows(facts: dict[str, Any]) -> None:
    [found] = [each for each in audited(**facts).findings if each.code == "E1"]
    assert (found.gtid_set, found.grade) == (own("6-7"), Grade.LIKELY)
    assert "before it was given its GTID set" in found.explanation
    [shown] = [each for each in found.evidence if each.fact == DECLARED]
    assert (shown.value, shown.read_from) == (str(own("1-5")), "a")


@pytest.mark.parametrize(
    "facts",
    [
        {"log": committed(60)},  # after its first log was begun
        {"gtid_purged": GtidSet.parse(f"{A}:1-5")},  # of another origin
        {"gtid_purged": GtidSet()},
        {"settings": (("log_replica_updates", "OFF"),), "notable_settings": None},
    ],
)
def test_a_source_whose_set_has_grown_never_had_them(facts: dict[str, Any]) -> None:
    [found] = [each for each in audited(**facts).findings if each.code in ("E1", "P1")]
    assert DECLARED not in [each.fact for each in found.evidence]
    assert "before it was given its GTID set" not in found.explanation
    assert found.grade is Grade.PROVED
