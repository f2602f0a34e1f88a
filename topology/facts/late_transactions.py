"""What a server would execute after transactions that its origin committed later: a filled hole.

How it works
------------
A receiver with auto-position asks for everything that its server does not have. A hole (a position
that was set past it, a skip, an empty set given to a server) is sent as well, and is executed at
once, after what the server has executed since. Then an older row replaces a newer one, DELETE and
TRUNCATE remove rows that were written later, or the applier stops. Where it does not stop, the
sets are equal afterwards, and no log shows it (seen on 9.7.4: a TRUNCATE; an UPDATE with
binlog_row_image = MINIMAL).

A server assigns its GNOs in ascending order. So a missing GTID is *late* if the server has executed
a higher one of the same TSID:

    executed A:1-7:9-10, fetched A:8:11        A:8 is late, A:11 is not

* What waits in the server's own relay logs is not late: workers execute it out of order, and only
  what is independent (T1).
* Members of a group take GNOs from blocks of their own, so only GNOs of one block have an order.
* The order of two origins is not known from the sets. Their transactions are not called late.

Whether the late ones change the same rows as later ones is not decided here. A repair plan reads
that (repair/doubts).
"""

from collections.abc import Collection, Iterator
from typing import Final
from uuid import UUID

from gtid import GtidSet, Tsid
from topology.readings.snapshot import ReadServer

# group_replication_gtid_assignment_block_size, unless it was changed.
_BLOCK: Final = 1_000_000


def late_part(server: ReadServer, fetched: GtidSet, group_uuids: Collection[UUID]) -> GtidSet:
    """Return which of these a server would execute after later ones of the same origin."""
    executed = server.gtid_executed
    below, of_groups = fetched & executed.filled(), GtidSet()
    for uuid in group_uuids:
        part = below.from_uuid(uuid)
        below = below.without_uuid(uuid)
        of_groups |= GtidSet.union_of(_in_blocks(executed, *each) for each in part.intervals())
    return below | of_groups


def late_text(name: str, late: GtidSet) -> Iterator[str]:
    """Yield what it would do to execute these; nothing if there are none."""
    if late:
        yield (
            f"{name} would execute {late.shortened()} after later transactions that it has: older"
            " rows may replace newer ones, or its applier stops, and no set shows it afterwards."
            " Repair this hole first (repair plan)"
        )


def late_doubt(server: ReadServer, missing: GtidSet, group_uuids: Collection[UUID]) -> str:
    """Return the same as a sentence, for all that a server is missing; "" if nothing is late.

    What waits in its relay logs is applied first.
    """
    late = late_part(server, missing - server.gtid_retrieved, group_uuids)
    return "".join(f" {each}." for each in late_text(server.name, late))


def _in_blocks(executed: GtidSet, tsid: Tsid, start: int, end: int) -> GtidSet:
    """Return the part of an interval of which a higher number of the same block was executed."""
    found = GtidSet()
    for first in {_block_of(start), _block_of(end - 1)}:
        after = first + _BLOCK
        block = GtidSet.from_intervals([(tsid, first, after)])
        piece = GtidSet.from_intervals([(tsid, max(start, first), min(end, after))])
        found |= piece & (executed & block).filled()
    return found


def _block_of(number: int) -> int:
    """Return the first number of the block of a number."""
    return (number - 1) // _BLOCK * _BLOCK + 1
