"""Rows that a replica and its source changed since: no fetch replaces them with an older version.

Other rows of the same transactions may be missing, so that not all of them are as on the source.
"""

from dataclasses import replace
from typing import Any

import pytest

from repair.content.transaction_content import RowsOn, RowState
from repair.model.replication_model import Model
from repair.model.strategy_case import MAY_DIFFER, OtherFinding
from repair.repair_plan import unreported_of
from repair.strategies.fetching_again import refetch
from tests.repair.build import UUIDS, channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row, proposed, reason

HOLE = a_finding("H1", "a:2")
CHANGED, MISSING = a_net_row((1, 5), (1, 6)), a_net_row(None, (2, 0))
ROWS = (CHANGED, MISSING)
CONFLICT = RowsOn(RowState.CONFLICT, "row `id` = 1 is not as expected")
OVERTAKEN = replace(CONFLICT, overtaken=(CHANGED,))
UNREAD = RowsOn(RowState.UNREAD, "the log does not contain the whole row", overtaken=(CHANGED,))
NAMED = "row d.t `id` = 1 was changed since, and equal on {} and a: fetched again,"


def pair(executed: str = "a:1 a:3") -> Model:
    made = channel("a", auto=False, bypassed="a:2")
    return model(server("a", "a:1-3"), server("b", executed, made))


def content_on(**rows_on: RowsOn) -> Any:
    return a_content("a:2", rows=ROWS, rows_on={"a": CONFLICT, **rows_on})


@pytest.mark.parametrize("is_chosen", [False, True])
@pytest.mark.parametrize("state", [OVERTAKEN, UNREAD])
@pytest.mark.parametrize("finding", [HOLE, a_finding("H8", "a:2"), a_finding("C3", "")])
def test_a_row_that_was_changed_since_on_both_is_named_and_not_fetched(
    finding: Any, state: RowsOn, *, is_chosen: bool
) -> None:
    case = a_case(pair(), finding, content=content_on(b=state), is_chosen=is_chosen)
    why = reason(refetch(case))
    assert NAMED.format("b") in why
    assert f"{UUIDS['a']}:2 would write an older version" in why
    assert "inject_empty keeps the rows of b, and what is missing there stays missing" in why


def test_several_rows_are_counted() -> None:
    rows = tuple(a_net_row((each, 5), (each, 6)) for each in range(1, 6))
    case = a_case(pair(), HOLE, content=content_on(b=replace(OVERTAKEN, overtaken=rows)))
    why = reason(refetch(case))
    assert "rows d.t `id` = 1, d.t `id` = 2, d.t `id` = 3 and 2 more were changed since" in why


def test_a_server_below_would_get_the_older_version_too() -> None:
    servers = pair().replace(server("c", "a:1 a:3", channel("b")))
    content = content_on(b=CONFLICT, c=OVERTAKEN)
    assert NAMED.format("c") in reason(refetch(a_case(servers, HOLE, content=content)))
    apart = pair().replace(server("c", "a:1 a:3", channel("b", runs=False)))
    assert proposed(refetch(a_case(apart, HOLE, content=content))).actions
    has_it = pair().replace(server("c", "a:1-3", channel("b")))
    assert proposed(refetch(a_case(has_it, HOLE, content=content))).actions


def test_what_another_gap_fetches_is_not_put_over_a_later_version_either() -> None:
    servers = model(server("a", "a:1-4"), server("b", "a:1 a:3", channel("a", auto=False)))
    fitting = a_content("a:2", rows=(MISSING,), rows_on={"b": RowsOn(RowState.AS_BEFORE)})
    beside = a_content("a:4", rows=ROWS, rows_on={"b": OVERTAKEN})
    holes = (OtherFinding("H8", "", gtids("a:4"), beside),)
    why = reason(refetch(a_case(servers, HOLE, content=fitting, holes=holes)))
    assert NAMED.format("b") in why
    assert f"{UUIDS['a']}:4 would write an older version" in why
    there = {"b": gtids("a:1 a:3-4")}  # then it is not fetched
    case = a_case(servers, HOLE, content=fitting, holes=holes)
    case = replace(case, snapshot_executed={**case.snapshot_executed, **there})
    assert proposed(refetch(case)).actions


def test_other_rows_that_do_not_fit_count_for_the_status_of_a_selected_fetch() -> None:
    [warning] = proposed(refetch(a_case(pair(), HOLE, content=content_on(b=CONFLICT)))).warnings
    assert warning.startswith(f"{MAY_DIFFER}{UUIDS['a']}:2 may conflict with rows of b: row")
    assert "overwrite rows with an older version" in warning
    assert unreported_of((warning, "another")) == (warning,)
