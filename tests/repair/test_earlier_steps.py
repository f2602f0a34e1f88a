"""A start beside a step that writes rows: refused if it delivers changes of the same rows."""

from dataclasses import replace
from typing import Any

import pytest

from repair.content.row_versions import RowVersions
from repair.content.transaction_content import TransactionContent
from repair.doubts.earlier_steps import changes_written_rows
from repair.model.actions import MakeRowsAlike
from repair.model.strategy_case import Refusal
from repair.strategies.fetching_again import refetch
from repair.strategies.starting import start_channel
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import (
    a_case,
    a_content,
    a_finding,
    a_net_row,
    a_table,
    proposed,
    reason,
)
from topology.readings.content_class import ContentClass

ROW = RowVersions(a_table(), "`id` = 2", source=(2, 7), replica=None, differing=())
STEP = MakeRowsAlike("b", "a", (ROW,), until_executed=gtids("a:4"))
SAME, OTHER = a_net_row((2, 7), None), a_net_row((3, 7), None)
DELETES = a_content("b:1", rows=(SAME,))


@pytest.mark.parametrize(
    ("content", "delivered", "words"),
    [
        (DELETES, "b:1", "changes the row `id` = 2 of d.t that earlier steps"),
        (a_content("b:1", rows=(OTHER, SAME)), "b:1", "changes the row `id` = 2 of d.t"),
        (a_content("b:1", rows=(OTHER,)), "b:1", None),
        (a_content("b:1", rows=(a_net_row((2, 7), None, a_table("s")),)), "b:1", None),
        (a_content("b:1"), "b:1", "may change rows that earlier steps"),
        (a_content("b:1", rows_beside_created=(OTHER,)), "b:1", None),
        (a_content("b:1", rows_beside_created=(SAME,)), "b:1", "changes the row"),
        (None, "b:1", "may change rows that earlier steps of this plan write on b"),
        (a_content("b:1", rows=(OTHER,)), "b:1-2", "may change rows"),
        (a_content("b:1", ContentClass.EMPTY, rows=()), "b:1", None),
        (a_content("a:4 b:1", rows=(OTHER,)), "a:4 b:1", None),
        (a_content("a:4", rows=(SAME,)), "a:4", None),
        (DELETES, "", None),
    ],
)
def test_which_transactions_change_the_rows(
    content: TransactionContent | None, delivered: str, words: str | None
) -> None:
    why = changes_written_rows(STEP, content, gtids(delivered))
    assert why is None if words is None else why is not None and words in why


def stopped(*, is_chosen: bool = True, **facts: Any) -> Any:
    """A ring: the channel of a is stopped, and b has a transaction of its own that waits there."""
    servers = model(
        server("a", "a:1-4", channel("b", runs=False)),
        server("b", "a:1-4 b:1", channel("a")),
    )
    case = a_case(servers, a_finding("A7", "", source="b", replica="a"), is_chosen=is_chosen)
    return replace(case, **facts)


def test_a_selected_start_that_delivers_them_anywhere_is_refused() -> None:
    case = stopped(arrivals={("a", ""): DELETES})
    assert proposed(start_channel(case)).actions
    why = reason(start_channel(replace(case, rows_written=(STEP,))))
    assert "it would deliver" in why
    assert "Run these steps alone, then audit and plan again" in why
    other = stopped(arrivals={("a", ""): a_content("b:1", rows=(OTHER,))}, rows_written=(STEP,))
    assert proposed(start_channel(other)).actions


def test_a_default_start_is_refused_where_it_delivers_to_the_server_of_the_step() -> None:
    case = stopped(is_chosen=False, arrivals={("a", ""): DELETES})
    assert not isinstance(start_channel(replace(case, rows_written=(STEP,))), Refusal)
    on_a = replace(STEP, server="a")
    assert "write on a" in reason(start_channel(replace(case, rows_written=(on_a,))))


def test_nothing_is_fetched_over_rows_that_a_step_writes() -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1 a:3", channel("a")))
    content = a_content("a:2", rows=(SAME,))
    case = a_case(servers, a_finding("H1", "a:2"), content=content)
    assert proposed(refetch(case)).actions
    why = reason(refetch(replace(case, rows_written=(STEP,))))
    assert "changes the row `id` = 2 of d.t" in why
    elsewhere = replace(case, rows_written=(replace(STEP, server="a", source="b"),))
    assert proposed(refetch(elsewhere)).actions
