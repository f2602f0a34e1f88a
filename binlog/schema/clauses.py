"""Reads the clauses that CREATE TABLE and ALTER TABLE share: columns, keys, checks, options.

An unknown option raises CannotFollow. Partition clauses are skipped as a whole, because no column
depends on them.
"""

from typing import TypeAlias

from binlog.schema.changes import AddForeignKey, ColumnSpec, KeySpec
from binlog.schema.column_clauses import read_charset, read_collation, read_column
from binlog.schema.reader import WordReader
from binlog.schema.sql_words import WordKind
from binlog.schema.table_definitions import KeyKind

PRIMARY = "PRIMARY"
KEYS = ("index", "key")
TABLE_OPTIONS = frozenset(
    {
        *("engine", "type", "max_rows", "min_rows", "avg_row_length", "password", "comment"),
        *("compression", "encryption", "auto_increment", "pack_keys", "stats_auto_recalc"),
        *("stats_persistent", "stats_sample_pages", "checksum", "table_checksum", "row_format"),
        *("delay_key_write", "union", "insert_method", "data", "index", "tablespace", "storage"),
        *("connection", "key_block_size", "start", "secondary_engine", "engine_attribute"),
        *("secondary_engine_attribute", "autoextend_size", "default", "character", "charset"),
        *("char", "collate"),
    }
)
_QUERY_WORDS = frozenset({"select", "as", "with", "values", "table", "ignore", "replace"})


Element: TypeAlias = ColumnSpec | KeySpec | AddForeignKey | None


class Clauses:
    """The clauses of one statement. `has_select` is set by `table_options`."""

    def __init__(self, reader: WordReader, *, real_as_float: bool) -> None:
        self.reader = reader
        self._real_as_float = real_as_float
        self.has_select = False

    def element(self) -> Element:
        """Read one element of CREATE TABLE; return None for a check."""
        return self.constraint_or_key() if self.is_no_column() else self.column()

    def is_no_column(self) -> bool:
        """Return whether a key, a check or a constraint comes next."""
        words = ("constraint", "primary", "unique", "foreign", "check", "fulltext", "spatial")
        return any(self.reader.comes(word) for word in (*words, *KEYS))

    def column(self) -> ColumnSpec:
        """Read a column with its name."""
        name = self.reader.name()
        return read_column(self.reader, name=name, real_as_float=self._real_as_float)

    def constraint_or_key(self) -> KeySpec | AddForeignKey | None:
        """Read a key; return None for a check."""
        reader = self.reader
        name: str | None = None
        if reader.accept("constraint") and not any(
            reader.comes(word) for word in ("primary", "unique", "foreign", "check")
        ):
            name = reader.name()
        if reader.accept("primary"):
            reader.expect("key")
            if not (reader.comes("(") or reader.comes("using")):
                reader.name()  # MySQL accepts a name here and ignores it
            self.skip_index_type()
            return self.key_parts(KeyKind.PRIMARY, PRIMARY)
        if reader.accept("foreign"):
            return self._foreign_key()
        if reader.comes("check"):
            self._skip_element()
            return None
        kind = KeyKind.UNIQUE if reader.accept("unique") else KeyKind.PLAIN
        reader.accept_any("fulltext", "spatial")
        reader.accept_any(*KEYS)
        if not any(reader.comes(word) for word in ("(", "using", "type")):
            name = reader.name()
        self.skip_index_type()
        return self.key_parts(kind, name)

    def _foreign_key(self) -> AddForeignKey:
        reader = self.reader
        reader.expect("key")
        if not reader.comes("("):
            reader.name()
        with reader.parentheses():
            parts = reader.listed(self._key_part)
        self._skip_element()
        return AddForeignKey(tuple(column for column, _ in parts if column is not None))

    def skip_index_type(self) -> None:
        """Skip an index type, such as USING BTREE."""
        if self.reader.accept_any("using", "type"):
            self.reader.name()

    def _skip_element(self) -> None:
        self.reader.skip_to(",", ")")

    def key_parts(self, kind: KeyKind, name: str | None) -> KeySpec:
        """Read the parts of a key and skip its options."""
        reader = self.reader
        with reader.parentheses():
            parts = reader.listed(self._key_part)
        self._skip_element()
        return KeySpec(
            kind,
            name,
            tuple(column for column, _ in parts if column is not None),
            is_exact=all(is_whole for _, is_whole in parts),
            is_functional=parts[0][0] is None,
        )

    def _key_part(self) -> tuple[str | None, bool]:
        """Return the column (None for an expression) and whether it is the whole column."""
        reader = self.reader
        column: str | None = None
        is_whole = False
        if reader.comes("("):
            reader.skip_parentheses()
        else:
            column = reader.name()
            is_whole = not reader.comes("(")
            if not is_whole:
                reader.skip_parentheses()
        reader.accept_any("asc", "desc")
        return column, is_whole

    def table_options(self) -> str | None:
        """Skip the options of CREATE TABLE to its end; return their character set, if any."""
        reader = self.reader
        charset: str | None = None
        in_partitions = False
        while not reader.is_at_end:
            if found := read_charset(reader) or read_collation(reader):
                charset = found
            elif reader.comes("start", "transaction"):
                reader.take()
                reader.take()
            elif reader.next.kind is WordKind.BARE and reader.next.text.lower() in _QUERY_WORDS:
                self.has_select = True
                reader.skip_to()
            elif reader.accept("partition", "by"):
                in_partitions = True
            elif in_partitions or reader.accept(","):
                reader.skip_one()
            else:
                self.one_option()
        return charset

    def one_option(self) -> None:
        """Skip one option, `NAME [=] value`."""
        reader = self.reader
        word = reader.take()
        if word.kind is not WordKind.BARE or word.text.lower() not in TABLE_OPTIONS:
            raise reader.fail(f"expected an option of a table, not {word.text}")
        if word.text.lower() == "default":
            return
        if word.text.lower() in ("data", "index"):
            reader.expect("directory")
        reader.accept("=")
        reader.skip_one()
