"""A4, A7, C3: threads of a channel that stopped or failed, and file positions."""

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.readings.dialect import BINARY_LOG, dialect_of, who_set_until
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.rules.build import Rules, evidence, finding, many
from topology.rules.distinct_uuids import distinct_uuids
from topology.rules.error_causes import cause_of_receiver
from topology.rules.gone_logs import gone_logs_text, last_copy_text
from topology.rules.left_empty import emptied_text

RECEIVER_ERROR = "receiver error"  # the evidence of A4 that quotes the server

# The client's errors for an unreachable source (no socket, no host, unknown host, gone, lost). The
# receiver tries again and may succeed by itself. With a refused account (1045) it never does.
_AWAY = frozenset({2002, 2003, 2005, 2006, 2013})

_UNTIL_NAME = "applier runs with UNTIL"
_WRITTEN_BELOW = (
    " The stopped channel holds back {what} of {source}, which replicates from {replica}. If"
    " clients must not write on {source}, these are errant: remove this channel ({words} on"
    " {replica}) and audit again, which reports them as E1."
)
_UNTIL = (
    " The applier was started with UNTIL {condition}: {who} wanted it to stop before"
    " or after certain transactions. Find out why before you start it. When started, it applies all"
    " later transactions."
)


def _until(condition: str) -> str:
    return _UNTIL.format(condition=condition, who=who_set_until(condition))


def receiver_error(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A4: the receiver stopped with an error, or cannot connect."""
    for source, replica, channel in _channels(facts):
        if _has_receiver_error(channel):
            is_away = may_connect(channel)
            if is_away and source is not None and has_no_log(facts.last[source]):
                continue  # passing_on.py: that source refuses it
            uuids, repaired = distinct_uuids(facts, source, replica, channel)
            yield finding(
                facts,
                "A4",
                source=source,
                replica=replica.name,
                channel=channel.name,
                grade=Grade.PROVED,
                severity=Severity.WARNING if is_away else None,
                proof=(
                    evidence("receiver errno", channel.receiver_errno, replica),
                    evidence(RECEIVER_ERROR, channel.receiver_error, replica),
                    evidence("receiver", channel.receiver.value, replica),
                    *uuids,
                    *_address(channel, replica),
                ),
                explanation=f"The receiver of {replica.name} {cause_of_receiver(channel)}"
                + repaired,
            )


def may_connect(channel: ChannelSnapshot) -> bool:
    """Return whether the source is unreachable, and the receiver may connect by itself."""
    return channel.receiver is not ThreadState.STOPPED and channel.receiver_errno in _AWAY


def has_no_log(server: ServerSnapshot) -> bool:
    """Return whether a server runs without a binary log: it refuses every receiver."""
    return "log_bin" in notable_values(server.notable_settings)


def has_closed_log(server: ServerSnapshot) -> bool:
    """Return whether a server closed its binary log after an error, and continued without it."""
    return BINARY_LOG in notable_values(server.notable_settings)


def replication_not_running(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A7: a thread that an operator stopped."""
    for source, replica, channel in _channels(facts):
        stopped = _stopped_by_hand(channel)
        is_applied = channel.applier is ThreadState.RUNNING or "applier" in stopped
        has_condition = bool(channel.until) and is_applied
        if stopped:
            yield finding(
                facts,
                "A7",
                source=source,
                replica=replica.name,
                channel=channel.name,
                gtid_set=_waiting(facts, source=source, replica=replica.name),
                grade=Grade.PROVED,
                proof=(
                    evidence("receiver", channel.receiver.value, replica),
                    evidence("applier", channel.applier.value, replica),
                    *_address(channel, replica),
                    *(
                        (evidence("Until_Condition", channel.until, replica),)
                        if has_condition
                        else ()
                    ),
                ),
                explanation=f"{replica.name} is not replicating: its {' and '.join(stopped)} "
                + ("are" if len(stopped) > 1 else "is")
                + " stopped, without an error."
                + (_condition(channel, replica) if has_condition else "")
                + last_copy_text(facts, source, replica, channel)
                + _written_below(facts, source=source, replica=replica.name)
                + _gone_logs(facts, source=source, replica=replica.name)
                + (emptied_text(replica, channel) if _had_any(facts, replica, channel) else ""),
            )


def _stopped_by_hand(channel: ChannelSnapshot) -> list[str]:
    """Return the threads that an operator stopped.

    A thread with an error of its own is A1 to A4; the other one is still reported.
    """
    is_receiver = channel.receiver is ThreadState.STOPPED and not _has_receiver_error(channel)
    has_failed = bool(channel.applier_errno or channel.applier_error)
    is_applier = channel.applier is ThreadState.STOPPED and not has_failed
    return ["receiver"] * is_receiver + ["applier"] * is_applier


def _condition(channel: ChannelSnapshot, replica: ServerSnapshot) -> str:
    """Explain the condition of START REPLICA UNTIL: it was reached, or the applier still runs."""
    if channel.applier is ThreadState.STOPPED:
        return _until(channel.until)
    return f" {_will_stop(channel, replica)}"


def _will_stop(channel: ChannelSnapshot, replica: ServerSnapshot) -> str:
    return (
        f"The applier of {replica.name} runs with UNTIL {channel.until}: it stops"
        " there, and then applies nothing more."
    )


def _gone_logs(facts: ClusterFacts, *, source: str | None, replica: str) -> str:
    """Explain that a source lists logs that it no longer has, if any transactions wait."""
    if source is None or not _waiting(facts, source=source, replica=replica):
        return ""
    return gone_logs_text(facts.last[source], replica=replica)


def _has_receiver_error(channel: ChannelSnapshot) -> bool:
    return bool(channel.receiver_errno or channel.receiver_error)


def _written_below(facts: ClusterFacts, *, source: str | None, replica: str) -> str:
    """Explain that what waits was written on a replica of this server; "" if there is none.

    In a pair with channels in both directions these are the transactions of a primary. If clients
    should write to only one of the two, they are errant: sets and channels do not show which.
    """
    version = facts.last[replica].version
    for edge in facts.edges_into(source or ""):
        if edge.source == replica and edge.errant and edge.way_back_is_stopped and version:
            words = f"{dialect_of(version).reset_replica} ALL"
            return _WRITTEN_BELOW.format(
                source=source, replica=replica, what=many(edge.errant), words=words
            )
    return ""


def _had_any(facts: ClusterFacts, replica: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether a replica had transactions, or its channel is after some that it misses.

    The position of a new replica is directly after the header of its source's log (158 on 9.7.4,
    151 on 5.6.24). Its source may have purged the first transactions since.
    """
    is_behind_any = channel.applied_to is not None and not channel.applied_to.is_before_all
    return bool(facts.first[replica.name].gtid_executed) or any(
        bool(edge.behind or edge.passed or edge.bypassed or (edge.purged and is_behind_any))
        for edge in facts.edges_into(replica.name)
        if edge.channel is channel
    )


def stops_at_until(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A7 as info: a running applier that will stop at a position set by an operator.

    If the receiver was stopped by hand, that A7 says it as well.
    """
    for source, replica, channel in _channels(facts):
        is_running = channel.applier is ThreadState.RUNNING
        if channel.until and is_running and not _stopped_by_hand(channel):
            found = finding(
                facts,
                "A7",
                source=source,
                replica=replica.name,
                channel=channel.name,
                grade=Grade.PROVED,
                severity=Severity.INFO,
                strategies=(),
                proof=(
                    evidence("applier", channel.applier.value, replica),
                    evidence("Until_Condition", channel.until, replica),
                ),
                explanation=_will_stop(channel, replica),
            )
            yield replace(found, name=_UNTIL_NAME)  # it has not stopped, unlike the catalogue's A7


def auto_position_off(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C3: the channel uses a file position."""
    for source, replica, channel in _channels(facts):
        if not channel.auto_position:
            yield finding(
                facts,
                "C3",
                source=source,
                replica=replica.name,
                channel=channel.name,
                grade=Grade.PROVED,
                proof=(
                    evidence("auto_position", 0, replica),
                    evidence("receiver has read to", channel.received_to, replica),
                ),
                explanation=f"The channel of {replica.name} runs by file position. If an operator"
                " changes the position, the replica can skip transactions, and no check detects"
                " it.",
            )


def _channels(
    facts: ClusterFacts,
) -> Iterator[tuple[str | None, ServerSnapshot, ChannelSnapshot]]:
    """Yield every channel, whether or not its source is a server of this cluster."""
    for source, replica, channel in facts.channels():
        yield source, facts.last[replica], channel


def _waiting(facts: ClusterFacts, *, source: str | None, replica: str) -> GtidSet:
    for edge in facts.edges_into(replica):
        if edge.source == source:
            return edge.expected | edge.queued_above | edge.queued_below
    return GtidSet()


def _address(channel: ChannelSnapshot, replica: ServerSnapshot) -> tuple[Evidence, ...]:
    return (evidence("source", f"{channel.source_host}:{channel.source_port}", replica),)


RULES: Rules = (
    receiver_error,  # A4
    replication_not_running,  # A7
    stops_at_until,  # A7
    auto_position_off,  # C3
)
