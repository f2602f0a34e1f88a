"""What a source must still have in its logs before a channel is stopped to go on elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair import plan_repair
from repair.model.actions import AutoPositionOn, MovePast, StartChannel, simulate
from repair.model.invariants import no_last_copy_is_deleted
from repair.model.replication_model import Model, ModelChannel
from repair.scripts.other_servers import checks_before
from repair.scripts.procedure import Setting
from repair.scripts.purged_since import still_sends
from tests.repair.build import channel, evidence_of, gtids, model, server, snapshot_of
from tests.repair.test_channel_strategies import event
from topology.audit_cluster import audit_cluster

ON = AutoPositionOn("b", "", filled=GtidSet())


def servers(below: ModelChannel, *, executed: str = "a:1-3:7-9") -> Model:
    return model(server("a", "a:1-9"), server("b", executed, below))


def setting_of(before: Model, action: Any) -> Setting:
    seen = snapshot_of(before).last_read
    after = simulate(before, action)
    return Setting(before["b"], before=before, after=after, seen=seen)


def asked(before: Model, action: Any = ON) -> str | None:
    guard = still_sends(action, setting_of(before, action))
    return None if guard is None else guard.condition


def none_purged(wanted: str) -> str:
    text = f"'{gtids(wanted)}'"
    return f"GTID_SUBTRACT({text}, @@GLOBAL.gtid_purged) = GTID_SUBTRACT({text}, '')"


def subset(known: str) -> str:
    return f"GTID_SUBSET(@@GLOBAL.gtid_purged, '{gtids(known)}')"


def test_what_a_running_channel_has_passed_must_still_be_there() -> None:
    runs = channel("a", auto=False, bypassed="a:4-6")
    assert asked(servers(runs)) == subset("a:1-3:7-9")
    assert asked(servers(channel("a", auto=False), executed="a:1-9")) == subset("a:1-9")


@pytest.mark.parametrize("runs", [True, False])
def test_of_a_channel_nothing_unknown_may_be_purged(runs: bool) -> None:
    held = channel("a", auto=False, runs=runs)
    assert asked(servers(held, executed="a:1-3")) == subset("a:1-3")
    # The relay log is deleted: what is in it does not count.
    held = replace(held, retrieved=gtids("a:4-6"))
    assert asked(servers(held, executed="a:1-3")) == subset("a:1-3")


def test_what_is_due_may_wait_in_the_relay_log_for_longer_than_the_plan() -> None:
    """A delay, a lock, a long backlog: the model has it executed, the server need not have."""
    before = servers(channel("a", auto=False), executed="a:1-9")
    before = before.replace(replace(before["b"], due=gtids("a:7-9")))
    assert asked(before) == subset("a:1-6")
    assert not list(no_last_copy_is_deleted(before, before, ON))
    purged = before.replace(replace(before["a"], purged=gtids("a:1-8")))
    [text] = no_last_copy_is_deleted(purged, purged, ON)
    assert f"b has not applied {gtids('a:7-8').shortened()} yet, and a has purged it" in text
    assert not list(no_last_copy_is_deleted(purged, purged, StartChannel("b", "")))
    unread = model(purged["b"])
    assert not list(no_last_copy_is_deleted(unread, unread, ON)), "what it purged is not known"


def test_a_plan_deletes_no_relay_log_that_holds_the_last_copy() -> None:
    """By file position, behind a delay; what was received is purged on the source meanwhile."""
    server_b = server("b", "a:1-3", replace(channel("a", auto=False), retrieved=gtids("a:4-6")))
    for purged, is_planned in (("a:1-3", True), ("a:1-4", False)):
        read = snapshot_of(model(server("a", "a:1-6", purged=purged), server_b))
        audit = audit_cluster(read)
        plan = plan_repair(
            read, audit, choices={"C3": "auto_position_on"}, evidence=evidence_of(audit)
        )
        assert [step.effect for step in plan.steps] == ([ON] if is_planned else [])
        reasons = [each.why for each in plan.not_planned if each.code == "C3"]
        assert is_planned or "its only copy" in reasons[0]


def test_the_event_to_pass_must_still_be_in_the_log() -> None:
    stuck = servers(channel("a", stuck=True), executed="a:1")
    assert asked(stuck, MovePast("b", "", event())) == none_purged("a:2")


@pytest.mark.parametrize("action", [ON, MovePast("b", "", event())])
def test_a_source_that_was_not_read_is_not_asked(action: Any) -> None:
    outside = replace(channel("a", auto=False), source=None)
    before = model(server("b", "a:1-3", outside))
    assert asked(before, action) is None
    assert checks_before(action, setting_of(before, action)) == ()
