"""Queries servers for events of their event scheduler that run there.

On a replica, an event that was replicated has the status REPLICA_SIDE_DISABLED (another word in
older versions), so it is not listed. `information_schema` lists only events of schemas on which
the account has EVENT: an account without it sees none. Statements and columns are the same from 5.6
to 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pymysql.cursors import Cursor

from repair.adapters.servers_to_read import ServersToRead

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from topology.readings.snapshot import ClusterSnapshot
    from topology.readings.target import ServerTarget

_RUNNING: Final = (
    "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' AND"
    " @@GLOBAL.event_scheduler = 'ON' ORDER BY EVENT_SCHEMA, EVENT_NAME"
)


def read_running_events(
    snapshot: ClusterSnapshot, targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> dict[str, tuple[str, ...]]:
    """Return, by server, the names of the events that its scheduler runs.

    A server that cannot be read now is left out: no step of a plan runs on one.
    """
    names = [name for name in snapshot.last_read if name in targets]
    found = ServersToRead.of(snapshot, targets, seconds_max).answers(
        names, lambda _name, here: _running(here)
    )
    return {name: events for name, events in found.items() if events}


def _running(connection: Connection[Any]) -> tuple[str, ...]:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(_RUNNING)
        return tuple(f"{schema}.{event}" for schema, event in cursor.fetchall())
