"""Queries servers for side effects of writing rows of their tables: triggers, foreign keys.

The conditions are those of the scripts (repair/sql/table_questions.py). So a plan is refused if its
script would stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pymysql.cursors import Cursor

from repair.adapters.servers_to_read import ServersToRead
from repair.content.side_effects import SideEffects
from repair.sql.table_questions import carries_nothing, has_no_triggers

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from repair.model.strategy_case import LogEvidence
    from topology.readings.snapshot import ClusterSnapshot
    from topology.readings.target import ServerTarget


def read_side_effects(
    evidence: LogEvidence,
    snapshot: ClusterSnapshot,
    targets: Mapping[str, ServerTarget],
    *,
    seconds_max: float,
) -> dict[str, tuple[SideEffects, ...]]:
    """Return, by server, the tables of the evidence whose rows are not all that would change.

    A server that cannot be read now is left out: its script checks again.
    """
    tables = sorted(_tables(evidence))
    names = [name for name in snapshot.last_read if name in targets]
    found = ServersToRead.of(snapshot, targets, seconds_max).answers(
        names if tables else (), lambda _name, here: _effects(here, tables)
    )
    return {name: effects for name, effects in found.items() if effects}


def _tables(evidence: LogEvidence) -> set[tuple[str, str]]:
    read = (table for content in evidence.contents.values() for table in content.row_tables)
    compared = (row.table for rows in evidence.rows.values() for row in rows.rows)
    return {(table.schema, table.table) for table in (*read, *compared)}


def _effects(
    connection: Connection[Any], tables: Iterable[tuple[str, str]]
) -> tuple[SideEffects, ...]:
    found: list[SideEffects] = []
    with connection.cursor(Cursor) as cursor:
        for schema, table in tables:
            has_none = (
                has_no_triggers(schema, table),
                carries_nothing(schema, table, "delete_rule"),
                carries_nothing(schema, table, "update_rule"),
            )
            cursor.execute(f"SELECT {', '.join(has_none)}")
            [(no_triggers, no_delete, no_update)] = cursor.fetchall()
            if not (no_triggers and no_delete and no_update):
                found.append(
                    SideEffects(schema, table, not no_triggers, not no_delete, not no_update)
                )
    return tuple(found)
