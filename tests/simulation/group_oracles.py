"""What must hold about replication groups.

0. Never OK if a server that is configured for the group, and was read, is no member of it.
1. Never A7 without a channel about members: they have no channels between them, and need none.
2. What a member is missing and its queue or a donor delivers is not a hole, nor errant elsewhere.
3. No step of a plan, with choices or without, changes the GTIDs of a member: on one of its members a
   group refuses it, or takes it for all (an empty transaction under the group's UUID removes the
   rows everywhere).
"""

from __future__ import annotations

from collections.abc import Iterator

from repair.model.actions import AppendPurged, InjectEmpty, RedoTransactions, ResetAndPurge
from repair.repair_plan import Plan
from tests.simulation.membership import is_member
from tests.simulation.oracles import Truth, Violation, above_info
from tests.simulation.plan_oracles import plan_of
from tests.simulation.reading import gtids
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Verdict
from topology.readings.snapshot import ClusterSnapshot

_CHANGES_GTIDS = (InjectEmpty, AppendPurged, ResetAndPurge, RedoTransactions)


def group_conclusions(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """Compare what an audit concludes about members with the true world."""
    if truth.world.group is None:
        return
    seen = {*truth.world.group.names} & {*truth.reading.visible}
    online = truth.world.group.online
    outside = sorted(name for name in seen - online if not online & truth.world.upstream(name))
    changes = truth.reading.moving or truth.reading.between
    if audit.verdict is Verdict.OK and outside and not changes:
        yield Violation("group", "OK", f"OK, but {outside[0]} is not a member of its group")
    for one in audit.findings:
        if one.code == "A7" and one.channel is None:
            if one.replica in online and not changes:
                yield Violation(
                    "group", "A7", f"A7 {one.source}->{one.replica}: members of a group"
                )
        elif one.grade is Grade.PROVED and one.code[0] in "EHJ" and one.code != "E4":
            # E4 is about two transactions in two logs: that one of them arrives is no excuse.
            yield from _arrives(truth, one)


def _is_member(truth: Truth, name: str | None) -> bool:
    return name is not None and is_member(truth.world, name)


def _arrives(truth: Truth, one: Finding) -> Iterator[Violation]:
    """Report what is said to be missing for good, and the group delivers."""
    name = one.source if one.code[0] in "EJ" else one.replica
    if name is None or not _is_member(truth, name):
        return
    came = truth.rested[name].executed - truth.world[name].executed
    if one.gtid_set & gtids(came):
        text = f"{one.code} proved {one.source}->{one.replica}: {one.gtid_set} arrives on {name}"
        yield Violation("group", one.code, text)


def group_plans(
    truth: Truth, snapshot: ClusterSnapshot, audit: ClusterAudit
) -> Iterator[Violation]:
    """Report steps of the plan without choices that change the GTIDs of a member."""
    if truth.world.group is not None and above_info(audit):
        yield from steps_on_members(truth, plan_of(truth, truth.world, snapshot, audit))


def steps_on_members(truth: Truth, plan: Plan, oracle: str = "group plan") -> Iterator[Violation]:
    """Report steps of a plan that change the GTIDs of a member."""
    for step in plan.steps:
        if isinstance(step.effect, _CHANGES_GTIDS) and is_member(truth.world, step.effect.server):
            kind = type(step.effect).__name__
            yield Violation(oracle, kind, f"{kind} on {step.effect.server}, a group member")
