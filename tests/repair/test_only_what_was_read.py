"""What a plan does not assume: one fact at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import RowsOn, RowState
from repair.doubts.compared_rows import compared_waiting, rows_of
from repair.doubts.still_to_come import unread_beside_own_work
from repair.model.actions import Action, AutoPositionOn, InjectEmpty, StartChannel, simulate
from repair.model.hidden_evidence import no_longer_shown
from repair.model.holes import emptied_above, fetched_again
from repair.model.replication_model import Model, ModelChannel
from repair.model.strategy_case import Proposal, Refusal
from repair.model.unlogged_redo import refuses_replicas
from repair.plan_parts import brought_by
from repair.scripts.procedure import Setting
from repair.scripts.start_guards import commits_nothing_meanwhile, has_what_was_committing
from repair.sql.channel_queries import ChannelQuestions
from repair.strategies.starting import misfit_of_waiting, start_channel
from tests.repair.build import UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_case, a_content, a_finding, a_net_row
from topology.readings.content_class import ContentClass

# d receives from b, which it has passed a:2 of, and from c.
PASSED = replace(channel("b", name="from_b", runs=False), passed=gtids("a:2"))
STOPPED = channel("c", name="from_c", runs=False)
DIAMOND = model(server("b", "a:1"), server("c", "a:1-3"), server("d", "a:1", PASSED, STOPPED))
START = StartChannel("d", "from_c")


def switch(name: str) -> AutoPositionOn:
    return AutoPositionOn("d", name, filled=gtids(""))


@pytest.mark.parametrize(
    ("action", "compared", "again"),
    [
        (START, "", "a:2"),
        (START, "a:3", "a:2"),
        (START, "a:2", ""),
        (switch("from_c"), "", "a:2"),
        (switch("from_c"), "a:2-3", ""),
        (switch("from_b"), "", ""),  # b has nothing
    ],
)
def test_a_start_brings_nothing_again_that_was_not_compared(
    action: StartChannel | AutoPositionOn, compared: str, again: str
) -> None:
    question = ContentQuestion(gtids(compared), (), ("d",))
    waiting = {("d", action.channel): question} if compared else {}
    case = a_case(DIAMOND, a_finding("A7", "", replica="d"), waiting=waiting)
    found = fetched_again(case, simulate(DIAMOND, action), action)
    assert found == (("d", gtids(again)) if again else None)


@pytest.mark.parametrize(
    ("declared", "refused"),
    [
        ({}, False),
        ({"b": "a:1"}, True),
        ({"b": "a:2"}, False),
        ({"b": "c:1"}, False),  # its own
        ({"c": "a:1"}, False),
    ],
)
def test_a_channel_waits_while_its_source_gets_back_what_it_lost(
    declared: dict[str, str], *, refused: bool
) -> None:
    stopped = channel("b", runs=False)
    servers = model(server("a", "a:1-2"), server("b", "a:1-2"), server("c", "a:1 c:1", stopped))
    given = {name: gtids(text) for name, text in declared.items()}
    case = a_case(servers, a_finding("A7", "", source="b", replica="c"), declared=given)
    assert (emptied_above(case, servers["c"], stopped) is not None) is refused
    case = replace(case, is_chosen=False)
    assert isinstance(start_channel(case), Refusal) is refused


@pytest.mark.parametrize(
    ("own", "known", "compared", "refused"),
    [
        ("c:1", "a:1", "", True),
        ("", "a:1", "", False),  # a plain replica: the order of one log
        ("b:1", "a:1 b:1", "", False),  # from its source
        ("c:1", "a:1-2", "", False),  # read, so compared
        ("c:1", "a:1", "a:2", False),  # compared in the relay log
    ],
)
def test_what_comes_unread_must_not_meet_own_work(
    own: str, known: str, compared: str, *, refused: bool
) -> None:
    stopped = channel("b", runs=False)
    b = server("b", f"a:1-2 {own if own.startswith('b') else ''}", channel("a"))
    servers = model(server("a", "a:1-2"), b, server("c", f"a:1 {own}", stopped))
    question = ContentQuestion(gtids(compared), (), ("c",))
    case = a_case(
        servers,
        a_finding("A7", "", source="b", replica="c"),
        is_chosen=False,
        waiting={("c", ""): question} if compared else {},
        arrivals={("c", ""): a_content(compared, ContentClass.EMPTY)} if compared else {},
        snapshot_executed={
            "a": gtids("a:1-2"),
            "b": gtids(known),
            "c": servers["c"].executed,
        },
    )
    action = StartChannel("c", "")
    assert (unread_beside_own_work(case, action) is not None) is refused
    assert (misfit_of_waiting(case, action) is not None) is refused
    assert isinstance(start_channel(case), Refusal) is refused
    assert isinstance(start_channel(replace(case, is_chosen=True)), Proposal)


@pytest.mark.parametrize(
    ("kind", "by_sets", "is_hidden"),
    [
        (ContentClass.EMPTY, False, True),
        (ContentClass.EMPTY, True, False),  # no step hides what b has
        (ContentClass.DATA, False, False),  # its rows were compared
    ],
)
def test_what_waits_is_empty_only_as_long_as_a_log_shows_it(
    kind: ContentClass, *, by_sets: bool, is_hidden: bool
) -> None:
    b = replace(server("b", "a:1-2", channel("a")), sends_by_sets=by_sets)
    servers = model(server("a", "a:1-2"), b, server("c", "a:1", channel("b", runs=False)))
    case = a_case(
        servers,
        a_finding("A7", "", source="b", replica="c"),
        waiting={("c", ""): ContentQuestion(gtids("a:2"), (), ("c",))},
        arrivals={("c", ""): a_content("a:2", kind)},
    )
    why = unread_beside_own_work(case, StartChannel("c", "")) or ""
    assert ("after earlier steps of this plan no log of b shows what it has" in why) is is_hidden
    assert bool(why) is is_hidden
    # Its relay log shows a:2. What else is empty there does not wait.
    received = replace(channel("a"), retrieved=gtids("a:2"))
    shown = replace(case, model=servers.replace(replace(b, channels=(received,))))
    shown = replace(shown, arrivals={("c", ""): a_content("a:1-2", kind)})
    assert unread_beside_own_work(shown, StartChannel("c", "")) is None


@pytest.mark.parametrize(
    ("kind", "state", "here", "known", "refused"),
    [
        (ContentClass.DATA, RowState.UNREAD, "d:1", "a:1 d:1", True),
        (ContentClass.DATA, RowState.AS_BEFORE, "d:1", "a:1 d:1", False),
        (ContentClass.EMPTY, RowState.UNREAD, "d:1", "a:1 d:1", False),  # it has no rows
        (ContentClass.DATA, RowState.UNREAD, "", "a:1 d:1", False),  # a new replica
        (ContentClass.DATA, RowState.UNREAD, "d:1", "a:1-2 d:1", False),  # all of it was read
    ],
)
def test_the_first_transactions_of_an_origin_wait_until_their_rows_can_be_compared(
    kind: ContentClass, state: RowState, here: str, known: str, *, refused: bool
) -> None:
    """The history of c may have been set: the rows of a:1 may be there already."""
    servers = model(
        server("a", "a:1-2"),
        server("b", "a:1-2 d:1", channel("a")),
        server("c", here, channel("b", runs=False)),
    )
    question = ContentQuestion(gtids(known.removesuffix(" d:1")), (), ("c",))
    content = a_content("a:1-2", kind, rows_on={"c": RowsOn(state)})
    case = a_case(
        servers,
        a_finding("A7", "", source="b", replica="c"),
        waiting={("c", ""): question},
        arrivals={("c", ""): content},
        snapshot_executed={"a": gtids("a:1-2"), "b": gtids(known), "c": gtids(here)},
    )
    why = unread_beside_own_work(case, StartChannel("c", "")) or ""
    assert ("c has logged nothing of its origin" in why) is refused
    assert bool(why) is refused
    purged = servers.replace(server("c", f"a:1 {here}", channel("b", runs=False), purged="a:1"))
    set_before = replace(case, model=purged, content=None)
    if known == "a:1 d:1":  # c has all that waits: a:2 follows it, in the order of one log
        assert unread_beside_own_work(set_before, StartChannel("c", "")) is None
    unread = replace(case, arrivals={})
    without_logs = unread_beside_own_work(unread, StartChannel("c", ""))
    assert (without_logs is not None) is (bool(here) and known == "a:1 d:1")


@pytest.mark.parametrize(
    ("own", "above", "group", "why"),
    [
        ("", "x", False, ""),  # a plain replica: the order of one log
        ("c:1", "x", False, "a source of b outside this snapshot"),
        ("c:1", "a", False, ""),
        ("", "a", True, ""),
        ("c:1", "a", True, "b is in the group dddd"),
        ("d:1", "a", True, ""),  # of another member
    ],
)
def test_own_work_waits_for_sources_that_were_not_read(
    own: str, above: str, why: str, *, group: bool
) -> None:
    name = UUIDS["d"] if group else None
    c = server("c", f"a:1 {own}", channel("b", runs=False))
    d = replace(server("d", "a:1 d:1"), group_name=name)
    b = replace(server("b", "a:1", channel(above)), group_name=name)
    case = a_case(
        model(server("a", "a:1"), b, c, d),
        a_finding("A7", "", source="b", replica="c"),
        snapshot_executed={"a": gtids("a:1"), "b": gtids("a:1"), "c": c.executed},
    )
    found = unread_beside_own_work(case, StartChannel("c", "")) or ""
    assert bool(found) is bool(why)
    assert why in found
    # All members were read. What they deliver to each other was not compared.
    assert ("not read: audit that server" in found) is (above == "x" and bool(own))


def test_what_was_passed_and_is_there_comes_from_no_start_again() -> None:
    servers = DIAMOND.replace(server("d", "a:1-2", PASSED, STOPPED))
    case = a_case(servers, a_finding("A7", "", replica="d"))
    assert fetched_again(case, simulate(servers, START), START) is None


def test_what_the_own_channel_passed_is_compared_by_its_switch() -> None:
    servers = DIAMOND.replace(server("b", "a:1-2"))
    case = a_case(servers, a_finding("H8", "a:2", replica="d"))
    action = switch("from_b")
    assert fetched_again(case, simulate(servers, action), action) is None


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        ([], ""),
        ([START], "a:1-2"),
        ([switch("from_c")], "a:1-2"),
        ([InjectEmpty("d", gtids("a:3"))], "a:3"),
        ([InjectEmpty("c", gtids("a:3"))], ""),
        ([START, InjectEmpty("d", gtids("a:9"))], "a:1-2 a:9"),
    ],
)
def test_steps_bring_what_their_source_had_when_it_was_read(
    effects: list[Action], expected: str
) -> None:
    read = snapshot_of(DIAMOND.replace(server("c", "a:1-2")))
    known = read.last_read
    assert brought_by(effects, DIAMOND["d"], known) == gtids(expected)


@pytest.mark.parametrize(
    ("facts", "source", "refuses"),
    [
        ({}, "a", False),
        ({"logs_received": False}, "a", True),
        ({"has_log": False}, "a", True),
        ({"has_log": False}, "c", False),  # c itself has committed all that it sends
    ],
)
def test_a_server_that_logs_nothing_will_refuse_its_replicas(
    facts: dict[str, Any], source: str, *, refuses: bool
) -> None:
    stopped = channel(source, runs=False)
    middle = replace(server("b", "a:1", stopped), **facts)
    servers = model(server("a", "a:1"), middle, server("c", "a:1", channel("b")))
    why = refuses_replicas(servers, middle, stopped)
    assert (why is not None) is refuses
    assert not refuses or "it refuses c at the next connection (error 1236)" in (why or "")
    by_position = servers.replace(server("c", "a:1", channel("b", auto=False)))
    assert refuses_replicas(by_position, middle, stopped) is None


@pytest.mark.parametrize(
    ("wanted", "facts", "hidden"),
    [
        ("a:1", {}, False),
        ("a:1", {"sends_by_sets": False}, True),  # its relay log is gone
        ("a:1", {"sends_by_sets": False, "retrieved": "a:1"}, False),
        ("a:9", {"sends_by_sets": False}, False),
        ("b:1", {"declared": "b:1"}, False),
        ("b:1", {"declared": "b:1", "purged": "b:1"}, True),  # by a step, on a server without log
        ("b:1", {"purged": "b:1"}, False),
        ("a:1", {"declared": "a:1", "purged": "a:1"}, False),  # its origin shows it
    ],
)
def test_what_a_step_makes_unreadable_is_not_declared_unneeded_behind_it(
    wanted: str, facts: dict[str, Any], *, hidden: bool
) -> None:
    received = replace(channel("a"), retrieved=gtids(facts.get("retrieved", "")))
    b = replace(
        server("b", "a:1 b:1", received, purged=facts.get("purged", "")),
        sends_by_sets=facts.get("sends_by_sets", True),
    )
    servers: Model = model(server("a", "a:1"), b)
    case = a_case(
        servers,
        a_finding("E1", wanted),
        declared={"b": gtids(facts.get("declared", ""))},
        content=a_content(wanted, ContentClass.EMPTY),
    )
    assert (no_longer_shown(case) is not None) is hidden


@pytest.mark.parametrize(
    ("runs", "source", "asked"),
    [(False, "a", True), (True, "a", False), (False, "c", False), (False, None, False)],
)
def test_a_switch_of_a_stopped_channel_asks_for_a_quiet_server(
    source: str | None, *, runs: bool, asked: bool
) -> None:
    """Not in a ring, and not of what comes from a source that was not read."""
    here = replace(channel("a", runs=runs, auto=False), source=source)
    made = server("b", "a:1 b:1", here)
    servers = model(server("a", "a:1"), made, server("c", "a:1", channel("b")))
    action = AutoPositionOn("b", "", filled=gtids(""))
    setting = Setting(made, before=servers, after=servers)
    setting = replace(setting, seen=snapshot_of(servers).last_read)
    assert bool([*commits_nothing_meanwhile(action, setting)]) is asked


def outside(*, auto: bool) -> ModelChannel:
    """Return a channel whose source was not read."""
    return replace(channel("a", auto=auto), source=None)


@pytest.mark.parametrize(
    ("owned", "auto", "asked"), [("a:2", False, True), ("a:2", True, False), ("", False, False)]
)
def test_a_switch_waits_for_what_the_source_was_committing(
    owned: str, *, auto: bool, asked: bool
) -> None:
    made = server("b", "a:1", channel("a", auto=auto))
    servers = model(server("a", "a:1"), made)
    seen = snapshot_of(servers).last_read
    seen["a"] = replace(seen["a"], gtid_owned=gtids(owned))
    setting = Setting(made, before=servers, after=servers, seen=seen)
    action, asks = AutoPositionOn("b", "", filled=gtids("")), ChannelQuestions.of(made.version, "")
    found = [*has_what_was_committing(action, setting, asks)]
    assert bool(found) is asked
    unread = replace(setting, server=server("b", "a:1", outside(auto=auto)))
    assert not [*has_what_was_committing(action, unread, asks)], "its source was not read"
    assert all(str(gtids(owned)) in each.condition for each in found)


def test_what_waits_on_a_stopped_channel_keeps_its_rows_as_they_were_compared() -> None:
    row, other = a_net_row((1, 5), None), a_net_row((2, 5), None)
    content = a_content("a:2-3", rows=(row, other))
    stopped = channel("a", runs=False)
    servers = model(server("a", "a:1-3"), server("b", "a:1", stopped))
    case = a_case(servers, a_finding("H8", "a:2"), arrivals={("b", ""): content})
    assert list(compared_waiting(case, servers["b"], stopped)) == [content]
    assert not list(compared_waiting(case, servers["b"], channel("a")))
    assert not list(compared_waiting(replace(case, arrivals={}), servers["b"], stopped))
    empty = {("b", ""): a_content("a:2-3", ContentClass.EMPTY)}
    assert not list(compared_waiting(replace(case, arrivals=empty), servers["b"], stopped))
    assert rows_of((a_content("a:2", rows=(row,)), content)) == (row, other)
    assert rows_of((a_content("a:2", rows_in_part=(other,)),)) == (other,)
