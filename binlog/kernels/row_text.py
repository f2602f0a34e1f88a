"""Writes the rows of an event as SQL text: the compiled form of repair/sql/event_texts.py.

How it works
------------
`find_rows` finds where each image begins. `write_rows` then writes row by row, forwards or
backwards: it finds the cells of an image, and fills pieces. A piece is a constant text and the
literal of one column, or another constant if the column is NULL:

    INSERT    "("                    literal   ", " literal  …  ")"
    DELETE    "DELETE … WHERE `id` = " literal " AND `a` = " literal | " AND `a` IS NULL"  …  ";…"

Only what is plain is written here: numbers, dates, and printable ASCII. For anything else (another
character, a value that no server writes, a length that does not fit) the answer is NOT_PLAIN, and
the caller writes the whole event in Python. Tests compare the two.

The caller provides room for `size_of_rows` bytes. Every length is compared with the rest of the
images before it is used.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import Bytes, Numbers

NOT_PLAIN: Final = -1

# The fields of a row of `columns`: how the cell is found, how it is written, and two parameters.
WIDTH, KIND, FIRST, SECOND = range(4)
COLUMN_FIELDS: Final = 4
# WIDTH is the bytes of a cell, or the bytes of its length, negative.
# KIND, with FIRST and SECOND:
#   INTEGER     1 if signed; 1 if a negative one is not plain     UNSIGNED    least plain value
#   TEXT        last plain character                              BINARY      length padded to
#   DECIMAL     digits before the point; digits behind it         DATETIME, TIMESTAMP, TIME  digits
INTEGER, UNSIGNED, TEXT, BINARY, DECIMAL, DATETIME, TIMESTAMP, TIME, DATE, YEAR, BIT = range(11)
# The fields of a row of `pieces`: the column, and two ranges of `constants`.
COLUMN, TEXT_AT, TEXT_END, NULL_AT, NULL_END = range(5)
PIECE_FIELDS: Final = 5
# The characters of the longest literal of a fixed size: a DECIMAL of 65 digits.
LITERAL_MAX: Final = 80

_QUOTE, _BACKSLASH, _SPACE, _ZERO = 0x27, 0x5C, 0x20, 0x30
_MINUS, _POINT, _COLON, _X = 0x2D, 0x2E, 0x3A, 0x78
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DIGIT_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_TENS = np.array([10**power for power in range(19)], np.int64)
_SECONDS_PER_DAY: Final = 86_400
_YEAR_MAX: Final = 9999


@kernel
def find_rows(images: Bytes, columns: Numbers, starts: Numbers) -> int:
    """Find the begin of each image; return their number, or NOT_PLAIN if the bytes do not fit."""
    at, end, count, width = 0, len(images), 0, len(columns)
    null_bytes = (width + 7) // 8
    while at < end:
        if count == len(starts) or end - at < null_bytes:
            return NOT_PLAIN
        starts[count] = at
        count += 1
        nulls, at = at, at + null_bytes
        for column in range(width):
            if images[nulls + (column >> 3)] >> (column & 7) & 1:
                continue
            size = columns[column, WIDTH]
            if size < 0:
                if end - at < -size:
                    return NOT_PLAIN
                length = _little(images, at, -size)
                at += -size
                size = length
            if end - at < size:
                return NOT_PLAIN
            at += size
    return count


@kernel
def write_rows(
    images: Bytes,
    starts: Numbers,
    count: int,
    columns: Numbers,
    pieces: Numbers,
    constants: Bytes,
    joins: Numbers,
    text: Bytes,
) -> int:
    """Write rows that `find_rows` has found; return the length of the text, or NOT_PLAIN.

    `joins` has the range of what ends a row, the range of what stands between two rows, and whether
    the last row is written first.
    """
    width, at = len(columns), 0
    cells, sizes = np.empty(width, np.int64), np.empty(width, np.int64)
    for number in range(count):
        row = count - 1 - number if joins[4] else number
        _find_cells(images, starts[row], columns, cells, sizes)
        if number:
            at = _put(text, at, constants, joins[2], joins[3])
        for piece in range(len(pieces)):
            column = pieces[piece, COLUMN]
            if sizes[column] < 0:
                at = _put(text, at, constants, pieces[piece, NULL_AT], pieces[piece, NULL_END])
                continue
            at = _put(text, at, constants, pieces[piece, TEXT_AT], pieces[piece, TEXT_END])
            at = _literal(text, at, images, cells[column], sizes[column], columns[column])
            if at < 0:
                return NOT_PLAIN
        at = _put(text, at, constants, joins[0], joins[1])
    return at


@kernel
def _find_cells(
    images: Bytes, start: int, columns: Numbers, cells: Numbers, sizes: Numbers
) -> None:
    """Set where each cell of an image begins, and its size, -1 for NULL."""
    width = len(columns)
    at = start + (width + 7) // 8
    for column in range(width):
        if images[start + (column >> 3)] >> (column & 7) & 1:
            sizes[column] = -1
            continue
        size = columns[column, WIDTH]
        if size < 0:
            length = _little(images, at, -size)
            at += -size
            size = length
        cells[column], sizes[column] = at, size
        at += size


@kernel
def _literal(text: Bytes, at: int, images: Bytes, cell: int, size: int, column: Numbers) -> int:
    """Write one literal; return where it ends, or NOT_PLAIN."""
    kind, first = column[KIND], column[FIRST]
    if kind == TEXT:
        return _text(text, at, images, cell, size, first)
    if kind == INTEGER:
        number = _little(images, cell, size)
        if first and size < 8 and number >> (8 * size - 1):
            number -= 1 << (8 * size)
        if number < 0 and (column[SECOND] or not first):
            return NOT_PLAIN if column[SECOND] else _large(text, at, number)
        return _signed(text, at, number)
    if kind == UNSIGNED:
        number = _little(images, cell, size)
        return _signed(text, at, number) if number >= first else NOT_PLAIN
    if kind == DECIMAL:
        return _decimal(text, at, images, cell, first, column[SECOND])
    if kind == BINARY:
        return _binary(text, at, images, cell, size, first)
    if kind == BIT:
        number = _big(images, cell, size)
        return _signed(text, at, number) if size < 8 else NOT_PLAIN
    if kind == YEAR:
        year = np.int64(images[cell])
        return _padded(text, _quote(text, at), year + 1900 if year else 0, 4, _QUOTE)
    return _moment(text, at, images, cell, kind, first)


@inlined
def _little(images: Bytes, at: int, size: int) -> int:
    number = np.int64(0)
    for place in range(size):
        number |= np.int64(images[at + place]) << np.int64(8 * place)
    return number


@inlined
def _big(images: Bytes, at: int, size: int) -> int:
    number = np.int64(0)
    for place in range(size):
        number = number << np.int64(8) | np.int64(images[at + place])
    return number


@inlined
def _put(text: Bytes, at: int, constants: Bytes, start: int, end: int) -> int:
    for place in range(end - start):
        text[at + place] = constants[start + place]
    return at + end - start


@inlined
def _quote(text: Bytes, at: int) -> int:
    text[at] = _QUOTE
    return at + 1


@inlined
def _padded(text: Bytes, at: int, number: int, digits: int, then: int) -> int:
    """Write exactly so many digits, and a character behind them."""
    for place in range(digits):
        text[at + digits - 1 - place] = _ZERO + number % 10
        number //= 10
    text[at + digits] = then
    return at + digits + 1


@kernel
def _signed(text: Bytes, at: int, number: int) -> int:
    """Write a number; the lowest one has no positive counterpart."""
    if number < 0:
        text[at] = _MINUS
        return _large(text, at + 1, -number)
    return _large(text, at, number)


@kernel
def _large(text: Bytes, at: int, number: int) -> int:
    """Write a number of 64 bits without a sign."""
    value, ten = np.uint64(number), np.uint64(10)
    digits, rest = 1, value // ten
    while rest:
        digits += 1
        rest //= ten
    for place in range(digits):
        text[at + digits - 1 - place] = _ZERO + np.int64(value % ten)
        value //= ten
    return at + digits


@kernel
def _text(text: Bytes, at: int, images: Bytes, cell: int, size: int, last: int) -> int:
    """Write printable ASCII up to the character `last`, a quote twice."""
    text[at] = _QUOTE
    at += 1
    for place in range(cell, cell + size):
        byte = images[place]
        if byte < _SPACE or byte > last or byte == _BACKSLASH:
            return NOT_PLAIN
        text[at] = byte
        at += 1
        if byte == _QUOTE:
            text[at] = byte
            at += 1
    text[at] = _QUOTE
    return at + 1


@kernel
def _binary(text: Bytes, at: int, images: Bytes, cell: int, size: int, padded: int) -> int:
    """Write bytes as text if they are plain, else in hexadecimal; zeros fill them up."""
    if size >= padded:
        end = _text(text, at, images, cell, size, 0x7D)
        if end >= 0:
            return end
    text[at], text[at + 1] = _ZERO, _X
    at += 2
    for place in range(max(size, padded)):
        byte = np.int64(images[cell + place]) if place < size else 0
        text[at], text[at + 1] = _HEX[byte >> 4], _HEX[byte & 15]
        at += 2
    return at


@kernel
def _decimal(text: Bytes, at: int, images: Bytes, cell: int, whole: int, scale: int) -> int:
    """Write a DECIMAL (decimal.cc): groups of nine digits in four bytes, the short ones outside."""
    is_negative = not images[cell] & 0x80
    flip = 0xFF if is_negative else 0
    if is_negative:
        text[at] = _MINUS
        at += 1
    begin, place, is_zero = at, cell, True
    for part in range(2):
        digits = scale if part else whole
        if part and scale:
            if at == begin:
                text[at] = _ZERO
                at += 1
            text[at] = _POINT
            at += 1
        short = digits % 9
        for number in range((digits + 8) // 9):
            is_short = short > 0 and (number == 0 if not part else number == digits // 9)
            group = short if is_short else 9
            value = np.int64(0)
            for _ in range(_DIGIT_BYTES[group]):
                byte = np.int64(images[place]) ^ flip
                value = value << np.int64(8) | (byte ^ 0x80 if place == cell else byte)
                place += 1
            if value >= _TENS[group]:
                return NOT_PLAIN
            is_zero = is_zero and value == 0
            if part or at > begin:
                at = _padded(text, at, value, group, _ZERO) - 1
            elif value:
                at = _large(text, at, value)
    if is_negative and is_zero:
        return NOT_PLAIN
    if at == begin:
        text[at] = _ZERO
        at += 1
    return at


@kernel
def _moment(text: Bytes, at: int, images: Bytes, cell: int, kind: int, digits: int) -> int:
    """Write a DATE, or a DATETIME, TIMESTAMP or TIME with a fraction of so many digits."""
    at = _quote(text, at)
    if kind == DATE:
        packed = _little(images, cell, 3)
        if packed >> 9 > _YEAR_MAX:
            return NOT_PLAIN
        return _date(text, at, packed >> 9, packed >> 5 & 15, packed & 31, _QUOTE)
    size = (digits + 1) // 2
    if kind == TIME:
        packed = _big(images, cell, 3 + size) - (1 << (23 + 8 * size))
        if packed < 0:
            text[at] = _MINUS
            at, packed = at + 1, -packed
        fraction, clock = packed & ((1 << (8 * size)) - 1), packed >> (8 * size)
        if clock >> 12 > 999:
            return NOT_PLAIN
        at = _clock(text, at, clock)
    elif kind == DATETIME:
        packed = _big(images, cell, 5) - (1 << 39)
        fraction, ymd, clock = _big(images, cell + 5, size), packed >> 17, packed & 0x1FFFF
        if packed < 0 or (ymd >> 5) // 13 > _YEAR_MAX:
            return NOT_PLAIN
        at = _date(text, at, (ymd >> 5) // 13, (ymd >> 5) % 13, ymd & 31, _SPACE)
        at = _clock(text, at, clock)
    else:
        seconds, fraction = _big(images, cell, 4), _big(images, cell + 4, size)
        at = _civil(text, at, seconds)
    if fraction >= _TENS[2 * size]:
        return NOT_PLAIN
    if digits:
        text[at] = _POINT
        shown = fraction // 10 if digits & 1 else fraction
        return _padded(text, at + 1, shown, digits, _QUOTE)
    text[at] = _QUOTE
    return at + 1


@inlined
def _date(text: Bytes, at: int, year: int, month: int, day: int, then: int) -> int:
    at = _padded(text, at, year, 4, _MINUS)
    at = _padded(text, at, month, 2, _MINUS)
    return _padded(text, at, day, 2, then)


@inlined
def _clock(text: Bytes, at: int, hms: int) -> int:
    """Write a packed time of day; hours of a TIME may have three digits."""
    hours = hms >> 12
    at = _padded(text, at, hours, 3 if hours > 99 else 2, _COLON)
    at = _padded(text, at, hms >> 6 & 63, 2, _COLON)
    return _padded(text, at, hms & 63, 2, _QUOTE) - 1


@kernel
def _civil(text: Bytes, at: int, seconds: int) -> int:
    """Write seconds since 1970 in UTC; 0 is the zero date.

    Days are counted in eras of 400 years of the Gregorian calendar that begin in March.
    """
    if seconds == 0:
        at = _date(text, at, 0, 0, 0, _SPACE)
        return _clock(text, at, 0)
    days, rest = seconds // _SECONDS_PER_DAY + 719_468, seconds % _SECONDS_PER_DAY
    era, day_of_era = days // 146_097, days % 146_097
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    at = _date(text, at, year + era * 400 + (1 if month <= 2 else 0), month, day, _SPACE)
    return _clock(text, at, rest // 3600 << 12 | rest // 60 % 60 << 6 | rest % 60)
