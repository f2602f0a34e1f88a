"""One fact at a time that decides what is planned: each table changes only that one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import RowsOn, RowState
from repair.content.waiting_ddl import Ddl
from repair.doubts.misfitting_rows import misfit, misfit_unless_executed
from repair.doubts.rows_there import is_there_already
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    StopChannel,
)
from repair.model.missing_on import other_sources, unfinished
from repair.model.replication_model import ModelChannel
from repair.model.strategy_case import OtherFinding, Refusal
from repair.model.unlogged_redo import purges_what_it_receives
from repair.plan_parts import brought_by, in_short
from repair.strategies.fetching_again import refetch
from repair.strategies.kept_out import KeptOut, brings_in, kept_out
from repair.strategies.leaving_out import inject_empty
from repair.strategies.starting import misfit_of_waiting, start_channel
from repair.strategies.undo_on_replica import undo_on_replica
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import (
    a_case,
    a_content,
    a_finding,
    a_net_row,
    proposed,
    reason,
    redone,
    shown,
)
from topology.readings.content_class import ContentClass

BEFORE, AFTER = RowsOn(RowState.AS_BEFORE), RowsOn(RowState.AS_AFTER)
ROWS = (a_net_row((1, 5), (1, 6)),)


# -- rows that do not fit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ([], None),
        ([("a:3", True)], None),  # it does not arrive
        ([("a:2", False)], None),
        ([("a:2", True)], ":2 changes definitions (`DROP VIEW v`): whether that fits b was not"),
        ([("a:1", True), ("a:2", True)], ":1-2 changes definitions (`DROP VIEW v` and 1 more)"),
    ],
)
def test_definitions_that_were_not_compared_are_named(
    statements: list[tuple[str, bool]], words: str | None
) -> None:
    ddl = tuple(
        Ddl(next(iter(gtids(gtid).gtids())), "DROP VIEW v", is_other=is_other)
        for gtid, is_other in statements
    )
    content = a_content("a:1-3", ContentClass.DDL, ddl=ddl, rows_on={"b": BEFORE})
    found = misfit(content, server("b", ""), gtids("a:1-2"))
    assert found is None if words is None else words in (found or "")


@pytest.mark.parametrize(
    ("state", "kind", "warns"),
    [
        (RowState.CONFLICT, ContentClass.DATA, True),
        (RowState.AS_AFTER, ContentClass.DATA, True),
        (RowState.AS_BEFORE, ContentClass.DATA, False),
        (RowState.UNREAD, ContentClass.DATA, True),
        (RowState.AS_AFTER, ContentClass.EMPTY, False),
    ],
)
def test_rows_of_what_another_channel_brings_too_are_as_before_or_it_is_said(
    state: RowState, kind: ContentClass, *, warns: bool
) -> None:
    content = a_content("a:2", kind, rows_on={"b": RowsOn(state)})
    found = misfit_unless_executed(content, server("b", ""), gtids("a:2"))
    assert (found is not None) is warns


def test_rows_of_a_server_that_was_not_read_are_not_there() -> None:
    content = a_content("a:2", rows_on={"b": AFTER})
    hole = a_finding("H1", "a:2")
    read = model(server("a", "a:1-3"), server("b", "a:1 a:3", channel("a")))
    assert is_there_already(a_case(read, hole, content=content))
    assert not is_there_already(a_case(model(server("a", "a:1-3")), hole, content=content))


# -- the way back ---------------------------------------------------------------------------------


def test_a_channel_on_the_way_back_is_not_started_where_replicas_would_be_refused() -> None:
    """a does not log what it receives: by auto-position it will refuse d behind it."""
    stopped = channel("b", runs=False)
    servers = model(
        replace(server("a", "a:1-3", stopped), logs_received=False),
        server("b", "a:1-3 b:1", channel("a")),
        server("d", "a:1-3", channel("a")),
    )
    case = a_case(servers, a_finding("E1", "b:1"), is_chosen=False)
    assert "it refuses d at the next connection" in reason(start_channel(case))
    assert proposed(start_channel(replace(case, is_chosen=True))).actions
    logged = servers.replace(replace(servers["a"], logs_received=True))
    assert proposed(start_channel(replace(case, model=logged))).actions


@pytest.mark.parametrize(
    ("auto", "code", "starts"), [(True, "H8", False), (False, "H8", True), (True, "H1", True)]
)
def test_only_by_auto_position_a_source_refuses_a_channel_for_what_it_purged(
    code: str, *, auto: bool, starts: bool
) -> None:
    back = replace(channel("a", runs=False, auto=auto), passed=gtids("a:2"))
    servers = model(server("a", "a:1-3", purged="a:1"), server("b", "a:3", back))
    done = proposed(inject_empty(a_case(servers, a_finding(code, "a:2"))))
    assert (len(done.actions) > 1) is starts


# -- what waits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_order", "refused"), [(False, True), (True, False)])
def test_what_a_server_executed_in_another_order_matters_unless_one_log_has_the_order(
    *, in_order: bool, refused: bool
) -> None:
    """b executed a:3 by hand; a:2 waits on its channel."""
    stopped = channel("a", runs=False)
    servers = model(server("a", "a:1-3"), server("b", "a:1 a:3", stopped))
    question = ContentQuestion(gtids("a:2-3"), ("a",), ("a", "b"), in_order)
    content = a_content("a:2-3", rows=ROWS, rows_on={"a": AFTER, "b": BEFORE})
    case = a_case(
        servers,
        a_finding("A7", "a:2"),
        is_chosen=False,
        waiting={("b", ""): question},
        arrivals={("b", ""): content},
    )
    outcome = start_channel(case)
    if refused:
        assert "b has " in reason(outcome)
        assert "of them, in another order" in reason(outcome)
    else:
        assert proposed(outcome).actions


@pytest.mark.parametrize("by", ["passed", "bypassed"])
def test_what_was_passed_and_the_source_did_not_list_is_fetched_as_well(by: str) -> None:
    """a committed a:4 after it was read; b has been behind it, its applier or its file position."""
    beyond: dict[str, Any] = {by: gtids("a:4")}
    behind = replace(channel("a", auto=False), **beyond)
    servers = model(server("a", "a:1-4"), server("b", "a:1-3", behind))
    case = a_case(servers, a_finding("C3", ""), is_chosen=False)
    case = replace(case, snapshot_executed={"a": gtids("a:1-3"), "b": gtids("a:1-3")})
    assert ":4 has not been read" in reason(refetch(case))
    kept = servers.replace(server("b", "a:1-3", channel("a", auto=False)))
    assert proposed(refetch(replace(case, model=kept))).actions
    there = servers.replace(server("b", "a:1-4", behind))
    assert proposed(refetch(replace(case, model=there))).actions, "it has executed it since"


@pytest.mark.parametrize(
    ("code", "name", "counts"),
    [("H1", "", True), ("H8", "", True), ("H1", "o", False), ("P1", "", False)],
)
def test_auto_position_fetches_the_holes_of_its_own_channel(
    code: str, name: str, *, counts: bool
) -> None:
    hole = OtherFinding(code, name, gtids("a:3"), None)
    case = a_case(model(), a_finding("H1", "a:2"), holes=(hole,))
    assert case.beside == (((hole.gtids, None),) if counts else ())


def test_a_choice_names_the_hole_that_is_behind_what_waits() -> None:
    """b has passed a:2 without executing it; a:4, which a start brings, comes behind it."""
    behind = replace(channel("a", runs=False), passed=gtids("a:2"))
    servers = model(server("a", "a:1 a:3-4", purged="a:1"), server("b", "a:1 a:3", behind))
    case = a_case(servers, a_finding("A7", ""))
    why = misfit_of_waiting(case, StartChannel("b", ""))
    assert "b passes " in (why or "")
    whole = servers.replace(server("b", "a:1-3", channel("a", runs=False)))
    assert misfit_of_waiting(replace(case, model=whole), StartChannel("b", "")) is None


def test_a_finding_in_short_names_its_transactions() -> None:
    assert in_short(a_finding("H1", "a:2")).endswith(f"a → b: {gtids('a:2')}")
    assert in_short(a_finding("A7", "")).endswith("a → b")


def test_what_another_channel_brings_first_is_no_guard_of_the_start() -> None:
    """d gets a:2 from b by itself: the script cannot compare rows as before a:2-3."""
    servers = model(
        server("b", "a:1-2"),
        server("c", "a:1-3"),
        server("d", "a:1-2", channel("b", name="b"), channel("c", name="c", runs=False)),
    )
    content = a_content("a:2-3", rows=ROWS, rows_on={"c": AFTER, "d": BEFORE})
    case = a_case(
        servers,
        a_finding("A7", "", source="c", replica="d", channel="c"),
        is_chosen=False,
        waiting={("d", "c"): ContentQuestion(gtids("a:2-3"), ("c",), ("c", "d"))},
        arrivals={("d", "c"): content},
    )
    moving = {**case.snapshot_executed, "d": gtids("a:1")}
    outcome = proposed(start_channel(replace(case, snapshot_executed=moving)))
    assert (outcome.actions, outcome.warnings) == ((StartChannel("d", "c"),), ())
    # By another way, what has changed these rows since is known: it is said.
    applied = replace(content, rows_on={"c": AFTER, "d": AFTER})
    chosen = replace(case, is_chosen=True, snapshot_executed=moving)
    outcome = proposed(start_channel(replace(chosen, arrivals={("d", "c"): applied})))
    assert any("overwrite rows" in each for each in outcome.warnings)


def test_what_the_source_may_have_given_again_is_received_only_if_that_is_selected() -> None:
    former = replace(channel("a", runs=False), may_be_former=True)
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", former))
    case = a_case(servers, a_finding("A7", ""), is_chosen=False)
    assert "may be other transactions" in reason(start_channel(case))
    assert proposed(start_channel(replace(case, is_chosen=True))).actions


def test_a_hole_of_no_channel_was_received_by_none() -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1 a:3"))
    empty = a_content("a:2", ContentClass.EMPTY)
    case = a_case(servers, a_finding("H1", "a:2", channel=None), is_chosen=False, content=empty)
    assert shown(proposed(inject_empty(case)).actions) == ["b InjectEmpty a:2"]


def test_a_way_back_by_file_position_is_switched_without_a_guard_of_rows() -> None:
    servers = model(
        server("a", "a:1-3", channel("b", runs=False, auto=False)),
        server("b", "a:1-3 b:1", channel("a")),
    )
    case = a_case(
        servers,
        a_finding("E1", "b:1"),
        waiting={("a", ""): ContentQuestion(gtids("b:1"), ("b",), ("a", "b"))},
        arrivals={("a", ""): a_content("b:1", rows=ROWS, rows_on={"a": BEFORE, "b": AFTER})},
    )
    switched = AutoPositionOn("a", "", filled=GtidSet())
    outcome = proposed(start_channel(case))
    assert (outcome.actions, outcome.warnings) == ((switched,), ())


def test_servers_below_are_asked_only_for_what_was_read() -> None:
    """The switch starts the channel too, and a:4 arrives: that is of another question."""
    behind = channel("a", auto=False, runs=False, bypassed="a:2")
    servers = model(
        server("a", "a:1-4"),
        server("b", "a:1 a:3", behind),
        server("c", "a:1 a:3", channel("b")),
    )
    content = a_content("a:2", rows=ROWS, rows_on={"a": AFTER, "b": BEFORE, "c": BEFORE})
    case = a_case(servers, a_finding("H1", "a:2"), is_chosen=False, content=content)
    assert proposed(refetch(case)).actions
    unfit = replace(content, rows_on={**content.rows_on, "c": RowsOn(RowState.CONFLICT)})
    assert "changed since on c" in reason(refetch(replace(case, content=unfit)))


@pytest.mark.parametrize(
    ("source", "refused"),
    [(channel("b"), True), (channel("a"), False), (channel("b", runs=False), False)],
)
def test_only_servers_that_receive_what_follows_must_have_what_waits_alike(
    source: ModelChannel, *, refused: bool
) -> None:
    """c has a:2-3 already, perhaps as other transactions; a:4 follows."""
    servers = model(
        server("a", "a:1-4"),
        server("b", "a:1", channel("a", runs=False)),
        server("c", "a:1-3", source),
    )
    on = {"a": AFTER, "b": BEFORE, "c": RowsOn(RowState.CONFLICT)}
    case = a_case(
        servers,
        a_finding("A7", ""),
        is_chosen=False,
        waiting={("b", ""): ContentQuestion(gtids("a:2-3"), ("a",), ("a", "b"), is_in_order=True)},
        arrivals={("b", ""): a_content("a:2-3", rows=ROWS, rows_on=on)},
    )
    outcome = start_channel(case)
    assert isinstance(outcome, Refusal) is refused
    assert not refused or "it may have other transactions under these GTIDs" in reason(outcome)


# -- what is left out -----------------------------------------------------------------------------


@pytest.mark.parametrize("executed", ["a:2", "a:1-3"])
def test_what_the_replica_has_by_now_is_not_left_out(executed: str) -> None:
    servers = model(server("a", "a:1-3"), server("b", executed, channel("a")))
    assert "b" in reason(inject_empty(a_case(servers, a_finding("H1", "a:2"))))


@pytest.mark.parametrize(
    ("code", "above", "is_left"),
    [
        ("E1", ("d",), False),  # a later audit reports d as well
        ("E1", ("d", "e"), True),  # from e it may have come as well
        ("H1", ("d",), True),  # of another family
    ],
)
def test_a_stop_between_two_targets_leaves_one_that_no_audit_reports(
    code: str, above: tuple[str, ...], *, is_left: bool
) -> None:
    channels = tuple(channel(each, name=each) for each in above)
    servers = model(
        server("a", "a:1", *channels),
        server("b", "a:1 b:1", channel("a")),
        *(server(each, "a:1") for each in above),
    )
    case = a_case(servers, a_finding(code, "b:1"))
    assert bool([*unfinished(case, ("a", "d"))]) is is_left


@pytest.mark.parametrize("logs_received", [True, False])
def test_a_source_that_logs_nothing_received_does_not_hide_itself(*, logs_received: bool) -> None:
    """d, above a, gets them first; only another source of b would hide that a is without them."""
    a = replace(server("a", "a:1", channel("d")), logs_received=logs_received)
    servers = model(a, server("b", "a:1 b:1", channel("a")), server("d", "a:1"))
    case = a_case(servers, a_finding("E1", "b:1"))
    assert not [*unfinished(case, ("d", "a"))]
    beside = replace(server("c", "a:1", channel("d")), logs_received=logs_received)
    both = servers.replace(beside).replace(
        server("b", "a:1 b:1", channel("a"), channel("c", name="c"))
    )
    found = [*unfinished(replace(case, model=both), ("d", "a"))]
    assert bool(found) is not logs_received


def test_a_source_that_is_no_target_is_not_left_without_them() -> None:
    """b receives from a and from d, and both are without b:1; d gets it from a."""
    servers = model(
        server("a", "a:1"),
        server("d", "a:1", channel("a")),
        server("b", "a:1 b:1", channel("a"), channel("d", name="d")),
    )
    case = a_case(servers, a_finding("E1", "b:1"))
    for code, names in (("E1", ["a", "d"]), ("E2", ["a", "d"]), ("E3", []), ("H1", [])):
        assert [*other_sources(a_case(servers, a_finding(code, "b:1")))] == names
    has_them = servers.replace(server("d", "a:1 b:1", channel("a")))
    assert [*other_sources(replace(case, model=has_them))] == ["a"]
    assert not [*unfinished(case, ("a",))]
    [text] = unfinished(case, ("a", "d"))
    assert "a or d is still without" in text


@pytest.mark.parametrize(
    "action",
    [
        InjectEmpty("b", gtids("a:2")),
        AppendPurged("b", gtids("a:2")),
        ResetAndPurge("b", gtids("a:2"), gtids("a:1"), restart=()),
        RedoTransactions("b", redone("a:2")),
    ],
)
def test_a_step_brings_what_it_commits_on_its_own_server(action: Action) -> None:
    servers = model(server("a", "a:1"), server("b", "a:1", channel("a")))
    assert brought_by([action], servers["b"], {}) == gtids("a:2")
    assert brought_by([action], servers["a"], {}) == gtids("")
    assert brought_by([StopChannel("b", "")], servers["b"], {}) == gtids("")


def test_an_undo_names_what_the_start_behind_it_would_bring() -> None:
    """The channel of b was refused for b:1; behind it waits what was not compared."""
    refused = channel("a", runs=False)
    servers = model(server("a", "a:1-4"), server("b", "a:1-3 a:9", refused))
    content = a_content("a:9", rows=ROWS, rows_on={"b": AFTER})
    question = ContentQuestion(gtids("a:4"), ("a",), ("a", "b"))
    case = a_case(servers, a_finding("E3", "a:9"), content=content, waiting={("b", ""): question})
    done = proposed(undo_on_replica(case))
    assert shown(done.actions)[-1] == "b StartChannel"
    assert any("what waits may overwrite rows" in each for each in done.warnings)
    compared = replace(case, waiting={})
    assert not any("overwrite" in each for each in proposed(undo_on_replica(compared)).warnings)


@pytest.mark.parametrize("refusal", ["", "b runs 5.6"])
def test_what_was_chosen_to_be_left_out_is_named_with_the_reason_why_it_is_not(
    refusal: str,
) -> None:
    hole = a_finding("H1", "a:2")
    servers = model(server("a", "a:1-3"), server("b", "a:1 a:3", channel("a", auto=False)))
    after = servers.replace(server("b", "a:1-3", channel("a")))
    case = a_case(servers, a_finding("C3", ""))
    [text] = brings_in(case, after, (KeptOut(hole, "inject_empty", refusal),))
    assert ":2, which inject_empty was chosen to leave out there (H1" in text
    assert text.partition(". That is not planned")[2] == (f": {refusal}" if refusal else "")
    assert not [*brings_in(replace(case, model=after), after, (KeptOut(hole, "inject_empty", ""),))]
    assert not [*brings_in(a_case(servers, hole), after, (KeptOut(hole, "inject_empty", ""),))]
    for elsewhere in ("z", None):
        of_unread = replace(hole, replica=elsewhere, gtid_set=gtids("a:2"))
        assert not [*brings_in(case, after, (KeptOut(of_unread, "inject_empty", ""),))]


@pytest.mark.parametrize(
    ("code", "strategy", "is_kept_out"),
    [
        ("H1", "inject_empty", True),
        ("P1", "gtid_purged_append", True),
        ("H1", "refetch", False),
        ("H1", None, False),
        ("E1", "inject_empty", False),  # it is extra on the replica, and missing elsewhere
    ],
)
def test_only_gaps_that_were_chosen_to_be_left_out_are_kept_out(
    code: str, strategy: str | None, *, is_kept_out: bool
) -> None:
    finding = a_finding(code, "a:2")
    for refusals in ({}, {finding.id: {"inject_empty": "b runs 5.6"}}):
        found = [*kept_out([finding], lambda _finding: strategy, refusals)]
        why = "b runs 5.6" if refusals and strategy == "inject_empty" else ""
        assert found == ([KeptOut(finding, str(strategy), why)] if is_kept_out else [])


def test_only_a_source_that_was_read_is_known_to_purge_what_it_receives() -> None:
    for source, purges in (("a", True), (None, False), ("z", False)):
        a = replace(server("a", "a:1", channel("b")), logs_received=False)
        assert purges_what_it_receives(model(a), replace(channel("a"), source=source)) is purges


@pytest.mark.parametrize(
    ("kind", "in_order"), [(ContentClass.EMPTY, False), (ContentClass.EMPTY, True)]
)
def test_without_rows_only_the_order_of_one_log_needs_no_guard(
    kind: ContentClass, *, in_order: bool
) -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1", channel("a", runs=False)))
    question = ContentQuestion(gtids("a:2-3"), ("a",), ("a", "b"), in_order)
    case = a_case(
        servers,
        a_finding("A7", ""),
        is_chosen=False,
        waiting={("b", ""): question},
        arrivals={("b", ""): a_content("a:2-3", kind)},
    )
    start = StartChannel("b", "", in_order=True)
    guarded = StartChannel("b", "", waiting=gtids("a:2-3"))
    assert proposed(start_channel(case)).actions == (start if in_order else guarded,)


def test_a_tail_that_two_servers_miss_is_left_on_the_second_by_a_stop() -> None:
    """Neither brings it to the other: what is above c is no target."""
    servers = model(server("e", "a:1"), server("c", "a:1", channel("e")), server("d", "a:1"))
    case = a_case(servers, a_finding("J3", "b:1", source="c", replica="e"))
    assert [*unfinished(case, ("c", "d"))]
    below = servers.replace(server("d", "a:1", channel("c")))
    assert not [*unfinished(replace(case, model=below), ("c", "d"))]


def test_transactions_of_a_holder_that_was_not_read_are_not_left_out() -> None:
    case = a_case(model(server("a", "a:1")), a_finding("E1", "b:1"), is_chosen=False)
    empty = a_content("b:1", ContentClass.EMPTY)
    outcome = inject_empty(replace(case, content=empty, unread={"b": GtidSet()}))
    assert "b could not be read" in reason(outcome)
