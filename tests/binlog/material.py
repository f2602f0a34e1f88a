"""What the servers of these tests are made to write: every kind of event, old form and new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet

FOREIGN = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaff"

_EMPTY_TRANSACTION = (
    f"SET gtid_next = '{FOREIGN}:5'",
    "BEGIN",
    "COMMIT",
    "SET gtid_next = 'AUTOMATIC'",
)

# Apart from the other types, because mysqlbinlog cannot print it: "Don't know how to handle".
_GEOMETRY = (
    "CREATE TABLE d.geometries (a INT, k GEOMETRY, b INT)",
    "SET binlog_format = 'ROW'",
    (
        "INSERT INTO d.geometries VALUES (1, ST_GeomFromText('POINT(1 1)'), 1), (2, NULL, 2),"
        " (3, ST_GeomFromText('LINESTRING(0 0, 1 1, 2 2)'), 3)"
    ),
)

_COLUMNS = (
    "a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20), bb VARCHAR(300), d DECIMAL(10,3),"
    " d2 DECIMAL(38,19), e DATETIME(3), f CHAR(10), ff CHAR(255) CHARACTER SET utf8,"
    " g BIT(11), h ENUM('x','y'), i SET('p','q'), j TEXT, j2 TINYBLOB, j3 MEDIUMTEXT, j4 LONGBLOB,"
    " l TIME(6), m TIMESTAMP(2) NULL, n FLOAT, o DOUBLE, p YEAR, q TINYINT, r MEDIUMINT,"
    " s SMALLINT, t BIGINT, u DATE, v BINARY(5), w VARBINARY(400)"
)
_INSERT = (
    "INSERT INTO d.t (b, bb, d, d2, e, f, ff, g, h, i, j, j2, j3, j4, l, m, n, o, p, q, r, s, t, u, v, w)"
    " VALUES ('x', REPEAT('y', 290), 1.5, -123456789012345.125, '2024-02-29 23:59:59.123', 'f', 'ü',"
    " 5, 'x', 'p,q', REPEAT('j', 1000), 'b', 'm', 'l', '-10:00:00.000001',"
    " '2024-02-29 23:59:59', 1.5, 2.5, 2020, 1, 2, 3, 4, '2024-01-01', 'v', 'w'), ({nulls})"
).replace("{nulls}", ", ".join(["NULL"] * 26))

SCRIPT_56 = (
    "CREATE DATABASE d",
    f"CREATE TABLE d.t ({_COLUMNS}) ENGINE=InnoDB",
    "CREATE TABLE d.m (a INT) ENGINE=MyISAM",
    "CREATE VIEW d.v AS SELECT a FROM d.t",
    *_GEOMETRY,
    *_EMPTY_TRANSACTION,
    "SET binlog_format = 'STATEMENT'",
    "INSERT INTO d.t (b) VALUES ('statement')",
    "INSERT INTO d.m VALUES (1)",
    "SET binlog_format = 'ROW'",
    _INSERT,
    "INSERT INTO d.m VALUES (1), (2), (3)",
    "UPDATE d.t SET b = 'updated'",
    "DELETE FROM d.t WHERE a = 2",
    "BEGIN",
    "INSERT INTO d.t (b) VALUES ('one'), ('two')",
    "UPDATE d.t SET b = 'three' WHERE b = 'two'",
    "COMMIT",
)

# The seed's case: the view is there already, and 5.6 logs the failure with its error.
FAILING_VIEW = "CREATE VIEW d.v AS SELECT a FROM d.t"

SCRIPT_97 = (
    "CREATE DATABASE d",
    (
        f"CREATE TABLE d.t ({_COLUMNS}, x JSON, y VECTOR(3), z JSON,"
        " KEY multi ((CAST(z->'$.a' AS UNSIGNED ARRAY))))"
    ),
    *_GEOMETRY,
    *_EMPTY_TRANSACTION,
    _INSERT,
    "UPDATE d.t SET x = '{\"a\": 1, \"b\": [1, 2, 3]}', y = STRING_TO_VECTOR('[1,2,3]')",
    "SET binlog_row_value_options = 'PARTIAL_JSON'",
    "UPDATE d.t SET x = JSON_SET(x, '$.a', 77)",
    "SET binlog_row_value_options = ''",
    "SET binlog_row_image = 'MINIMAL'",
    "UPDATE d.t SET b = 'minimal' WHERE a = 1",
    "DELETE FROM d.t WHERE a = 2",
    "SET binlog_row_image = 'FULL'",
    "SET binlog_rows_query_log_events = ON",
    "CREATE TABLE d.s SELECT a, b FROM d.t",
    "SET binlog_rows_query_log_events = OFF",
    f"SET gtid_next = '{FOREIGN}:dba:7'",
    "BEGIN",
    "INSERT INTO d.s VALUES (7, 'tagged')",
    "COMMIT",
    "SET gtid_next = 'AUTOMATIC'",
    "XA START 'x1'",
    "INSERT INTO d.s VALUES (8, 'xa')",
    "XA END 'x1'",
    "XA PREPARE 'x1'",
    "XA COMMIT 'x1'",
    "XA START 'x2'",
    "INSERT INTO d.s VALUES (9, 'xa')",
    "XA END 'x2'",
    "XA COMMIT 'x2' ONE PHASE",
    "SET binlog_transaction_compression = ON",
    "INSERT INTO d.s VALUES (10, 'compressed'), (11, 'compressed')",
    "SET binlog_transaction_compression = OFF",
    "SET SESSION binlog_format = 'STATEMENT'",
    "BEGIN",
    "INSERT INTO d.s VALUES (12, 'kept')",
    "SAVEPOINT here",
    "INSERT INTO d.s VALUES (13, 'kept')",
    "COMMIT",
    "SET SESSION binlog_format = 'ROW'",
    "CREATE USER somebody@localhost",
    "DROP TABLE d.s",
)


@dataclass(frozen=True)
class Written:
    """A server and what it wrote: `files` in order, the last one still open."""

    server: Server
    files: tuple[Path, ...]
    executed: GtidSet

    def path(self, number: int) -> Path:
        return self.files[number - 1]


@contextmanager
def written_by(installation: Installation, script: tuple[str, ...]) -> Iterator[Written]:
    with shapes.single(installation) as server:
        server.execute(*script)
        if installation.version < (5, 7):
            with pytest.raises(pymysql.err.OperationalError, match="1050"):
                server.execute(FAILING_VIEW)
        server.execute("SET GLOBAL binlog_checksum = 'NONE'")
        server.execute("INSERT INTO d.t (b) VALUES ('no checksum')")
        server.execute("SET GLOBAL binlog_checksum = 'CRC32'")
        server.execute("INSERT INTO d.t (b) VALUES ('checksum again')")
        names = [str(row[0]) for row in server.query("SHOW BINARY LOGS")]
        executed = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
        yield Written(server, tuple(server.datadir / name for name in names), executed)


def connect_arguments(server: Server) -> dict[str, Any]:
    return {"host": server.host, "port": server.port, "user": "root"}
