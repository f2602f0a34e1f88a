"""Which servers without a channel between them are compared, and which of the two would join."""

from dataclasses import replace

import pytest

from tests.snapshots import B, a_channel, a_cluster
from tests.topology.test_joining import UNREAD, D, one
from topology.facts.content_pairs import linked_pairs, only_source, unlinked_pairs
from topology.readings.snapshot import ServerSnapshot, ThreadState


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        # One part is the whole.
        ((one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "A:1-9", "a")), {}),
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
    assert unlinked_pairs(snapshot) == found


def test_channels_that_were_not_read_may_link_any_two_servers() -> None:
    unread = replace(one("c", "A:1-9"), channels=None)
    snapshot = a_cluster("cluster", one("a", "A:1-9"), one("b", "A:1-9", "a"), unread)
    assert unlinked_pairs(snapshot) == {}


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
    assert unlinked_pairs(snapshot) == {("b", "c"): "c"}
