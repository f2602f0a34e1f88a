"""What a statement does to tables, and which tables and names an error text is about.

1. A statement is read by the grammar that also follows definitions (binlog/schema). Of a statement
   that it cannot follow, the names of the tables are read; such a statement alters them.
2. Tables, and views, which share their names. Routines, triggers and accounts are not followed.
3. A name in an error text is quoted by its server. A text without a schema is about the default
   database that the same text has. A text that names no table yields none.

Sources: sql/share messages of 5.6 to 9.7; texts seen on 9.7.4 and 5.6.24.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

from binlog.schema.changes import (
    Action,
    AddColumn,
    AddKey,
    AlterDatabase,
    AlterTable,
    ChangeColumn,
    CreateDatabase,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropDatabase,
    DropKey,
    DropTables,
    NoChange,
    RenameColumn,
    RenameKey,
    RenameTables,
    RenameTo,
    TableName,
)
from binlog.schema.grammar import STATEMENT_CHARACTERS_MAX, named_tables, read_statement
from binlog.schema.reader import WordReader
from binlog.schema.sql_words import ANY_VERSION, CannotFollow, cut_words, first_word
from binlog.schema.table_history import TableKey
from topology.readings.quoted_tables import quoted_tables

WHOLE_SCHEMA: Final = ""  # as a table's name: every table of the schema
_VIEW: Final = re.compile(r"\bview\b", re.IGNORECASE)
# Objects whose CREATE may begin as that of a view, and whose body may have the word.
_WITH_DEFINER: Final = frozenset(
    {"table", "procedure", "function", "trigger", "event", "aggregate"}
)
_SCHEMAS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"Unknown database '([^']+)'",
        r"Can't (?:create|drop) database '([^']+)'",
    )
)
_MEMBERS: Final = re.compile(
    r"(?:Unknown column|Duplicate (?:column|key) name|Can't DROP(?: COLUMN| INDEX)?) '([^']+)'",
    re.IGNORECASE,
)


class EffectKind(Enum):
    """What a statement does to a table."""

    CREATES = "creates"
    REMOVES = "removes"  # drops it, or renames it to another name
    ALTERS = "alters"


@dataclass(frozen=True, slots=True)
class TableEffect:
    """The effect of one statement on one table; names of columns and keys are in lower case."""

    table: TableKey  # the table WHOLE_SCHEMA: the schema and every table in it
    kind: EffectKind
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    # IF [NOT] EXISTS, or OR REPLACE: the log does not show whether the statement had this effect.
    is_conditional: bool = False

    def concerns(self, table: TableKey) -> bool:
        """Return whether the effect may be on a table, or on a schema: letter case does not count.

        A server may compare names in lower case.
        """
        lower = replace(self, table=_lower(self.table))
        return lower.is_on(_lower(table))

    def is_on(self, table: TableKey) -> bool:
        """Return whether the effect is on a table, or on a schema, by its exact name.

        DROP DATABASE removes every table of it; CREATE DATABASE creates none.
        """
        if self.table.schema != table.schema:
            return False
        if self.table.table == WHOLE_SCHEMA and table.table != WHOLE_SCHEMA:
            return self.kind is EffectKind.REMOVES
        return self.table.table == table.table


def effects_of(sql: str, *, schema: str) -> tuple[TableEffect, ...]:
    """Return what a statement does to tables. `schema` is the current one of its session."""
    if (of_views := _of_views(sql, schema)) is not None:
        return of_views
    try:
        change = read_statement(sql)
    except CannotFollow:
        return _of_names(sql, schema)
    match change:
        case CreateTable():
            if change.is_temporary:
                return ()
            name = _key(change.name, schema)
            return (_created(name, is_conditional=change.if_not_exists),)
        case AlterTable():
            return tuple(_altered(change, schema))
        case DropTables():
            if change.is_temporary:
                return ()
            return tuple(
                _dropped(_key(each, schema), is_conditional=change.if_exists)
                for each in change.names
            )
        case RenameTables():
            return tuple(
                effect
                for before, after in change.pairs
                for effect in _renamed(_key(before, schema), _key(after, schema))
            )
        case CreateDatabase():
            whole = TableKey(change.name, WHOLE_SCHEMA)
            return (_created(whole, is_conditional=change.if_not_exists),)
        case DropDatabase():
            whole = TableKey(change.name, WHOLE_SCHEMA)
            return (_dropped(whole, is_conditional=change.if_exists),)
        case AlterDatabase() | NoChange():
            return ()
        case _:
            assert_never(change)


def tables_in_text(text: str) -> tuple[TableKey, ...]:
    """Return the tables, and the schemas, that an error text is about."""
    found = [TableKey(*table) for table in quoted_tables(text)]
    found += [
        TableKey(match[1], WHOLE_SCHEMA) for pattern in _SCHEMAS for match in pattern.finditer(text)
    ]
    return tuple(dict.fromkeys(each for each in found if each.schema))


def member_in_text(text: str) -> str:
    """Return the column or key that an error text is about, in lower case; "" if it has none."""
    found = _MEMBERS.search(text)
    return "" if found is None else found[1].rpartition(".")[2].lower()


def _created(table: TableKey, *, is_conditional: bool) -> TableEffect:
    return TableEffect(table, EffectKind.CREATES, is_conditional=is_conditional)


def _dropped(table: TableKey, *, is_conditional: bool) -> TableEffect:
    return TableEffect(table, EffectKind.REMOVES, is_conditional=is_conditional)


def _of_views(sql: str, schema: str) -> tuple[TableEffect, ...] | None:
    """Return the effects of CREATE VIEW and DROP VIEW; None if a statement is neither.

    The grammar of definitions does not read views: they have no rows.
    """
    if len(sql) > STATEMENT_CHARACTERS_MAX or not _VIEW.search(sql):
        return None
    try:
        if first_word(sql) not in ("create", "drop"):
            return None
        reader = WordReader(cut_words(sql, sql_mode=0, server_version=ANY_VERSION))
        is_created = reader.accept("create")
        is_conditional = reader.accept("or", "replace")
        while is_created and not reader.comes("view"):  # ALGORITHM, DEFINER, SQL SECURITY
            if reader.is_at_end or reader.next.text.lower() in _WITH_DEFINER:
                return None
            reader.take()
        if not is_created and not reader.accept("drop"):
            return None
        if not reader.accept("view"):
            return None
        if is_created:
            is_conditional |= reader.accept("if", "not", "exists")
            name = _key(reader.table_name(), schema)
            return (_created(name, is_conditional=is_conditional),)
        is_conditional = reader.accept("if", "exists")
        names = reader.listed(reader.table_name)
    except CannotFollow:
        return None
    return tuple(_dropped(_key(each, schema), is_conditional=is_conditional) for each in names)


def _lower(table: TableKey) -> TableKey:
    return TableKey(table.schema.lower(), table.table.lower())


def _key(name: TableName, schema: str) -> TableKey:
    return TableKey(name.schema or schema, name.table)


def _renamed(before: TableKey, after: TableKey) -> tuple[TableEffect, TableEffect]:
    return TableEffect(before, EffectKind.REMOVES), TableEffect(after, EffectKind.CREATES)


def _altered(change: AlterTable, schema: str) -> Iterator[TableEffect]:
    table = _key(change.name, schema)
    added = frozenset(name.lower() for each in change.actions for name in _added(each))
    removed = frozenset(name.lower() for each in change.actions for name in _removed(each))
    yield TableEffect(table, EffectKind.ALTERS, added, removed)
    for each in change.actions:
        if isinstance(each, RenameTo):
            yield from _renamed(table, _key(each.name, schema))


def _added(action: Action) -> Iterable[str]:
    match action:
        case AddColumn(spec=spec):
            return (spec.name,)
        case ChangeColumn(name=name, spec=spec):
            return (spec.name,) if spec.name.lower() != name.lower() else ()
        case RenameColumn(new_name=name) | RenameKey(new_name=name):
            return (name,)
        case AddKey(key=key):
            return (key.name,) if key.name is not None else ()
        case _:
            return ()


def _removed(action: Action) -> Iterable[str]:
    match action:
        case DropColumn(name=name) | DropKey(name=name) | DropConstraint(name=name):
            return (name,)
        case ChangeColumn(name=name, spec=spec):
            return (name,) if spec.name.lower() != name.lower() else ()
        case RenameColumn(name=name) | RenameKey(name=name):
            return (name,)
        case _:
            return ()


def _of_names(sql: str, schema: str) -> tuple[TableEffect, ...]:
    """Return that a statement alters the tables that it names; nothing if it names none."""
    try:
        names = named_tables(sql)
    except CannotFollow:
        return ()
    return tuple(TableEffect(_key(each, schema), EffectKind.ALTERS) for each in names)
