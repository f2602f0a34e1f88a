"""Events of a server's scheduler beside the scripts of a plan that write its rows."""

from __future__ import annotations

import pytest

from repair.adapters.events_there import read_running_events
from repair.content.side_effects import ScheduledEvents
from repair.doubts.more_written import events_that_run
from repair.model.actions import Action, InjectEmpty, ResetAndPurge, StartChannel, UndoRows
from tests.repair.build import gtids, model, server, snapshot_of
from tests.repair.cases import rows_written_on
from topology.readings.target import ServerTarget

WRITES = rows_written_on("b")
UNDO = UndoRows("b", gtids("b:1"), WRITES[0].rows)
EMPTY = InjectEmpty("b", gtids("b:1"))
RESET = ResetAndPurge("b", gtids("b:1"), executed=gtids("a:1-9"), restart=())
EVENTS = {"b": ScheduledEvents(("d.purge", "d.roll", "d.sum", "d.tidy"))}
ROWS = "before or while the scripts run may change rows that the plan has compared. Run"
LOGS = "before or while the scripts run may commit what the reset then deletes from the binary logs"


@pytest.mark.parametrize("writing", [*WRITES, UNDO])
def test_what_writes_rows_beside_events_is_warned_of_once(writing: Action) -> None:
    [said] = events_that_run([EMPTY, writing, writing], EVENTS)
    assert said.startswith("event_scheduler is ON on b, and these events are enabled there: ")
    assert "d.purge, d.roll, d.sum and 1 more. One that writes" in said
    assert ROWS in said
    assert "`SET GLOBAL event_scheduler = OFF` on b first" in said


def test_what_a_reset_would_delete_is_warned_of() -> None:
    [said] = events_that_run([RESET], EVENTS)
    assert LOGS in said
    assert "compared" not in said
    [said] = events_that_run([RESET, UNDO], EVENTS)
    assert "may change rows that the plan has compared and may commit what the reset" in said


def test_nothing_is_said_where_no_rows_are_written_or_no_event_runs() -> None:
    assert list(events_that_run([EMPTY, StartChannel("b", "")], EVENTS)) == []
    assert list(events_that_run(WRITES, {"a": ScheduledEvents(("d.purge",))})) == []
    assert list(events_that_run(WRITES, {"b": ScheduledEvents()})) == []
    assert list(events_that_run(WRITES, {})) == []


def test_events_that_the_account_may_not_see_are_not_taken_for_none() -> None:
    [said] = events_that_run(WRITES, {"b": ScheduledEvents(may_hide_some=True)})
    assert said.startswith("event_scheduler is ON on b, and it is not known whether events are")
    assert "the account of the audit has no EVENT ON *.*. One that writes" in said
    [said] = events_that_run(WRITES, {"b": ScheduledEvents(("d.purge",), may_hide_some=True)})
    assert "d.purge. There may be more: the account of the audit has no EVENT ON *.*." in said


def test_a_server_that_was_not_asked_is_named_with_the_reason() -> None:
    [said] = events_that_run(WRITES, {"b": ScheduledEvents(unread="no answer")})
    assert said.startswith("it could not be read whether events run on b: no answer. One that")


def test_the_reason_is_that_of_the_connection() -> None:
    """No server listens at this address; the other server has no address, and is not asked."""
    snapshot = snapshot_of(model(server("a", "a:1-3"), server("b", "a:1-3")))
    nowhere = {"b": ServerTarget("b", "127.0.0.1", 1, "root")}
    found = read_running_events(snapshot, nowhere, seconds_max=2)
    assert found.keys() == {"b"}
    assert "refused" in found["b"].unread
