"""Servers that were read once, each at a moment of its own: no alarm of it, and nothing is OK."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet
from tests.hypothesis_profiles import laws
from tests.topology.test_world import lived_in, one_way
from tests.topology.world import SHAPES, World, gtids
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.readings.read_once import as_last_reading
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState
from topology.rules.build import OF_ONE_READING

LAWS = laws(20)
MORE = laws(60)
seeds = st.integers(0, 2**32 - 1)
# The simplest ones, and every night all of them.
_OFTEN = ("pair", "ring", "multi-source", "diamond")
every_shape = pytest.mark.parametrize(
    "shape",
    [shape if shape in _OFTEN else pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES],
)


def read_at_any_time(world: World) -> ClusterSnapshot:
    """Read one server after the other, with any amount of work between, and each one once."""
    found: list[ServerSnapshot] = []
    names = sorted(world.servers)
    world.dice.shuffle(names)
    for name in names:
        world.run(world.dice.choice([0, 5, 60, 300]))
        found.append(
            next(each for each in world.snapshot(restless=False).first if each.name == name)
        )
    found.sort(key=lambda server: server.name)
    return once(*found)


def once(*servers: ServerSnapshot) -> ClusterSnapshot:
    return ClusterSnapshot("world", servers, tuple(map(as_last_reading, servers)))


def severe(audit: ClusterAudit) -> list[Finding]:
    return [each for each in audit.findings if each.severity is not Severity.INFO]


@every_shape
@MORE
@given(seeds)
def test_a_healthy_world_gives_no_alarm(shape: str, seed: int) -> None:
    dice = random.Random(f"{shape}/{seed}")
    world = World(SHAPES[shape], dice)
    world.run(dice.choice([0, 20, 100]))
    audit = audit_cluster(read_at_any_time(world))
    assert [(one.code, one.source, one.replica, one.explanation) for one in severe(audit)] == []
    assert {one.code for one in audit.findings} <= {"T1", "T2", "T3", "T4", "P2"}
    # What the source owns is known: it is committing that (T4), as with two readings.
    open_yet = [
        each
        for each in audit.findings
        if each.code != "T4" or "A second reading of" in each.explanation
    ]
    assert audit.verdict is (Verdict.UNKNOWN if open_yet else Verdict.OK)


# -- the faults -----------------------------------------------------------------------------------


def not_ok(world: World) -> ClusterAudit:
    """Read a world that has a fault and is at rest: whatever is reported, it is not OK."""
    audit = audit_cluster(once(*world.snapshot(restless=False).first))
    assert audit.verdict is not Verdict.OK
    compared = [each for each in audit.findings if each.code not in OF_ONE_READING]
    assert {each.grade for each in compared} <= {Grade.LIKELY, Grade.UNKNOWN}
    return audit


@every_shape
@LAWS
@given(seeds)
def test_what_the_applier_passed_is_not_ok(shape: str, seed: int) -> None:
    """One reading shows no H8: what waits looks the same as what was passed."""
    world = lived_in(shape, seed)
    channel = world.dice.choice(world.channels)
    for _ in range(60):
        channel.receive()
    if world.pass_by(channel, world.dice.randint(1, 5)):
        world.settle()
        assert not_ok(world).unknown


@every_shape
@LAWS
@given(seeds)
def test_what_was_bypassed_is_not_ok(shape: str, seed: int) -> None:
    world = lived_in(shape, seed)
    channel = world.dice.choice(world.channels)
    channel.receiver = ThreadState.STOPPED
    world.run(60)
    channel.receiver = ThreadState.RUNNING
    if world.bypass(channel, world.dice.randint(1, 5)):
        world.settle()
        assert {each.code for each in not_ok(world).findings} & {"H1", "T3"}


@every_shape
@LAWS
@given(seeds)
def test_what_a_crash_lost_is_not_ok(shape: str, seed: int) -> None:
    world = World(SHAPES[shape], random.Random(f"{shape}/{seed}"))
    world.purges = False
    world.run(world.dice.choice([20, 100, 200]))
    origin = world.servers[world.dice.choice(sorted(world.written))]
    lost = world.lose_tail(origin, world.dice.randint(1, 8))
    world.settle()
    others = (one.executed for one in world.servers.values() if one is not origin)
    if any((lost & held) - origin.executed for held in others):
        assert "E3" not in {each.code for each in not_ok(world).findings}


@pytest.mark.parametrize(
    "shape", [name for name in SHAPES if one_way(World(SHAPES[name], random.Random(0)))]
)
@LAWS
@given(seeds)
def test_what_is_errant_is_found_exactly(shape: str, seed: int) -> None:
    """No channel leads to the source, so the time between the readings does not explain it."""
    world = lived_in(shape, seed)
    replica = world.dice.choice(one_way(world)).replica
    before = replica.executed | replica.owned
    for _ in range(world.dice.randint(1, 4)):
        replica.write(world.dice)
    while replica.finish(world.dice):
        pass
    world.settle()
    errant = {one for one in replica.executed - before if one[0] == replica.name}
    found = severe(not_ok(world))
    assert {one.code for one in found} <= {"E1", "E2"}
    assert GtidSet.union_of(one.gtid_set for one in found) == gtids(errant)
    assert "There is one reading of" in found[0].explanation
