"""The statements of a data check: the end of the next part, the checksum of a part, its rows.

How it works
------------
A part of a table is the range of its key above one row's key, up to another's: `PartBounds`. The
first part has no lower bound, the last one has no upper bound. So rows that only the other server
has belong to a part as well.

The checksum of a part is the number of its rows and the sum of two 60-bit numbers of each row's
SHA-256. A sum does not depend on the order of rows, and counts a row that is there twice, as a
table without a key may have it; XOR would not. MD5() and SHA1() are no longer built in since 9.6.

Each value becomes hexadecimal digits, or "-" for NULL, and the values of a row are joined with
commas: two rows with different values never have the same text. Characters are compared as the
bytes that are stored, which no conversion can make equal; tables whose columns have other character
sets are not compared (checked_tables.py). If a row's text is longer than max_allowed_packet, the
server computes NULL; such rows are counted as `unread_rows`.

An ENUM or SET is compared as its text, because its members may have other numbers on the other
server. The error value of an ENUM and the empty SET have number 0 and the text '', and so has a
member '': a digit behind the text tells them apart.

A FLOAT or DOUBLE becomes its 64 bits, which the well-known binary form of a point shows. As text it
would lose digits: CAST(x AS CHAR) has at most 22 characters in 9.7, so that 12461 of 62098 values
were other than in 5.6, and two values could be one text (seen on 9.7.4 and 5.6.24).

The text of a JSON document does not show types: "2020-01-01" may be a DATE, 1.5 a DECIMAL. No
function shows the binary form. So its size is compared as well, of a document that JSON_INSERT has
made again: updates leave gaps in a stored one. JSON_STORAGE_SIZE() exists since 5.7.22; of an older
server a table with JSON is not compared.

Sizes may be equal: 12345.25 has 8 bytes as a DECIMAL and as a DOUBLE. So the types of the nodes of
a document, which JSON_TABLE (8.0.4) lists, are in the text too, as a sum: each member, then each
cell of an array, has its number. Only types that the text does not show count. If one of the two
servers is older, they are not compared (`JsonForm.SIZES`), and the answer says so.

The values of a bound are read as text, characters and bytes in hexadecimal, and written as
literals. A literal of characters has the column's character set, and is compared by the column's
own collation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from binlog.quoting import quote_identifier, quote_number, quote_string
from repair.data_check.checked_tables import (
    CheckedColumn,
    CheckedTable,
    JsonForm,
    ReadingKey,
    ValueKind,
)

_DIGITS: Final = 15  # hexadecimal digits: 60 bits, which a sum of 2**60 rows would not overflow
KEY_PREFIX: Final = "key_"
# How the characters of a key are shown to a reader; of other character sets, the bytes are shown.
_CODECS: Final = {
    **dict.fromkeys(("utf8", "utf8mb3", "utf8mb4"), "utf-8"),
    "latin1": "cp1252",
    "ascii": "ascii",
}

# A key's values as text, in the order of its columns.
KeyValues = tuple[str, ...]

# Times do not depend on the server's zone, and a bound is compared as the characters it has.
SESSION: Final = "SET SESSION time_zone = '+00:00', sql_mode = 'NO_ENGINE_SUBSTITUTION'"


# Types of nodes that the text of a document shows.
_SHOWN_TYPES: Final = "'STRING', 'INTEGER', 'DOUBLE', 'OBJECT', 'ARRAY', 'BOOLEAN', 'NULL'"


@dataclass(frozen=True, slots=True)
class PartBounds:
    """A range of a key: above `lower`, up to and including `upper`; None is open."""

    lower: KeyValues | None
    upper: KeyValues | None


@dataclass(frozen=True, slots=True)
class PartChecksum:
    """What a server computes of a part."""

    rows: int
    sums: tuple[str, str]  # as decimal text
    unread_rows: int


def bound_query(table: CheckedTable, key: ReadingKey, lower: KeyValues | None, rows: int) -> str:
    """Return the query for the key of the last of the next `rows` rows; no row: the table ends."""
    where = _above(table, key, lower)
    order = ", ".join(map(quote_identifier, key.columns))
    return (
        f"SELECT {_key_texts(table, key)} FROM {_from(table, key)}{_where(where)}"  # noqa: S608 - quoted
        f" ORDER BY {order} LIMIT 1 OFFSET {quote_number(rows - 1)}"
    )


def checksum_query(
    table: CheckedTable,
    key: ReadingKey | None,
    bounds: PartBounds,
    columns: Sequence[CheckedColumn],
    json_form: JsonForm,
) -> str:
    """Return the query for the checksum of a part, with columns in a common order."""
    digest = f"SHA2({_row_text(columns, json_form)}, 256)"
    halves = ", ".join(
        f"COALESCE({_sum_of('row_digest', start)}, 0) AS sum_{number}"
        for number, start in ((1, 1), (2, 1 + _DIGITS))
    )
    return (
        f"SELECT COUNT(*) AS row_count, COUNT(*) - COUNT(row_digest) AS unread_rows, {halves}"  # noqa: S608 - quoted
        f" FROM (SELECT {digest} AS row_digest FROM {_from(table, key)}"
        f"{_where(_range(table, key, bounds))}) AS part_rows"
    )


def rows_query(
    table: CheckedTable,
    key: ReadingKey,
    bounds: PartBounds,
    columns: Sequence[CheckedColumn],
    json_form: JsonForm,
) -> str:
    """Return the query for the key and the digest of each row of a part."""
    order = ", ".join(map(quote_identifier, key.columns))
    return (
        f"SELECT {_key_texts(table, key)}, SHA2({_row_text(columns, json_form)}, 256) AS row_digest"  # noqa: S608 - quoted
        f" FROM {_from(table, key)}{_where(_range(table, key, bounds))} ORDER BY {order}"
    )


def checksum_from(row: dict[str, object]) -> PartChecksum:
    """Return the checksum of an answer."""
    return PartChecksum(
        int(str(row["row_count"])),
        (str(row["sum_1"]), str(row["sum_2"])),
        int(str(row["unread_rows"])),
    )


def key_from(row: dict[str, object], key: ReadingKey) -> KeyValues:
    """Return the key's values of an answer."""
    return tuple(str(row[f"{KEY_PREFIX}{number}"]) for number in range(len(key.columns)))


def shown_key(table: CheckedTable, key: ReadingKey | None, values: KeyValues) -> KeyValues:
    """Return a key's values for a reader: characters as they are, bytes as 0x…."""
    if key is None:
        return ()
    columns = map(table.column, key.columns)
    return tuple(_readable(each, value) for each, value in zip(columns, values, strict=True))


def _readable(column: CheckedColumn, value: str) -> str:
    codec = _CODECS.get(column.character_set)
    if column.kind is ValueKind.TEXT and codec is not None:
        return bytes.fromhex(value).decode(codec, "backslashreplace")
    return f"0x{value}" if column.kind in (ValueKind.TEXT, ValueKind.RAW) else value


# -- parts of statements --------------------------------------------------------------------------


def _from(table: CheckedTable, key: ReadingKey | None) -> str:
    text = f"{quote_identifier(table.schema)}.{quote_identifier(table.name)}"
    return text if key is None else f"{text} FORCE INDEX ({quote_identifier(key.name)})"


def _where(condition: str) -> str:
    return f" WHERE {condition}" if condition else ""


def _range(table: CheckedTable, key: ReadingKey | None, bounds: PartBounds) -> str:
    if key is None:
        return ""
    conditions = (_above(table, key, bounds.lower), _up_to(table, key, bounds.upper))
    return " AND ".join(each for each in conditions if each)


def _above(table: CheckedTable, key: ReadingKey, values: KeyValues | None) -> str:
    return "" if values is None else _compared(table, key, values, ">", ">")


def _up_to(table: CheckedTable, key: ReadingKey, values: KeyValues | None) -> str:
    return "" if values is None else _compared(table, key, values, "<", "<=")


def _compared(
    table: CheckedTable, key: ReadingKey, values: KeyValues, strictly: str, at_last: str
) -> str:
    """Return the comparison of a key with values, column by column.

    The server finds a range by the first condition; it does not for (a, b) > (1, 2), before 8.0 at
    least.
    """
    names = [quote_identifier(each) for each in key.columns]
    literals = [
        _literal(table.column(name), value) for name, value in zip(key.columns, values, strict=True)
    ]
    condition = f"{names[-1]} {at_last} {literals[-1]}"
    for name, literal in zip(names[-2::-1], literals[-2::-1], strict=True):
        condition = f"{name} {strictly} {literal} OR {name} = {literal} AND ({condition})"
    if len(names) > 1:
        return f"{names[0]} {strictly}= {literals[0]} AND ({condition})"
    return condition


def _literal(column: CheckedColumn, value: str) -> str:
    """Return a key's value, which was read by `_key_texts`, as a literal."""
    if column.kind is ValueKind.RAW:
        return f"x'{bytes.fromhex(value).hex()}'"
    if column.kind is ValueKind.TEXT:
        return f"_{column.character_set} x'{bytes.fromhex(value).hex()}'"
    if column.data_type in ("date", "datetime", "time", "timestamp"):
        return quote_string(value)
    return _number(value)


def _number(value: str) -> str:
    """Return the text of a number. Raises ValueError for any other text."""
    whole, _, fraction = value.removeprefix("-").partition(".")
    if not (whole + fraction).isascii() or not (whole + fraction).isdigit():
        raise ValueError(f"not a number: {value!r}")
    return value


def _key_texts(table: CheckedTable, key: ReadingKey) -> str:
    """Return the key's columns as texts: bytes and characters in hexadecimal."""
    texts = []
    for number, name in enumerate(key.columns):
        column = table.column(name)
        text = _hex(column) if column.kind in (ValueKind.RAW, ValueKind.TEXT) else _shown(column)
        texts.append(f"{text} AS {KEY_PREFIX}{number}")
    return ", ".join(texts)


def _row_text(columns: Sequence[CheckedColumn], json_form: JsonForm) -> str:
    values = ", ".join(f"IFNULL({_value(each, json_form)}, '-')" for each in columns)
    return f"CONCAT_WS(',', {values})"


def _sum_of(digest: str, start: int) -> str:
    """Return the sum of 60 bits of each digest, which are hexadecimal digits from `start` on."""
    return f"SUM(CAST(CONV(SUBSTRING({digest}, {start}, {_DIGITS}), 16, 10) AS UNSIGNED))"


def _document(name: str, json_form: JsonForm) -> str:
    """Return the text of a JSON document, with its types as far as they are compared."""
    text = f"CAST({name} AS CHAR CHARACTER SET utf8mb4)"
    size = f"JSON_STORAGE_SIZE(JSON_INSERT({name}, '$', 1))"  # '$' exists: nothing is inserted
    parts = [text, f"JSON_TYPE({name})", size]
    if json_form is JsonForm.TYPES:
        node = "COALESCE(member, cell)"
        digest = f"SHA2(CONCAT_WS(' ', member_number, cell_number, JSON_TYPE({node})), 256)"
        nodes = (
            f"JSON_TABLE({name}, '$' COLUMNS ("
            "NESTED PATH '$**.*' COLUMNS (member_number FOR ORDINALITY, member JSON PATH '$'),"
            " NESTED PATH '$**[*]' COLUMNS (cell_number FOR ORDINALITY, cell JSON PATH '$')))"
        )
        where = f"JSON_TYPE({node}) NOT IN ({_SHOWN_TYPES})"
        types = f"(SELECT {_sum_of(digest, 1)} FROM {nodes} AS nodes WHERE {where})"  # noqa: S608 - quoted
        parts.append(f"IFNULL({types}, 0)")
    return f"""CONCAT({", '|', ".join(parts)})"""


def _value(column: CheckedColumn, json_form: JsonForm) -> str:
    name = quote_identifier(column.name)
    if column.data_type == "json":
        return f"SHA2({_document(name, json_form)}, 256)"
    if column.kind is ValueKind.LARGE:
        return f"SHA2(CAST({name} AS BINARY), 256)"
    if column.kind is ValueKind.RAW and column.data_type not in ("binary", "varbinary", "bit"):
        return f"SHA2({name}, 256)"
    if column.data_type in ("enum", "set"):
        # Number 0 is the text '', as a member '' is.
        return f"CONCAT({_hex(column)}, IF({name} + 0 = 0, '0', ''))"
    if column.kind is ValueKind.APPROXIMATE:
        # Behind the SRID, the byte order and the type of the geometry.
        return f"SUBSTRING(HEX(POINT({name}, 0)), 19, 16)"
    return _hex(column)


def _hex(column: CheckedColumn) -> str:
    if column.kind in (ValueKind.RAW, ValueKind.TEXT):
        return f"HEX({quote_identifier(column.name)})"
    return f"HEX({_shown(column)})"


def _shown(column: CheckedColumn) -> str:
    return f"CAST({quote_identifier(column.name)} AS CHAR CHARACTER SET utf8mb4)"
