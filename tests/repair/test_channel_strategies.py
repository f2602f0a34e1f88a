"""Strategies that move and start channels, asked one at a time: what they propose and refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.content.content_questions import ContentQuestion
from repair.content.failing_event import FailingEvent
from repair.content.transaction_content import NetRow, RowsOn, RowState
from repair.model.actions import AutoPositionOn, InjectEmpty, MovePast, StartChannel
from repair.model.replication_model import Model
from repair.model.strategy_case import MAY_DIFFER, Case, OtherFinding, Outcome, Proposal
from repair.repair_plan import unreported_of
from repair.strategies.fetching_again import refetch
from repair.strategies.moving_past import position_bypass
from repair.strategies.starting import start_channel
from tests.repair.build import UUIDS, channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row, proposed, reason
from topology.catalogue.findings import Grade
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import LogPosition

HOLE = a_finding("H1", "a:2")
FITS = {"a": RowsOn(RowState.AS_AFTER), "b": RowsOn(RowState.AS_BEFORE)}
ROWS: tuple[NetRow, ...] = (a_net_row((1, 5), (1, 6)),)
FITTING = a_content("a:2", rows=ROWS, rows_on=FITS)
EMPTY = a_content("a:1-9", ContentClass.EMPTY)


def pair(executed: str = "a:1 a:3", **facts: Any) -> Model:
    made = replace(channel("a", auto=False, bypassed="a:2"), **facts)
    return model(server("a", "a:1-3"), server("b", executed, made))


def event(before: str = "") -> FailingEvent:
    start, end = (LogPosition.of(file="binlog.000001", position=at) for at in (100, 200))
    assert start is not None
    assert end is not None
    return FailingEvent(
        source="a",
        source_uuid=UUIDS["a"],
        gtid=next(iter(gtids("a:2").gtids())),
        start=start,
        end=end,
        error_code=1050,
        schema="d",
        statement="CREATE VIEW v AS SELECT 1",
        before=gtids(before) if before else GtidSet(),
    )


def unasked(servers: Model, finding: Any, **facts: Any) -> Case:
    return a_case(servers, finding, **{"is_chosen": False, **facts})


def without(name: str) -> Model:
    servers = dict(pair().servers)
    del servers[name]
    return Model(servers)


NAMED_NOWHERE = a_finding("H1", "a:2", channel=None)
UNREADABLE = [
    (without("b"), HOLE, "could not be read"),
    (pair(), NAMED_NOWHERE, "could not be read"),
    (pair(), a_finding("H1", "a:2", channel="other"), "could not be read"),
]


@pytest.mark.parametrize("strategy", [position_bypass, refetch, start_channel])
@pytest.mark.parametrize(("servers", "finding", "words"), UNREADABLE)
def test_a_channel_that_was_not_read_is_left_alone(
    strategy: Any, servers: Model, finding: Any, words: str
) -> None:
    assert words in reason(strategy(a_case(servers, finding, event=event(), content=FITTING)))


# -- past an event --------------------------------------------------------------------------------


def test_the_bypass_is_three_actions_in_this_order() -> None:
    done = proposed(position_bypass(unasked(pair(), a_finding("A1", ""), event=event("a:1"))))
    assert done.actions == (
        MovePast("b", "", event("a:1")),
        InjectEmpty("b", gtids("a:2"), may_be_executed=True),
        AutoPositionOn("b", "", filled=gtids("a:2")),
    )


@pytest.mark.parametrize(
    ("finding", "facts", "words"),
    [
        (a_finding("A1", ""), {"event": None}, "was not found in the source's log"),
        (a_finding("A3", ""), {}, "the source logged with error 1050"),
        (a_finding("A1", ""), {"event": event("a:1-3")}, "close them first"),
    ],
)
def test_the_bypass_is_refused(finding: Any, facts: dict[str, Any], words: str) -> None:
    case = unasked(pair("a:1"), finding, **{"event": event(), **facts})
    assert words in reason(position_bypass(case))


def test_a_worker_that_hides_its_error_is_bypassed_when_selected() -> None:
    case = a_case(pair(), a_finding("A3", ""), event=event())
    assert len(proposed(position_bypass(case)).actions) == 3


# -- fetched again --------------------------------------------------------------------------------


def fetched(case: Case) -> AutoPositionOn:
    [action] = proposed(refetch(case)).actions
    assert isinstance(action, AutoPositionOn)
    return action


def test_a_hole_whose_rows_fit_is_fetched_and_the_script_compares_them_again() -> None:
    action = fetched(unasked(pair(), HOLE, content=FITTING))
    assert action == AutoPositionOn(
        "b", "", filled=GtidSet(), rows=ROWS, compared_at=gtids("a:1 a:3")
    )
    declared = unasked(pair("a:1 a:3 b:1"), HOLE, content=FITTING, declared={"b": gtids("b:1")})
    declared = replace(declared, snapshot_executed={"a": gtids("a:1-3"), "b": gtids("a:1 a:3")})
    assert fetched(declared).compared_at == gtids("a:1 a:3 b:1")
    # What was left empty on another server is fetched here with its rows.
    elsewhere = unasked(pair(), HOLE, content=FITTING, declared={"c": gtids("a:2")})
    assert fetched(elsewhere) == action


@pytest.mark.parametrize(
    ("of_source", "is_above", "words"),
    [
        ("c:1-2", True, "b has c:3-5 over another channel, and a does not have it yet"),
        ("c:1-5", True, ""),
        ("c:1-5", False, ""),
        ("", False, "what b has from other sources than a was not read (c:1-5)"),
    ],
)
def test_what_came_over_another_channel_may_have_changed_the_rows_back(
    of_source: str, is_above: bool, words: str
) -> None:
    """A default is refused while the source has yet to get it; of another history it is named."""
    above = (channel("c"),) if is_above else ()
    hole = channel("a", auto=False, bypassed="a:2")
    servers = model(
        server("a", f"a:1-3 {of_source}".strip(), *above),
        server("b", "a:1 a:3 c:1-5", hole, channel("c", name="c")),
        server("c", "c:1-5"),
    )
    case = unasked(servers, HOLE, content=FITTING)
    outcome = refetch(case)
    expected = words.replace("c:", f"{UUIDS['c']}:")
    if is_above and words:
        assert expected in reason(outcome)
        chosen = proposed(refetch(a_case(servers, HOLE, content=FITTING)))
        assert any(expected in each for each in chosen.warnings)
    else:
        warnings = [each for each in proposed(outcome).warnings if "from other sources" in each]
        assert [expected in each for each in warnings] == ([True] if words else [])


def test_what_is_empty_needs_no_rows() -> None:
    action = fetched(unasked(pair(), HOLE, content=EMPTY))
    assert (action.rows, action.compared_at) == ((), None)
    filled = unasked(pair("a:1-3"), HOLE, content=None)
    assert fetched(filled).compared_at is None, "there is nothing to fetch any more"


@pytest.mark.parametrize(
    ("servers", "finding", "words"),
    [
        (without("a"), HOLE, "the source is not a server of this snapshot"),
        (pair(is_stuck=True), HOLE, "the applier is stopped by an event"),
        (pair().replace(server("a", "a:1-3", purged="a:1-2")), HOLE, "a can no longer send"),
    ],
)
def test_fetching_is_refused_even_when_selected(servers: Model, finding: Any, words: str) -> None:
    assert words in reason(refetch(a_case(servers, finding, content=FITTING)))


@pytest.mark.parametrize("strategy", [refetch, start_channel])
@pytest.mark.parametrize(
    ("condition", "who"),
    [
        ("SQL_BEFORE_GTIDS", "an operator"),
        (
            "SQL_AFTER_MTS_GAPS",
            "an operator, or mysqld itself at its restart (relay_log_recovery),",
        ),
    ],
)
def test_what_was_started_with_until_is_not_started_unasked(
    strategy: Any, condition: str, who: str
) -> None:
    servers = stopped(until=condition)
    refusal = reason(strategy(unasked(servers, STOPPED, content=EMPTY)))
    assert f"UNTIL {condition}: {who} wanted it to stop there" in refusal
    assert proposed(strategy(a_case(servers, STOPPED, content=EMPTY))).actions


@pytest.mark.parametrize("strategy", [refetch, start_channel])
def test_an_applier_stopped_within_its_delay_is_not_started_unasked(strategy: Any) -> None:
    servers = stopped(held_back_seconds=3600)
    refusal = reason(strategy(unasked(servers, STOPPED, content=EMPTY)))
    assert "SOURCE_DELAY is 3600 s" in refusal
    assert proposed(strategy(a_case(servers, STOPPED, content=EMPTY))).actions


def test_a_start_does_not_bring_what_the_plan_does_again() -> None:
    servers = stopped().replace(server("a", "a:1-4 c:1"))
    case = a_case(servers, STOPPED, content=EMPTY, redone=gtids("c:1"))
    assert "which earlier steps of this plan redo" in reason(start_channel(case))
    for not_brought in ("d:1", "a:1"):  # a:1 is there
        assert proposed(start_channel(replace(case, redone=gtids(not_brought)))).actions


def test_ddl_that_waits_is_named() -> None:
    servers = stopped(until="SQL_BEFORE_GTIDS")
    drops = a_content("a:4", ContentClass.DDL, statements=("DROP TABLE t",))
    question = ContentQuestion(drops.wanted, ("a",), ("a", "b"), is_in_order=True)
    waits: dict[str, Any] = {"waiting": {("b", ""): question}, "arrivals": {("b", ""): drops}}
    asked = unasked(servers, STOPPED, content=None)
    assert "`DROP TABLE t`" in reason(start_channel(replace(asked, **waits)))
    for case in (a_case(servers, STOPPED, **waits), replace(unasked(stopped(), STOPPED), **waits)):
        assert any("`DROP TABLE t`" in each for each in proposed(start_channel(case)).warnings)


def rows_on(a: RowsOn, b: RowsOn) -> Any:
    return a_content("a:2", rows=ROWS, rows_on={"a": a, "b": b})


AFTER, BEFORE = RowsOn(RowState.AS_AFTER), RowsOn(RowState.AS_BEFORE)
CONFLICT = RowsOn(RowState.CONFLICT, "row t `id` = 1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "has not been read"),
        (a_content("a:3", rows=ROWS, rows_on=FITS), "has not been read"),
        (rows_on(AFTER, CONFLICT), "may conflict with rows of b: row t"),
        (rows_on(BEFORE, BEFORE), "changed since on a: they are not as the transactions left"),
        (rows_on(CONFLICT, BEFORE), "changed since on a: row t"),
    ],
)
def test_what_may_conflict_is_fetched_only_when_selected(content: Any, words: str) -> None:
    refusal = reason(refetch(unasked(pair(), HOLE, content=content)))
    assert words in refusal
    assert "choose with --strategy H1=NAME: " in refusal
    chosen = proposed(refetch(a_case(pair(), HOLE, content=content)))
    [warning] = chosen.warnings
    assert words in warning
    assert "may stop the applier or overwrite rows" in warning
    [action] = chosen.actions
    assert isinstance(action, AutoPositionOn)
    assert (action.rows, action.compared_at) == ((), None), "rows that do not fit are no guard"


def test_definitions_that_do_not_fit_are_no_place_for_what_is_fetched() -> None:
    """Rows are as before, and a CHECK that only b has would stop its applier."""
    content = replace(FITTING, unlike_on={"b": "CHECK (`n` < 6)"})
    assert "CHECK (`n` < 6)" in reason(refetch(unasked(pair(), HOLE, content=content)))
    [warning] = proposed(refetch(a_case(pair(), HOLE, content=content))).warnings
    assert "may stop the applier of b" in warning
    elsewhere = replace(FITTING, unlike_on={"c": "CHECK (`n` < 6)"})
    assert fetched(unasked(pair(), HOLE, content=elsewhere)).rows == ROWS
    for beside in (server("c", "a:1-3", channel("a")), server("c", "a:1-3", channel("b"))):
        case = unasked(pair().replace(beside), HOLE, content=elsewhere)
        assert fetched(case).rows == ROWS, "c had all of it when it was read"


def test_rows_that_are_there_are_not_fetched_even_when_selected() -> None:
    refusal = reason(refetch(a_case(pair(), HOLE, content=rows_on(AFTER, AFTER))))
    assert (
        "are already on b: fetched again, the transactions would stop the applier or duplicate"
        in refusal
    )
    empty = a_case(pair(), HOLE, content=replace(EMPTY, rows_on={"b": AFTER}))
    assert fetched(empty).rows == ()


@pytest.mark.parametrize("state", [BEFORE, CONFLICT])
def test_rows_that_later_ones_left_alike_are_not_fetched_even_when_selected(state: RowsOn) -> None:
    """The older row would replace the newer one, without an error."""
    like = replace(state, is_like_source=True)
    refusal = reason(refetch(a_case(pair(), HOLE, content=rows_on(CONFLICT, like))))
    assert "changed since, and are equal on b and a: fetched again" in refusal
    assert proposed(refetch(a_case(pair(), HOLE, content=rows_on(CONFLICT, state)))).actions
    whole = a_case(pair(), a_finding("C3", ""), content=rows_on(CONFLICT, like))
    assert "changed since, and are equal on b and a: fetched again" in reason(refetch(whole))
    elsewhere = replace(rows_on(CONFLICT, state), rows_on={"c": like})
    assert proposed(refetch(a_case(pair(), HOLE, content=elsewhere))).actions


def test_what_steps_of_the_plan_apply_first_is_never_overtaken() -> None:
    case = a_case(pair("a:1 a:3"), HOLE, content=FITTING)
    before = {"a": gtids("a:1-3"), "b": gtids("a:1")}
    refusal = reason(refetch(replace(case, at_start=before)))
    assert f"earlier steps of this plan apply {UUIDS['a']}:3 on b first" in refusal
    assert fetched(replace(case, at_start=before, declared={"b": gtids("a:3")})).rows == ROWS
    assert fetched(replace(case, at_start={"b": gtids("a:1 a:3")})).rows == ROWS


def test_what_is_applied_first_may_change_the_rows() -> None:
    case = unasked(pair(), HOLE, content=FITTING)
    case = replace(case, snapshot_executed={"a": gtids("a:1-3"), "b": gtids("a:1")})
    assert "will be applied on b first" in reason(refetch(case))
    assert fetched(replace(case, declared={"b": gtids("a:3")})).rows == ROWS


@pytest.mark.parametrize(
    ("code", "grade", "wanted", "is_refused"),
    [
        ("H8", Grade.LIKELY, "f:1", True),  # of no server that was read
        ("H8", Grade.PROVED, "f:1", False),
        ("H1", Grade.LIKELY, "f:1", False),
        ("H8", Grade.LIKELY, "a:4", False),
    ],
)
def test_what_a_receiver_may_drop_again_is_not_fetched_unasked(
    code: str, grade: Grade, wanted: str, is_refused: bool
) -> None:
    servers = pair().replace(server("a", f"a:1-3 {wanted}"))
    content = a_content(wanted, ContentClass.EMPTY)
    outcome = refetch(unasked(servers, a_finding(code, wanted, grade=grade), content=content))
    if is_refused:
        assert "has the UUID of no server that was read" in reason(outcome)
    else:
        assert proposed(outcome).actions


def test_an_event_that_would_stop_the_applier_again_is_left_empty() -> None:
    done = proposed(refetch(unasked(pair(), HOLE, event=event(), content=FITTING)))
    assert done.actions == (
        InjectEmpty("b", gtids("a:2")),
        AutoPositionOn("b", "", filled=gtids("a:2")),
    )
    assert "as an empty transaction on b: compare what it did" in done.warnings[-1]
    # What is warned of the others stays.
    both = proposed(refetch(a_case(pair(), HOLE, event=event(), content=None)))
    assert len(both.warnings) == 2


def test_a_hole_that_two_findings_name_is_compared_once() -> None:
    """H8 about the same GTIDs was not read: its content is known from the other finding."""
    for wanted, words in (("a:2", ""), ("a:3", f"the content of {UUIDS['a']}:3 has not been read")):
        servers = pair("a:1 a:4").replace(server("a", "a:1-4"))
        holes = (OtherFinding("H8", "", gtids(wanted), None),)
        case = unasked(servers, HOLE, content=FITTING, holes=holes)
        if words:
            assert words in reason(refetch(case))
        else:
            assert fetched(case).rows == ROWS


def by_position(executed: str = "a:1") -> Case:
    """Make C3: by file position, and what its source has is not all there."""
    servers = pair(executed, bypassed=GtidSet())
    return unasked(servers, a_finding("C3", ""))


def test_by_file_position_all_that_the_source_may_send_again_is_compared() -> None:
    assert f"the content of {UUIDS['a']}:2-3 has not been read" in reason(refetch(by_position()))
    content = a_content("a:2-3", rows=ROWS, rows_on=FITS)
    action = fetched(replace(by_position(), content=content))
    assert (action.rows, action.compared_at) == (ROWS, gtids("a:1"))
    assert fetched(by_position("a:1-3")) == AutoPositionOn("b", "", filled=GtidSet())


def test_what_the_source_itself_gets_later_comes_in_its_order() -> None:
    case = by_position("a:1-3")
    later = case.model.replace(server("a", "a:1-3 c:1"))
    assert fetched(replace(case, model=later)).rows == ()
    # Read before, and brought in the model by a step that starts the channel: it may be passed.
    content = a_content("a:3", rows_on={"a": AFTER, "b": AFTER})
    assert "are already on b" in reason(refetch(replace(case, content=content)))


def test_by_file_position_what_is_purged_is_no_reason_to_refuse() -> None:
    case = unasked(pair("a:1-3").replace(server("a", "a:1-3", purged="a:1")), a_finding("C3", ""))
    assert fetched(case).filled == GtidSet()


def test_what_another_server_would_drop_for_its_server_id_is_not_fetched_unasked() -> None:
    twins = Model({name: replace(each, server_id=7) for name, each in pair().servers.items()})
    assert "have the same server_id: b drops" in reason(
        refetch(unasked(twins, HOLE, content=FITTING))
    )
    assert fetched(a_case(twins, HOLE, content=FITTING)).rows == ROWS


# -- started --------------------------------------------------------------------------------------

STOPPED = a_finding("A7", "a:2")


def stopped(**facts: Any) -> Model:
    return pair("a:1", **{"auto_position": True, "running": False, **facts})


QUIETLY = StartChannel("b", "", in_order=True)


def started(outcome: Outcome) -> bool:
    [action] = proposed(outcome).actions
    assert isinstance(action, StartChannel)
    return replace(action, in_order=False) == StartChannel("b", "")


def test_a_stopped_channel_is_started() -> None:
    assert started(start_channel(unasked(stopped(), STOPPED)))


def test_where_nothing_waits_the_server_must_not_write_until_it_is_started() -> None:
    assert proposed(start_channel(unasked(stopped(), STOPPED))).actions == (QUIETLY,)
    by_wish = replace(unasked(stopped(), STOPPED), is_chosen=True)
    assert proposed(start_channel(by_wish)).actions == (StartChannel("b", ""),)
    a = stopped()["a"]
    ring = stopped().replace(replace(a, channels=(channel("b"),)))
    assert proposed(start_channel(unasked(ring, STOPPED))).actions == (StartChannel("b", ""),)


@pytest.mark.parametrize(
    ("servers", "words", "warning"),
    [
        (
            stopped(source=None),
            "its source is not a server of this snapshot",
            "what the source of b would send is not known",
        ),
        (stopped(passed=gtids("a:2")), "b may fetch", "b may fetch"),
    ],
)
def test_a_channel_is_not_started_unasked(servers: Model, words: str, warning: str) -> None:
    assert words in reason(start_channel(unasked(servers, STOPPED)))
    chosen = start_channel(a_case(servers, STOPPED))
    assert started(chosen)
    [told] = [each for each in proposed(chosen).warnings if warning in each]
    assert told.startswith("it may stop the applier or overwrite rows: ")


def test_a_start_from_a_source_that_was_not_read_keeps_its_other_warnings() -> None:
    servers = stopped(source=None, passed=gtids("a:2"))
    texts = proposed(start_channel(a_case(servers, STOPPED))).warnings
    fetched_again, unknown = texts
    assert "b may fetch" in fetched_again
    assert "what the source of b would send is not known" in unknown


def test_a_channel_that_would_be_refused_is_not_even_started_when_selected() -> None:
    purged = stopped(passed=gtids("a:2")).replace(server("a", "a:1-3", purged="a:1-2"))
    assert "a would refuse b with error 1236" in reason(start_channel(a_case(purged, STOPPED)))
    by_file = purged.replace(server("b", "a:1", channel("a", auto=False, runs=False)))
    assert started(start_channel(unasked(by_file, STOPPED)))


def waiting(
    case: Case, content: Any, wanted: str, *, at: str = "b", in_order: bool = False
) -> Case:
    """Let transactions wait on the stopped channel of a server, their content as given."""
    question = ContentQuestion(gtids(wanted), ("a",), ("a", "b"), in_order)
    return replace(
        case,
        waiting={(at, ""): question},
        arrivals={} if content is None else {(at, ""): content},
        snapshot_executed={name: each.executed for name, each in case.model.servers.items()},
    )


def test_what_follows_transactions_that_a_server_has_passed_is_started_only_when_selected() -> None:
    """b would get a:2-3 behind a:1, which c has passed: what follows may change the same rows."""
    behind = replace(channel("b"), passed=gtids("a:1"))
    servers = stopped().replace(server("c", "a:9", behind))
    refused = reason(start_channel(unasked(servers, STOPPED)))
    assert "c passes" in refused
    assert "Answer H1, H5 and H8 first" in refused
    chosen = proposed(start_channel(a_case(servers, STOPPED)))
    assert any("c passes" in each for each in chosen.warnings)


def test_a_warning_about_rows_is_about_what_waits_and_no_more() -> None:
    """The source has c:1 by now as well: that comes later, in the order of its log."""
    servers = stopped().replace(server("a", "a:1-3 c:1"))
    case = waiting(unasked(servers, STOPPED), on_b(UNREAD), "a:2-3", in_order=True)
    [warning] = proposed(start_channel(case)).warnings
    assert warning.startswith(f"not all rows of {UUIDS['a']}:2-3 were compared on b")


def test_rows_are_compared_once_more_only_where_they_were_compared() -> None:
    """Rows of filtered tables are compared nowhere: only the order of the log counts."""
    case = waiting(unasked(stopped(), STOPPED), on_b(BEFORE), "a:2-3", in_order=True)
    filtered = {("b", ""): ContentQuestion(gtids("a:2-3"), (), (), is_in_order=True)}
    assert proposed(start_channel(replace(case, waiting=filtered))).actions == (QUIETLY,)
    # A switch to auto-position has no such guard: what was not read is named.
    back = ring(channel("b", runs=False, auto=False))
    unread = waiting(a_case(back, ERRANT), None, "b:1", at="a", in_order=True)
    done = proposed(start_channel(unread))
    assert done.actions == (AutoPositionOn("a", "", filled=GtidSet()),)
    assert any("were compared on a (its rows were not read)" in each for each in done.warnings)


def on_b(state: RowsOn, **facts: Any) -> Any:
    return a_content("a:2-3", rows=ROWS, rows_on={"a": AFTER, "b": state}, **facts)


UNREAD = RowsOn(RowState.UNREAD, "no key")


def test_a_log_that_does_not_follow_from_itself_is_not_delivered_unasked() -> None:
    """In the order of one log rows need not be compared, unless that order stops the applier."""
    for is_out_of_order, starts in ((False, True), (True, False)):
        content = replace(on_b(UNREAD), rows=None, is_out_of_order=is_out_of_order)
        case = waiting(unasked(stopped(), STOPPED), content, "a:2-3", in_order=True)
        outcome = start_channel(case)
        assert isinstance(outcome, Proposal) is starts, outcome
        if not starts:
            assert "do not follow from each other" in reason(outcome)
            named = replace(content, rows_unread="d.t: two changes")
            why = reason(start_channel(waiting(case, named, "a:2-3", in_order=True)))
            assert "do not follow from each other" in why
            assert "(d.t: two changes)" in why


def test_rows_that_can_be_compared_count_although_others_cannot() -> None:
    """A table without a key beside them must not hide a row that does not fit."""
    asked = unasked(stopped(), STOPPED)
    part = replace(on_b(UNREAD), rows=None, rows_in_part=ROWS)
    [action], [warning] = _in_order(asked, part)
    assert isinstance(action, StartChannel)
    assert (action.rows, action.in_order) == (ROWS, True), "the script looks at them once more"
    assert "not all rows of" in warning
    assert "were compared on b (no key)" in warning
    misfit = replace(part, misfits_in_part={"b": "row t `id` = 1"})
    for in_order in (True, False):
        outcome = start_channel(waiting(asked, misfit, "a:2-3", in_order=in_order))
        assert "changed since on b" in reason(outcome)
        assert "(row t `id` = 1)" in reason(outcome)
    elsewhere = replace(part, misfits_in_part={"a": "row t `id` = 1"})
    assert _in_order(asked, elsewhere)[0] == (action,), "a receives nothing"


def _in_order(case: Case, content: Any) -> tuple[Any, Any]:
    done = proposed(start_channel(waiting(case, content, "a:2-3", in_order=True)))
    return done.actions, done.warnings


@pytest.mark.parametrize(
    ("content", "words", "words_in_order"),
    [
        (None, "has not been read", ""),
        (on_b(AFTER), "an older version over a newer one", "an older version over a newer one"),
        (on_b(CONFLICT), "row t `id` = 1", "row t `id` = 1"),
        (on_b(UNREAD), "were not compared on b (no key)", ""),
        (a_content("a:2", rows_on={"b": BEFORE}), "a:3, which b would apply", ""),
        (on_b(BEFORE, server_ids={7: gtids("a:3")}), "as if b had committed it", "as if b had"),
    ],
)
def test_what_does_not_fit_is_started_only_when_selected(
    content: Any, words: str, words_in_order: str
) -> None:
    servers = stopped().replace(replace(stopped()["b"], server_id=7))
    asked = unasked(servers, STOPPED)
    refusal = reason(start_channel(waiting(asked, content, "a:2-3")))
    assert words in refusal.replace(str(UUIDS["a"]), "a")
    assert "--strategy A7=NAME" in refusal
    chosen = proposed(start_channel(waiting(a_case(servers, STOPPED), content, "a:2-3")))
    assert chosen.actions == (StartChannel("b", ""),)
    [warning] = chosen.warnings
    assert unreported_of((warning,)), "it counts for the exit status"
    assert words in warning.replace(str(UUIDS["a"]), "a")
    ordered = start_channel(waiting(asked, content, "a:2-3", in_order=True))
    if words_in_order:
        assert words_in_order in reason(ordered).replace(str(UUIDS["a"]), "a")
    else:
        [action] = proposed(ordered).actions
        assert isinstance(action, StartChannel)
        assert action.in_order


def test_a_switch_that_brings_nothing_of_its_finding_starts_what_waits_only_when_selected() -> None:
    """By file position b was given all that its source has, but c:1 waits in its relay log."""
    servers = pair("a:1-3", running=False, bypassed=GtidSet()).replace(server("a", "a:1-3 c:1"))
    case = waiting(unasked(servers, a_finding("C3", "")), a_content("c:1"), "c:1")
    seen = {"a": gtids("a:1-3"), "b": gtids("a:1-3")}
    case = replace(case, snapshot_executed=seen)
    why = reason(refetch(case))
    assert "c:1 may not fit: they were not compared on b" in why.replace(str(UUIDS["c"]), "c")
    assert "Compare the rows, then choose with --strategy C3=" in why
    chosen = proposed(refetch(replace(case, is_chosen=True)))
    assert [type(each) for each in chosen.actions] == [AutoPositionOn]
    [warning] = chosen.warnings
    assert warning.startswith(f"{MAY_DIFFER}it may stop the applier or overwrite rows: ")
    running = servers.replace(servers["b"].with_channel("", running=True, is_connected=True))
    assert proposed(refetch(replace(case, model=running))).warnings == (), "it is applied anyway"
    waits = running["b"].with_channel("", retrieved=gtids("a:1-3 c:1"))
    assert proposed(refetch(replace(case, model=running.replace(waits)))).warnings == ()
    permissive = running.replace(replace(waits, sends_by_sets=False))
    assert "its applier may skip" in reason(refetch(replace(case, model=permissive)))
    idle = running.replace(replace(running["b"], sends_by_sets=False))
    assert proposed(refetch(replace(case, model=idle))).warnings == ()


@pytest.mark.parametrize("is_asked", [True, False])
def test_rows_of_a_server_below_count_although_its_own_channel_does_not_ask(
    *, is_asked: bool
) -> None:
    """c gets from b what waits there; its rows were compared, or not, for the channel of b."""
    servers = stopped().replace(server("c", "a:1", channel("b")))
    names = ("a", "b", "c") if is_asked else ("a", "b")
    question = ContentQuestion(gtids("a:2-3"), ("a",), names, is_in_order=False)
    case = waiting(unasked(servers, STOPPED), on_b(BEFORE), "a:2-3")
    case = replace(case, waiting={("b", ""): question})
    assert "were not compared on c" in reason(start_channel(case))
    fits = replace(on_b(BEFORE), rows_on={"a": AFTER, "b": BEFORE, "c": BEFORE})
    assert proposed(start_channel(replace(case, arrivals={("b", ""): fits}))).actions


@pytest.mark.parametrize(("on_c", "starts"), [(UNREAD, True), (BEFORE, True), (CONFLICT, False)])
def test_rows_below_that_another_channel_brings_first_only_matter_if_they_do_not_fit(
    on_c: RowsOn, *, starts: bool
) -> None:
    """c gets all of it from a, and its rows could not be compared: that is no reason by itself."""
    servers = stopped().replace(server("c", "a:1-3", channel("b"), channel("a", name="x")))
    fits = a_content("a:2-3", rows=ROWS, rows_on={"a": AFTER, "b": BEFORE, "c": on_c})
    case = waiting(unasked(servers, STOPPED), fits, "a:2-3")
    seen = {"a": gtids("a:1-3"), "b": gtids("a:1"), "c": gtids("a:1")}
    outcome = start_channel(replace(case, snapshot_executed=seen))
    assert isinstance(outcome, Proposal) is starts
    assert starts or "were changed since on c" in reason(outcome)
    unlike = {("b", ""): replace(fits, unlike_on={"c": "d.t is not there"})}
    there = replace(case, arrivals=unlike)  # c had all of it when it was read
    assert proposed(start_channel(there)).actions
    assert "d.t is not there" in reason(start_channel(replace(there, snapshot_executed=seen)))


def test_rows_that_were_compared_for_another_channel_are_not_asked_for_again() -> None:
    """What waits on both b and d arrives on d: its rows were compared for the channel of d."""
    servers = stopped().replace(
        server("d", "a:1", channel("b"), channel("a", name="x", runs=False))
    )
    case = waiting(unasked(servers, STOPPED), on_b(BEFORE), "a:2-3")
    of_d = ContentQuestion(gtids("a:2-3"), ("a",), ("a", "d"), is_in_order=False)
    fits = a_content("a:2-3", rows=ROWS, rows_on={"a": AFTER, "d": BEFORE})
    both = replace(
        case,
        waiting={**case.waiting, ("d", "x"): of_d},
        arrivals={**case.arrivals, ("d", "x"): fits},
    )
    assert "were not compared on d" in reason(start_channel(case))
    assert proposed(start_channel(both)).actions


def test_the_script_looks_at_the_rows_that_fit_once_more() -> None:
    [action] = proposed(
        start_channel(waiting(unasked(stopped(), STOPPED), on_b(BEFORE), "a:2-3"))
    ).actions
    assert action == StartChannel("b", "", rows=ROWS, waiting=gtids("a:2-3"))


@pytest.mark.parametrize(("a", "is_refused"), [(AFTER, False), (BEFORE, True), (CONFLICT, True)])
def test_what_fills_a_hole_must_be_the_last_change_of_its_rows(
    a: RowsOn, *, is_refused: bool
) -> None:
    servers = pair("a:1 a:3", auto_position=True, running=False, bypassed=GtidSet())
    case = waiting(unasked(servers, STOPPED), rows_on(a, BEFORE), "a:2")
    outcome = start_channel(case)
    if is_refused:
        assert "applied after later transactions" in reason(outcome)
    else:
        assert proposed(outcome).actions


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"has_log": False}, "a has no open binary log"),
        ({"server_id": 7}, "have the same server_id"),
    ],
)
def test_what_would_not_connect_is_not_started(source: dict[str, Any], words: str) -> None:
    servers = stopped()
    servers = servers.replace(replace(servers["b"], server_id=7))
    servers = servers.replace(replace(servers["a"], **source))
    assert words in reason(start_channel(unasked(servers, STOPPED)))


# -- the way back ---------------------------------------------------------------------------------

ERRANT = a_finding("E1", "b:1")


def ring(back: Any, **executed: str) -> Model:
    held = {"a": "a:1-3", "b": "a:1-3 b:1", "c": "a:1-3", **executed}
    return model(
        server("a", held["a"], back),
        server("b", held["b"], channel("a")),
        server("c", held["c"], channel("b")),
    )


BACK = channel("b", runs=False)


@pytest.mark.parametrize(
    ("back", "action"),
    [
        (BACK, StartChannel("a", "")),
        # By file position: when selected, all that it has passed is fetched.
        (channel("b", runs=False, auto=False), AutoPositionOn("a", "", filled=GtidSet())),
    ],
)
def test_the_stopped_channel_that_brings_them_is_started(back: Any, action: Any) -> None:
    assert proposed(start_channel(a_case(ring(back), ERRANT))).actions == (action,)


@pytest.mark.parametrize(
    ("back", "words"),
    [
        (channel("b", runs=False, auto=False), "runs by file position"),
        (replace(BACK, passed=gtids("b:2")), "Answer H8 first"),
    ],
)
def test_a_way_back_that_may_fetch_more_is_not_started_unasked(back: Any, words: str) -> None:
    assert words in reason(start_channel(unasked(ring(back), ERRANT)))
    # Where nothing is, an invariant refuses, and says which script to run again.
    empty = ring(back, a="")
    assert words not in str(start_channel(unasked(empty, ERRANT)))


@pytest.mark.parametrize(
    "back",
    [channel("b"), channel("b", runs=False, stuck=True), channel("c", runs=False)],
)
def test_another_channel_is_not_on_the_way(back: Any) -> None:
    servers = ring(back)
    if back.source == "c":  # it has not got them
        servers = servers.replace(server("c", "a:1-3"))
    assert "no stopped channel would deliver them to a" in reason(
        start_channel(unasked(servers, ERRANT))
    )


def test_a_way_back_that_would_be_refused_is_named() -> None:
    servers = ring(BACK).replace(server("b", "a:1-3 b:1-2", channel("a"), purged="b:2"))
    for case in (a_case(servers, ERRANT), unasked(servers, ERRANT)):
        assert "b would refuse a with error 1236" in reason(start_channel(case))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"until": "SQL_BEFORE_GTIDS"}, "a was started with UNTIL SQL_BEFORE_GTIDS"),
        ({"held_back_seconds": 60}, "only the applier of a is stopped"),
        ({"passed": gtids("b:9")}, "a may fetch"),
        ({}, ""),
    ],
)
def test_a_way_back_that_an_operator_stopped_is_started_only_when_selected(
    facts: dict[str, Any], words: str
) -> None:
    servers = ring(replace(BACK, **facts))
    outcome = start_channel(unasked(servers, ERRANT))
    if words:
        assert words in reason(outcome)
    else:
        assert proposed(outcome).actions
    chosen = proposed(start_channel(a_case(servers, ERRANT)))
    assert [each.server for each in chosen.actions] == ["a"]


def test_a_way_back_to_a_server_that_would_drop_it_is_started_only_when_selected() -> None:
    servers = ring(BACK)
    twins = servers.replace(replace(servers["a"], server_id=7))
    twins = twins.replace(replace(twins["c"], server_id=7))
    assert "c and a have the same server_id" in reason(start_channel(unasked(twins, ERRANT)))
    assert proposed(start_channel(a_case(twins, ERRANT))).actions


@pytest.mark.parametrize("name", ["a", "b"])
def test_both_ends_of_the_way_back_must_have_been_read(name: str) -> None:
    servers = dict(ring(BACK).servers)
    del servers[name]
    assert "could not be read" in reason(start_channel(a_case(Model(servers), ERRANT)))


def test_rows_are_compared_on_the_way_back_as_well() -> None:
    case = unasked(ring(BACK), ERRANT)
    content = a_content("b:1", rows=ROWS, rows_on={"a": AFTER, "b": AFTER})
    assert "older version" in reason(start_channel(waiting(case, content, "b:1", at="a")))
    fits = a_content("b:1", rows=ROWS, rows_on={"a": BEFORE, "b": AFTER, "c": BEFORE})
    outcome = proposed(start_channel(waiting(case, fits, "b:1", at="a")))
    started = StartChannel("a", "", rows=ROWS, waiting=gtids("b:1"))
    assert (outcome.actions, outcome.warnings) == ((started,), ())
