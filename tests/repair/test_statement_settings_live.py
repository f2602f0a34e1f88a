"""A statement done again is logged as it was the first time: under the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from binlog.adapters.stream import ServerLogs
from binlog.events import Query
from compose.native.server import Server
from gtid import GtidSet
from repair.sql.replay_script import Direction
from tests.binlog.material import connect_arguments
from tests.repair.row_rounds import definitions, execute, executed, query, replayed, run, script

pytestmark = pytest.mark.slow  # a rare shape: make nightly

SCHEMA: Final = "settings"
# Of what a QUERY event tells (Query_event_status_vars): what the session had set.
_FLAGS2, _SQL_MODE, _AUTO_INCREMENT, _CHARSETS, _TIME_ZONE, _LC_TIME = 0, 1, 3, 4, 5, 7
_EXPLICIT_DEFAULTS, _UTF8MB4_COLLATION, _PRIMARY_KEY = 16, 18, 19
_SET_BY_THE_SESSION: Final = frozenset(
    {
        _SQL_MODE,
        _AUTO_INCREMENT,
        _CHARSETS,
        _TIME_ZONE,
        _LC_TIME,
        _EXPLICIT_DEFAULTS,
        _UTF8MB4_COLLATION,
        _PRIMARY_KEY,
    }
)
# sql_auto_is_null, foreign_key_checks, unique_checks (query_options.h).
_FLAGS: Final = 1 << 14 | 1 << 26 | 1 << 27

EVERYWHERE: Final = (
    "foreign_key_checks = 0",
    "unique_checks = 0",
    "sql_auto_is_null = 1",
    "foreign_key_checks = 0, unique_checks = 0, sql_auto_is_null = 1",
    "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "auto_increment_increment = 7, auto_increment_offset = 3",
    "character_set_client = latin1, collation_connection = latin1_german2_ci",
    "collation_server = utf8_bin",
    "time_zone = '+05:30'",
    "lc_time_names = 'de_DE'",
    "timestamp = 1700000000.25",
)
MODERN: Final = (
    "sql_require_primary_key = 1",
    "explicit_defaults_for_timestamp = 0",
    "default_collation_for_utf8mb4 = 'utf8mb4_general_ci'",
)


@pytest.fixture(params=["mysql56", "mysql97"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found: Server = request.getfixturevalue(request.param)
    execute(found, f"CREATE DATABASE {SCHEMA}")
    yield found
    execute(found, f"DROP DATABASE {SCHEMA}")


def _logged(server: Server, gtids: GtidSet) -> list[tuple[object, ...]]:
    """What was logged of each statement, and of its session before when it ran."""
    logs = ServerLogs(connect_arguments(server), timeout_seconds_max=30)
    found: list[tuple[object, ...]] = []
    for group in logs.events_of(gtids):
        for event in group.events:
            if isinstance(event.body, Query) and event.body.sql not in {b"BEGIN", b"COMMIT"}:
                status = dict(event.body.status)
                flags = status.get(_FLAGS2, 0) & _FLAGS
                told = {code: status[code] for code in status if code in _SET_BY_THE_SESSION}
                zone, mode = event.body.time_zone, event.body.sql_mode
                sql = event.body.sql.decode()
                found.append((sql, flags, mode, zone, told, event.header.timestamp_seconds))
    return found


def test_the_same_settings_are_logged_again(server: Server) -> None:
    table = "CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(99), w DATETIME(6))"
    execute(server, f"USE {SCHEMA}", table)
    before = executed(server)
    settings = (*EVERYWHERE, *(MODERN if server.version >= (8, 0, 22) else ()))
    for number, setting in enumerate(("autocommit = 1", *settings)):
        execute(
            server,
            f"USE {SCHEMA}",
            "SET SESSION binlog_format = 'STATEMENT'",
            f"SET SESSION {setting}",
            f"INSERT INTO s (a, w) VALUES ('{number}', NOW(6))",
            f"CREATE TABLE t{number} (id INT PRIMARY KEY, w TIMESTAMP)",
        )
    wanted = executed(server) - before
    first = _logged(server, wanted)
    rows = query(server, f"SELECT * FROM {SCHEMA}.s ORDER BY id")
    assert len(first) == 2 * (len(settings) + 1)
    told = [
        repr((one[1:-1], other[1:-1])) for one, other in zip(first[::2], first[1::2], strict=True)
    ]
    assert len(set(told)) == len(settings), "each has told, but for the timestamp"
    tables = [f"{SCHEMA}.t{number}" for number in range(len(settings) + 1)]
    execute(server, f"DELETE FROM {SCHEMA}.s", f"DROP TABLE {', '.join(tables)}")
    before = executed(server)
    redo = script(Direction.REDO, replayed(server, wanted, Direction.REDO))
    run(server, f"SET SESSION binlog_format = 'STATEMENT';\n{redo}")
    assert _logged(server, executed(server) - before) == first
    assert query(server, f"SELECT * FROM {SCHEMA}.s ORDER BY id") == rows


def test_rows_are_done_again_under_their_own_settings(server: Server) -> None:
    """Whatever the statement before them had set, in the same script."""
    execute(
        server,
        f"USE {SCHEMA}",
        "CREATE TABLE s (a VARCHAR(30), b VARCHAR(9))",
        "CREATE TABLE r (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8, w TIMESTAMP NULL)",
    )
    before = executed(server)
    for number in range(2):
        execute(
            server,
            f"USE {SCHEMA}",
            "SET SESSION binlog_format = 'STATEMENT', time_zone = '+05:30'",
            "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT', foreign_key_checks = 0",
            "INSERT INTO s VALUES (NOW() || '', '\\')",
            "SET SESSION binlog_format = 'ROW', time_zone = '+00:00', sql_mode = ''",
            "SET SESSION foreign_key_checks = 1",
            f"INSERT INTO r VALUES ({number}, 'ü\\n\\\\', '2020-01-01 00:00:00')",
        )
    # What depends on the moment is logged as rows, in the same transaction.
    execute(
        server,
        f"USE {SCHEMA}",
        "SET SESSION binlog_format = 'MIXED', time_zone = '+05:30'",
        "BEGIN",
        "INSERT INTO s VALUES (NOW(), 'b')",
        "INSERT INTO r VALUES (7, LEFT(UUID(), 8), '2020-01-01 05:30:00')",
        "COMMIT",
    )
    wanted = executed(server) - before
    of_rows = f"SET time_zone = '+00:00'; SELECT id, HEX(a), w FROM {SCHEMA}.r ORDER BY id;\n"
    rows = server.client(of_rows).stdout
    assert rows.count("C3BC0A5C\t2020-01-01 00:00:00") == 2
    assert rows.count("2020-01-01 00:00:00") == 3
    known = definitions(server, SCHEMA)
    redo = script(Direction.REDO, replayed(server, wanted, Direction.REDO, known))
    execute(server, f"DELETE FROM {SCHEMA}.r")
    run(server, redo)
    assert server.client(of_rows).stdout == rows
