"""Writes CREATE EVENT with the status that an event has on a replica: never ENABLE.

An event that is enabled on a replica runs there too, and commits transactions that no other server
has. An applier creates events disabled for that reason (reference manual, "Replication of Invoked
Features"). SQL that the operator runs is no applier: it must write the status.
"""

import re
from typing import Final

from topology.definitions.canonical import QUOTED
from topology.readings.dialect import dialect_of
from topology.readings.version import ServerVersion

EVENT_OF_UNKNOWN_ROLE: Final = "DISABLE"
_STATUS: Final = re.compile(
    rf"{QUOTED}|\bON COMPLETION (?:NOT )?PRESERVE (?P<status>ENABLE\b|DISABLE(?: ON \w+)?)",
    re.DOTALL,
)


def event_status_on(version: ServerVersion, *, is_replica: bool) -> str:
    """Return the status of an event on a server that is a replica, or whose role is not known."""
    return dialect_of(version).disabled_event if is_replica else EVENT_OF_UNKNOWN_ROLE


def as_on_replica(create: str, status: str) -> str:
    """Return CREATE EVENT, as SHOW CREATE EVENT prints it, with another status."""
    for found in _STATUS.finditer(create):
        if found["status"] is not None:
            start, end = found.span("status")
            return f"{create[:start]}{status}{create[end:]}"
    raise AssertionError("SHOW CREATE EVENT prints ON COMPLETION and the status")


def status_comments(status: str, replica_create: str = "") -> tuple[str, ...]:
    """Return comments about the status that SQL gives an event on the replica."""
    if status == EVENT_OF_UNKNOWN_ROLE:
        return (
            "-- Which of the servers is the source is not known: the event is created disabled.",
            "-- Enable it only on the server that runs it.",
        )
    comment = ("-- Not ENABLE: the event would run on the replica too, and write errant rows.",)
    if _status_of(replica_create) == "ENABLE":
        return (*comment, "-- It was enabled here: decide which server runs it.")
    return comment


def _status_of(create: str) -> str:
    found = (each["status"] for each in _STATUS.finditer(create) if each["status"] is not None)
    return next(found, "")
