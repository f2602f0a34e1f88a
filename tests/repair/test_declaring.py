"""What is declared unneeded, where, in which order, and what is refused: one strategy at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import RowsOn, RowState
from repair.model.actions import (
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    ResetAndPurge,
    StartChannel,
)
from repair.model.replication_model import Model
from repair.model.settled_model import settle
from repair.model.strategy_case import (
    MAY_DIFFER,
    Case,
    Outcome,
    Refusal,
    SavedContent,
    StreamedContent,
)
from repair.sql.replay import Replayed
from repair.strategies.leaving_out import (
    INJECTED_GTIDS_MAX,
    INJECTED_PER_SCRIPT_MAX,
    INJECTED_UNASKED_MAX,
    gtid_purged_append,
    inject_empty,
    reset_and_purge,
)
from tests.repair.build import NEW, OLD, channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, proposed, reason, redone, shown
from topology.catalogue.findings import Grade
from topology.readings.content_class import ContentClass

ERRANT = a_finding("E1", "b:1")
HOLE = a_finding("H1", "a:2")
NOTHING = ContentClass.EMPTY


def errant(*others: Any, source: Any = None) -> Model:
    return model(source or server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")), *others)


def hole(version: Any = NEW, **facts: Any) -> Model:
    return model(
        server("a", "a:1-3", version=version),
        server("b", "a:1 a:3", channel("a", **facts), version=version),
    )


def unasked(servers: Model, finding: Any, **facts: Any) -> Case:
    """Make the case of a strategy that nobody selected, about transactions that are empty."""
    content = a_content("a:1-99999 b:1-99", NOTHING)
    return a_case(servers, finding, **{"is_chosen": False, "content": content, **facts})


def targets(outcome: Outcome) -> list[str]:
    kinds = (InjectEmpty, AppendPurged, ResetAndPurge)
    return [each.server for each in proposed(outcome).actions if isinstance(each, kinds)]


# -- empty transactions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "facts", "words"),
    [
        (a_finding("E1", "b:1", grade=Grade.LIKELY), {}, "E1 is not proved"),
        (ERRANT, {"meant_to_arrive": ("P1", "H3")}, "repair P1, H3 first"),
        (ERRANT, {"content": None}, "has not been read"),
        (ERRANT, {"content": a_content("b:1")}, "needs a decision"),
        (ERRANT, {"content": a_content("b:2", NOTHING)}, "needs a decision"),
        (a_finding("P1", "a:2"), {}, "only planned when selected"),
        (a_finding("A2", "a:2"), {}, "only planned when selected"),
    ],
)
def test_what_is_not_planned_unasked(finding: Any, facts: dict[str, Any], words: str) -> None:
    servers = errant() if finding.code == "E1" else hole()
    assert words in reason(inject_empty(unasked(servers, finding, **facts)))
    selected = {"content": a_content("a:2 b:1"), **facts, "is_chosen": True}
    assert proposed(inject_empty(unasked(servers, finding, **selected))).actions


def test_what_an_earlier_step_makes_unreadable_is_left_out_only_when_selected() -> None:
    """An earlier step took b:1 into gtid_purged of b: no log shows any more what b has under it."""
    servers = errant().replace(server("b", "a:1-3 b:1", channel("a"), purged="b:1"))
    case = unasked(servers, ERRANT, declared={"b": gtids("b:1")})
    assert "no log of b shows what it has under" in reason(inject_empty(case))
    assert targets(inject_empty(replace(case, is_chosen=True))) == ["a"]


def test_a_hole_is_filled_although_its_server_goes_on_committing() -> None:
    """Only what is extra on a server grows with what it commits."""
    servers = hole().replace(server("b", "a:1 a:3 b:1", channel("a")))
    servers = servers.replace(server("a", "a:1-3", purged="a:1-2"))
    assert targets(inject_empty(unasked(servers, HOLE))) == ["b"]


def test_what_was_received_before_a_reset_may_be_another_transaction() -> None:
    b = hole()["b"].with_channel("", may_be_former=True)
    servers = hole().replace(b)
    outcome = inject_empty(unasked(servers, HOLE))
    assert "may have reused the GTIDs" in reason(outcome)
    assert targets(inject_empty(replace(unasked(servers, HOLE), is_chosen=True))) == ["b"]


def test_nothing_is_emptied_while_its_holder_commits_more_of_its_own() -> None:
    """Unless that goes to the source by itself: the finding is about all of it a moment later."""
    b = server("b", "a:1-3 b:1-2", channel("a"))
    servers = model(server("a", "a:1-3"), b)
    assert "still commits" in reason(inject_empty(unasked(servers, ERRANT)))
    had_it = servers.replace(server("a", "a:1-3 b:2"))
    assert targets(inject_empty(unasked(had_it, ERRANT))) == ["a"]
    assert targets(inject_empty(unasked(servers, a_finding("E1", "b:1-2")))) == ["a"]
    both = model(server("a", "a:1-3", channel("b", runs=False)), b)
    assert "can still deliver" in reason(inject_empty(unasked(both, ERRANT)))
    assert targets(inject_empty(replace(unasked(servers, ERRANT), is_chosen=True))) == ["a"]


def test_what_a_repaired_channel_delivers_is_not_left_out_unasked() -> None:
    stuck = hole(runs=False)
    assert "can still deliver" in reason(inject_empty(unasked(stuck, HOLE)))
    chosen = proposed(inject_empty(a_case(stuck, HOLE, content=a_content("a:2"))))
    assert "this strategy prevents it" in "\n".join(chosen.warnings)
    gone = stuck.replace(server("a", "a:1-3", purged="a:1-2"))
    assert shown(proposed(inject_empty(unasked(gone, HOLE))).actions) == [
        "b InjectEmpty a:2",
        "b StartChannel",
    ]


@pytest.mark.parametrize(
    ("count", "is_chosen", "scripts"),
    [
        (1, False, 1),
        (INJECTED_PER_SCRIPT_MAX, False, 1),
        (INJECTED_PER_SCRIPT_MAX + 1, False, 2),
        (INJECTED_UNASKED_MAX, False, 10),
        (INJECTED_UNASKED_MAX + 1, False, None),
        (INJECTED_UNASKED_MAX + 1, True, 11),
        (INJECTED_GTIDS_MAX, True, 100),
        (INJECTED_GTIDS_MAX + 1, True, None),
    ],
)
def test_how_many_are_planned(count: int, is_chosen: bool, scripts: int | None) -> None:
    wanted = f"b:1-{count}"
    servers = model(server("a", "a:1"), server("b", f"a:1 {wanted}", channel("a")))
    content = a_content(wanted, NOTHING)
    case = a_case(servers, a_finding("E1", wanted), is_chosen=is_chosen, content=content)
    outcome = inject_empty(case)
    if scripts is None:
        assert "empty transactions are" in reason(outcome)
        return
    actions = [each for each in proposed(outcome).actions if isinstance(each, InjectEmpty)]
    assert len(actions) == scripts
    assert all(each.gtids.gtid_count <= INJECTED_PER_SCRIPT_MAX for each in actions)
    assert sum(each.gtids.gtid_count for each in actions) == count


@pytest.mark.parametrize("purged", ["", "b:1-4611686018427387904"])
def test_a_range_of_2_to_the_62_is_one_statement_or_refused(purged: str) -> None:
    """No list of it is ever made: each would end a test by its memory."""
    wanted = f"b:1-{2**62}"
    servers = model(server("a", "a:1"), server("b", f"a:1 {wanted}", channel("a"), purged=purged))
    case = a_case(servers, a_finding("E1", wanted), content=a_content(wanted, unread="too many"))
    assert "4,611,686,018,427,387,904 empty transactions are too many" in reason(inject_empty(case))
    outcome = proposed(gtid_purged_append(case))
    [action] = outcome.actions
    assert action == AppendPurged("a", gtids(wanted))
    said = "\n".join(outcome.warnings)
    assert ("is NOT saved: it is in no binary log of b" in said) is bool(
        purged
    ) or "NOT saved" in said
    assert len(said) < 5_000
    old = model(*(replace(each, version=OLD) for each in servers.servers.values()))
    reset = proposed(reset_and_purge(a_case(old, a_finding("E1", wanted))))
    assert [each.server for each in reset.actions if isinstance(each, ResetAndPurge)] == ["a"]


@pytest.mark.parametrize("strategy", [inject_empty, gtid_purged_append])
def test_no_source_of_the_replica_is_left_out(strategy: Any) -> None:
    channels = channel("a", name="x"), channel("c", name="y"), channel("out", name="z")
    servers = model(server("a", "a:1"), server("c", "c:1"), server("b", "a:1 b:1 c:1", *channels))
    # One E1 names all of them; the tail that one source lost is of that one alone.
    done = strategy(a_case(servers, ERRANT))
    assert {each.server for each in proposed(done).actions} == {"a", "c"}
    lost = strategy(a_case(servers, a_finding("E3", "b:1")))
    assert {each.server for each in proposed(lost).actions} == {"a"}
    # Stopped between the two, no audit finds the second one.
    told = "no later audit reports that a or c is still without"
    assert any(told in each for each in proposed(done).warnings)
    assert not any("no later audit" in each for each in proposed(lost).warnings)


def test_the_source_of_the_finding_comes_last_so_that_a_stop_in_between_is_reported() -> None:
    # c is linked with a by d alone, which replicates from both, and has stopped one channel.
    d = server("d", "a:1", channel("a", runs=False), channel("c", name="c"))
    servers = model(server("a", "a:1"), server("b", "a:1 b:1", channel("a")), server("c", "a:1"), d)
    done = proposed(inject_empty(a_case(servers, ERRANT)))
    assert [each.server for each in done.actions if isinstance(each, InjectEmpty)] == ["c", "a"]
    assert not any("no later audit" in each for each in done.warnings)
    assert any("is left out permanently on c, a, d" in each for each in done.warnings)
    # GTIDs of the source itself: the others skip what it would commit under them.
    own = servers.replace(server("b", "a:1-2", channel("a")))
    done = proposed(inject_empty(a_case(own, a_finding("E1", "a:2"))))
    assert [each.server for each in done.actions if isinstance(each, InjectEmpty)] == ["a", "c"]
    assert any("reports that c is still without" in each for each in done.warnings)


def test_only_what_is_missing_is_added_and_only_where_it_is_missing() -> None:
    whole = hole().replace(server("b", "a:1-3", channel("a")))
    for strategy in (inject_empty, gtid_purged_append):
        there = strategy(a_case(whole, HOLE))
        assert isinstance(there, Refusal)
        assert "will deliver aaaaaaaa-0000-0000-0000-000000000000:2 to b" in there.reason
        partly = a_case(hole(), a_finding("H1", "a:2-3"))
        [action] = proposed(strategy(partly)).actions
        assert isinstance(action, InjectEmpty | AppendPurged)
        assert action.gtids == gtids("a:2")
        # Another channel is to bring a:3: a part of the hole must not be answered without the rest.
        coming = replace(partly, snapshot_executed={"a": gtids("a:1-3"), "b": gtids("a:1")})
        assert "will deliver aaaaaaaa-0000-0000-0000-000000000000:3 to b" in reason(
            strategy(coming)
        )
        rows = a_content("a:2-3", rows_on={"b": RowsOn(RowState.AS_AFTER)})
        assert "would stop or duplicate data" in reason(strategy(replace(coming, content=rows)))


def test_what_earlier_steps_left_empty_comes_by_no_channel() -> None:
    whole = hole().replace(server("b", "a:1-3", channel("a")))
    left_out = a_case(whole, HOLE, declared={"b": gtids("a:2")})
    left_out = replace(left_out, snapshot_executed={"a": gtids("a:1-3"), "b": gtids("a:1 a:3")})
    assert targets(inject_empty(left_out)) == []


def test_a_server_below_one_that_has_them_gets_them_by_itself() -> None:
    below = server("c", "a:1-3", channel("b"), channel("a", name="second"))
    assert targets(gtid_purged_append(a_case(errant(below), ERRANT))) == ["a"]
    # What b has purged it cannot send.
    purged = errant(below).replace(server("b", "a:1-3 b:1", channel("a"), purged="b:1"))
    assert targets(gtid_purged_append(a_case(purged, ERRANT))) == ["c", "a"]
    # Its applier may be held up, or skip them: a, which it replicates from, would refuse it then.
    read = {each.name: each.executed for each in errant(below).servers.values()}
    for seen, is_refused in ((read, True), ({**read, "c": gtids("a:1-3 b:1")}, False)):
        case = a_case(settle(errant(below)), ERRANT, snapshot_executed=seen)
        outcome = gtid_purged_append(case)
        assert is_refused == ("c had not applied" in str(outcome))
        assert is_refused or targets(outcome) == ["a"]
    beside = server("c", "a:1-3", channel("a"))
    assert targets(gtid_purged_append(a_case(errant(beside), ERRANT))) == ["c", "a"]
    assert targets(inject_empty(a_case(errant(beside), ERRANT))) == ["a"]


def test_a_source_outside_the_snapshot_is_no_target() -> None:
    outside = channel("a", name="elsewhere")
    for name in (None, "z"):  # z is in the fleet, and was not read
        source = server("a", "a:1-3", replace(outside, source=name))
        servers = errant(source=source)
        assert targets(inject_empty(a_case(servers, ERRANT))) == ["a"]


@pytest.mark.parametrize("strategy", [inject_empty, gtid_purged_append])
@pytest.mark.parametrize(
    ("servers", "finding"),
    [(model(server("b", "b:1")), ERRANT), (model(server("a", "a:1-3")), HOLE)],
)
def test_the_server_that_needs_them_must_have_been_read(
    strategy: Any, servers: Model, finding: Any
) -> None:
    assert "could not be read" in reason(strategy(a_case(servers, finding)))


def test_a_set_that_nobody_could_name_is_refused() -> None:
    assert "could not be identified" in reason(inject_empty(a_case(hole(), a_finding("P1", ""))))
    # A stopped applier's finding has no set: the content of what it met has.
    met = a_case(hole(), a_finding("A2", ""), content=a_content("a:2"))
    assert shown(proposed(inject_empty(met)).actions)[0] == "b InjectEmpty a:2"


# -- what is said about the data -------------------------------------------------------------------


def warnings(case: Case) -> str:
    return "\n".join(proposed(inject_empty(case)).warnings)


def test_what_is_lost_is_named_and_saved() -> None:
    content = a_content("b:1", redo=redone("b:1"))
    outcome = proposed(inject_empty(a_case(errant(), ERRANT, content=content)))
    [saved] = outcome.saved
    assert isinstance(saved, SavedContent)
    assert saved.file_name.startswith("content-of-E1-")
    assert "INSERT INTO d.t VALUES (1, 1);" in saved.text
    assert "is left out permanently on a (data: " in "\n".join(outcome.warnings)
    assert "NOT saved" not in "\n".join(outcome.warnings)


@pytest.mark.parametrize(("purged", "is_said"), [("", False), ("a:1", False), ("a:1-2", True)])
def test_what_the_source_has_purged_is_compared_by_no_audit(purged: str, *, is_said: bool) -> None:
    """The content was read from another server, so it is known what is left out. The status is 1."""
    servers = hole()
    servers = servers.replace(replace(servers["a"], purged=gtids(purged)))
    case = a_case(servers, a_finding("H3", "a:2"), content=a_content("a:2"))
    outcome = proposed(inject_empty(case))
    said = [each for each in outcome.warnings if "audits compare nothing there" in each]
    assert bool(said) is is_said
    assert all(each.startswith(MAY_DIFFER) for each in said)


def test_what_the_applier_stopped_at_is_saved_when_it_is_left_out() -> None:
    """The finding has no set: its content has it."""
    met = a_case(
        hole(), a_finding("A2", ""), content=a_content("a:2", redo=redone("a:2"), read_from="a")
    )
    [saved] = proposed(inject_empty(met)).saved
    assert isinstance(saved, SavedContent)
    assert "INSERT INTO d.t VALUES (2, 1);" in saved.text


# The plan has no SQL: more than its limits (no `redo`), or no text for its client.
UNUSUAL = (Replayed("b:1", ("INSERT INTO d.t VALUES ('a\rb');",), gtid=next(gtids("b:1").gtids())),)


@pytest.mark.parametrize("redo", [(), UNUSUAL])
@pytest.mark.parametrize("unread", ["", "only the first 10,000 were read"])
def test_what_is_too_much_for_a_plan_is_streamed_from_the_log(redo: Any, unread: str) -> None:
    content = a_content("b:1", redo=redo, unread=unread)
    outcome = proposed(inject_empty(a_case(errant(), ERRANT, content=content)))
    [saved] = outcome.saved
    assert saved == StreamedContent(f"content-of-E1-{ERRANT.id}.sql", ERRANT.id, "b", gtids("b:1"))
    assert "NOT saved" not in "\n".join(outcome.warnings)


def test_what_no_log_has_is_not_saved_and_the_rest_is() -> None:
    finding = a_finding("E1", "b:1-9")
    servers = model(server("a", "a:1-3"), server("b", "a:1-3 b:1-9", channel("a"), purged="b:1-4"))
    unread = "b:1-4 is in no binary log of b"
    outcome = proposed(
        inject_empty(a_case(servers, finding, content=a_content("b:1-9", unread=unread)))
    )
    [saved] = outcome.saved
    assert isinstance(saved, StreamedContent)
    assert saved.gtids == gtids("b:5-9")
    assert f"{gtids('b:1-4')} is NOT saved: it is in no binary log of b" in "\n".join(
        outcome.warnings
    )


def test_what_no_sql_can_express_is_not_saved_and_the_log_is_to_be_copied() -> None:
    content = a_content("b:1", redo=redone("b:1", problem="LOAD DATA"), unwritable="b:1: LOAD DATA")
    outcome = proposed(inject_empty(a_case(errant(), ERRANT, content=content)))
    assert outcome.saved == ()
    said = "\n".join(outcome.warnings)
    assert "is NOT saved: b:1: LOAD DATA. Copy the binary logs of b that have it" in said


def test_content_that_was_not_read_is_not_saved_and_the_plan_says_so() -> None:
    assert "is NOT saved: no log was read" in warnings(a_case(errant(), ERRANT))
    assert "its content was not read" in warnings(a_case(errant(), ERRANT))


@pytest.mark.parametrize("state", RowState)
def test_what_other_steps_left_out_already_is_not_left_out_again(state: RowState) -> None:
    """Two channels stopped at one row: the steps for the first leave out what both deliver."""
    whole = errant(source=server("a", "a:1-3 b:1"))
    said = f"the other steps of this plan already leave {gtids('b:1')} out. For this finding"
    assert warnings(a_case(whole, ERRANT)) == f"E1 a → b: {said} nothing more is left out"
    stopped = a_finding("A2", "", channel="second")
    pair = model(
        server("a", "a:1-3"), server("b", "a:1-3", channel("a", name="second", stuck=True))
    )
    content = a_content("a:3", redo=redone("a:3"), rows_on={"b": RowsOn(state)})
    case = a_case(pair, stopped, content=content, declared={"b": gtids("a:3")})
    case = replace(case, snapshot_executed={"a": gtids("a:1-3"), "b": gtids("a:1-2")})
    outcome = proposed(inject_empty(case))
    assert outcome.warnings[0].startswith("A2 a → b, channel second: the other steps of this plan")
    assert "no server" not in "\n".join(outcome.warnings)
    assert outcome.saved == ()


def test_what_is_empty_needs_no_warning() -> None:
    outcome = proposed(inject_empty(unasked(errant(), ERRANT)))
    assert (outcome.warnings, outcome.saved) == ((), ())


def test_rows_that_are_there_already_are_no_loss() -> None:
    there = a_content("a:2", redo=redone("a:2"), rows_on={"b": RowsOn(RowState.AS_AFTER)})
    stopped = hole(runs=False)
    outcome = proposed(inject_empty(unasked(stopped, HOLE, content=there)))
    assert outcome.saved == ()
    [warning] = outcome.warnings
    assert "are already on b" in warning
    for state in (RowState.AS_BEFORE, RowState.CONFLICT, RowState.UNREAD):
        other = a_content("a:2", rows_on={"b": RowsOn(state)})
        assert "needs a decision" in reason(inject_empty(unasked(stopped, HOLE, content=other)))
    # Of DDL no row shows whether it is there.
    ddl = a_content("a:2", ContentClass.DDL, rows_on={"b": RowsOn(RowState.AS_AFTER)})
    assert "needs a decision" in reason(inject_empty(unasked(stopped, HOLE, content=ddl)))
    # An errant transaction's rows are on the replica, and missing on the source.
    extra = a_content("b:1", rows_on={"b": RowsOn(RowState.AS_AFTER)})
    assert "needs a decision" in reason(inject_empty(unasked(errant(), ERRANT, content=extra)))


# -- gtid_purged, and the reset before 8.0 --------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "version", "words"),
    [
        ({"is_chosen": False}, NEW, "only planned when selected"),
        ({"unread": ("c", "d")}, NEW, "c, d could not be read"),
        ({}, OLD, "b runs 5.6.24, which cannot append to gtid_purged"),
    ],
)
def test_appending_is_refused(facts: dict[str, Any], version: Any, words: str) -> None:
    assert words in reason(gtid_purged_append(a_case(hole(version), HOLE, **facts)))


def chained(**facts: Any) -> Model:
    """Return a → b → c on 5.6, where b misses a:2."""
    made: dict[str, Any] = {"below": "a:1-3", "auto": True, **facts}
    return model(
        server("a", "a:1-3", version=OLD),
        server(
            "b",
            "a:1 a:3",
            channel("a", auto=False, bypassed="a:2"),
            channel("a", name="other", runs=False),
            version=OLD,
        ),
        server(
            "c",
            made["below"],
            channel("b", auto=made["auto"]),
            channel("b", name="spare", runs=False),
            version=OLD,
        ),
    )


def test_the_reset_stops_what_runs_below_and_starts_it_again() -> None:
    outcome = proposed(reset_and_purge(a_case(chained(), HOLE)))
    assert shown(outcome.actions) == [
        "c StopChannel",
        "b ResetAndPurge",
        "c StartChannel",
        "b AutoPositionOn",
    ]
    reset = outcome.actions[1]
    assert isinstance(reset, ResetAndPurge)
    assert (reset.gtids, reset.executed) == (gtids("a:2"), gtids("a:1 a:3"))
    assert reset.restart == ("",), "a stopped channel stays stopped"


@pytest.mark.parametrize(
    ("servers", "facts", "words"),
    [
        (model(server("a", "a:1-3")), {}, "server to reset could not be read"),
        (hole(), {}, "gtid_purged_append needs no reset"),
        (chained(), {"is_chosen": False}, "only planned when selected"),
        (chained(), {"unread": ("d",)}, "d could not be read, and may replicate from it"),
        (
            chained(),
            {"snapshot_executed": {"b": gtids("a:1")}},
            "b is still receiving transactions",
        ),
        (chained(auto=False), {}, "c replicates from it by file position"),
        (chained(below="a:1"), {}, "c, c still needs transactions"),
        (
            chained(),
            {"snapshot_executed": {"b": gtids("a:1 a:3"), "c": gtids("a:1")}},
            "c, c still needs transactions",
        ),
        (chained(below="a:1 a:3"), {}, "c, c still needs transactions"),
    ],
)
def test_the_reset_is_refused(servers: Model, facts: dict[str, Any], words: str) -> None:
    assert words in reason(reset_and_purge(a_case(servers, HOLE, **facts)))


# -- the way home ---------------------------------------------------------------------------------


def resuming_actions(servers: Model, finding: Any) -> list[Any]:
    actions = proposed(inject_empty(a_case(servers, finding))).actions
    return [each for each in actions if not isinstance(each, InjectEmpty)]


def test_a_holes_channel_ends_by_auto_position_and_running() -> None:
    assert resuming_actions(hole(), HOLE) == []
    assert resuming_actions(hole(runs=False), HOLE) == [StartChannel("b", "")]
    assert resuming_actions(hole(stuck=True), HOLE) == [StartChannel("b", "")]
    assert resuming_actions(hole(auto=False), HOLE) == [
        AutoPositionOn("b", "", filled=gtids("a:2"))
    ]
    assert resuming_actions(hole(), a_finding("H1", "a:2", channel=None)) == []


def test_a_stopped_channel_comes_home_only_with_rows_that_fit() -> None:
    """Unless selected: nothing else looked at what waits on it besides the hole."""
    servers = hole(runs=False).replace(server("a", "a:1-4"))
    question = ContentQuestion(gtids("a:2 a:4"), ("a",), ("a", "b"))
    for state, steps in ((RowState.AS_BEFORE, 2), (RowState.CONFLICT, 1)):
        on = {"a": RowsOn(RowState.AS_AFTER), "b": RowsOn(state)}
        content = a_content("a:2 a:4", rows=(), rows_on=on)
        case = replace(
            unasked(servers.replace(servers["b"].with_channel("", bypassed=gtids("a:2"))), HOLE),
            content=a_content("a:2", rows_on={"b": RowsOn(RowState.AS_AFTER)}),
            waiting={("b", ""): question},
            arrivals={("b", ""): content},
        )
        assert len(proposed(inject_empty(case)).actions) == steps
        assert len(proposed(inject_empty(replace(case, is_chosen=True))).actions) == 2


def test_a_channel_stays_by_file_position_where_auto_position_would_bring_more() -> None:
    for passed, bypassed, is_done in (
        ("a:4", "", False),
        ("", "a:2 a:4", False),
        ("a:2-3", "", True),
    ):
        made = replace(channel("a", auto=False, bypassed=bypassed), passed=gtids(passed))
        servers = hole().replace(server("b", "a:1 a:3", made))
        assert bool(resuming_actions(servers, HOLE)) == is_done


def test_a_stopped_applier_by_file_position_is_only_started() -> None:
    stuck = replace(channel("a", auto=False, stuck=True), stuck_at=gtids("a:2"))
    servers = hole().replace(server("b", "a:1 a:3", stuck))
    case = a_case(servers, a_finding("A2", ""), content=a_content("a:2"))
    *_, start = proposed(inject_empty(case)).actions
    assert start == StartChannel("b", "")


def test_what_a_stopped_applier_applies_behind_later_ones_is_named() -> None:
    for executed, is_named in (("a:1 a:4", True), ("a:1", False)):
        stuck = replace(channel("a", stuck=True), stuck_at=gtids("a:2"))
        servers = model(server("a", "a:1-4"), server("b", executed, stuck))
        case = a_case(servers, a_finding("A2", ""), content=a_content("a:2"))
        named = ":3 waits as well, and b has executed later transactions"
        assert (named in warnings(case)) == is_named
    assert "waits as well" not in warnings(a_case(hole(), HOLE))


def back(**facts: Any) -> Model:
    made = channel(facts.pop("source", "b"), **{"runs": False, **facts})
    return errant(server("c", "a:1-3"), source=server("a", "a:1-3", made))


def test_the_channel_to_the_source_is_started_if_it_is_stopped_and_will_be_served() -> None:
    assert resuming_actions(back(), ERRANT) == [StartChannel("a", "")]
    for servers in (back(runs=True), back(auto=False), back(source="c")):
        assert resuming_actions(servers, ERRANT) == []
    purged = back().replace(server("b", "a:1-3 b:1-2", channel("a"), purged="b:2"))
    assert resuming_actions(purged, ERRANT) == []


def test_the_channel_that_the_source_refused_is_started_for_a_lost_tail_only() -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1-5", channel("a", runs=False)))
    assert resuming_actions(servers, a_finding("E3", "a:4-5")) == [StartChannel("b", "")]
    assert resuming_actions(servers, a_finding("E1", "a:4-5")) == []
    more = servers.replace(server("b", "a:1-6", channel("a", runs=False)))
    assert resuming_actions(more, a_finding("E3", "a:4-5")) == []  # a:6 would still be refused
