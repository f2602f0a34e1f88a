"""Compares the net change of transactions with the rows that a server holds now.

1. The server evaluates the comparison, with the conditions that scripts use (row_sql.py). So
   the result is what a script's guard will find.
2. A row that would be written must not collide with another row in any other unique key of the
   table. That holds for every value that the transactions give it in turn.
3. More than ROWS_MAX rows are not looked up: they are UNREAD. So is every row if a table has other
   columns, types or members here now than in the log.
4. Rows are also UNREAD if their comparison alone does not decide:
   * the log does not contain whole rows (binlog_row_image);
   * foreign keys link them to rows of other tables;
   * a unique key has a prefix of a column, or an expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlog.adapters.server_errors import server_words
from binlog.adapters.set_statements import EXECUTED
from binlog.quoting import quote_identifier
from binlog.rows.tables import RowTable
from binlog.rows.values import ABSENT, Image, Value
from binlog.schema.table_definitions import TableDefinition
from gtid import GtidSet
from repair.adapters.affected_rows import IN_UTC, Row, read_row
from repair.adapters.tables_now import Definitions, lookup_misfit
from repair.content.created_tables import Created, is_new
from repair.content.row_versions import RowsRead, RowVersions
from repair.content.transaction_content import NetRow, RowsOn, RowState, first_of, key_condition
from repair.sql.row_literals import CannotRender, condition
from repair.sql.row_sql import row_condition, table_name

ROWS_MAX: Final = 1_000
ROWS_SHOWN_MAX: Final = 20
_VALUES_AT_ONCE: Final = 100
_FOREIGN_KEYS: Final = (
    "SELECT 1 FROM information_schema.referential_constraints"
    " WHERE (constraint_schema = %(schema)s AND table_name = %(table)s)"
    " OR (unique_constraint_schema = %(schema)s AND referenced_table_name = %(table)s) LIMIT 1"
)
# A key part that is an expression has no column.
_INEXACT_KEYS: Final = (
    "SELECT 1 FROM information_schema.statistics WHERE table_schema = %(schema)s"
    " AND table_name = %(table)s AND non_unique = 0"
    " AND (sub_part IS NOT NULL OR column_name IS NULL) LIMIT 1"
)


class RowReader:
    """Reads and compares the rows of one server."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        with connection.cursor(Cursor) as cursor:
            cursor.execute(IN_UTC)
        self._unread: list[str] = []
        self._definition_of = Definitions(connection, self._unread.append)

    def state_of(self, rows: Sequence[NetRow]) -> tuple[RowsOn, tuple[NetRow, ...]]:
        """Return the state of the rows, and the rows that are not as before the transactions."""
        if len(rows) > ROWS_MAX:
            return RowsOn(RowState.UNREAD, f"more than {ROWS_MAX:,} rows were changed"), ()
        off: list[NetRow] = []
        reasons: list[tuple[str, bool]] = []
        all_after, in_part, has_some = bool(rows), True, False
        tables = {row.table.name: row.table for row in rows}.values()
        whys = [why for table in tables if (why := self.misfit(table)) is not None]
        if whys:
            is_missing = any(not self._exists(table.schema, table.table) for table in tables)
            is_absent = {
                (each.schema, each.table) for each in tables
            } <= self._definition_of.missing
            is_unlike = any(
                self._definition_of(each.schema, each.table) is not None and self.misfit(each)
                for each in tables
            )
            state = RowsOn(
                RowState.UNREAD,
                whys[0],
                is_unlike=is_unlike,
                is_missing=is_missing,
                is_absent=is_absent,
            )
            return state, ()
        not_alone = [on for table in tables if (on := self._not_alone(table)) is not None]
        if not_alone:
            return max(not_alone, key=lambda each: each.is_bound), ()
        for row in rows:
            images = (row.before, row.after, *row.between)
            if any(image is not None and ABSENT in image for image in images):
                what = f"{row.table.name}: the log does not contain the whole row"
                return RowsOn(RowState.UNREAD, f"{what} (binlog_row_image is not FULL)"), ()
        for row in rows:
            try:
                is_before, is_after, other = self._stands(row)
            except pymysql.MySQLError as error:
                return RowsOn(RowState.UNREAD, f"{row.table.name}: {server_words(error)}"), ()
            except CannotRender as error:
                return RowsOn(RowState.UNREAD, f"{row.table.name}: {error}"), ()
            all_after = all_after and is_after
            in_part = in_part and (is_before or is_after)
            has_some = has_some or (is_after and not is_before)
            if not is_before or other:
                off.append(row)
                what = row.name
                what += f" (another row has the same key {other})" if other else ""
                reasons.append((what, is_after and not other))
        if not off:
            return RowsOn(RowState.AS_BEFORE), ()
        if all_after:
            return RowsOn(RowState.AS_AFTER, off=tuple(off)), tuple(off)
        meets = self._met_by(off, rows)
        state = RowsOn(
            RowState.CONFLICT,
            not_as_expected(reasons),
            meets=meets,
            is_in_part=in_part,
            has_some=has_some,
            off=tuple(off),
        )
        return state, tuple(off)

    def _met_by(self, off: Sequence[NetRow], rows: Sequence[NetRow]) -> str:
        """Return the unique keys in which rows collide with a row outside the transactions.

        A row of the transactions that is as before makes room, as it did on the source.
        """
        met = []
        for row in off:
            ours = [each for each in rows if each.table.name == row.table.name]
            known = " OR ".join(f"({key_condition(each.table, each.key_image)})" for each in ours)
            if name := self._meets(row, known):
                met.append(f"{row.name}: {name}")
        return first_of(met)

    def misfit(self, table: RowTable) -> str | None:
        """Return why logged rows of a table must not be looked up here; see tables_now.py."""
        now = self._definition_of(table.schema, table.table)
        return lookup_misfit(table, now) if now is not None else "; ".join(self._unread)

    def _not_alone(self, table: RowTable) -> RowsOn | None:
        """Return the state if more than its rows decides whether a table's change fits here."""
        names = {"schema": table.schema, "table": table.table}
        try:
            with self._connection.cursor(Cursor) as cursor:
                if cursor.execute(_FOREIGN_KEYS, names):
                    why = f"{table.name}: foreign keys link its rows to rows of other tables"
                    return RowsOn(RowState.UNREAD, why, is_bound=True)
                if cursor.execute(_INEXACT_KEYS, names):
                    why = f"{table.name}: a unique key uses a column prefix or an expression"
                    return RowsOn(RowState.UNREAD, why)
        except pymysql.MySQLError as error:
            return RowsOn(RowState.UNREAD, f"{table.name}: {server_words(error)}")
        return None

    def state_beside(
        self, rows: Sequence[NetRow], created: Sequence[Created]
    ) -> tuple[RowsOn, tuple[NetRow, ...]]:
        """Return the state of rows if the transactions also create databases and tables."""
        there = [name for name in created if self._exists(*name)]
        if len(there) == len(created):
            state, off = self.state_of(rows)
            if not created or state.state in (RowState.AS_AFTER, RowState.UNREAD):
                return state, off
        elif not there:
            old = [row for row in rows if not is_new(row.table.schema, row.table.table, created)]
            state, off = self.state_of(old)
            if state.state is not RowState.AS_AFTER:
                return state, off
            return RowsOn(RowState.CONFLICT, "only some of the rows exist"), off
        named = first_of([".".join(filter(None, name)) for name in there])
        is_created = len(there) == len(created) and not rows
        return RowsOn(RowState.CONFLICT, f"{named} exists already", is_created=is_created), ()

    def _exists(self, schema: str, table: str) -> bool:
        sql = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
        names = [schema]
        if table:
            sql = (
                "SELECT 1 FROM information_schema.tables WHERE table_schema = %s"
                " AND table_name = %s"
            )
            names.append(table)
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(sql, names)
            return cursor.fetchone() is not None

    def expected(self, off: Sequence[NetRow]) -> tuple[RowVersions, ...]:
        """Return the rows that are not as before the transactions: expected and actual versions."""
        return tuple(self._expected(off[:ROWS_MAX]))

    def both(self, off: Sequence[NetRow], source: RowReader) -> RowsRead:
        """Return both versions of the rows that the source and this server hold differently now.

        A row that is not as before the transactions may still be equal on both servers.
        """
        found, unread = [], []
        equal_count = 0
        for row in off[:ROWS_SHOWN_MAX]:
            try:
                where = key_condition(row.table, row.key_image)
                (left, left_image), (right, right_image) = (
                    source.read(row, where),
                    self.read(row, where),
                )
            except (CannotRender, pymysql.MySQLError) as error:
                unread.append(f"{row.table.name}: {error}")
                continue
            if (why := source.misfit(row.table)) is not None:
                unread.append(why)
                continue
            differing = _differing(left, right)
            if differing:
                found.append(RowVersions(row.table, where, left_image, right_image, differing))
            else:
                equal_count += 1
        if len(off) > ROWS_SHOWN_MAX:
            unread.append(f"{len(off) - ROWS_SHOWN_MAX} more rows are not shown")
        return RowsRead(tuple(found), equal_count, tuple(unread))

    def alike(
        self, rows: Sequence[NetRow], source: RowReader, *, but: GtidSet
    ) -> tuple[tuple[NetRow, ...], GtidSet]:
        """Return the rows that equal the source's, or exist on neither, and what is on its way.

        This server's set is read before the rows, and the source's set after them. So every
        transaction that can have changed the source's rows is executed here, except `but` and what
        is on its way.
        """
        has = self._executed()
        found = tuple(row for row in rows[:ROWS_MAX] if self._is_equal(row, source))
        return found, source._executed() - has - but

    def _is_equal(self, row: NetRow, source: RowReader) -> bool:
        if self.misfit(row.table) or source.misfit(row.table):
            return False
        try:
            where = key_condition(row.table, row.key_image)
            return self.read(row, where) == source.read(row, where)
        except CannotRender:
            return False

    def not_after(self, rows: Sequence[NetRow]) -> Iterator[NetRow]:
        """Yield the rows that are not as after the transactions, in the columns of the log."""
        for row in rows:
            try:
                is_after = self._exists_as(row, row.after)
            except CannotRender:
                continue
            if not is_after:
                yield row

    def are_after(self, rows: Sequence[NetRow]) -> bool:
        """Return whether each row is as it was after the last of its transactions.

        False as well if the log does not contain the whole row, or the table is another one now.
        """
        tables = {row.table.name: row.table for row in rows}.values()
        is_cut = any(row.after is not None and ABSENT in row.after for row in rows)
        if is_cut or any(self.misfit(table) for table in tables):
            return False
        try:
            return all(self._stands(row)[1] for row in rows)
        except CannotRender:
            return False

    def _executed(self) -> GtidSet:
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(f"SELECT {EXECUTED}")
            [(gtids,)] = cursor.fetchall()
        return GtidSet.parse(gtids)

    def read(self, row: NetRow, where: str) -> tuple[Row | None, Image | None]:
        """Read one row as text and as values."""
        return read_row(self._connection, row.table, where)

    def _expected(self, off: Sequence[NetRow]) -> Iterator[RowVersions]:
        for row in off:
            where = key_condition(row.table, row.key_image)
            _, image = self.read(row, where)
            if row.before is not None and ABSENT in row.before:
                continue
            if image is not None or row.before is not None:
                yield RowVersions(row.table, where, row.before, image, ())

    def _exists_as(self, row: NetRow, image: Image | None) -> bool:
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(f"SELECT {_exists(row, image)}")
            [(found,)] = cursor.fetchall()
        return bool(found)

    def _stands(self, row: NetRow) -> tuple[bool, bool, str]:
        """Return whether a row is as before, whether as after, and a unique key it collides in."""
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(f"SELECT {_exists(row, row.before)}, {_exists(row, row.after)}")
            [(is_before, is_after)] = cursor.fetchall()
        known = key_condition(row.table, row.key_image)
        return bool(is_before), bool(is_after), self._meets(row, known)

    def _meets(self, row: NetRow, known: str) -> str:
        """Return a unique key in which a row collides with a row other than the known ones."""
        table = table_name(row.table)
        with self._connection.cursor(Cursor) as cursor:
            for name, conditions in self._unique_keys(row):
                meets = ") OR (".join(conditions)
                cursor.execute(
                    f"SELECT 1 FROM {table} WHERE (({meets})) AND NOT ({known}) LIMIT 1"  # noqa: S608
                )
                if cursor.fetchone() is not None:
                    return name
        return ""

    def _unique_keys(self, row: NetRow) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield keys with conditions that are true for another row with the same values.

        The conditions cover each value that the row gets in turn, some values at a time.
        """
        definition: TableDefinition | None = self._definition_of(row.table.schema, row.table.table)
        written = [image for image in (*row.between, row.after) if image is not None]
        if definition is None:
            return
        places = {(column.name or "").casefold(): at for at, column in enumerate(row.table.columns)}
        for key in definition.unique_keys:
            columns = [places.get(name.casefold()) for name in key.columns]
            known = [at for at in columns if at is not None]
            if not known or None in columns:
                continue
            each = dict.fromkeys(tuple(image[at] for at in known) for image in written)
            conditions = [_condition(row.table, known, one) for one in each if None not in one]
            for start in range(0, len(conditions), _VALUES_AT_ONCE):
                yield key.name, tuple(conditions[start : start + _VALUES_AT_ONCE])


def _exists(row: NetRow, image: Image | None) -> str:
    """Return the condition that a row exists in this version; for None, that it does not exist."""
    key = key_condition(row.table, row.key_image)
    found = key if image is None else row_condition(row.table, image)
    test = f"EXISTS (SELECT 1 FROM {table_name(row.table)} WHERE {found})"  # noqa: S608 - quoted
    return f"NOT {test}" if image is None else test


def not_as_expected(rows: Sequence[tuple[str, bool]]) -> str:
    """Return a text with the rows that are not as before; with each, whether it is as after.

    If some are neither as before nor as after, only these are listed: on a server that has the
    transactions, the others are correct.
    """
    neither = [name for name, is_after in rows if not is_after]
    named = neither or [name for name, _ in rows]
    return f"row {first_of(named)} is not as expected"


def _condition(table: RowTable, columns: Sequence[int], values: Sequence[Value]) -> str:
    return " AND ".join(
        condition(
            table.columns[at], quote_identifier(table.columns[at].name or ""), value, is_key=True
        )
        for at, value in zip(columns, values, strict=True)
    )


def _differing(
    left: Row | None, right: Row | None
) -> tuple[tuple[str, str | None, str | None], ...]:
    ours, theirs = left or {}, right or {}
    return tuple(
        (name, ours.get(name), theirs.get(name))
        for name in dict.fromkeys([*ours, *theirs])
        if left is None or right is None or ours.get(name) != theirs.get(name)
    )
