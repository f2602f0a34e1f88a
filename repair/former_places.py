"""Places of a former log, and what the steps of a plan make of them.

How it works
------------
A channel that stood still while its source was reset keeps a place of the former log. As long as
the new log is shorter, that shows. What steps commit on the source makes it longer:

    as read    log of c: c:1                      d stands at 400, beyond the end: a former log
    behind     log of c: c:1 a:1 a:2              400 is a place of this log, and c:1 lies before it
    the plan

The audit then reports what d lacks before the place as passed (H8, likely). How many bytes a step
logs is not known. So the log is taken to reach each such place of the file that it ends in, and all
of it to lie before the place; a SET GLOBAL gtid_purged begins the next file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from repair.model import Model, ModelChannel
from topology.findings import Finding
from topology.former_logs import places_beyond_end, sign_of_reset_source
from topology.graph import Edge, build_graph
from topology.history_evidence import LogSearch
from topology.snapshot import ClusterSnapshot, LogPosition

Places: TypeAlias = Mapping[str, Sequence[tuple[Edge, LogPosition]]]
"""By source, the channels whose place is one of a former log, with that place."""


def reached(snapshot: ClusterSnapshot, started: Model, model: Model) -> Places:
    """Return the places of a former log that lie in a source's log by the steps, with their edges.

    A channel that a step changed has another place.
    """
    first, last = ({each.name: each for each in of} for of in (snapshot.first, snapshot.last))
    found: dict[str, list[tuple[Edge, LogPosition]]] = {}
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
    """Return by source what its log will show: what lies before the places of channels.

    That is all of it for a place of a former log, and what steps log there of transactions that an
    applier has passed: its receiver reads on, and does not get them again.
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
            if source is None:
                continue
            logged = source.available - started[source.name].executed
            if passed := channel.passed & logged:
                search = LogSearch(server.name, channel.name, "", passed, passed)
                found.setdefault(source.name, []).append(search)
    return found


def has_grown(name: str, started: Model, model: Model) -> bool:
    """Return whether steps let a server log something."""
    return name in model.servers and model[name].executed != started[name].executed


def steering(channel: ModelChannel) -> tuple[object, ...]:
    """Return what a step changes of a channel, if it changes it."""
    return (channel.auto_position, channel.running, channel.is_stuck, channel.passed)


def at_former_places(snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """Yield replicas and channels whose place is one of a former log of the source, as read."""
    first, last = ({each.name: each for each in of} for of in (snapshot.first, snapshot.last))
    for edge in build_graph(snapshot).edges:
        source = last[edge.source]
        is_read = source.is_judgeable and edge.replica in first
        if is_read and sign_of_reset_source(edge, before=first[edge.replica], source=source):
            yield edge.replica, edge.channel.name


def only_shows(finding: Finding, started: Model) -> bool:
    """Return whether a replica lacks no more of its source than before a plan (H8).

    That is reported now because steps have made a log as long as a former one was, or the source
    has its own transactions again.
    """
    ends = finding.source or "", finding.replica or ""
    if finding.code != "H8" or not all(name in started.servers for name in ends):
        return False
    source, replica = (started[name] for name in ends)
    return finding.gtid_set <= source.executed - replica.executed
