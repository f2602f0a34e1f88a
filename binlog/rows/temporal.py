"""Reads dates and times as the text that MySQL shows.

1. The result is text, because a column can contain values that Python's dates cannot represent:
   0000-00-00, 2024-02-00, 31 February. Python's time of day ends at 24 hours, MySQL's at 838.
2. The library's readers are not used for that reason. They return None for all of these, read
   TIMESTAMP 0 as 1970, and get the fraction of a negative TIME wrong.
3. A TIMESTAMP is returned in UTC.
4. Layouts: my_time.cc (my_datetime_packed_from_binary and similar functions), field.cc for the old
   types.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from binlog.cursor import Cursor
from binlog.log_times import EPOCH

_ZERO_DATETIME = "0000-00-00 00:00:00"
_DAY_SECONDS = 86_400
_MICROSECOND_BITS = 24
_DIGITS_MAX = 6


class TemporalKind(Enum):
    """The type of a packed value in a JSON document."""

    DATE = "date"
    TIME = "time"
    DATETIME = "datetime"


def packed_text(kind: TemporalKind, packed: int) -> str:
    """Write a packed value: date and time in the high bits, microseconds in the low 24 bits.

    The sign applies to the whole number (TIME_datetime_packed, TIME_time_packed, my_time.cc).
    """
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    microseconds = packed & (1 << _MICROSECOND_BITS) - 1
    seconds = packed >> _MICROSECOND_BITS
    if kind is TemporalKind.DATE:
        return sign + _date(seconds >> 17)
    if kind is TemporalKind.TIME:
        return f"{sign}{_clock(seconds)}.{microseconds:06d}"
    return f"{sign}{_date(seconds >> 17)} {_clock(seconds & 0x1FFFF)}.{microseconds:06d}"


@lru_cache(maxsize=1024)
def _date(ymd: int) -> str:
    """Write a packed date: year * 13 + month, then five bits of day."""
    year, month = divmod(ymd >> 5, 13)
    return f"{year:04d}-{month:02d}-{ymd & 31:02d}"


def _clock(hms: int) -> str:
    """Write a packed time: hours, then six bits of minutes and six of seconds."""
    return f"{hms >> 12:02d}:{hms >> 6 & 63:02d}:{hms & 63:02d}"


def _fraction_bytes(digits: int) -> int:
    return (digits + 1) // 2


def _fraction(cursor: Cursor, stored: int, digits: int) -> str:
    """Write a fraction: two digits in each byte; an odd number is stored with one more digit."""
    if not digits:
        return ""
    size = 2 * _fraction_bytes(digits)
    if stored >= 10**size:
        raise cursor.fail(f"expected a fraction of {size} digits, found {stored}")
    return "." + f"{stored:0{size}d}"[:digits]


def _check_digits(cursor: Cursor, digits: int) -> None:
    if digits > _DIGITS_MAX:
        raise cursor.fail(f"expected six digits of fraction or fewer, found {digits}")


def _big_endian(cursor: Cursor, count: int) -> int:
    return int.from_bytes(cursor.take(count, "a temporal value"), "big")


def read_datetime2(cursor: Cursor, digits: int) -> str:
    """Read a DATETIME(n): 40 bits with the highest set, and the fraction."""
    _check_digits(cursor, digits)
    whole = _big_endian(cursor, 5) - (1 << 39)
    if whole < 0:
        raise cursor.fail("a negative DATETIME")
    fraction = _fraction(cursor, _big_endian(cursor, _fraction_bytes(digits)), digits)
    return datetime_text(whole) + fraction


def datetime_text(whole: int) -> str:
    """Write the whole seconds of a DATETIME, packed without the highest bit."""
    return f"{_date(whole >> 17)} {_clock(whole & 0x1FFFF)}"


def read_time2(cursor: Cursor, digits: int) -> str:
    """Read a TIME(n): 24 bits and the fraction as one number; a negative is complemented."""
    _check_digits(cursor, digits)
    size = 3 + _fraction_bytes(digits)
    bits = 8 * _fraction_bytes(digits)
    value = _big_endian(cursor, size) - (1 << (23 + bits))
    sign, value = ("-", -value) if value < 0 else ("", value)
    fraction = _fraction(cursor, value & (1 << bits) - 1, digits)
    return f"{sign}{_clock(value >> bits)}{fraction}"


def read_timestamp2(cursor: Cursor, digits: int) -> str:
    """Read a TIMESTAMP(n): seconds since 1970, big-endian, and the fraction."""
    _check_digits(cursor, digits)
    seconds = _big_endian(cursor, 4)
    return timestamp_text(seconds) + _fraction(
        cursor, _big_endian(cursor, _fraction_bytes(digits)), digits
    )


def timestamp_text(seconds: int) -> str:
    """Write a TIMESTAMP. 0 is the zero date, not 1970: the range begins one second later."""
    if not seconds:
        return _ZERO_DATETIME
    days, seconds = divmod(seconds, _DAY_SECONDS)
    minutes, seconds = divmod(seconds, 60)
    return f"{_day(days)} {minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


@lru_cache(maxsize=1024)
def _day(days: int) -> str:
    """Write the date so many days after 1970-01-01."""
    return (EPOCH + timedelta(days=days)).date().isoformat()


def read_date(cursor: Cursor, _metadata: int) -> str:
    """Read a DATE: five bits of day, four bits of month, then the year."""
    value = cursor.integer(3, "a date")
    return f"{value >> 9:04d}-{value >> 5 & 15:02d}-{value & 31:02d}"


def read_old_timestamp(cursor: Cursor, _metadata: int) -> str:
    """Read a TIMESTAMP in the format before 5.6.4."""
    return timestamp_text(cursor.integer(4, "a timestamp"))


def read_old_datetime(cursor: Cursor, _metadata: int) -> str:
    """Read a DATETIME in the format before 5.6.4: the decimal digits YYYYMMDDhhmmss."""
    digits = f"{cursor.integer(8, 'a datetime'):014d}"
    date, clock = digits[:-6], digits[-6:]
    return f"{date[:-4]}-{date[-4:-2]}-{date[-2:]} {clock[:2]}:{clock[2:4]}:{clock[4:]}"


def read_old_time(cursor: Cursor, _metadata: int) -> str:
    """Read a TIME in the format before 5.6.4: the decimal digits hhmmss, in 24 signed bits."""
    value = int.from_bytes(cursor.take(3, "a time"), "little", signed=True)
    clock = f"{abs(value):06d}"
    return f"{'-' if value < 0 else ''}{clock[:-4]}:{clock[-4:-2]}:{clock[-2:]}"


def read_year(cursor: Cursor, _metadata: int) -> str:
    """Read a YEAR: years since 1900, and 0 for 0000 (the library returns 1900 for 0)."""
    value = cursor.integer(1, "a year")
    return f"{value + 1900:04d}" if value else "0000"


# By enum_field_types, include/field_types.h.
READERS: Mapping[int, Callable[[Cursor, int], str]] = MappingProxyType(
    {
        7: read_old_timestamp,
        10: read_date,
        11: read_old_time,
        12: read_old_datetime,
        13: read_year,
        14: read_date,
        17: read_timestamp2,
        18: read_datetime2,
        19: read_time2,
    }
)
