"""Sets to measure the algebra with: very fragmented ones, and many small pairs."""

import numpy as np
import pyarrow as pa

from benchmarks.generate.draws import Draws, Int64s
from benchmarks.generate.kinds import draw_numbers
from benchmarks.generate.numbers import FIRST, A, B, GeneratedFleet
from benchmarks.generate.rows import family_of
from benchmarks.generate.texts import UUID_CHARS, Bytes, Gaps, kernel, set_texts, write_interval

_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_INTERVAL_CHARS_MAX = 40


def uneven_set(intervals: int, *, seed: int) -> str:
    """Return the text of one UUID with so many intervals of 2 to 4 numbers, 1 to 4 apart."""
    draws = Draws(seed, 0, intervals)
    lengths, gaps = draws.between("length", 2, 4), draws.between("gap", 1, 4)
    highs = np.cumsum(lengths + gaps)
    return _text_of(highs - lengths, highs)


def even_set(intervals: int, *, start: int) -> str:
    """Return the text of one UUID with so many intervals of 2 numbers, 2 apart."""
    lows = start + 4 * np.arange(intervals)
    return _text_of(lows, lows + 2)


def _text_of(lows: Int64s, highs: Int64s) -> str:
    text = np.empty(UUID_CHARS + len(lows) * _INTERVAL_CHARS_MAX, dtype=np.uint8)
    text[:UUID_CHARS] = np.frombuffer(_UUID.encode(), dtype=np.uint8)
    end = _write_intervals(lows, highs, text, UUID_CHARS)
    return text[:end].tobytes().decode()


def pairs_of_sets(pairs: int, *, seed: int) -> tuple[pa.StringArray, pa.StringArray]:
    """Return what sources and their replicas have executed: 2 to 6 UUIDs, 0 to 5 holes each.

    As a fleet under load is read: each has a little that the other has not yet.
    """
    fleet = GeneratedFleet(pairs=pairs, seed=seed)
    numbers, _ = draw_numbers(fleet, first=0, count=pairs)
    family, clusters = family_of(numbers), np.arange(pairs)
    source, replica = (
        set_texts(
            family,
            clusters,
            lows=np.ones_like(numbers.top),
            highs=numbers.executed[:, server, FIRST] + 1,
            gaps=Gaps.none(pairs),
        )
        for server in (A, B)
    )
    return source, replica


@kernel
def _write_intervals(lows: Int64s, highs: Int64s, text: Bytes, at: int) -> int:
    for index in range(len(lows)):
        at = write_interval(text, at, lows[index], highs[index])
    return at
