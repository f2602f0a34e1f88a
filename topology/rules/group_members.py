"""A7, J2, J3, J4, U2: who is a member of a replication group, and the servers outside it.

1. A server that is configured for a group and is no member has one finding: J3 if it has
   transactions that no member has, J2 if no member can send what it is missing, otherwise A7.
2. Where two views disagree, or a reading shows another view than the one before, the members are
   not known: U2.
3. What looks like a fault and is none: a member that joins, and a server that was expelled and
   whose transactions still arrive over a channel of a member.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade, Severity, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.group_appliers import failed_channels
from topology.facts.group_facts import GroupFacts, GroupLeaver
from topology.facts.late_transactions import late_doubt
from topology.facts.memberships import Membership
from topology.facts.reset_signs import excludes_reset
from topology.readings.group_view import GROUP_APPLIER, GroupMember
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import Rules, evidence, finding, many


def servers_outside(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield J3, J2 or A7: a server that is configured for a group and is no member.

    A server that replicates from a member over channels is evaluated by these.
    """
    for group in facts.groups:
        members = {name for part in group.membership.parts for name in part}
        for each in group.leavers:
            if members & facts.graph.upstream_of(each.server):
                continue
            has_failed = any(failed_channels(facts.last[each.server]))  # A2, A3
            if not each.donor:
                yield _without_group(facts, group, each)
            elif each.extra:
                yield _diverged(facts, group, each)
            elif each.purged:
                yield _purged(facts, group, each)
            elif not has_failed:
                yield _may_join(facts, group, each)


def _diverged(facts: ClusterFacts, group: GroupFacts, leaver: GroupLeaver) -> Finding:
    server = facts.last[leaver.server]
    apart = _apart(group.membership)
    is_likely = bool(leaver.unseen or group.membership.absent or apart)
    others = ", ".join(leaver.unseen) or "other members"
    text = (
        f"{leaver.server} {_state(server)}, and has {many(leaver.extra)} that no member has or"
        f" receives. The group {group.membership.name} refuses to let it join (error 3092). Read"
        " the content first, and decide for each transaction whether it is needed."
    )
    if leaver.unseen or group.membership.absent:
        text += f" They may still arrive from {others}, which gtid-audit did not read."
    elif apart:
        text += " Servers of the group that are not members with"
        text += f" {leaver.donor} may have them: {', '.join(apart)}."
    return _about(
        facts,
        "J3",
        leaver,
        leaver.extra,
        text,
        grade=Grade.LIKELY if is_likely else Grade.PROVED,
        # What may be on its way is neither saved nor given up.
        severity=Severity.WARNING if is_likely else None,
        strategies=("add_servers",) if is_likely else ("join_group",),
    )


def _apart(membership: Membership) -> list[str]:
    """Return the servers of a separate part, and those of which the view was not read."""
    seen = {*membership.parts[0], *membership.outside}
    return [name for name in membership.configured if name not in seen]


def _purged(facts: ClusterFacts, group: GroupFacts, leaver: GroupLeaver) -> Finding:
    server = facts.last[leaver.server]
    is_likely = bool(group.membership.absent or _apart(group.membership))
    text = (
        f"{leaver.server} {_state(server)}. It cannot join the group {group.membership.name} from"
        f" the binary logs of a member that was read: each has purged what it needs, {leaver.donor}"
        f" the least ({many(leaver.purged)}). Recovery can clone a member if both servers have the"
        " clone plugin."
    )
    return _about(
        facts,
        "J2",
        leaver,
        leaver.purged,
        text,
        grade=Grade.LIKELY if is_likely else Grade.PROVED,
        strategies=("join_group",),
    )


def _may_join(facts: ClusterFacts, group: GroupFacts, leaver: GroupLeaver) -> Finding:
    server = facts.last[leaver.server]
    reset = not excludes_reset(server, leaver.missing)
    what = (
        f"It is missing {many(leaver.missing)} of the group {group.membership.name}"
        if leaver.missing
        else f"It has everything that the group {group.membership.name} has"
    )
    text = f"{leaver.server} {_state(server)}. {what}, and receives nothing."
    if leaver.missing and reset:
        text += _RESET.format(server=leaver.server)
    reading = facts.fully_read[leaver.server].last
    text += late_doubt(reading, leaver.missing, facts.graph.group_uuids)
    return _about(
        facts,
        "A7",
        leaver,
        leaver.missing,
        text,
        grade=Grade.LIKELY if leaver.missing and reset else Grade.PROVED,
        strategies=("join_group",),
    )


_RESET: Final = (
    " The binary logs of {server} do not exclude RESET BINARY LOGS AND GTIDS. If it was reset, it"
    " has the rows already: recovery would stop at them, or execute the transactions a second time."
    " Compare the data first."
)


def _without_group(facts: ClusterFacts, group: GroupFacts, leaver: GroupLeaver) -> Finding:
    """Return A7 of a server of a group of which no audited server is a member now."""
    server = facts.last[leaver.server]
    executed = facts.first[leaver.server].gtid_executed or GtidSet()
    others = {
        name: (facts.last[name].gtid_executed or GtidSet())
        for name in group.membership.configured
        if name != leaver.server and name in facts.fully_read
    }
    only_here = executed - GtidSet.union_of(others.values())
    missing = GtidSet.union_of(others.values()) - executed
    text = (
        f"{leaver.server} {_state(server)}, and no server that was read is a member of the group"
        f" {group.membership.name} now."
    )
    unread = sorted(facts.last.keys() - facts.fully_read.keys())
    if unread:
        text += f" gtid-audit did not read {', '.join(unread)} completely: it may be a member."
    if only_here:
        text += f" No other audited server of the group has {many(only_here)} of it."
    if missing:
        text += f" It is missing {many(missing)} that others have."
    if only_here and missing:
        text += " Whichever server bootstraps the group, what only the others have stays out of it."
    elif missing:
        text += " Do not bootstrap the group from it: the group would reuse these GTIDs."
    grade = Grade.LIKELY if unread else Grade.PROVED
    shown = replace(leaver, extra=only_here, missing=missing)
    return _about(facts, "A7", shown, missing, text, grade=grade, strategies=())


def _state(server: ServerSnapshot) -> str:
    if server.group is None:
        return "is OFFLINE: it is configured for Group Replication and is not a member"
    return f"is in state {server.group.member_state} and has left its group"


def _about(
    facts: ClusterFacts,
    code: str,
    leaver: GroupLeaver,
    gtid_set: GtidSet,
    text: str,
    *,
    grade: Grade,
    strategies: tuple[str, ...],
    severity: Severity | None = None,
) -> Finding:
    server = facts.last[leaver.server]
    state = "OFFLINE" if server.group is None else server.group.member_state
    return finding(
        facts,
        code,
        source=leaver.donor or None,
        replica=leaver.server,
        gtid_set=gtid_set,
        grade=grade,
        severity=severity,
        strategies=strategies,
        proof=(
            evidence("state", state, server),
            evidence("missing", leaver.missing, server),
            evidence("missing and purged on the best donor", leaver.purged, server),
            evidence("executed here only", leaver.extra, facts.first[leaver.server]),
        ),
        explanation=text,
    )


def separate_parts(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A7: servers with one group name that are not members of one group.

    Each part lists only its own servers as ONLINE. A part without a majority of the members that it
    lists accepts no writes. Otherwise both may: the group was bootstrapped twice, or forced.
    """
    for group in facts.groups:
        membership = group.membership
        for part in membership.parts[1:]:
            server, main = facts.last[part[0]], membership.parts[0]
            members = server.group.members if server.group is not None else ()
            delivering = [each for each in members if each.delivers]
            blocked = 2 * len(delivering) <= len(members)
            rest = (
                "It does not reach a majority of its members, and accepts no writes until it does."
                if blocked
                else "Both accept writes, and use the same GTIDs for different transactions."
            )
            yield finding(
                facts,
                "A7",
                source=main[0],
                replica=part[0],
                grade=Grade.PROVED,
                severity=None if blocked else Severity.CRITICAL,
                strategies=(),
                proof=tuple(
                    evidence("members that it sees", _seen(facts.last[name]), facts.last[name])
                    for name in (*main, *part)
                ),
                explanation=f"{', '.join(main)} and {', '.join(part)} have the group name"
                f" {membership.name}, and are not members together. {', '.join(part)}: {rest}",
            )


def _seen(server: ServerSnapshot) -> str:
    members = server.group.members if server.group is not None else ()
    return ", ".join(f"{each.address} {each.state}" for each in members)


def unreachable_members(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A7: a member that the others do not reach, or that left on an error.

    Servers that the audit read have a finding of their own.
    """
    for membership in facts.graph.memberships:
        gone = [
            each
            for each in membership.absent
            if not (each.delivers or membership.doubt) and _name_of(facts, each) is None
        ]
        if gone:
            seen_by = facts.last[membership.parts[0][0]]
            listed = ", ".join(f"{each.address} {each.state}" for each in gone)
            yield finding(
                facts,
                "A7",
                replica=seen_by.name,
                channel=GROUP_APPLIER,
                grade=Grade.PROVED,
                strategies=(),
                proof=(evidence("members that it sees", _seen(seen_by), seen_by),),
                explanation=f"In the group {membership.name}, as {seen_by.name} sees it: {listed}.",
            )


def members_outside(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield J4: members of a group that are not part of this audit."""
    for membership in facts.graph.memberships:
        members = _not_audited(facts, membership)
        if not members:
            continue
        seen_by = facts.last[membership.parts[0][0]]
        listed = ", ".join(each.address for each in members)
        yield finding(
            facts,
            "J4",
            replica=seen_by.name,
            channel=GROUP_APPLIER,
            grade=Grade.UNKNOWN,
            proof=tuple(
                evidence("member", f"{each.address} {each.state} {each.server_uuid}", seen_by)
                for each in members
            ),
            explanation=f"The group {membership.name} has members that are not servers of this"
            f" audit: {listed}. gtid-audit did not compare them with the others. Add them to the"
            " audit, or list them under `policy.external_sources` in the fleet file.",
        )


def members_not_known(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U2: the members of a group changed while it was read, or disagree."""
    for membership in facts.graph.memberships:
        if membership.doubt:
            servers = [facts.last[name] for name in membership.configured]
            yield finding(
                facts,
                "U2",
                replica=membership.configured[0],
                channel=GROUP_APPLIER,
                grade=Grade.UNKNOWN,
                proof=tuple(
                    evidence("members that it sees", _seen(each) or "none", each)
                    for each in servers
                ),
                explanation=f"The members of the group {membership.name} are not known:"
                f" {membership.doubt}. The differences between its servers are not evaluated.",
            )


def groups_not_compared(facts: ClusterFacts) -> Iterator[Unknown]:
    """Yield what the verdict does not cover."""
    cluster = facts.snapshot.cluster
    for membership in facts.graph.memberships:
        if membership.doubt:
            name = membership.configured[0]
            yield Unknown(cluster, name, "members of its group", membership.doubt)
        if members := _not_audited(facts, membership):
            listed = ", ".join(each.address for each in members)
            reason = f"not part of this audit: {listed}"
            yield Unknown(cluster, membership.parts[0][0], "members of its group", reason)


def _not_audited(facts: ClusterFacts, membership: Membership) -> tuple[GroupMember, ...]:
    if membership.doubt:
        return ()
    return tuple(
        each
        for each in membership.absent
        if _name_of(facts, each) is None and each.address not in facts.policy.external_sources
    )


def _name_of(facts: ClusterFacts, member: GroupMember) -> str | None:
    """Return the audited server that a member is, although it was not read completely."""
    for name, server in facts.last.items():
        if server.server_uuid == member.server_uuid:
            return name
        if server.server_uuid is None and (server.host, server.port) == (member.host, member.port):
            return name
    return None


RULES: Rules = (
    servers_outside,  # J3, J2, A7
    separate_parts,  # A7
    unreachable_members,  # A7
    members_outside,  # J4
    members_not_known,  # U2
)
