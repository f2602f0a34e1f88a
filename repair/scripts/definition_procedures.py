"""The script that changes one definition on a replica by one DDL statement, without logging it.

1. `sql_log_bin = 0`: no GTID is created, and no other server changes.
2. Each part is as the plan read it, or already as on the source; otherwise nothing is changed. A
   part that is as on the source makes the statement unnecessary: a second run changes nothing.
3. The statement waits for metadata locks for LOCK_SECONDS_MAX, and fails with 1205 if a transaction
   or a query keeps them longer. The default is a year, in which every later query and the applier
   would wait behind it.
4. ALGORITHM is written, so that the server refuses the statement (1845, 1846) if it would have to
   copy the table after all. Nothing is changed then.
5. sql_mode is strict: ALTER TABLE fails where it would otherwise change a value.
6. If a column gets its place in a table whose rows matter (`rows_at`), the table is locked first.
   No transaction is applied to it between the check of gtid_executed and the ALTER.
7. One statement is executed completely or not at all, also if the server is killed (8.0 and later:
   atomic DDL). Before 8.0, a server that is killed in the middle may leave a table `#sql-…`; the
   script is run again, and what is left is removed by hand.
"""

from collections.abc import Iterator
from typing import Final

from binlog.quoting import quote_identifier, quote_string
from repair.content.definition_parts import DefinitionPart
from repair.model.actions import ChangeDefinition
from repair.scripts.procedure import Procedure, Setting
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind
from repair.sql.script import literal, unless_done

LOCK_SECONDS_MAX: Final = 5
_BYTES_PER_SECOND: Final = 20 << 20  # that an index or a copy reads and writes
_SESSION: Final = (
    f"SET SESSION sql_log_bin = 0, SESSION lock_wait_timeout = {LOCK_SECONDS_MAX},"
    " SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES';"
)


def change_definition(action: ChangeDefinition, _setting: Setting) -> Procedure:
    """Return the script that runs one DDL statement on a replica."""
    name, table = action.server, f"{action.schema}.{action.name}"
    seconds = action.data_bytes // _BYTES_PER_SECOND
    is_table = action.statement.startswith("ALTER TABLE")
    waits = f"; the applier of {name} waits while it runs" if action.blocks_writes else ""
    return Procedure(
        title=f"{action.title} on {name}",
        session=(_SESSION, *action.session),
        preconditions=(
            Guard(
                "@@SESSION.sql_log_bin = 0",
                f"{name}: this session would log its DDL under a new GTID; use an account that may"
                " set sql_log_bin; nothing was changed",
            ),
            *(_as_seen(action, each) for each in action.parts),
        ),
        statements=tuple(_statements(action)),
        verifications=tuple(_reached(action, each) for each in action.parts),
        check=f"SHOW CREATE {'TABLE' if is_table else 'VIEW'} {_quoted(action)};  -- as on"
        f" {action.source}",
        undo=f"SET SESSION sql_log_bin = 0; {action.undo};",
        estimated_seconds=1 + seconds,
        estimate_assumes=f"{_BYTES_PER_SECOND >> 20} MiB a second, and no wait for a lock",
        if_stopped="either the statement was executed or it was not; run the script again",
        risk=f"queries of {table} on {name} wait for up to {LOCK_SECONDS_MAX} s{waits}",
        needs=(
            StatementKind.SET_SQL_LOG_BIN,
            StatementKind.READ_CHANNELS,
            StatementKind.CHANGE_DEFINITION if is_table else StatementKind.CREATE_VIEW,
        ),
    )


def _statements(action: ChangeDefinition) -> Iterator[str]:
    is_locked = action.rows_at is not None
    if is_locked:  # if the client goes on after errors (--force), the condition ends the script
        yield from Guard(
            "@@SESSION.error_count = 0",
            f"{action.server}: {action.schema}.{action.name} could not be locked; nothing was"
            " changed; run this again",
            tries=(f"LOCK TABLES {_quoted(action)} WRITE;",),
        ).statements()
    reached = " AND ".join(_is_goal(each) for each in action.parts)
    yield f"SET @done = IFNULL(({reached}), FALSE);"
    if action.rows_at is not None:
        yield from Guard(
            f"@done OR GTID_SUBSET(@@GLOBAL.gtid_executed, {literal(action.rows_at)})",
            f"{action.server}: it has executed transactions that {action.source} committed after"
            " its rows were read: values may be lost; nothing was changed; audit and plan again",
        ).statements()
    yield from unless_done(action.statement)
    if is_locked:
        yield "UNLOCK TABLES;"


def _is_goal(part: DefinitionPart) -> str:
    return f"{part.question} <=> {quote_string(part.goal or '')}"


def _as_seen(action: ChangeDefinition, part: DefinitionPart) -> Guard:
    seen = "NULL" if part.seen is None else quote_string(part.seen)
    return Guard(
        f"{part.question} <=> {seen} OR {_is_goal(part)}",
        f"{action.server}: {part.name} of {action.schema}.{action.name} changed since the plan was"
        " made, or this account may not see it; nothing was changed; audit and plan again",
    )


def _reached(action: ChangeDefinition, part: DefinitionPart) -> Guard:
    return Guard(
        _is_goal(part),
        f"{action.server}: {part.name} of {action.schema}.{action.name} is not as on"
        f" {action.source}; audit and plan again",
    )


def _quoted(action: ChangeDefinition) -> str:
    return f"{quote_identifier(action.schema)}.{quote_identifier(action.name)}"
