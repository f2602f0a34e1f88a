"""Our grammar against a general SQL parser, where that one understands the statement at all."""

from __future__ import annotations

import logging

import pytest
import sqlglot
from sqlglot import exp

from binlog.schema.changes import (
    AddColumn,
    AlterTable,
    ChangeColumn,
    CreateTable,
    DropColumn,
    DropTables,
)
from binlog.schema.grammar import read_statement
from binlog.schema.table_definitions import CannotFollow
from tests.binlog.schema_material import STATEMENTS


def theirs(sql: str) -> exp.Expression | None:
    try:
        parsed = sqlglot.parse_one(sql, dialect="mysql")
    except sqlglot.errors.SqlglotError:
        return None
    return parsed if isinstance(parsed, exp.Expression) else None


def defined(parsed: exp.Expression) -> list[str]:
    """Names of the columns a parsed statement defines, in its order."""
    return [each.name for each in parsed.find_all(exp.ColumnDef, bfs=False)]


def test_the_columns_are_those_the_parser_sees(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="sqlglot")
    creates = alters = drops = 0
    for sql in STATEMENTS:
        parsed = theirs(sql)
        if isinstance(parsed, exp.Create) and isinstance(parsed.this, exp.Schema):
            if parsed.kind != "TABLE":
                continue
            ours = read_statement(sql)
            assert isinstance(ours, CreateTable), sql
            assert [column.name for column in ours.columns] == defined(parsed), sql
            creates += 1
        elif isinstance(parsed, exp.Alter) and parsed.args.get("kind") == "TABLE":
            ours = read_statement(sql)
            assert isinstance(ours, AlterTable), sql
            added = [a.spec.name for a in ours.actions if isinstance(a, AddColumn | ChangeColumn)]
            assert added == defined(parsed), sql
            dropped = [
                each.name
                for drop in parsed.find_all(exp.Drop, bfs=False)
                if drop.args.get("kind") == "COLUMN"
                for each in drop.args["tables"]
            ]
            assert [a.name for a in ours.actions if isinstance(a, DropColumn)] == dropped, sql
            alters += 1
        elif isinstance(parsed, exp.Drop) and parsed.args.get("kind") == "TABLE":
            ours = read_statement(sql)
            assert isinstance(ours, DropTables), sql
            drops += 1
    assert (creates > 15, alters > 15, drops > 2) == (True, True, True), (creates, alters, drops)


def test_what_the_parser_reads_wrongly_or_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    """Why there is a grammar of our own. Where this fails, the parser has learned something."""
    caplog.set_level(logging.CRITICAL, logger="sqlglot")
    unread = (
        "RENAME TABLE a TO b, c TO d",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE t ADD COLUMN (a int, b int)",
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (10))",
        "CREATE TABLE t (a point)",
        "CREATE TABLE t (a national char(3))",
    )
    for sql in unread:
        assert isinstance(theirs(sql), exp.Command | None), sql
        try:
            read_statement(sql)
        except CannotFollow as unclear:
            pytest.fail(f"{sql}: {unclear}")
