"""Replicas that accept events with their own server_id: replicate-same-server-id.

No server version shows whether this option is set. A server does not start with it unless it logs
nothing of what it receives (ER_RPL_INFINITY_DENIED; log_replica_updates or log_bin is OFF). The
executed set shows that the server accepts such events. It contains a transaction that its receiver
queued since it connected, and that the other server committed since its own start. SET GLOBAL must
have changed neither server_id since.
"""

from typing import Final

from gtid import GtidSet
from topology.readings.dialect import CHANGED_SINCE_START, SERVER_ID_SOURCE
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import START_SLACK, ServerSnapshot

_LOGS_NOT_ALL: Final = frozenset({"log_replica_updates", "log_bin"})


def may_accept_own_server_id(replica: ServerSnapshot) -> bool:
    """Return whether a server may run with replicate-same-server-id, as far as was read."""
    return replica.notable_settings is None or bool(
        _LOGS_NOT_ALL & notable_values(replica.notable_settings).keys()
    )


def accepts_own_server_id(replica: ServerSnapshot, origin: ServerSnapshot) -> bool:
    """Return whether a replica executed what another server with its server_id committed."""
    started, uuid = origin.started_at, origin.server_uuid
    if uuid is None or started is None or not may_accept_own_server_id(replica):
        return False
    if any(_has_changed_id(server) for server in (replica, origin)):
        return False
    executed = replica.gtid_executed or GtidSet()
    return any(
        channel.last_queued_committed_at is not None
        and channel.last_queued_committed_at > started + START_SLACK
        and bool(channel.last_queued.from_uuid(uuid) & executed & channel.gtid_retrieved)
        for channel in replica.channels or ()
    )


def _has_changed_id(server: ServerSnapshot) -> bool:
    return server.setting(SERVER_ID_SOURCE) in (None, CHANGED_SINCE_START)
