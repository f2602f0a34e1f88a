"""Consumers of a cluster as they would be read: their sets before and after the servers."""

from datetime import timedelta

from gtid import GtidSet
from tests.snapshots import NOON
from topology.readings.consumers import ConsumerReading, OfferedReading

BEFORE, AFTER = NOON - timedelta(seconds=1), NOON + timedelta(minutes=1)


def a_consumer(
    name: str,
    offered: GtidSet,
    *,
    later: GtidSet | None = None,
    server: str | None = None,
    is_fixed: bool = False,
) -> ConsumerReading:
    """Make a consumer whose set was read twice."""
    first = OfferedReading(BEFORE, offered)
    last = OfferedReading(AFTER, offered if later is None else later)
    return ConsumerReading(name, server, "/var/lib/offset.json", is_fixed, first, last)


def an_unread_consumer(name: str, why: str = "no answer within 5 seconds") -> ConsumerReading:
    """Make a consumer whose set could not be read."""
    unread = [OfferedReading(moment, None, why) for moment in (BEFORE, AFTER)]
    return ConsumerReading(name, None, "the command cat", False, *unread)
