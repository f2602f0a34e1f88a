"""Plans with choices at another moment: run in parts, or after the world has moved on.

8. The run stops after any step; planned again with the same choices, it loses and doubles nothing
   that neither plan announced, and reaches the same sets. Where the second plan refuses a choice it
   says why, and nothing is worse than before. And the world moves on between planning and running:
   guards may refuse.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gtid_audit.tasks.plan_again import wanted_of
from repair.choices import UnknownChoice
from repair.planner import plan_repair
from repair.repair_plan import Plan
from tests.simulation import replication as act
from tests.simulation.announced import LEAVES_OUT, Announced, announced, harm
from tests.simulation.chosen_evidence import chosen_evidence
from tests.simulation.oracles import Truth, Violation
from tests.simulation.plan_oracles import (
    LATE,
    Outcome,
    at,
    but_for_what_is_new,
    dice_of_moment,
    look_again,
    met_what_is_new,
    moved_to,
    overwrote_forgotten,
    run,
)
from tests.simulation.reading import gtids
from tests.simulation.state import World
from tests.simulation.steps import STEPS, Line, perform
from topology.catalogue.findings import ClusterAudit, Finding
from topology.catalogue.strategy_table import strategies_for
from topology.readings.snapshot import ClusterSnapshot

Choices = Mapping[str, str]


def plan_with(
    truth: Truth, world: World, snapshot: ClusterSnapshot, audit: ClusterAudit, choices: Choices
) -> Plan:
    """Make the plan of an audit with choices by finding id; those of other audits are left out."""
    codes = {finding.id: finding.code for finding in audit.findings}
    fitting = {
        key: name
        for key, name in choices.items()
        if key in codes and name in strategies_for(codes[key])
    }
    evidence = chosen_evidence(world, snapshot, audit)
    try:
        plan = plan_repair(snapshot, audit, choices=fitting, evidence=evidence, policy=truth.policy)
        return replace(plan, choices=fitting)
    except UnknownChoice:  # findings have grown, and two of them are about one GTID by now
        return plan_repair(snapshot, audit, evidence=evidence, policy=truth.policy)


def interrupted(  # noqa: PLR0917 - one run, and all that it is compared with
    truth: Truth, plan: Plan, snapshot: ClusterSnapshot, full: Outcome, choices: Choices, codes: str
) -> Iterator[Violation]:
    """8. Stop after any step, audit and plan again with the same choices, run that."""
    if full.refused or len(plan.steps) < 2:
        return
    for steps in range(1, len(plan.steps)):
        part = run(truth.world, plan, snapshot, steps=steps)
        again, audit = look_again(truth, part.world, compares=True)
        still = wanted_of(plan.as_json()).still(audit).choices
        second = plan_with(truth, part.world, again, audit, still)
        rest = run(part.world, second, again)
        said = announced(plan, choices, is_refused=True)
        said = said.and_also(announced(second, second.choices, is_refused=bool(rest.refused)))
        where = f"stopped after step {steps}"
        found = harm(truth.rested, rest.world, said, ("choice interrupted", codes))
        for each in but_for_what_is_new(truth, rest.world, found):
            yield replace(each, text=f"{where}: {each.text}")
        is_told = any("no later audit reports that" in text for text in plan.warnings)
        if not (rest.refused or is_told):
            left = {each.finding_id for each in second.not_planned}
            reported = [finding for finding in audit.findings if finding.id in left]
            worlds = truth.rested, full.world, rest.world
            stops = said.is_warned or any(LEAVES_OUT in text for text in second.warnings)
            for text in _another_end(worlds, reported, said, stops=stops):
                yield Violation("choice interrupted", codes, f"{where}: {text}")


def _another_end(
    worlds: tuple[World, World, World], reported: list[Finding], said: Announced, *, stops: bool
) -> Iterator[str]:
    """Report GTIDs that are missing at the end, and the second plan gives no reason why.

    The worlds are the one without the plan, the one behind a full run, and the one behind both parts.
    A finding may have another code by then (a purged transaction is E2), for which no strategy was chosen.
    An applier may have stopped where a plan warns that what it fetches again, or what comes after what
    it leaves out, may stop it (`stops`).
    """
    without, full, rest = worlds
    for name, server in full.servers.items():
        if name not in said.seen:
            continue  # each plan says that it considers no other: a reset above it may refuse it
        if stops and _has_stopped(without, rest, {name, *rest.upstream(name)} & said.changed):
            continue
        missing = {
            each
            for each in server.executed - rest[name].executed
            if not gtids([each]) <= said.undone
        }  # what is undone has no content anywhere: a server that nothing feeds need not have it
        has_reason = any(  # about the server, one that sends to it, or just these GTIDs
            finding.code[0] in "AEHJP"
            and finding.code != "J4"
            and (
                {finding.source, finding.replica} & {name, *full.upstream(name)}
                or gtids(missing) <= finding.gtid_set
            )
            for finding in reported
        )
        if missing and not has_reason:
            yield f"{name} ends without {gtids(missing)}"
            return


def _has_stopped(without: World, world: World, names: set[str]) -> bool:
    """Return whether a row stopped an applier of these servers that does not stop without the plan."""
    return any(
        channel.failed is not None and (old is None or old.failed != channel.failed)
        for name in names
        for channel in world[name].channels
        for old in (without[name].channel(channel.name),)
    )


def late(
    truth: Truth, plan: Plan, snapshot: ClusterSnapshot, choices: Choices, codes: str
) -> Iterator[Violation]:
    """8. The world moves on between planning and running, or between two steps."""
    dice = random.Random(truth.reading.seed + 2)
    begin = dice_of_moment(truth).randrange(len(plan.steps))
    moved = moved_to(truth.world, plan, snapshot, begin)
    if moved is None:
        return
    name = dice.choice(LATE)
    args = STEPS[name].choose(moved, dice)
    if args is None or not _is_seen(truth, moved, args):
        return
    line: Line = (name, *args)
    said: Announced = announced(plan, choices, is_refused=True)
    if name == "write-by-hand" and (_is_named(said, line) or _is_given(truth.rested, line)):
        return  # two transactions under one GTID: with the plan and without it (E4)
    if not perform(moved, line):
        return
    act.rest(moved)
    after = run(moved, plan, snapshot, begin=begin)
    stood = {server.name for server, channel in truth.rested.paths() if channel.applier_error[1]}
    for each in harm(moved, after.world, said, ("choice late", codes)):
        if "stops: " in each.text and "row event" not in each.text:
            continue  # the source refuses the connection because of the late step, and says so
        if "stops: " in each.text and each.text.partition(":")[0] in stood:
            continue  # the late step let it run; it meets the row at which it stood before
        place = each.text.partition(":")[0].split()[0]
        if "stops: " in each.text and met_what_is_new(truth, moved, after.world[place]):
            continue
        if "an older version" in each.text:
            if overwrote_forgotten(truth, after.world[place]):
                continue
            if after.world[place].rows == truth.rested[place].rows:
                continue  # as without the plan and the late step, which stopped its channel
        senders = {place, *moved.upstream(place)} if name == "write-errant" else {place}
        if senders.intersection(args) and _is_work_of_the_moment(name, each.text, plan):
            continue
        yield replace(each, text=f"{at(begin)} {' '.join(map(str, line))}: {each.text}")


def _is_work_of_the_moment(name: str, text: str, plan: Plan) -> bool:
    """Return whether a late step alone decides what the server meets that it was done on.

    It was pointed to another server, and no script runs on it that would see that. Or a session
    wrote a row on a replica just then, and what the source sent before comes over it as always,
    there and on a server that receives from both.
    """
    if name == "repoint":
        return text.partition(":")[0] not in {step.server for step in plan.steps}
    return name == "write-errant" and "older version" in text


def _is_seen(truth: Truth, world: World, args: Line) -> bool:
    """Return whether a step is on a server that was read: plans consider no other."""
    return not args or args[0] not in world.servers or args[0] in truth.reading.visible


def _is_named(said: Announced, line: Line) -> bool:
    names = [gtids([(str(line[2]), tag, int(line[3]))]) for tag in ("", "dba")]
    return any(each <= said.declared | said.undone | said.redone for each in names)


def _is_given(world: World, line: Line) -> bool:
    """Return whether another server has executed a GTID that the late step gives by hand."""
    gtid = str(line[2]), "", int(line[3])
    return any(gtid in server.executed for server in world.servers.values())
