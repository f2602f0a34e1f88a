"""Opens compressed transaction payloads, if the machine has what it takes.

zstandard is an optional dependency: without it a compressed transaction is still found, dated and
placed, but its statements and tables stay unread, and its kind says so.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from binlog.decode import Decompress

_PIECE_BYTES: Final = 64 * 1024


def find_decompressor() -> Decompress | None:
    """Return the decompressor of this machine, or None if zstandard is not installed."""
    if find_spec("zstandard") is None:
        return None
    zstandard: Any = import_module("zstandard")

    def decompress(data: bytes, bytes_max: int) -> bytes:
        """Never give more than `bytes_max` bytes, whatever the frame says of itself."""
        pieces: list[bytes] = []
        left = bytes_max + 1
        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                # A read takes the memory for all that it may give, however little that is.
                while left and (piece := reader.read(min(left, _PIECE_BYTES))):
                    pieces.append(piece)
                    left -= len(piece)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
        if not left:
            raise ValueError(f"more than the {bytes_max:,} bytes it should hold")
        return b"".join(pieces)

    return decompress


def find_peek() -> Callable[[bytes, int], bytes] | None:
    """Return what shows the first bytes of a payload, or None if zstandard is not installed.

    It raises ValueError, as the decompressor does.
    """
    if find_spec("zstandard") is None:
        return None
    zstandard: Any = import_module("zstandard")

    def peek(data: bytes, bytes_max: int) -> bytes:
        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                content: bytes = reader.read(bytes_max)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
        return content

    return peek
