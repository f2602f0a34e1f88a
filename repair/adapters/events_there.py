"""Queries servers for events of their event scheduler that run there.

On a replica, an event that was replicated has the status REPLICA_SIDE_DISABLED (another word in
older versions), so it is not listed. `information_schema` lists only events of schemas on which
the account has EVENT: an account without it sees none. SHOW GRANTS shows whether it sees all.
Statements and columns are the same from 5.6 to 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pymysql.cursors import Cursor

from repair.adapters.servers_to_read import ServersToRead
from repair.content.side_effects import ScheduledEvents
from topology.definitions.visibility import Visibility

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from topology.readings.snapshot import ClusterSnapshot
    from topology.readings.target import ServerTarget

_SCHEDULER: Final = "SELECT @@GLOBAL.event_scheduler"
_ENABLED: Final = (
    "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'"
    " ORDER BY EVENT_SCHEMA, EVENT_NAME"
)
_GRANTS: Final = "SHOW GRANTS"
_UNANSWERED: Final = "it did not answer the question"


def read_running_events(
    snapshot: ClusterSnapshot, targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> dict[str, ScheduledEvents]:
    """Return, by server, the events that its scheduler runs, or why that was not read."""
    names = [name for name in snapshot.last_read if name in targets]
    servers = ServersToRead.of(snapshot, targets, seconds_max)
    found = servers.answers(names, lambda _name, here: _running(here))
    return {
        name: found[name]
        if name in found
        else ScheduledEvents(unread=servers.lost.get(name, _UNANSWERED))
        for name in names
    }


def _running(connection: Connection[Any]) -> ScheduledEvents:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(_SCHEDULER)
        [(scheduler,)] = cursor.fetchall()
        if scheduler != "ON":
            return ScheduledEvents()
        cursor.execute(_ENABLED)
        names = tuple(f"{schema}.{event}" for schema, event in cursor.fetchall())
        cursor.execute(_GRANTS)
        sees = Visibility.of_grants(str(line) for (line,) in cursor.fetchall())
        return ScheduledEvents(names, may_hide_some=not sees.shows_everywhere("event"))
