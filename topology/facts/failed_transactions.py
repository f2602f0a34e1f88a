"""Which transaction, and which worker, stopped an applier.

Before 5.7 no table shows what each worker applies. The text of a worker's error quotes the GTID
(sql/rpl_rli_pdb.cc; seen on 5.6.24 and 9.7.4). An applier without workers reports only a position.

With commit order, workers stop because another one did (3030), and the coordinator may report one
of these: seen on 9.7.4 in four of nine starts. Their transactions were rolled back and did not
fail.
"""

import re
from typing import Final

from gtid import GtidSet, MalformedText
from topology.catalogue.quoted_sets import FAILED, QUOTED_SETS
from topology.readings.snapshot import ChannelSnapshot
from topology.readings.worker import WorkerSnapshot

# "… worker has stopped after at least one previous worker encountered an error".
FOLLOWED: Final = 3030
_FAILING: Final = re.compile(dict(QUOTED_SETS)[FAILED])


def quoted_as_failed(text: str) -> GtidSet:
    """Return the GTID that an error text quotes as failed; an anonymous transaction has none."""
    found = _FAILING.search(text)
    if found is None:
        return GtidSet()
    try:
        return GtidSet.parse(found[1])
    except MalformedText:
        return GtidSet()


def failed_workers(channel: ChannelSnapshot) -> tuple[WorkerSnapshot, ...]:
    """Return the workers that failed themselves; all in error if each only followed another."""
    in_error = tuple(each for each in channel.workers if each.errno or each.error)
    return tuple(each for each in in_error if each.errno != FOLLOWED) or in_error


def applier_errno_of(channel: ChannelSnapshot) -> int:
    """Return the error of an applier: the coordinator's, or that of the worker it followed."""
    numbers = [each.errno for each in failed_workers(channel) if each.errno]
    if channel.applier_errno == FOLLOWED and numbers:
        return numbers[0]
    return channel.applier_errno
