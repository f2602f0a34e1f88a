"""Reads the text of SHOW CREATE TABLE, with the grammar that follows statements in a log."""

from binlog.schema.apply import definition_of
from binlog.schema.changes import CreateTable
from binlog.schema.grammar import read_statement
from binlog.schema.sql_words import ANSI_QUOTES, CannotFollow
from binlog.schema.table_definitions import TableDefinition


def definition_from_create(sql: str, *, schema: str, sql_mode: int = 0) -> TableDefinition:
    """Read the text of SHOW CREATE TABLE of any server from 5.6 on.

    `sql_mode` is that of the session that ran it; only ANSI_QUOTES matters. Backslashes are escaped
    in any mode (append_unescaped, sql/sql_show.cc). Raises CannotFollow, also for a view.
    """
    change = read_statement(sql, sql_mode=sql_mode & ANSI_QUOTES)
    if not isinstance(change, CreateTable):
        raise CannotFollow(why="not the text of SHOW CREATE TABLE")
    return definition_of(change, schema=schema, database_charset=None)
