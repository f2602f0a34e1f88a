"""Applies statements to definitions: pure functions from a table to a table.

1. The order of columns is that of mysql_prepare_alter_table, sql/sql_table.cc. First come the
   remaining columns in their old order, with changed ones in place. Then new columns and those with
   FIRST or AFTER are inserted one by one.
2. A change that would fail on the server, or depends on unknown facts, raises CannotFollow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from binlog.schema.changes import (
    Action,
    AddColumn,
    AddForeignKey,
    AddKey,
    AlterTable,
    ChangeColumn,
    ColumnPlace,
    ColumnSpec,
    ConvertCharset,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropKey,
    KeySpec,
    RenameColumn,
    RenameKey,
    SetCharset,
    SetVisibility,
)
from binlog.schema.charset_names import BINARY
from binlog.schema.column_types import Timestamps, converted, settle
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import Column, Key, KeyKind, TableDefinition

_PRIMARY = "PRIMARY"


def definition_of(
    create: CreateTable,
    *,
    schema: str,
    database_charset: str | None,
    timestamps: Timestamps = Timestamps.NULLABLE,
) -> TableDefinition:
    """Make the definition of a CREATE TABLE with its own columns. Raises CannotFollow."""
    if create.has_select or create.like is not None:
        raise CannotFollow(why="columns that come from elsewhere than the statement")
    draft = _Draft(
        schema=create.name.schema or schema,
        table=create.name.table,
        charset=create.charset or database_charset,
        columns=[],
        keys=[],
        foreign_keys=[each.columns for each in create.foreign_keys],
        timestamps=timestamps,
    )
    for spec in create.columns:
        draft.columns.append(settle(spec, draft.charset, timestamps))
    draft.add_keys([key for spec in create.columns for key in _keys_of(spec)] + [*create.keys])
    return draft.finish()


def altered(
    definition: TableDefinition,
    alter: AlterTable,
    *,
    database_charset: str | None,
    timestamps: Timestamps = Timestamps.NULLABLE,
) -> TableDefinition:
    """Return the definition after an ALTER TABLE; its name stays. Raises CannotFollow."""
    draft = _Draft(
        schema=definition.schema,
        table=definition.table,
        charset=definition.charset,
        columns=[*definition.columns],
        keys=_keys(definition),
        foreign_keys=[*definition.foreign_keys],
        timestamps=timestamps,
        is_complete=definition.is_complete,
    )
    draft.apply(alter.actions, database_charset=database_charset)
    return draft.finish()


def _keys(definition: TableDefinition) -> list[Key]:
    primary = (
        [Key(KeyKind.PRIMARY, _PRIMARY, definition.primary_key)] if definition.primary_key else []
    )
    return [*primary, *definition.unique_keys, *definition.plain_keys]


def _keys_of(spec: ColumnSpec) -> list[KeySpec]:
    """Return the keys that a column's attributes define."""
    keys = []
    if spec.is_primary:
        keys.append(KeySpec(KeyKind.PRIMARY, _PRIMARY, (spec.name,), is_exact=True))
    if spec.is_unique:
        keys.append(KeySpec(KeyKind.UNIQUE, None, (spec.name,), is_exact=True))
    return keys


@dataclass(slots=True)
class _Draft:
    """A definition under construction."""

    schema: str
    table: str
    charset: str | None
    columns: list[Column]
    keys: list[Key]
    foreign_keys: list[tuple[str, ...]]
    timestamps: Timestamps
    is_complete: bool = True
    is_converted: bool = False

    def apply(self, actions: Sequence[Action], *, database_charset: str | None) -> None:
        """Apply the actions of one ALTER TABLE in the order of the server."""
        self._set_charset(actions, database_charset)
        self._drop_keys(actions)
        dropped = {each.name.casefold() for each in actions if isinstance(each, DropColumn)}
        for name in dropped:
            self._find(name)
        changes = {each.name.casefold(): each for each in actions if isinstance(each, ChangeColumn)}
        renames = {
            each.name.casefold(): each.new_name
            for each in actions
            if isinstance(each, RenameColumn)
        }
        for name in (*changes, *renames):
            self._find(name)
        if len(changes) + len(renames) + len(dropped) != sum(
            isinstance(each, ChangeColumn | RenameColumn | DropColumn) for each in actions
        ) or dropped & {*changes, *renames}:
            raise CannotFollow(why="one column changed twice by one statement")
        self._rework_keys(
            dropped=dropped,
            new_names={**{n: c.spec.name for n, c in changes.items()}, **renames},
        )
        self._rework_columns(actions, dropped=dropped, changes=changes, renames=renames)
        self.foreign_keys += [e.columns for e in actions if isinstance(e, AddForeignKey)]
        added = [e.spec for e in actions if isinstance(e, AddColumn | ChangeColumn)]
        self.add_keys(
            [key for spec in added for key in _keys_of(spec)]
            + [each.key for each in actions if isinstance(each, AddKey)]
        )

    def _set_charset(self, actions: Sequence[Action], database_charset: str | None) -> None:
        for each in actions:
            if isinstance(each, SetCharset):
                self.charset = each.charset
            elif isinstance(each, ConvertCharset):
                charset = each.charset or database_charset
                if charset is None:
                    raise CannotFollow(
                        why=f"the default character set of {self.schema} is not known"
                    )
                self.charset = charset
                self.is_converted = True
                self.columns = [converted(column, charset) for column in self.columns]

    def _drop_keys(self, actions: Sequence[Action]) -> None:
        for each in actions:
            if isinstance(each, DropKey | DropConstraint):
                folded = each.name.casefold()
                kept = [key for key in self.keys if key.name.casefold() != folded]
                if len(kept) == len(self.keys) and isinstance(each, DropKey):
                    self._check_unknown_key(each.name)
                self.keys = kept
            elif isinstance(each, RenameKey):
                folded = each.name.casefold()
                self.keys = [
                    replace(key, name=each.new_name) if key.name.casefold() == folded else key
                    for key in self.keys
                ]

    def _check_unknown_key(self, name: str) -> None:
        # A foreign key creates a key whose name may be unknown, and a TABLE_MAP has no key names.
        if self.is_complete and not self.foreign_keys:
            raise CannotFollow(why=f"there is no key {name}")

    def _find(self, name: str) -> Column:
        folded = name.casefold()
        for column in self.columns:
            if column.name.casefold() == folded:
                return column
        raise CannotFollow(why=f"there is no column {name}")

    def _rework_keys(self, *, dropped: set[str], new_names: dict[str, str]) -> None:
        """Remove dropped columns from the keys; drop a key without columns left."""
        kept: list[Key] = []
        for key in self.keys:
            columns = tuple(
                new_names.get(name.casefold(), name)
                for name in key.columns
                if name.casefold() not in dropped
            )
            if columns or not key.columns:
                kept.append(replace(key, columns=columns))
        self.keys = kept

    def _rework_columns(
        self,
        actions: Sequence[Action],
        *,
        dropped: set[str],
        changes: dict[str, ChangeColumn],
        renames: dict[str, str],
    ) -> None:
        result: list[Column] = []
        for column in self.columns:
            folded = column.name.casefold()
            if folded in dropped:
                continue
            if folded in changes:
                if changes[folded].place is None:
                    result.append(self._settled(changes[folded].spec))
            else:
                result.append(replace(column, name=renames.get(folded, column.name)))
        for each in actions:
            if isinstance(each, AddColumn) or (
                isinstance(each, ChangeColumn) and each.place is not None
            ):
                _insert(result, self._settled(each.spec), each.place)
        for each in actions:
            if isinstance(each, SetVisibility):
                self._set_visibility(result, each)
        self.columns = result

    def _set_visibility(self, columns: list[Column], action: SetVisibility) -> None:
        folded = action.name.casefold()
        at = [at for at, column in enumerate(columns) if column.name.casefold() == folded]
        if not at:
            raise CannotFollow(why=f"there is no column {action.name}")
        columns[at[0]] = replace(columns[at[0]], is_invisible=action.is_invisible)

    def _settled(self, spec: ColumnSpec) -> Column:
        if self.is_converted and spec.type.charset not in (None, BINARY):
            # CONVERT TO overrides the column's character set in the same statement (verified).
            spec = replace(spec, type=replace(spec.type, charset=self.charset))
        return settle(spec, self.charset, self.timestamps)

    def add_keys(self, specs: Iterable[KeySpec]) -> None:
        """Add keys; name unnamed ones as in make_unique_key_name, sql/sql_table.cc."""
        specs = list(specs)
        taken = {key.name.casefold() for key in self.keys}
        taken |= {spec.name.casefold() for spec in specs if spec.name is not None}
        for spec in specs:
            name = spec.name
            if name is None:
                self._check_foreign_keys(spec)
                name = _free_name(spec, taken)
                taken.add(name.casefold())
            # Use the table's spelling: a statement may write column names in any letter case.
            columns = tuple(self._find(column).name for column in spec.columns)
            self.keys.append(Key(spec.kind, name, columns, spec.is_exact))

    def _check_foreign_keys(self, spec: KeySpec) -> None:
        """Raise CannotFollow if a foreign key's own key may affect the name of this key."""
        first = spec.columns[0].casefold() if spec.columns else ""
        beside = any(columns[0].casefold() == first for columns in self.foreign_keys)
        if spec.kind is KeyKind.UNIQUE and beside:
            raise CannotFollow(why="the name that MySQL gives to a unique key next to foreign keys")

    def finish(self) -> TableDefinition:
        """Return the finished definition."""
        primary = [key for key in self.keys if key.kind is KeyKind.PRIMARY]
        if len(primary) > 1:
            raise CannotFollow(why="two primary keys")
        primary_key = primary[0].columns if primary else ()
        in_primary = {name.casefold() for name in primary_key}
        unique = [key for key in self.keys if key.kind is KeyKind.UNIQUE]
        try:
            return TableDefinition(
                schema=self.schema,
                table=self.table,
                columns=tuple(
                    replace(column, is_nullable=False)
                    if column.name.casefold() in in_primary
                    else column
                    for column in self.columns
                ),
                primary_key=primary_key,
                unique_keys=tuple(sorted(unique, key=lambda key: key.name.casefold())),
                charset=self.charset,
                plain_keys=tuple(key for key in self.keys if key.kind is KeyKind.PLAIN),
                foreign_keys=tuple(self.foreign_keys),
                is_complete=self.is_complete,
            )
        except ValueError as error:
            raise CannotFollow(why=str(error)) from error


def _free_name(spec: KeySpec, taken: set[str]) -> str:
    first = "functional_index" if spec.is_functional else spec.columns[0]
    if first.casefold() not in taken and first.casefold() != "primary":
        return first
    number = 2
    while f"{first}_{number}".casefold() in taken:
        number += 1
    return f"{first}_{number}"


def _insert(columns: list[Column], column: Column, place: ColumnPlace | None) -> None:
    if place is None:
        columns.append(column)
        return
    if place.after is None:
        columns.insert(0, column)
        return
    folded = place.after.casefold()
    for at, each in enumerate(columns):
        if each.name.casefold() == folded:
            columns.insert(at + 1, column)
            return
    raise CannotFollow(why=f"there is no column {place.after} (in AFTER)")
