"""Events of a server's scheduler beside the scripts of a plan that write its rows."""

from __future__ import annotations

import pytest

from repair.doubts.more_written import events_that_run
from repair.model.actions import Action, InjectEmpty, StartChannel, UndoRows
from tests.repair.build import gtids
from tests.repair.cases import rows_written_on

WRITES = rows_written_on("b")
UNDO = UndoRows("b", gtids("b:1"), WRITES[0].rows)
EMPTY = InjectEmpty("b", gtids("b:1"))
EVENTS = {"b": ("d.purge", "d.roll", "d.sum", "d.tidy")}


@pytest.mark.parametrize("writing", [*WRITES, UNDO])
def test_what_writes_rows_beside_events_is_warned_of_once(writing: Action) -> None:
    [said] = events_that_run([EMPTY, writing, writing], EVENTS)
    assert said.startswith("event_scheduler is ON on b, and these events are enabled there: ")
    assert "d.purge, d.roll, d.sum and 1 more." in said
    assert "`SET GLOBAL event_scheduler = OFF` on b first" in said


def test_nothing_is_said_where_no_rows_are_written_or_no_event_runs() -> None:
    assert list(events_that_run([EMPTY, StartChannel("b", "")], EVENTS)) == []
    assert list(events_that_run(WRITES, {"a": ("d.purge",)})) == []
    assert list(events_that_run(WRITES, {})) == []
