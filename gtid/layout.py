"""Allocates the arrays that the kernels use and reads text into them, for columns and single sets.

gtid/kernels/__init__.py describes the layout. This file does not know where the text came from: the
caller passes an address and keeps the memory alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gtid.kernels import folding, measuring, reading
from gtid.kernels.eight_bytes import Bytes, Flags, Numbers, Words
from gtid.kernels.keys import KEY_WORDS
from gtid.tsid import uuid_key

_FIRST_TAG_WORD: Final = 2


class Arrays(NamedTuple):
    """The layout that gtid/kernels describes; read-only once a column owns it."""

    rows: Numbers
    keys: Words
    run_bounds: Numbers
    bounds: Numbers

    @classmethod
    def with_room(cls, *, rows: int, runs: int, bounds: int) -> Arrays:
        """Allocate upper bounds; memory that is never touched costs nothing."""
        return cls(
            np.empty(rows + 1, np.int64),
            np.empty((runs + 1, KEY_WORDS), np.uint64),
            np.empty(runs + 1, np.int64),
            np.empty(bounds, np.int64),
        )

    def trimmed(self) -> Arrays:
        """Return read-only views of the part that was filled."""
        runs = int(self.rows[-1])
        filled = (
            self.rows,
            self.keys[:runs],
            self.run_bounds[: runs + 1],
            self.bounds[: self.run_bounds[runs]],
        )
        for each in filled:
            each.flags.writeable = False
        return Arrays(*filled)


class Limits(NamedTuple):
    """Upper limits on the text of one row."""

    text_bytes: int
    intervals: int  # and tags, as written
    tsids: int


class Read(NamedTuple):
    """The rows as read: each is canonical, or empty with a fault."""

    arrays: Arrays
    truths: Bytes  # reading.ORDERLY, reading.EXACT
    faults: Bytes  # codes of tokens.EXPECTED
    places: Numbers  # of the faults, in bytes from the start of the row


def read_texts(address: int, offsets: Numbers, valid: Flags, limits: Limits) -> Read:
    """Read a GTID set from each valid row of the text; a row with a fault becomes invalid."""
    rows = len(valid)
    colons = int(reading.count_colons(address + offsets[0], address + offsets[-1]))
    made = Arrays.with_room(rows=rows, runs=colons, bounds=2 * colons)
    truths, faults = np.empty(rows, np.uint8), np.empty(rows, np.uint8)
    places = np.empty(rows, np.int64)
    reading.read_rows(
        address,
        offsets,
        limits.text_bytes,
        limits.intervals,
        valid,
        *made,
        truths,
        faults,
        places,
    )
    is_orderly = (truths & reading.ORDERLY != 0) | ~valid
    if not is_orderly.all():
        written, made = made, Arrays.with_room(rows=rows, runs=colons, bounds=2 * colons)
        folding.fold_rows(is_orderly, *written, *made)
    is_too_large = np.diff(made.rows) > limits.tsids
    if is_too_large.any():
        faults[is_too_large], valid[is_too_large] = reading.TOO_LARGE, False
        read = made
        made = Arrays.with_room(rows=rows, runs=colons, bounds=2 * colons)
        chosen = np.where(is_too_large, -1, np.arange(rows))
        measuring.take_rows(chosen, *read, *made)
    return Read(made, truths, faults, places)


def key_text(words: Sequence[int]) -> str:
    """Convert the six words of a run's key to the key text that GtidSet uses."""
    key = uuid_key(f"{words[0]:016x}{words[1]:016x}")
    if not words[_FIRST_TAG_WORD]:
        return key
    tag = b"".join(word.to_bytes(8, "big") for word in words[_FIRST_TAG_WORD:])
    return f"{key}:{tag.decode().rstrip(chr(0))}"
