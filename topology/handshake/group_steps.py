"""The steps of a promotion inside a replication group: join it, bootstrap it, become its primary.

1. `group_replication_set_as_primary` exists since 8.0.13. Before it starts accepting writes, the
   new primary applies its queue. It is refused while a receiver or an applier runs on the present
   primary (3910, seen on 9.7.4).
2. A server in state ERROR has to stop Group Replication before it can join again.
3. These statements are for MySQL's own plugin. An orchestrator of a group (MySQL Shell, an operator
   for Kubernetes) has its own.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from binlog.quoting import quote_channel, quote_string
from topology.facts.memberships import group_name_of
from topology.facts.source_answer import FailedCheck, SourceAnswer
from topology.handshake.group_answers import GroupState, running_channels
from topology.handshake.promotion import Promotion, PromotionStep
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import ServerSnapshot
from topology.readings.version import ServerVersion

_SET_AS_PRIMARY: Final = ServerVersion(8, 0, 13)
_START: Final = "START GROUP_REPLICATION;"
_STOP: Final = "STOP GROUP_REPLICATION;"
_BOOTSTRAP: Final = (
    "SET GLOBAL group_replication_bootstrap_group = ON;",
    _START,
    "SET GLOBAL group_replication_bootstrap_group = OFF;",
)
HOLE_FIRST: Final = (
    "Older rows may replace newer ones, or its applier stops. Plan the repair of this hole (repair"
    " plan), and run this again."
)
_EXTRA_FIRST: Final = (
    "Only some servers should have them: older rows may replace newer ones, or its applier stops."
    " Plan the repair of these transactions (repair plan compares the rows), and run this again."
)
_MEMBERS: Final = "performance_schema.replication_group_members"


def group_steps(
    promotion: Promotion, servers: Mapping[str, ServerSnapshot]
) -> Iterator[PromotionStep]:
    """Yield the steps of the candidate's group; none if it is not in a group."""
    group, candidate = promotion.group, servers[promotion.candidate]
    if group is None:
        return
    refused = next((each for each in promotion.obstacles if each.refuses(candidate.name)), None)
    if refused is not None:
        yield PromotionStep(candidate.name, why_not_joining(refused.answer))
        return
    late = next((each for each in promotion.obstacles if each.is_late(candidate.name)), None)
    if late is not None:
        yield late_step(late.answer)
        return
    if promotion.is_kept_out:
        yield PromotionStep(
            candidate.name,
            "Do not let it join the group before the repair: its recovery would stop at what has"
            " another content there.",
        )
        return
    if not group.members:
        text = f"No server is a member of the group {group.name} now: bootstrap it from this one."
        yield PromotionStep(candidate.name, text, _BOOTSTRAP)
    else:
        if candidate.name not in group.online:
            yield _join(candidate, group)
        yield from _become_primary(group, candidate, servers)
        if candidate.group is not None and candidate.group.member_state == "ERROR":
            yield PromotionStep(
                candidate.name,
                "When it is ONLINE, let clients connect again: it left by an error, and"
                " group_replication_exit_state_action may have set offline_mode, which refuses"
                " clients and replicas (6400).",
                ("SET GLOBAL offline_mode = OFF;",),
            )
    kept = {candidate.name, *promotion.blocked, *dict(promotion.open), *promotion.unread}
    for name in group.outside:
        if name not in kept:
            yield _join(servers[name], group)


def why_not_joining(answer: SourceAnswer) -> str:
    """Return why a server cannot join its group, and what to do before it can."""
    if answer.refusal is FailedCheck.GROUP_NAME:
        return "The name of its group is its own server_uuid: the group refuses it (3092)."
    gone = answer.gtid_set.shortened()
    if answer.refusal is FailedCheck.PURGED:
        return (
            f"Each member has purged {gone}, and no server can send it: replace the data of this"
            " server by a clone of a member, then run this again: it has the sets of that member."
        )
    return (
        f"No member has {gone}: the group refuses this server (3092). Save the content first, then"
        " replace its data by a clone of a member (repair plan)."
    )


def late_step(answer: SourceAnswer) -> PromotionStep:
    """Return why a server gets nothing before a repair: of its hole, or of what is extra."""
    name, what = answer.joins or answer.replica, answer.out_of_order.shortened()
    if answer.late:
        text = f"It would execute {what} after later transactions that it has. {HOLE_FIRST}"
    else:
        text = f"It may execute {what} after later transactions that it has. {_EXTRA_FIRST}"
    return PromotionStep(name, text)


def _join(server: ServerSnapshot, group: GroupState) -> PromotionStep:
    stop = (_STOP,) if server.group is not None else ()  # ERROR: the plugin still runs
    if len(group.primaries) <= 1:
        stop = (*_stop_channels(server), *stop)
    return PromotionStep(
        server.name,
        f"Let it join the group {group.name}, and wait until {_MEMBERS} shows it ONLINE. Recovery"
        " needs the account of its channel group_replication_recovery, or USER in the statement.",
        (*stop, _START),
    )


def _become_primary(
    group: GroupState, candidate: ServerSnapshot, servers: Mapping[str, ServerSnapshot]
) -> Iterator[PromotionStep]:
    """Yield how a member becomes the primary, if it is none."""
    if len(group.primaries) > 1:
        text = (
            f"Every member of the group {group.name} accepts writes: the primary does not change."
        )
        yield PromotionStep(candidate.name, text)
        return
    if candidate.name in group.primaries:
        yield PromotionStep(candidate.name, f"It is the primary of the group {group.name} already.")
        return
    if candidate.version is not None and candidate.version < _SET_AS_PRIMARY:
        yield PromotionStep(
            candidate.name,
            f"{candidate.version} has no group_replication_set_as_primary: the group elects a"
            " primary by group_replication_member_weight when the present one leaves it.",
        )
        return
    for name in group.primaries:
        if stop := _stop_channels(servers[name]):
            yield PromotionStep(
                name,
                "Stop its channels: the group changes its primary only while none runs on the"
                f" present one. To go on receiving, create them on {candidate.name} afterwards.",
                stop,
            )
    uuid = quote_string(str(candidate.server_uuid))
    yield PromotionStep(
        candidate.name,
        f"Make it the primary of the group {group.name}. The group delivers to the other members:"
        " none of them is pointed anywhere.",
        (f"SELECT group_replication_set_as_primary({uuid});",),
    )


def _stop_channels(server: ServerSnapshot) -> tuple[str, ...]:
    assert server.version is not None, "a server that was read has a version"
    stop = dialect_of(server.version).stop_replica
    return tuple(f"{stop}{for_channel(server, each.name)};" for each in running_channels(server))


def for_channel(server: ServerSnapshot, channel: str) -> str:
    """Return ` FOR CHANNEL …`, or nothing for the default channel of a server without a group.

    RESET REPLICA ALL without it would include the channels of the group, and is refused (3139).
    """
    if group_name_of(server):
        return f" FOR CHANNEL {quote_channel(channel)}"
    assert server.version is not None, "a server that was read has a version"
    return dialect_of(server.version).for_channel(quote_channel(channel))
