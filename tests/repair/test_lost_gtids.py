"""Guards where a source uses up the GTIDs that it lost and assigns itself (E3, `undo_on_replica`).

A small server here holds a set of GTIDs: a script may go on as long as the lowest lost one is free.
"""

import re
from dataclasses import replace
from itertools import chain, combinations

import pytest

from gtid import GtidSet
from repair.model.actions import Action, AutoPositionOn, InjectEmpty, StartChannel
from repair.model.replication_model import Model
from repair.scripts.other_servers import checks_before
from repair.scripts.procedure import Procedure, Setting
from repair.scripts.procedures import describe
from repair.sql.guard import Guard
from repair.strategies.undo_on_replica import undo_on_replica
from tests.repair.build import channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_case, a_content, a_finding, a_net_row, proposed

SERVERS = model(server("a", "a:1-3"), server("b", "a:1-140", channel("a", runs=False)))


def planned(lost: str = "a:4-6", servers: Model = SERVERS) -> tuple[Action, ...]:
    content = a_content(lost, rows=(a_net_row(None, (2, 7)),))
    case = a_case(servers, a_finding("E3", lost), content=content)
    return proposed(undo_on_replica(case)).actions


def the_injection(lost: str = "a:4-6") -> InjectEmpty:
    [found] = [each for each in planned(lost) if isinstance(each, InjectEmpty)]
    return found


def procedure(action: InjectEmpty) -> Procedure:
    seen = snapshot_of(SERVERS).last_read
    return describe(action, Setting(SERVERS["a"], before=SERVERS, after=SERVERS, seen=seen))


def is_true(guard: Guard, executed: GtidSet) -> bool:
    """Evaluate the few functions of GTID sets that these guards use."""

    def subset(found: re.Match[str]) -> str:
        return str(read(found[1]) <= read(found[2]))

    def subtract(found: re.Match[str]) -> str:
        return f"'{read(found[1]) - read(found[2])}'"

    def read(text: str) -> GtidSet:
        return executed if text.startswith("@@") else GtidSet.parse(text.strip("'"))

    one = r"('[^']*'|@@GLOBAL\.gtid_executed)"
    text = re.sub(rf"GTID_SUBTRACT\({one}, {one}\)", subtract, guard.condition)
    text = re.sub(rf"GTID_SUBSET\({one}, {one}\)", subset, text)
    values = [part.strip() for part in text.split(" OR ")]
    return any(
        part == "True" if " = " not in part else len({*part.split(" = ")}) == 1 for part in values
    )


def stops(executed: str) -> str:
    """Return the message of the first guard that is false on a server with this set."""
    words = ("may have reused the lost", "it has reused lost", "all these GTIDs are executed")
    guards = [
        each
        for each in procedure(the_injection()).preconditions
        if any(text in each.message for text in words)
    ]
    assert len(guards) == len(words)
    return next((each.message for each in guards if not is_true(each, gtids(executed))), "")


@pytest.mark.parametrize("executed", ["a:1-3", "a:1-3 a:6", "a:1-3 a:5-6"])
def test_an_interrupted_script_goes_on(executed: str) -> None:
    assert stops(executed) == ""


@pytest.mark.parametrize(
    ("executed", "why"),
    [
        ("a:1-4", "it has reused lost GTIDs"),
        ("a:1-5", "it has reused lost GTIDs"),
        ("a:1-4 a:6", "it has reused lost GTIDs"),
        ("a:1-6", "Had this script run before? Then go on with the next one"),
        ("a:1-7", "it has committed transactions of its own since"),
        ("a:1-3 a:7", "it has committed transactions of its own since"),
    ],
)
def test_it_stops_where_clients_may_have_them(executed: str, why: str) -> None:
    assert why in stops(executed)


def test_no_state_in_which_the_lowest_is_taken_is_passed() -> None:
    numbers = (4, 5, 6, 7)
    subsets = chain.from_iterable(combinations(numbers, count) for count in range(len(numbers) + 1))
    for taken in subsets:
        executed = " ".join(("a:1-3", *(f"a:{number}" for number in taken)))
        assert bool(stops(executed)) is (4 in taken or 7 in taken), executed


@pytest.mark.parametrize("last", [6, 140])
def test_the_lowest_is_committed_last_and_only_if_the_session_owns_it(last: int) -> None:
    statements = procedure(the_injection(f"a:4-{last}")).statements
    text = "\n".join(statements)
    numbers = [int(each) for each in re.findall(r"gtid_next = IF\(@go, '[^':]*:(\d+)'", text)]
    assert numbers == list(range(last, 3, -1))
    lowest = str(gtids("a:4"))
    owns = text.index(f"@@SESSION.gtid_owned = '{lowest}'")
    assert text.index(f"gtid_next = IF(@go, '{lowest}'") < owns < text.rindex("BEGIN;")


def test_other_empty_transactions_stay_in_order_and_without_these_guards() -> None:
    action = InjectEmpty("a", gtids("a:4-6 b:1"))
    assert "gtid_owned = '" not in "".join(procedure(action).statements)
    undone = the_injection().undone
    mixed = procedure(replace(action, undone=undone)).statements
    found = re.findall(r"'([^']*:\d+)'", "".join(each for each in mixed if "IF(@go" in each))
    order = [each for each in dict.fromkeys(found) if ":" in each]
    assert order == [str(gtids(each)) for each in ("b:1", "a:6", "a:5", "a:4")]


def test_the_start_is_checked_on_the_source() -> None:
    servers = SERVERS.replace(server("b", "a:1-6", channel("a", runs=False)))
    *_, start = planned(servers=servers)
    assert start == StartChannel("b", "", used_up=gtids("a:4-6"))
    after = servers.replace(server("a", "a:1-6"))
    seen = snapshot_of(servers).last_read
    setting = Setting(after["b"], before=after, after=after, seen=seen)
    [check] = checks_before(start, setting)
    assert check.server == "a"
    _, there, quiet = check.guards
    for executed, expected in (("a:1-6", ""), ("a:1-5", "goal"), ("a:1-7", "its own")):
        false = [each.message for each in (there, quiet) if not is_true(each, gtids(executed))]
        assert len(false) == bool(expected)
        assert expected in "".join(false)
    assert checks_before(replace(start, used_up=GtidSet()), setting) == ()


def test_the_runbook_names_when_clients_must_not_write() -> None:
    content = a_content("a:4-6", rows=(a_net_row(None, (2, 7)),))
    case = a_case(SERVERS, a_finding("E3", "a:4-6"), content=content)
    [why] = [each for each in proposed(undo_on_replica(case)).warnings if "stop all writes" in each]
    assert "stop all writes on a before you make the plan, until its last script is done" in why
    errant = model(server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")))
    content = a_content("b:1", rows=(a_net_row(None, (2, 7)),))
    done = proposed(undo_on_replica(a_case(errant, a_finding("E1", "b:1"), content=content)))
    assert not any("stop all writes" in each for each in done.warnings)
    assert not any(isinstance(each, AutoPositionOn | StartChannel) for each in done.actions)
