"""Whether the steps of a plan for other findings also answer a finding.

The model shows what arrives. It does not show what an applier has passed, or which thread a step
starts; so some codes are answered by their own steps only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gtid import GtidSet
from repair.content.content_questions import HOLES
from repair.model.actions import Action, AutoPositionOn, MovePast, StartChannel
from repair.model.replication_model import Model
from repair.plan_parts import brought_by, may_not_arrive
from topology.catalogue.findings import ClusterAudit, Finding
from topology.readings.snapshot import ReadServer

# The model does not show these: nothing is missing (E4, H7), or it assumes that every running
# applier applies everything (A5, A6, A8). Steps for other findings never answer them.
_ONLY_BY_ITSELF = frozenset({"E4", "H7", "A5", "A6", "A8", "A9", "C1", "C2", "C4", "C15"})
# What the applier or a file position has passed stays missing, regardless of what the rules report.
_ONLY_BY_ARRIVAL = frozenset({"H1", "H8", "E3", "E6"})
# Only a step that starts their channel answers these, even if the set has arrived otherwise.
_OF_A_CHANNEL = frozenset({"A1", "A2", "A3", "A4", "A7"})


@dataclass(frozen=True, slots=True)
class StepsSoFar:
    """The actions of a plan, and the servers before and after them."""

    effects: Sequence[Action]
    started: Model
    model: Model
    known: Mapping[str, ReadServer]
    before: frozenset[str]  # ids of the findings that the rules reported before the first step
    outlook: ClusterAudit  # what they report after the last one


def may_stay(finding: Finding, audit: ClusterAudit, outlook: ClusterAudit) -> bool:
    """Return whether what is missing is to arrive through what may stay as it is.

    That is a backlog above the server, or, for a consumer, a hole of a server that is left (H8 may
    turn out to be one): P4 takes what is likely to arrive there as served.
    """
    if finding.code == "P4":
        left = (each for each in outlook.findings if each.code in HOLES)
        holes = (each for each in left if finding.source in (None, each.replica))
        return any(finding.gtid_set & each.gtid_set for each in holes)
    others = (each for each in audit.findings if each.replica != finding.replica)
    doubtful = GtidSet.union_of(each.gtid_set for each in others if may_not_arrive(each))
    return finding.code in HOLES and bool(finding.gtid_set & doubtful)


def delivers(steps: StepsSoFar, finding: Finding) -> bool:
    """Return whether the steps so far answer a finding, as far as sets and rules show it."""
    if not steps.effects or finding.code in _ONLY_BY_ITSELF:
        return False
    if may_not_arrive(finding):
        return False
    if finding.code in _OF_A_CHANNEL and not _starts(steps, finding):
        return False
    if finding.code not in _ONLY_BY_ARRIVAL and finding.id in steps.before - {
        each.id for each in steps.outlook.findings
    }:
        return True  # the rules no longer find it
    target = finding.source if finding.code[0] in "EJ" else finding.replica
    if not finding.gtid_set or target not in steps.model.servers:
        return False
    if finding.code[0] == "T" and finding.gtid_set <= steps.started[target or ""].executed:
        # It arrives without a step, unless a file position is after it: no set shows that.
        channel = steps.started[target or ""].channel(finding.channel or "")
        return channel is not None and channel.auto_position
    if finding.code in HOLES:
        brought = brought_by(steps.effects, steps.model[target or ""], steps.known)
        # Another channel delivers it, if nothing holds that up: no step does.
        there = steps.started[target or ""].executed
        if finding.gtid_set <= there or finding.gtid_set - brought:
            return False
    return finding.gtid_set <= steps.model[target or ""].executed


def _starts(steps: StepsSoFar, finding: Finding) -> bool:
    """Return whether a step starts the finding's channel, and its applier then continues."""
    if finding.replica not in steps.model.servers or finding.channel is None:
        return False
    channel = steps.model[finding.replica or ""].channel(finding.channel)
    return (
        channel is not None
        and channel.running
        and not channel.is_stuck
        and any(
            isinstance(effect, MovePast | AutoPositionOn | StartChannel)
            and (effect.server, effect.channel) == (finding.replica, finding.channel)
            for effect in steps.effects
        )
    )
