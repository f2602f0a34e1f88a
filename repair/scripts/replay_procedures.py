"""Scripts that undo rows and redo transactions.

1. Undo writes the rows as row_procedures.py does for rows that differ: unlogged, each row checked
   first, all or nothing, safe to run again.
2. Redo runs each transaction under its GTID. One that is already executed is skipped: the server
   ignores statements whose gtid_next is executed (sql/rpl_gtid_execution.cc,
   gtid_pre_statement_checks; seen on 5.6.24 and 9.7.4), and the script does not check the count of
   rows. After a failed guard (a client with --force), gtid_next is a GTID of this server's history,
   and the session is read-only (guard.py): a history may be empty, or begin with a tag.
3. On the server that assigns these GTIDs (its own, lost in a crash), an executed GTID may belong to
   another transaction: the next commit takes it. There the script runs once, before any commit, and
   stops at a GTID that is taken. If it is interrupted, the rest is planned again.
4. On other servers an executed GTID is from this script, or is an empty transaction of another
   plan. The rows show which: if they were compared, they must be as after all transactions, or the
   script changes nothing. A column that was altered after the plan may have stored another value
   without an error.
5. Rows are logged as rows, regardless of binlog_format, because audits compare the two commits. The
   other settings that decide the form in the log must be as the plan read them (logged_form.py), or
   the script changes nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from binlog.quoting import quote_string
from gtid import GtidSet
from gtid.counted_nouns import counted
from repair.content.transaction_content import key_condition
from repair.model.actions import MakeRowsAlike, RedoTransactions, UndoRows
from repair.model.replication_model import ModelServer
from repair.model.semi_sync import commits_without_waiting
from repair.scripts.procedure import Procedure, Setting
from repair.scripts.row_procedures import make_rows_alike, row_is
from repair.sql.guard import ONLY_READ_UNLESS_GO, Guard
from repair.sql.privileges import StatementKind
from repair.sql.replay import ROW_SESSION, Replayed, under_gtid
from repair.sql.replay_script import (
    column_guards,
    comment_guards,
    default_engine_guards,
    engine_guards,
    later_columns,
    table_guards,
    trigger_guards,
)
from repair.sql.script import (
    commits_nothing,
    executed,
    literal,
    not_owned,
    still_logs,
    transactions,
)
from topology.readings.version import ServerVersion

_REDONE_PER_SECOND = 100
_ROW_VALUE_OPTIONS = ServerVersion(8, 0, 3)  # binlog_row_value_options
# The first GTID of this server's history; AUTOMATIC if it has none.
_SET = "@@GLOBAL.gtid_executed"
_FIRST_NUMBER = (
    f"SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING({_SET}, 38), ',', 1), ':', 1),"
    " '-', 1)"
)
_PASSED_OVER = f"IF({_SET} = '', 'AUTOMATIC', CONCAT(LEFT({_SET}, 37), {_FIRST_NUMBER}))"
# The condition that replay.py checks before the commit.
_COUNTED = re.compile(r"^(SET @go = @go AND IFNULL\(\()(@rows = [0-9]+)(\), FALSE\);)$")


def undo_rows(action: UndoRows, setting: Setting) -> Procedure:
    """Return the script that sets the rows of one table back, as one unlogged transaction."""
    server, table, count = action.server, action.rows[0].table, len(action.rows)
    written = make_rows_alike(MakeRowsAlike(server, server, action.rows), setting)
    rows = counted(count, "row")
    what = transactions(action.gtids.gtid_count)
    return replace(
        written,
        title=f"undo {rows} of {table.name} on {server} ({what})",
        undo=f"`gtid-audit binlog show '{action.gtids}' SERVER --redo` (SERVER is the DSN of"
        f" {server}) writes their content as SQL. Run it on {server} after SET SESSION sql_log_bin"
        " = 0, because logged there it is errant again (E1); or, if every server is to have it, on"
        " the source",
        risk=f"{server} loses what these transactions wrote; clients may have read it",
        warnings=(
            (
                f"it is not logged, so replicas of {server} need their own step: this plan has one"
                " for every server of the snapshot that has the transactions"
            ),
            "super_read_only must be off while the script runs",
        ),
        check=f"the rows that {action.gtids.shortened()} changed are as they were before",
    )


def redo_transactions(action: RedoTransactions, setting: Setting) -> Procedure:
    """Return the script that runs the transactions again, one by one, under their GTIDs."""
    server, gtids = action.server, action.gtids
    count = gtids.gtid_count
    uuid = setting.before[server].server_uuid
    own = gtids.from_uuid(uuid)
    untaken = (
        commits_nothing(
            server,
            uuid,
            setting.before[server].executed,
            so="they may use these GTIDs, or this script made them",
        ),
    )
    return Procedure(
        title=f"redo {transactions(count)} on {server}",
        session=(*ROW_SESSION, *_log_rows(action.transactions, setting.server)),
        preconditions=(
            not_owned(server, gtids),
            commits_without_waiting(server, setting.server.version),
            Guard(
                "@@SESSION.sql_log_bin = 1",
                f"{server}: this session would not log its changes; nothing was changed",
            ),
            *((still_logs(server),) if setting.server.has_log else ()),
            *comment_guards(action.transactions),
            *default_engine_guards(action.transactions),
            *_logs_as_planned(action.transactions, setting.server),
            *(untaken if own else ()),
            *table_guards(action.transactions),
            *engine_guards(action.transactions),
            *column_guards(action.transactions, at_begin=True),
        ),
        statements=tuple(_statements(action.transactions, own)),
        verifications=(executed(server, gtids), *_rows_are_there(action)),
        check=f"SELECT GTID_SUBTRACT({literal(gtids)}, @@GLOBAL.gtid_executed);  -- empty",
        undo="cannot be undone under the same GTIDs: an executed GTID stays",
        estimated_seconds=1 + count // _REDONE_PER_SECOND,
        estimate_assumes=f"{_REDONE_PER_SECOND} transactions a second",
        if_stopped="some of the transactions are done, each of them completely; "
        + ("audit and plan again" if own else "run the script again"),
        risk=f"restores changes on {server} that clients may have made again in the meantime",
        warnings=(
            (
                f"do not write to these tables on {server} while the script runs; the script first"
                " checks triggers, foreign keys and generated columns"
            ),
        ),
        needs=(
            StatementKind.SET_TAGGED_GTID_NEXT
            if any(tsid.tag for tsid in gtids.tsids)
            else StatementKind.SET_GTID_NEXT,
            *_restricted(action.transactions, setting.server),
            StatementKind.READ_CHANNELS,
            StatementKind.WRITE_ROWS,
        ),
    )


def _restricted(replayed: tuple[Replayed, ...], server: ModelServer) -> Iterator[StatementKind]:
    if any(each.sets_restricted for each in replayed) or any(_log_rows(replayed, server)):
        yield StatementKind.SET_RESTRICTED


def _log_rows(replayed: tuple[Replayed, ...], server: ModelServer) -> Iterator[str]:
    """Yield the session settings for logging rows on a server that logs statements."""
    if any(each.tables for each in replayed) and not server.logs_rows:
        yield "SET SESSION binlog_format = 'ROW';"


def _logs_as_planned(replayed: tuple[Replayed, ...], server: ModelServer) -> Iterator[Guard]:
    """Yield the guards that rows are logged in their original form (logged_form.py)."""
    if not any(each.tables for each in replayed):
        return
    partial = "PARTIAL_JSON" if server.logs_partial_json else ""
    expected = {"binlog_format": "ROW", "binlog_row_image": server.row_image.upper()}
    if server.version >= _ROW_VALUE_OPTIONS:
        expected["binlog_row_value_options"] = partial
    for variable, value in expected.items():
        yield Guard(
            f"@@SESSION.{variable} = {quote_string(value)}",
            f"{server.name}: this session would log rows with another {variable} than the plan saw,"
            " and each audit would report E4; nothing was changed; audit and plan again",
        )


def _rows_are_there(action: RedoTransactions) -> Iterator[Guard]:
    """Yield the guards that the rows are as after the transactions."""
    for row in action.rows or ():
        where = key_condition(row.table, row.key_image)
        yield Guard(
            row_is(row.table, where, row.after),
            f"{action.server}: a row of {row.table.name} is not as the redo leaves it, but the"
            " GTIDs are executed: another plan used them, or the row was changed since; compare it"
            " by hand",
        )


def _statements(replayed: tuple[Replayed, ...], own: GtidSet) -> Iterator[str]:
    for number, each in enumerate(replayed, start=1):
        assert each.gtid is not None, "the action has checked"
        gtid = literal(GtidSet.of(each.gtid))
        yield f"SET @there = GTID_SUBSET({gtid}, @@GLOBAL.gtid_executed);"
        if each.gtid in own:
            yield from Guard(
                "NOT @there",
                f"{each.gtid} was used for another transaction meanwhile; audit with --content",
            ).statements()
        guards = (
            *trigger_guards(each, replayed[:number]),
            *engine_guards((each,)),
            *later_columns(replayed, each),
        )
        for guard in guards:
            yield from replace(guard, condition=f"@there OR {guard.condition}").statements()
        yield from ONLY_READ_UNLESS_GO
        yield f"SET SESSION gtid_next = IF(@go, {quote_string(str(each.gtid))}, {_PASSED_OVER});"
        for line in under_gtid(each.lines):
            yield _COUNTED.sub(r"\1@there OR \2\3", line)
        yield "SET SESSION gtid_next = 'AUTOMATIC';"
