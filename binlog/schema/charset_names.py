"""MySQL's character sets: names, bytes per character, Python codecs, and collation numbers.

Source: SHOW CHARACTER SET and information_schema.COLLATIONS of 5.6.24 and 9.7.4. The number of a
collation has never changed.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

BINARY = "binary"


class _Charset(NamedTuple):
    name: str
    character_bytes_max: int  # Maxlen of SHOW CHARACTER SET
    # Python's codec; None if there is none. Some differ from MySQL in single characters;
    # binlog/rows/charsets.py corrects that.
    codec: str | None
    collations: str  # the collation numbers and ranges: "5 47-49"


_CHARSETS = (
    _Charset("armscii8", 1, None, "32 64"),
    _Charset("ascii", 1, "ascii", "11 65"),
    _Charset("big5", 2, "big5", "1 84"),
    _Charset("binary", 1, None, "63"),
    _Charset("cp1250", 1, "cp1250", "26 34 44 66 99"),
    _Charset("cp1251", 1, "cp1251", "14 23 50-52"),
    _Charset("cp1256", 1, "cp1256", "57 67"),
    _Charset("cp1257", 1, "cp1257", "29 58-59"),
    _Charset("cp850", 1, "cp850", "4 80"),
    _Charset("cp852", 1, "cp852", "40 81"),
    _Charset("cp866", 1, "cp866", "36 68"),
    _Charset("cp932", 2, "cp932", "95-96"),
    _Charset("dec8", 1, None, "3 69"),
    _Charset("eucjpms", 3, "euc_jp", "97-98"),
    _Charset("euckr", 2, "euc_kr", "19 85"),
    _Charset("gb18030", 4, "gb18030", "248-250"),
    _Charset("gb2312", 2, "gb2312", "24 86"),
    _Charset("gbk", 2, "gbk", "28 87"),
    _Charset("geostd8", 1, None, "92-93"),
    _Charset("greek", 1, "iso8859_7", "25 70"),
    _Charset("hebrew", 1, "iso8859_8", "16 71"),
    _Charset("hp8", 1, None, "6 72"),
    _Charset("keybcs2", 1, None, "37 73"),
    _Charset("koi8r", 1, "koi8_r", "7 74"),
    _Charset("koi8u", 1, "koi8_u", "22 75"),
    _Charset("latin1", 1, "cp1252", "5 8 15 31 47-49 94"),
    _Charset("latin2", 1, "iso8859_2", "2 9 21 27 77"),
    _Charset("latin5", 1, "iso8859_9", "30 78"),
    _Charset("latin7", 1, "iso8859_13", "20 41-42 79"),
    _Charset("macce", 1, "mac_latin2", "38 43"),
    _Charset("macroman", 1, "mac_roman", "39 53"),
    _Charset("sjis", 2, "shift_jis", "13 88"),
    _Charset("swe7", 1, None, "10 82"),
    _Charset("tis620", 1, "tis_620", "18 89"),
    _Charset("ucs2", 2, "utf_16_be", "35 90 128-151 159"),
    _Charset("ujis", 3, "euc_jp", "12 91"),
    _Charset("utf16", 4, "utf_16_be", "54-55 101-124"),
    _Charset("utf16le", 4, "utf_16_le", "56 62"),
    _Charset("utf32", 4, "utf_32_be", "60-61 160-183"),
    _Charset("utf8mb3", 3, "utf_8", "33 76 83 192-215 223"),
    _Charset("utf8mb4", 4, "utf_8", "45-46 224-247 255-323"),
)


def _numbers(runs: str) -> Iterator[int]:
    for run in runs.split():
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


CHARACTER_BYTES_MAX: Mapping[str, int] = MappingProxyType(
    {each.name: each.character_bytes_max for each in _CHARSETS}
)
CODEC_OF_CHARSET: Mapping[str, str] = MappingProxyType(
    {each.name: each.codec for each in _CHARSETS if each.codec is not None}
)
CHARSET_OF_COLLATION: Mapping[int, str] = MappingProxyType(
    {number: each.name for each in _CHARSETS for number in _numbers(each.collations)}
)


def charset_name(name: str) -> str:
    """Return the canonical name of a character set: lower-case, and utf8mb3 for utf8."""
    lowered = name.lower()
    return "utf8mb3" if lowered == "utf8" else lowered


def charset_of_collation(collation: str) -> str:
    """Return the character set of a collation: the first part of the collation's name."""
    return charset_name(collation.partition("_")[0])
