"""Plans whose steps the rules evaluate together, compared with plans evaluated after each step.

The second way is the definition (repair/leaf_replicas.py). Both are compared for stars whose
replicas have every kind of channel, hole and set, and for simulated histories. Several faults on
each server make some steps refused, so that groups of steps have to be halved.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from gtid import GtidSet
from repair import planner
from repair.model.replication_model import Model, ModelServer
from repair.plan_input import PlanInput
from repair.planner import plan_repair
from repair.repair_plan import Plan
from tests.repair import build
from tests.simulation.history import History, generate, parse
from tests.simulation.transcripts import Story, reported
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.readings.content_class import ContentClass

STARS = 12  # in each test
SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
MOST_REPLICAS = 9


class Counted:
    """Makes each plan in both ways, and counts how often the rules evaluated a cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.evaluated = {"together": 0, "one by one": 0}
        self.way = ""
        self.kept_together = 0
        self._look_ahead = PlanInput.look_ahead

    def look_ahead(self, given: PlanInput, model: Model) -> ClusterAudit:
        self.evaluated[self.way] += 1
        return self._look_ahead(given, model)

    def same(self, make: Callable[[], Plan | object]) -> object:
        """Return what both ways make; fail if they differ."""
        self.way = "together"
        together = make()
        self.way = "one by one"
        with self.monkeypatch.context() as patched:
            patched.setattr(planner, "leaf_of", lambda _finding, _model: None)
            assert make() == together
        return together


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted(monkeypatch)

    def look_ahead(given: PlanInput, model: Model) -> ClusterAudit:
        return found.look_ahead(given, model)

    keep_together = planner._Work._keep_together

    def kept_together(work: planner._Work, together: list[planner._Tried]) -> bool:
        is_kept = keep_together(work, together)
        found.kept_together += is_kept
        return is_kept

    monkeypatch.setattr(PlanInput, "look_ahead", look_ahead)
    monkeypatch.setattr(planner._Work, "_keep_together", kept_together)
    return found


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(each, marks=[pytest.mark.slow if each else pytest.mark.long])
        for each in range(0, 50 * STARS, STARS)
    ],
)
def test_steps_evaluated_together_make_the_same_plan(
    monkeypatch: pytest.MonkeyPatch, counted: Counted, first: int
) -> None:
    steps = 0
    for seed in range(first, first + STARS):
        random_ = random.Random(seed)
        names = [f"s{number:02}" for number in range(random_.randint(4, MOST_REPLICAS))]
        for number, name in enumerate(names):
            monkeypatch.setitem(build.UUIDS, name, UUID(int=(number + 1) << 64 | 0xABC))
        snapshot = build.snapshot_of(Model({n: _server(n, names, random_) for n in names}))
        audit = audit_cluster(snapshot)
        evidence = build.evidence_of(audit, random_.choice([*ContentClass]))
        plan = counted.same(partial(plan_repair, snapshot, audit, evidence=evidence))
        assert isinstance(plan, Plan)
        steps += len(plan.steps)
    assert steps > STARS
    assert counted.kept_together


@pytest.mark.parametrize(
    "first", [pytest.param(0, marks=pytest.mark.long), pytest.param(50, marks=pytest.mark.slow)]
)
def test_simulated_histories_have_the_same_plans(counted: Counted, first: int) -> None:
    for seed in range(first, first + (1000 if first else 50)):
        story = Story(generate(seed)[0], {})
        counted.same(partial(reported, story))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_kept_histories_have_the_same_plans(counted: Counted, part: int) -> None:
    for path in SCENARIOS[part::8]:
        history: History = parse(path.read_text())
        counted.same(partial(reported, Story(history, {})))


@pytest.mark.long
def test_a_refused_step_among_many_is_found_in_few_evaluations(
    monkeypatch: pytest.MonkeyPatch, counted: Counted
) -> None:
    """Each start but one is as harmless as the others."""
    replicas = [f"r{number:02}" for number in range(40)]
    for number, name in enumerate(replicas):
        monkeypatch.setitem(build.UUIDS, name, UUID(int=(number + 1) << 64 | 0xABC))
    stopped = build.channel("a", runs=False)
    servers = [build.server(name, "a:1-5", stopped) for name in replicas]
    servers[17] = replace(servers[17], executed=build.gtids("a:1-5 r17:1"))
    snapshot = build.snapshot_of(build.model(build.server("a", "a:1-9"), *servers))
    audit = audit_cluster(snapshot)
    evidence = build.evidence_of(audit, ContentClass.DATA)
    plan = counted.same(partial(plan_repair, snapshot, audit, evidence=evidence))
    assert isinstance(plan, Plan)
    assert len(plan.steps) >= 39
    assert counted.evaluated["together"] < counted.evaluated["one by one"] / 3


def _server(name: str, names: list[str], random_: random.Random) -> ModelServer:
    """Return the source, a relay, or a replica of either, with holes and GTIDs of its own."""
    number = names.index(name)
    if number == 0:
        return build.server(name, "s00:1-9")
    source = random_.choice(["s00", "s00", "s00", "s01"]) if number > 1 else "s00"
    executed = random_.choice(["s00:1-9", "s00:1-5", "s00:1-5", "s00:1-4:6-9", "s00:1-2"])
    if random_.random() < 0.15:
        executed += f" {name}:1"
    channel = build.channel(
        source,
        auto=random_.random() < 0.7,
        runs=random_.random() < 0.25,
        bypassed=random_.choice(["", "", "s00:5"]),
    )
    received = random_.choice(
        [GtidSet(), GtidSet(), build.gtids("s00:4-6"), build.gtids("s00:9-11")]
    )
    made = build.server(name, executed, replace(channel, retrieved=received))
    if random_.random() < 0.15:
        return replace(made, purged=build.gtids("s00:1-2"))
    return made
