"""T2, T3, T5, E1, A4: what the members of a replication group have not executed yet.

1. Differences between members clear by themselves while the queue or recovery makes progress. A
   queue that waits for a lock, or stands still for too long, is A5 or A8 (stalled_appliers.py).
2. What looks like a fault and is none: the queue of a member that lags, a member in recovery, a
   transaction that one member has executed and another has only received, blocks of GTIDs (T5).
"""

from collections.abc import Iterator
from typing import Final

from gtid import GtidSet
from gtid.counted_nouns import counted
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.group_appliers import failed_channels
from topology.facts.group_facts import GroupFacts, MemberBacklog
from topology.readings.group_view import GROUP_APPLIER, GROUP_RECOVERY
from topology.readings.snapshot import ServerSnapshot
from topology.rules.backlog_words import outlook
from topology.rules.build import Rules, evidence, finding, many
from topology.rules.stalled_appliers import progress_evidence


def member_backlogs(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T2, T3 and E1: what a member has not executed, and another has.

    T2 is proved if the queue moves, or its workers are at work. T3 is proved if the group delivered
    what precedes it between the readings; of a member in recovery it is likely. Neither is proved
    within a day of a start: GTIDs may have been used again, and then a worker stops at a conflict.
    What a member that is ONLINE does not receive is not on its way for long. It is E1 of the
    holder, and likely: the group may still deliver it.
    """
    for group in facts.groups:
        for each in group.backlogs:
            if each.queued:
                yield _queued(facts, each)
            if each.coming and _recovery_failed(facts.last[each.server]) and not each.moved:
                continue  # A4
            if each.coming and (each.is_recovering or each.moved):
                yield _coming(facts, group, each)
            elif each.coming:
                yield _not_delivered(facts, group, each)


def _recovery_failed(server: ServerSnapshot) -> bool:
    group = server.group
    is_member = group is not None and group.member_state != "ONLINE"
    return group is not None and is_member and bool(group.recovery_errno)


def _queued(facts: ClusterFacts, backlog: MemberBacklog) -> Finding:
    member = facts.last[backlog.server]
    applier = facts.appliers[backlog.server, GROUP_APPLIER]
    is_at_work = bool(applier.waits or (member.gtid_owned or GtidSet()) & backlog.queued)
    is_known = backlog.is_long and (applier.moved or (is_at_work and applier.lock_wait is None))
    is_idle = not (applier.moved or is_at_work)
    return finding(
        facts,
        "T2",
        replica=backlog.server,
        channel=GROUP_APPLIER,
        gtid_set=backlog.queued,
        grade=Grade.PROVED if is_known else Grade.LIKELY,
        severity=Severity.WARNING if is_idle else None,
        proof=(
            evidence("missing; received or being applied", backlog.queued, member),
            *progress_evidence(applier, member),
        ),
        explanation=f"{backlog.server} has received {many(backlog.queued)} of its group that it has"
        f" not applied yet. {outlook(applier)}"
        + (_IDLE.format(member=backlog.server) if is_idle else "")
        + ("" if backlog.is_long else _STARTED.format(member=backlog.server)),
    )


_STARTED: Final = (
    " A member or the group was started within the last day. If the group was bootstrapped from a"
    " member without its last transactions, or {member} was reset (RESET BINARY LOGS AND GTIDS),"
    " its rows conflict, and a worker stops."
)
_IDLE: Final = (
    " No worker of {member} is at work. If the next audit shows the same, restart Group Replication"
    " on {member}."
)


def _coming(facts: ClusterFacts, group: GroupFacts, backlog: MemberBacklog) -> Finding:
    member = facts.last[backlog.server]
    assert member.group is not None, "a member"
    # Recovery takes it from the binary logs of one donor, which may have purged some of it.
    is_delivered = backlog.moved and not backlog.is_recovering
    # A worker of recovery has failed (A2, A3). Recovery begins again, and meets the same error.
    has_failed = any(failed_channels(member))
    way = "recovery is to bring" if backlog.is_recovering else "the group is to deliver"
    rest = (
        "A worker has failed (see A2 or A3 of this audit), so it does not arrive by itself."
        if has_failed
        else "It makes progress."
        if backlog.moved
        else "It received and executed nothing between the readings: if the next audit shows the"
        " same, read its error log."
    )
    return finding(
        facts,
        "T3",
        source=backlog.holder,
        replica=backlog.server,
        channel=GROUP_RECOVERY if backlog.is_recovering else GROUP_APPLIER,
        gtid_set=backlog.coming,
        grade=Grade.PROVED if is_delivered and backlog.is_long else Grade.LIKELY,
        severity=None if backlog.moved and not has_failed else Severity.WARNING,
        strategies=() if has_failed else None,
        proof=(
            evidence("missing and not received", backlog.coming, member),
            evidence("state", member.group.member_state, member),
            evidence("moved between the readings", "yes" if backlog.moved else "no", member),
        ),
        explanation=f"{backlog.server} is {member.group.member_state} in the group"
        f" {group.membership.name}, and {way} {many(backlog.coming)} that {backlog.holder} has."
        f" {rest}" + ("" if backlog.is_long else _STARTED.format(member=backlog.server)),
    )


def _not_delivered(facts: ClusterFacts, group: GroupFacts, backlog: MemberBacklog) -> Finding:
    member, holder = facts.last[backlog.server], facts.first[backlog.holder]
    return finding(
        facts,
        "E1",
        source=backlog.server,
        replica=backlog.holder,
        gtid_set=backlog.coming & (holder.gtid_executed or GtidSet()),
        grade=Grade.LIKELY,
        severity=Severity.WARNING,
        strategies=(),
        proof=(
            evidence("extra, read first", backlog.coming, holder),
            evidence("absent, read afterwards", backlog.coming, member),
            evidence("group", group.membership.name, member),
        ),
        explanation=f"{backlog.holder} has {many(backlog.coming)} that {backlog.server} neither has"
        f" nor receives, and both are ONLINE in the group {group.membership.name}. Either"
        f" {backlog.holder} had them when it joined, or the group has not delivered them yet. Audit"
        " again. If they stay, compare the rows.",
    )


def recovery_errors(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A4: distributed recovery of a member that is not ONLINE reports an error."""
    for name in sorted(facts.fully_read):
        server = facts.last[name]
        group = server.group
        if group is None or not _recovery_failed(server):
            continue
        yield finding(
            facts,
            "A4",
            replica=name,
            channel=GROUP_RECOVERY,
            grade=Grade.PROVED,
            strategies=("explain",),
            proof=(
                evidence("state", group.member_state, server),
                evidence("error", f"{group.recovery_errno}: {group.recovery_error}", server),
            ),
            explanation=f"{name} is {group.member_state} in the group {group.group_name}: recovery"
            f" stopped with error {group.recovery_errno}: {group.recovery_error}",
        )


def block_gaps(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T5: gaps between the blocks of GTIDs that members reserve.

    It is likely: a group that was restored from a backup, or that lost its last transactions, has
    such gaps as well. No audited server has executed or received what is in them.
    """
    for group in facts.groups:
        name = next(iter(group.membership.parts[0]), None) if group.membership.parts else None
        if group.gaps and name is not None:
            server = facts.last[name]
            size = server.setting("group_replication_gtid_assignment_block_size")
            yield finding(
                facts,
                "T5",
                replica=name,
                channel=GROUP_APPLIER,
                gtid_set=group.gaps,
                grade=Grade.LIKELY,
                proof=(
                    evidence("executed and received by no server", group.gaps, server),
                    evidence("block size", size or "unknown", server),
                ),
                explanation=f"The group {group.membership.name} has not used"
                f" {_numbers(group.gaps)} below its"
                " highest one. Members reserve GTIDs in blocks, and use the rest of a block later.",
            )


def _numbers(gtid_set: GtidSet) -> str:
    return counted(gtid_set.gtid_count, "GTID")


RULES: Rules = (
    member_backlogs,  # T2, T3, E1
    block_gaps,  # T5
    recovery_errors,  # A4
)
