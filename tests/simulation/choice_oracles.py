"""What must hold when a plan is made with choices and run on the true world.

9. A choice may lose what the plan's text announces: the content of transactions that it declares
   executed, the work that it undoes, the replica's version of rows that it makes like the source's.
   Nothing else is lost, nothing is applied twice, no thread is stopped that ran; and what the audit
   says of the world afterwards holds (the oracles of oracles.py).
   Where the plan warns that fetching again may stop the applier or overwrite rows, it may.
   Late and interrupted runs of these plans (8) are in chosen_moments.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.model.actions import AppendPurged, InjectEmpty, ResetAndPurge
from repair.repair_plan import Plan
from repair.strategies.strategy_registry import PLANNERS
from tests.simulation.announced import WARNED, announced, harm
from tests.simulation.chosen_moments import interrupted, late, plan_with
from tests.simulation.contents import contents_of
from tests.simulation.group_oracles import steps_on_members
from tests.simulation.oracles import Truth, Violation, above_info, conclusions
from tests.simulation.plan_actions import NotSimulated
from tests.simulation.plan_oracles import but_for_what_is_new, run
from tests.simulation.reading import gtids, read
from tests.simulation.state import Gtid, Key, World
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.catalogue.strategy_table import strategies_for
from topology.readings.snapshot import ClusterSnapshot

SHARE = 0.4  # of the histories with findings: each costs a second plan
# Says of the world after the plan what the next audit gets wrong.
_AFTERWARDS = frozenset({"OK", "clears by itself", "lost", "errant"})


def choices_of(truth: Truth, audit: ClusterAudit) -> dict[str, str]:
    """Choose strategies by chance, for some findings."""
    dice = random.Random(truth.reading.seed + 1)
    chosen: dict[str, str] = {}
    # One strategy for each GTID that is extra: two are refused.
    extra: list[tuple[GtidSet, str]] = []
    for finding in audit.findings:
        names = [name for name in strategies_for(finding.code) if name in PLANNERS]
        if not names or dice.random() >= 0.7:
            continue
        name = dice.choice(names)
        if finding.code in ("E1", "E2", "E3", "J3"):
            taken = {each for gtids, each in extra if gtids & finding.gtid_set} or {name}
            if len(taken) > 1 or not taken <= set(names):
                continue
            [name] = taken
            extra.append((finding.gtid_set, name))
        chosen[finding.id] = name
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
    plan = plan_with(truth, truth.world, snapshot, audit, choices)
    if not plan.steps:
        return
    yield from steps_on_members(truth, plan, "choice group")
    codes = "+".join(
        sorted({f"{each.code}={each.strategy}" for each in plan.answered if each.steps})
    )
    try:
        outcome = run(truth.world, plan, snapshot)
        said = announced(plan, choices, is_refused=bool(outcome.refused))
        found = harm(truth.rested, outcome.world, said, ("choice", codes))
        yield from but_for_what_is_new(truth, outcome.world, found)
        if not outcome.refused:
            yield from _concluded(truth, outcome.world, plan, codes)
        yield from interrupted(truth, plan, snapshot, outcome, choices, codes)
        yield from late(truth, plan, snapshot, choices, codes)
    except NotSimulated:
        return


def _told(truth: Truth, after: World, plan: Plan) -> Iterator[Key]:
    """Yield the rows of which the plan says that they may be overwritten, or differ afterwards.

    The sets agree then, and so do the binary logs: no audit of a real server could report it. So it
    is where a transaction is applied again of which RESET BINARY LOGS AND GTIDS took only the GTID,
    and where a source has given a GTID again, as the plan of a selected start says.
    """
    is_warned = any(WARNED in text for text in plan.warnings)
    leaves_a_source = any("no later audit reports that" in text for text in plan.warnings)
    redone = announced(plan, {}, is_refused=False).redone
    effects = [step.effect for step in plan.steps]
    emptied = GtidSet.union_of(
        each.gtids
        for each in effects
        if isinstance(each, InjectEmpty | AppendPurged | ResetAndPurge)
    )
    if not any("audits compare nothing there" in text for text in plan.warnings):
        emptied = GtidSet()
    for name, server in after.servers.items():
        for made, undo in server.applied:
            if gtids([made.gtid]) <= emptied:
                yield from made.keys
            is_new = server.works[made.work] > truth.rested[name].works[made.work]
            if is_new and (is_warned or (leaves_a_source and gtids([made.gtid]) <= redone)):
                yield from (key for key, _ in undo)
    if any("rows differ and no set shows it" in text for text in plan.warnings):
        yield from _of_two_contents(after)


def _of_two_contents(world: World) -> Iterator[Key]:
    """Yield the rows of transactions that share their GTID with another one."""
    works: dict[Gtid, set[int]] = {}
    applied = [made for server in world.servers.values() for made, _ in server.applied]
    for made in applied:
        works.setdefault(made.gtid, set()).add(made.work)
    for made in applied:
        if len(works[made.gtid]) > 1:
            yield from made.keys


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
    audit = audit_cluster(
        snapshot.with_contents(contents_of(world, reading, snapshot)), truth.policy
    )
    found = conclusions(Truth(world, reading, snapshot, truth.policy, told), audit)
    return [each for each in found if each.oracle in _AFTERWARDS]
