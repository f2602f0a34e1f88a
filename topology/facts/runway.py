"""How long a server keeps the binary logs that another server still needs: pure.

How it works
------------
A server deletes a binary log at a rotation (or at its start), if the log was last written to longer
ago than it keeps logs, and if no receiver reads it then. The oldest logs go first. So the first log
with any of the needed transactions decides:

    closed_at        when the server last wrote to that log (the log in use: now)
    + the retention  binlog_expire_logs_seconds, or expire_logs_days
    = the earliest time at which a rotation can delete it

It is not the time at which it goes: the next rotation may be much later, and a receiver that reads
an old log keeps it and all later ones. PURGE BINARY LOGS deletes earlier, and no setting shows it.
A service that deletes logs by its own rule (vendors.py) keeps them for a time that only RDS and
Aurora show. Of the others, and of a service that shows none, `undecided_retention` says why there
is no deadline.

What is needed:

* what a channel has passed, and what a receiver that is not running has yet to request, in the log
  of the source (H1, H8, A4, A7)
* what is errant, or lost on its origin, in the log of the server that has it (E1, E3)
* what a server would fetch if it joined (J1), and what it has in addition (J3)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.joining import evaluate_parts
from topology.facts.last_result import keep_last_result
from topology.facts.unlogged import without_event
from topology.readings.history_evidence import LogReach
from topology.readings.notable_settings import retention_seconds_of
from topology.readings.snapshot import ServerSnapshot, ThreadState
from topology.readings.vendors import LOG_RETENTION_HOURS, row_of


@dataclass(frozen=True, slots=True)
class Need:
    """What `needed_by` needs from the binary logs of `server`."""

    server: str
    needed_by: str
    gtids: GtidSet
    channel: str | None = None  # of `needed_by`, if it would deliver them


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a server keeps its binary logs: the setting that decides, and its value."""

    setting: str
    value: int
    period: timedelta


@dataclass(frozen=True, slots=True)
class LogDeadline:
    """The earliest time at which a log can be deleted, by the auditor's clock."""

    reach: LogReach
    retention: Retention
    until: datetime


@dataclass(frozen=True, slots=True)
class Runway:
    """Until when a need can be met."""

    need: Need
    deadline: LogDeadline


@keep_last_result
def needs_of(facts: ClusterFacts) -> tuple[Need, ...]:
    """Return what servers need from the logs of others, each pair of servers and channel once."""
    return tuple(_needs(facts))


def _needs(facts: ClusterFacts) -> Iterator[Need]:
    for edge in facts.edges:
        receives = edge.channel.receiver is ThreadState.RUNNING
        gtids = edge.passed | edge.bypassed | (GtidSet() if receives else edge.expected)
        gtids -= without_event(edge.bypassed, facts.last[edge.source])
        yield from _held(facts, edge.source, edge.replica, gtids, channel=edge.channel.name)
    needed = {(edge.source, edge.replica): edge.expected for edge in facts.edges}
    extra: dict[tuple[str, str], GtidSet] = {}
    for edge in facts.edges:
        pair = (edge.replica, edge.source)
        extra[pair] = extra.get(pair, GtidSet()) | edge.errant
    for lost in facts.lost:
        pair = (lost.holder, lost.origin)
        extra[pair] = extra.get(pair, GtidSet()) | lost.lost
    for joining in evaluate_parts(facts).joinings:
        pair = (joining.candidate, joining.server)
        for ends, gtids in ((pair, joining.missing | joining.own), (pair[::-1], joining.extra)):
            extra[ends] = extra.get(ends, GtidSet()) | gtids
    for pair, gtids in sorted(extra.items(), key=lambda item: item[0]):
        # What is extra in one direction may be due to arrive in the other one, by a channel.
        yield from _held(facts, *pair, gtids - needed.get(pair, GtidSet()))


def runways_of(facts: ClusterFacts) -> Iterator[Runway]:
    """Yield the needs whose logs will be deleted, with the earliest time of that."""
    for need in needs_of(facts):
        deadline = deadline_of(facts.last[need.server], need.gtids)
        if deadline is not None:
            yield Runway(need, deadline)


def deadline_of(server: ServerSnapshot, gtids: GtidSet) -> LogDeadline | None:
    """Return until when a server has transactions in its logs; with none, its next ones.

    None: it keeps its logs for ever, no setting shows for how long, its logs were not read, or the
    log is gone: it was deleted, and not by the server.
    """
    retention, reach = retention_of(server), reach_in_logs(server, gtids)
    if retention is None or reach is None or reach.file in server.gone_logs:
        return None
    return LogDeadline(reach, retention, _until(server, reach, retention))


def retention_of(server: ServerSnapshot) -> Retention | None:
    """Return how long a server keeps its logs; None if for ever, or if no setting shows it."""
    if server.settings is None or undecided_retention(server):
        return None
    seconds = retention_seconds_of(dict(server.settings))
    if seconds is None:
        return None
    for setting in (LOG_RETENTION_HOURS, "binlog_expire_logs_seconds", "expire_logs_days"):
        if value := int(server.setting(setting) or 0):
            return Retention(setting, value, timedelta(seconds=seconds))
    raise AssertionError("one of the two settings limits the time")


def undecided_retention(server: ServerSnapshot) -> str:
    """Return why a service's own rule decides how long it keeps logs; "" if a setting decides."""
    row = row_of(server.vendor)
    known = dict(server.settings or ())
    decides = any(known.get(name, "").isdecimal() and int(known[name]) for name in row.log_settings)
    return "" if decides else row.log_deletion


def _held(
    facts: ClusterFacts, server: str, needed_by: str, gtids: GtidSet, *, channel: str | None = None
) -> Iterator[Need]:
    held = gtids & facts.last[server].logged
    if held:
        yield Need(server, needed_by, held, channel)


def reach_in_logs(server: ServerSnapshot, gtids: GtidSet) -> LogReach | None:
    """Return the answer about a set, or about one that was larger when the logs were read."""
    if not gtids:
        last = (server.binary_logs or ())[-1:]
        return LogReach(gtids, last[0].name, None) if last else None
    evidence = server.history_evidence
    found = evidence.reaches if evidence is not None else ()
    return next((each for each in found if gtids <= each.wanted), None)


def _until(server: ServerSnapshot, reach: LogReach, retention: Retention) -> datetime:
    """Return the earliest time of the deletion. The times of files are in whole seconds."""
    if reach.closed_at is None:
        until = server.read_ended + retention.period
    else:
        until = reach.closed_at + retention.period - (server.clock_ahead or timedelta())
    return until.replace(microsecond=0)
