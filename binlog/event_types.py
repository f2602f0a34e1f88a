"""MySQL's type codes of binlog events, and groups of related types.

The codes are those of `enum Log_event_type`, libs/mysql/binlog/event/binlog_event.h (8.3 and later)
and libbinlogevents/include/binlog_event.h (before). MySQL never changes an assigned code. This file
does not read bytes.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from types import MappingProxyType


class EventType(IntEnum):
    """Every event type that a server of 5.0 or later writes, with MySQL's name."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    # 7 has not been written since 4.0.
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42


class RowKind(Enum):
    """What a row event did to its rows."""

    WRITE = "write"
    UPDATE = "update"
    DELETE = "delete"


ROW_EVENTS: Mapping[int, RowKind] = MappingProxyType(
    {
        EventType.WRITE_ROWS_V1: RowKind.WRITE,
        EventType.UPDATE_ROWS_V1: RowKind.UPDATE,
        EventType.DELETE_ROWS_V1: RowKind.DELETE,
        EventType.WRITE_ROWS: RowKind.WRITE,
        EventType.UPDATE_ROWS: RowKind.UPDATE,
        EventType.DELETE_ROWS: RowKind.DELETE,
        EventType.PARTIAL_UPDATE_ROWS: RowKind.UPDATE,
    }
)

ROWS_WRITTEN, ROWS_UPDATED, ROWS_DELETED = (
    tuple(code for code, changed in ROW_EVENTS.items() if changed is kind) for kind in RowKind
)

# Version 1 has no "extra row data" between its flags and its column count (rows_event.h).
ROW_EVENTS_V1: frozenset[int] = frozenset(
    {EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1}
)

# The first event of a transaction.
GTID_EVENTS = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED)

# Written before their statement, also outside of BEGIN (log_event.cc).
OPENING_EVENTS = (
    EventType.INTVAR,
    EventType.RAND,
    EventType.USER_VAR,
    EventType.ROWS_QUERY,
    EventType.BEGIN_LOAD_QUERY,
    EventType.APPEND_BLOCK,
)

# MariaDB's own event types start at 160 (MariaDB's sql/log_event.h: ANNOTATE_ROWS, CHECKPOINT,
# GTID, GTID_LIST, START_ENCRYPTION, the compressed types). MySQL uses none of them.
MARIADB_EVENTS: range = range(160, 172)
