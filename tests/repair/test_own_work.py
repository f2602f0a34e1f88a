"""Rows that are as before because the receiving server changed them and changed them back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlog.rows.images import VARCHAR
from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from repair.content.content_questions import arrivals
from repair.content.transaction_content import NetRow, RowsOn, RowState, TransactionContent
from repair.model.own_work import disturbed
from repair.model.replication_model import Model
from tests.repair.build import channel, gtids, model, server, snapshot_of
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ClusterSnapshot

COLUMN = RowColumn(LONG, 0, name="id", is_unsigned=False, is_generated=False)
TABLE = RowTable("d", "t", (COLUMN, replace(COLUMN, name="n")), (0,), Origin.DEFINITION)
OTHER = replace(TABLE, table="u")
WAITING = TransactionContent(
    "b",
    {ContentClass.DATA: gtids("b:1")},
    rows=(NetRow(TABLE, None, (2, 7)),),
    rows_on={"a": RowsOn(RowState.AS_BEFORE), "c": RowsOn(RowState.AS_AFTER)},
)


def own(kind: ContentClass, *rows: NetRow, **more: Any) -> TransactionContent:
    return TransactionContent("a", {kind: gtids("a:4")}, rows=rows, **more)


BACK = NetRow(TABLE, None, None, ((2, 9),))  # inserted and deleted


@pytest.mark.parametrize(
    ("done", "state"),
    [
        (own(ContentClass.DATA, BACK), RowState.CONFLICT),
        (own(ContentClass.DATA, NetRow(TABLE, None, (3, 9))), RowState.AS_BEFORE),
        (own(ContentClass.DATA, replace(BACK, table=OTHER)), RowState.AS_BEFORE),
        (own(ContentClass.EMPTY), RowState.AS_BEFORE),
        (own(ContentClass.HARMLESS, BACK), RowState.AS_BEFORE),
        (own(ContentClass.UNREAD), RowState.CONFLICT),
        (replace(own(ContentClass.DATA), rows=None), RowState.CONFLICT),
        (
            replace(own(ContentClass.DDL), rows=None, rows_beside_created=(BACK,)),
            RowState.CONFLICT,
        ),
        (replace(own(ContentClass.DDL), rows=None, rows_beside_created=()), RowState.AS_BEFORE),
    ],
)
def test_rows_that_the_receiver_may_have_changed_itself_count_as_changed(
    done: TransactionContent, state: RowState
) -> None:
    found = disturbed(WAITING, [("a", gtids("a:4"), done), ("c", gtids("c:1"), done)])
    assert found.state_on("a").state is state
    assert found.state_on("c").state is RowState.AS_AFTER, "it says more already"
    assert bool(found.state_on("a").why) is (state is RowState.CONFLICT)


def test_keys_of_text_may_be_the_same_row() -> None:
    """'m' and 'M' are one row where the collation calls them equal."""
    [key, *others] = TABLE.columns
    by_name = replace(TABLE, columns=(replace(key, type_code=VARCHAR), *others))
    waiting = replace(WAITING, rows=(NetRow(by_name, None, (b"m", 7)),))
    for rows_of, state in ((by_name, RowState.CONFLICT), (OTHER, RowState.AS_BEFORE)):
        done = own(ContentClass.DATA, NetRow(rows_of, None, None, ((b"M", 9),)))
        assert disturbed(waiting, [("a", gtids("a:4"), done)]).state_on("a").state is state


def test_what_only_a_receiver_has_is_asked_for() -> None:
    """In a pair that of the stopped channel; what it got from its source, or sends there, is not."""
    servers = model(
        server("a", "a:1-4 b:1", channel("b", runs=False)),
        server("b", "a:1-3 b:1-2", channel("a")),
        server("c", "a:1-3 b:1 c:1", channel("a")),
    )
    question = arrivals(snapshot_of(servers))["a", ""]
    assert question.wanted == gtids("b:2")
    assert dict(question.own) == {"a": gtids("a:4"), "c": gtids("c:1")}


def test_what_another_source_sent_is_not_the_receivers_own() -> None:
    servers = model(
        server("a", "a:1-3"),
        server("b", "b:1-5"),
        server("c", "a:1-2 b:1-5 d:1", channel("a", name="x", runs=False), channel("b", name="y")),
    )
    assert arrivals(snapshot_of(servers))["c", "x"].own == (("c", gtids("d:1")),)


def test_what_a_former_source_sent_is_later_work_of_the_receiver() -> None:
    """b has replicated from a, and is to get what c committed: c does not have a:1-3."""
    servers = model(
        server("a", "a:1-5"),
        server("b", "a:1-3", channel("c", runs=False)),
        server("c", "c:1", channel("b")),
    )
    question = arrivals(snapshot_of(servers))["b", ""]
    assert question.wanted == gtids("c:1")
    assert dict(question.own) == {"b": gtids("a:1-3")}


def with_settings(servers: Model, name: str, notable: str | None) -> ClusterSnapshot:
    """Read servers, one of them with settings that may change conclusions; None: not read."""
    snapshot = snapshot_of(servers)
    last = tuple(
        replace(each, settings=None, notable_settings=notable) if each.name == name else each
        for each in snapshot.last
    )
    return replace(snapshot, last=last)


@pytest.mark.parametrize(
    ("settings", "own"),
    [
        ("", ""),
        ("replica_type_conversions=ALL_LOSSY", ""),
        ("replica_exec_mode=IDEMPOTENT", "b:1-3"),
        ("replica_skip_errors=1062", "b:1-3"),
        (None, "b:1-3"),  # they were not read
    ],
)
def test_behind_a_source_that_may_ignore_errors_its_log_is_no_order(
    settings: str | None, own: str
) -> None:
    """There b:1-3 did not stop the applier, although they may have changed the rows of a:1-2."""
    both = model(
        server("a", "a:1-2 b:1-3", channel("b")),
        server("b", "b:1-3", channel("a", runs=False)),
    )
    question = arrivals(with_settings(both, "a", settings))["b", ""]
    assert question.wanted == gtids("a:1-2")
    assert question.own == ((("b", gtids(own)),) if own else ())


@pytest.mark.parametrize(
    ("name", "settings", "is_in_order"),
    [
        ("b", "", True),
        ("b", "replica_exec_mode=IDEMPOTENT", False),
        ("b", None, False),
        ("c", "replica_skip_errors=1062", False),  # it receives from b
        ("a", "replica_exec_mode=IDEMPOTENT", True),  # its own commits were no rows of others
    ],
)
def test_a_receiver_that_ignores_errors_overwrites_rows_that_do_not_fit(
    name: str, settings: str | None, *, is_in_order: bool
) -> None:
    chain = model(
        server("a", "a:1-3"),
        server("b", "a:1", channel("a", runs=False)),
        server("c", "a:1", channel("b")),
    )
    question = arrivals(with_settings(chain, name, settings))["b", ""]
    assert question.is_in_order is is_in_order


@pytest.mark.parametrize(("settings", "own"), [("", ""), ("replica_skip_errors=ALL", "a:3-4")])
def test_behind_such_a_source_what_came_over_another_channel_may_be_later(
    settings: str, own: str
) -> None:
    """d has a:3-4 by way of c. b logged them behind a:1-2, and may have ignored their errors."""
    diamond = model(
        server("a", "a:1-4"),
        server("b", "a:1-4", channel("a")),
        server("c", "a:3-4", channel("a")),
        server("d", "a:3-4", channel("b", name="x", runs=False), channel("c", name="y")),
    )
    question = arrivals(with_settings(diamond, "b", settings))["d", "x"]
    assert question.wanted == gtids("a:1-2")
    assert question.own == ((("d", gtids(own)),) if own else ())
