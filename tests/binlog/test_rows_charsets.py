"""Characters as the server reads them: each of each character set that Python can decode."""

from __future__ import annotations

import pytest

from binlog.rows.charsets import decode_text
from binlog.schema.charset_names import CHARACTER_BYTES_MAX, CODEC_OF_CHARSET
from compose.native.server import Server

# Those in which a character is its number, and there is nothing to look up.
UNICODE = {"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"}
TABLES = sorted(CODEC_OF_CHARSET.keys() - UNICODE)
# Of euc_jp: three bytes, of which the first says so.
LONG = {"ujis": range(0x8FA1A1, 0x8FFEFF), "eucjpms": range(0x8FA1A1, 0x8FFEFF)}


def read_by(server: Server, charset: str, numbers: range) -> dict[bytes, str | None]:
    """Return what the server makes of the bytes of each number; None if it has no character."""
    found = {}
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET SESSION cte_max_recursion_depth = 10000000")
        made = f"CHAR(n USING {charset})"
        cursor.execute(
            f"WITH RECURSIVE numbers (n) AS (SELECT {numbers.start} UNION ALL"
            f" SELECT n + 1 FROM numbers WHERE n < {numbers.stop - 1})"
            f" SELECT HEX({made}), CONVERT({made} USING utf8mb4) FROM numbers"
        )
        for written, text in cursor.fetchall():
            if written is None or text is None or len(text) != 1:
                continue  # the bytes are no character, or two
            raw = bytes.fromhex(written)
            found[raw] = None if text == "\N{REPLACEMENT CHARACTER}" else text
            if text == "?" and raw != b"?":
                found[raw] = None
    return found


def differing(server: Server, charset: str, numbers: range) -> dict[bytes, tuple[str, str | None]]:
    """Return what we read and the server reads otherwise. What we cannot read is not among it."""
    read = read_by(server, charset, numbers)
    assert len(read) > 90
    return {
        raw: (ours, theirs)
        for raw, theirs in read.items()
        if (ours := decode_text(raw, charset)) is not None and ours != theirs
    }


def test_single_bytes(mysql97: Server) -> None:
    for charset in TABLES:
        assert differing(mysql97, charset, range(256)) == {}, charset


def test_what_python_reads_otherwise(mysql97: Server) -> None:
    for charset, numbers in (
        ("sjis", range(0x8140, 0x81FD)),
        ("ujis", range(0xA1A1, 0xA2FF)),
        ("eucjpms", range(0xA1A1, 0xA2FF)),
        ("eucjpms", range(0x8FA2A1, 0x8FA2FF)),
        ("big5", range(0xA140, 0xA2FF)),
        ("gb18030", range(0xA8A1, 0xA8FF)),
    ):
        assert differing(mysql97, charset, numbers) == {}, charset


@pytest.mark.slow
@pytest.mark.parametrize("charset", [c for c in TABLES if CHARACTER_BYTES_MAX[c] > 1])
def test_every_character_of_several_bytes(mysql97: Server, charset: str) -> None:
    for numbers in (range(256, 1 << 16), *([LONG[charset]] if charset in LONG else [])):
        assert differing(mysql97, charset, numbers) == {}
