"""When contents are compared, and what is said where they cannot be."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from binlog.content.server_starts import ServerStart
from gtid_audit.views.content_text import CLUSTERS_SHOWN_MAX, OTHERS, content_line, content_lines
from tests.gtid_audit.build import half_read, healthy
from tests.snapshots import a_channel, a_cluster, a_server
from topology.adapters.compare_contents import read_contents
from topology.audit_cluster import audit_cluster
from topology.questions.contents_to_compare import RECENT, looked_back
from topology.readings.contents import ContentReading, UnreadContent
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ServerSnapshot

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def started(snapshot: ClusterSnapshot, *seconds_ago: int) -> ClusterSnapshot:
    last = [
        replace(server, uptime_seconds=seconds)
        for server, seconds in zip(snapshot.last, seconds_ago, strict=True)
    ]
    return replace(snapshot, last=tuple(last))


EVERY = {"a": None, "b": None}


@pytest.mark.parametrize(
    ("uptimes", "chosen", "looked_at"),
    [
        ((86_400, 86_400), None, ""),
        ((86_399, 86_400), None, "a"),
        ((10, 10), None, "ab"),
        ((10, 10), False, ""),
        ((86_400, 86_400), True, "ab"),
    ],
)
def test_contents_are_compared_after_a_start_or_when_asked_for(
    uptimes: tuple[int, int], chosen: bool | None, looked_at: str
) -> None:
    found = looked_back(started(healthy(), *uptimes), chosen)
    assert "".join(found) == looked_at
    assert set(found.values()) <= {None if chosen else RECENT}


@pytest.mark.parametrize(
    ("looked_hours_ago", "up_hours", "back_hours"),
    [
        (100, 99, 100),  # started since: however long ago that was
        (100, 101, None),
        (1, 23, 24),  # seen after its start, and still in sight
        (1, 25, None),
    ],
)
def test_a_server_that_started_since_the_last_look_is_looked_at(
    looked_hours_ago: int, up_hours: int, back_hours: int | None
) -> None:
    snapshot = started(healthy(), up_hours * 3600, 1_000 * 3600)
    a = snapshot.last[0]
    assert a.server_uuid is not None
    seen = {a.server_uuid: a.read_ended - timedelta(hours=looked_hours_ago)}
    found = looked_back(snapshot, None, seen)
    if back_hours is None:
        assert found == {}
    else:
        assert list(found) == ["a"]
        assert found["a"] is not None
        assert timedelta() <= found["a"] - timedelta(hours=back_hours) <= timedelta(seconds=2)


def test_how_long_a_server_is_up_decides_and_not_its_clock() -> None:
    unread = replace(healthy().last[0], uptime_seconds=None)
    snapshot = replace(healthy(), last=(unread, *healthy().last[1:]))
    assert "a" not in looked_back(snapshot, None)


def test_a_server_without_logs_is_a_remark_and_no_way_to_it_is_unknown() -> None:
    snapshot = healthy()
    no_logs = read_contents(snapshot, (), back=EVERY)
    assert no_logs.reading is not None
    reason = "it has no binary logs (log_bin is off)"
    assert no_logs.reading.remarks == (UnreadContent("a", reason), UnreadContent("b", reason))
    assert no_logs.reading.unread == ()
    assert not no_logs.look_again
    assert no_logs.reading.pairs == (("a", "b"),)
    audit = audit_cluster(snapshot.with_contents(no_logs.reading))
    assert (audit.findings, audit.unknown) == ((), ())
    lines = list(content_lines({"pair": no_logs.reading}, is_stored=False))
    assert "all the same" not in " ".join(lines)
    assert lines[1:] == [*(f"Not compared: {name}: {reason}." for name in "ab"), OTHERS]
    logged = tuple(
        replace(server, binary_logs=(BinaryLog("binlog.000001", 200),)) for server in snapshot.last
    )
    no_way = read_contents(replace(snapshot, last=logged), (), back=EVERY)
    assert no_way.reading is not None
    assert [each.reason for each in no_way.reading.unread] == [
        "no connection to it is configured"
    ] * 2
    assert no_way.reading.compared_count == 0


def test_a_server_that_was_not_read_has_its_say_elsewhere() -> None:
    found = read_contents(half_read(), (), back=EVERY)
    assert (found.reading, found.look_again) == (None, frozenset({"a", "b"}))


def test_pairs_without_a_start_to_look_at_are_left_alone() -> None:
    found = read_contents(healthy(), (), back={})
    assert (found.reading, found.look_again) == (None, frozenset())


def test_what_was_compared_is_said_in_a_line() -> None:
    nothing = ContentReading(NOON, 0, (), (), ())
    assert content_line(nothing).endswith("; 0 GTIDs compared.")
    start = ServerStart("a", NOON, "binlog.000002")
    some = ContentReading(NOON, 1200, (start,) * 6, (), ())
    assert content_line(some) == (
        "Content compared: own transactions around the restart of"
        + " a (2026-01-02 12:00:00 UTC)," * 4
        + " 2 more; 1,200 GTIDs compared, all the same."
    )
    one = replace(some, compared_count=1, starts=(start,))
    assert content_line(one).endswith("; 1 GTID compared, all the same.")
    left_out = (
        replace(one, undecided_count=1),
        replace(one, unread=(UnreadContent("b", "why"),)),
        replace(one, remarks=(UnreadContent("b", "why"),)),
        replace(one, is_cut=True),
    )
    for each in left_out:
        assert "; 1 GTID compared, these are the same" in content_line(each)
    assert content_line(left_out[0]).endswith(", 1 GTID not comparable.")
    many = {f"cluster{number:02}": some for number in range(CLUSTERS_SHOWN_MAX + 2)}
    lines = list(content_lines(many, is_stored=False))
    assert len(lines) == CLUSTERS_SHOWN_MAX + 2
    assert lines[-2:] == ["Content compared in 12 clusters: 14,400 GTIDs in total.", OTHERS]
    newest = {name: replace(each, newest_count=7) for name, each in many.items()}
    assert OTHERS not in list(content_lines(newest, is_stored=False))
    pairs = replace(some, starts=(start,), pairs=(("a", "b"), ("a", "c"), ("b", "c")))
    assert "UTC), between a and b; a and c; 1 more pair; 1,200 GTIDs" in content_line(pairs)


def test_where_nothing_was_compared_the_reason_is_said() -> None:
    said = [
        *content_lines({}, is_stored=False),
        *content_lines(None, is_stored=False),
        *content_lines(None, is_stored=True),
    ]
    assert len(said) == len(set(said)) == 3
    assert all(each.startswith("Content not compared") for each in said)
    assert "24 hours" in said[0]
    assert "--no-content" in said[1]


def test_members_of_a_group_are_compared_one_with_the_next() -> None:
    """No channel links them."""
    group = str(UUID(int=7))

    def member(name: str, *, of: str) -> ServerSnapshot:
        settings = (("group_replication_group_name", of),)
        return a_server(name, UUID(int=ord(name)), "", settings=settings)

    grouped = a_cluster("g", *(member(name, of=group) for name in "abc"))
    found = read_contents(grouped, (), back=dict.fromkeys("abc")).reading
    assert found is not None
    assert found.pairs == (("a", "b"), ("b", "c"))
    loose = a_cluster("g", *(member(name, of="") for name in "abc"))
    assert read_contents(loose, (), back=dict.fromkeys("abc")).reading is None


def test_a_restart_is_due_on_every_channel_that_holds_transactions_of_the_server() -> None:
    """first → middle → last: `first` may have lost what `last` alone still has."""
    uuids = {name: UUID(int=number) for number, name in enumerate(("first", "last", "middle"), 1)}
    own = f"{uuids['first']}:1-5"

    def pairs(last: ServerSnapshot) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
        chain = a_cluster("c", read("first", None), last, read("middle", "first"))
        looked = read_contents(chain, (), back={"first": RECENT})
        assert looked.reading is not None
        return looked.reading.pairs, looked.look_again

    def read(name: str, source: str | None, executed: str = own) -> ServerSnapshot:
        channels = (a_channel(source, uuids[source]),) if source else ()
        return a_server(name, uuids[name], executed, channels=channels)

    with_first = ("first", "middle")
    assert pairs(read("last", "middle")) == ((with_first, ("last", "middle")), frozenset())
    assert pairs(read("last", "middle", "")) == ((with_first,), frozenset())
    unread = replace(read("last", "middle"), gtid_executed=None)
    assert pairs(unread) == ((with_first,), frozenset(uuids))
