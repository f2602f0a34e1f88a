"""Reads the TABLE_MAPs of transactions and finds where each row of their row events ends.

1. A row event does not contain its number of rows. Only the lengths of the values lead from one row
   to the next, and they follow from the types and metadata in the TABLE_MAP. The rules are those of
   binlog/rows/images.py; tests compare the two.
2. Every length is compared with the rest of the event before it is used. A length that does not
   fit, or an unknown type, is UNSOUND: the decoder then raises the appropriate error.
3. A parsed table is kept for later transactions as long as its TABLE_MAP has the same bytes. But a
   transaction finds only tables that have a TABLE_MAP in that transaction.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.event_types import ROWS_UPDATED
from binlog.event_types import EventType as Type
from gtid.jit import kernel
from gtid.kernels.eight_bytes import Numbers, load_eight
from gtid.kernels.hash_bytes import integer

TABLES_MAX: Final = 256
COLUMNS_MAX: Final = 16_384

UNSOUND, NOT_ANNOUNCED = -1, -2

# The fields of a row of `tables`: the table id, its columns in `columns`, the number of JSON
# columns, the addresses of its TABLE_MAP and of the names and types in it, and the number of its
# last TABLE_MAP.
(
    ID, FIRST, WIDTH, JSONS, BODY, BODY_END,
    SCHEMA, SCHEMA_END, TABLE, TABLE_END, KINDS, METADATA, ANNOUNCED,
) = range(13)  # fmt: skip
TABLE_FIELDS: Final = 13
# The fields of `known`: the number of tables, of columns in use, of TABLE_MAPs so far, and of
# TABLE_MAPs before this transaction.
TABLES, COLUMNS, NOW, BEGAN = range(4)
KNOWN_FIELDS: Final = 4
# The fields of `form`, of a row event: its bitmaps, the bytes of NULL flags for each, its images.
BEFORE, AFTER, NULLS_BEFORE, NULLS_AFTER, IMAGES, HAS_AFTER, IS_PARTIAL = range(7)
FORM_FIELDS: Final = 7

_PARTIAL_UPDATE: Final = int(Type.PARTIAL_UPDATE_ROWS)
_FIRST_V2: Final = int(Type.WRITE_ROWS)  # row events before that have no extra data
IS_UPDATE = np.zeros(256, np.bool_)
IS_UPDATE[list(ROWS_UPDATED)] = True

# The bytes of a value by its type, or the rule that derives them from its metadata.
_SIZED, _BLOB, _VARCHAR, _STRING, _DECIMAL, _BIT, _TEMPORAL, _UNKNOWN = range(-108, -100)
_LENGTHS = np.full(256, _UNKNOWN, np.int64)
_LENGTHS[[1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14]] = 1, 2, 4, 0, 4, 8, 3, 3, 3, 8, 1, 3
_LENGTHS[[4, 5]], _LENGTHS[15], _LENGTHS[254] = _SIZED, _VARCHAR, _STRING
_LENGTHS[[247, 248]] = _STRING
_LENGTHS[[242, 245, 249, 250, 251, 252, 255]] = _BLOB
_LENGTHS[246], _LENGTHS[16] = _DECIMAL, _BIT
_LENGTHS[[17, 18, 19]] = _TEMPORAL
_JSON: Final = 245
# The bytes of metadata in a TABLE_MAP; two are big-endian, except for VARCHAR and BIT.
_META_BYTES = np.zeros(256, np.int64)
_META_BYTES[[4, 5, 17, 18, 19, 245, 242, 249, 250, 251, 252, 255]] = 1
_META_BYTES[[15, 16, 246, 247, 248, 253, 254]] = 2
_DIGIT_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)


@kernel
def begin_transaction(known: Numbers) -> None:
    """Begin without any announced table; clear the arrays if half of the space is used."""
    known[BEGAN] = known[NOW]
    if 2 * known[TABLES] > TABLES_MAX or 2 * known[COLUMNS] > COLUMNS_MAX:
        known[TABLES] = known[COLUMNS] = 0


@kernel
def announce(at: int, stop: int, known: Numbers, tables: Numbers, columns: Numbers) -> int:
    """Record the table of a TABLE_MAP; return its number, or UNSOUND."""
    if stop - at < 9:
        return UNSOUND
    identity, number = integer(at, 6), known[TABLES]
    known[NOW] += 1
    while number:
        number -= 1
        if tables[number, ID] == identity and _same(tables[number], at, stop):
            tables[number, ANNOUNCED] = known[NOW]
            return number
    number = known[TABLES]
    if number == TABLES_MAX or not _read_table(at, stop, tables[number]):
        return UNSOUND
    first, width = known[COLUMNS], tables[number, WIDTH]
    if width > COLUMNS_MAX - first:
        return UNSOUND
    kinds, metadata, jsons = tables[number, KINDS], tables[number, METADATA], 0
    for column in range(width):
        kind = integer(kinds + column, 1)
        value, metadata = column_metadata(kind, metadata)
        columns[first + column] = _length_of(kind, value)
        jsons += kind == _JSON
    tables[number, ID], tables[number, FIRST], tables[number, JSONS] = identity, first, jsons
    tables[number, ANNOUNCED] = known[NOW]
    known[TABLES], known[COLUMNS] = number + 1, first + width
    return number


@kernel
def _same(table: Numbers, at: int, stop: int) -> bool:
    """Return whether a TABLE_MAP has the same bytes as that of a table."""
    other = table[BODY]
    if table[BODY_END] - other != stop - at:
        return False
    while stop - at >= 8:
        if load_eight(at) != load_eight(other):
            return False
        at, other = at + 8, other + 8
    return integer(at, stop - at) == integer(other, stop - at)


@kernel
def _read_table(at: int, stop: int, table: Numbers) -> bool:
    """Find the parts of a TABLE_MAP of at least nine bytes; return False if they do not fit."""
    schema = at + 9
    schema_end = schema + integer(at + 8, 1)
    if stop - schema_end < 2:
        return False
    name = schema_end + 2
    name_end = name + integer(schema_end + 1, 1)
    if stop - name_end < 1:
        return False
    width, kinds = net_integer(name_end + 1, stop)
    if kinds == 0 or width > stop - kinds:
        return False
    size, metadata = net_integer(kinds + width, stop)
    if metadata == 0 or size + (width + 7) // 8 > stop - metadata:
        return False
    needed = 0
    for column in range(width):
        needed += _META_BYTES[integer(kinds + column, 1)]
    table[BODY], table[BODY_END], table[WIDTH] = at, stop, width
    table[SCHEMA], table[SCHEMA_END], table[TABLE], table[TABLE_END] = (
        schema, schema_end, name, name_end,
    )  # fmt: skip
    table[KINDS], table[METADATA] = kinds, metadata
    return needed <= size


@kernel
def open_rows(at: int, stop: int, code: int, known: Numbers, tables: Numbers, form: Numbers) -> int:
    """Read a row event up to its images; return the number of its table, or UNSOUND.

    NOT_ANNOUNCED: the transaction has no TABLE_MAP for it; `form` has the start of the images.
    """
    if stop - at < 8:
        return UNSOUND
    table = _find(integer(at, 6), known, tables)
    at += 8
    if code >= _FIRST_V2:
        extra = integer(at, 2) if stop - at >= 2 else 0
        if extra < 2 or extra > stop - at:
            return UNSOUND
        at += extra
    width, at = net_integer(at, stop)
    size = (width + 7) // 8
    has_after = IS_UPDATE[code]
    images = at + size + has_after * size
    if at == 0 or images > stop or (table >= 0 and width != tables[table, WIDTH]):
        return UNSOUND
    form[BEFORE], form[AFTER], form[IMAGES] = at, images - size, images
    form[HAS_AFTER], form[IS_PARTIAL] = has_after, code == _PARTIAL_UPDATE
    form[NULLS_BEFORE] = (_present(at, width) + 7) // 8
    form[NULLS_AFTER] = (_present(images - size, width) + 7) // 8
    return table


@kernel
def _find(identity: int, known: Numbers, tables: Numbers) -> int:
    """Find a table of this transaction by its id: the one with the latest TABLE_MAP."""
    found, announced = NOT_ANNOUNCED, known[BEGAN]
    for number in range(known[TABLES]):
        if tables[number, ID] == identity and tables[number, ANNOUNCED] > announced:
            found, announced = number, tables[number, ANNOUNCED]
    return found


@kernel
def _present(bitmap: int, width: int) -> int:
    """Count the columns that have values in the images."""
    present = 0
    for column in range(width):
        present += integer(bitmap + (column >> 3), 1) >> (column & 7) & 1
    return present


@kernel
def behind_row(at: int, stop: int, form: Numbers, table: Numbers, columns: Numbers) -> int:
    """Skip a row, or both images of an update; return 0 if it does not end within the event."""
    first, width = table[FIRST], table[WIDTH]
    behind = _behind_image(at, stop, form[BEFORE], form[NULLS_BEFORE], columns, first, width)
    if form[IS_PARTIAL] and behind:
        options, behind = net_integer(behind, stop)
        if options & 1 and behind:
            behind += (table[JSONS] + 7) // 8
    if form[HAS_AFTER] and behind:
        behind = _behind_image(behind, stop, form[AFTER], form[NULLS_AFTER], columns, first, width)
    return behind if behind > at else 0


@kernel
def _behind_image(
    at: int, stop: int, bitmap: int, null_bytes: int, columns: Numbers, first: int, width: int
) -> int:
    """Skip one row image; return 0 if it does not end within the event."""
    nulls, place = at, 0
    at += null_bytes
    if at > stop:
        return 0
    for column in range(width):
        if not integer(bitmap + (column >> 3), 1) >> (column & 7) & 1:
            continue
        if not integer(nulls + (place >> 3), 1) >> (place & 7) & 1:
            length = columns[first + column]
            if length < 0:
                if length == _UNKNOWN or -length > stop - at:
                    return 0
                length = -length + integer(at, -length)
            at += length
            if at > stop:
                return 0
        place += 1
    return at


@kernel
def net_integer(at: int, stop: int) -> tuple[int, int]:
    """Read a length-encoded integer; return its value and end. The end is 0 if it is invalid."""
    if at >= stop:
        return 0, 0
    first = integer(at, 1)
    if first < 251:
        return first, at + 1
    count = 2 if first == 252 else 3 if first == 253 else 0
    if count == 0 or stop - at <= count:  # no number here needs eight bytes
        return 0, 0
    return integer(at + 1, count), at + 1 + count


@kernel
def column_metadata(kind: int, at: int) -> tuple[int, int]:
    """Read a column's metadata, which the caller has checked; return the value and the end."""
    size = _META_BYTES[kind]
    value = integer(at, size)
    if size == 2 and kind > 16:
        value = (value & 0xFF) << 8 | value >> 8
    return value, at + size


@kernel
def _length_of(kind: int, meta: int) -> int:
    """Return the bytes of a value; a negative result is the size of the length before it."""
    rule, high, low = _LENGTHS[kind], meta >> 8, meta & 0xFF
    if rule == _SIZED:
        return meta
    if rule == _BLOB:
        return -meta if 0 < meta < 8 else _UNKNOWN
    if rule == _VARCHAR:
        return -2 if meta > 255 else -1
    if rule == _STRING and high in (247, 248):
        return low
    if rule == _STRING:
        return -2 if ((high << 4 & 0x300) ^ 0x300) + low > 255 else -1
    if rule == _DECIMAL:
        if low > high:
            return _UNKNOWN
        bytes_whole = (high - low) // 9 * 4 + _DIGIT_BYTES[(high - low) % 9]
        return bytes_whole + low // 9 * 4 + _DIGIT_BYTES[low % 9]
    if rule == _BIT:
        return high + (1 if low else 0)
    if rule == _TEMPORAL:
        return (5 if kind == 18 else 4 if kind == 17 else 3) + (meta + 1) // 2
    return rule
