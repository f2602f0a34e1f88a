"""Finds the entries of tracked tables, and makes those that an operator sets by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from binlog.schema.show_create import definition_from_create
from binlog.schema.table_history import Entry, Place, Source, State, TableKey
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.schema_operands import expect_place, text_of

if TYPE_CHECKING:
    from uuid import UUID

    from binlog.adapters.schema_servers import ServerTables
    from binlog.adapters.schema_store import SchemaStore
    from binlog.schema.table_definitions import TableDefinition


def current_entry(store: SchemaStore, server: UUID, key: TableKey) -> Entry:
    """Return the tracked entry of a table. Raises UsageProblem if there is none."""
    entry = store.current(server, key)
    if entry is None:
        raise UsageProblem(f"{key} is not tracked")
    return entry


def place_to_hold_from(at: str | None, store: SchemaStore, server: UUID, key: TableKey) -> Place:
    """Return the place from which a new definition holds. Raises UsageProblem.

    It is the typed one, or that of the table's last change, or the one up to which logs were
    followed.
    """
    if at:
        return expect_place(at)
    entry = store.current(server, key)
    if entry is not None:
        return entry.place
    followed = store.followed(server)
    if followed is None:
        raise UsageProblem(
            f"{key} is not tracked, and no logs were followed: add --at FILE:POS, from which the"
            " definition holds"
        )
    return followed.place


def entry_by_hand(
    key: TableKey, since: Place, *, from_file: str | None, live: ServerTables | None
) -> Entry:
    """Return an entry with the definition of a file, or of a server as it is now.

    Raises UsageProblem, CannotFollow.
    """
    if live is not None:
        definition = live.definition(key)
    else:
        assert from_file is not None, "one of the two was given"
        definition = definition_from_create(text_of(from_file), schema=key.schema)
        _require_same(definition, key, from_file)
    if definition is None:
        raise UsageProblem(f"there is no table {key} on that server")
    named = replace(definition, schema=key.schema, table=key.table)
    return Entry(key, since, State.KNOWN, Source.HAND, named)


def _require_same(definition: TableDefinition, key: TableKey, file: str) -> None:
    """Refuse a statement for another table. Letter case depends on the server."""
    found = (definition.schema, definition.table)
    if tuple(map(str.casefold, found)) != (key.schema.casefold(), key.table.casefold()):
        raise UsageProblem(
            f"{file}: it defines {definition.schema}.{definition.table}, not {key}; if {key} has"
            " this definition, change the name in the statement"
        )
