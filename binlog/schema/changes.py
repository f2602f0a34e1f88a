"""The parsed changes of a statement to tables: values, without evaluation.

1. A type without a character set remains so here: it gets that of the table, which the statement
   may not contain. `ColumnSpec` is the column as written, `tables.Column` the resulting column.
2. Names are as written. A table without a schema is in the session's current schema.
"""

from dataclasses import dataclass
from typing import TypeAlias

from binlog.schema.table_definitions import Generated, KeyKind


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table as written in a statement."""

    schema: str | None
    table: str


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """A type as written, with synonyms resolved: `INT4` is `int`, `NATIONAL VARCHAR` a varchar."""

    base: str
    numbers: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    is_unsigned: bool = False
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column as written."""

    name: str
    type: TypeSpec
    # None without NULL or NOT NULL.
    is_nullable: bool | None = None
    is_generated: Generated | None = None
    is_invisible: bool = False
    is_primary: bool = False
    is_unique: bool = False
    has_reference: bool = False


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A key as written; the server names an unnamed one. A functional first part has no column."""

    kind: KeyKind
    name: str | None
    columns: tuple[str, ...]
    is_exact: bool
    is_functional: bool = False


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """FIRST, or AFTER a column."""

    after: str | None  # None: FIRST


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN."""

    spec: ColumnSpec
    place: ColumnPlace | None


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE COLUMN, and MODIFY, which keeps the name."""

    name: str
    spec: ColumnSpec
    place: ColumnPlace | None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN (8.0)."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """ALTER COLUMN … SET VISIBLE or INVISIBLE (8.0.23)."""

    name: str
    is_invisible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    """ADD KEY of any kind, CREATE INDEX."""

    key: KeySpec


@dataclass(frozen=True, slots=True)
class DropKey:
    """DROP KEY, DROP PRIMARY KEY (name PRIMARY), DROP INDEX."""

    name: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CONSTRAINT (8.0.19): drops a key, a check or a foreign key with that name."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameKey:
    """RENAME KEY (5.7)."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ADD FOREIGN KEY: the server may add a plain key for it."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetCharset:
    """DEFAULT CHARACTER SET: applies to columns added later."""

    charset: str


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET: also converts every text column. None means the database's."""

    charset: str | None


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME TO."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ReplaceRows:
    """EXCHANGE PARTITION … WITH TABLE, DISCARD and IMPORT … TABLESPACE: no column changes.

    `name`: the other table of an exchange, whose rows are replaced as well; None: a file.
    """

    name: TableName | None


Action: TypeAlias = (
    AddColumn
    | ChangeColumn
    | DropColumn
    | RenameColumn
    | SetVisibility
    | AddKey
    | DropKey
    | DropConstraint
    | RenameKey
    | AddForeignKey
    | SetCharset
    | ConvertCharset
    | RenameTo
    | ReplaceRows
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE. `like` is the table to copy; `has_select`: columns come from a query."""

    name: TableName
    columns: tuple[ColumnSpec, ...] = ()
    keys: tuple[KeySpec, ...] = ()
    foreign_keys: tuple[AddForeignKey, ...] = ()
    charset: str | None = None
    like: TableName | None = None
    has_select: bool = False
    if_not_exists: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, CREATE INDEX, DROP INDEX. Without actions, no column or key changes."""

    name: TableName
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class DropTables:
    """DROP TABLE."""

    names: tuple[TableName, ...]
    is_temporary: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """RENAME TABLE: renames in order, all or none."""

    pairs: tuple[tuple[TableName, TableName], ...]


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE."""

    name: str
    charset: str | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """ALTER DATABASE … CHARACTER SET; without a name, of the current database."""

    name: str | None
    charset: str | None


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE: drops every table in it."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class NoChange:
    """A statement that changes no definition: TRUNCATE, views, accounts, data."""


Change: TypeAlias = (
    CreateTable
    | AlterTable
    | DropTables
    | RenameTables
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | NoChange
)
