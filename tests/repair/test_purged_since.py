"""What a source must still have in its logs before a channel is stopped to go on elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.actions import AutoPositionOn, MovePast
from repair.model import Model, ModelChannel, simulate
from repair.other_servers import checks_before
from repair.procedure import Setting
from repair.purged_since import still_sends
from tests.repair.build import channel, gtids, model, server, snapshot_of
from tests.repair.test_channel_strategies import event

ON = AutoPositionOn("b", "", filled=GtidSet())


def servers(below: ModelChannel, *, executed: str = "a:1-3:7-9") -> Model:
    return model(server("a", "a:1-9"), server("b", executed, below))


def setting_of(before: Model, action: Any) -> Setting:
    seen = {each.name: each for each in snapshot_of(before).last}
    after = simulate(before, action)
    return Setting(before["b"], before=before, after=after, seen=seen)


def asked(before: Model, action: Any = ON) -> str | None:
    guard = still_sends(action, setting_of(before, action))
    return None if guard is None else guard.condition


def none_purged(wanted: str) -> str:
    text = f"'{gtids(wanted)}'"
    return f"GTID_SUBTRACT({text}, @@GLOBAL.gtid_purged) = GTID_SUBTRACT({text}, '')"


def test_what_a_running_channel_has_passed_must_still_be_there() -> None:
    runs = channel("a", auto=False, bypassed="a:4-6")
    assert asked(servers(runs)) == none_purged("a:4-6")
    assert asked(servers(channel("a", auto=False), executed="a:1-9")) is None


def test_of_a_channel_that_stands_nothing_unknown_may_be_purged() -> None:
    stands = channel("a", auto=False, runs=False)
    expected = f"GTID_SUBSET(@@GLOBAL.gtid_purged, '{gtids('a:1-3')}')"
    assert asked(servers(stands, executed="a:1-3")) == expected
    # The relay log is deleted: what is in it does not count.
    held = replace(stands, retrieved=gtids("a:4-6"))
    assert asked(servers(held, executed="a:1-3")) == expected


def test_the_event_to_pass_must_still_be_in_the_log() -> None:
    stuck = servers(channel("a", stuck=True), executed="a:1")
    assert asked(stuck, MovePast("b", "", event())) == none_purged("a:2")


@pytest.mark.parametrize("action", [ON, MovePast("b", "", event())])
def test_a_source_that_was_not_read_is_not_asked(action: Any) -> None:
    outside = replace(channel("a", auto=False), source=None)
    before = model(server("b", "a:1-3", outside))
    assert asked(before, action) is None
    assert checks_before(action, setting_of(before, action)) == ()
