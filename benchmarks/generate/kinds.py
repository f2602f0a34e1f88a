"""The faults and delays of a generated fleet: one row for each kind.

1. A kind changes the numbers of its clusters, and lists the finding that an audit must then
   report. The channel concerned is always that of server b, from server a.
2. `busy` kinds clear by themselves; the others are faults. The two rates of a fleet say how many
   clusters are of each sort, the weights how many of a sort are of which kind.
3. A broken cluster has two servers. It is not dual-primary where another channel would cause a
   second finding, or deliver what is missing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.generate.draws import Draws, Floats, Int64s
from benchmarks.generate.numbers import (
    EVENT_BYTES,
    FIRST,
    LAST,
    THREAD_STATES,
    A,
    B,
    GeneratedFleet,
    Numbers,
    healthy,
)

HEALTHY = -1
RUNNING, CONNECTING, STOPPED = range(len(THREAD_STATES))


@dataclass(frozen=True, slots=True)
class Failure:
    """What a thread of a channel says."""

    errno: int
    text: str
    of_applier: bool = False


# What servers say, word for word; `Numbers.error` is a row of this table.
FAILURES: tuple[Failure, ...] = (
    Failure(0, ""),
    Failure(
        13114,
        "Got fatal error 1236 from source when reading data from binary log: 'Cannot replicate"
        " because the source purged required binary logs. Replicate the missing transactions from"
        " elsewhere, or provision a new replica from backup. Consider increasing the source's"
        " binary log expiration period.'",
    ),
    Failure(
        13114,
        "Got fatal error 1236 from source when reading data from binary log: 'Replica has more"
        " GTIDs than the source has, using the source's SERVER_UUID. This may indicate that the"
        " end of the binary log was truncated or that the last binary log file was lost'",
    ),
    Failure(
        2003,
        "Error connecting to source 'replicator@db:3306'. This was attempt 3/86400, with a delay"
        " of 60 seconds between attempts. Message: Can't connect to MySQL server on 'db:3306'"
        " (111)",
    ),
    Failure(
        0,
        "Query caused different errors on source and replica. Error on source: message (format)="
        "'Table '%-.192s' already exists' error code=1050; Error on replica: actual message='no"
        " error', error code=0. Default database:'shop'. Query:'CREATE TABLE orders (id INT)'",
        of_applier=True,
    ),
    Failure(
        1062,
        "Could not execute Write_rows event on table shop.orders; Duplicate entry '4711' for key"
        " 'orders.PRIMARY', Error_code: 1062; handler error HA_ERR_FOUND_DUPP_KEY",
        of_applier=True,
    ),
    Failure(
        1146,
        "Error executing row event: 'Table 'shop.audit_trail' doesn't exist'",
        of_applier=True,
    ),
)
NO_ERROR, PURGED, HAS_MORE, AWAY, DIFFERENT, CONFLICT, OTHER = range(len(FAILURES))

Alter = Callable[[Numbers, Int64s, Int64s], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that can be the matter."""

    name: str
    code: str | None  # the one finding; None: the cluster is unknown, and nothing is found
    alter: Alter  # of numbers, for these clusters, given a size from 1 to 20 for each
    weight: float = 1.0
    busy: bool = False
    may_be_dual: bool = True
    beside: str | None = None  # a finding about the same cluster that it does not explain


def draw_numbers(fleet: GeneratedFleet, *, first: int, count: int) -> tuple[Numbers, Int64s]:
    """Return the numbers of `count` clusters and the kind of each: a row of KINDS, or HEALTHY."""
    draws = Draws(fleet.seed, first, count)
    kind = _kinds(fleet, draws)
    single = np.array([not each.may_be_dual for each in KINDS], dtype=np.bool_)
    is_healthy = kind == HEALTHY
    numbers = healthy(fleet, draws, may_be_three=is_healthy, may_be_dual=is_healthy | ~single[kind])
    size = draws.between("size", 1, 20)
    for index, each in enumerate(KINDS):
        clusters = np.flatnonzero(kind == index)
        if len(clusters):
            each.alter(numbers, clusters, size[clusters])
    return numbers, kind


def kinds_from(fleet: GeneratedFleet, *, first: int, count: int) -> Int64s:
    """Return the kind of each cluster, as `draw_numbers` does, without their numbers."""
    return _kinds(fleet, Draws(fleet.seed, first, count))


def _kinds(fleet: GeneratedFleet, draws: Draws) -> Int64s:
    chosen = np.full(draws.count, HEALTHY, dtype=np.int64)
    sort, which = draws.uniform("sort"), draws.uniform("kind")
    is_busy = sort < fleet.busy_rate
    is_broken = ~is_busy & (sort < fleet.busy_rate + fleet.fault_rate)
    for clusters, busy in ((is_busy, True), (is_broken, False)):
        chosen[clusters] = _weighted(which[clusters], busy=busy)
    return chosen


def _weighted(which: Floats, *, busy: bool) -> Int64s:
    rows = np.array([row for row, kind in enumerate(KINDS) if kind.busy == busy], dtype=np.int64)
    sums = np.cumsum([KINDS[row].weight for row in rows])
    chosen: Int64s = rows[np.searchsorted(sums, which * sums[-1], side="right")]
    return chosen


# -- what each kind does to the numbers -----------------------------------------------------------


def _fall_behind(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    """Let b lack the last `size` of what a had when it was first read."""
    for phase in (FIRST, LAST):
        numbers.executed[clusters, B, phase, A] = numbers.top[clusters, A] - size
    numbers.lag_seconds[clusters, B] = size


def _receive_no_more(numbers: Numbers, clusters: Int64s) -> None:
    for phase in (FIRST, LAST):
        numbers.received[clusters, B, phase] = numbers.executed[clusters, B, phase, A]
    missing = numbers.top[clusters, A] - numbers.executed[clusters, B, LAST, A]
    grown = numbers.log_end[clusters, A, LAST] - numbers.log_end[clusters, A, FIRST]
    numbers.unread_to[clusters, B] = grown + missing * EVENT_BYTES


def _fail(numbers: Numbers, clusters: Int64s, *, error: int, threads: tuple[int, int]) -> None:
    numbers.error[clusters, B] = error
    numbers.receiver[clusters, B], numbers.applier[clusters, B] = threads


def _idle(numbers: Numbers, clusters: Int64s) -> None:
    """Let a write nothing, and b have all of it."""
    top = numbers.top[clusters, A]
    numbers.executed[clusters, :, :, A] = top[:, None, None]
    numbers.received[clusters, B] = top[:, None]
    numbers.owned[clusters, A] = False


def _gap(numbers: Numbers, clusters: Int64s, size: Int64s, *, received: bool) -> None:
    numbers.gap_low[clusters, B] = numbers.top[clusters, A] - 45
    numbers.gap_high[clusters, B] = numbers.gap_low[clusters, B] + size
    numbers.gap_received[clusters, B] = received


def tail_gap(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _gap(numbers, clusters, size, received=True)


def applier_backlog(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _fall_behind(numbers, clusters, size)
    for phase in (FIRST, LAST):
        numbers.received[clusters, B, phase] = numbers.top[clusters, A]


def receiver_backlog(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _fall_behind(numbers, clusters, size)
    _receive_no_more(numbers, clusters)
    # So the receiver has read less than what was in the log when the source was first read.
    grown = numbers.log_end[clusters, A, LAST] - numbers.log_end[clusters, A, FIRST]
    numbers.unread_to[clusters, B] = grown + size * EVENT_BYTES


def unconfirmed_lead(numbers: Numbers, clusters: Int64s, _size: Int64s) -> None:
    _idle(numbers, clusters)
    numbers.owned[clusters, A] = True
    numbers.executed[clusters, B, :, A] += 1
    numbers.received[clusters, B] += 1


def bypassed(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _gap(numbers, clusters, size, received=False)
    numbers.auto_position[clusters, B] = False


def errant(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    numbers.executed[clusters, B, :, B] += size[:, None]


def errant_purged(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    errant(numbers, clusters, size)
    numbers.purged[clusters, B, B] = numbers.executed[clusters, B, FIRST, B]


def crash_lost(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _idle(numbers, clusters)
    numbers.executed[clusters, B, :, A] += size[:, None]
    _receive_no_more(numbers, clusters)
    _fail(numbers, clusters, error=HAS_MORE, threads=(STOPPED, RUNNING))
    numbers.uptime[clusters, A] = np.array([300, 301])


def purged_on_source(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _fall_behind(numbers, clusters, size + 1)
    _receive_no_more(numbers, clusters)
    numbers.purged[clusters, A, A] = numbers.top[clusters, A] - 1
    _fail(numbers, clusters, error=PURGED, threads=(STOPPED, RUNNING))


def different_errors(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    applier_backlog(numbers, clusters, size)
    _fail(numbers, clusters, error=DIFFERENT, threads=(RUNNING, STOPPED))


def row_conflict(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    applier_backlog(numbers, clusters, size)
    _fail(numbers, clusters, error=CONFLICT, threads=(RUNNING, STOPPED))


def other_error(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    applier_backlog(numbers, clusters, size)
    _fail(numbers, clusters, error=OTHER, threads=(RUNNING, STOPPED))


def source_away(numbers: Numbers, clusters: Int64s, _size: Int64s) -> None:
    _idle(numbers, clusters)
    _fail(numbers, clusters, error=AWAY, threads=(CONNECTING, RUNNING))


def stopped_by_hand(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    _fall_behind(numbers, clusters, size)
    _receive_no_more(numbers, clusters)
    _fail(numbers, clusters, error=NO_ERROR, threads=(STOPPED, STOPPED))


def same_uuid(numbers: Numbers, clusters: Int64s, _size: Int64s) -> None:
    numbers.uuid_slots[clusters, B] = A


def by_file_position(numbers: Numbers, clusters: Int64s, _size: Int64s) -> None:
    numbers.auto_position[clusters, B] = False


def not_reached(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    source_away(numbers, clusters, size)
    numbers.unread[clusters, A] = True


def restarted(numbers: Numbers, clusters: Int64s, size: Int64s) -> None:
    numbers.uptime[clusters, A, LAST] = size


def damaged_text(numbers: Numbers, clusters: Int64s, _size: Int64s) -> None:
    numbers.malformed[clusters, B] = True


KINDS: tuple[Kind, ...] = (
    Kind("tail gap", "T1", tail_gap, busy=True, beside="C7"),  # its workers commit in any order
    Kind("applier backlog", "T2", applier_backlog, busy=True, weight=5.0),
    Kind("receiver backlog", "T3", receiver_backlog, busy=True, weight=3.0),
    Kind("unconfirmed lead", "T4", unconfirmed_lead, busy=True),
    # Without commit times H1 is only likely, and does not explain the file position.
    Kind("bypassed by file position", "H1", bypassed, beside="C3"),
    Kind("errant", "E1", errant, weight=3.0, may_be_dual=False),
    Kind("errant and purged", "E2", errant_purged, may_be_dual=False),
    Kind("lost in a crash", "E3", crash_lost),
    Kind("purged on the source", "P1", purged_on_source),
    Kind("different errors", "A1", different_errors),
    Kind("row conflict", "A2", row_conflict),
    Kind("another applier error", "A3", other_error),
    Kind("source away", "A4", source_away),
    Kind("stopped by hand", "A7", stopped_by_hand, may_be_dual=False),
    Kind("two servers of one UUID", "C1", same_uuid, weight=0.2),
    Kind("by file position", "C3", by_file_position),
    Kind("not reached", "U1", not_reached),
    Kind("restarted while read", "U2", restarted, weight=0.2),
    Kind("damaged text", None, damaged_text, weight=0.2),
)
