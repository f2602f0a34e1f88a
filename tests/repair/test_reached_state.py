"""After a step: what differs from its simulation, and what is only on its way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.applying.reached_state import ReachedState, reached
from repair.scripts.steps import ExpectedChannel, ExpectedState
from tests.snapshots import A, B, C, a_channel, a_server, an_unread
from topology.readings.snapshot import ChannelSnapshot, ThreadState

NAMES = {A: "a", B: "b"}
ON = ExpectedChannel("", "a", auto_position=True, running=True)


def state(executed: str, purged: str = "", *channels: ExpectedChannel) -> ExpectedState:
    return ExpectedState("b", sets(executed), sets(purged), tuple(map(str, channels)), channels)


def sets(text: str) -> str:
    return text.replace("A:", f"{A}:").replace("B:", f"{B}:")


def after(
    expected: ExpectedState,
    executed: str,
    *channels: ChannelSnapshot,
    before: ExpectedState | None = None,
    **facts: Any,
) -> ReachedState:
    seen = a_server("b", B, GtidSet.parse(sets(executed)), channels=channels, **facts)
    return reached(before or replace(expected, gtid_purged=""), expected, seen, NAMES)


def test_a_server_may_have_more_than_the_simulation() -> None:
    found = after(state("A:1-5", "", ON), "A:1-9,B:1", a_channel("a", A))
    assert found == ReachedState("b", GtidSet(), ())


def test_what_is_missing_arrives_while_a_channel_runs() -> None:
    found = after(state("A:1-5", "", ON), "A:1-3", a_channel("a", A, delay_seconds=60))
    assert found == ReachedState("b", GtidSet.parse(sets("A:4-5")), (), 60)


def test_a_source_that_was_not_read_is_compared_by_the_scripts() -> None:
    """A dead source has no UUID in the plan; another server of the plan is another source."""
    dead = replace(ON, source="c")
    assert not after(state("A:1-5", "", dead), "A:1-5", a_channel("c", C)).differences
    [text] = after(state("A:1-5", "", dead), "A:1-5", a_channel("a", A)).differences
    assert "expected '' from c" in text
    [text] = after(state("A:1-5", "", ON), "A:1-5", a_channel("c", C)).differences
    assert "expected '' from a" in text


def test_what_is_missing_without_a_channel_is_a_difference() -> None:
    found = after(state("A:1-5"), "A:1-3")
    assert not found.arriving
    [text] = found.differences
    assert text.startswith(f"gtid_executed: {sets('A:4-5')} is missing; expected {sets('A:1-5')}")


def test_a_stopped_channel_delivers_nothing() -> None:
    stopped = a_channel(
        "a", A, applier=ThreadState.STOPPED, applier_errno=1062, applier_error="Dup"
    )
    found = after(state("A:1-5", "", ON), "A:1-3", stopped)
    channel, missing = found.differences
    assert channel == (
        "channel: expected '' from a, auto-position on, running, found '' from a, auto-position on,"
        " stopped; error 1062: Dup"
    )
    assert "is missing" in missing


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"auto_position": False}, "found '' from a, auto-position off, running"),
        ({"receiver": ThreadState.STOPPED}, "auto-position on, stopped"),
        ({"until": "SQL_BEFORE_GTIDS"}, "auto-position on, stopped"),
        ({"source_uuid": C}, "found '' from a.example:3306"),
        ({"receiver": ThreadState.CONNECTING}, ""),
        ({"source_uuid": None}, ""),  # it has not connected since it was changed
    ],
)
def test_each_property_of_a_channel_counts(changes: dict[str, Any], words: str) -> None:
    found = after(state("A:1", "", ON), "A:1", replace(a_channel("a", A), **changes))
    assert len(found.differences) == (1 if words else 0)
    assert all(words in each for each in found.differences)


def test_a_channel_that_runs_and_should_not_is_a_difference() -> None:
    off = replace(ON, running=False)
    [text] = after(state("A:1", "", off), "A:1", a_channel("a", A)).differences
    assert "expected '' from a, auto-position on, stopped, found '' from a" in text


def test_a_channel_that_was_removed_or_added_is_a_difference() -> None:
    [removed] = after(state("A:1", "", ON), "A:1").differences
    assert removed == "channel: expected '' from a, auto-position on, running, found none"
    more = a_channel("c", C)
    [added] = after(
        state("A:1", "", ON), "A:1", a_channel("a", A), replace(more, name="x")
    ).differences
    assert added == "channel 'x' from c.example:3306 was added: the plan does not know it"


def test_what_a_step_adds_to_gtid_purged_must_be_there() -> None:
    expected, before = state("A:1-5", "A:1-5"), state("A:1-3", "A:1-3")
    purged = GtidSet.parse(sets("A:4-9"))
    found = after(expected, "A:1-9", before=before, gtid_purged=purged)
    assert found.differences == ()
    [text] = after(expected, "A:1-9", before=before).differences
    assert text.startswith(f"gtid_purged: expected to contain {sets('A:4-5')}, found ")


def test_a_server_that_could_not_be_read_is_a_difference() -> None:
    expected = state("A:1")
    found = reached(expected, expected, an_unread("b"), NAMES)
    assert found.differences[0].startswith("it could not be read: ")
