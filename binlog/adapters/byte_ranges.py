"""Reads a range of a file's bytes, in pieces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20


def read_between(path: Path, start: int = 0, end: int = sys.maxsize) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or to the end of the file."""
    with path.open("rb") as file:
        file.seek(start)
        left = end - start
        while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
            yield chunk
            left -= len(chunk)
