"""What the rules say of simulated servers: one fact of the readings at a time."""

from __future__ import annotations

from dataclasses import replace

from repair.afterwards import audit_after
from repair.case import LogEvidence
from repair.model import Model
from repair.start import start_model
from tests.repair.build import channel, gtids, model, server, snapshot_of
from topology.audit import audit_cluster
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot

POLICY = Policy()


def started(snapshot: ClusterSnapshot) -> Model:
    return start_model(snapshot, audit_cluster(snapshot), LogEvidence())


def codes(snapshot: ClusterSnapshot, begun: Model, then: Model) -> list[str]:
    found = audit_after(snapshot, POLICY, started=begun, model=then).findings
    return [each.code for each in found]


def test_what_a_step_adds_lies_behind_the_end_of_the_log_that_was_read() -> None:
    """The receiver of b, by file position, had read to that end: it has passed nothing."""
    read = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-5", channel("a", auto=False))))
    begun = started(read)
    added = begun.replace(replace(begun["a"], executed=gtids("a:1-6")))
    assert "H1" not in codes(read, begun, added)


def test_what_arrived_between_the_readings_is_not_extra() -> None:
    """The source was read before it committed a:6; the replica has it, and its relay log no more."""
    before = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-5", channel("a"))))
    later = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-6", channel("a"))))
    read = ClusterSnapshot("cluster", before.first, later.last)
    begun = started(read)
    assert codes(read, begun, begun) == []
    extra = replace(read, first=later.first)
    assert codes(extra, begun, begun) != []
