"""Writes logged statements as SQL, each with the settings of its original session.

1. Order and meaning follow Query_event's status variables (statement_events.h) and what mysqlbinlog
   prints for them (sql/log_event.cc): the settings on which a statement depends are set before it.
2. The statement's bytes are unchanged. They are in the client's character set, which is set before.
   So a text here may contain bytes that are not UTF-8, as lone surrogates
   (errors="surrogateescape").
3. An applier ignores sql_generate_invisible_primary_key (8.0.30): the created table has the columns
   that the log shows. So it is off here.
4. INSERT_ID, LAST_INSERT_ID, RAND's seeds and user variables have their own events before the
   statement.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from binlog.cursor import Cursor
from binlog.event_types import EventType
from binlog.events import Event, Opaque, Query
from binlog.quoting import quote_identifier, quote_string
from binlog.schema.charset_names import BINARY, CHARSET_OF_COLLATION
from repair.sql.row_literals import CannotRender

# No statement contains it, and it is a comment for a client that ignores the client's DELIMITER.
DELIMITER = "/*!*/;"

# Query_event_status_vars.
_FLAGS2, _AUTO_INCREMENT, _CHARSETS, _LC_TIME_NAMES, _COLLATION_DATABASE = 0, 3, 4, 7, 8
_MICROSECONDS, _EXPLICIT_DEFAULTS, _UTF8MB4_COLLATION = 13, 16, 18
_REQUIRE_PRIMARY_KEY, _TABLE_ENCRYPTION = 19, 20
_ONE_AND_ONE = 0x1_0001
# Query_event's flags2: OPTION_… bits, query_options.h. The value is that of a set bit.
_FLAG_VARIABLES = (
    (1 << 14, "sql_auto_is_null", 1),
    (1 << 26, "foreign_key_checks", 0),
    (1 << 27, "unique_checks", 0),
)
# "0 means not logged" of sql_require_primary_key is 0xff, as for the next one.
_NOT_LOGGED = 0xFF
# LOG_EVENT_SUPPRESS_USE_F, binlog_event.h: CREATE DATABASE has the schema it creates as its own.
_SUPPRESS_USE = 0x8
_CREATES_TABLE = re.compile(rb"\bCREATE\b.*\bTABLE\b", re.IGNORECASE | re.DOTALL)
_NO_GENERATED_KEY = " /*!80030 , sql_generate_invisible_primary_key = 0 */"
_INTVAR_NAMES = {1: "last_insert_id", 2: "insert_id"}


def statement_lines(event: Event, query: Query) -> Iterator[str]:
    """Yield one statement with its session settings. Raises CannotRender.

    Every line except the statement's own ends with `;`.
    """
    if event.header.type_code == EventType.EXECUTE_LOAD_QUERY:
        raise CannotRender(
            "LOAD DATA was logged as a statement, and its data separately: use mysqlbinlog for it"
        )
    if query.error_code:
        raise CannotRender(f"a statement that ended with error {query.error_code} on its server")
    if query.schema and not event.header.flags & _SUPPRESS_USE:
        yield f"USE {quote_identifier(query.schema)};"
    no_key = _NO_GENERATED_KEY if _may_create_table(query) else ""
    yield f"SET {', '.join(_settings(event, query))}{no_key};"
    sql = query.sql.decode("utf-8", errors="surrogateescape")
    if DELIMITER in sql:
        raise CannotRender(f"a statement that contains {DELIMITER}")
    yield f"DELIMITER {DELIMITER}"
    yield f"{sql}\n{DELIMITER}"
    yield "DELIMITER ;"


def sets_restricted(query: Query) -> bool:
    """Return whether a statement's session sets variables that need a privilege."""
    return _may_create_table(query) or _requires_key(query) is not None


def _may_create_table(query: Query) -> bool:
    return _CREATES_TABLE.search(query.sql) is not None


def _requires_key(query: Query) -> int | None:
    """Return the logged value of sql_require_primary_key."""
    logged = dict(query.status).get(_REQUIRE_PRIMARY_KEY, _NOT_LOGGED)
    return None if logged == _NOT_LOGGED else logged


def _settings(event: Event, query: Query) -> Iterator[str]:
    status = dict(query.status)
    flags = status.get(_FLAGS2, 0)
    for bit, name, when_set in _FLAG_VARIABLES:
        yield f"{name} = {when_set if flags & bit else 1 - when_set}"
    if query.sql_mode is not None:
        yield f"sql_mode = {query.sql_mode}"
    # Not logged where both are 1 (Query_log_event, sql/log_event.cc).
    auto_increment = status.get(_AUTO_INCREMENT, _ONE_AND_ONE)
    yield f"auto_increment_increment = {auto_increment & 0xFFFF}"
    yield f"auto_increment_offset = {auto_increment >> 16}"
    if _CHARSETS in status:
        numbers = status[_CHARSETS]
        yield f"character_set_client = {numbers & 0xFFFF}"
        yield f"collation_connection = {numbers >> 16 & 0xFFFF}"
        yield f"collation_server = {numbers >> 32}"
    if query.time_zone is not None:
        yield f"time_zone = {quote_string(query.time_zone)}"
    yield f"lc_time_names = {status.get(_LC_TIME_NAMES, 0)}"
    if _EXPLICIT_DEFAULTS in status:
        yield f"explicit_defaults_for_timestamp = {status[_EXPLICIT_DEFAULTS]}"
    if _UTF8MB4_COLLATION in status:
        yield f"default_collation_for_utf8mb4 = {status[_UTF8MB4_COLLATION]}"
    if (requires_key := _requires_key(query)) is not None:
        yield f"sql_require_primary_key = {requires_key}"
    if status.get(_TABLE_ENCRYPTION, _NOT_LOGGED) != _NOT_LOGGED:
        yield f"default_table_encryption = {status[_TABLE_ENCRYPTION]}"
    yield f"timestamp = {event.header.timestamp_seconds}.{status.get(_MICROSECONDS, 0):06d}"


def preparation(event: Event, body: Opaque) -> str | None:
    """Return what an event sets for the statement after it; None if it sets nothing.

    Raises CannotRender, `MalformedBody`.
    """
    write = _PREPARATIONS.get(event.header.type_code)
    return None if write is None else write(Cursor(body.body))


def _intvar(cursor: Cursor) -> str:
    """Return the SQL of an Intvar_event (statement_events.h)."""
    kind = cursor.integer(1, "the kind of number")
    if kind not in _INTVAR_NAMES:
        raise cursor.fail(f"expected INSERT_ID or LAST_INSERT_ID, found {kind}")
    return f"SET {_INTVAR_NAMES[kind]} = {cursor.integer(8, 'a number')};"


def _rand(cursor: Cursor) -> str:
    """Return the SQL of a Rand_event (statement_events.h)."""
    seeds = (cursor.integer(8, "a seed"), cursor.integer(8, "a seed"))
    return f"SET rand_seed1 = {seeds[0]}, rand_seed2 = {seeds[1]};"


# Item_result, include/field_types.h.
_STRING, _REAL, _INTEGER, _DECIMAL = 0, 1, 2, 4


def _user_variable(cursor: Cursor) -> str:
    """Return the SQL of a User_var_event (statement_events.h)."""
    name = cursor.text(cursor.integer(4, "the length of a name"), "the name of a variable")
    variable = f"@{quote_identifier(name)}"
    if cursor.integer(1, "the NULL flag"):
        return f"SET {variable} := NULL;"
    kind = cursor.integer(1, "the type of a variable")
    collation = cursor.integer(4, "a collation")
    value = cursor.take(cursor.integer(4, "the length of a value"), "a value")
    flags = cursor.integer(1, "the flags") if cursor.remaining else 0
    if kind == _STRING:
        charset = CHARSET_OF_COLLATION.get(collation)
        if charset is None:
            raise CannotRender(
                f"variable {variable} has collation {collation}, which is not known here"
            )
        introducer = "" if charset == BINARY else f"_{charset} "
        written = f"{introducer}0x{value.hex()}" if value else f"{introducer or '_binary '}''"
    elif kind == _REAL:
        double: float = struct.unpack("<d", value)[0]
        written = repr(double) if "e" in repr(double) else f"{double!r}e0"
    elif kind == _INTEGER:
        written = str(int.from_bytes(value, "little", signed=not flags & 1))
    else:
        raise CannotRender(f"variable {variable} is a DECIMAL: use mysqlbinlog for it")
    return f"SET {variable} := {written};"


def _load(_cursor: Cursor) -> str:
    raise CannotRender("LOAD DATA was logged as a statement, and its data with it")


_PREPARATIONS: Mapping[int, Callable[[Cursor], str]] = MappingProxyType(
    {
        EventType.INTVAR: _intvar,
        EventType.RAND: _rand,
        EventType.USER_VAR: _user_variable,
        EventType.BEGIN_LOAD_QUERY: _load,
        EventType.APPEND_BLOCK: _load,
    }
)
