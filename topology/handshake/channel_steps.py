"""The statements of a promotion about channels: point one, start one again, end one.

1. A source refuses a second channel of one replica: both have the replica's server_uuid, so the
   newer connection ends the older one (13114, seen on 9.7.4). So a channel that a replica has from
   a source is the one to change, and no other channel is pointed there.
2. A replica that has a running channel from its new source, with auto-position, needs no step.
   What the source still has for it arrives after the next connection: a receiver that has gone
   past it does not request it before (H1).
3. A channel keeps the account and password that it has. A server without a channel needs both,
   and TLS from 8.0.4 on: caching_sha2_password sends no password without it (2061). A source with
   require_secure_transport refuses every channel without TLS (3159).
"""

from collections.abc import Collection, Iterator
from typing import Final

from binlog.quoting import quote_number, quote_string
from gtid import GtidSet
from topology.facts.graph import Edge, Graph
from topology.facts.source_limits import requires_tls
from topology.facts.unseen import address_of
from topology.handshake.group_steps import for_channel
from topology.handshake.promotion import PromotionStep
from topology.handshake.server_ids import SharedServerId
from topology.readings.dialect import Dialect, dialect_of
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion

_CACHING_SHA2: Final = ServerVersion(8, 0, 4)  # how accounts authenticate by default since then
_OLDEST: Final = ServerVersion(5, 6, 0)
_NO_VERSION: Final = "Its version was not read, so no statement is shown: audit the servers again."


def point_step(
    replica: ServerSnapshot,
    source: ServerSnapshot,
    what: str,
    *,
    address: tuple[str, int],
    graph: Graph,
) -> PromotionStep:
    """Return how a replica gets a source; without statements if the operator must choose."""
    channels = replica.channels or ()
    channel = channel_to_change(replica, source.name, graph)
    if channel is None and channels:
        return PromotionStep(
            replica.name, f"{what} It has {len(channels)} channels: choose the one to change."
        )
    words = _dialect(replica)
    if words is None:
        return PromotionStep(replica.name, f"{what} {_NO_VERSION}")
    account, prefix = "", words.option_prefix
    if channel is None:
        what += " It has no channel: put in the account for replication and its password."
        account = f" {prefix}USER = '(account)', {prefix}PASSWORD = '(password)',"
    is_new = channel is None and (replica.version or _OLDEST) >= _CACHING_SHA2
    if requires_tls(source) or is_new:
        account += f" {prefix}SSL = 1,"
    host, port = address
    where = for_channel(replica, channel.name if channel is not None else "")
    change = (
        f"{words.change_source} {prefix}HOST = {quote_string(host)},"
        f" {prefix}PORT = {quote_number(port)},{account} {prefix}AUTO_POSITION = 1{where};"
    )
    statements = (f"{words.stop_replica}{where};", change, f"{words.start_replica}{where};")
    return PromotionStep(replica.name, what, statements)


def channel_to_change(replica: ServerSnapshot, source: str, graph: Graph) -> ChannelSnapshot | None:
    """Return the channel from a source, or the only channel; None if there are several, or none."""
    edge = _edge_from(replica, source, graph)
    if edge is not None:
        return edge.channel
    channels = replica.channels or ()
    return channels[0] if len(channels) == 1 else None


def has_channel_from(replica: ServerSnapshot, source: str, graph: Graph) -> bool:
    """Return whether a replica has a channel by which it gets what a source commits."""
    edge = _edge_from(replica, source, graph)
    return edge is not None and edge.channel.auto_position and not edge.doubt


def keep_steps(
    replica: ServerSnapshot, source: str, *, due: GtidSet, graph: Graph
) -> Iterator[PromotionStep]:
    """Yield what a replica needs that has a channel from its new source: often nothing."""
    edge, words = _edge_from(replica, source, graph), _dialect(replica)
    assert edge is not None, "has_channel_from"
    where = for_channel(replica, edge.channel.name) if words is not None else ""
    is_stopped = ThreadState.STOPPED in (edge.channel.receiver, edge.channel.applier)
    if not is_stopped and not due:
        return
    what = f"It has a channel from {source} already: "
    if is_stopped:
        what += "start it."
    else:
        what += f"start it again, so that it requests {due.shortened()}."
    if words is None:
        yield PromotionStep(replica.name, f"{what} {_NO_VERSION}")
    else:
        statements = (f"{words.stop_replica}{where};", f"{words.start_replica}{where};")
        yield PromotionStep(replica.name, what, statements[1:] if is_stopped else statements)


def former_channel_steps(
    replica: ServerSnapshot, source: str, *, unread: Collection[str], graph: Graph
) -> Iterator[PromotionStep]:
    """Yield the other channels of a replica that come from a server that was not read."""
    sources = {edge.channel.name: edge.source for edge in graph.into(replica.name)}
    for channel in replica.channels or ():
        address = sources.get(channel.name) or address_of(channel)
        if sources.get(channel.name) != source and address in unread:
            yield PromotionStep(
                replica.name,
                f"It has a channel from {source} already. Its channel {channel.name!r} from"
                f" {address}, which was not read, may deliver transactions that only that server"
                " has, once it returns. If that server was the former source, end this channel.",
            )


def detach_step(candidate: ServerSnapshot, graph: Graph) -> PromotionStep:
    """Return how the candidate stops being a replica, and accepts writes.

    A channel from a server that also receives from it stays: the two replicate in both directions.
    """
    words, settings = _dialect(candidate), dict(candidate.settings or ())
    channels = [each.name for each in candidate.channels or ()]
    kept = {
        edge.channel.name: edge.source
        for edge in graph.into(candidate.name)
        if any(back.source == candidate.name for back in graph.into(edge.source))
    }
    # Without a channel before, it has the one by which it fetched what it missed.
    ended = [each for each in channels if each not in kept] if channels else [""]
    what = (
        "Detach it from its former source, which may return with transactions of its own, and let"
        " clients write."
        if ended
        else "Let clients write."
    )
    if kept:
        names = " and ".join(sorted(set(kept.values())))
        what += f" It keeps its channel from {names}: the two replicate in both directions."
    if words is None:
        return PromotionStep(candidate.name, f"{what} {_NO_VERSION}")
    statements = []
    for name in ended:
        channel = for_channel(candidate, name)
        statements += [f"{words.stop_replica}{channel};", f"{words.reset_replica} ALL{channel};"]
    statements += [
        f"SET GLOBAL {name} = OFF;"
        for name in ("super_read_only", "read_only")
        if settings.get(name) in ("ON", "1")
    ]
    return PromotionStep(candidate.name, what, tuple(statements))


def end_of_channel(server: ServerSnapshot, source: str, graph: Graph) -> tuple[str, ...]:
    """Return how the channel ends by which a server fetched; one that it had before is kept."""
    words, had = _dialect(server), channel_to_change(server, source, graph)
    assert words is not None, "the step has statements"
    channel = for_channel(server, had.name if had is not None else "")
    stop = f"{words.stop_replica}{channel};"
    return (stop,) if had is not None else (stop, f"{words.reset_replica} ALL{channel};")


def server_id_step(server: ServerSnapshot, shared: SharedServerId) -> PromotionStep:
    """Return how a server gets a server_id of its own, so that it drops nothing of others."""
    number = shared.server_id
    whose = (
        f"Its server_id, {number}, is also that of {' and '.join(shared.others)} (C2)."
        if shared.others
        else f"Another server committed transactions with its server_id, {number} (C2)."
    )
    drops = (
        f"It drops {shared.dropped.shortened()}, without an error."
        if shared.dropped
        else "It drops what a server with the same server_id commits, without an error."
    )
    what = (
        f"{whose} {drops} Give it another server_id, in its configuration file too, and run this"
        " again."
    )
    words = _dialect(server)
    if words is None:
        return PromotionStep(server.name, f"{what} {_NO_VERSION}")
    channels = [for_channel(server, each.name) for each in server.channels or ()]
    statements = (
        *(f"{words.stop_replica}{where};" for where in channels),
        "SET GLOBAL server_id = (a number that no other server has);",
        *(f"{words.start_replica}{where};" for where in channels),
    )
    return PromotionStep(server.name, what, statements)


def _edge_from(replica: ServerSnapshot, source: str, graph: Graph) -> Edge | None:
    return next((each for each in graph.into(replica.name) if each.source == source), None)


def _dialect(server: ServerSnapshot) -> Dialect | None:
    return None if server.version is None else dialect_of(server.version)
