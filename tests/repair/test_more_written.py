"""A plan writes no rows of a table whose triggers or foreign keys would write more."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.content.row_versions import RowVersions
from repair.content.side_effects import SideEffects
from repair.doubts.more_written import unless_more_is_written
from repair.model.actions import Action, MakeRowsAlike, RedoTransactions, StartChannel, UndoRows
from repair.model.strategy_case import Proposal, Refusal
from repair.sql.touched_tables import TouchedTable
from tests.repair.cases import a_table, reason, redone


def alike(source: Any, replica: Any) -> tuple[RowVersions, ...]:
    return (RowVersions(a_table(), "`id` = 1", source, replica, ()),)


def redo(*, deletes: bool = False, updates: bool = False) -> RedoTransactions:
    table = TouchedTable("d", "t", asks_for_delete_rules=deletes, asks_for_update_rules=updates)
    plain, other = redone("a:4-5")
    return RedoTransactions(
        "b",
        (
            replace(plain, tables=frozenset({table})),
            replace(other, tables=frozenset({TouchedTable("d", "t"), TouchedTable("d", "u")})),
        ),
    )


CHANGED, GONE, COME = alike((1, 2), (1, 3)), alike(None, (1, 3)), alike((1, 2), None)
EFFECTS = {
    "triggers": SideEffects("d", "t", has_triggers=True),
    "on delete": SideEffects("d", "t", delete_carries=True),
    "on update": SideEffects("d", "t", update_carries=True),
}


@pytest.mark.parametrize(
    ("action", "refused"),
    [
        (MakeRowsAlike("b", "a", CHANGED), {"triggers", "on update"}),
        (MakeRowsAlike("b", "a", GONE), {"triggers", "on delete"}),
        (MakeRowsAlike("b", "a", COME), {"triggers"}),
        (UndoRows("b", GtidSet(), GONE), {"triggers", "on delete"}),
        (redo(), {"triggers"}),
        (redo(deletes=True), {"triggers", "on delete"}),
        (redo(updates=True), {"triggers", "on update"}),
        (StartChannel("b", ""), set()),
    ],
)
def test_what_a_script_would_refuse_is_not_planned(action: Action, refused: set[str]) -> None:
    proposal = Proposal((StartChannel("b", ""), action))
    for name, effects in EFFECTS.items():
        outcome = unless_more_is_written(proposal, {"b": (effects,)}, {})
        assert isinstance(outcome, Refusal) is (name in refused), name
        for elsewhere in ({"a": (effects,)}, {"b": (replace(effects, table="other"),)}, {}):
            assert unless_more_is_written(proposal, elsewhere, {}) == proposal


def test_each_reason_is_given_once_with_its_table_and_server() -> None:
    both = SideEffects("d", "t", has_triggers=True, delete_carries=True)
    step = UndoRows("b", GtidSet(), GONE)
    why = reason(unless_more_is_written(Proposal((step, step)), {"b": (both,)}, {}))
    assert why.count("d.t on b has triggers") == 1
    assert why.count("foreign keys of d.t would change rows on b") == 1
    refused = Refusal("another reason")
    assert unless_more_is_written(refused, {"b": (both,)}, {}) is refused
