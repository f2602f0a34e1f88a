"""Finds what servers other than the two of a pair can still bring to them.

A difference is `proved` only if no DDL that is on its way removes it. DDL that one of the two has
executed is searched where the pair is compared (drift_comparison.py). Here is the rest: a third
server has executed or received it, and channels, or a group, lead from there to one of the two. A
stopped channel counts, because an operator may start it. A source that was not read may have
anything.

Such DDL matters only where an object was changed without the binary log: two servers that executed
the same DDL would not differ. A change that was made by hand on a replica before it reached its
source is the usual cause.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import require_columns
from gtid_audit.tasks.definition_servers import DefinitionServer
from topology.adapters.ddl_reads import DdlSearchLimits, ddl_of
from topology.definitions.compared_pairs import ComparedPair
from topology.definitions.ddl_searches import DdlSearch, OnTheWay, on_the_way
from topology.definitions.object_drift import ObjectDrift
from topology.facts.unseen import address_of
from topology.readings.group_view import GROUP_CHANNELS
from topology.readings.snapshot import ChannelSnapshot, ReadServer

# Searches transactions of a server for DDL, among those that its logs have.
Search: TypeAlias = Callable[[DefinitionServer, GtidSet], DdlSearch]
_IN_RELAY_LOGS: Final = "relay logs"
_NOT_SEARCHED: Final = "relay logs are not searched"
_NOT_READ: Final = "a server whose channels were not read"


@dataclass(frozen=True, slots=True)
class OtherServers:
    """The servers from which transactions can still reach one of a pair, over any hops."""

    read: tuple[DefinitionServer, ...]
    unread: tuple[str, ...]  # host:port, or what is known of them; in order


def search_ddl(
    server: DefinitionServer,
    wanted: GtidSet,
    *,
    held: GtidSet,
    limits: DdlSearchLimits,
    tables: frozenset[tuple[str, str]] = frozenset(),
) -> DdlSearch:
    """Search transactions of a server for DDL; `held` is what its logs have. Never raises."""
    if not wanted:
        return DdlSearch(server.name, wanted)
    try:
        require_columns()
    except UsageProblem as problem:
        return DdlSearch(server.name, GtidSet(), why_unread=str(problem))
    return ddl_of(server.target, wanted, held=held, limits=limits, tables=tables)


def on_its_way_from(
    source: DefinitionServer,
    replica: DefinitionServer,
    drift: ObjectDrift,
    *,
    limits: DdlSearchLimits,
) -> bool:
    """Return whether a replica has not executed DDL of a source that concerns an object."""
    assert source.state is not None
    assert replica.objects is not None
    wanted = source.state.gtid_executed - replica.objects.sets.before
    search = search_ddl(source, wanted, held=source.held, limits=limits)
    read = [each for each in (drift.source, drift.replica) if each is not None]
    return bool(on_the_way(wanted, [search]).concerning(drift.key, read))


def servers_above(pair: ComparedPair, servers: Sequence[DefinitionServer]) -> OtherServers:
    """Return the servers above a pair, without the pair itself."""
    return _above((pair.source, pair.replica), servers, passed=frozenset())


def executed_above(pair: ComparedPair, servers: Sequence[DefinitionServer]) -> GtidSet:
    """Return what the servers above the source of a pair have executed, without the replica.

    The replica may have had another source before: its own transactions then come back over these.
    """
    above = _above((pair.source,), servers, passed=frozenset({pair.replica}))
    return GtidSet.union_of(_executed(each) for each in above.read)


def _above(
    names: Sequence[str], servers: Sequence[DefinitionServer], *, passed: frozenset[str]
) -> OtherServers:
    """Return the servers above the named ones, over any hops but those `passed`."""
    complete = [each for each in servers if each.state is not None and each.objects is not None]
    by_name = {each.name: each for each in complete}
    found, unread = {*names, *passed}, set[str]()
    left = [by_name[name] for name in names]
    while left:
        state = left.pop().state
        assert state is not None
        above, not_read = _sources_of(state, complete)
        unread |= not_read
        left += [each for each in above if each.name not in found]
        found |= {each.name for each in above}
    found -= {*names, *passed}
    return OtherServers(tuple(by_name[name] for name in sorted(found)), tuple(sorted(unread)))


def on_the_way_from(
    others: OtherServers, pair: Sequence[DefinitionServer], known: GtidSet, search: Search
) -> tuple[tuple[str, OnTheWay], ...]:
    """Return, by server, the transactions that the others can bring, with their DDL.

    `known`: what needs no search here. It was executed by both before they were read, or is
    searched where the pair is compared.
    """
    found = []
    left = GtidSet.union_of(_received(each) for each in (*others.read, *pair)) - known
    for each in others.read:
        if wanted := (_executed(each) - known):
            found.append((each.name, on_the_way(wanted, [search(each, wanted)])))
            known |= wanted
    if left := left - known:
        found.append((_IN_RELAY_LOGS, OnTheWay(left, (), False, _NOT_SEARCHED)))
    return tuple(found)


def _sources_of(
    state: ReadServer, servers: Sequence[DefinitionServer]
) -> tuple[list[DefinitionServer], set[str]]:
    """Return the read servers that deliver to a server, and what is known of the others."""
    if state.channels is None:
        return [], {_NOT_READ}
    read, unread = [], set()
    for channel in state.channels:
        if channel.name in GROUP_CHANNELS:
            continue
        at = [each for each in servers if _is_source(each, channel)]
        read += at
        if not at:
            unread.add(address_of(channel))
    by_uuid = {each.state.server_uuid: each for each in servers if each.state is not None}
    for member in state.group.members if state.group is not None else ():
        if member.server_uuid == state.server_uuid:
            continue
        if member.server_uuid in by_uuid:
            read.append(by_uuid[member.server_uuid])
        else:
            unread.add(member.address)
    return read, unread


def _is_source(server: DefinitionServer, channel: ChannelSnapshot) -> bool:
    assert server.state is not None
    if channel.source_uuid is not None:
        return server.state.server_uuid == channel.source_uuid
    return (server.target.host, server.target.port) == (channel.source_host, channel.source_port)


def _executed(server: DefinitionServer) -> GtidSet:
    assert server.state is not None
    assert server.objects is not None
    return server.state.gtid_executed | server.objects.sets.after


def _received(server: DefinitionServer) -> GtidSet:
    assert server.state is not None
    group = server.state.group
    return server.state.gtid_retrieved | (group.received if group is not None else GtidSet())
