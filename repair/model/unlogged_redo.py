"""Servers that do not log what they receive (log_replica_updates=OFF, log_bin=OFF)."""

from repair.model.replication_model import Model, ModelChannel, ModelServer


def purges_what_it_receives(model: Model, channel: ModelChannel) -> bool:
    """Return whether a channel's source does not log what it receives (log_replica_updates=OFF).

    All of that is in gtid_purged at once. With a file position, its replicas get what it commits
    itself. With auto-position, it refuses each connection of a replica without those GTIDs (1236).
    """
    source = model.servers.get(channel.source or "")
    return source is not None and not source.logs_received and bool(source.channels)


def refuses_replicas(model: Model, server: ModelServer, channel: ModelChannel) -> str | None:
    """Return why a server will refuse its own replicas once one of its channels runs; or None.

    What it receives and does not log is in gtid_purged at once, including what its source has not
    yet committed. A replica that is its only source has committed all of that itself.
    """
    if server.has_log and server.logs_received:
        return None
    names = [
        replica.name
        for replica, each in model.replicas_of(server.name)
        if each.auto_position and replica.name != channel.source
    ]
    if not names:
        return None
    why = "log_replica_updates = OFF"
    remedy = f"Set log_replica_updates = ON on {server.name}"
    if not server.has_log:
        why = "log_bin = OFF, or its log is closed: A9"
        remedy = f"Restart {server.name} with its binary log"
    return (
        f"{server.name} does not log what it receives ({why}): once it receives again, it refuses"
        f" {', '.join(names)} at the next connection (error 1236). {remedy} first"
    )
