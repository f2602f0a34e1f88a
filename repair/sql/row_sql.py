"""Writes changes of rows as SQL, forwards and backwards.

1. A row is found by all of its known values: it must still be as the transaction found it (redo) or
   left it (undo). If it was changed since, the statement does not find it, and the script stops.
2. There is one statement per row. It has LIMIT 1 if no key is known, because several rows may be
   equal.
3. Generated columns are omitted; invisible columns are listed like all others.
4. A redo under the same GTID must be logged as the first commit was (`keeps_form`). With
   binlog_row_image=MINIMAL a log has the columns that an UPDATE sets, changed or not. So the redo
   sets exactly those again.
5. What is not in the log cannot be written: CannotRender reports the missing column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from binlog.quoting import quote_identifier, quote_string
from binlog.rows.images import DATETIME2, ENUM, TIMESTAMP2
from binlog.rows.json_values import DiffKind, JsonDiff, JsonDiffs
from binlog.rows.tables import OLD_DATETIME, OLD_TIMESTAMP, Origin, RowTable
from binlog.rows.values import ABSENT, Image, RowChange, Value
from repair.sql.row_literals import (
    CannotRender,
    condition,
    json_expression,
    literal,
    same_bytes,
    type_with_members,
)

# They may be declared ON UPDATE CURRENT_TIMESTAMP. Then an UPDATE that does not set them changes
# them.
SELF_SETTING = frozenset({OLD_TIMESTAMP, OLD_DATETIME, TIMESTAMP2, DATETIME2})


def redo_row(table: RowTable, row: RowChange, *, keeps_form: bool = False) -> str | None:
    """Return the statement that repeats the change of a row; None if nothing changed.

    `keeps_form`: if the log omits columns, set exactly the columns that it has. The server must set
    none by itself (`unset_columns`). Raises CannotRender.
    """
    if row.before is None:
        assert row.after is not None
        return _insert(table, row.after)
    if row.after is None:
        return _delete(table, row.before)
    images = (row.before, row.after) if keeps_form else ()
    is_cut = any(image[at] is ABSENT for image in images for at in written_columns(table))
    return _update(table, found=row.before, wanted=row.after, only_logged=is_cut)


def undo_row(table: RowTable, row: RowChange) -> str | None:
    """Return the statement that reverts the change of a row; None if nothing changed.

    Raises CannotRender.
    """
    if row.before is None:
        assert row.after is not None
        return _delete(table, row.after)
    if row.after is None:
        _check_whole(table, row.before, "the row")
        return _insert(table, row.before)
    missing = [
        at
        for at in written_columns(table)
        if row.after[at] is not ABSENT and row.before[at] is ABSENT
    ]
    _check_none(table, missing, "the value before the update of")
    # A column that the update did not set is as it was before.
    left = tuple(
        old if new is ABSENT else new for old, new in zip(row.before, row.after, strict=True)
    )
    return _update(table, found=left, wanted=row.before, base=row.before)


def row_condition(table: RowTable, image: Image) -> str:
    """Return the condition that matches only this row in its current state. Raises CannotRender."""
    assert table.key, "without a key equal rows cannot be distinguished"
    return _where(table, image)


def member_columns(table: RowTable) -> tuple[tuple[str, str], ...]:
    """Return the ENUM and SET columns, and how their types begin in information_schema.

    Raises CannotRender if that does not show the order of the members.
    """
    return tuple(
        (column.name, type_with_members(column))
        for column in table.columns
        if column.name is not None and column.members
    )


def needs_lenience(table: RowTable, row: RowChange) -> bool:
    """Return whether a row holds an ENUM's error value, 0, which strict mode rejects."""
    enums = [at for at, column in enumerate(table.columns) if column.type_code == ENUM]
    images = [image for image in (row.before, row.after) if image is not None]
    return any(image[at] == 0 for image in images for at in enums)


def unset_columns(table: RowTable, row: RowChange) -> Iterator[str]:
    """Yield the columns that an UPDATE did not set, and that a server might set by itself."""
    if row.before is not None and row.after is not None:
        for at in written_columns(table):
            if row.after[at] is ABSENT and table.columns[at].type_code in SELF_SETTING:
                yield table.columns[at].name or ""


def _insert(table: RowTable, image: Image) -> str:
    present = [at for at in written_columns(table) if image[at] is not ABSENT]
    values = ", ".join(literal(table.columns[at], image[at]) for at in present)
    return f"{insert_head(table, image)}({values});"


def insert_head(table: RowTable, image: Image) -> str:
    """Return the INSERT of an image up to its values: equal for rows that share a statement."""
    return insert_of(table, [at for at in written_columns(table) if image[at] is not ABSENT])


def insert_of(table: RowTable, columns: Iterable[int]) -> str:
    """Return the INSERT of values of these columns, up to the values."""
    names = ", ".join(column_name(table, at) for at in columns)
    return f"INSERT INTO {table_name(table)} ({names}) VALUES "  # noqa: S608 - quoted


def _delete(table: RowTable, image: Image) -> str:
    return f"DELETE FROM {table_name(table)} WHERE {_where(table, image)};"  # noqa: S608 - quoted


def _update(
    table: RowTable,
    *,
    found: Image,
    wanted: Image,
    base: Image | None = None,
    only_logged: bool = False,
) -> str | None:
    """Return an UPDATE. `base` is the base value of JSON differences in `found`, if it has any.

    `only_logged`: set exactly the columns of `wanted` that are not ABSENT.
    """
    changed = [
        at
        for at in written_columns(table)
        if wanted[at] is not ABSENT and not _is_same(found[at], wanted[at])
    ]
    if not changed:
        return None
    settings: list[str] = []
    free: list[str] = []
    for at in written_columns(table):
        name, value = column_name(table, at), wanted[at]
        if at in changed or (only_logged and value is not ABSENT):
            settings.append(f"{name} = {_new_value(table, at, value)}")
            if isinstance(value, JsonDiffs):
                free += _free_paths(name, value.steps)
        elif table.columns[at].type_code in SELF_SETTING and not only_logged:
            settings.append(f"{name} = {name}")
    where = " AND ".join((*free, _where(table, found, base=base)))
    return f"UPDATE {table_name(table)} SET {', '.join(settings)} WHERE {where};"  # noqa: S608 - quoted


def _is_same(left: Value, right: Value) -> bool:
    """Return whether a row treats values as equal: 1 and 1.0 are, but -0.0 and 0.0 are not."""
    return left == right and repr(left) == repr(right)


def _where(table: RowTable, image: Image, *, base: Image | None = None) -> str:
    """Return the condition that matches only this row in its expected state."""
    has_key = bool(table.key) and all(image[at] is not ABSENT for at in table.key or ())
    if not has_key:
        _check_whole(table, image, "the row, and no key of the table is logged or known:")
    logged = frozenset(at for at, value in enumerate(image) if value is not ABSENT)
    conditions = []
    for at in searched_columns(table, logged)[1]:
        value, name = image[at], column_name(table, at)
        if isinstance(value, JsonDiffs):
            start = base[at] if base else ABSENT
            assert not isinstance(start, JsonDiffs), "a row before a change is logged whole"
            if start is ABSENT:
                continue
            expression = _applied(literal(table.columns[at], start), value.steps)
            conditions.append(f"{name} = {expression}")
        else:
            is_key = has_key and at in (table.key or ())
            conditions.append(condition(table.columns[at], name, value, is_key=is_key))
            if is_key and (exact := same_bytes(table.columns[at], name, value)):
                conditions.append(exact)
    return " AND ".join(conditions) + ("" if has_key else " LIMIT 1")


def searched_columns(table: RowTable, logged: frozenset[int]) -> tuple[bool, list[int]]:
    """Return whether a row is found by its key, and the columns that find it, those first.

    A generated column cannot be written, but it can find a row if it is the key.
    """
    key = table.key or ()
    has_key = bool(key) and logged.issuperset(key)
    searched = {*written_columns(table), *(key if has_key else ())} & logged
    return has_key, sorted(searched, key=lambda each: (each not in key, each))


def _new_value(table: RowTable, at: int, value: Value) -> str:
    if isinstance(value, JsonDiffs):
        return _applied(column_name(table, at), value.steps, is_assigned=True)
    return literal(table.columns[at], value)


def _free_paths(document: str, steps: Sequence[JsonDiff]) -> Iterator[str]:
    """Yield the conditions that paths are free where JSON_SET inserts: it would replace them."""
    for at, step in enumerate(steps):
        if step.kind is DiffKind.INSERT:
            before = _applied(document, steps[:at])
            yield f"NOT JSON_CONTAINS_PATH({before}, 'one', {quote_string(step.path)})"


def _applied(document: str, steps: Iterable[JsonDiff], *, is_assigned: bool = False) -> str:
    """Return a document wrapped in functions with the effect of the differences (json_diff.h).

    An assigned value is logged as differences again only with JSON_SET, JSON_REPLACE and
    JSON_REMOVE (Reference Manual, "Partial Updates of JSON Values"). An inserted value comes from
    JSON_SET, so it is a new member, or follows the last element of an array.
    """
    for step in steps:
        path = quote_string(step.path)
        if step.value is None:
            document = f"JSON_REMOVE({document}, {path})"
            continue
        value = json_expression(step.value.root)
        if step.kind is DiffKind.REPLACE:
            function = "JSON_REPLACE"
        elif is_assigned:
            function = "JSON_SET"
        else:
            function = "JSON_ARRAY_INSERT" if step.path.endswith("]") else "JSON_INSERT"
        document = f"{function}({document}, {path}, {value})"
    return document


def written_columns(table: RowTable) -> Iterator[int]:
    """Yield the columns that can be written: all except generated ones."""
    return (at for at, column in enumerate(table.columns) if not column.is_generated)


def _check_whole(table: RowTable, image: Image, what: str) -> None:
    _check_none(table, [at for at in written_columns(table) if image[at] is ABSENT], what)


def _check_none(table: RowTable, missing: list[int], what: str) -> None:
    if missing:
        names = ", ".join(table.columns[at].name or f"@{at + 1}" for at in missing)
        raise CannotRender(
            f"{table.name}: the log does not have {what} {names}: it was written with"
            " binlog_row_image=MINIMAL or NOBLOB"
        )


def table_name(table: RowTable) -> str:
    """Return a table's quoted name with its schema."""
    return f"{quote_identifier(table.schema)}.{quote_identifier(table.table)}"


def check_named(table: RowTable) -> None:
    """Raise CannotRender if the table's columns have no names."""
    if table.origin is not Origin.NOWHERE:
        return
    why = (
        f"S3, the given definition does not match the log: {table.mismatch}"
        if table.mismatch
        else (
            "the log was not written with binlog_row_metadata=FULL, and no definition of that time"
            " is known: supply it (binlog show --definitions, --schema-from). The definition of a"
            " server is not used if the logs change the table later, or without SELECT on the table"
        )
    )
    raise CannotRender(f"{table.name}: the names of the columns are not known: {why}")


def column_name(table: RowTable, at: int) -> str:
    """Return the quoted name of a column."""
    name = table.columns[at].name
    assert name is not None, "check_named comes first"
    return quote_identifier(name)
