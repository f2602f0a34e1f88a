"""Holes of servers that were reset: rows that are there, rows that only look so, servers below."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import RowsOn, RowState
from repair.doubts.forgotten_below import forgotten_below
from repair.model.actions import InjectEmpty
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, OtherFinding
from repair.strategies.fetching_again import refetch
from repair.strategies.leaving_out import inject_empty
from repair.strategies.starting import start_channel
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row, proposed, reason, shown
from tests.snapshots import NOON
from topology.catalogue.findings import Evidence, Finding, Grade
from topology.readings.content_class import ContentClass
from topology.rules.passed import IS_BEHIND

AFTER, BEFORE = RowsOn(RowState.AS_AFTER), RowsOn(RowState.AS_BEFORE)
ROWS = (a_net_row((1, 5), (1, 6)),)


def hole(grade: Grade = Grade.PROVED, of: str = "a:1-2") -> Finding:
    found = a_finding("H8", of, grade=grade)
    return replace(found, evidence=(*found.evidence, Evidence(IS_BEHIND, "b", "yes", NOON)))


def reset(below: str, *, purged: str = "", runs: bool = True, above: str = "a:1-5") -> Model:
    """Return b, whose applier has passed a:1-2, and c below it, which has what is said."""
    received = replace(channel("a"), retrieved=gtids("a:1-2"), passed=gtids("a:1-2"))
    return model(
        server("a", above),
        server("b", "a:3-5", received),
        replace(server("c", below, channel("b", runs=runs)), purged=gtids(purged)),
    )


def unasked(servers: Model, finding: Finding) -> Case:
    rows = dict.fromkeys(("a", "b", "c"), AFTER)
    wanted = replace(
        a_content("a:1", rows=ROWS, rows_on=rows), classes={ContentClass.DATA: finding.gtid_set}
    )
    return a_case(servers, finding, content=wanted, is_chosen=False)


@pytest.mark.parametrize(
    ("servers", "on_c"),
    [
        (reset("a:3-5"), "a:1-2"),  # its receiver may leave them out: c may have had them
        (reset("a:2-5"), "a:1"),
        (reset("a:1-5"), ""),
        (reset("a:1 a:3-5"), ""),  # it has an earlier one in its log: it was not reset
        (reset("a:1 a:3-5", purged="a:1"), "a:2"),  # that was set
        (reset("a:3-5", runs=False), ""),  # it connects when it is started
    ],
)
def test_a_server_below_that_was_reset_gets_its_own_empty_transactions(
    servers: Model, on_c: str
) -> None:
    actions = proposed(inject_empty(unasked(servers, hole()))).actions
    own = ["c InjectEmpty " + on_c] if on_c else []
    found = [
        (each.name, forgotten) for each, forgotten in forgotten_below(unasked(servers, hole()))
    ]
    assert found == ([("c", gtids(on_c))] if on_c else [])
    assert shown(actions) == [*own, "b InjectEmpty a:1-2"]
    assert all(isinstance(each, InjectEmpty) and each.rows_are_there for each in actions)


def test_a_server_below_without_the_rows_gets_none_of_its_own() -> None:
    case = unasked(reset("a:3-5"), hole())
    assert case.content is not None
    rows_on = {**case.content.rows_on, "c": BEFORE}
    chosen = replace(case, content=replace(case.content, rows_on=rows_on), is_chosen=True)
    assert shown(proposed(inject_empty(chosen)).actions) == ["b InjectEmpty a:1-2"]


@pytest.mark.parametrize(
    ("above", "grade", "first"),
    [
        ("a:1-5", Grade.LIKELY, ""),
        ("a:1-9", Grade.LIKELY, ""),  # higher numbers of the same server come later in its log
        ("a:1-5 c:1", Grade.LIKELY, "c:1"),
        ("a:1-5 c:1", Grade.PROVED, ""),  # it received the present transactions, in order
        ("a:1-5 b:1", Grade.LIKELY, ""),  # its own do not come back to b
    ],
)
def test_rows_decide_nothing_while_earlier_transactions_may_be_to_come(
    above: str, grade: Grade, first: str
) -> None:
    """a may have been reset: a:1-2 then delete, perhaps, a row that c:1 inserts."""
    outcome = inject_empty(unasked(reset("a:1-5", above=above), hole(grade)))
    if first:
        assert "has not arrived on b yet and may change these rows" in reason(outcome)
    else:
        assert shown(proposed(outcome).actions) == ["b InjectEmpty a:1-2"]


@pytest.mark.parametrize("is_known", [True, False])
def test_what_another_finding_says_is_missing_is_not_to_come(*, is_known: bool) -> None:
    other = OtherFinding("H8", "", gtids("a:1"), a_content("a:1", rows=ROWS, rows_on={"b": AFTER}))
    case = unasked(reset("a:1-5"), hole(Grade.LIKELY, of="a:2"))
    outcome = inject_empty(replace(case, holes=(other,) if is_known else ()))
    if is_known:
        assert shown(proposed(outcome).actions) == ["b InjectEmpty a:2"]
    else:
        assert "has not arrived on b yet" in reason(outcome)


@pytest.mark.parametrize(
    ("executed", "kind", "is_refused"),
    [
        ("", ContentClass.DATA, True),  # not read at all
        ("a:1", ContentClass.DATA, True),
        ("a:1-3", ContentClass.DATA, False),
        ("", ContentClass.EMPTY, False),
    ],
)
def test_nothing_is_fetched_above_a_server_that_was_not_read(
    executed: str, kind: ContentClass, *, is_refused: bool
) -> None:
    """d may receive from b, and have the rows of a:2."""
    received = replace(channel("a"), retrieved=gtids("a:2"), passed=gtids("a:2"))
    servers = model(server("a", "a:1-3"), server("b", "a:1 a:3", received))
    content = a_content("a:2", kind, rows=ROWS, rows_on={"a": AFTER, "b": BEFORE})
    facts = {"content": content, "unread": {"d": gtids(executed)}}
    chosen = proposed(refetch(a_case(servers, hole(of="a:2"), **facts)))
    case = a_case(servers, hole(of="a:2"), is_chosen=False, **facts)
    said = "d could not be read, and may receive"
    if is_refused:
        assert said in reason(refetch(case))
        assert any(said in each for each in chosen.warnings)
    else:
        assert proposed(refetch(case)).actions


@pytest.mark.parametrize(("asked", "is_refused"), [("b c", True), ("c", False)])
def test_rows_that_another_channel_waits_for_are_compared_where_it_leads(
    asked: str, *, is_refused: bool
) -> None:
    """a:2 waits for b and for c; what was not compared on b is b's channel alone."""
    servers = model(
        server("a", "a:1-2"),
        server("b", "a:1", channel("a", runs=False)),
        server("c", "a:1", channel("a", runs=False)),
    )
    fits = a_content("a:2", rows=ROWS, rows_on={"a": AFTER, "b": BEFORE})
    elsewhere = a_content("a:2", rows=ROWS, rows_on={"a": AFTER, "c": BEFORE})
    case = a_case(
        servers,
        a_finding("A7", "a:2"),
        is_chosen=False,
        content=fits,
        waiting={
            ("b", ""): ContentQuestion(gtids("a:2"), ("a",), ("b", "a")),
            ("c", ""): ContentQuestion(gtids("a:2"), ("a",), tuple(asked.split())),
        },
        arrivals={("b", ""): fits, ("c", ""): elsewhere},
    )
    outcome = start_channel(case)
    if is_refused:
        assert "were not compared on b" in reason(outcome)
    else:
        assert proposed(outcome).actions
