"""When each invariant complains, and when it does not: one fact a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.row_versions import RowVersions
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    StopChannel,
    UndoRows,
    simulate,
)
from repair.model.invariants import INVARIANTS, Invariant, broken_invariants
from repair.model.invariants import groups_are_left_alone as group
from repair.model.invariants import no_channel_gets_stuck as stuck
from repair.model.invariants import no_channel_is_refused as refusal
from repair.model.invariants import no_failing_receiver_is_started as failing
from repair.model.invariants import no_future_numbers as future
from repair.model.invariants import nothing_former_is_applied as former
from repair.model.invariants import nothing_is_dropped as dropped
from repair.model.invariants import nothing_is_skipped as skipped
from repair.model.invariants import nothing_without_gtid_is_left_out as unnumbered
from repair.model.invariants import only_missing_is_added as present
from repair.model.invariants import reset_restores_exactly as restored
from repair.model.invariants import what_is_started_connects as connects
from repair.model.passed_elsewhere import nothing_passed_arrives_elsewhere as passed_below
from repair.model.replication_model import Model, ModelChannel
from tests.repair.build import UUIDS, channel, gtids, model, server
from tests.repair.cases import a_table, redone
from tests.repair.test_channel_strategies import event

NOTHING = gtids("")


def pair(*, source: dict[str, Any] | None = None, replica: dict[str, Any] | None = None) -> Model:
    """Return a -> b -> c: the channel of b is stopped, and a:4-5 is missing on it."""
    a = replace(server("a", "a:1-5"), **{"server_id": 1, **(source or {})})
    b = replace(
        server("b", "a:1-3 b:1", channel("a", runs=False)), **{"server_id": 2, **(replica or {})}
    )
    return model(a, b, replace(server("c", "a:1-3 b:1", channel("b")), server_id=3))


START = StartChannel("b", "")
BY_POSITION = {"channels": (channel("a", runs=False, auto=False),)}
FAILING = {"channels": (replace(channel("a", runs=False), fails="its account is refused"),)}
ONE_ROW = (RowVersions(a_table(), "`id` = 1", (1, 1), None, ()),)
LOST = {"executed": gtids("a:1-6")}
SENT = replace(channel("a", runs=False), retrieved=gtids("a:4-5"), may_be_former=True)
RECEIVED: dict[str, Any] = {"channels": (SENT,)}
GROUP = {"group_name": UUIDS["f"]}


@pytest.mark.parametrize(
    ("check", "servers", "action", "complains"),
    [
        # -- a receiver's error
        (failing, pair(), START, False),
        (failing, pair(replica=FAILING), START, True),
        (failing, pair(replica=FAILING), AutoPositionOn("b", "", filled=NOTHING), True),
        (failing, pair(replica=FAILING), StopChannel("b", ""), False),
        (failing, pair(replica=FAILING), InjectEmpty("b", gtids("a:4")), False),
        # -- what a server below drops
        (dropped, pair(), InjectEmpty("a", gtids("f:1")), False),
        (dropped, pair(source={"server_id": 3}), InjectEmpty("a", gtids("f:1")), True),
        (dropped, pair(source={"server_id": 3}), RedoTransactions("a", redone("f:1")), True),
        (dropped, pair(source={"server_id": 3}), InjectEmpty("a", gtids("b:1")), False),
        (dropped, pair(source={"server_id": 3}), AppendPurged("a", gtids("f:1")), False),
        (dropped, pair(source={"server_id": 3}), InjectEmpty("b", gtids("f:1")), False),
        (dropped, pair(source={"server_id": None}), InjectEmpty("a", gtids("f:1")), False),
        # -- what is started connects
        (connects, pair(), START, False),
        (connects, pair(), AutoPositionOn("b", "", filled=NOTHING), False),
        (connects, pair(source={"server_id": 2}), START, True),
        (connects, pair(source={"server_id": 2}), StopChannel("b", ""), False),
        (connects, pair(source={"server_uuid": UUIDS["b"]}), START, True),
        (connects, pair(source={"sends_by_sets": False}), START, True),
        (connects, pair(source={"sends_by_sets": False}, replica=BY_POSITION), START, False),
        (
            connects,
            pair(source={"sends_by_sets": False}, replica=BY_POSITION),
            AutoPositionOn("b", "", filled=NOTHING),
            True,
        ),
        (connects, pair(source={"purged": gtids("a:1-4")}), START, True),
        (connects, pair(source={"purged": gtids("a:1-3")}), START, False),
        (connects, pair(replica={"channels": (channel("z", runs=False),)}), START, False),
        # What a reset stops and starts again must be accepted again: a has lost a:5, b has it.
        (connects, pair(), ResetAndPurge("b", NOTHING, NOTHING, restart=("",)), False),
        (connects, pair(replica=LOST), ResetAndPurge("b", NOTHING, NOTHING, restart=()), False),
        (connects, pair(replica=LOST), ResetAndPurge("b", NOTHING, gtids("a:6"), restart=("",)), True),
        # -- nothing is applied that the source has lost
        (former, pair(replica=RECEIVED), START, True),
        (former, pair(replica=RECEIVED), AutoPositionOn("b", "", filled=NOTHING), False),
        (former, pair(replica={**RECEIVED, "executed": gtids("a:1-5")}), START, False),
        (former, pair(replica=RECEIVED, source={"server_uuid": UUIDS["e"]}), START, False),
        (former, pair(replica={"channels": (replace(SENT, may_be_former=False),)}), START, False),
        # -- nothing is skipped: neither where a channel starts, nor below it
        (skipped, pair(), START, False),
        (skipped, pair(replica={"skips_next": True}), START, True),
        (skipped, pair(replica={"skips_next": True}), AutoPositionOn("b", "", filled=NOTHING), True),
        (skipped, pair(replica={"skips_next": True}), StopChannel("b", ""), False),
        (skipped, pair(replica={"skips_next": True}), InjectEmpty("b", gtids("e:1")), False),
        (skipped, pair(source={"skips_next": True}), START, False),
        # -- a group
        (group, pair(source=GROUP), InjectEmpty("a", gtids("e:1")), True),
        (group, pair(source=GROUP), AppendPurged("a", gtids("e:1")), True),
        (group, pair(source=GROUP), RedoTransactions("a", redone("e:1")), True),
        (group, pair(source=GROUP), UndoRows("a", gtids("a:5"), ONE_ROW), True),
        (group, pair(source=GROUP), UndoRows("b", gtids("a:5"), ONE_ROW), False),
        (group, pair(source=GROUP), MakeRowsAlike("a", "b", ONE_ROW), True),
        (group, pair(source=GROUP), MakeRowsAlike("b", "a", ONE_ROW), False),
        (group, pair(source=GROUP), ResetAndPurge("a", NOTHING, gtids("a:1-5"), restart=()), True),
        (group, pair(source=GROUP), ResetAndPurge("b", gtids("e:1"), NOTHING, restart=()), False),
        (group, pair(source=GROUP), ResetAndPurge("b", gtids("f:1"), NOTHING, restart=()), True),
        (group, pair(source=GROUP), AppendPurged("b", gtids("f:1")), True),
        (group, pair(source=GROUP), RedoTransactions("b", redone("f:1")), True),
        (group, pair(source=GROUP), StopChannel("b", ""), False),
        (group, pair(source=GROUP), InjectEmpty("b", gtids("e:1")), False),
        (group, pair(source=GROUP), InjectEmpty("b", gtids("f:1")), True),
        (group, pair(), InjectEmpty("b", gtids("f:1")), False),
        # -- GTIDs that their owner will use
        (future, pair(), InjectEmpty("b", gtids("a:5")), False),
        (future, pair(), InjectEmpty("b", gtids("a:6")), True),
        (future, pair(), InjectEmpty("a", gtids("a:6")), False),
        (future, pair(), InjectEmpty("a", gtids("a:7")), False),
        (future, pair(replica={"executed": gtids("a:1-3:6 b:1")}), InjectEmpty("a", gtids("a:7")), True),
        (future, pair(replica={"executed": gtids("a:1-3:7 b:1")}), InjectEmpty("a", gtids("a:7")), False),
        (future, pair(), InjectEmpty("a", gtids("e:7")), False),
        # The hole a:4 was there before.
        (
            future,
            pair(source={"executed": gtids("a:1-2:5")}, replica={"executed": gtids("a:1-4 b:1")}),
            InjectEmpty("a", gtids("a:3")),
            False,
        ),
        (future, pair(source={"executed": gtids("a:1-2:5")}), InjectEmpty("a", gtids("a:3")), False),
        (future, pair(), AppendPurged("b", gtids("a:6")), True),
        (future, pair(), RedoTransactions("b", redone("a:6")), True),
        # -- what is there already
        (present, pair(), InjectEmpty("b", gtids("a:3-4")), True),
        (present, pair(), InjectEmpty("b", gtids("a:4")), False),
        (present, pair(), InjectEmpty("b", gtids("a:3-4"), may_be_executed=True), False),
        (present, pair(), AppendPurged("b", gtids("a:3")), True),
        (present, pair(), RedoTransactions("b", redone("a:3")), True),
        (present, pair(), START, False),
        # -- a reset puts back what was there
        (restored, pair(), ResetAndPurge("b", NOTHING, gtids("a:1-3 b:1"), restart=()), False),
        (restored, pair(), ResetAndPurge("b", NOTHING, gtids("a:1-3"), restart=()), True),
        (restored, pair(), START, False),
        # -- channels that could connect and could not any more
        (refusal, pair(), AppendPurged("b", gtids("e:1")), True),  # c gets it from no log
        (refusal, pair(), InjectEmpty("b", gtids("e:1")), False),
        (refusal, pair(), StopChannel("b", ""), False),
    ],
)  # fmt: skip
def test_an_invariant_complains_where_it_must(
    check: Invariant, servers: Model, action: Action, *, complains: bool
) -> None:
    after = simulate(servers, action)
    assert bool(list(check(servers, after, action))) is complains
    if complains:
        assert broken_invariants(servers, after, action)


def test_a_gtid_that_is_being_committed_is_no_hole() -> None:
    servers = pair(replica={"executed": gtids("a:1-3:6 b:1")})
    servers = servers.replace(replace(servers["a"], committing=gtids("a:6")))
    action = InjectEmpty("a", gtids("a:7"))
    [why] = future(servers, simulate(servers, action), action)
    assert "is committing" in why
    assert "rpl_semi_sync_source_enabled = OFF" in why
    assert "a hole" not in why


def test_a_server_that_skips_gets_nothing_from_above() -> None:
    servers = pair()
    skipping = servers.replace(replace(servers["c"], skips_next=True))
    assert list(skipped(skipping, simulate(skipping, START), START))
    stop = StopChannel("b", "")
    assert not list(skipped(skipping, simulate(skipping, stop), stop))


def test_a_channel_that_was_stuck_before_is_no_complaint() -> None:
    servers = pair()
    doomed = servers.replace(servers["b"].with_channel("", doomed=gtids("a:4")))
    after = simulate(doomed, START)
    assert list(stuck(doomed, after, START))
    assert not list(stuck(after, after, START))


def test_every_invariant_is_asked() -> None:
    assert {connects, skipped, group, future, present, restored, refusal, stuck} <= {*INVARIANTS}


def test_a_file_position_that_is_lost_stops_no_channel_that_uses_sets() -> None:
    lost = replace(channel("a", auto=False, runs=False), lost_place="its place is gone")
    servers = pair(replica={"channels": (lost,)})
    by_sets = AutoPositionOn("b", "", filled=NOTHING)
    for action, why in ((START, ["its place is gone"]), (by_sets, [])):
        assert list(connects(servers, simulate(servers, action), action)) == why


@pytest.mark.parametrize(
    ("auto", "source", "replica", "action", "words"),
    [
        # By file position: each end at which gtid_mode is ON stops the channel there.
        (False, True, False, START, "the channel would stop there, because gtid_mode is ON"),
        (False, False, True, START, "the channel would stop there, because gtid_mode is ON"),
        (False, False, False, START, ""),
        # By sets it is left out, whatever gtid_mode is.
        (True, False, False, START, "with auto-position it is never sent"),
        (False, False, False, AutoPositionOn("b", "", filled=NOTHING), "it is never sent"),
        (True, True, True, StopChannel("b", ""), ""),
        (True, True, True, InjectEmpty("b", gtids("a:4")), ""),
    ],
)
def test_a_transaction_without_a_gtid_is_neither_left_out_nor_met_in_a_mode_that_refuses_it(
    action: Action, words: str, *, auto: bool, source: bool, replica: bool
) -> None:
    ahead = replace(channel("a", runs=False, auto=auto), without_gtid_at="binlog.000002:198")
    servers = pair(
        source={"sends_by_sets": source}, replica={"sends_by_sets": replica, "channels": (ahead,)}
    )
    found = [*unnumbered(servers, servers, action)]
    assert bool(found) is bool(words)
    assert all(words in each and "without a GTID at binlog.000002:198" in each for each in found)
    applied = pair(
        source={"sends_by_sets": source},
        replica={"sends_by_sets": replica, "channels": (replace(ahead, without_gtid_at=""),)},
    )
    assert not [*unnumbered(applied, applied, action)], "none is ahead of the channel"


def test_of_a_source_that_was_not_read_only_the_mode_of_the_replica_counts() -> None:
    ahead = replace(
        channel("a", runs=False, auto=False), source=None, without_gtid_at="binlog.000002:198"
    )
    for by_sets in (True, False):
        servers = pair(replica={"sends_by_sets": by_sets, "channels": (ahead,)})
        assert bool([*unnumbered(servers, servers, START)]) is by_sets


def test_a_failing_receiver_is_not_moved_past_an_event_either() -> None:
    past = MovePast("b", "", event("a:1-3"))
    for failing_too, expected in ((True, ["b: its account is refused"]), (False, [])):
        servers = pair(replica=FAILING if failing_too else {})
        assert [*failing(servers, servers, past)] == expected


RESET = replace(channel("z"), source=None, retrieved=gtids("a:1-4"), passed=gtids("a:1-4"))


@pytest.mark.parametrize(
    ("received", "action", "complains"),
    [
        (RESET, START, True),
        (replace(RESET, passed=gtids("")), START, False),
        (replace(RESET, passed=gtids("a:1-3")), START, False),  # c has these
        (RESET, StopChannel("b", ""), False),
        # What the step itself commits without content changes no row there.
        (RESET, InjectEmpty("b", gtids("a:4")), False),
        (RESET, InjectEmpty("b", gtids("a:5")), False),
        (RESET, RedoTransactions("b", redone("a:4")), True),
    ],
)
def test_what_an_applier_below_has_passed_does_not_arrive_on_another_way(
    received: ModelChannel, action: Action, *, complains: bool
) -> None:
    """c received a:4 over a second channel and was reset, or skipped it: nothing shows which."""
    servers = pair()
    servers = servers.replace(
        replace(servers["c"], channels=(*servers["c"].channels, replace(received, name="two")))
    )
    found = [*passed_below(servers, simulate(servers, action), action)]
    assert bool(found) is complains
    met = f"c would get {UUIDS['a']}:4, which its applier has passed"
    assert all(each.startswith(met) for each in found)


def test_a_server_fetches_what_its_own_applier_has_passed() -> None:
    """The answer to its H8: its rows were compared for that."""
    servers = pair()
    away = replace(channel("a", runs=False), retrieved=gtids("a:4-5"), passed=gtids("a:4-5"))
    servers = servers.replace(replace(servers["b"], channels=(away,)))
    action = AutoPositionOn("b", "", filled=gtids("a:4-5"))
    assert not [*passed_below(servers, simulate(servers, action), action)]
