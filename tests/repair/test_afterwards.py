"""What the rules say of simulated servers: one fact of the readings at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.audit_after_plan import audit_after
from repair.model.former_places import at_former_places, only_shows, reached, searches
from repair.model.initial_model import start_model
from repair.model.replication_model import Model
from repair.model.strategy_case import LogEvidence
from tests.repair.build import channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_finding
from tests.snapshots import with_facts
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.policy import Policy
from topology.readings.history_evidence import LogSearch
from topology.readings.snapshot import ClusterSnapshot, LogPosition, ServerSnapshot, ThreadState

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


def stopped_at(place: str) -> ClusterSnapshot:
    """Return b, which is missing a:4-5 of a, with a stopped channel at a position in its log."""
    stopped = channel("a", runs=False)
    plain = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-3", stopped)))
    file, _, position = place.partition(":")
    at = LogPosition.of(file=file, position=int(position))

    def moved(each: ServerSnapshot) -> ServerSnapshot:
        channels = each.channels or ()
        return replace(
            each, channels=tuple(replace(one, received_to=at, applied_to=at) for one in channels)
        )

    first, last = (tuple(map(moved, part)) for part in (plain.first, plain.last))
    return ClusterSnapshot("cluster", first, last)


@pytest.mark.parametrize(
    ("place", "added", "purged", "is_reported"),
    [
        ("binlog.000002:9000", "a:6", "", True),  # the log may become as long
        ("binlog.000002:9000", "", "", False),  # nothing is logged
        ("binlog.000002:9000", "a:7", "a:7", True),  # SET GLOBAL gtid_purged begins another file
        ("binlog.000003:900", "a:7", "a:7", True),
        ("binlog.000003:900", "a:6", "", False),  # in a file that no step begins
        ("binlog.000002:50", "a:6", "", False),  # before the end that was read
    ],
)
def test_a_step_may_make_a_log_as_long_as_a_former_one(
    place: str, added: str, purged: str, *, is_reported: bool
) -> None:
    """The channel of b stopped before a was reset: what a has now seems to be behind its place."""
    read = stopped_at(place)
    begun = started(read)
    then = begun.replace(
        replace(
            begun["a"],
            executed=begun["a"].executed | gtids(added),
            purged=begun["a"].purged | gtids(purged),
        )
    )
    assert ("H8" in codes(read, begun, then)) is is_reported


def written(
    monkeypatch: pytest.MonkeyPatch, read: ClusterSnapshot, begun: Model, then: Model
) -> ClusterSnapshot:
    """Return the simulated servers as the rules get them."""
    seen: list[ClusterSnapshot] = []

    def audit(
        snapshot: ClusterSnapshot, policy: Policy, *, kept: KeptResults = NOTHING_KEPT
    ) -> ClusterAudit:
        seen.append(snapshot)
        return audit_cluster(snapshot, policy, kept=kept)

    monkeypatch.setattr("repair.audit_after_plan.audit_cluster", audit)
    audit_after(read, POLICY, started=begun, model=then)
    return seen[-1]


@pytest.mark.parametrize(
    "change",
    [
        {"auto_position": True},
        {"running": False},
        {"is_stuck": True},
        {"passed": gtids("a:9")},
        {"bypassed": gtids("a:5")},
        {},
    ],
)
def test_only_a_channel_that_a_step_changes_is_as_that_step_leaves_it(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """Both threads run or both are stopped; one that runs has read and applied all there is.

    What it had received is applied or passed then; nothing else waits.
    """
    late = replace(channel("a", auto=False), retrieved=gtids("a:3 a:5 a:9"))
    read = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-4", late)))
    begun = started(read)
    begun = begun.replace(begun["b"].with_channel("", auto_position=False, running=True))
    then = begun.replace(begun["b"].with_channel("", **change))
    then = then.replace(replace(then["a"], executed=gtids("a:1-6")))
    found = written(monkeypatch, read, begun, then)
    [before], [after] = (
        next(each.channels or () for each in part if each.name == "b")
        for part in (read.last, found.last)
    )
    source = next(each for each in found.last if each.name == "a")
    assert source.log_end is not None
    if not change or "bypassed" in change:
        assert after == before
    elif "running" in change:
        assert {after.receiver, after.applier} == {ThreadState.STOPPED}
    else:
        assert {after.receiver, after.applier} == {ThreadState.RUNNING}
        assert (after.received_to, after.applied_to) == (source.log_end, source.log_end)
        assert after.gtid_retrieved == gtids("a:3 a:5 a:9" if "passed" in change else "a:3 a:5")
        assert (after.lag_seconds, after.receiver_errno, after.applier_errno) == (0, 0, 0)
        assert (after.receiver_error, after.applier_error, after.workers) == ("", "", ())
    for part in (found.first, found.last):
        here = next(each for each in part if each.name == "b")
        assert here.log_end == next(each for each in read.last if each.name == "b").log_end


def test_the_place_of_a_channel_whose_source_was_not_read_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = snapshot_of(model(server("b", "a:1-4", replace(channel("a", runs=False), source=None))))
    begun = started(read)
    found = written(
        monkeypatch, read, begun, begun.replace(begun["b"].with_channel("", running=True))
    )
    [before], [after] = read.last[0].channels or (), found.last[0].channels or ()
    assert before.received_to is not None
    assert (after.received_to, after.applied_to) == (before.received_to, before.received_to)
    assert after.receiver is ThreadState.RUNNING


def test_what_arrived_between_the_readings_is_not_extra() -> None:
    """The source was read before it committed a:6; the replica has it, and its relay log no more."""
    before = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-5", channel("a"))))
    later = snapshot_of(model(server("a", "a:1-5"), server("b", "a:1-6", channel("a"))))
    read = ClusterSnapshot("cluster", before.first, later.last)
    begun = started(read)
    assert codes(read, begun, begun) == []
    extra = replace(read, first=later.first)
    assert codes(extra, begun, begun) != []


def two_sources(**c_facts: Any) -> ClusterSnapshot:
    """Return c, which committed c:1 by itself, below a and b, which do not have it."""
    names = channel("a", name="x"), channel("b", name="y")
    plain = snapshot_of(
        model(server("a", "a:1"), server("b", "b:1"), server("c", "a:1 b:1 c:1", *names))
    )

    def with_c(part: tuple[ServerSnapshot, ...]) -> tuple[ServerSnapshot, ...]:
        return tuple(with_facts(each, **c_facts) if each.name == "c" else each for each in part)

    return ClusterSnapshot("cluster", with_c(plain.first), with_c(plain.last))


def commits(found: ClusterSnapshot, name: str) -> dict[str, int | None]:
    [here] = [each for each in found.last if each.name == name]
    evidence = here.history_evidence
    records = evidence.commits if evidence is not None else ()
    return {str(each.gtid): each.server_id for each in records if each.gtid == gtids("c:1")}


@pytest.mark.parametrize(("facts", "is_redone"), [({}, True), ({"server_id": None}, False)])
def test_what_a_step_redoes_on_one_source_is_errant_for_the_other_still(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], *, is_redone: bool
) -> None:
    """The log of a has c:1 with another server_id than that of c, if the latter was read."""
    read = two_sources(**facts)
    begun = started(read)
    then = begun.replace(replace(begun["a"], executed=gtids("a:1 c:1")))
    own = {str(gtids("c:1")): 3}
    before = commits(read, "c")
    found = written(monkeypatch, read, begun, then)
    assert commits(found, "a") == ({str(gtids("c:1")): 0} if is_redone else {})
    assert commits(found, "c") == (own if is_redone else before)
    assert commits(found, "b") == {}
    same = written(monkeypatch, read, begun, begun)
    assert commits(same, "a") == {}, "no step has committed it"


def test_nothing_is_written_into_the_log_of_a_replica_that_the_plan_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = two_sources(gtid_purged=None)
    begun = started(read)
    assert "c" not in begun.servers
    then = begun.replace(replace(begun["a"], executed=gtids("a:1 c:1")))
    found = written(monkeypatch, read, begun, then)
    assert [each for each in found.last if each.name == "c"] == [
        each for each in read.last if each.name == "c"
    ]
    assert commits(found, "a") == {}


FORMER = "binlog.000002:9000"


def test_a_channel_that_a_step_changes_leaves_its_former_place() -> None:
    read = stopped_at(FORMER)
    begun = started(read)
    grown = begun.replace(replace(begun["a"], executed=gtids("a:1-6")))
    found = {(edge.replica, str(place)) for edge, place in reached(read, begun, grown)["a"]}
    assert found == {("b", FORMER)}
    # All of the log may be before that position; the rules look for nothing else.
    [search, *others] = searches(reached(read, begun, grown), begun, grown)["a"]
    assert {search, *others} == {LogSearch("b", "", FORMER, gtids("a:1-6"), gtids("a:1-6"))}
    assert searches({}, begun, grown) == {}
    for change in ({"running": True}, {"auto_position": False}, {"passed": gtids("a:4")}):
        moved = grown.replace(grown["b"].with_channel("", **change))
        assert reached(read, begun, moved) == {}
    assert reached(read, begun, begun) == {}, "nothing is logged"


@pytest.mark.parametrize(
    ("part", "unread", "is_known"),
    [
        ("first", "b", False),  # it may have received since
        ("last", "a", False),  # where its log ends is not known
        ("first", "a", True),
        ("last", "b", True),
    ],
)
def test_a_former_place_is_known_by_the_replica_before_and_the_source_after(
    part: str, unread: str, *, is_known: bool
) -> None:
    read = stopped_at(FORMER)
    assert [*at_former_places(read)] == [("b", "")]
    servers = tuple(
        with_facts(each, gtid_purged=None) if each.name == unread else each
        for each in getattr(read, part)
    )
    seen: dict[str, Any] = {part: servers}
    assert [*at_former_places(replace(read, **seen))] == [("b", "")] * is_known
    assert [*at_former_places(stopped_at("binlog.000002:50"))] == []


@pytest.mark.parametrize(
    ("code", "wanted", "source", "is_old"),
    [
        ("H8", "a:4", "a", True),
        ("H8", "a:4-5", "a", True),
        ("H8", "a:4-6", "a", False),  # it misses more than before
        ("H8", "a:3", "a", False),  # it had that
        ("H1", "a:4", "a", False),
        ("H8", "a:4", "z", False),  # what z had is not known
    ],
)
def test_a_gap_that_steps_only_show_was_there_before(
    code: str, wanted: str, source: str, *, is_old: bool
) -> None:
    begun = started(stopped_at(FORMER))
    assert only_shows(a_finding(code, wanted, source=source), begun) is is_old
    assert not only_shows(a_finding(code, wanted, source=source, replica="z"), begun)


def test_what_an_applier_has_passed_and_steps_log_is_found_behind_its_place() -> None:
    passed = replace(channel("a"), passed=gtids("a:5-6"))
    begun = model(server("a", "a:1-5"), server("b", "a:1-4", passed))
    then = begun.replace(server("a", "a:1-7"))
    assert searches({}, begun, then) == {"a": [LogSearch("b", "", "", gtids("a:6"), gtids("a:6"))]}
    assert searches({}, begun, begun) == {}
    outside = then.replace(server("b", "a:1-4", replace(passed, source=None)))
    assert searches({}, begun, outside) == {}
