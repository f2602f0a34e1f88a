"""Compared definitions for tests: readings, pairs and objects with usual values."""

from datetime import UTC, datetime
from typing import Any

from gtid import Gtid, GtidSet
from topology.readings.definition_reading import (
    ComparedDefinitions,
    DefinitionReading,
    DifferingObject,
    UnreadDefinitions,
)
from topology.readings.logged_ddl import LoggedDdl

READ_AT = datetime(2026, 1, 2, 12, 0, 9, tzinfo=UTC)


def a_reading(*pairs: ComparedDefinitions, unread: tuple[str, ...] = ()) -> DefinitionReading:
    """Return a reading of pairs; `unread` are kinds of objects of server b."""
    notes = tuple(UnreadDefinitions("b", each, "privilege: GRANT it") for each in unread)
    return DefinitionReading(READ_AT, pairs, notes)


def a_compared_pair(**changes: Any) -> ComparedDefinitions:
    """Return a pair a → b that is alike."""
    values: dict[str, Any] = {
        "source": "a",
        "replica": "b",
        "dsns": ("mysql://u@a.example:3306/", "mysql://u@b.example:3306/?ssl=required"),
        "has_channel": True,
        "is_mutual": False,
        "object_count": 3,
        "differing": (),
        "behind": (),
        "ahead": (),
        "unsearched": "",
    }
    return ComparedDefinitions(**{**values, **changes})


def an_object(name: str = "t", **changes: Any) -> DifferingObject:
    """Return a table that has a column less on the replica; it is proved."""
    values: dict[str, Any] = {
        "kind": "table",
        "schema": "app",
        "name": name,
        "classes": ("column fewer",),
        "is_proved": True,
        "is_filtered": False,
        "may_be_of_another_source": False,
        "is_severe": False,
        "rows": "row events of the source are applied",
        "errors": (1054, 1091),
        "causes": (),
        "pending": GtidSet(),
        "is_searched": True,
        "made_by": (),
        "changes": ("- `c` int",),
    }
    return DifferingObject(**{**values, **changes})


def a_ddl(gtid: str, *, at: datetime | None = READ_AT, text: str = "ALTER TABLE t") -> LoggedDdl:
    """Return a DDL transaction."""
    return LoggedDdl(Gtid.parse(gtid), at, text)
