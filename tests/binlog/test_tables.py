"""Definitions read from SHOW CREATE TABLE of real servers, and from the statement that made them."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from binlog.schema.apply import definition_of
from binlog.schema.changes import CreateTable
from binlog.schema.charset_names import CHARACTER_BYTES_MAX, CHARSET_OF_COLLATION, charset_name
from binlog.schema.column_types import Timestamps
from binlog.schema.grammar import read_statement
from binlog.schema.show_create import definition_from_create
from binlog.schema.sql_words import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from binlog.schema.table_definitions import (
    CannotFollow,
    Column,
    Generated,
    Key,
    KeyKind,
    TableDefinition,
)
from compose.native.server import Server

SYNTAX_ERROR = 1064
COLUMNS = (
    "int unsigned zerofill",
    "varchar(10) binary",
    "char byte",
    "national char(3)",
    "nvarchar(3)",
    "nchar varying(4)",
    "bool",
    "dec(5,2)",
    "fixed(5)",
    "long varchar",
    "long varbinary",
    "int1",
    "int3 unsigned",
    "double precision",
    "real",
    "float(7,3)",
    "float(30)",
    "float(3)",
    "char(3) ascii",
    "char(3) unicode",
    "enum('a''b','c\\\\d','e ')",
    "set('a','b')",
    "enum('x') charset binary",
    "geometrycollection",
    "point not null",
    "multipoint",
    "timestamp(3) null default current_timestamp(3) on update current_timestamp(3)",
    "timestamp",
    "time(2)",
    "datetime(0)",
    "year",
    "json",
    "vector(3)",
    "vector",
    "bit",
    "bit(9)",
    "bit(3) default b'101'",
    "binary(3) default 0x00",
    "varbinary(7)",
    "char",
    "char(0)",
    "binary",
    "text character set utf8mb4 collate utf8mb4_bin",
    "varchar(5) charset latin1",
    "varchar(10) collate latin1_bin",
    "varchar(3) collate binary",
    "text charset binary",
    "text(50)",
    "text(70)",
    "text(20000)",
    "text(300) charset latin1",
    "blob(300)",
    "longtext",
    "mediumblob",
    "character varying(5)",
    "decimal(10,2) unsigned",
    "decimal(5) zerofill",
    "int default -1 comment 'x'",
    "varchar(3) default _utf8mb4'x'",
    "varchar(20) default 'it''s' comment 'a\\nb'",
    "int default (1 + 1)",
    "date default (curdate())",
    "int as (b + 1)",
    "int generated always as (b + 1) stored not null",
    "int column_format dynamic storage disk",
    "int check (`é` > 0)",
    "int invisible",
    "int visible",
    "point srid 4326",
    "int not null key",
    "int unique",
    "int auto_increment unique",
)


@pytest.fixture(params=["mysql56", "mysql97"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def shown(server: Server, name: str) -> str:
    return str(server.query(f"SHOW CREATE TABLE {name}")[0][1])


def timestamps_of(server: Server) -> Timestamps:
    return Timestamps.NULLABLE if server.version >= (8,) else Timestamps.NOT_NULL


def read_create(sql: str, **context: Any) -> TableDefinition:
    change = read_statement(sql)
    assert isinstance(change, CreateTable)
    return definition_of(change, **{"schema": "d", "database_charset": None, **context})


def test_a_statement_and_what_the_server_made_of_it(server: Server) -> None:
    compared = 0
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE definitions CHARACTER SET utf8")
        for number, kind in enumerate(COLUMNS):
            statement = f"CREATE TABLE definitions.`t``{number} x` (b int, `é` {kind})"
            try:
                cursor.execute(statement)
            except pymysql.err.ProgrammingError as error:
                if error.args[0] != SYNTAX_ERROR:
                    raise
                continue  # newer than this server
            cursor.execute(f"SHOW CREATE TABLE definitions.`t``{number} x`")
            row = cursor.fetchone()
            assert row is not None
            read = definition_from_create(row[1], schema="definitions")
            assert read.table == f"t`{number} x"
            assert (
                read_create(statement, database_charset="utf8mb3", timestamps=timestamps_of(server))
                == read
            )
            compared += 1
        cursor.execute("DROP DATABASE definitions")
    assert compared > (60 if server.version < (8,) else 70)


def test_every_collation_of_the_server_has_its_character_set(server: Server) -> None:
    for number, name in server.query(
        "SELECT id, character_set_name FROM information_schema.collations"
    ):
        assert CHARSET_OF_COLLATION[number] == charset_name(name), number
    for name, _, _, bytes_max in server.query("SHOW CHARACTER SET"):
        assert CHARACTER_BYTES_MAX[charset_name(name)] == bytes_max, name


PARTS = (
    "CREATE TABLE parts.t (id bigint unsigned, `b ``c` varchar(10) NOT NULL,"
    " e enum('x''y', 'z') CHARACTER SET utf8mb4, v int AS (f + 1) VIRTUAL, s int AS (f) STORED,"
    " h blob INVISIBLE, f bigint unsigned, PRIMARY KEY (id, `b ``c`), UNIQUE uq (e, v),"
    " UNIQUE low ((lower(e))), UNIQUE pre (h(5)), KEY k (f),"
    " CONSTRAINT fk FOREIGN KEY (f) REFERENCES parts.p (id)) COMMENT 'PRIMARY KEY (v)'"
)


def test_every_part_of_a_definition(mysql97: Server) -> None:
    mysql97.execute(
        "CREATE DATABASE parts CHARACTER SET latin1",
        "CREATE TABLE parts.p (id bigint unsigned PRIMARY KEY)",
        PARTS,
    )
    text = shown(mysql97, "parts.t")
    mysql97.execute("DROP DATABASE parts")
    read = definition_from_create(text, schema="parts")
    assert read == TableDefinition(
        schema="parts",
        table="t",
        columns=(
            Column("id", "bigint unsigned", is_unsigned=True, is_nullable=False),
            Column("b `c", "varchar(10)", charset="latin1", is_nullable=False),
            Column("e", "enum('x''y','z')", charset="utf8mb4", members=("x'y", "z")),
            Column("v", "int", is_generated=Generated.VIRTUAL),
            Column("s", "int", is_generated=Generated.STORED),
            Column("h", "blob", is_invisible=True),
            Column("f", "bigint unsigned", is_unsigned=True),
        ),
        primary_key=("id", "b `c"),
        unique_keys=(
            Key(KeyKind.UNIQUE, "low", (), is_exact=False),
            Key(KeyKind.UNIQUE, "pre", ("h",), is_exact=False),
            Key(KeyKind.UNIQUE, "uq", ("e", "v")),
        ),
        charset="latin1",
    )
    assert [key.name for key in read.plain_keys] == ["k"]
    assert read.foreign_keys == (("f",),)
    assert read.column("B `C") is read.columns[1]
    assert read.column("nobody") is None
    assert [column.base_type for column in read.columns[:3]] == ["bigint", "varchar", "enum"]
    assert read == read_create(PARTS, database_charset="latin1")


def test_partitions_and_options_are_passed_over(mysql97: Server, mysql56: Server) -> None:
    for server in (mysql56, mysql97):
        server.execute(
            "CREATE DATABASE options",
            "CREATE TABLE options.t (a int, b date) ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
            " AUTO_INCREMENT=7 STATS_PERSISTENT=1 DEFAULT CHARSET=latin1 COMMENT='it''s'"
            " PARTITION BY RANGE (a) SUBPARTITION BY HASH (to_days(b)) SUBPARTITIONS 2"
            " (PARTITION p0 VALUES LESS THAN (10) COMMENT = 'x', PARTITION p1 VALUES LESS THAN"
            " MAXVALUE)",
        )
        text = shown(server, "options.t")
        server.execute("DROP DATABASE options")
        read = definition_from_create(text, schema="options")
        assert read.columns == (Column("a", "int"), Column("b", "date"))
        assert read.charset == "latin1"


def test_ansi_quotes(mysql97: Server) -> None:
    with mysql97.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE quoted")
        cursor.execute("CREATE TABLE quoted.`a\"b` (`c` enum('d\\\\e') )")
        cursor.execute("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
        cursor.execute('SHOW CREATE TABLE quoted."a""b"')
        text = cursor.fetchone()
        cursor.execute("DROP DATABASE quoted")
    assert text is not None
    read = definition_from_create(
        text[1], schema="quoted", sql_mode=ANSI_QUOTES | NO_BACKSLASH_ESCAPES
    )
    assert read.table == 'a"b'
    assert read.columns[0].members == ("d\\e",)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE VIEW v AS SELECT 1", "not the text of SHOW CREATE TABLE"),
        ("CREATE ALGORITHM=UNDEFINED VIEW v AS SELECT 1", "not the text of SHOW CREATE TABLE"),
        ("CREATE TABLE t (a hologram)", "expected a type, not hologram"),
        ("CREATE TABLE t (a int SPARKLING)", "expected an attribute of a column"),
        ("CREATE TABLE t (a int) SPARKLING=1", "expected an option of a table"),
        ("CREATE TABLE t (a int", "expected )"),
        ("CREATE TABLE t (a int) ENGINE=InnoDB COMMENT='x", "ends inside quotes"),
        ("CREATE TABLE t (a int /* open", "ends inside a comment"),
        ("CREATE TABLE t (a text)", "takes its character set from the database"),
        ("CREATE TABLE t (a text) CHARSET=klingon", "an unknown character set: klingon"),
        ("CREATE TABLE t (a varchar) CHARSET=latin1", "a varchar without a length"),
        ("CREATE TABLE t (a int, A int)", "two columns have the same name"),
        ("CREATE TABLE t (a int, KEY (b))", "there is no column b"),
        ("CREATE TABLE t (a int KEY, b int KEY)", "two primary keys"),
        ("CREATE TABLE t (a int) SELECT 1 AS b", "columns that come from elsewhere"),
        ("CREATE TABLE t LIKE u", "columns that come from elsewhere"),
        ("", "not the text of SHOW CREATE TABLE"),
    ],
)
def test_what_cannot_be_read_is_said(sql: str, why: str) -> None:
    with pytest.raises(
        CannotFollow, match="^" + ".*" + why.replace("(", "\\(").replace(")", "\\)")
    ):
        definition_from_create(sql, schema="d")


def test_a_definition_is_valid_or_is_not() -> None:
    column = Column("a", "int")
    with pytest.raises(ValueError, match="a column has a name"):
        Column("", "int")
    with pytest.raises(ValueError, match="a table has a column"):
        TableDefinition("d", "t", ())
    with pytest.raises(ValueError, match="a key uses an unknown column: b"):
        TableDefinition("d", "t", (column,), primary_key=("b",))
    assert TableDefinition("d", "t", (column,)).column_count == 1


def test_executable_comments_are_those_of_the_version() -> None:
    sql = "CREATE TABLE t (a int /*!80023 INVISIBLE */, b int /* c int, */ /*!50100 NOT NULL*/)"
    old = read_statement(sql, server_version=50624)
    new = read_statement(sql, server_version=90704)
    assert isinstance(old, CreateTable)
    assert isinstance(new, CreateTable)
    assert [column.is_invisible for column in old.columns] == [False, False]
    assert [column.is_invisible for column in new.columns] == [True, False]
    assert [column.is_nullable for column in old.columns] == [None, False]
    with pytest.raises(CannotFollow, match="in a form of later servers"):
        read_statement("CREATE TABLE t (a int /*!090000 INVISIBLE */)", server_version=50624)
