"""What a column needs to know of character sets: their names, and bytes per character.

Source: SHOW CHARACTER SET and information_schema.COLLATIONS of 5.6.24 and 9.7.4; a number once
given to a collation has never changed.
"""

from collections.abc import Mapping
from types import MappingProxyType

BINARY = "binary"

# Maxlen of SHOW CHARACTER SET.
CHARACTER_BYTES_MAX: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("armscii8", "ascii", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850"),
                *("cp852", "cp866", "dec8", "geostd8", "greek", "hebrew", "hp8", "keybcs2"),
                *("koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman"),
                *("swe7", "tis620"),
            ),
            1,
        ),
        **dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2"), 2),
        **dict.fromkeys(("eucjpms", "ujis", "utf8mb3"), 3),
        **dict.fromkeys(("gb18030", "utf16", "utf16le", "utf32", "utf8mb4"), 4),
    }
)

_OF_COLLATIONS: tuple[tuple[str, tuple[range, ...]], ...] = (
    ("big5", (range(1, 2), range(84, 85))),
    ("latin2", (range(2, 3), range(9, 10), range(21, 22), range(27, 28), range(77, 78))),
    ("dec8", (range(3, 4), range(69, 70))),
    ("cp850", (range(4, 5), range(80, 81))),
    ("latin1", (range(5, 6), range(8, 9), range(15, 16), range(31, 32), range(47, 50))),
    ("latin1", (range(94, 95),)),
    ("hp8", (range(6, 7), range(72, 73))),
    ("koi8r", (range(7, 8), range(74, 75))),
    ("swe7", (range(10, 11), range(82, 83))),
    ("ascii", (range(11, 12), range(65, 66))),
    ("ujis", (range(12, 13), range(91, 92))),
    ("sjis", (range(13, 14), range(88, 89))),
    ("cp1251", (range(14, 15), range(23, 24), range(50, 53))),
    ("hebrew", (range(16, 17), range(71, 72))),
    ("tis620", (range(18, 19), range(89, 90))),
    ("euckr", (range(19, 20), range(85, 86))),
    ("latin7", (range(20, 21), range(41, 43), range(79, 80))),
    ("koi8u", (range(22, 23), range(75, 76))),
    ("gb2312", (range(24, 25), range(86, 87))),
    ("greek", (range(25, 26), range(70, 71))),
    ("cp1250", (range(26, 27), range(34, 35), range(44, 45), range(66, 67), range(99, 100))),
    ("gbk", (range(28, 29), range(87, 88))),
    ("cp1257", (range(29, 30), range(58, 60))),
    ("latin5", (range(30, 31), range(78, 79))),
    ("armscii8", (range(32, 33), range(64, 65))),
    ("utf8mb3", (range(33, 34), range(76, 77), range(83, 84), range(192, 216), range(223, 224))),
    ("ucs2", (range(35, 36), range(90, 91), range(128, 152), range(159, 160))),
    ("cp866", (range(36, 37), range(68, 69))),
    ("keybcs2", (range(37, 38), range(73, 74))),
    ("macce", (range(38, 39), range(43, 44))),
    ("macroman", (range(39, 40), range(53, 54))),
    ("cp852", (range(40, 41), range(81, 82))),
    ("utf8mb4", (range(45, 47), range(224, 248), range(255, 324))),
    ("utf16", (range(54, 56), range(101, 125))),
    ("utf16le", (range(56, 57), range(62, 63))),
    ("cp1256", (range(57, 58), range(67, 68))),
    ("utf32", (range(60, 62), range(160, 184))),
    ("binary", (range(63, 64),)),
    ("geostd8", (range(92, 94),)),
    ("cp932", (range(95, 97),)),
    ("eucjpms", (range(97, 99),)),
    ("gb18030", (range(248, 251),)),
)
CHARSET_OF_COLLATION: Mapping[int, str] = MappingProxyType(
    {number: name for name, ranges in _OF_COLLATIONS for each in ranges for number in each}
)


def charset_name(name: str) -> str:
    """Give the one name of a character set: lower-case, and utf8mb3 for what was called utf8."""
    lowered = name.lower()
    return "utf8mb3" if lowered == "utf8" else lowered


def charset_of_collation(collation: str) -> str:
    """Give the character set of a collation by its name, whose first part it is."""
    return charset_name(collation.partition("_")[0])
