r"""The statements whose output makes a complete reading of a server of one version. Pure.

1. They are those of adapters/mysql.py, in the same order: the order is part of the proof.
2. Before each one, a SELECT prints a marker. In batch mode a statement without rows prints nothing;
   only the markers show that it was executed.
3. Each ends with a semicolon. The mysql client of 9.x rejects \G in batch mode (tried on 9.7.4).
"""

from collections.abc import Callable, Iterator
from typing import Final

from topology.adapters.offline.recognised import MARKER, PastedKind
from topology.adapters.reading_statements import (
    IDENTITY,
    ROW_LOCK_WAITS,
    UPTIME,
    VARIABLES_INFO,
    VERSION,
    group_statement,
    processlist_statement,
    settings_statement,
    workers_statement,
)
from topology.readings.dialect import Dialect, dialect_of
from topology.readings.version import ServerVersion

CLOCK_LINES: Final = "`date -u +%FT%TZ` before and after the statements"
_OLD, _NEW = ServerVersion(5, 6, 0), ServerVersion(9, 7, 0)
_HOW: Final = """\
-- The statements for `gtid-audit audit --offline`, for a server of version {version}.
-- They only read. Save their output in one file for each server:
--
--   {{ date -u +%FT%TZ; mysql --vertical --force < FILE 2>&1; date -u +%FT%TZ; }} > NAME.first.txt
--
-- When all servers are done, do it again for all of them: NAME.second.txt.
"""
_STATEMENTS: Final = {
    "uptime": UPTIME,
    "version": VERSION,
    "version_comment": VERSION,
    "server_clock": "SELECT UTC_TIMESTAMP(6) AS server_clock",
    # In this order: what commits meanwhile is in one of them.
    "gtid_owned": (
        "SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_purged, @@GLOBAL.gtid_executed (in this order)"
    ),
}


def statement_of(name: str) -> str:
    """Return the statement that shows a variable."""
    return _STATEMENTS.get(name, f"SELECT @@GLOBAL.{name}")


def channels_statement(version: ServerVersion | None) -> str:
    """Return the statement that shows the channels; both forms without a version."""
    return _either(version, lambda dialect: dialect.show_replica_status)


def log_end_statement(version: ServerVersion | None) -> str:
    """Return the statement that shows the end of the log; both forms without a version."""
    return _either(version, lambda dialect: dialect.show_binary_log_status)


def statements_for(version: ServerVersion) -> Iterator[tuple[PastedKind, str]]:
    """Yield the statements of a complete reading, in order, with their markers."""
    dialect = dialect_of(version)
    yield PastedKind.VALUES, VERSION
    yield PastedKind.VALUES, IDENTITY
    yield PastedKind.UPTIME, UPTIME
    yield PastedKind.CHANNELS, dialect.show_replica_status
    if dialect.has_worker_status:
        yield PastedKind.WORKERS, workers_statement(dialect)
    else:
        yield PastedKind.PROCESSES, processlist_statement(dialect)
        yield PastedKind.ROW_LOCKS, ROW_LOCK_WAITS
    yield PastedKind.LOG_END, dialect.show_binary_log_status
    yield PastedKind.BINARY_LOGS, "SHOW BINARY LOGS"
    yield PastedKind.VARIABLES, settings_statement()
    if dialect.has_variables_info:
        yield PastedKind.SOURCES_OF_VALUES, VARIABLES_INFO
    if dialect.has_worker_status:  # the tables of both came with 5.7
        yield PastedKind.GROUP, group_statement(dialect)


def script_for(version: ServerVersion) -> str:
    """Return the statements as an SQL script, with the way to run it."""
    lines = [_HOW.format(version=version)]
    for kind, statement in statements_for(version):
        lines.append(f"{_marker(kind)}\n{statement};\n")
    lines.append(f"{_marker(PastedKind.END)}\n")
    return "\n".join(lines)


def _marker(kind: PastedKind) -> str:
    return f"SELECT '{kind.value}' AS {MARKER};"


def _either(version: ServerVersion | None, word: Callable[[Dialect], str]) -> str:
    if version is not None:
        return word(dialect_of(version))
    return f"{word(dialect_of(_NEW))} (before 8.0.22 or 8.2: {word(dialect_of(_OLD))})"
