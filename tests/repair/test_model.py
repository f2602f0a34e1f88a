"""The model: what replication delivers by itself, what a source refuses, what no step may do."""

from dataclasses import replace

import pytest

from gtid import GtidSet
from repair.doubts.undecided import with_all_channels_repaired
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MovePast,
    ResetAndPurge,
    StartChannel,
    StopChannel,
    simulate,
)
from repair.model.invariants import INVARIANTS, broken_invariants
from repair.model.replication_model import Model, ModelServer, refused
from repair.model.settled_model import settle
from repair.strategies.strategy_registry import REPAIRS
from tests.repair.build import UUIDS, channel, gtids, model, server
from tests.repair.test_channel_strategies import event
from topology.catalogue.catalogue_rows import ROWS
from topology.catalogue.strategy_table import STRATEGIES, unknown_codes


def test_a_running_channel_delivers_what_is_available_all_the_way_down() -> None:
    servers = settle(
        model(
            server("a", "a:1-9", purged="a:1-5"),
            server("b", "a:1-5", channel("a")),
            server("c", "a:1-5", channel("b")),
        )
    )
    assert servers["c"].executed == gtids("a:1-9")


def test_what_the_source_purged_comes_from_the_relay_log() -> None:
    """Not of a history that the source no longer has, and not once the relay log is deleted."""
    held = replace(channel("a", runs=False), retrieved=gtids("a:4-5 c:1"))
    servers = model(server("a", "a:1-5", purged="a:1-5"), server("b", "a:1-3", held))
    assert simulate(servers, StartChannel("b", ""))["b"].executed == gtids("a:1-5")
    purged = replace(servers["a"], executed=gtids("a:1-6"), purged=gtids("a:1-6"))
    deleted = simulate(servers.replace(purged), AutoPositionOn("b", "", gtids("")))
    assert deleted["b"].executed == gtids("a:1-3")


def test_only_who_connects_is_refused() -> None:
    """b was read after a and has more of a than that; its receiver is connected and goes on."""
    connected = replace(channel("a"), is_connected=True)
    servers = model(server("a", "a:1-3 b:7"), server("b", "a:1-4", connected))
    assert settle(servers)["b"].executed == gtids("a:1-4")  # its own do not come back
    servers = model(server("a", "a:1-3 c:1"), server("b", "a:1-4", connected))
    assert settle(servers)["b"].executed == gtids("a:1-4 c:1")
    again = simulate(servers, StartChannel("b", ""))
    assert again["b"].executed == gtids("a:1-4")
    assert again["b"].channels[0].is_connected is False
    for receiver, brought in ((connected, "a:1-3"), (channel("a"), "")):  # ON_PERMISSIVE since
        permissive = replace(server("a", "a:1-3"), sends_by_sets=False)
        servers = settle(model(permissive, server("b", "", receiver)))
        assert servers["b"].executed == gtids(brought)


def test_a_receiver_that_was_stopped_connects_anew_and_may_be_refused() -> None:
    """While it is connected, its source sends on, whatever it would refuse now."""
    connected = replace(channel("a"), is_connected=True)
    servers = model(server("a", "a:1-5", purged="a:1-2"), server("b", "a:1", connected))
    assert settle(servers)["b"].executed == gtids("a:1 a:3-5")
    stopped = simulate(servers, StopChannel("b", ""))
    again = model(servers["a"], replace(server("b", "a:1"), channels=stopped["b"].channels))
    assert not again["b"].channels[0].running
    assert with_all_channels_repaired(again)["b"].executed == gtids("a:1")


def test_past_an_event_a_channel_goes_on_behind_all_that_it_bypassed() -> None:
    """CHANGE REPLICATION SOURCE deletes its relay log, and a file position asks for nothing else."""
    held = replace(
        channel("a", bypassed="a:1", stuck=True),
        retrieved=gtids("a:2-4"),
        lost_place="its place is gone",
        is_connected=True,
    )
    servers = model(server("a", "a:1-6"), server("b", "", held))
    after = simulate(servers, MovePast("b", "", event("a:3")))["b"]
    [moved] = after.channels
    assert moved.bypassed == gtids("a:1-3")
    assert (moved.auto_position, moved.running, moved.is_stuck) == (False, True, False)
    assert (moved.is_connected, moved.lost_place, moved.retrieved) == (False, "", gtids(""))
    assert after.executed == gtids("a:4-6")


def test_a_server_never_gets_its_own_back() -> None:
    servers = settle(model(server("a", "a:1", channel("b")), server("b", "a:1-3 b:1")))
    assert servers["a"].executed == gtids("a:1 b:1")


def test_a_file_position_passes_by_what_lies_before_it() -> None:
    servers = settle(
        model(server("a", "a:1-9"), server("b", "a:1", channel("a", auto=False, bypassed="a:2-4")))
    )
    assert servers["b"].executed == gtids("a:1 a:5-9")


def test_auto_position_brings_what_a_file_position_passed_by() -> None:
    servers = model(
        server("a", "a:1-9"), server("b", "a:1", channel("a", auto=False, bypassed="a:2-4"))
    )
    after = simulate(settle(servers), AutoPositionOn("b", "", filled=GtidSet()))
    assert after["b"].executed == gtids("a:1-9")


def test_a_stuck_applier_is_not_helped_by_a_start() -> None:
    servers = model(server("a", "a:1-9"), server("b", "a:1", channel("a", stuck=True)))
    assert simulate(servers, StartChannel("b", ""))["b"].executed == gtids("a:1")


def test_a_doomed_transaction_stops_the_channel_that_brings_it() -> None:
    servers = model(server("a", "a:1-9"), server("b", "a:1", channel("a", runs=False)))
    servers = servers.replace(servers["b"].with_channel("", doomed=gtids("a:4")))
    after = simulate(servers, StartChannel("b", ""))
    stuck = after["b"].channel("")
    assert stuck is not None
    assert stuck.is_stuck
    assert "b would stop again" in " ".join(
        broken_invariants(servers, after, StartChannel("b", ""))
    )


@pytest.mark.parametrize(
    ("source", "replica", "why"),
    [
        (server("a", "a:1-9", purged="a:1-5"), server("b", "a:1-3", channel("a")), "a:4-5"),
        (server("a", "a:1-3"), server("b", "a:1-5", channel("a")), "a:4-5"),
        (server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")), ""),
        (server("a", "a:1-9", purged="a:1-5"), server("b", "a:1-3", channel("a", auto=False)), ""),
    ],
    ids=["purged (1789)", "more of its own (1885)", "others' are no matter", "by file position"],
)
def test_a_source_refuses_as_its_handshake_does(
    source: ModelServer, replica: ModelServer, why: str
) -> None:
    assert refused(source, replica, replica.channels[0]) == gtids(why)


def test_what_is_retrieved_counts_in_the_handshake() -> None:
    source = server("a", "a:1-9", purged="a:1-5")
    one = replace(channel("a"), retrieved=gtids("a:4-9"))
    assert not refused(source, server("b", "a:1-3", one), one)


def _broken(servers: Model, action: Action) -> str:
    return "; ".join(broken_invariants(servers, simulate(servers, action), action))


_PAIR = model(
    server("a", "a:1-5", channel("b", runs=False)),
    server("b", "a:1-5 b:1-3", channel("a")),
    server("c", "a:1-5", channel("a", runs=False)),
    server("d", "a:1-5:8"),
)

# One line for each invariant that an action can break by itself: the action and the complaint.
BREAKING = [
    (InjectEmpty("a", gtids("a:3")), "a already has"),
    (InjectEmpty("a", gtids("a:9")), "a gap in its own GTIDs"),  # d has one of the hole
    (InjectEmpty("a", gtids("b:9")), "b has not used"),
    (AppendPurged("a", gtids("c:1-2")), "c has not used"),
    (AppendPurged("a", gtids("b:1-2")), "c would get error 1236 from a"),
    (ResetAndPurge("a", gtids("b:1"), gtids("a:1-4"), restart=()), "another history than it has"),
    (ResetAndPurge("a", gtids("b:1"), gtids("a:1-4"), restart=()), "would lose"),
]


@pytest.mark.parametrize(("action", "complaint"), BREAKING)
def test_an_invariant_complains(action: Action, complaint: str) -> None:
    assert complaint in _broken(_PAIR, action)


@pytest.mark.parametrize(
    "action",
    [
        InjectEmpty("a", gtids("b:1-3")),
        InjectEmpty("a", gtids("e:7")),
        InjectEmpty("a", gtids("a:6")),
        InjectEmpty("a", gtids("a:8")),  # no server has a GTID of the hole
        InjectEmpty("a", gtids("a:5"), may_be_executed=True),
        StartChannel("a", ""),
        StopChannel("b", ""),
    ],
)
def test_a_harmless_action_breaks_none(action: Action) -> None:
    assert not _broken(_PAIR, action)


def test_purged_beyond_executed_is_seen() -> None:
    torn = _PAIR.replace(replace(_PAIR["a"], purged=gtids("a:1-9")))
    assert "purged what it has not executed" in "; ".join(
        broken_invariants(_PAIR, torn, StopChannel("b", ""))
    )


def test_a_channel_that_would_be_refused_is_not_started() -> None:
    servers = model(
        server("a", "a:1-9", purged="a:1-5"), server("b", "a:1", channel("a", runs=False))
    )
    assert "a would refuse b with error 1236" in _broken(servers, StartChannel("b", ""))


def test_every_strategy_is_planned_or_told_by_hand() -> None:
    assert REPAIRS.keys() == STRATEGIES.keys()
    assert not unknown_codes({row.code for row in ROWS})
    assert len(INVARIANTS) == len(set(INVARIANTS))


def test_what_a_group_committed_under_a_servers_uuid_reaches_it() -> None:
    """A group may have any UUID for its name: its members' transactions carry their server_ids."""
    for group, arrives in ((None, "b:1 a:1"), (UUIDS["b"], "b:1-3 a:1"), (UUIDS["c"], "b:1 a:1")):
        source = replace(server("a", "a:1 b:1-3"), group_name=group)
        settled = settle(model(source, server("b", "b:1", channel("a"))))
        assert settled["b"].executed == gtids(arrives), group
