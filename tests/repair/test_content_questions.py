"""What a planner must read: for findings, and before a stopped channel is started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.content_questions import ContentQuestion, arrivals, question_of
from repair.content.created_tables import all_created, created_by, is_new
from repair.content.transaction_content import TransactionContent
from repair.doubts.doubted_content import doubted
from tests.repair.build import UUIDS, gtids
from tests.repair.cases import a_finding
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.catalogue.verdict_table import CATALOGUE
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ServerSnapshot, ThreadState

STOPPED = {"receiver": ThreadState.STOPPED, "applier": ThreadState.STOPPED}
OF = {"a": A, "b": B, "c": C, "d": UUIDS["d"]}


def one(name: str, executed: str, *sources: str, **facts: Any) -> ServerSnapshot:
    """Make a server that receives by a channel from each source; from the first as stated."""
    channels = tuple(
        a_channel(each, OF[each], name="" if at == 0 else each, **(facts if at == 0 else {}))
        for at, each in enumerate(sources)
    )
    return a_server(name, OF[name], gtids(executed), channels=channels)


def waiting(*servers: ServerSnapshot) -> ContentQuestion | None:
    ordered = sorted(servers, key=lambda server: server.name)
    return arrivals(a_cluster("cluster", *ordered)).get(("b", ""))


def test_what_waits_on_a_stopped_channel_is_read_from_its_source() -> None:
    question = waiting(one("a", "a:1-5"), one("b", "a:1-2", "a", **STOPPED))
    assert question == ContentQuestion(
        gtids("a:3-5"), ("a", "b"), ("b", "a"), is_in_order=True, source="a"
    )


@pytest.mark.parametrize("thread", ["receiver", "applier"])
def test_one_stopped_thread_is_enough(thread: str) -> None:
    facts = {thread: ThreadState.STOPPED, "gtid_retrieved": gtids("a:1-6")}
    question = waiting(one("a", "a:1-5"), one("b", "a:1-2", "a", **facts))
    assert question is not None
    assert question.wanted == gtids("a:3-6"), "what it has received is applied as well"


def test_what_start_until_holds_back_waits_as_well() -> None:
    question = waiting(one("a", "a:1-5"), one("b", "a:1-2", "a", until="SQL_BEFORE_GTIDS"))
    assert question is not None
    assert question.wanted == gtids("a:3-5")


def test_what_the_source_purged_is_not_brought_by_auto_position() -> None:
    purged = replace(one("a", "a:1-5"), gtid_purged=gtids("a:1-3"))
    found = question_of(a_finding("C3", ""), a_cluster("cluster", purged, one("b", "a:1", "a")))
    assert found is not None
    assert found.wanted == gtids("a:4-5")


def test_nothing_is_asked_where_nothing_waits() -> None:
    assert waiting(one("a", "a:1-5"), one("b", "a:1-5 b:1", "a", **STOPPED)) is None
    assert waiting(one("a", "a:1-5"), one("b", "a:1-2", "a")) is None


def test_rows_of_filtered_tables_are_not_compared() -> None:
    filtered = one("b", "a:1-2", "a", filters=("d.t",), **STOPPED)
    question = waiting(one("a", "a:1-5"), filtered)
    assert question is not None
    assert (question.servers, question.is_in_order) == ((), True)


def test_behind_a_filter_rows_that_both_may_have_changed_are_compared() -> None:
    """Nothing else shows which change of a row is the newer one."""
    filtered = one("b", "a:1-2 b:1", "a", filters=("d.t",), **STOPPED)
    question = waiting(one("a", "a:1-5 b:1", "b"), filtered)
    assert question is not None
    assert (set(question.servers), question.beside) == ({"a", "b"}, gtids("b:1"))


@pytest.mark.parametrize(
    ("servers", "is_in_order"),
    [
        ((one("b", "a:1-2 b:1", "a", **STOPPED),), False),  # b was written to
        ((one("b", "a:1 a:3", "a", **STOPPED),), False),  # a hole would be filled
        ((one("b", "a:1-2", "a", "c", **STOPPED), one("c", "")), False),  # two sources
        ((one("b", "a:1-2", "a", **STOPPED), one("c", "a:1", "b")), True),
        ((one("b", "a:1-2", "a", **STOPPED), one("c", "a:1 c:1", "b")), False),  # c is below b
        ((one("b", "a:1-2", "a", **STOPPED), one("c", "a:1 a:4", "b")), False),
        ((one("b", "a:1-2", "a", **STOPPED), one("c", "a:1-3", "b")), False),  # a part of them
        ((one("b", "a:1-2", "a", **STOPPED), one("c", "a:1-5", "b")), True),
    ],
)
def test_only_the_order_of_one_log_needs_no_comparison(
    servers: tuple[ServerSnapshot, ...], *, is_in_order: bool
) -> None:
    question = waiting(one("a", "a:1-5"), *servers)
    assert question is not None
    assert question.is_in_order == is_in_order
    below = {each.name for each in servers if each.name == "c" and each.channels}
    assert set(question.servers) == {"a", "b"} | below


def test_a_uuid_of_no_server_may_be_dropped() -> None:
    question = waiting(one("a", "a:1-5 f:1"), one("b", "a:1-2", "a", **STOPPED))
    assert question is not None
    assert not question.is_in_order


def test_in_a_ring_the_server_behind_the_replica_is_also_before_its_source() -> None:
    ring = (one("a", "a:1-3", "c"), one("c", "a:1", "b"))
    question = waiting(*ring, one("b", "a:1", "a", **STOPPED))
    assert question is not None
    assert question.is_in_order
    ahead = (one("a", "a:1-3", "c"), one("c", "a:1 c:1", "b"))
    question = waiting(*ahead, one("b", "a:1", "a", **STOPPED))
    assert question is not None
    assert not question.is_in_order


def test_in_a_ring_a_server_has_its_own_part_of_what_arrives() -> None:
    ring = (one("a", "a:1-3 c:1-2", "c"), one("c", "a:1 c:1-2", "b"))
    question = waiting(*ring, one("b", "a:1 c:1", "a", **STOPPED))
    assert question is not None
    assert (question.wanted, question.is_in_order) == (gtids("a:2-3 c:2"), True)


def test_own_work_that_the_source_logged_behind_what_waits_is_not_in_order() -> None:
    """b committed b:2 while it was stopped, and a received it: before a:2 or behind it."""
    first = replace(one("a", "a:1-3 b:1-2", "b"), gtid_purged=gtids("b:1"))
    question = waiting(first, one("b", "a:1 b:1-2", "a", **STOPPED))
    assert question is not None
    assert (question.source, question.beside) == ("a", gtids("b:2"))
    assert not question.arrives_in_order(gtids("a:1 b:1"))
    assert question.arrives_in_order(gtids("a:1 b:1-2"))


def test_in_a_ring_the_server_behind_the_replica_may_have_a_part_of_what_arrives() -> None:
    """b lost a:2 after it had passed it on: c has it from there, and from nowhere else."""
    ring = (one("a", "a:1-3", "c"), one("c", "a:1-2", "b"))
    question = waiting(*ring, one("b", "a:1", "a", **STOPPED))
    assert question is not None
    assert (question.wanted, question.is_in_order) == (gtids("a:2-3"), True)


def test_several_channels_of_the_source_itself_change_no_order() -> None:
    ring = (one("a", "a:1-3", "b", "c"), one("c", ""))
    question = waiting(*ring, one("b", "a:1", "a", **STOPPED))
    assert question is not None
    assert question.is_in_order


def test_what_a_stopped_channel_would_bring_the_source_is_of_its_side() -> None:
    """b has d:1 from a, which lost it since, and would get it from d again."""
    above = (one("a", "a:1-5", "d", **STOPPED), one("d", "d:1"))
    question = waiting(*above, one("b", "a:1-2 d:1", "a", **STOPPED))
    assert question is not None
    assert question.is_in_order


def test_the_content_of_findings() -> None:
    snapshot = a_cluster(
        "cluster", one("a", "a:1-5"), one("b", "a:1-2 b:1", "a"), one("c", "a:1-2", "b")
    )
    errant = question_of(a_finding("E1", "b:1"), snapshot)
    coming = (("a", gtids("a:3-5")),)
    assert errant == ContentQuestion(gtids("b:1"), ("b", "a", "c"), ("a", "b", "c"), own=coming)
    hole = question_of(a_finding("H1", "a:3"), snapshot)
    own = (("b", gtids("b:1")),)
    assert hole == ContentQuestion(gtids("a:3"), ("a", "b", "c"), ("b", "a", "c"), own=own)
    by_position = question_of(a_finding("C3", ""), snapshot)
    assert by_position is not None
    assert by_position.wanted == gtids("a:3-5"), "auto-position brings all that is missing"
    conflict = question_of(a_finding("A2", ""), snapshot, failing=gtids("a:3"))
    assert conflict is not None
    assert (conflict.wanted, conflict.own) == (gtids("a:3"), ())
    assert question_of(a_finding("A2", ""), snapshot) is None
    assert question_of(a_finding("T2", "a:3"), snapshot) is None


@pytest.mark.parametrize("code", [entry.code for entry in CATALOGUE.values()])
def test_a_code_decides_whose_rows_are_compared(code: str) -> None:
    """Extra transactions concern every server; missing ones the two and all below; a stop the two."""
    a, b, c = one("a", "a:1-5"), one("b", "a:1-2", "a"), one("c", "a:1-2", "b")
    snapshot = a_cluster("cluster", a, b, c, one("d", "a:1-5"))
    found = question_of(a_finding(code, "a:3"), snapshot, failing=gtids("a:4"))
    if code in ("E1", "E2", "E3", "E6", "H7", "J3"):
        assert found is not None
        assert (found.wanted, set(found.servers)) == (gtids("a:3"), {"a", "b", "c", "d"})
        assert found.holders == ("a", "b", "c", "d")
    elif code in ("H1", "H3", "H4", "H5", "H8", "P1", "C3"):
        assert found is not None
        wanted = "a:3-5" if code == "C3" else "a:3"
        assert (found.wanted, found.servers) == (gtids(wanted), ("b", "a", "c"))
    elif code in ("A2", "A3"):
        assert found is not None
        assert (found.wanted, found.servers) == (gtids("a:4"), ("b", "a"))
    else:
        assert found is None


def test_in_a_ring_what_the_source_of_a_gap_has_yet_to_get_may_be_later() -> None:
    """b:1 is on its way round over c, and b:2 behind it; a:6 and c:1 are on their way to b."""
    ring = (
        one("a", "a:1-6 c:1", "c"),
        one("b", "a:1-2 a:4-5 b:1-2", "a"),
        one("c", "a:1-2 a:4-5 b:1 c:1", "b"),
    )
    found = question_of(a_finding("H1", "a:3"), a_cluster("ring", *ring))
    assert found is not None
    assert dict(found.own) == {"b": gtids("b:1-2"), "c": gtids("b:1")}
    errant = question_of(a_finding("E1", "b:1-2"), a_cluster("ring", *ring))
    assert errant is not None
    assert dict(errant.own) == {"a": gtids("a:3 a:6 c:1"), "c": gtids("c:1")}


def test_where_an_applier_stopped_the_work_that_its_source_has_yet_to_get_counts() -> None:
    """In a ring c has b:2 of b already, and a has not. c:1 is not on b."""
    ring = (
        one("a", "a:1-5 b:1", "c"),
        one("b", "a:1-2 b:1-3", "a", **STOPPED),
        one("c", "a:1-2 b:1-2 c:1", "b"),
    )
    found = question_of(a_finding("A2", ""), a_cluster("ring", *ring), failing=gtids("a:3"))
    assert found is not None
    assert dict(found.own) == {"b": gtids("b:2-3")}
    chain = (one("a", "a:1-5"), one("b", "a:1-2 b:1-3", "a", **STOPPED))
    alone = question_of(a_finding("A2", ""), a_cluster("two", *chain), failing=gtids("a:3"))
    assert alone is not None
    assert alone.own == (), "a never receives it"


def test_a_server_that_is_not_of_the_audit_is_not_asked() -> None:
    snapshot = a_cluster("cluster", one("a", "a:1-5"), one("b", "a:1-2", "a"))
    found = question_of(a_finding("H1", "a:3", source="z"), snapshot)
    assert found is not None
    assert (found.holders, found.servers) == (("a", "b"), ("b",))


def test_what_another_server_does_not_show_as_empty_is_doubted() -> None:
    empty = TransactionContent("a", {ContentClass.EMPTY: gtids("b:1-3")})
    same = TransactionContent("c", {ContentClass.EMPTY: gtids("b:1")})
    assert doubted(empty, [("c", gtids("b:1"), same)]) == empty
    data = TransactionContent("c", {ContentClass.DATA: gtids("b:2")})
    found = doubted(empty, [("c", gtids("b:1"), same), ("b", gtids("b:2-3"), data)])
    assert found.of_class(ContentClass.EMPTY) == gtids("b:1")
    assert found.of_class(ContentClass.UNREAD) == gtids("b:2-3"), "b does not show b:3 at all"
    assert "may be another transaction on b" in found.unread
    part = replace(empty, unread="a:9 was purged")
    assert doubted(part, [("b", gtids("b:2"), data)]).unread.startswith("a:9 was purged; ")
    assert found.doubtful == {"b": gtids("b:2-3")}


@pytest.mark.parametrize(
    ("sql", "created"),
    [
        ("CREATE DATABASE shop", ("shop", "")),
        ("create schema if not exists `a``b`", ("a`b", "")),
        ("CREATE TABLE t (id INT)", ("d", "t")),
        ("CREATE TABLE IF NOT EXISTS `shop` . `t` LIKE u", ("shop", "t")),
        ("CREATE VIEW v AS SELECT 1", None),
        ("ALTER TABLE t ADD n INT", None),
        ("DROP TABLE t", None),
        ("CREATE TEMPORARY TABLE t (id INT)", None),
    ],
)
def test_what_a_statement_creates(sql: str, created: tuple[str, str] | None) -> None:
    assert created_by("d", sql) == created


def test_rows_of_what_is_created_are_new() -> None:
    created = all_created([("", "CREATE DATABASE shop"), ("d", "CREATE TABLE t (id INT)")])
    assert created == (("shop", ""), ("d", "t"))
    assert is_new("shop", "any", created)
    assert is_new("d", "t", created)
    assert not is_new("d", "u", created)
    assert all_created([("d", "CREATE TABLE t (id INT)"), ("d", "DROP TABLE u")]) is None


@pytest.mark.parametrize(("received", "is_in_order"), [("a:1-5 f:7", True), ("a:1-5", False)])
def test_what_came_by_the_channel_is_no_work_of_the_replica(
    received: str, *, is_in_order: bool
) -> None:
    """Its source may have been reset since, and no server that was read has f:7 now."""
    facts = {**STOPPED, "gtid_retrieved": gtids(received)}
    question = waiting(one("a", "a:1-5"), one("b", "a:1-2 f:7", "a", **facts))
    assert question is not None
    assert question.wanted == gtids("a:3-5")
    assert question.is_in_order is is_in_order
    assert bool(question.own) is not is_in_order


@pytest.mark.parametrize(
    ("code", "holders"), [("H8", ("b", "a", "c")), ("C3", ("b", "a", "c")), ("E1", ("a", "c", "b"))]
)
def test_what_is_missing_is_read_from_the_source_before_its_origin(
    code: str, holders: tuple[str, ...]
) -> None:
    """a committed it; what b has under the GTID is what c does not have."""
    chain = one("a", "a:1-5"), one("b", "a:1-5", "a"), one("c", "a:1-2", "b")
    found = question_of(
        a_finding(code, "a:3", source="b", replica="c"), a_cluster("cluster", *chain)
    )
    assert found is not None
    assert found.holders == holders
