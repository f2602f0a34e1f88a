"""What waits behind a transaction that a plan leaves out: the rows of which of them count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import NetRow, RowsOn, RowState, TransactionContent
from repair.doubts.left_out_rows import without_left_out
from repair.model.actions import InjectEmpty, simulate
from repair.strategies.resuming import misfits_when_resumed
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row

STUCK = replace(channel("a", stuck=True), stuck_at=gtids("a:2"))
SERVERS = model(server("a", "a:1-3"), server("b", "a:1", STUCK))
# a:2 inserts row 60; a:3 updates row 30, or row 60 as well.
INSERTED, UPDATED = a_net_row(None, (60, "a")), a_net_row((30, "c"), (30, "d"))
TWICE = NetRow(INSERTED.table, None, (60, "z"), ((60, "a"),))
EMPTY = InjectEmpty("b", gtids("a:2"))


def state_of(rows: tuple[NetRow, ...], now: RowsOn) -> tuple[TransactionContent, list[str]]:
    """Return what waits after a:2 is left out, and the warnings of the selected strategy."""
    question = ContentQuestion(gtids("a:2-3"), ("a",), ("a", "b"), is_in_order=True)
    case = a_case(
        SERVERS,
        a_finding("A2", "a:2"),
        content=a_content("a:2", rows=(INSERTED,)),
        waiting={("b", ""): question},
        arrivals={("b", ""): a_content("a:2-3", rows=rows, rows_on={"b": now})},
    )
    after = simulate(SERVERS, EMPTY)
    found = without_left_out(case, after)[("b", "")]
    return found, [*misfits_when_resumed(case, [EMPTY], leaves_out=True)]


def test_a_row_that_only_the_left_out_one_changes_is_no_doubt() -> None:
    now = RowsOn(RowState.CONFLICT, "row t `id` = 60 is not as expected", off=(INSERTED,))
    found, warnings = state_of((INSERTED, UPDATED), now)
    assert found.state_on("b").state is RowState.AS_BEFORE
    assert found.rows == (UPDATED,)
    assert warnings == []


def test_a_row_of_what_follows_is_named_alone() -> None:
    now = RowsOn(RowState.CONFLICT, "rows 60, 30", off=(INSERTED, UPDATED))
    found, [text] = state_of((INSERTED, UPDATED), now)
    assert found.state_on("b").off == (UPDATED,)
    assert "`id` = 30 is not as expected" in text
    assert "60" not in text


@pytest.mark.parametrize(
    "now",
    [RowsOn(RowState.CONFLICT, "row 60", off=(TWICE,)), RowsOn(RowState.AS_BEFORE)],
)
def test_a_row_that_both_change_counts_in_any_state(now: RowsOn) -> None:
    found, [text] = state_of((TWICE,), now)
    assert found.state_on("b").state is RowState.CONFLICT
    assert f"without {gtids('a:2')}, row " in text
    assert "`id` = 60 is not as expected" in text


def test_rows_that_were_not_compared_one_by_one_stay_as_they_are() -> None:
    unread = RowsOn(RowState.UNREAD, "a statement")
    found, [text] = state_of((INSERTED, UPDATED), unread)
    assert found.state_on("b") == unread
    assert "(a statement)" in text


def test_more_than_three_rows_are_counted() -> None:
    rows = tuple(a_net_row((at, "c"), (at, "d")) for at in range(5))
    found, _ = state_of((INSERTED, *rows), RowsOn(RowState.CONFLICT, "", off=(*rows, INSERTED)))
    assert "`id` = 2 and 2 more is not as expected" in found.state_on("b").why


def test_only_what_is_left_out_on_the_server_itself_is_taken_out() -> None:
    now = RowsOn(RowState.CONFLICT, "row 60", off=(INSERTED,))
    content = a_content("a:2-3", rows=(INSERTED, UPDATED), rows_on={"b": now})
    case = a_case(
        SERVERS,
        a_finding("A2", "a:2"),
        content=a_content("a:2", rows=(INSERTED,)),
        arrivals={("b", ""): content},
    )
    assert without_left_out(case, SERVERS) == {("b", ""): content}, "a:2 is not executed yet"
    unread = replace(case, content=a_content("a:2"))
    assert without_left_out(unread, simulate(SERVERS, EMPTY)) == {("b", ""): content}


def test_a_server_that_is_not_modelled_keeps_what_waits() -> None:
    """Two servers with one server_uuid are not in the model, but their channels were asked about."""
    content = a_content(
        "a:2-3", rows=(INSERTED, UPDATED), rows_on={"copy": RowsOn(RowState.AS_BEFORE)}
    )
    case = a_case(
        SERVERS,
        a_finding("A2", "a:2"),
        content=a_content("a:2", rows=(INSERTED,)),
        arrivals={("copy", ""): content},
    )
    assert without_left_out(case, simulate(SERVERS, EMPTY)) == {("copy", ""): content}
