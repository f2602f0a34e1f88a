"""Delivers what running channels would deliver, until nothing of it is on its way. Pure."""

from collections.abc import Iterator
from heapq import heappop, heappush
from uuid import UUID

from gtid import GtidSet
from repair.model.replication_model import (
    Model,
    ModelChannel,
    ModelServer,
    can_connect,
    is_same_server,
    refused,
)


def settle(model: Model) -> Model:
    """Deliver everything that the running channels would deliver.

    What a channel delivers depends on its two ends. So each round, in the order of names, evaluates
    those servers that changed since their last evaluation, or of which a source did.
    """
    servers = model.copied()
    now = Model.linked_as(model, servers, frozenset())  # shows what the loop writes to `servers`
    due = set(servers)
    if model.moved is not None:
        due = {*model.moved, *(name for each in model.moved for name in _receiving(model, each))}
    turns = [(0, name) for name in sorted(due)]  # a heap: the round, and the server
    is_changed = False
    while turns:
        turn, name = heappop(turns)
        before = servers[name]
        for channel in before.channels:
            servers[name] = _receive(now, servers[name], channel.name)
        if servers[name] is not before:
            is_changed = True
            for each in {name, *_receiving(model, name)}:
                then = (turn + (each <= name), each)
                if then not in turns:
                    heappush(turns, then)
    if is_changed:
        return now
    return model if model.moved == frozenset() else Model.linked_as(model, servers, frozenset())


def _receiving(model: Model, name: str) -> set[str]:
    return {replica for replica, _ in model.links.receivers.get(name, ())}


def delivery(model: Model, server: ModelServer, channel: ModelChannel) -> GtidSet:
    """Return what a channel would deliver to its server now if it ran, including doomed events.

    A receiver drops events with its own server_id, so a server's own never come back to it.
    """
    source = model.servers.get(channel.source) if channel.source is not None else None
    if source is None or not source.has_log or is_same_server(source, server):
        return GtidSet()
    if not channel.is_connected and (
        not can_connect(source, server, channel) or refused(source, server, channel)
    ):
        return GtidSet()
    coming = channel.retrieved & source.executed  # the source may have purged it since
    if not channel.lost_place or channel.is_connected or channel.auto_position:
        coming |= source.available
    coming -= server.executed | channel.passed | channel.dropped
    coming -= channel.passed_beside & channel.retrieved
    for uuid in _dropped_by(model, server):
        coming = coming.without_uuid(uuid)
    return coming if channel.auto_position else coming - channel.bypassed


def _dropped_by(model: Model, server: ModelServer) -> Iterator[UUID]:
    """Yield the UUIDs whose transactions a server's receiver drops: those with its server_id.

    Under a group's name its members commit, each with its own server_id.
    """
    if server.server_uuid not in model.links.groups:
        yield server.server_uuid
    if server.server_id is not None:
        yield from model.links.uuids.get(server.server_id, ())


def _receive(model: Model, server: ModelServer, name: str) -> ModelServer:
    channel = server.channel(name)
    assert channel is not None, "channels do not vanish in the model"
    if not channel.running or channel.is_stuck:
        return server
    coming = delivery(model, server, channel)
    if coming & channel.doomed:
        # The applier stops somewhere on the way; assume that nothing after that arrives.
        return server.with_channel(name, is_stuck=True)
    if not coming:
        return server
    # Without log_replica_updates, what was received is executed and never in a binary log.
    return server.with_executed(coming, purged=not server.logs_received)
