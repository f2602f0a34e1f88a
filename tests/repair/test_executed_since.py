"""An applier that stopped at what its replica has executed since (A2): when a start is planned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.transaction_content import RowsOn, RowState, nothing_read
from repair.model.actions import StartChannel, simulate
from repair.model.strategy_case import Outcome
from repair.strategies.executed_since import resolve_or_start
from repair.strategies.leaving_out import gtid_purged_append, inject_empty, reset_and_purge
from repair.strategies.strategy_registry import PLANNERS
from tests.repair.build import OLD, channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row, proposed, reason
from topology.readings.content_class import ContentClass

# d receives a:1-9 from b and from c. Both channels stopped at a:5, and the one from b went on.
STUCK = a_finding("A2", "", source="c", replica="d", channel="from_c")
WAITING = replace(channel("c", name="from_c", stuck=True), stuck_at=gtids("a:5"))
BOTH = model(
    server("b", "a:1-9"),
    server("c", "a:1-9"),
    server("d", "a:1-9", channel("b", name="from_b"), WAITING),
)
AFTER = RowsOn(RowState.AS_AFTER)
CHANGED = RowsOn(RowState.CONFLICT, "row d.t `id` = 9")
ROWS: dict[str, Any] = {"rows": (a_net_row(None, (9, 1)),)}


def planned(on: RowsOn, *, chosen: bool = False, **facts: Any) -> Outcome:
    content = a_content("a:5", rows_on={"d": on}, **{**ROWS, **facts})
    return resolve_or_start(a_case(BOTH, STUCK, content=content, is_chosen=chosen))


@pytest.mark.parametrize("on", [AFTER, replace(CHANGED, is_like_source=True)])
def test_with_all_rows_there_a_start_is_the_repair(on: RowsOn) -> None:
    done = proposed(planned(on))
    assert done.actions == (StartChannel("d", "from_c", in_order=True),)
    assert done.warnings == ()
    after = simulate(BOTH, done.actions[0])["d"].channel("from_c")
    assert after is not None
    assert not after.is_stuck


def test_what_changes_no_rows_is_there() -> None:
    content = a_content("a:5", ContentClass.EMPTY, rows=(), rows_on={"d": CHANGED})
    done = proposed(resolve_or_start(a_case(BOTH, STUCK, content=content, is_chosen=False)))
    assert done.actions == (StartChannel("d", "from_c", in_order=True),)


@pytest.mark.parametrize(
    ("on", "facts", "why"),
    [
        (CHANGED, {}, "its rows are not as it left them, and not as on b (row d.t `id` = 9)"),
        (RowsOn(RowState.AS_BEFORE), {}, "its rows are not as it left them"),
        (RowsOn(RowState.UNREAD, "no SELECT"), {}, "its rows were not compared (no SELECT)"),
        (AFTER, {"read_from": None, "unread": "purged"}, "its rows were not compared (purged)"),
    ],
)
def test_rows_that_may_be_missing_are_for_the_operator(
    on: RowsOn, facts: dict[str, Any], why: str
) -> None:
    """A table without transactions keeps a part of what failed, and its GTID counts as executed."""
    content = replace(a_content("a:5", rows_on={"d": on}, **ROWS), **facts)
    case = a_case(BOTH, STUCK, content=content, is_chosen=False)
    refused = reason(resolve_or_start(case))
    assert refused.startswith(f"{gtids('a:5')} counts as executed on d")
    assert why in refused
    assert "--strategy A2=resolve_conflict, which starts the channel" in refused
    done = proposed(resolve_or_start(replace(case, is_chosen=True)))
    assert done.actions == (StartChannel("d", "from_c", by_choice=True),)
    assert why in done.warnings[0]
    assert done.warnings[0].endswith("What is missing stays missing")


@pytest.mark.parametrize("stop", [{"until": "SQL_AFTER_GTIDS"}, {"held_back_seconds": 60}])
def test_a_stop_that_an_operator_wanted_stays(stop: dict[str, Any]) -> None:
    servers = BOTH.replace(BOTH["d"].with_channel("from_c", **stop))
    case = a_case(servers, STUCK, content=a_content("a:5", rows_on={"d": AFTER}, **ROWS))
    why = reason(resolve_or_start(replace(case, is_chosen=False)))
    assert "select --strategy A2=resolve_conflict" in why
    assert proposed(resolve_or_start(case)).actions


def test_a_former_history_is_not_continued() -> None:
    servers = BOTH.replace(BOTH["d"].with_channel("from_c", may_be_former=True))
    case = a_case(servers, STUCK, content=a_content("a:5", rows_on={"d": AFTER}, **ROWS))
    assert "may have reused their GTIDs" in reason(resolve_or_start(case))


def test_what_is_not_executed_is_resolved_as_before() -> None:
    """Also if an earlier step of the plan executes it: its rows were compared without that step."""
    stuck = server("d", "a:1-4", channel("b", name="from_b"), WAITING)
    content = a_content("a:5", rows_on={"d": RowsOn(RowState.AS_BEFORE)}, **ROWS)
    case = a_case(BOTH.replace(stuck), STUCK, content=content)
    assert proposed(resolve_or_start(case)).actions[-1] == StartChannel(
        "d", "from_c", retried=gtids("a:5"), by_choice=True
    )
    later = replace(case, model=BOTH)
    assert not later.is_executed_since
    unread = replace(case, content=nothing_read(gtids("a:5"), "purged"))
    assert "could not be read: purged" in reason(resolve_or_start(unread))
    assert not replace(case, content=None).is_executed_since
    assert not replace(case, model=BOTH, finding=replace(STUCK, code="H1")).is_executed_since


@pytest.mark.parametrize("planner", [inject_empty, gtid_purged_append, reset_and_purge])
def test_an_executed_gtid_is_not_used_up_again(planner: Any) -> None:
    old = model(*(replace(each, version=OLD) for each in BOTH.servers.values()))
    servers = old if planner is reset_and_purge else BOTH
    case = a_case(servers, STUCK, content=a_content("a:5", rows_on={"d": AFTER}, **ROWS))
    why = reason(planner(case))
    assert "the applier continues after it when it is started" in why


def test_the_strategy_is_the_one_for_row_conflicts() -> None:
    assert PLANNERS["resolve_conflict"] is resolve_or_start
