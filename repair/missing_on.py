"""Servers on which the transactions of a finding are missing, in the order in which to add them."""

from collections.abc import Iterator

from gtid import GtidSet
from repair.case import Case, Refusal
from repair.model import Model, ModelServer, upstream


def targets_lacking(case: Case) -> list[tuple[ModelServer, GtidSet]] | Refusal:
    """Return every server on which transactions of the finding are missing; the source last.

    Unlike the targets of a declaration also those to which a running channel will bring them.
    """
    wanted = case.wanted
    if case.source is None:
        return Refusal("the server on which they are missing could not be read")
    names = dict.fromkeys((case.source.name, *other_sources(case)))
    reached = {each.name: each for name in names for each in _component(case.model, name, wanted)}
    servers = [reached[name] for name in sorted(reached)]
    return [
        (server, wanted - server.executed)
        for server in _ends_first(case.model, servers, last=case.source)
        if wanted - server.executed
    ]


def other_sources(case: Case) -> Iterator[str]:
    """Yield the other sources of the replica, for errant transactions: none of them has these.

    One finding is about all of them, and once its own source has the GTIDs there is none.
    """
    if case.replica is None or case.finding.code not in ("E1", "E2"):
        return
    for channel in case.replica.channels:
        source = case.model.servers.get(channel.source) if channel.source is not None else None
        if source is not None and not case.wanted & source.executed:
            yield source.name


def _component(model: Model, name: str, wanted: GtidSet) -> list[ModelServer]:
    """Return every server that channels link with a server, in either direction.

    The way does not lead through a server that has the transactions: beyond a replica of several
    sources lies another source, which has findings of its own.
    """
    found, frontier = {name}, [name]
    while frontier:
        here = frontier.pop()
        if wanted <= model[here].executed:
            continue
        linked = {replica.name for replica, _ in model.replicas_of(here)} | {
            channel.source
            for channel in model[here].channels
            if channel.source is not None and channel.source in model.servers
        }
        frontier.extend(linked - found)
        found |= linked
    return [model[each] for each in sorted(found)]


def _ends_first(
    model: Model, servers: list[ModelServer], *, last: ModelServer | None
) -> list[ModelServer]:
    """Order servers so that one comes before those from which it receives; `last` at its place.

    A server is never left waiting for a range that its source has already purged.
    """

    def rank(server: ModelServer) -> tuple[int, bool, str]:
        return (-len(upstream(model, server.name)), server == last, server.name)

    return sorted(servers, key=rank)
