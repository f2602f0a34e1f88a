"""Which columns of a result gtid-audit reads, and what a result is by its columns. Pure.

1. The names of columns in SHOW REPLICA STATUS come from topology/readings/dialect.py.
2. A value that a SELECT shows has the variable's name, with or without its scope. The scope counts:
   a session has values of its own for gtid_owned and, before 8.0, for gtid_executed.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final

from topology.readings.dialect import (
    BINARY_LOG_FILTERS,
    FILTER_COLUMNS,
    OLD_STATEMENTS,
    STATUS_COLUMNS,
)
from topology.readings.vendors import BASEDIR

MARKER: Final = "statement"  # of a result that shows which statement follows
EXECUTED_COLUMN: Final = "Executed_Gtid_Set"  # of SHOW REPLICA STATUS and SHOW BINARY LOG STATUS
CLOCK: Final = "server_clock"
_VALUES: Final = frozenset(
    (
        *("gtid_executed", "gtid_purged", "gtid_owned", "gtid_mode", "server_uuid", "server_id"),
        *("version", "version_comment", BASEDIR, CLOCK),
    )
)
_CLOCKS: Final = re.compile(r"utc_timestamp(?:\(\d?\))?|@@timestamp|unix_timestamp\(\)")
_VARIABLE: Final = re.compile(r"(?:@@(?:(?P<scope>global|session|local)\.)?)?(?P<name>\w+)")
_STATUS: Final = frozenset(name for names in STATUS_COLUMNS.values() for name in names)
_WORKER: Final = frozenset(
    (
        *("channel", "worker_id", "errno", "error", "state", "is_hidden", "applying"),
        *("applying_seconds", "awaits", "applied", "applied_at", "queued", "queued_committed_at"),
        *("waits_for_row", "retries_for_row", "workers", "thread", "seconds"),
    )
)
_GROUP: Final = frozenset(
    (
        *("member_role", "member_state", "received", "is_this", "host", "port"),
        *("recovery_errno", "recovery_error", "view_id"),
    )
)
_OTHER: Final = frozenset(
    (MARKER, EXECUTED_COLUMN, "File", "Position", "Log_name", "File_size", "Encrypted")
) | frozenset(("Variable_name", "Value", "name", "source"))
_COLUMNS: Final = (
    _STATUS | frozenset(FILTER_COLUMNS) | frozenset(BINARY_LOG_FILTERS) | _WORKER | _GROUP | _OTHER
)


class PastedKind(Enum):
    """What a result is. The values are the markers in the statements of --questions."""

    CHANNELS = "channels"
    WORKERS = "workers"
    PROCESSES = "processes"  # 5.6: the replication threads of the process list
    ROW_LOCKS = "row_locks"  # 5.6: the threads that wait for a row lock
    LOG_END = "log_end"
    BINARY_LOGS = "binary_logs"
    VARIABLES = "variables"
    SOURCES_OF_VALUES = "sources_of_values"
    GROUP = "group"
    VALUES = "values"
    UPTIME = "uptime"  # as VARIABLES, of SHOW GLOBAL STATUS
    END = "end"  # a marker only: the statements before it were executed


# The columns that show what a result is. One of each inner group must be there.
_SIGNS: Final = (
    (PastedKind.CHANNELS, (STATUS_COLUMNS["receiver_running"], STATUS_COLUMNS["source_host"])),
    (PastedKind.LOG_END, (("File",), ("Position",))),
    (PastedKind.BINARY_LOGS, (("Log_name",), ("File_size",))),
    (PastedKind.VARIABLES, (("Variable_name",), ("Value",))),
    (PastedKind.WORKERS, (("channel",), ("worker_id",))),
    (PastedKind.PROCESSES, (("workers",), ("thread",))),
    (PastedKind.SOURCES_OF_VALUES, (("name",), ("source",))),
    (PastedKind.GROUP, (("member_state",), ("received",))),
)


_MARKERS: Final = frozenset(kind.value for kind in PastedKind)
_STATEMENTS: Final = (
    (PastedKind.CHANNELS, re.compile(rf"SHOW (?:REPLICA|{OLD_STATEMENTS['REPLICA']}) STATUS")),
    (PastedKind.LOG_END, re.compile(rf"SHOW (?:BINARY LOG|{OLD_STATEMENTS['BINARY LOG']}) STATUS")),
    (PastedKind.BINARY_LOGS, re.compile(rf"SHOW (?:BINARY|{OLD_STATEMENTS['BINARY LOG']}) LOGS")),
    (PastedKind.VARIABLES, re.compile("SHOW (?:GLOBAL |SESSION )?VARIABLES(?: .*)?")),
    (PastedKind.WORKERS, re.compile("SELECT .*REPLICATION_APPLIER_STATUS_BY_WORKER.*")),
    (PastedKind.PROCESSES, re.compile("SELECT .* WORKERS\\b.*PROCESSLIST.*")),
    (PastedKind.ROW_LOCKS, re.compile("SELECT .*INNODB_TRX.*")),
    (PastedKind.GROUP, re.compile("SELECT .*REPLICATION_GROUP_MEMBERS.*")),
    (PastedKind.SOURCES_OF_VALUES, re.compile("SELECT .*VARIABLES_INFO.*")),
    (PastedKind.VALUES, re.compile("SELECT .*GTID_(?:EXECUTED|PURGED|OWNED)\\b.*")),
)


def variable_of(column: str) -> tuple[str, bool] | None:
    """Return the variable that a column shows, and whether the value is the global one.

    A name without `@@` is an alias, as in the statements of --questions: global. None: gtid-audit
    reads no such variable.
    """
    lowered = column.strip().lower()
    if _CLOCKS.fullmatch(lowered):
        return CLOCK, True
    found = _VARIABLE.fullmatch(lowered)
    if found is None or found["name"] not in _VALUES:
        return None
    return found["name"], not lowered.startswith("@@") or found["scope"] == "global"


def kind_of(columns: Sequence[str]) -> PastedKind | None:
    """Return what a result with these columns is; None: gtid-audit reads none of it."""
    names = {*columns}
    for kind, signs in _SIGNS:
        if all(names & {*sign} for sign in signs):
            return kind
    if names == {"thread"}:
        return PastedKind.ROW_LOCKS
    return PastedKind.VALUES if any(variable_of(each) is not None for each in columns) else None


def kind_of_statement(text: str) -> PastedKind | None:
    """Return what a statement shows, from its text or its marker; None if it is not known.

    FOR CHANNEL is not recognised: without rows it means that there is no channel of that name.
    """
    if text in _MARKERS:
        return PastedKind(text)
    words = text.upper()
    return next((kind for kind, pattern in _STATEMENTS if pattern.fullmatch(words)), None)


def is_global(text: str) -> bool:
    """Return whether a statement shows global variables, by its text or its marker."""
    return text == PastedKind.VARIABLES.value or text.upper().startswith("SHOW GLOBAL ")


def is_read(column: str) -> bool:
    """Return whether gtid-audit reads a column of this name."""
    return column in _COLUMNS or variable_of(column) is not None


def is_strong(columns: Sequence[str]) -> bool:
    """Return whether these words, separated by tabs, are certainly the names of columns.

    One word alone must be a marker or a variable with `@@`: a word of a text is no header.
    """
    if len(columns) == 1:
        word = columns[0]
        return word == MARKER or (word.startswith("@@") and variable_of(word) is not None)
    kind = kind_of(columns)
    if kind is PastedKind.VALUES:
        return all(variable_of(each) is not None for each in columns)
    return kind is not None
