"""Which servers are compared, with a channel between them and without, and which would join."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.snapshots import B, a_channel, a_cluster
from tests.topology import test_joining
from tests.topology.test_joining import UNREAD, D, gtids
from topology.facts import content_pairs as module
from topology.facts.content_pairs import linked_pairs, only_source, other_pairs
from topology.readings.snapshot import BinaryLog, ServerSnapshot, ThreadState

SILENT: dict[str, Any] = {
    "settings": (("gtid_mode", "ON"), ("log_replica_updates", "OFF")),
    "gtid_purged": gtids("A:1-9"),
}
LOGS = (BinaryLog("binlog.000001", 4_000),)


def one(name: str, executed: str, *sources: str, **facts: Any) -> ServerSnapshot:
    """Return a server that logs what it receives; those with fewer logs purged the rest."""
    return test_joining.one(name, executed, *sources, **{"binary_logs": LOGS, **facts})


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        # One part is the whole.
        ((one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "A:1-9", "a")), {}),
        # A GTID made by hand on b, which a has committed, and not yet sent to the server between them.
        (
            (one("a", "A:1-3"), one("b", "A:1:3", "c"), one("c", "A:1", "a")),
            {("a", "b"): None},
        ),
        # Compared with the one that has most in common; if several have, with their source.
        (
            (one("a", "A:1-9"), one("b", "A:1-8,B:1", "d"), one("d", "A:1-7")),
            {("a", "b"): "a"},
        ),
        (
            (one("a", "A:1-7"), one("b", "A:1-9", "c"), one("c", "A:1-9")),
            {("a", "c"): "a"},
        ),
        # Of a part of several servers, those without a source; of a ring, one.
        (
            (one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "A:1-8"), one("d", "A:1-7")),
            {("a", "c"): "c", ("a", "d"): "d"},
        ),
        (
            (
                *(one("a", "A:1-9", "b"), one("b", "A:1-9", "a")),
                *(one("c", "A:1-8", "d"), one("d", "A:1-8", "c")),
            ),
            {("a", "c"): "c"},
        ),
        # Without a part of several, the one with most transactions is the main one.
        (
            (one("a", "A:1-3"), one("b", "A:1-5"), one("c", "A:1-4")),
            {("a", "b"): "a", ("b", "c"): "c"},
        ),
        # Of two servers, the two are compared in any case.
        ((one("a", "A:1-9"), one("b", "A:1-9")), {}),
        # More servers, not more transactions, make the largest part; of equal ones, these.
        (
            (one("a", "A:1-9"), one("b", "A:1-3"), one("c", "A:1-3", "b")),
            {("a", "b"): "a"},
        ),
        (
            (
                *(one("a", "A:1-9"), one("b", "A:1-9", "a")),
                *(one("c", "A:1-8"), one("d", "A:1-8", "c")),
            ),
            {("a", "c"): "c"},
        ),
        # Nothing in common, or not read: nothing to compare.
        ((one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "C:1-9")), {}),
        ((one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "", **UNREAD)), {}),
    ],
)
def test_a_server_that_would_join_is_compared_with_one_of_the_largest_part(
    servers: tuple[ServerSnapshot, ...], found: dict[tuple[str, str], str]
) -> None:
    snapshot = a_cluster("cluster", *servers)
    assert other_pairs(snapshot) == found


def test_channels_that_were_not_read_may_link_any_two_servers() -> None:
    unread = replace(one("c", "A:1-9"), channels=None)
    snapshot = a_cluster("cluster", one("a", "A:1-9"), one("b", "A:1-9", "a"), unread)
    assert other_pairs(snapshot) == {("a", "c"): None}, "of one part, as far as it is known"


def test_servers_that_a_channel_links_are_compared_once() -> None:
    servers = (one("a", "A:1-9", "b"), one("b", "A:1-9", "a"), one("c", "A:1-9", "b"))
    snapshot = a_cluster("cluster", *servers)
    assert linked_pairs(snapshot) == [("a", "b"), ("b", "c")]
    assert only_source(snapshot, ("a", "b")) is None, "each is the source of the other"
    assert only_source(snapshot, ("b", "c")) == only_source(snapshot, ("c", "b")) == "b"
    assert only_source(snapshot, ("a", "c")) is None


def test_two_servers_are_compared_without_a_channel() -> None:
    snapshot = a_cluster("cluster", one("a", "A:1-9"), one("b", "A:1-9"))
    assert linked_pairs(snapshot) == [("a", "b")]


def test_members_of_a_group_are_compared_with_the_next() -> None:
    setting = (("group_replication_group_name", str(D)),)
    servers = [one(name, "A:1-9", settings=setting) for name in "abc"]
    snapshot = a_cluster("cluster", *servers, one("d", "A:1-9", "a"))
    assert linked_pairs(snapshot) == [("a", "b"), ("a", "d"), ("b", "c")]


def test_a_server_whose_channel_is_stopped_has_a_source() -> None:
    stopped = a_channel("b", B, receiver=ThreadState.STOPPED, applier=ThreadState.STOPPED)
    replica = replace(one("a", "A:1-9"), channels=(stopped,))
    snapshot = a_cluster("cluster", replica, one("b", "A:1-9"), one("c", "A:1-9"))
    assert other_pairs(snapshot) == {("b", "c"): "c"}


# A former source c returned; a and its replicas have what it had committed.
@pytest.mark.parametrize(
    ("servers", "found"),
    [
        # a purged it: its replica has it in its logs.
        (
            (
                one("a", "A:1-9", gtid_purged=gtids("A:1-9")),
                one("b", "A:1-9", "a"),
                one("c", "A:1-9"),
            ),
            {("b", "c"): "c"},
        ),
        # a does not log what it receives; with a channel to it, too.
        (
            (one("a", "A:1-9", **SILENT), one("b", "A:1-9", "a"), one("c", "A:1-9")),
            {("b", "c"): "c"},
        ),
        (
            (one("a", "A:1-9", **SILENT), one("b", "A:1-9", "a"), one("c", "A:1-9", "a")),
            {("b", "c"): None},
        ),
        # It sends nothing by GTID, or has no binary log.
        (
            (
                one("a", "A:1-9", settings=(("gtid_mode", "ON_PERMISSIVE"),)),
                *(one("b", "A:1-9", "a"), one("c", "A:1-9")),
            ),
            {("b", "c"): "c"},
        ),
        (
            (one("a", "A:1-9", binary_logs=()), one("b", "A:1-9", "a"), one("c", "A:1-9")),
            {("b", "c"): "c"},
        ),
        # What a linked source purged is not looked for elsewhere.
        (
            (
                one("a", "A:1-9", gtid_purged=gtids("A:1-9")),
                *(one("b", "A:1-9", "a"), one("d", "A:1-9", "a")),
            ),
            {},
        ),
        # Two that returned have in common what the largest part does not have.
        (
            (
                *(one("a", "A:1-7"), one("b", "A:1-7", "a")),
                *(one("c", "A:1-9"), one("d", "A:1-9")),
            ),
            {("c", "d"): "c", ("a", "c"): "c"},
        ),
        # a has a part of it only, and its replica the rest.
        (
            (one("a", "A:1-5"), one("b", "A:1-9", "a"), one("c", "A:1-9")),
            {("b", "c"): "c"},
        ),
        (
            (
                one("a", "A:1-9", gtid_purged=gtids("A:1-5")),
                *(one("b", "A:1-5", "a"), one("c", "A:1-9")),
            ),
            {("b", "c"): "c", ("a", "c"): "c"},
        ),
    ],
)
def test_what_a_linked_server_does_not_show_is_compared_with_another(
    servers: tuple[ServerSnapshot, ...], found: dict[tuple[str, str], str | None]
) -> None:
    snapshot = a_cluster("cluster", *servers)
    assert other_pairs(snapshot) == found


def test_many_servers_are_compared_with_the_largest_part_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SERVERS_SEARCHED_MAX", 3)
    servers = (
        *(one("a", "A:1-7"), one("b", "A:1-7", "a")),
        *(one("c", "A:1-9"), one("d", "A:1-9")),
    )
    snapshot = a_cluster("cluster", *servers)
    assert other_pairs(snapshot) == {("a", "c"): "c", ("a", "d"): "d"}


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=3, max_size=4))
def test_each_difference_between_unlinked_servers_is_in_a_row_of_pairs(
    logs: list[tuple[int, int]],
) -> None:
    """The law: the servers that log a GTID are connected by pairs of servers that log it."""
    servers = tuple(
        one(name, f"A:1-{last}", gtid_purged=gtids(f"A:1-{min(last, gone)}") if gone else gtids(""))
        for name, (last, gone) in zip("abcd", logs, strict=False)
    )
    pairs = {*other_pairs(a_cluster("cluster", *servers))}
    for number in range(1, 10):
        have = {each.name for each in servers if gtids(f"A:{number}") <= each.logged}
        reached = set(sorted(have)[:1])
        for _ in have:
            reached |= {
                name for pair in pairs if {*pair} <= have and reached & {*pair} for name in pair
            }
        assert reached == have, number


def test_up_to_the_limit_of_servers_every_pair_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SERVERS_SEARCHED_MAX", 4)
    servers = (
        *(one("a", "A:1-7"), one("b", "A:1-7", "a")),
        *(one("c", "A:1-9"), one("d", "A:1-9")),
    )
    assert other_pairs(a_cluster("cluster", *servers)) == {("c", "d"): "c", ("a", "c"): "c"}


def test_of_many_servers_a_ring_has_one_entrance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SERVERS_SEARCHED_MAX", 3)
    ring = (one("c", "A:1-8", "d"), one("d", "A:1-8", "c"))
    servers = (one("a", "A:1-9", "b"), one("b", "A:1-9", "a"), *ring)
    assert other_pairs(a_cluster("cluster", *servers)) == {("a", "c"): "c"}


def test_of_many_servers_one_with_nothing_in_common_is_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SERVERS_SEARCHED_MAX", 2)
    servers = (one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "C:1-9"))
    assert other_pairs(a_cluster("cluster", *servers)) == {}


def test_a_link_shows_only_what_both_have() -> None:
    """c has more than its source b, which has less than a: no row of pairs shows A:6-9."""
    servers = (one("a", "A:1-9"), one("b", "A:1-5", "a"), one("c", "A:1-9", "b"))
    snapshot = a_cluster("cluster", *servers, one("d", "C:1"))
    assert other_pairs(snapshot) == {("a", "c"): None}


def test_a_server_with_an_unknown_gtid_mode_may_send() -> None:
    servers = (one("a", "A:1-9", settings=()), one("b", "A:1-9", "a"), one("c", "A:1-9"))
    assert other_pairs(a_cluster("cluster", *servers)) == {("a", "c"): "c"}


def test_servers_that_were_not_read_twice_are_not_compared() -> None:
    unread = one("b", "", "a", **UNREAD)
    snapshot = a_cluster("cluster", one("a", "A:1-9"), unread, one("c", "A:1-9"))
    assert other_pairs(snapshot) == {("a", "c"): "c"}
    read = a_cluster("cluster", one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "A:1-9"))
    assert other_pairs(read) == {("a", "c"): "c"}
    later = tuple(unread if each.name == "b" else each for each in read.last)
    assert other_pairs(replace(read, last=later)) == {("a", "c"): "c"}
