"""Parses a statement into its changes to tables (grammar: sql/sql_yacc.yy of 5.6 to 9.7).

1. A statement with a word that is not understood raises CannotFollow: a change is never applied in
   part. Only clauses that cannot affect a column or a key (options, partitions, expressions) are
   skipped.
2. Statements that define nothing, including data changes, are NoChange; their first word decides.
3. A general SQL parser is not used. The one that was tried parses many of these statements, but
   rejects others (RENAME TABLE, CONVERT TO, ADD COLUMN (a, b), any geometry). It also reads REAL as
   FLOAT, and executable comments as comments. The tracker needs an exact result.
"""

from binlog.schema.alter import read_actions
from binlog.schema.changes import (
    AddForeignKey,
    AddKey,
    AlterDatabase,
    AlterTable,
    Change,
    ColumnSpec,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropKey,
    DropTables,
    KeySpec,
    NoChange,
    RenameTables,
    TableName,
)
from binlog.schema.clauses import Clauses
from binlog.schema.column_clauses import read_charset, read_collation
from binlog.schema.reader import WordReader
from binlog.schema.sql_words import ANY_VERSION, REAL_AS_FLOAT, CannotFollow, cut_words, first_word
from binlog.schema.table_definitions import KeyKind

# No realistic DDL statement is longer than this.
STATEMENT_CHARACTERS_MAX = 4 * 1024 * 1024

_DEFINING = frozenset({"create", "alter", "drop", "rename", "import"})
# The objects of CREATE, ALTER and DROP that are neither tables nor databases.
_OTHER_OBJECTS = frozenset(
    {
        *(
            "view",
            "user",
            "role",
            "function",
            "procedure",
            "trigger",
            "event",
            "server",
            "loadable",
        ),
        *(
            "tablespace",
            "undo",
            "logfile",
            "resource",
            "spatial reference",
            "instance",
            "aggregate",
        ),
        *("definer", "algorithm", "sql", "library", "prepare", "materialized", "jsonduality"),
    }
)


def read_statement(sql: str, *, sql_mode: int = 0, server_version: int = ANY_VERSION) -> Change:
    """Parse one statement. `sql_mode` and `server_version` are those of its session and server.

    Raises CannotFollow.
    """
    if first_word(sql, sql_mode=sql_mode, server_version=server_version) not in _DEFINING:
        return NoChange()
    if len(sql) > STATEMENT_CHARACTERS_MAX:
        raise CannotFollow(why=f"a statement of {len(sql):,} characters")
    reader = WordReader(cut_words(sql, sql_mode=sql_mode, server_version=server_version))
    clauses = Clauses(reader, real_as_float=bool(sql_mode & REAL_AS_FLOAT))
    change = _read(reader, clauses)
    if not isinstance(change, NoChange) and not reader.is_at_end:
        raise reader.fail("expected the end of the statement")
    return change


def named_tables(
    sql: str, *, sql_mode: int = 0, server_version: int = ANY_VERSION
) -> tuple[TableName, ...]:
    """Return the tables of a statement that cannot be followed.

    Raises CannotFollow if even they cannot be read: then it may affect any table.
    """
    reader = WordReader(cut_words(sql, sql_mode=sql_mode, server_version=server_version))
    verb = reader.accept_any("create", "alter", "drop", "rename")
    if verb is None:
        raise reader.fail("expected a statement with the names of its tables")
    reader.accept_any("online", "offline")
    reader.accept_any("temporary", "ignore")
    _expect_tables(reader)
    _ = reader.accept("if", "not", "exists") or reader.accept("if", "exists")
    if verb == "drop":
        return reader.listed(reader.table_name)
    if verb == "rename":
        return tuple(name for pair in reader.listed(lambda: _renamed(reader)) for name in pair)
    return (reader.table_name(),)


def _read(reader: WordReader, clauses: Clauses) -> Change:
    if reader.accept("create"):
        return _create(reader, clauses)
    if reader.accept("alter"):
        return _alter(reader, clauses)
    if reader.accept("drop"):
        return _drop(reader)
    if reader.accept("rename"):
        if reader.accept("user"):
            return NoChange()
        _expect_tables(reader)
        return RenameTables(reader.listed(lambda: _renamed(reader)))
    if reader.comes("import"):
        raise reader.fail("expected a statement with the names of its tables")
    return NoChange()


def _renamed(reader: WordReader) -> tuple[TableName, TableName]:
    name = reader.table_name()
    reader.expect("to")
    return name, reader.table_name()


def _expect_tables(reader: WordReader) -> None:
    if not reader.accept_any("table", "tables"):
        raise reader.fail("expected TABLE")


def _is_about_something_else(reader: WordReader) -> bool:
    return reader.next.text.lower() in _OTHER_OBJECTS or reader.comes("spatial", "reference")


def _create(reader: WordReader, clauses: Clauses) -> Change:
    reader.accept("or", "replace")
    if _is_about_something_else(reader):
        return NoChange()
    if reader.accept_any("database", "schema"):
        if_not_exists = reader.accept("if", "not", "exists")
        name = reader.name()
        return CreateDatabase(name, _database_charset(reader), if_not_exists)
    is_temporary = reader.accept("temporary")
    if reader.accept("table"):
        return _create_table(reader, clauses, is_temporary=is_temporary)
    reader.accept_any("online", "offline")
    kind = KeyKind.UNIQUE if reader.accept("unique") else KeyKind.PLAIN
    reader.accept_any("fulltext", "spatial")
    reader.expect("index")
    key_name = reader.name()
    clauses.skip_index_type()
    reader.expect("on")
    table = reader.table_name()
    key = clauses.key_parts(kind, key_name)
    reader.skip_to()
    return AlterTable(table, (AddKey(key),))


def _create_table(reader: WordReader, clauses: Clauses, *, is_temporary: bool) -> CreateTable:
    if_not_exists = reader.accept("if", "not", "exists")
    name = reader.table_name()
    like = _like(reader)
    if like is not None:
        return CreateTable(name, like=like, if_not_exists=if_not_exists, is_temporary=is_temporary)
    columns: list[ColumnSpec] = []
    keys: list[KeySpec] = []
    foreign_keys: list[AddForeignKey] = []
    if reader.comes("(") and not reader.comes("(", "select"):
        with reader.parentheses():
            for element in reader.listed(clauses.element):
                if isinstance(element, ColumnSpec):
                    columns.append(element)
                    if element.has_reference:
                        foreign_keys.append(AddForeignKey((element.name,)))
                elif isinstance(element, KeySpec):
                    keys.append(element)
                elif element is not None:
                    foreign_keys.append(element)
    charset = clauses.table_options()
    return CreateTable(
        name,
        tuple(columns),
        tuple(keys),
        tuple(foreign_keys),
        charset,
        has_select=clauses.has_select or not columns,
        if_not_exists=if_not_exists,
        is_temporary=is_temporary,
    )


def _like(reader: WordReader) -> TableName | None:
    if reader.accept("like"):
        return reader.table_name()
    if reader.comes("(", "like"):
        with reader.parentheses():
            reader.expect("like")
            return reader.table_name()
    return None


def _database_charset(reader: WordReader) -> str | None:
    """Read the options of a database; the last character set counts."""
    charset: str | None = None
    while not reader.is_at_end:
        reader.accept("default")
        if found := read_charset(reader) or read_collation(reader):
            charset = found
        elif reader.accept("encryption"):
            reader.accept("=")
            reader.string()
        elif reader.accept("read", "only"):
            reader.accept("=")
            reader.take()
        else:
            raise reader.fail("expected an option of a database")
    return charset


def _alter(reader: WordReader, clauses: Clauses) -> Change:
    if reader.accept_any("database", "schema"):
        return _alter_database(reader)
    if _is_about_something_else(reader):
        return NoChange()
    reader.accept_any("online", "offline")
    reader.accept("ignore")
    reader.expect("table")
    name = reader.table_name()
    return AlterTable(name, read_actions(clauses))


def _alter_database(reader: WordReader) -> AlterDatabase:
    options = ("default", "character", "char", "charset", "collate", "encryption", "read")
    name = None if any(reader.comes(word) for word in options) else reader.name()
    if reader.accept("upgrade", "data", "directory", "name"):
        raise reader.fail("expected a character set: the statement renames the database")
    return AlterDatabase(name, _database_charset(reader))


def _drop(reader: WordReader) -> Change:
    if _is_about_something_else(reader):
        return NoChange()
    if reader.accept_any("database", "schema"):
        if_exists = reader.accept("if", "exists")
        return DropDatabase(reader.name(), if_exists)
    reader.accept_any("online", "offline")
    if reader.accept("index"):
        key = reader.name()
        reader.expect("on")
        table = reader.table_name()
        reader.skip_to()
        return AlterTable(table, (DropKey(key),))
    is_temporary = reader.accept("temporary")
    _expect_tables(reader)
    if_exists = reader.accept("if", "exists")
    names = reader.listed(reader.table_name)
    reader.accept_any("restrict", "cascade")
    return DropTables(names, is_temporary=is_temporary, if_exists=if_exists)
