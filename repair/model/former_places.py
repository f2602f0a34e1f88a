"""Positions in a former log, and how the steps of a plan affect them.

How it works
------------
A channel that was stopped while its source was reset keeps a position in the former log. As long as
the new log is shorter, this is visible. Transactions that steps commit on the source make it
longer:

    as read    log of c: c:1                      d is at 400, after the end: a former log
    after      log of c: c:1 a:1 a:2              400 is in this log, and c:1 is before it
    the plan

The audit then reports what d is missing before the position as passed (H8, likely). The number of
bytes that a step logs is unknown. So this module assumes that the log reaches each such position in
its last file, and that all of the log is before the position. A SET GLOBAL gtid_purged begins the
next file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from repair.model.replication_model import Model, ModelChannel
from topology.catalogue.findings import Finding
from topology.facts.former_logs import places_beyond_end, sign_of_reset_source
from topology.facts.graph import Edge, build_graph
from topology.readings.history_evidence import LogSearch
from topology.readings.snapshot import ClusterSnapshot, LogPosition

Places: TypeAlias = Mapping[str, Sequence[tuple[Edge, LogPosition]]]
"""By source, the channels whose place is one of a former log, with that place."""


def reached(snapshot: ClusterSnapshot, started: Model, model: Model) -> Places:
    """Return the former positions that steps make valid in a source's log, with their edges.

    A channel that a step changed has another position.
    """
    found: dict[str, list[tuple[Edge, LogPosition]]] = {}
    grown = [name for name in model.changed_since(started) if has_grown(name, started, model)]
    if not any(map(model.replicas_of, grown)):
        return found  # no channel is at a position in their logs
    first, last = snapshot.first_read, snapshot.last_read
    for edge in build_graph(snapshot).edges:
        if not has_grown(edge.source, started, model) or edge.replica not in model.servers:
            continue
        source, name = last[edge.source], edge.channel.name
        now, then = model[edge.replica].channel(name), started[edge.replica].channel(name)
        if source.log_end is None or now is None or then is None:
            continue
        if steering(now) != steering(then):
            continue
        is_rotated = model[edge.source].purged != started[edge.source].purged
        files_end = source.log_end.sequence + int(is_rotated)
        for place in places_beyond_end(edge, before=first[edge.replica], source=source):
            if place.sequence <= files_end:
                found.setdefault(edge.source, []).append((edge, place))
    return found


def searches(reached: Places, started: Model, model: Model) -> Mapping[str, list[LogSearch]]:
    """Return, by source, what its log will show before the positions of channels.

    For a position in a former log, that is all of the log. For others, it is what steps log of
    transactions that an applier has passed: its receiver reads on, and does not get them again.
    """
    found: dict[str, list[LogSearch]] = {}
    for name, places in reached.items():
        logged = model[name].available
        for edge, place in places:
            found.setdefault(name, []).append(
                LogSearch(edge.replica, edge.channel.name, str(place), logged, logged)
            )
    for server in model.servers.values():
        for channel in server.channels:
            source = model.servers.get(channel.source or "")
            if source is None or not channel.passed:
                continue
            logged = source.available - started[source.name].executed
            if passed := channel.passed & logged:
                search = LogSearch(server.name, channel.name, "", passed, passed)
                found.setdefault(source.name, []).append(search)
    return found


def has_grown(name: str, started: Model, model: Model) -> bool:
    """Return whether steps make a server log anything."""
    return name in model.servers and model[name].executed != started[name].executed


def steering(channel: ModelChannel) -> tuple[object, ...]:
    """Return the settings of a channel that a step changes if it changes the channel."""
    return (channel.auto_position, channel.running, channel.is_stuck, channel.passed)


def at_former_places(snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """Yield replicas and channels whose position is in a former log of the source, as read."""
    first, last = snapshot.first_read, snapshot.last_read
    for edge in build_graph(snapshot).edges:
        before, source = first.get(edge.replica), last.get(edge.source)
        if before is None or source is None:
            continue
        if sign_of_reset_source(edge, before=before, source=source):
            yield edge.replica, edge.channel.name


def only_shows(finding: Finding, started: Model) -> bool:
    """Return whether a replica misses no more of its source than before the plan (H8).

    It becomes visible because steps have made a log as long as a former one, or because the source
    has its own transactions again.
    """
    ends = finding.source or "", finding.replica or ""
    if finding.code != "H8" or not all(name in started.servers for name in ends):
        return False
    source, replica = (started[name] for name in ends)
    return finding.gtid_set <= source.executed - replica.executed
