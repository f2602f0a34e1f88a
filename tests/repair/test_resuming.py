"""The last steps of a strategy that was selected: what starts a channel, and what it would bring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import RowsOn, RowState
from repair.model.actions import AutoPositionOn, InjectEmpty, StartChannel
from repair.model.replication_model import Model
from repair.model.strategy_case import Case
from repair.strategies.leaving_out import inject_empty
from repair.strategies.resuming import misfits_when_resumed, resuming_actions
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, proposed, reason
from topology.readings.content_class import ContentClass

REFUSED = a_finding("P1", "a:1")
PASSED = a_finding("H8", "a:2")
EMPTY = a_content("a:2", ContentClass.EMPTY)


def passed_and_refused() -> Model:
    """A source that has purged a:1; its replica has neither that nor a:2, which it has passed."""
    made = replace(channel("a", runs=False), passed=gtids("a:2"))
    return model(server("a", "a:1-3", purged="a:1"), server("b", "a:3", made))


def kinds(case: Case) -> list[type[Any]]:
    return [type(each) for each in proposed(inject_empty(case)).actions]


def test_what_was_passed_is_answered_before_the_start_behind_a_refusal() -> None:
    servers = passed_and_refused()
    why = reason(inject_empty(a_case(servers, REFUSED)))
    assert ":2 again, which the applier of b has passed: answer that finding (H8) first" in why
    assert kinds(a_case(servers, PASSED)) == [InjectEmpty], "the source would refuse a start"
    answered = servers.replace(replace(servers["b"], executed=gtids("a:2-3")))
    assert kinds(a_case(answered, REFUSED)) == [InjectEmpty, StartChannel]
    connects = servers.replace(server("a", "a:1-3", purged="a:3"))
    assert kinds(a_case(connects, PASSED)) == [InjectEmpty, StartChannel]


def test_a_channel_stays_by_file_position_below_a_source_without_a_log_of_what_it_receives() -> (
    None
):
    finding = a_finding("H1", "a:2", source="b", replica="c")
    below = server("c", "a:1 a:3", channel("b", auto=False))
    for logs, last in ((True, AutoPositionOn), (False, InjectEmpty)):
        source = replace(server("b", "a:1-3", channel("a")), logs_received=logs)
        servers = model(server("a", "a:1-3"), source, below)
        assert kinds(a_case(servers, finding))[-1] is last
    origin = replace(server("b", "a:1-3"), logs_received=False)
    assert kinds(a_case(model(origin, below), finding))[-1] is AutoPositionOn, "it receives nothing"


def test_behind_a_row_conflict_the_order_of_the_log_is_no_proof_that_rows_fit() -> None:
    stuck = replace(channel("a", stuck=True), stuck_at=gtids("a:2"))
    servers = model(server("a", "a:1-3"), server("b", "a:1", stuck))
    question = ContentQuestion(gtids("a:2-3"), ("a",), ("a", "b"), is_in_order=True)
    unread = a_content("a:2-3", rows_on={"b": RowsOn(RowState.UNREAD, "a statement")})
    case = a_case(
        servers,
        a_finding("A2", ""),
        content=a_content("a:2"),
        waiting={("b", ""): question},
        arrivals={("b", ""): unread},
    )
    skipped = [InjectEmpty("b", gtids("a:2"))]
    [text] = misfits_when_resumed(case, skipped)
    assert text.startswith(
        "once replication runs on b, what waits may overwrite rows or stop an applier: rows of "
    )
    assert ":3 may not fit: they were not compared on b (a statement). If they do not fit" in text
    assert not [*misfits_when_resumed(replace(case, is_chosen=False), skipped)]
    refused = replace(case, finding=REFUSED, model=passed_and_refused())
    assert not [*misfits_when_resumed(refused, ())], "behind no conflict it is a proof"
    fits = a_content("a:2-3", rows_on={"b": RowsOn(RowState.AS_BEFORE)})
    assert not [*misfits_when_resumed(replace(case, arrivals={("b", ""): fits}), skipped)]


@pytest.mark.parametrize(
    ("auto", "at_first", "is_warned"),
    [(False, "a:1 a:4", True), (False, "a:1 a:3-4", False), (True, "a:1 a:4", False)],
)
def test_what_a_file_position_may_have_passed_is_named_where_a_choice_leaves_it(
    at_first: str, *, auto: bool, is_warned: bool
) -> None:
    # The model lets the channel bring a:3: when the servers were read, it was not there.
    servers = model(server("a", "a:1-4"), server("b", "a:1 a:3-4", channel("a", auto=auto)))
    seen = {"a": gtids("a:1-4"), "b": gtids(at_first)}
    case = a_case(servers, a_finding("H1", "a:2"), snapshot_executed=seen)
    found = [
        text for text in misfits_when_resumed(case, ()) if "If the file position is after" in text
    ]
    assert bool(found) is is_warned


def test_a_channel_from_a_source_that_was_not_read_is_started_if_that_is_selected() -> None:
    elsewhere = replace(channel("a", runs=False), source=None, passed=gtids("a:2"))
    servers = model(server("b", "a:1 a:3", elsewhere))
    assert kinds(a_case(servers, PASSED)) == [InjectEmpty, StartChannel]
    assert kinds(a_case(servers, PASSED, is_chosen=False, content=EMPTY)) == [InjectEmpty]
    by_position = replace(elsewhere, auto_position=False, passed=gtids(""))
    servers = model(server("b", "a:1 a:3", by_position))
    assert kinds(a_case(servers, PASSED, is_chosen=False, content=EMPTY)) == [InjectEmpty]
    assert kinds(a_case(servers, PASSED)) == [InjectEmpty, AutoPositionOn]


@pytest.mark.parametrize("auto", [True, False])
def test_of_a_source_that_was_not_read_one_warning_says_that_nothing_is_known(
    *, auto: bool
) -> None:
    elsewhere = replace(channel("a", runs=False, auto=auto), source=None)
    servers = model(server("b", "a:1 a:3", elsewhere))
    question = ContentQuestion(gtids("a:2-3"), ("a",), ("b",), is_in_order=False)
    unread = a_content("a:2-3", rows_on={"b": RowsOn(RowState.UNREAD, "a statement")})
    case = a_case(servers, PASSED, waiting={("b", ""): question}, arrivals={("b", ""): unread})
    [text] = misfits_when_resumed(case, ())
    assert text.startswith("once replication runs on b, what waits may stop the applier or")
    assert "what the source of b would send is not known" in text
    assert ("the relay log is deleted" in text) is not auto


@pytest.mark.parametrize("is_former", [True, False])
def test_a_channel_with_a_former_history_stays_stopped(*, is_former: bool) -> None:
    """Its source may have given the GTIDs again: A7 lists what to compare before it is started."""
    stopped = replace(channel("a", runs=False), may_be_former=is_former)
    servers = model(server("a", "a:1-3", purged="a:2"), server("b", "a:1 a:3", stopped))
    case = a_case(servers, a_finding("P1", "a:2"), is_chosen=False)
    assert bool(resuming_actions(case)) is not is_former


@pytest.mark.parametrize(
    ("doubtful", "is_warned"), [({"c": "a:2"}, True), ({"c": "a:9"}, False), ({}, False)]
)
def test_a_start_behind_a_choice_names_what_would_come_without_its_content(
    doubtful: dict[str, str], *, is_warned: bool
) -> None:
    """a:2 is empty in the log of a, and another transaction on c."""
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1", replace(channel("a", runs=False), stuck_at=gtids(""))),
        server("c", "a:1-3"),
    )
    content = replace(
        a_content("a:2-3", ContentClass.EMPTY),
        doubtful={name: gtids(text) for name, text in doubtful.items()},
    )
    case = a_case(servers, a_finding("P1", "a:1"), arrivals={("b", ""): content})
    assert [type(each) for each in resuming_actions(case)] == [StartChannel]
    found = [text for text in misfits_when_resumed(case, ()) if "without that content" in text]
    assert bool(found) is is_warned
    assert all("may be another transaction on c: b would execute it" in each for each in found)


@pytest.mark.parametrize(
    ("stuck_at", "expected"),
    [
        ("", [StartChannel]),
        ("a:2", [StartChannel]),  # the finding's own: it is answered
        ("a:3", [StartChannel]),  # it was executed since
        ("a:4", []),  # A2 or A3 lists what to compare first
    ],
)
def test_a_channel_that_another_transaction_stopped_is_not_resumed(
    stuck_at: str, expected: list[type[Any]]
) -> None:
    stuck = replace(channel("a", runs=False), stuck_at=gtids(stuck_at))
    servers = model(server("a", "a:1-4"), server("b", "a:1 a:3", stuck))
    case = a_case(servers, a_finding("H1", "a:2"))
    assert [type(each) for each in resuming_actions(case)] == expected
