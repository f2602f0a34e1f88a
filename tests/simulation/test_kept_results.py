"""Each audit of a simulated plan, compared with the audit that keeps nothing of the one before.

The planner audits the servers after each step, and keeps what the step did not change
(topology/facts/kept_inputs.py). The definition is the audit of the whole cluster. Both are compared
for every step that the planner tries, in histories whose plans are made by default and by choice,
and after any actions in clusters with chains, stars and second channels.
"""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import repair.plan_input
from gtid import GtidSet
from repair import LogEvidence
from repair.audit_after_plan import audit_after
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    StartChannel,
    StopChannel,
    simulate,
)
from repair.model.initial_model import start_model
from repair.model.replication_model import Model, ModelChannel, ModelServer
from tests.repair import build
from tests.simulation import transcripts
from tests.simulation.history import History, generate, parse
from tests.simulation.transcripts import Story, read_stories, reported
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

CLUSTERS = 10
ACTIONS = 8  # in each cluster
BATCHES = range(0, 200, 50)
MORE_BATCHES = range(1000, 21_000, 1000)
SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


class Compared:
    """Audits twice, and counts how often a result was kept."""

    def __init__(self) -> None:
        self.audits = 0

    def audit(self, snapshot: ClusterSnapshot, *args: Any, **options: Any) -> ClusterAudit:
        kept = audit_after(snapshot, *args, **options)
        whole = audit_after(snapshot, *args, **{**options, "kept": NOTHING_KEPT})
        assert kept == whole
        self.audits += 1
        return kept


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compared:
    found = Compared()
    monkeypatch.setattr(repair.plan_input, "audit_after", found.audit)
    return found


def plan_for(history: History) -> None:
    reported(Story(history, {}))


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(each, marks=[pytest.mark.slow if each else pytest.mark.long])
        for each in BATCHES
    ],
)
def test_what_is_kept_changes_no_audit(compared: Compared, first: int) -> None:
    for seed in range(first, first + 50):
        plan_for(generate(seed)[0])
    assert compared.audits > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", MORE_BATCHES)
def test_what_is_kept_changes_no_audit_of_many(compared: Compared, first: int) -> None:
    for seed in range(first, first + 1000):
        plan_for(generate(seed)[0])
    assert compared.audits > 500


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_what_is_kept_changes_no_audit_of_kept_histories(compared: Compared, part: int) -> None:
    for path in SCENARIOS[part::8]:
        plan_for(parse(path.read_text()))
    assert compared.audits > len(SCENARIOS) / 8


@pytest.mark.long
def test_what_is_kept_changes_no_audit_of_selected_strategies(compared: Compared) -> None:
    for story, _ in read_stories(transcripts.APPROVED.read_text()):
        if story.choices:
            reported(story)
    assert compared.audits > 100


@pytest.mark.parametrize(
    "first",
    [
        # Seeds 13 and 19 notice that servers above a source count.
        pytest.param(each, marks=[pytest.mark.long if each == CLUSTERS else pytest.mark.slow])
        for each in range(0, 1000, CLUSTERS)
    ],
)
def test_what_is_kept_changes_no_audit_of_any_actions(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Actions that no plan would choose are simulated too: they change servers in every order."""
    for seed in range(first, first + CLUSTERS):
        random_ = random.Random(seed)
        names = [f"s{number:02}" for number in range(random_.randint(4, 9))]
        for number, name in enumerate(names):
            monkeypatch.setitem(build.UUIDS, name, UUID(int=(number + 1) << 64 | 0xABC))
        snapshot = build.snapshot_of(Model({n: _server(n, names, random_) for n in names}))
        started = start_model(snapshot, audit_cluster(snapshot), LogEvidence())
        model, kept = started, KeptResults()
        for _ in range(ACTIONS):
            model = simulate(model, _action(model, random_))
            now, definition = (
                audit_after(snapshot, Policy(), started=started, model=model, kept=each)
                for each in (kept, NOTHING_KEPT)
            )
            assert now == definition, seed


def _action(model: Model, random_: random.Random) -> Action:
    server = random_.choice([*model.servers.values()])
    everything = GtidSet.union_of(each.executed for each in model.servers.values())
    absent = everything - server.executed
    if server.channels and random_.random() < 0.6:
        channel = random_.choice(server.channels).name
        of_channel: list[Action] = [
            StartChannel(server.name, channel),
            StopChannel(server.name, channel),
            AutoPositionOn(server.name, channel, GtidSet()),
        ]
        return random_.choice(of_channel)
    if absent:
        of_sets: list[Action] = [
            InjectEmpty(server.name, absent.first(2)),
            AppendPurged(server.name, absent.first(2)),
        ]
        return random_.choice(of_sets)
    number = server.executed.from_uuid(server.server_uuid).gtid_count + 1
    return InjectEmpty(server.name, build.gtids(f"{server.name}:{number}"))


def _server(name: str, names: list[str], random_: random.Random) -> ModelServer:
    """Return a server with channels from earlier ones, or from any, and holes and own GTIDs."""
    number = names.index(name)
    above = names[:number] if random_.random() < 0.9 else [each for each in names if each != name]
    sources = random_.sample(above, min(len(above), random_.choice([1, 1, 1, 2])))
    executed = "s00:1-9" if number == 0 else random_.choice(["s00:1-9", "s00:1-5", "s00:1-4:6-9"])
    if random_.random() < 0.3:
        executed += f" {name}:1-2"
    channels = (_channel(source, number=at, random_=random_) for at, source in enumerate(sources))
    made = build.server(name, executed, *channels)
    if random_.random() < 0.2:
        return replace(made, purged=build.gtids("s00:1-3"))
    return made


def _channel(source: str, *, number: int, random_: random.Random) -> ModelChannel:
    found = build.channel(
        source,
        auto=random_.random() < 0.7,
        runs=random_.random() < 0.4,
        bypassed=random_.choice(["", "", "s00:5"]),
        name=f"from {source}" if number else "",
    )
    return replace(found, retrieved=random_.choice([GtidSet(), build.gtids("s00:4-6")]))
