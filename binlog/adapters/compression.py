"""Decompresses transaction payloads if the package zstandard is installed.

zstandard is optional. Without it, a compressed transaction is still reported with its time and
position. Its statements and tables are not read, and its kind shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from binlog.decode import Decompress

_PIECE_BYTES: Final = 64 * 1024


def find_decompressor() -> Decompress | None:
    """Return the decompressor, or None if zstandard is not installed."""
    if find_spec("zstandard") is None:
        return None
    zstandard: Any = import_module("zstandard")

    def decompress(data: bytes, bytes_max: int) -> bytes:
        """Return the content. Raises ValueError if it has more than `bytes_max` bytes.

        The size in the frame's header is not relied on.
        """
        pieces: list[bytes] = []
        left = bytes_max + 1
        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                # A read allocates memory for its maximum, even if it returns less.
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
    """Return a function for the first bytes of a payload; None if zstandard is not installed.

    The function raises ValueError, as the decompressor does.
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
