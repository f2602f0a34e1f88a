"""The script that makes rows of one table on one server equal to those of another.

1. It is not logged (sql_log_bin=0): it creates no GTID, and changes no other server.
2. Every row must be as the plan read it, or already as it should be; otherwise the script changes
   nothing. The statement that changes a row checks it again. Members of ENUM and SET columns are
   numbers, also in the conditions, so the members must be those of the plan, in their order.
3. Foreign keys are checked: a child keeps its parent. If they would cascade to rows of other
   tables, the script changes nothing.
4. If it is stopped and run again, it executes what is left.
5. Deletes come before updates, and updates before inserts, so that unique key values are free. If
   two or more rows change one unique key, they may exchange its values, and no order of UPDATEs
   works. Such rows are deleted first and inserted last, which requires a transactional table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from binlog.rows.tables import RowTable
from binlog.rows.values import ABSENT, Image, RowChange
from gtid.counted_nouns import counted
from repair.content.row_versions import RowVersions
from repair.model.actions import MakeRowsAlike
from repair.scripts.procedure import Procedure, Setting
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind
from repair.sql.replay import ROW_SESSION
from repair.sql.row_sql import member_columns, redo_row, row_condition, table_name
from repair.sql.script import literal, unless_done
from repair.sql.table_questions import (
    carries_nothing,
    has_members,
    has_no_triggers,
    is_shown,
    is_transactional,
    may_write,
    sees_triggers,
)

_ROWS_PER_SECOND = 50
_UNLOGGED = "SET SESSION sql_log_bin = 0, foreign_key_checks = 1, sql_safe_updates = 0;"


def make_rows_alike(action: MakeRowsAlike, _setting: Setting) -> Procedure:
    """Return the script that writes the other server's version of each row, as one transaction."""
    server, table = action.server, action.rows[0].table
    count = len(action.rows)
    rows = counted(count, "row")
    until = action.until_executed
    settled = f" OR GTID_SUBSET({literal(until)}, @@GLOBAL.gtid_executed)" if until else ""
    return Procedure(
        title=f"make {rows} of {table.name} on {server} like those on {action.source}",
        session=(*ROW_SESSION, _UNLOGGED),
        preconditions=(
            Guard(
                "@@SESSION.sql_log_bin = 0",
                f"{server}: this session would log its changes under new GTIDs; use an account"
                " that may set sql_log_bin; nothing was changed",
            ),
            there(server, table),
            Guard(
                sees_triggers(table.schema, table.table),
                f"{server}: this account may not see the triggers of {table.name}, which would"
                " fire; grant it TRIGGER there (not by a role); nothing was changed",
            ),
            Guard(
                has_no_triggers(table.schema, table.table),
                f"{server}: {table.name} has triggers, which would fire; nothing was changed",
            ),
            *may_write(table.schema, table.table, server=server),
            *_carries_nothing(server, action.rows),
            *_rolls_back(server, action.rows),
            *_same_members(server, table),
            *(_as_seen(server, row, settled) for row in action.rows),
        ),
        statements=tuple(_statements(action.rows, settled)),
        verifications=tuple(_reached(server, row, settled) for row in action.rows),
        check=f"CHECKSUM TABLE {table_name(table)};  -- equal on both servers while no client"
        " writes",
        undo=f"the version of {server} of each row is in plan.json and in the runbook",
        estimated_seconds=1 + count // _ROWS_PER_SECOND,
        estimate_assumes=f"{_ROWS_PER_SECOND} rows a second, found by their keys",
        if_stopped="either all rows of this table are changed or none (row by row in a table"
        f" without transactions); {'' if until else 'run its checks, and then '}run the script"
        " again",
        risk=f"{server} loses its version of these rows",
        warnings=(
            (
                f"this does not change the replicas of {server}: they may still have {server}'s"
                " version, and later changes of these rows may stop their appliers; compare them"
            ),
            (
                "the plan read these rows earlier: if clients have written them on"
                f" {action.source} since, plan again; super_read_only must be off while the script"
                " runs"
            ),
            (
                "foreign keys are checked: if a script stops with error 1451 or 1452, run those of"
                " the other tables first, then this one again; rows of one table that refer to each"
                " other may have to be written by hand, children first"
            ),
        ),
        needs=(StatementKind.SET_SQL_LOG_BIN, StatementKind.WRITE_ROWS),
    )


def there(server: str, table: RowTable) -> Guard:
    """Return the guard that a table exists: a condition on its rows would end in error 1146."""
    return Guard(
        is_shown(table.schema, table.table),
        f"{server}: {table.name} does not exist, or this account may not see it; nothing was"
        " changed; audit and plan again",
    )


def _carries_nothing(server: str, rows: tuple[RowVersions, ...]) -> Iterator[Guard]:
    """Yield the guard that no foreign key cascades to other tables, which were not compared."""
    table = rows[0].table
    for rule, is_asked in rules_asked(rows).items():
        if is_asked:
            yield Guard(
                carries_nothing(table.schema, table.table, rule),
                f"{server}: foreign keys of {table.name} would change other tables; nothing was"
                " changed",
            )


def rules_asked(rows: tuple[RowVersions, ...]) -> dict[str, bool]:
    """Return which foreign key rules matter to these rows: for deleted rows, for changed rows."""
    return {
        "delete_rule": any(row.source is None for row in rows) or bool(exchanging(rows)),
        "update_rule": any(None not in (row.source, row.replica) for row in rows),
    }


def _same_members(server: str, table: RowTable) -> Iterator[Guard]:
    """Yield the guard that the ENUM and SET numbers in the script have the same meaning."""
    for column, begins in member_columns(table):
        yield Guard(
            has_members(table.schema, table.table, column, begins),
            f"{server}: the members of {column} in {table.name} changed since the plan was made;"
            " nothing was changed; plan again",
        )


def exchanging(rows: Iterable[RowVersions]) -> tuple[RowVersions, ...]:
    """Return the rows that change a unique key that another row also changes."""
    moved: dict[tuple[int, ...], list[RowVersions]] = {}
    for row in rows:
        if row.source is None or row.replica is None or ABSENT in (*row.source, *row.replica):
            continue
        for key in row.table.unique_keys:
            if any(row.source[at] != row.replica[at] for at in key):
                moved.setdefault(key, []).append(row)
    found = [row for of_key in moved.values() if len(of_key) > 1 for row in of_key]
    return tuple({row.where: row for row in found}.values())


def _rolls_back(server: str, rows: tuple[RowVersions, ...]) -> Iterator[Guard]:
    """Yield the guard for a transactional table if a row is deleted to be inserted again."""
    table = rows[0].table
    if exchanging(rows):
        yield Guard(
            is_transactional(table.schema, table.table),
            f"{server}: rows of {table.name} exchange values of a unique key, and its engine has"
            " no transactions: they would be missing for a moment; nothing was changed; write them"
            " by hand",
        )


def _statements(rows: tuple[RowVersions, ...], settled: str) -> Iterator[str]:
    apart = exchanging(rows)
    yield "BEGIN;"
    for row in apart:
        yield from _unless_reached(row, settled, RowChange(before=row.replica, after=None))
    for row in rows:
        if row not in apart:
            yield from _unless_reached(row, settled, row.change)
    for row in apart:
        yield from _unless_reached(row, settled, RowChange(before=None, after=row.source))
    if apart:
        reached = " AND ".join(_is(row, is_goal=True) for row in apart)
        yield f"SET @end = IF(({reached}){settled}, 'COMMIT', 'ROLLBACK');"
        yield "PREPARE `end of transaction` FROM @end;"
        yield "EXECUTE `end of transaction`;"
    else:
        yield "COMMIT;"


def _unless_reached(row: RowVersions, settled: str, change: RowChange) -> Iterator[str]:
    statement = redo_row(row.table, change)
    assert statement is not None, "the strategy leaves out rows without a change"
    yield f"SET @done = {_is(row, is_goal=True)}{settled};"
    yield from unless_done(statement.removesuffix(";"))


def row_is(table: RowTable, where: str, image: Image | None) -> str:
    """Return the condition that a row, found by its key, equals an image; None: it is absent."""
    found = where if image is None else row_condition(table, image)
    exists = f"EXISTS (SELECT 1 FROM {table_name(table)} WHERE {found})"  # noqa: S608 - quoted
    return f"NOT {exists}" if image is None else exists


def _is(row: RowVersions, *, is_goal: bool) -> str:
    """Return the condition that the row is as it should be, or as the plan read it."""
    return row_is(row.table, row.where, row.source if is_goal else row.replica)


def _as_seen(server: str, row: RowVersions, settled: str) -> Guard:
    return Guard(
        f"{_is(row, is_goal=False)} OR {_is(row, is_goal=True)}{settled}",
        f"{server}: the row {row.where} of {row.table.name} is not as the plan saw it; nothing was"
        " changed; plan again",
    )


def _reached(server: str, row: RowVersions, settled: str) -> Guard:
    return Guard(
        f"{_is(row, is_goal=True)}{settled}",
        f"{server}: the row {row.where} of {row.table.name} is not as it should be; plan again",
    )
