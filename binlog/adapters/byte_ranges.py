"""Reads a range of a file's bytes, in pieces.

Kernels (kernels/addresses.py), RowLog, which keeps its file open and goes from header to
header, and DefiningEvents, whose next window depends on what it found in the last one, read at
places of their own. Everything else that reads bytes of a log uses `read_between`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20


def read_between(
    path: Path, start: int = 0, end: int = sys.maxsize, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or to the end of the file."""
    with path.open("rb") as file:
        file.seek(start)
        left = end - start
        while left > 0 and (chunk := file.read(min(left, chunk_bytes))):
            yield chunk
            left -= len(chunk)
