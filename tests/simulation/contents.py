"""What a comparison of transactions in the binary logs finds in the true world.

It stands for topology/adapters/compare_contents.py: after a restart (`starts`) the server's own first
transactions are compared, or all that two servers both have in their logs (`everywhere`). The pairs
of servers are those that the product selects (topology/facts/content_pairs.py). What the oracles say
is compared (`compared_gtids`) is every pair of servers: a pair that is not selected must be replaced
by a row of others that shows the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gtid import Gtid as ProductGtid
from tests.simulation.reading import Reading, gtids, hidden_facts, moment
from tests.simulation.state import Gtid, Server, Transaction, World
from topology.facts.content_pairs import linked_pairs, other_pairs
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)
from topology.readings.snapshot import ClusterSnapshot

FIRST_AFTER_START = 3


def contents_of(world: World, reading: Reading, snapshot: ClusterSnapshot) -> ContentReading | None:
    """Return what the comparison of a reading finds; None if it makes none."""
    if reading.contents == "none":
        return None
    read = {name for name, server in snapshot.last_read.items() if server.binary_logs is not None}
    pairs = [pair for pair in selected_pairs(snapshot) if {*pair} <= read]
    pairs = [pair for pair in pairs if all(_can_answer(world, reading, each) for each in pair)]
    compared = 0
    differences: list[ContentDifference] = []
    for left, right in pairs:
        both = _compared_gtids(world, reading, left, right, of=tuple(reading.visible))
        compared += len(both)
        differences += _differences(world, world[left], world[right], both)
    return ContentReading(
        read_at=moment(world.clock),
        compared_count=compared,
        starts=(),
        differences=tuple(differences),
        unread=(),
        pairs=tuple(pairs),
    )


def selected_pairs(snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    """Return the pairs of servers that the product compares, each in order of name."""
    return list(dict.fromkeys((*linked_pairs(snapshot), *other_pairs(snapshot))))


def _can_answer(world: World, reading: Reading, name: str) -> bool:
    # Without gtid_mode = ON a server sends no transactions by GTID (topology/adapters/compare_contents.py).
    server = world[name]
    return (
        server.log_bin
        and not server.permissive
        and "connection" not in hidden_facts(name, reading, 2)
    )


def compared_gtids(world: World, reading: Reading, left: str, right: str) -> set[Gtid]:
    """Return the GTIDs whose contents are compared on two servers, by a row of pairs at least."""
    return _compared_gtids(world, reading, left, right, of=(left, right))


def _compared_gtids(
    world: World, reading: Reading, left: str, right: str, *, of: tuple[str, ...]
) -> set[Gtid]:
    """Return what two servers both have in their logs; after restarts, that of these servers."""
    if not (_can_answer(world, reading, left) and _can_answer(world, reading, right)):
        return set()
    both = world[left].logged() & world[right].logged()
    both = {each for each in both if _is_comparable(world[left], world[right], each)}
    if reading.contents == "everywhere":
        return both
    if reading.contents == "starts":
        looked_at = set(_after_bootstrap(world, reading))
        looked_at.update(*(_after_start(world[each]) for each in of))
        return both & looked_at
    return set()


def _is_comparable(left: Server, right: Server, gtid: Gtid) -> bool:
    """Return whether the forms of both versions say something about the work.

    The server that commits a statement logs the statement, and a replica the rows that it changed:
    the two are not comparable, which is a remark (binlog/content/compare.py).
    """
    ours, theirs = left.logged_version(gtid), right.logged_version(gtid)
    assert ours is not None, "it is in both logs"
    assert theirs is not None, "it is in both logs"
    return ours.work != theirs.work or ours.has_statements == theirs.has_statements


def _after_start(server: Server) -> Iterator[Gtid]:
    """Yield the first transactions of the server's own after its last start."""
    if server.started_at < 0:
        return
    own = (
        each.gtid
        for log in server.files
        if log.created_at >= server.started_at
        for each in log.entries
        if each.gtid[0] == server.uuid
    )
    for _ in range(FIRST_AFTER_START):
        gtid = next(own, None)
        if gtid is None:
            return
        yield gtid


def _after_bootstrap(world: World, reading: Reading) -> Iterator[Gtid]:
    """Yield the first transactions of a group after its bootstrap, by the log of each member."""
    group = world.group
    if group is None or group.bootstrapped_at < 0:
        return
    for name in sorted(group.online & set(reading.visible)):
        logged = (each for log in world[name].files for each in log.entries)
        of_group = (each for each in logged if each.gtid[0] == group.uuid)
        since = (each.gtid for each in of_group if each.at >= group.bootstrapped_at)
        yield from islice(since, FIRST_AFTER_START)


def _differences(
    world: World, left: Server, right: Server, both: set[Gtid]
) -> Iterator[ContentDifference]:
    for gtid in sorted(both):
        ours, theirs = left.logged_version(gtid), right.logged_version(gtid)
        assert ours is not None, "it is in both logs"
        assert theirs is not None, "it is in both logs"
        if (ours.work, ours.changes) == (theirs.work, theirs.changes):
            continue
        source, replica, first, second = left, right, ours, theirs
        if gtid[0] == right.uuid != left.uuid:
            source, replica, first, second = right, left, theirs, ours
        (tsid, start, _), *_ = gtids([gtid]).intervals()
        yield ContentDifference(
            gtid=ProductGtid(tsid, start),
            difference=_kind(source, replica, first, second),
            is_proved=first.at != second.at,
            reason="the commit times differ" if first.at != second.at else "the rows differ",
            source=_version(source, first),
            replica=_version(replica, second),
            lesser=_lesser(source, replica, first, second),
        )


def _kind(source: Server, replica: Server, first: Transaction, second: Transaction) -> Difference:
    if first.work == second.work:  # one commit
        if first.is_empty == second.is_empty:
            return Difference.DRIFT
        lesser = source if first.is_empty else replica
        keys = {each.key for each in (*first.changes, *second.changes)}
        ignored = {key for channel in lesser.channels for key in channel.ignored_keys}
        return Difference.FILTERED if keys <= ignored else Difference.SKIPPED
    if first.is_empty != second.is_empty:
        return Difference.EMPTY
    return Difference.COMMIT if first.changes == second.changes else Difference.CONTENT


def _lesser(source: Server, replica: Server, first: Transaction, second: Transaction) -> str:
    if first.is_empty == second.is_empty:
        return ""
    return source.name if first.is_empty else replica.name


def _version(server: Server, made: Transaction) -> TransactionVersion:
    return TransactionVersion(
        server=server.name,
        place="binlog",
        committed_at=moment(made.at) if server.version >= (8, 0, 1) else None,
        logged_at=moment(made.at),
        content=", ".join(f"{each.kind} {each.key}" for each in made.changes) or "nothing",
        is_empty=made.is_empty,
    )
