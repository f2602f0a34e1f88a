"""Makes a definition from a TABLE_MAP with full metadata: binlog_row_metadata=FULL (8.0.1).

Even full metadata does not contain which columns are generated, keys other than the primary key,
and the character set of columns that are added later. So the definition is marked as incomplete.
"""

from collections.abc import Mapping
from types import MappingProxyType

from binlog.events import TableMap
from binlog.rows.charsets import decode_text
from binlog.rows.images import (
    BIT,
    BLOB,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    NEWDECIMAL,
    SET,
    STRING,
    VAR_STRING,
    VARCHAR,
    VECTOR,
    char_length,
)
from binlog.schema.charset_names import BINARY, CHARACTER_BYTES_MAX, CHARSET_OF_COLLATION
from binlog.schema.logged_types import (
    FRACTIONAL,
    GEOMETRIES,
    INTEGERS,
    LENGTH_BYTES,
    OF_OLD_TEMPORAL,
    PLAIN,
)
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import Column, TableDefinition
from binlog.table_metadata import ColumnMetadata, read_table_metadata, real_type

_PLAIN: Mapping[int, str] = MappingProxyType(
    {code: name for name, code in {**INTEGERS, **PLAIN}.items()}
)
_TEMPORAL: Mapping[int, str] = MappingProxyType(
    {**OF_OLD_TEMPORAL, **{code: name for name, code in FRACTIONAL.items()}}
)
_SIZES: Mapping[int, str] = MappingProxyType({count: size for size, count in LENGTH_BYTES.items()})
_UNSIGNED = frozenset({*INTEGERS.values(), NEWDECIMAL, FLOAT, DOUBLE})


def definition_from_table_map(table: TableMap) -> TableDefinition:
    """Make the definition. Raises CannotFollow if a fact is not logged, MalformedBody."""
    metadata = read_table_metadata(table)
    if metadata.primary_key is None:
        raise CannotFollow(why="the log contains no column names (binlog_row_metadata is not FULL)")
    columns = tuple(_column(each, at, table) for at, each in enumerate(metadata.columns))
    return TableDefinition(
        schema=table.schema,
        table=table.table,
        columns=columns,
        primary_key=tuple(columns[part.column].name for part in metadata.primary_key),
        is_complete=False,
    )


def shown_columns(table: TableMap) -> tuple[tuple[str, str], ...]:
    """Return name and type of each column as far as they are logged; other names are @1, @2.

    Raises MalformedBody.
    """
    metadata = read_table_metadata(table)
    return tuple(
        (facts.name or f"@{at + 1}", _shown_type(facts, at, table))
        for at, facts in enumerate(metadata.columns)
    )


def _shown_type(facts: ColumnMetadata, at: int, table: TableMap) -> str:
    kind = real_type(table.column_types[at], table.column_metadata[at])
    try:
        charset = _charset(facts)
        members = _members(facts, charset) if kind in (ENUM, SET) else ()
        text = _type_text(kind, table.column_metadata[at], facts, charset, members)
    except CannotFollow:
        return _VAGUE.get(kind, f"type {kind}")
    return text + (" unsigned" if kind in _UNSIGNED and facts.is_unsigned else "")


# The text of a type whose character set or members are not logged.
_VAGUE: Mapping[int, str] = MappingProxyType(
    {
        BLOB: "text or blob",
        STRING: "char or binary",
        VARCHAR: "varchar or varbinary",
        VAR_STRING: "varchar or varbinary",
        ENUM: "enum",
        SET: "set",
        GEOMETRY: "geometry",
        VECTOR: "vector",
    }
)


def _column(facts: ColumnMetadata, at: int, table: TableMap) -> Column:
    assert facts.name is not None, "FULL logs names"
    charset = _charset(facts)
    kind = real_type(table.column_types[at], table.column_metadata[at])
    members = _members(facts, charset) if kind in (ENUM, SET) else ()
    is_unsigned = kind in _UNSIGNED and bool(facts.is_unsigned)
    text = _type_text(kind, table.column_metadata[at], facts, charset, members)
    is_text = charset is not None and (charset != BINARY or bool(members))
    return Column(
        name=facts.name,
        type_text=text + (" unsigned" if is_unsigned else ""),
        is_unsigned=is_unsigned,
        charset=charset if is_text and kind != VECTOR else None,
        members=members,
        is_nullable=bool(table.nullable[at >> 3] >> (at & 7) & 1),
        is_invisible=facts.is_visible is False,
    )


def _charset(facts: ColumnMetadata) -> str | None:
    if facts.collation_id is None:
        return None
    charset = CHARSET_OF_COLLATION.get(facts.collation_id)
    if charset is None:
        raise CannotFollow(why=f"{facts.name} has the unknown collation {facts.collation_id}")
    return charset


def _members(facts: ColumnMetadata, charset: str | None) -> tuple[str, ...]:
    shown_in = "ascii" if charset == BINARY else charset
    texts = [decode_text(each, shown_in) for each in facts.members or ()]
    if not texts or None in texts:
        raise CannotFollow(why=f"{facts.name} has members that cannot be shown as text")
    return tuple(text for text in texts if text is not None)


def _type_text(
    kind: int, metadata: int, facts: ColumnMetadata, charset: str | None, members: tuple[str, ...]
) -> str:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _TEMPORAL:
        return f"{_TEMPORAL[kind]}({metadata})" if metadata else _TEMPORAL[kind]
    if kind == NEWDECIMAL:
        return f"decimal({metadata >> 8},{metadata & 0xFF})"
    if kind == BIT:
        return f"bit({(metadata >> 8) * 8 + (metadata & 0xFF)})"
    if kind == GEOMETRY and facts.geometry_type is not None:
        return GEOMETRIES[facts.geometry_type]
    if kind == VECTOR and facts.vector_dimensions is not None:
        return f"vector({facts.vector_dimensions})"
    if kind in (ENUM, SET):
        quoted = ("'" + each.replace("\\", "\\\\").replace("'", "''") + "'" for each in members)
        return f"{'enum' if kind == ENUM else 'set'}({','.join(quoted)})"
    if charset is not None and kind in (BLOB, STRING, VARCHAR, VAR_STRING):
        return _text_type(kind, metadata, charset)
    raise CannotFollow(why=f"{facts.name} is logged as type {kind}, which is not enough")


def _text_type(kind: int, metadata: int, charset: str) -> str:
    is_binary = charset == BINARY
    if kind == BLOB:
        return _SIZES[metadata] + ("blob" if is_binary else "text")
    length = char_length(metadata) if kind == STRING else metadata
    name = (
        ("binary" if is_binary else "char")
        if kind == STRING
        else ("varbinary" if is_binary else "varchar")
    )
    return f"{name}({length // CHARACTER_BYTES_MAX[charset]})"
