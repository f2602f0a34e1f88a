"""Combines replayed transactions into one script for the plain `mysql` client.

1. The script describes itself, checks its assumptions, then runs transaction by transaction. It may
   be stopped anywhere: committed transactions stay, and the interrupted one is rolled back.
2. Before any change, the script queries the server for what no log shows: whether triggers would
   fire again, which columns are generated, and whether foreign keys cascaded changes that the log
   does not have.
3. It contains no account, no secret and no path of this machine.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from binlog.quoting import quote_string
from gtid import Gtid
from gtid.counted_nouns import counted
from repair.sql.guard import (
    ACCEPTS_WRITES,
    CLIENT_KEEPS_COMMENTS,
    CLIENT_READS_UTF8,
    KEEP_CLIENT_CHARSET,
    ONLY_READ_UNLESS_GO,
    Guard,
)
from repair.sql.replay import ROW_SESSION, Replayed, comment, under_gtid
from repair.sql.statement_sql import DELIMITER
from repair.sql.table_questions import (
    carries_nothing,
    has_columns,
    has_members,
    has_no_triggers,
    has_types,
    leaves_as_they_are,
    may_write,
    none_in,
    rolls_back_if_there,
    sees_triggers,
)
from repair.sql.touched_tables import TouchedTable

_SESSION = (
    "SET SESSION autocommit = 1, SESSION completion_type = 'NO_CHAIN',"
    " SESSION sql_safe_updates = 0, @go = 1, @rows = 0;"
)


class Direction(Enum):
    """The effect of a script on its transactions."""

    REDO = "redo"
    UNDO = "undo"


_HEADS = {
    Direction.REDO: (
        "Redoes {what}, in the order of the logs, {under}. Each row must be as the transaction"
        " found it. If one is not, the script stops there and rolls that transaction back (except"
        " in tables without transactions)."
    ),
    Direction.UNDO: (
        "Undoes {what}, the last one first, {under}. Each row must be as the transaction left it."
        " If one was changed since, the script stops there and undoes nothing of that transaction"
        " (except in tables without transactions). AUTO_INCREMENT counters stay as they are."
    ),
}
_CREATES_TABLE = re.compile(r"\bCREATE\b.*\bTABLE\b", re.IGNORECASE | re.DOTALL)
_ENGINE = re.compile(r"\bENGINE\b", re.IGNORECASE)
_COMMENT = re.compile(r"/\*(?![!+])|#|--\s")
_NEW_GTIDS = "under new GTIDs of the server that runs it"
_OLD_GTIDS = (
    "under the same GTIDs, which that server must not have yet (needs SUPER, from 8.0"
    " REPLICATION_APPLIER)"
)
_RUN = (
    "Run it with: mysql --binary-mode --host=… --port=… < this file. Without --binary-mode the"
    " client changes line ends inside texts. Do not use --force. Use an account that can see"
    " triggers and foreign keys. If possible, let no other client write to these tables meanwhile."
)


def script_lines(
    direction: Direction, replayed: Sequence[Replayed], *, caveats: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the script of transactions that are in log order and have no problem.

    `caveats` are assumptions that the script cannot check; the operator reads them first.
    """
    count = len(replayed)
    what = replayed[0].label if count == 1 else counted(count, "transaction")
    unlike = _unlike(replayed)
    under = _OLD_GTIDS if any(each.gtid for each in unlike) else _NEW_GTIDS
    yield from _paragraph(_HEADS[direction].format(what=what, under=under))
    yield from _paragraph(_RUN)
    for caveat in caveats:
        yield from _paragraph(f"Not proved: {caveat}")
    yield ""
    yield KEEP_CLIENT_CHARSET
    yield _SESSION
    yield from ROW_SESSION
    checks = (*comment_guards(unlike), *default_engine_guards(unlike))
    for guard in (CLIENT_READS_UTF8, ACCEPTS_WRITES, *checks):
        yield from guard.statements()
    if _joined(unlike):
        yield ""
        yield comment("no log shows these conditions; if one is false, nothing is changed")
        for guard in (
            *_logs_rows(unlike),
            *table_guards(unlike),
            *engine_guards(unlike),
            *column_guards(unlike, at_begin=True),
        ):
            yield from guard.statements()
    made: list[Replayed] = []
    ordered = iter(replayed) if direction is Direction.REDO else reversed(replayed)
    for number, each in enumerate(ordered, start=1):
        yield ""
        yield comment(f"{number} of {count}: {each.label}")
        made += [each] if each.creates else []
        for guard in trigger_guards(each, made):
            yield from guard.statements()
        if each.gtid is None:
            yield from ONLY_READ_UNLESS_GO
            yield from each.lines
        else:
            for guard in (*engine_guards((each,)), *later_columns(unlike, each)):
                yield from guard.statements()
            yield from _under_gtid(each.gtid, each.lines)
    yield ""
    done = f"{direction.value} of {counted(count, 'transaction')}"
    yield f"SELECT IF(@go, 'done', 'NOT done') AS {quote_string(done)};"


def _unlike(replayed: Iterable[Replayed]) -> list[Replayed]:
    """Return enough transactions for every guard: of those with rows only, one of each kind.

    A script may have millions. What a guard asks of one without statements follows from its tables,
    and from whether it keeps its GTID.
    """
    kept: list[Replayed] = []
    seen: set[tuple[frozenset[TouchedTable], bool]] = set()
    for each in replayed:
        assert each.problem is None, each.problem
        kind = (each.tables, each.gtid is None)
        if each.has_statements or each.creates or kind not in seen:
            seen.add(kind)
            kept.append(each)
    return kept


def comment_guards(replayed: Iterable[Replayed]) -> Iterator[Guard]:
    """Yield the guard that statements with comments arrive unchanged."""
    if any(map(_has_comments, replayed)):
        yield CLIENT_KEEPS_COMMENTS


def default_engine_guards(replayed: Iterable[Replayed]) -> Iterator[Guard]:
    """Yield the guard that a table without ENGINE gets InnoDB: no log has the default engine."""
    texts = (
        line for each in replayed if each.has_statements for line in each.lines if DELIMITER in line
    )
    if any(_CREATES_TABLE.search(text) and not _ENGINE.search(text) for text in texts):
        yield Guard(
            "@@SESSION.default_storage_engine = 'InnoDB'",
            "default_storage_engine is not InnoDB: a table that is created without ENGINE would get"
            " another engine than on its server; nothing was changed",
        )


def _has_comments(each: Replayed) -> bool:
    """Return whether a statement may contain a comment; a text that looks like one counts too."""
    return each.has_statements and any(
        line.endswith(DELIMITER) and _COMMENT.search(line.removesuffix(DELIMITER))
        for line in each.lines
    )


def _logs_rows(replayed: Sequence[Replayed]) -> Iterator[Guard]:
    """Yield the guard that rows under their GTIDs are logged as rows a second time."""
    if any(each.gtid for each in replayed):
        yield Guard(
            "@@SESSION.binlog_format = 'ROW'",
            "this session would log rows as statements, and each audit would report E4: SET SESSION"
            " binlog_format = 'ROW' first",
        )


def table_guards(replayed: Sequence[Replayed]) -> tuple[Guard, ...]:
    """Return what must be true of the tables before transactions are written on them."""
    return tuple(guard for table in _joined(replayed) for guard in _guards(table))


def engine_guards(replayed: Iterable[Replayed]) -> Iterator[Guard]:
    """Yield what must be true before transactions take their GTIDs: all rows can share one.

    A script checks it at its start, and before each transaction: an earlier one may create a table.
    """
    names = {(table.schema, table.table) for each in replayed if each.gtid for table in each.tables}
    for schema, table in sorted(names):
        yield Guard(
            rolls_back_if_there(schema, table),
            f"{schema}.{table} has an engine without transactions: its first row would use up the"
            " GTID, and the others would not be written",
        )


def column_guards(replayed: Sequence[Replayed], *, at_begin: bool) -> Iterator[Guard]:
    """Yield the guards that columns are the logged ones where rows take their GTIDs.

    Downstream servers apply the rows by the positions of their columns, and audits compare the two
    commits. A statement may alter a table. So if there is one, each transaction is checked;
    otherwise all are checked together at the start.
    """
    if at_begin and any(each.has_statements for each in replayed):
        return
    wanted = {
        (table.schema, table.table, table.columns, table.types)
        for each in replayed
        for table in each.tables
        if table.columns
    }
    for schema, table, columns, types in sorted(wanted):
        yield Guard(
            has_columns(schema, table, columns),
            f"{schema}.{table} has other columns than the log, or in another order; compare the"
            " definitions",
        )
        if types:
            yield Guard(
                has_types(schema, table, types),
                f"{schema}.{table} has a column of another type than the log, which may round or"
                " cut a value; compare the definitions",
            )


def later_columns(replayed: Sequence[Replayed], each: Replayed) -> Iterator[Guard]:
    """Yield `column_guards` for one transaction, if they were not checked at the start."""
    if any(other.has_statements for other in replayed):
        yield from column_guards((each,), at_begin=False)


def trigger_guards(each: Replayed, earlier: Iterable[Replayed]) -> Iterator[Guard]:
    """Yield the guards before a transaction if an earlier one may have created a trigger."""
    made = [created for one in earlier for created in one.creates]
    if not made:
        return
    for schema, table in sorted({(table.schema, table.table) for table in each.tables}):
        if any(created.fires_on([(schema, table)]) for created in made):
            yield Guard(
                has_no_triggers(schema, table),
                f"{schema}.{table} now has a trigger, which would fire again: run this transaction"
                " before the one that creates the trigger",
            )


def _under_gtid(gtid: Gtid, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that run under a GTID. The server silently skips an executed one."""
    text = quote_string(str(gtid))
    there = f"NOT GTID_SUBSET({text}, @@GLOBAL.gtid_executed)"
    yield from Guard(there, f"{gtid} has been executed here").statements()
    yield from ONLY_READ_UNLESS_GO
    yield f"SET SESSION gtid_next = IF(@go, {text}, 'AUTOMATIC');"
    yield from under_gtid(lines)
    yield "SET SESSION gtid_next = 'AUTOMATIC';"


def _paragraph(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, 96, subsequent_indent="   ", break_on_hyphens=False):
        yield f"-- {line}"


def _joined(replayed: Sequence[Replayed]) -> list[TouchedTable]:
    """Return each table once, with everything that must be checked about it."""
    found: dict[tuple[str, str], list[TouchedTable]] = {}
    for each in replayed:
        for table in each.tables:
            found.setdefault((table.schema, table.table), []).append(table)
    return [
        TouchedTable(
            *name,
            asks_for_generated=any(table.asks_for_generated for table in tables),
            asks_for_delete_rules=any(table.asks_for_delete_rules for table in tables),
            asks_for_update_rules=any(table.asks_for_update_rules for table in tables),
            members=tuple(sorted({each for table in tables for each in table.members})),
            unset=tuple(sorted({each for table in tables for each in table.unset})),
        )
        for name, tables in sorted(found.items())
    ]


def _guards(table: TouchedTable) -> Iterator[Guard]:
    schema, name = quote_string(table.schema), quote_string(table.table)
    shown = f"{table.schema}.{table.table}"
    yield Guard(
        sees_triggers(table.schema, table.table),
        f"this account may not see the triggers of {shown}: grant it TRIGGER there (not by a role)",
    )
    yield Guard(
        has_no_triggers(table.schema, table.table),
        f"{shown} has triggers, which would fire again",
    )
    yield from may_write(table.schema, table.table)
    if table.asks_for_generated:
        yield Guard(
            none_in(
                "columns",
                f"table_schema = {schema} AND table_name = {name}"
                " AND extra REGEXP '(VIRTUAL|STORED) GENERATED'",
            ),
            f"{shown} has generated columns: make the script again with the table's definition",
        )
    for column, column_type in table.members:
        yield Guard(
            has_members(table.schema, table.table, column, column_type),
            f"the members of {shown}.{column} are in another order here: the log has their numbers",
        )
    if table.unset:
        yield Guard(
            leaves_as_they_are(table.schema, table.table, table.unset),
            f"{shown} has columns ON UPDATE CURRENT_TIMESTAMP, and the log shows that they were not"
            " set",
        )
    for asks, rule in (
        (table.asks_for_delete_rules, "delete_rule"),
        (table.asks_for_update_rules, "update_rule"),
    ):
        if asks:
            yield Guard(
                carries_nothing(table.schema, table.table, rule),
                f"foreign keys of {shown} change other tables: the log does not contain those rows",
            )
