"""The numbers of a chunk of clusters: who they are, what each server has executed, and when.

1. Slot 0 of a cluster's UUIDs is server a, slot 1 server b; the others are servers of former days,
   whose transactions everybody has. Server c writes nothing and is in no set.
2. A cluster is a dual-primary pair (a and b write), a pair a → b, or, seldom, three servers:
   a → b → c or a → b, a → c.
3. `top` is the highest number of a UUID when the first readings began. What the writer lists is
   `top` in its first reading and more in its last; every other server is behind `top` in its first
   reading and at or beyond it in its last. So a healthy cluster has no difference that is not of
   timing, and no two of its texts need be equal.
4. The arrays are made healthy; benchmarks/generate/kinds.py breaks some clusters by changing them.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.generate.draws import Bools, Draws, Floats, Int64s, Uint64s

A, B, C = 0, 1, 2
FIRST, LAST = 0, 1
FIXED_SLOTS = 3  # server a, server b, and behind the former servers, server c
TOP_MIN = 10_000
HOLES_MAX = 100  # so that the smallest set has room for them, apart from each other
TOP_MAX = 60_000_000_000
LEAD_MAX = 2_000  # transactions between the two readings
LAG_MAX = 20  # transactions a healthy replica is behind when it is read
EVENT_BYTES = 400  # of a binary log, for each transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFleet:
    """What a fleet is made of. Equal parameters give equal fleets, whatever the chunks."""

    pairs: int
    seed: int = 7
    uuids: tuple[int, int] = (2, 6)  # in each set; fewest and most
    holes: tuple[int, int] = (0, 5)
    busy_rate: float = 0.01
    fault_rate: float = 0.005
    dual_primary_rate: float = 0.5
    three_servers_rate: float = 0.01

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise ValueError("a fleet has at least one cluster")
        if not 2 <= self.uuids[0] <= self.uuids[1]:
            raise ValueError("a pair has at least the two UUIDs of its servers")
        if not 0 <= self.holes[0] <= self.holes[1] <= HOLES_MAX:
            raise ValueError(f"0 to {HOLES_MAX} holes have room")
        rates = (
            self.busy_rate + self.fault_rate,
            self.dual_primary_rate,
            self.three_servers_rate,
        )
        if not all(0 <= rate <= 1 for rate in rates):
            raise ValueError("a rate is a part of all clusters, from 0 to 1")


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of some clusters; each fault changes the arrays in place.

    Axes: [cluster], [cluster, slot], [cluster, server], [cluster, server, phase] and
    [cluster, server, phase, slot]. Ends are inclusive: the highest number of a range.
    """

    first: int  # the number of the first cluster
    dual: Bools  # [cluster] a and b replicate from each other
    three: Bools  # [cluster] there is a server c
    star: Bools  # [cluster] c replicates from a, and not from b
    uuid_high: Uint64s  # [cluster, slot] the last slot is server c's
    uuid_low: Uint64s
    uuid_counts: Int64s  # [cluster] slots of the sets; server c's is not one of them
    order: Int64s  # [cluster, rank] slots in order of UUID
    top: Int64s  # [cluster, slot]
    hole_slots: Int64s  # [cluster, hole]
    hole_lows: Int64s
    hole_highs: Int64s  # exclusive
    executed: Int64s  # [cluster, server, phase, slot]
    purged: Int64s  # [cluster, server, slot]
    received_from: Int64s  # [cluster, slot] where relay logs begin
    received: Int64s  # [cluster, server, phase] of the writer's UUID, by the server's channel
    owned: Bools  # [cluster, server, phase] the writer is committing its next number
    gap_low: Int64s  # [cluster, server] a hole in slot 0, in sets executed; 0 for none
    gap_high: Int64s  # exclusive
    gap_received: Bools  # [cluster, server] the relay log has what is in the hole
    log_file: Int64s  # [cluster, server] the number of the current binary log
    log_end: Int64s  # [cluster, server, phase] the position in it
    unread_to: Int64s  # [cluster, server] bytes of the source's log the receiver has not read
    auto_position: Bools  # [cluster, server] of the server's channel
    receiver: Int64s  # [cluster, server] index into THREAD_STATES
    applier: Int64s
    error: Int64s  # [cluster, server] index into the table of error texts, 0 for none
    lag_seconds: Int64s  # [cluster, server]
    uuid_slots: Int64s  # [cluster, server] which UUID the server says it has
    uptime: Int64s  # [cluster, server, phase]
    unread: Bools  # [cluster, server] nothing was read
    malformed: Bools  # [cluster, server] gtid_executed was damaged on its way

    def __len__(self) -> int:
        return len(self.dual)


THREAD_STATES = ("Yes", "Connecting", "No")


def healthy(
    fleet: GeneratedFleet, draws: Draws, *, may_be_three: Bools, may_be_dual: Bools
) -> Numbers:
    """Draw the numbers of healthy clusters."""
    count, slots = draws.count, fleet.uuids[1]
    dual = (draws.uniform("dual") < fleet.dual_primary_rate) & may_be_dual
    three = (draws.uniform("three") < fleet.three_servers_rate) & may_be_three & ~dual
    uuid_counts = draws.between("uuids", *fleet.uuids)
    high, low = _uuids(draws, slots + 1)
    top = np.stack([_top(draws.uniform("top", slot)) for slot in range(slots)], axis=1)
    hole_slots, hole_lows, hole_highs = _holes(fleet, draws, uuid_counts, top)
    executed = _executed(draws, top, dual)
    false = np.zeros((count, 3), dtype=np.bool_)
    log_file, log_end = _logs(draws, executed)
    uptime = draws.between("uptime", 600, 90 * 86_400)
    return Numbers(
        first=draws.first,
        dual=dual,
        three=three,
        star=three & (draws.uniform("star") < 0.5),
        uuid_high=high,
        uuid_low=low,
        uuid_counts=uuid_counts,
        order=_order(high[:, :slots], low[:, :slots], uuid_counts),
        top=top,
        hole_slots=hole_slots,
        hole_lows=hole_lows,
        hole_highs=hole_highs,
        executed=executed,
        purged=_purged(draws, top),
        received_from=np.maximum(1, top - top // 20),
        received=_received(draws, executed),
        owned=_owned(draws, dual),
        gap_low=np.zeros((count, 3), dtype=np.int64),
        gap_high=np.zeros((count, 3), dtype=np.int64),
        gap_received=false.copy(),
        log_file=log_file,
        log_end=log_end,
        unread_to=np.zeros((count, 3), dtype=np.int64),
        auto_position=~false,
        receiver=np.zeros((count, 3), dtype=np.int64),
        applier=np.zeros((count, 3), dtype=np.int64),
        error=np.zeros((count, 3), dtype=np.int64),
        lag_seconds=np.zeros((count, 3), dtype=np.int64),
        uuid_slots=np.tile(np.array([A, B, slots], dtype=np.int64), (count, 1)),
        uptime=np.stack([np.stack([uptime, uptime + 1], axis=1)] * 3, axis=1),
        unread=false.copy(),
        malformed=false.copy(),
    )


def _uuids(draws: Draws, slots: int) -> tuple[Uint64s, Uint64s]:
    """Draw UUIDs of version 1, as servers make them."""
    version = np.uint64(0xFFFFFFFFFFFF0FFF)
    variant = np.uint64(0x3FFFFFFFFFFFFFFF)
    high = np.stack([draws.bits("uuid high", slot) for slot in range(slots)], axis=1)
    low = np.stack([draws.bits("uuid low", slot) for slot in range(slots)], axis=1)
    return high & version | np.uint64(0x1000), low & variant | np.uint64(0x8000000000000000)


def _top(uniform: Floats) -> Int64s:
    """Spread the highest numbers evenly over the orders of magnitude."""
    spread = np.log(TOP_MAX / TOP_MIN)
    top: Int64s = (TOP_MIN * np.exp(uniform * spread)).astype(np.int64)
    return top


def _order(high: Uint64s, low: Uint64s, uuid_counts: Int64s) -> Int64s:
    absent = np.arange(high.shape[1])[None, :] >= uuid_counts[:, None]
    order: Int64s = np.lexsort((low, high, absent), axis=1)
    return order


def _holes(
    fleet: GeneratedFleet, draws: Draws, uuid_counts: Int64s, top: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Draw holes that every server has: one in each of as many stretches of old numbers."""
    count, holes = len(uuid_counts), fleet.holes[1]
    slots, lows, highs = (np.zeros((count, holes), dtype=np.int64) for _ in range(3))
    how_many = draws.between("holes", *fleet.holes)
    for hole in range(holes):
        slot = (draws.uniform("hole slot", hole) * uuid_counts).astype(np.int64)
        stretch = (top[np.arange(count), slot] * 9 // 10 - 2) // holes
        length = 1 + (draws.uniform("hole length", hole) * np.minimum(stretch // 3, 30)).astype(int)
        start = (draws.uniform("hole start", hole) * (stretch // 2)).astype(np.int64)
        slots[:, hole] = np.where(hole < how_many, slot, -1)
        lows[:, hole] = 2 + stretch * hole + start
        highs[:, hole] = lows[:, hole] + length
    return slots, lows, highs


def _executed(draws: Draws, top: Int64s, dual: Bools) -> Int64s:
    executed = np.broadcast_to(top[:, None, None, :], (len(top), 3, 2, top.shape[1])).copy()
    for writer in (A, B):
        lead = draws.between("lead", 1, LEAD_MAX, writer)
        writes = dual if writer == B else np.ones_like(dual)
        for server in (A, B, C):
            lag = 0 if server == writer else draws.between("lag", 0, LAG_MAX, 3 * writer + server)
            part = 1.0 if server == writer else draws.uniform("caught up", 3 * writer + server)
            executed[:, server, FIRST, writer] -= np.where(writes, lag, 0)
            executed[:, server, LAST, writer] += np.where(writes, (lead * part).astype(np.int64), 0)
    return executed


def _purged(draws: Draws, top: Int64s) -> Int64s:
    """Draw what has left the binary logs: all of most former servers, a part of the others."""
    purged = np.zeros((len(top), 3, top.shape[1]), dtype=np.int64)
    for slot in range(top.shape[1]):
        retired = (draws.uniform("retired", slot) < 0.7) & (slot > B)
        for server in (A, B, C):
            part = draws.uniform("purged", 3 * slot + server) * 0.5 + 0.3
            kept = (top[:, slot] * part).astype(np.int64)
            purged[:, server, slot] = np.where(retired, top[:, slot], kept)
    return purged


def _received(draws: Draws, executed: Int64s) -> Int64s:
    """Draw how far relay logs go: at least to what is applied, at most to what is written."""
    received = np.empty(executed.shape[:3], dtype=np.int64)
    for server, writer in ((A, B), (B, A), (C, A)):
        for phase in (FIRST, LAST):
            applied = executed[:, server, phase, writer]
            waiting = executed[:, writer, phase, writer] - applied
            part = draws.uniform("received", 2 * server + phase)
            received[:, server, phase] = applied + (waiting * part).astype(np.int64)
    return received


def _owned(draws: Draws, dual: Bools) -> Bools:
    owned = np.zeros((len(dual), 3, 2), dtype=np.bool_)
    for writer in (A, B):
        for phase in (FIRST, LAST):
            busy = draws.uniform("owned", 2 * writer + phase) < 0.3
            owned[:, writer, phase] = busy & (dual if writer == B else True)
    return owned


def _logs(draws: Draws, executed: Int64s) -> tuple[Int64s, Int64s]:
    file = np.stack([draws.between("log file", 10, 9_999, server) for server in range(3)], axis=1)
    begun = np.stack(
        [draws.between("log end", 2**20, 2**29, server) for server in range(3)], axis=1
    )
    growth = (executed[:, :, LAST, :2] - executed[:, :, FIRST, :2]).sum(axis=2) * EVENT_BYTES
    return file, np.stack([begun, begun + growth], axis=2)
