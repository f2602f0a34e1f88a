"""P3, and the deadline of other findings: logs that another server needs, and that expire.

Benign and malign causes that look the same: a log is past its time, and still there. A receiver
that reads it, or an earlier one, keeps it; without one, the next rotation deletes it. No fact that
is read separates them, so P3 is `likely`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.runway import (
    LogDeadline,
    Runway,
    deadline_of,
    needs_of,
    retention_of,
    runways_of,
    undecided_retention,
)
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import Rules, evidence, finding, lasting, many

# Findings about what `replica` needs from the logs of `source`, and about what `source` does not
# have and `replica` does.
_FROM_SOURCE: Final = frozenset({"H1", "H8", "A4", "A7", "J1"})
_FROM_REPLICA: Final = frozenset({"E1", "E3", "J3"})


def runway_short(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield P3: a log with what another server needs can be deleted soon."""
    moment = facts.snapshot.read_ended
    seconds_min = timedelta(seconds=facts.policy.runway_seconds_min)
    for runway in runways_of(facts):
        need, deadline = runway.need, runway.deadline
        if moment is None or deadline.until - moment >= seconds_min:
            continue
        server, setting = facts.last[need.server], deadline.retention.setting
        seconds = int(deadline.retention.period.total_seconds())
        made = finding(
            facts,
            "P3",
            source=need.server,
            replica=need.needed_by,
            channel=need.channel,
            gtid_set=need.gtids,
            grade=Grade.LIKELY,
            strategies=("raise_retention",),
            proof=log_evidence(server, need.gtids, deadline),
            explanation=f"{need.needed_by} needs {many(need.gtids)} from the binary logs of"
            f" {need.server}, from {deadline.reach.file} on. {need.server} keeps logs for"
            f" {lasting(seconds)} ({setting}): {when_deleted(deadline, moment)}"
            " A receiver that still reads it delays that; PURGE BINARY LOGS, or a service that"
            " deletes logs by its own rule, does not wait for it.",
        )
        yield replace(made, deadline=deadline.until)


def unread_deadlines(facts: ClusterFacts) -> Iterator[Unknown]:
    """Yield the servers whose logs could not be read, so that P3 is not decided.

    Not those that list a log that is gone: the findings about what needs it say that.
    """
    for need in needs_of(facts):
        server = facts.last[need.server]
        unread = server.history_evidence.unread if server.history_evidence is not None else ""
        is_limited = retention_of(server) is not None and not server.gone_logs
        undecided = undecided_retention(server)
        if undecided or (unread and is_limited and deadline_of(server, need.gtids) is None):
            fact = f"until when it keeps {many(need.gtids)} that {need.needed_by} needs"
            yield Unknown(facts.snapshot.cluster, need.server, fact, undecided or unread)


def with_deadlines(findings: Iterable[Finding], facts: ClusterFacts) -> tuple[Finding, ...]:
    """Return the findings; those about transactions that are still in a log have its deadline."""
    until: dict[tuple[str, str], list[Runway]] = {}
    for runway in runways_of(facts):
        until.setdefault((runway.need.server, runway.need.needed_by), []).append(runway)
    return tuple(_with_deadline(each, until) for each in findings)


def _with_deadline(each: Finding, until: dict[tuple[str, str], list[Runway]]) -> Finding:
    servers = None
    if each.source is not None and each.replica is not None:
        if each.code in _FROM_SOURCE:
            servers = (each.source, each.replica)
        elif each.code in _FROM_REPLICA:
            servers = (each.replica, each.source)
    about = [
        runway.deadline.until
        for runway in (until.get(servers, []) if servers is not None else [])
        if not each.gtid_set or each.gtid_set & runway.need.gtids
    ]
    return replace(each, deadline=min(about)) if about else each


def log_evidence(
    server: ServerSnapshot, needed: GtidSet, deadline: LogDeadline
) -> tuple[Evidence, ...]:
    """Return which log of a server has the first of what is needed, and how long it is kept."""
    closed = deadline.reach.closed_at
    last_written = "in use" if closed is None else f"{closed:%Y-%m-%d %H:%M:%S} UTC"
    return (
        evidence("needed, in its binary logs", needed, server),
        evidence("first binary log with any of them", deadline.reach.file, server),
        evidence("last written to", last_written, server),
        evidence(deadline.retention.setting, deadline.retention.value, server),
    )


def when_deleted(deadline: LogDeadline, moment: datetime) -> str:
    """Return when a server deletes a log, as the end of a sentence about it."""
    if deadline.reach.closed_at is None:
        return (
            "it is the log in use, so it is deleted at"
            f" {deadline.until:%Y-%m-%d %H:%M:%S} UTC at the earliest."
        )
    if deadline.until <= moment:
        return "the next rotation (FLUSH LOGS, a restart, max_binlog_size) deletes it."
    return f"the first rotation after {deadline.until:%Y-%m-%d %H:%M:%S} UTC deletes it."


RULES: Rules = (
    runway_short,  # P3
)
