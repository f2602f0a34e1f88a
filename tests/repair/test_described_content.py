"""How a plan describes what transactions did, and what a case says of its finding."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from binlog.transactions import TableChange
from gtid import GtidSet
from repair.content.transaction_content import TransactionContent, described
from repair.doubts.doubted_content import doubted
from repair.model.offered_strategies import offered
from repair.model.replication_model import Model
from repair.model.strategy_case import Case
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding
from tests.snapshots import NOON
from topology.readings.content_class import ContentClass

WANTED = gtids("a:2-3")
LATER = NOON + timedelta(seconds=5)


def words(**facts: Any) -> list[str]:
    """Return what is said beside the class."""
    return described(a_content("a:2-3", **facts), WANTED).split("; ")[1:]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((1, 0, 0), "1 inserted"),
        ((0, 2, 0), "2 updated"),
        ((0, 0, 3_000), "3,000 deleted"),
        ((1, 2, 3), "1 inserted, 2 updated, 3 deleted"),
        ((0, 0, 0), "no row"),
    ],
)
def test_rows_are_counted_by_what_happened_to_them(
    counts: tuple[int, int, int], expected: str
) -> None:
    assert words(tables=(TableChange("d", "t", *counts),)) == [f"rows: d.t ({expected})"]


def test_tables_statements_and_times_are_named_where_they_are_known() -> None:
    assert words() == []
    tables = (TableChange("d", "t", 1, 0, 0), TableChange("e", "u", 0, 1, 0))
    assert words(tables=tables) == ["rows: d.t (1 inserted), e.u (1 updated)"]
    assert words(statements=("DROP TABLE t",)) == ["statements: `DROP TABLE t`"]
    once = {"committed_first": NOON, "committed_last": NOON}
    assert words(**once) == ["committed 2026-01-02 12:00:00 UTC"]
    assert words(**{**once, "committed_last": LATER}) == [
        "committed 2026-01-02 12:00:00 to 2026-01-02 12:00:05 UTC"
    ]
    assert words(committed_first=NOON) == words(committed_last=NOON) == []


def test_each_class_is_named_with_its_gtids_and_why_it_was_not_read() -> None:
    content = TransactionContent(
        "b",
        {ContentClass.EMPTY: gtids("a:1"), ContentClass.UNREAD: gtids("a:2")},
        unread="purged",
    )
    empty, unread = described(content, gtids("a:1-2")).split("; ")
    assert empty == f"{ContentClass.EMPTY.value}: {gtids('a:1')}"
    assert unread == f"{ContentClass.UNREAD.value}: {gtids('a:2')} (purged)"
    assert described(content, gtids("a:1")) == empty
    assert described(replace(content, unread=""), gtids("a:2")).endswith(str(gtids("a:2")))


@pytest.mark.parametrize(
    ("kind", "executed", "elsewhere", "unread"),
    [
        (ContentClass.EMPTY, "a:2-3", (ContentClass.EMPTY, "a:2-3"), ""),
        (ContentClass.EMPTY, "a:2-3", (ContentClass.HARMLESS, "a:2-3"), ""),
        (ContentClass.HARMLESS, "a:2-3", (ContentClass.DATA, "a:2-3"), "a:2-3"),
        (ContentClass.EMPTY, "a:2", (ContentClass.DATA, "a:2"), "a:2"),
        (ContentClass.EMPTY, "a:3", (ContentClass.EMPTY, "a:2"), "a:3"),
        (ContentClass.EMPTY, "a:9", (ContentClass.DATA, "a:9"), ""),
        # What needs a decision anyway stays what it is.
        (ContentClass.DATA, "a:2-3", (ContentClass.EMPTY, "a:2-3"), ""),
    ],
)
def test_what_another_server_does_not_show_as_empty_is_unread(
    kind: ContentClass, executed: str, elsewhere: tuple[ContentClass, str], unread: str
) -> None:
    other = a_content(elsewhere[1], elsewhere[0])
    found = doubted(a_content("a:2-3", kind), [("c", gtids(executed), other)])
    assert found.of_class(ContentClass.UNREAD) == (gtids(unread) if unread else GtidSet())
    assert found.wanted == WANTED
    assert ("may be another transaction on c" in found.unread) is bool(unread)


# -- the case of a finding ------------------------------------------------------------------------

PAIR = model(server("a", "a:1-3"), server("b", "a:1", channel("a")))


def case_of(code: str, servers: Model = PAIR, **facts: Any) -> Case:
    return a_case(servers, a_finding(code, "a:2-3"), **facts)


@pytest.mark.parametrize(
    ("code", "target", "holder"),
    [
        *((code, "b", "a") for code in ("H1", "H8", "P1", "A2")),
        *((code, "a", "b") for code in ("E1", "E3", "H7", "J3")),
    ],
)
def test_a_hole_is_missing_on_the_replica_and_the_rest_on_the_source(
    code: str, target: str, holder: str
) -> None:
    case = case_of(code)
    assert case.target is not None
    assert case.holder is not None
    assert (case.target.name, case.holder.name) == (target, holder)
    assert case.is_hole is (target == "b")


def test_a_stopped_applier_is_about_the_transaction_that_was_read() -> None:
    assert case_of("H1").wanted == WANTED
    assert case_of("A2").wanted == GtidSet()
    assert case_of("A2", content=a_content("a:2")).wanted == gtids("a:2")


def test_a_finding_of_servers_that_were_not_read_has_no_ends() -> None:
    case = case_of("E1", model(server("c", "a:1")))
    assert (case.source, case.replica, case.channel) == (None, None, None)
    assert a_case(PAIR, a_finding("H1", "a:2", channel=None)).channel is None
    assert a_case(PAIR, a_finding("H1", "a:2", channel="other")).channel is None


# -- what a refusal offers ------------------------------------------------------------------------


def back(**facts: Any) -> Model:
    """Return b, which follows a and has b:1, and a channel from b on a."""
    way = replace(channel("b", runs=False), **facts)
    return model(server("a", "a:1-3", way), server("b", "a:1-3 b:1", channel("a")))


@pytest.mark.parametrize(
    ("servers", "is_offered"),
    [
        (back(), True),
        (back(auto_position=False), True),
        # Its file position is behind them: only auto-position brings them.
        (back(auto_position=False, bypassed=gtids("b:1")), True),
        (back(bypassed=gtids("b:1"), passed=gtids("b:1"), retrieved=gtids("b:1")), False),
        (back(running=True), False),
        (back(is_stuck=True), False),
        (back(source=None), False),
        (back(source="x"), False),
        (PAIR, False),
        (model(server("b", "b:1", channel("a"))), False),
    ],
)
def test_a_start_is_offered_where_it_brings_extra_transactions(
    servers: Model, *, is_offered: bool
) -> None:
    case = a_case(servers, a_finding("E1", "b:1"))
    assert ("start_channel" in offered(case)) is is_offered


def test_a_start_is_offered_for_a_channel_that_exists() -> None:
    stopped = model(server("a", "a:1-3"), server("b", "a:1", channel("a", runs=False)))
    assert "start_channel" in offered(a_case(stopped, a_finding("A7", "a:2-3")))
    gone = a_case(stopped, a_finding("A7", "a:2-3", channel="x"))
    assert "start_channel" not in offered(gone)
