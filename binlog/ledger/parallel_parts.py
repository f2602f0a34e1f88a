"""Divides a log into parts that threads read at the same time, and joins the results.

How it works
------------
A log has no index of its transactions: only the events before a position determine whether an event
starts there. So `starts_of_parts` guesses the start of each part except the first, and `joined`
verifies the guesses afterwards.

1. Guess. Near each multiple of the file size divided by the number of parts,
   `verifying.find_head` searches for bytes that look like a GTID event: the type code fits, the
   size fits, end_log_pos equals the position at which it ends, and another consistent event
   follows. Row data can contain such bytes, for example a BLOB with a part of a binary log. So a
   guess may be wrong.
2. Read. Each thread makes the ledger of the bytes from its start up to the next one. A part that
   does not end with the file leaves an incomplete transaction unread: its `end` is then the start
   of that transaction.
3. Verify. The first part begins at 0, so its `end` is certainly a boundary between transactions. If
   it equals the start of the next part, that start was guessed right, and the same argument applies
   to the part after it. If not, that part and all later ones are discarded. The parts must also
   have no error, and the description at the end must be the one that the next part was read with.

Example: a file of 400 MB, four threads.

    starts       0          100.2      200.1      300.4     MB
    ends         100.2      200.1      297.9      400.0
    start right  yes        yes        yes        no: 297.9 is not 300.4

The transaction at 297.9 MB is longer than 2.5 MB, and the guess at 300.4 is a BLOB in it. `joined`
returns the rows up to 297.9 MB. The caller reads the rest from there, and appends it with `behind`.

Invariant: the joined ledger equals the first part of a single pass over the file, up to `end`. It
never reports an error that a single pass would not report: an error in a wrongly guessed part is
discarded with it.

Simpler ways fail. Offsets at fixed distances are in the middle of events. To find exact boundaries
first, one thread would have to walk the whole file. Trusting the guesses would sometimes report
transactions that exist only in row data.

Relay logs are read in one part: end_log_pos in them is a position in another file, so `find_head`
cannot check it. A file smaller than two parts of PART_BYTES_MIN is read in one part, too.
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

# A smaller part is read in less than a millisecond, so it does not justify a thread.
PART_BYTES_MIN: Final = 16 << 20
# How far after the intended start of a part the search for its start goes.
_SEEK_BYTES_MAX: Final = 64 << 20


def starts_of_parts(
    data: NDArray[np.uint8], *, first: int, description: FormatDescription, parts_max: int
) -> tuple[int, ...]:
    """Guess the starts of the parts of a log; the first is 0.

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
    """Join the ledgers of the parts up to the first start that was guessed wrong.

    `description` is the one with which all parts but the first were read.
    """
    whole, tables = parts[0], [parts[0].rows]
    for part, start in zip(parts[1:], starts[1:], strict=True):
        if whole.error is not None or whole.end != start or whole.description != description:
            break
        whole = part
        tables.append(part.rows)
    if len(tables) == 1:
        return whole
    # Each part has its own numbering of UUIDs and tags.
    return replace(whole, rows=pa.concat_tables(tables).unify_dictionaries())


def behind(whole: WindowLedger, rest: WindowLedger) -> WindowLedger:
    """Append the ledger of the rest of a log, which begins at the end of `whole`."""
    return replace(rest, rows=pa.concat_tables([whole.rows, rest.rows]).unify_dictionaries())
