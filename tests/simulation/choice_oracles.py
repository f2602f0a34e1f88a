"""What must hold when a plan is made with choices and run on the true world.

9. A choice may lose what the plan's text announces: the content of transactions that it declares
   executed, the work that it undoes, the replica's version of rows that it makes like the source's.
   Nothing else is lost, nothing is applied twice, no thread is stopped that ran; and what the audit
   says of the world afterwards holds (the oracles of oracles.py).
   Where the plan warns that fetching again may stop the applier or overwrite rows, it may.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gtid import GtidSet
from repair.actions import (
    AppendPurged,
    InjectEmpty,
    MakeRowsAlike,
    RedoTransactions,
    ResetAndPurge,
    UndoRows,
)
from repair.plan import Plan
from repair.planner import plan_repair
from repair.strategies import DECLARING, PLANNERS
from tests.simulation.chosen_evidence import chosen_evidence
from tests.simulation.contents import contents_of
from tests.simulation.oracles import Truth, Violation, above_info, conclusions
from tests.simulation.plan_actions import NotSimulated
from tests.simulation.plan_oracles import run
from tests.simulation.reading import gtids, read
from tests.simulation.state import Channel, Gtid, Key, Server, World, gtid_text
from tests.simulation.toy_table import key_of
from topology.audit import audit_cluster
from topology.catalogue import answers
from topology.findings import ClusterAudit
from topology.snapshot import ClusterSnapshot

SHARE = 0.4  # of the histories with findings: each costs a second plan
_WARNED = "may stop the applier or overwrite rows"
# Says of the world after the plan what the next audit gets wrong.
_AFTERWARDS = frozenset({"OK", "clears by itself", "lost", "errant"})


@dataclass(frozen=True, slots=True)
class Announced:
    """What a plan says that it loses."""

    declared: GtidSet  # executed without their content
    undone: GtidSet
    rows: frozenset[Key]  # written by steps
    is_warned: bool  # fetching may stop an applier or overwrite rows
    is_refused: bool  # a script refused half-way and said so: a channel may be stopped on purpose


def choices_of(truth: Truth, audit: ClusterAudit) -> dict[str, str]:
    """Choose strategies by chance, for some findings."""
    dice = random.Random(truth.reading.seed + 1)
    chosen: dict[str, str] = {}
    for finding in audit.findings:
        names = [name for name in answers(finding.code) if name in PLANNERS]
        if names and dice.random() < 0.7:
            chosen[finding.id] = dice.choice(names)
    return chosen


def chosen_plans(
    truth: Truth, snapshot: ClusterSnapshot, audit: ClusterAudit
) -> Iterator[Violation]:
    """9, for the plan of one audit with choices."""
    if not above_info(audit) or random.Random(truth.reading.seed).random() > SHARE:
        return
    choices = choices_of(truth, audit)
    if not choices:
        return
    evidence = chosen_evidence(truth.world, snapshot, audit)
    plan = plan_repair(snapshot, audit, choices=choices, evidence=evidence, policy=truth.policy)
    if not plan.steps:
        return
    try:
        outcome = run(truth.world, plan, snapshot)
    except NotSimulated:
        return
    codes = "+".join(
        sorted({f"{each.code}={each.strategy}" for each in plan.answered if each.steps})
    )
    announced = _announced(plan, choices, is_refused=bool(outcome.refused))
    yield from _harm(truth, outcome.world, announced, codes)
    if not outcome.refused:
        yield from _concluded(truth, outcome.world, plan, codes)


def _announced(plan: Plan, choices: dict[str, str], *, is_refused: bool) -> Announced:
    """Read off a plan what it gives up: by its choices, and in its warnings."""
    declaring = {
        each.finding_id
        for each in plan.answered
        if choices.get(each.finding_id) in {*DECLARING, "undo_on_replica"}
    }
    about = [step.effect for step in plan.steps if declaring & {*step.finding_ids}]
    declared = GtidSet.union_of(
        each.gtids for each in about if isinstance(each, InjectEmpty | AppendPurged | ResetAndPurge)
    )
    effects = [step.effect for step in plan.steps]
    undone = GtidSet.union_of(each.gtids for each in effects if isinstance(each, UndoRows))
    rows = frozenset(
        key_of(row)
        for each in effects
        if isinstance(each, UndoRows | MakeRowsAlike)
        for row in each.rows
    )
    is_warned = any(_WARNED in text for text in plan.warnings)
    return Announced(declared, undone, rows, is_warned, is_refused)


def _harm(truth: Truth, after: World, announced: Announced, codes: str) -> Iterator[Violation]:
    before = truth.rested
    for name, server in after.servers.items():
        was = before[name]
        gone = [
            made.gtid
            for made, undo in was.applied
            if undo and was.works[made.work] and not server.works[made.work]
        ]
        unsaid = [each for each in gone if not gtids([each]) <= announced.undone]
        if unsaid:
            yield Violation("choice", codes, f"{name} loses the work of {gtid_text(unsaid[0])}")
        if not announced.is_warned:
            yield from _doubled(was, server, announced, codes)
        yield from _unneeded(before, was, server, announced, codes)


def _doubled(was: Server, server: Server, announced: Announced, codes: str) -> Iterator[Violation]:
    """Report work that was applied twice, older rows, and threads that stopped."""
    for made, undo in server.applied:
        if undo and server.works[made.work] > max(1, was.works[made.work]):
            text = f"{server.name} applies {gtid_text(made.gtid)} twice"
            yield Violation("choice", codes, text)
            break
    for key, value in server.rows.items():
        if key not in announced.rows and value and value < was.rows.get(key, value):
            text = f"{server.name}: {key} has an older version than before"
            yield Violation("choice", codes, text)
            break
    for channel in server.channels:
        old = was.channel(channel.name)
        if old is not None and old.runs and not channel.runs:
            if _is_announced(channel, announced):
                continue
            error = channel.applier_error[1] or channel.receiver_error[1] or "stopped"
            text = f"{server.name}: {channel.name!r} stops: {error}"
            yield Violation("choice", codes, text)


def _is_announced(channel: Channel, announced: Announced) -> bool:
    """Return whether a channel stops for a reason that the plan's text has.

    What a plan leaves out or takes back by choice is missing for later changes of the same rows.
    """
    if not channel.applier_error[1] and not channel.receiver_error[0]:
        return announced.is_refused
    left_out = announced.declared | announced.undone
    return channel.failed is not None and bool(left_out)


def _unneeded(
    before: World, was: Server, server: Server, announced: Announced, codes: str
) -> Iterator[Violation]:
    """Report GTIDs that are executed now, without their data, and were not announced as such."""
    for gtid in sorted(server.executed - was.executed):
        said = announced.declared | announced.undone
        if gtids([gtid]) <= said or gtid in was.executed:
            continue
        works = _works_under(before, gtid)
        if works and not works & {made.work for made, _ in server.applied}:
            text = f"{gtid_text(gtid)} is executed on {server.name}, its data is not there"
            yield Violation("choice", codes, text)
            return


def _works_under(world: World, gtid: Gtid) -> set[int]:
    """Return the works that changed rows under a GTID, on any server."""
    return {
        made.work
        for server in world.servers.values()
        for made, undo in server.applied
        if made.gtid == gtid and undo and server.works[made.work]
    }


def _told(truth: Truth, after: World, plan: Plan) -> Iterator[Key]:
    """Yield the rows of which the plan says that they may be overwritten, or differ afterwards.

    The sets agree then, and so do the binary logs: no audit of a real server could report it.
    """
    is_warned = any(_WARNED in text for text in plan.warnings)
    leaves_a_source = any("no later audit reports that" in text for text in plan.warnings)
    for name, server in after.servers.items():
        for made, undo in server.applied:
            is_new = not truth.rested[name].works[made.work]
            if is_new and (is_warned or (leaves_a_source and gtids([made.gtid]) <= _redone(plan))):
                yield from (key for key, _ in undo)


def _redone(plan: Plan) -> GtidSet:
    return GtidSet.union_of(
        step.effect.gtids for step in plan.steps if isinstance(step.effect, RedoTransactions)
    )


def _concluded(truth: Truth, after: World, plan: Plan, codes: str) -> Iterator[Violation]:
    """Audit the world after the plan: OK is not said of a fault that it left or made.

    What the audit says of the same world without the plan is the matter of other oracles.
    """
    found = _said_of(truth, after, frozenset(_told(truth, after, plan)))
    if found and (new := [each for each in found if each not in _said_of(truth, truth.rested)]):
        text = f"afterwards: {new[0].oracle} {new[0].code}: {new[0].text}"
        yield Violation("choice", codes, text)


def _said_of(truth: Truth, world: World, told: frozenset[Key] = frozenset()) -> list[Violation]:
    reading = replace(truth.reading, moving=False, between=())
    snapshot = read(world, reading)
    audit = audit_cluster(snapshot, truth.policy, contents_of(world, reading))
    found = conclusions(Truth(world, reading, snapshot, truth.policy, told), audit)
    return [each for each in found if each.oracle in _AFTERWARDS]
