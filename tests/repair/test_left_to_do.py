"""What of an action is left to do, and what an action must not do: one fact at a time."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    RedoTransactions,
    StartChannel,
    simulate,
)
from repair.model.emptied_servers import is_emptied, nothing_on_an_emptied_server
from repair.model.invariants import broken_invariants
from repair.model.remaining_action import remaining_part
from repair.model.replication_model import Model
from repair.model.strategy_case import NOTHING_BESIDE
from repair.plan_parts import afterwards, not_planned
from tests.repair.build import OLD, UUIDS, channel, gtids, model, server
from tests.repair.cases import a_finding, redone
from tests.snapshots import NOON
from topology.catalogue.findings import ClusterAudit, Grade, Verdict
from topology.readings.version import ServerVersion

START = StartChannel("b", "")
FETCH = AutoPositionOn("b", "", filled=GtidSet())


def pair(executed: str = "a:1-3", **facts: Any) -> Model:
    return model(server("a", "a:1-3"), server("b", executed, replace(channel("a"), **facts)))


@pytest.mark.parametrize(
    ("action", "servers", "is_needed"),
    [
        (START, pair(), False),
        (START, pair(running=False), True),
        (START, pair(is_stuck=True), True),
        (FETCH, pair(), False),
        (FETCH, pair(auto_position=False), True),
        (FETCH, pair(running=False), True),
        (FETCH, pair(is_stuck=True), True),
        (FETCH, pair(passed=gtids("a:2")), True),
        (FETCH, pair("a:1"), True),  # something would still be delivered
        (InjectEmpty("b", gtids("a:2")), pair("a:1"), True),
        (InjectEmpty("b", gtids("a:2")), pair(), False),
        (InjectEmpty("b", gtids("a:2"), may_be_executed=True), pair(), True),
    ],
)
def test_an_action_is_done_once(action: Action, servers: Model, *, is_needed: bool) -> None:
    assert (remaining_part(servers, action) is not None) is is_needed


def test_of_several_transactions_those_that_are_missing_are_left() -> None:
    servers = pair("a:1 a:3")
    assert remaining_part(servers, InjectEmpty("b", gtids("a:1-3"))) == InjectEmpty(
        "b", gtids("a:2")
    )
    all_three = redone("a:1-3")
    left = remaining_part(servers, RedoTransactions("b", all_three))
    assert isinstance(left, RedoTransactions)
    assert left.transactions == all_three[1:2]
    assert remaining_part(servers, RedoTransactions("b", (all_three[0],))) is None


# -- invariants -----------------------------------------------------------------------------------


def broken(servers: Model, action: Action) -> str:
    return "; ".join(broken_invariants(servers, simulate(servers, action), action))


def grouped(name: str) -> Model:
    servers = pair("a:1")
    return servers.replace(replace(servers[name], group_name=UUIDS["d"]))


@pytest.mark.parametrize(
    ("servers", "action", "words"),
    [
        (pair("a:1"), InjectEmpty("b", gtids("a:2")), ""),
        (grouped("b"), InjectEmpty("b", gtids("a:2")), "b is a member of the group"),
        (grouped("a"), InjectEmpty("b", gtids("a:2")), ""),
        (grouped("a"), InjectEmpty("b", gtids("d:2")), "is the UUID of the group of a"),
        (grouped("b"), START, ""),
        # An own GTID beyond the run makes a hole; harmful where another server has one of the hole.
        (model(server("a", "a:1-3"), server("b", "a:5")), InjectEmpty("a", gtids("a:6")), "gap"),
        (model(server("a", "a:1-3"), server("b", "a:3")), InjectEmpty("a", gtids("a:6")), ""),
        (model(server("a", "a:1-3"), server("b", "a:5")), InjectEmpty("a", gtids("a:4")), ""),
        (pair("a:1"), InjectEmpty("b", gtids("a:4")), "a has not used"),
    ],
)
def test_what_must_not_be_injected(servers: Model, action: Action, words: str) -> None:
    found = broken(servers, action)
    assert words in found
    assert bool(found) is bool(words)


def skipping(name: str, **facts: Any) -> Model:
    servers = pair(**facts)
    return servers.replace(replace(servers[name], skips_next=True))


@pytest.mark.parametrize(
    ("servers", "action", "is_refused"),
    [
        (skipping("b", running=False), START, True),
        (skipping("b", executed="a:1", running=False), START, True),
        (skipping("a", running=False), START, False),
        (skipping("b"), InjectEmpty("b", gtids("c:1")), False),  # nothing is delivered
        (skipping("b"), InjectEmpty("a", gtids("c:1")), True),
        (pair(running=False), START, False),
    ],
)
def test_nothing_is_delivered_to_an_applier_that_skips_the_next(
    servers: Model, action: Action, *, is_refused: bool
) -> None:
    assert ("sql_replica_skip_counter" in broken(servers, action)) is is_refused


def connecting(source: dict[str, Any], *, auto: bool = True) -> Model:
    servers = pair("a:1", running=False, auto_position=auto)
    return servers.replace(replace(servers["a"], **source))


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (connecting({}), ""),
        (connecting({"server_uuid": UUIDS["b"]}), "the same server_id or server_uuid"),
        (connecting({"sends_by_sets": False}), "gtid_mode is not ON on a"),
        (connecting({"sends_by_sets": False}, auto=False), ""),
        (connecting({"purged": gtids("a:2")}), "a would refuse b with error 1236"),
        (pair("a:1", running=False, source="x"), ""),
        (pair("a:1", running=False, source=None), ""),
    ],
)
def test_a_channel_that_is_started_connects(servers: Model, words: str) -> None:
    found = broken(servers, START)
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("executed", "facts", "expected"),
    [
        ("", {"running": False}, True),
        ("a:1", {"running": False}, False),
        ("", {}, False),
        ("", {"running": False, "source": "x"}, False),
        ("", {"running": False, "source": None}, False),
    ],
)
def test_a_stopped_replica_without_gtids_is_emptied(
    executed: str, facts: dict[str, Any], *, expected: bool
) -> None:
    servers = pair(executed, **facts)
    assert is_emptied(servers["b"], servers) is expected
    assert ("gtid_executed of b is empty" in broken(servers, START)) is expected
    assert not is_emptied(servers["a"], servers)


@pytest.mark.parametrize(
    ("executed", "on_replica", "version", "is_refused"),
    [
        ("", "a:1-3 b:1", OLD, True),
        ("a:1-3", "a:1-3 b:1", OLD, False),
        ("", "b:1", OLD, False),  # it never gave a GTID: a new server
        ("", "a:1-3 b:1", None, False),  # gtid_purged grows there without a reset
    ],
)
def test_nothing_is_declared_on_a_source_in_the_middle_of_its_reset(
    executed: str, on_replica: str, version: ServerVersion | None, *, is_refused: bool
) -> None:
    here = server("a", executed)
    before = model(
        replace(here, version=version) if version is not None else here,
        server("b", on_replica, replace(channel("a"), running=False)),
    )
    action = InjectEmpty("a", gtids("b:1"))
    refused = list(nothing_on_an_emptied_server(before, simulate(before, action), action))
    assert bool(refused) is is_refused
    assert not refused or "b has transactions of it: if a reset_and_purge script" in refused[0]


@pytest.mark.parametrize(
    ("executed", "facts", "is_refused"),
    [
        ("", {}, True),  # its receiver is on, and has no connection
        ("", {"is_connected": True}, False),
        ("a:1", {}, False),
        ("", {"source": "x"}, False),
        ("", {"source": None}, False),
    ],
)
@pytest.mark.parametrize("declaring", [InjectEmpty, AppendPurged])
def test_nothing_is_declared_on_an_emptied_replica_before_it_is_connected(
    executed: str,
    facts: dict[str, Any],
    declaring: type[InjectEmpty | AppendPurged],
    *,
    is_refused: bool,
) -> None:
    """The script of a `reset_and_purge` that stopped there would refuse to run again."""
    before = pair(executed, **facts)
    action = declaring("b", gtids("a:2"))
    refused = list(nothing_on_an_emptied_server(before, simulate(before, action), action))
    assert bool(refused) is is_refused
    assert all("a channel of it is not connected" in each for each in refused)


def test_no_channel_is_started_from_a_server_that_was_emptied() -> None:
    stopped = channel("b", runs=False)
    chain = pair("", running=False).replace(server("c", "", stopped))
    assert "gtid_executed of b, its source, is empty" in broken(chain, StartChannel("c", ""))
    filled = pair("a:1", running=False).replace(server("c", "a:1", stopped))
    assert broken(filled, StartChannel("c", "")) == ""


@pytest.mark.parametrize(
    ("code", "grade", "may_be_passed"),
    [
        ("T2", Grade.LIKELY, True),
        ("T1", Grade.LIKELY, True),
        ("T2", Grade.PROVED, False),
        ("U1", Grade.LIKELY, False),
    ],
)
def test_a_likely_backlog_says_what_it_may_turn_out_to_be(
    code: str, grade: Grade, *, may_be_passed: bool
) -> None:
    left = not_planned(a_finding(code, "a:4", grade=grade), {}, pair(), NOTHING_BESIDE)
    assert left.why.startswith("there is nothing to run")
    assert ("has passed as H8" in left.why) is may_be_passed


# -- what an audit will show afterwards -----------------------------------------------------------


def test_what_the_model_shows_too_is_announced_once() -> None:
    """An E4 that sets alone show is evaluated again on the model; a compared one is not."""
    by_sets = a_finding("E4", "a:1", replica="c")
    compared = a_finding("E4", "a:2")
    audit = ClusterAudit("cluster", Verdict.CRITICAL, tuple("abc"), (by_sets, compared), (), NOON)
    outlook = replace(audit, findings=(by_sets,))
    found = [each.finding_id for each in afterwards(audit, outlook, ())]
    assert sorted(found) == sorted((by_sets.id, compared.id))
