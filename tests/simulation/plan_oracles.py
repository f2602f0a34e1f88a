"""What must hold when a plan is run on the true world: in full, late, interrupted.

7. A plan made without choices loses no work that a client was told of, applies none twice, puts no
   older version over a newer one, stops no thread, and declares no data unneeded. The audit
   afterwards shows nothing above info that the first audit and the plan did not show.
8. The same holds when the world moves on between planning and running (guards may refuse), and when
   the run stops after any step; planning again then reaches the same sets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gtid import GtidSet
from repair.actions import AppendPurged, InjectEmpty, ResetAndPurge
from repair.plan import Plan
from repair.planner import plan_repair
from tests.simulation import replication as act
from tests.simulation.evidence import log_evidence
from tests.simulation.oracles import Truth, Violation, above_info
from tests.simulation.plan_actions import (
    NotSimulated,
    Refused,
    check_assumed,
    check_history,
    run_action,
)
from tests.simulation.reading import gtids, read
from tests.simulation.state import Gtid, World, gtid_text
from tests.simulation.steps import STEPS, Line, perform
from topology.audit import audit_cluster
from topology.findings import ClusterAudit
from topology.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a plan was run, and the world then."""

    world: World
    done: int
    refused: str = ""


def plan_of(truth: Truth, world: World, snapshot: ClusterSnapshot, audit: ClusterAudit) -> Plan:
    """Make the plan that the product makes without choices."""
    evidence = log_evidence(world, audit, truth.reading.visible)
    return plan_repair(snapshot, audit, evidence=evidence, policy=truth.policy)


def run(world: World, plan: Plan, *, steps: int | None = None) -> Outcome:
    """Run the first steps of a plan, with guards, and let the world rest."""
    made = world.copy()
    act.rest(made)
    for count, step in enumerate(plan.steps):
        if steps is not None and count >= steps:
            return Outcome(made, count)
        try:
            check_assumed(made, plan)
            check_history(made, plan, step.effect)
            run_action(made, step.effect)
        except Refused as refusal:
            return Outcome(made, count, str(refusal))
    return Outcome(made, len(plan.steps))


def plans(truth: Truth, snapshot: ClusterSnapshot, audit: ClusterAudit) -> Iterator[Violation]:
    """7 and 8, for the plan of one audit."""
    if not above_info(audit):
        return
    plan = plan_of(truth, truth.world, snapshot, audit)
    if not plan.steps:
        return
    codes = "+".join(sorted({each.code for each in plan.answered if each.steps}))
    try:
        full = run(truth.world, plan)
        yield from harm(truth.rested, full.world, codes, "plan", injected=_injected(plan))
        if not full.refused:
            yield from _afterwards(truth, full.world, plan, audit)
        yield from _interrupted(truth, plan, full, codes)
        yield from _late(truth, plan, codes)
    except NotSimulated:
        return


def _injected(plan: Plan) -> GtidSet:
    """Return the GTIDs that a plan declares executed without their content."""
    return GtidSet.union_of(
        step.effect.gtids
        for step in plan.steps
        if isinstance(step.effect, InjectEmpty | AppendPurged | ResetAndPurge)
    )


def harm(
    before: World, after: World, codes: str, oracle: str, *, injected: GtidSet
) -> Iterator[Violation]:
    """Compare the world with what it would be without the plan."""
    for name, server in after.servers.items():
        was = before[name]
        gone = [work for work, count in was.works.items() if count and not server.works[work]]
        if gone:
            yield Violation(oracle, codes, f"{name} loses the work of {len(gone)} transactions")
        twice = [work for work, count in server.works.items() if count > max(1, was.works[work])]
        if twice:
            yield Violation(oracle, codes, f"{name} applies {_named(server.applied, twice)} twice")
        for key, value in server.rows.items():
            if key in was.rows and value < was.rows[key] and value:
                yield Violation(oracle, codes, f"{name}: {key} has an older version than before")
                break
        for gtid in sorted(server.executed - was.executed):
            work = _data_under(before, gtid)
            if work is not None and not server.works[work] and gtids([gtid]) <= injected:
                text = f"{gtid_text(gtid)} is declared unneeded on {name}, its data is not there"
                yield Violation(oracle, codes, text)
                break
        for channel in server.channels:
            old = was.channel(channel.name)
            if old is not None and old.runs and not channel.runs:
                error = channel.applier_error[1] or channel.receiver_error[1] or "stopped"
                yield Violation(oracle, codes, f"{name}: {channel.name!r} stops: {error}")


def _named(applied: list, works: list[int]) -> str:  # type: ignore[type-arg]
    return ", ".join(sorted({gtid_text(made.gtid) for made, _ in applied if made.work in works}))


def _data_under(world: World, gtid: Gtid) -> int | None:
    """Return the work that a client committed under a GTID, if it changed rows."""
    for server in world.servers.values():
        if gtid not in server.executed:
            continue
        for made, undo in server.applied:
            if made.gtid == gtid and undo and server.works[made.work]:
                return made.work
    return None


def _afterwards(truth: Truth, after: World, plan: Plan, audit: ClusterAudit) -> Iterator[Violation]:
    again = audit_cluster(
        read(after.copy(), replace(truth.reading, moving=False, between=())), truth.policy
    )
    known = {one.id for one in audit.findings} | {each.finding_id for each in plan.not_planned}
    about = {(each.code, name) for each in audit.findings for name in (each.source, each.replica)}
    # A channel that was stopped, and meets a conflict when it runs again: the script shows it.
    was_stopped = {
        (server.name, channel.name) for server, channel in truth.rested.paths() if not channel.runs
    }
    announced = plan_announces(plan)
    for one in above_info(again):
        if one.code in ("A2", "A3") and (one.replica, one.channel) in was_stopped:
            continue
        if {(one.code, one.source), (one.code, one.replica)} & about:
            continue
        if one.id not in known and one.code not in announced and not one.code.startswith("U"):
            text = f"afterwards: {one.code} {one.source}->{one.replica}, not announced"
            yield Violation("plan", one.code, text)
    answered = {each.finding_id: each for each in plan.answered}
    for one in above_info(again):
        if one.id in answered and one.id not in announced and one.code not in announced:
            yield Violation("plan", one.code, f"{one.code} was answered and is still there")


def plan_announces(plan: Plan) -> set[str]:
    """Return the codes and ids of findings that the plan says will be there afterwards."""
    return {each.code for each in plan.afterwards} | {each.finding_id for each in plan.afterwards}


def _interrupted(truth: Truth, plan: Plan, full: Outcome, codes: str) -> Iterator[Violation]:
    """8. Stop after any step, audit and plan again, run that: the same end."""
    if full.refused or len(plan.steps) < 2:
        return
    for steps in range(1, len(plan.steps)):
        part = run(truth.world, plan, steps=steps)
        snapshot = read(part.world.copy(), replace(truth.reading, moving=False, between=()))
        audit = audit_cluster(snapshot, truth.policy)
        second = plan_of(truth, part.world, snapshot, audit)
        rest = run(part.world, second).world
        injected = _injected(plan) | _injected(second)
        yield from harm(truth.rested, rest, codes, "plan interrupted", injected=injected)
        for name, server in full.world.servers.items():
            if server.executed != rest[name].executed and not rest[name].executed > server.executed:
                text = f"stopped after step {steps}: {name} ends with another gtid_executed"
                yield Violation("plan interrupted", codes, text)
                return


LATE: tuple[str, ...] = (
    "load", "write", "write-errant", "stop-replica", "start-replica", "repoint", "configure-only",
    "purge", "reset-binary-logs-and-gtids", "crash", "write-by-hand", "failover",
)  # fmt: skip


def _late(truth: Truth, plan: Plan, codes: str) -> Iterator[Violation]:
    """8. The world moves on between planning and running."""
    dice = random.Random(truth.reading.seed)
    moved = truth.world.copy()
    name = dice.choice(LATE)
    args = STEPS[name].choose(moved, dice)
    if args is None:
        return
    line: Line = (name, *args)
    if not perform(moved, line):
        return
    act.rest(moved)
    late = run(moved, plan)
    for each in harm(moved, late.world, codes, "plan late", injected=_injected(plan)):
        if "stops: " in each.text and "row event" not in each.text:
            continue  # the source refuses the connection because of the late step, and says so
        yield replace(each, text=f"after {' '.join(map(str, line))}: {each.text}")
