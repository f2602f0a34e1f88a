"""What Python calls MySQL's character sets, and which bytes mean the same in all of them.

Python's decoders are used to show a text. Where Python has none for a character set, or the bytes
are none of it, the answer is that it cannot be shown as text; no character is replaced or left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from binlog.schema.charsets import BINARY

UTF8 = frozenset({"utf8mb3", "utf8mb4"})

# Not in Python: armscii8, dec8, geostd8, hp8, keybcs2, swe7. macce is mac_latin2 there; gb18030 and
# the Japanese sets differ from MySQL's in single characters, which matters to a reader only.
_CODECS: Mapping[str, str] = MappingProxyType(
    {
        "ascii": "ascii",
        "big5": "big5",
        "cp1250": "cp1250",
        "cp1251": "cp1251",
        "cp1256": "cp1256",
        "cp1257": "cp1257",
        "cp850": "cp850",
        "cp852": "cp852",
        "cp866": "cp866",
        "cp932": "cp932",
        "eucjpms": "euc_jp",
        "euckr": "euc_kr",
        "gb18030": "gb18030",
        "gb2312": "gb2312",
        "gbk": "gbk",
        "greek": "iso8859_7",
        "hebrew": "iso8859_8",
        "koi8r": "koi8_r",
        "koi8u": "koi8_u",
        "latin1": "cp1252",
        "latin2": "iso8859_2",
        "latin5": "iso8859_9",
        "latin7": "iso8859_13",
        "macce": "mac_latin2",
        "macroman": "mac_roman",
        "sjis": "shift_jis",
        "tis620": "tis_620",
        "ucs2": "utf_16_be",
        "ujis": "euc_jp",
        "utf16": "utf_16_be",
        "utf16le": "utf_16_le",
        "utf32": "utf_32_be",
        "utf8mb3": "utf_8",
        "utf8mb4": "utf_8",
    }
)
# What a byte below 0x80 means is the same in all of these, except where noted in `is_plain`.
_NOT_ASCII = frozenset({BINARY, "swe7", "ucs2", "utf16", "utf16le", "utf32"})
_PLAIN = frozenset(range(0x20, 0x7E)) - {ord("\\")}  # sjis and others have their own \ and ~


def decode_text(data: bytes, charset: str | None) -> str | None:
    """Decode a text; None if Python cannot, or if the bytes are none of that character set."""
    codec = _CODECS.get(charset or "")
    if codec is None:
        return None
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def is_plain(data: bytes, charset: str | None) -> bool:
    """Tell if the bytes are printable ASCII and mean just that in the character set."""
    return charset is not None and charset not in _NOT_ASCII and _PLAIN.issuperset(data)
