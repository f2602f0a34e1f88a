"""A log read in several parts at once, and made one again.

1. Nothing in a log says where transactions start but what stands before them. So the start of a
   part is guessed: a GTID event, by its header and by where it and the next one say they end. The
   guess is proved, or not, by the part before it, which must end just there.
2. What is joined is what one reading of the whole would give, or less and no error: the rest, from
   `end` on, is then still to be read.
3. Relay logs are read in one go: end_log_pos in them is another file's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from binlog.decode import FIRST_POSITION
from binlog.events import FormatDescription
from binlog.header import HEADER_BYTES, parse_header
from binlog.kernels import verifying
from binlog.ledger.ledger_window import WindowLedger

# A part that is read in less than a millisecond is not worth a thread.
PART_BYTES_MIN: Final = 16 << 20
# How far from where a part should start a place for it is looked for.
_SEEK_BYTES_MAX: Final = 64 << 20


def starts_of_parts(
    data: NDArray[np.uint8], *, first: int, description: FormatDescription, parts_max: int
) -> tuple[int, ...]:
    """Guess where parts of a log may start, the first of them at 0.

    `first` is the position of the first transaction.
    """
    parts = min(parts_max, len(data) // PART_BYTES_MIN)
    starts = [0]
    if parts > 1 and _begins_relay_log(data):
        return (0,)
    for part in range(1, parts):
        wanted = max(first, starts[-1] + 1, part * len(data) // parts)
        found = verifying.find_head(
            data.ctypes.data,
            wanted,
            min(wanted + _SEEK_BYTES_MAX, len(data)),
            len(data),
            description.checksum.trailer_bytes,
        )
        if found < 0:
            break
        starts.append(int(found))
    return tuple(starts)


def _begins_relay_log(data: NDArray[np.uint8]) -> bool:
    header = data[FIRST_POSITION : FIRST_POSITION + HEADER_BYTES].tobytes()
    return parse_header(header).is_of_relay_log


def joined(
    parts: Sequence[WindowLedger], starts: Sequence[int], description: FormatDescription
) -> WindowLedger:
    """Join what was read of a log from `starts` on, as far as each start was guessed right.

    `description` is the one that all parts but the first were read with.
    """
    whole, tables = parts[0], [parts[0].rows]
    for part, start in zip(parts[1:], starts[1:], strict=True):
        if whole.error is not None or whole.end != start or whole.description != description:
            break
        whole = part
        tables.append(part.rows)
    if len(tables) == 1:
        return whole
    # Each part has numbered UUIDs and tags anew.
    return replace(whole, rows=pa.concat_tables(tables).unify_dictionaries())


def behind(whole: WindowLedger, rest: WindowLedger) -> WindowLedger:
    """Put what was read from a ledger's end on behind it."""
    return replace(rest, rows=pa.concat_tables([whole.rows, rest.rows]).unify_dictionaries())
