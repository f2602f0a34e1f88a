"""Every strategy with a script, on real servers: no acknowledged row is lost unannounced.

A row that a client was told is committed exists, after the plan, on every server that should have
it, or the plan's runbook announced before that it will not. Afterwards the audit has no finding but
those that the plan announced. Each script is cut off behind each of its statements, and run again,
twice. `repair apply` runs each plan as well, to its end.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from compose import faults, faults_logs, faults_plans
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.shapes import Topology, wait_for
from repair import Plan
from repair.adapters.apply_plan import RunEnd
from repair.applying.procedures_applied import ProcedureState
from repair.render import RUNBOOK, render_files
from tests.repair.applying import Applying, Killed
from tests.repair.live import Examination, await_clean, examine, executed, rows
from tests.repair.truth_faults import (
    attached_primary,
    by_hand,
    by_hand_in_pair,
    by_position,
    bypassed_in_star,
    check_violated,
    conflict,
    errant_rows,
    errant_rows_in_pair,
    failing_view,
    log_lost_in_star,
    old_primary,
    one_way,
    purged_errant_rows,
    purged_errant_rows_in_pair,
    relay_position,
    rows_behind_a_stopped_channel,
    stopped,
    table_there,
)

pytestmark = [pytest.mark.slow, pytest.mark.mysql]

Rows = list[tuple[object, ...]]
Held = Mapping[str, Rows]  # rows of one table, by server
_CHANGE = "-- the change"
_PLAN_AGAIN = {
    "RedoTransactions": "nothing was changed; audit and plan again",
    "StartChannel": "an interrupted script): an operator may want that; audit and plan again",
}
# No table shows who committed the last one of the GTIDs that a source assigns itself (E3).
_GO_ON = "Had this script run before? Then go on with the next one"
_LEAVE_OUT = {"InjectEmpty", "AppendPurged", "ResetAndPurge", "UndoRows"}
_LEFT_OUT = "the data will NOT"


@dataclass(frozen=True)
class Case:
    """A fault, the strategy that answers it, and the rows that every server has afterwards."""

    name: str
    shape: str
    fault: Callable[[Topology], object]
    table: str
    ends: Callable[[Held], Held]
    choice: Mapping[str, str] | None = None
    announces: str = ""  # what the runbook shows of rows that are lost


def as_on(name: str) -> Callable[[Held], Held]:
    """Return that every server ends with the rows that one has before the plan."""
    return lambda held: dict.fromkeys(held, held[name])


def unchanged(held: Held) -> Held:
    return held


def with_tail(held: Held) -> Held:
    """Return what the new primary and its replica have once the old primary's tail is redone."""
    both = sorted([*held["source"], *held["replica1"]])
    return {**held, "replica1": both, "replica2": both}


def without_tail(held: Held) -> Held:
    return {**held, "source": []}


def with_what_waits(held: Held) -> Held:
    """Return that only the one transaction was left out: what waited behind it has arrived."""
    return {**held, "b": sorted([*held["b"], (2, "behind it")])}


CASES = (
    Case("refetch, H1", "pair97", faults.position_bypass, "bypassed.t", as_on("a")),
    Case("refetch, H1, 5.6", "pair56", faults.position_bypass, "bypassed.t", as_on("a")),
    Case(
        *("inject, H1", "pair97", faults.position_bypass, "bypassed.t", unchanged),
        *({"H1": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, H1", "pair97", faults.position_bypass, "bypassed.t", unchanged),
        *({"H1": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, H1, 5.6", "pair56", faults.position_bypass, "bypassed.t", unchanged),
        *({"H1": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case("refetch, H8", "pair97", faults_plans.skipped_by_counter, "skip.t", as_on("a")),
    Case("refetch, H8, 5.6", "pair56", relay_position, "applier.t", as_on("a")),
    Case(
        *("inject, H8", "pair97", faults_plans.skipped_by_counter, "skip.t", unchanged),
        *({"H8": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("redo, E1", "star97", errant_rows, "shop.t", as_on("replica1")),
        {"E1": "redo_on_source"},
    ),
    Case(
        *("redo, E1, 5.6", "pair56", one_way(errant_rows_in_pair), "shop.t", as_on("b")),
        {"E1": "redo_on_source"},
    ),
    Case(
        *("undo, E1", "star97", errant_rows, "shop.t", as_on("source")),
        *({"E1": "undo_on_replica"}, "1 inserted, 2 updated, 1 deleted"),
    ),
    Case(
        *("undo, E1, 5.6", "pair56", one_way(errant_rows_in_pair), "shop.t", as_on("a")),
        *({"E1": "undo_on_replica"}, "1 inserted, 2 updated, 1 deleted"),
    ),
    Case(
        *("inject, E1", "star97", errant_rows, "shop.t", unchanged),
        *({"E1": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, E1", "star97", errant_rows, "shop.t", unchanged),
        *({"E1": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("inject, E2", "star97", purged_errant_rows, "shop.t", unchanged),
        *({"E2": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("redo, E3", "pair97", faults.lost_tail_crash, "lost.t", as_on("b")),
        {"E3": "redo_on_source"},
    ),
    Case(
        *("undo, E3", "pair97", faults.lost_tail_crash, "lost.t", as_on("a")),
        *({"E3": "undo_on_replica"}, "lost.t (3 inserted)"),
    ),
    Case(
        *("inject, H7", "star97", by_hand, "by_hand.t", unchanged),
        *({"H7": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("redo, J3", "star97", old_primary, "tail.t", with_tail),
        {"J3": "redo_on_source"},
    ),
    Case(
        *("undo, J3", "star97", old_primary, "tail.t", without_tail),
        *({"J3": "undo_on_replica"}, "tail.t (2 inserted)"),
    ),
    Case(
        *("redo, attached with a tail", "star97", attached_primary, "tail.t", as_on("source")),
        {"E1": "redo_on_source"},
    ),
    Case(
        *("undo, attached with a tail", "star97", attached_primary, "tail.t", as_on("replica1")),
        *({"E1": "undo_on_replica"}, "tail.t (2 inserted)"),
    ),
    Case(
        *("resolve, A2", "pair97", conflict, "clash.t", as_on("a")),
        *({"A2": "resolve_conflict"}, "on the replica"),
    ),
    Case(
        *("resolve, A2, 5.6", "pair56", conflict, "clash.t", as_on("a")),
        *({"A2": "resolve_conflict"}, "on the replica"),
    ),
    Case("bypass, A1, 5.6", "pair56", failing_view, "viewed.t", as_on("a")),
    Case(
        *("inject, P1", "pair97", one_way(faults.purge_under_stopped_replica), "purged.t"),
        *(unchanged, {"P1": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, P1", "pair97", one_way(faults.purge_under_stopped_replica), "purged.t"),
        *(unchanged, {"P1": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("inject, H4", "pair97", one_way(faults.bypassed_and_purged), "bypassed.t"),
        *(unchanged, {"H4": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, H4", "pair97", one_way(faults.bypassed_and_purged), "bypassed.t"),
        *(unchanged, {"H4": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, H4, 5.6", "pair56", one_way(faults.bypassed_and_purged), "bypassed.t"),
        *(unchanged, {"H4": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("inject, H3", "star97", bypassed_in_star, "bypassed.t"),
        *(unchanged, {"H3": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, H3", "star97", bypassed_in_star, "bypassed.t"),
        *(unchanged, {"H3": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, H3, 5.6", "star56", bypassed_in_star, "bypassed.t"),
        *(unchanged, {"H3": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("inject, H5", "star97", log_lost_in_star, "lost_log.t"),
        *(unchanged, {"H5": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, H5", "star97", log_lost_in_star, "lost_log.t"),
        *(unchanged, {"H5": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, H5, 5.6", "pair56", one_way(faults_logs.log_lost), "lost_log.t"),
        *(unchanged, {"H5": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case("start, A7", "pair97", stopped, "waits.t", as_on("a")),
    Case("start, A7, 5.6", "pair56", stopped, "waits.t", as_on("a")),
    Case(
        *("auto-position, C3", "pair97", one_way(by_position), "behind.t", as_on("a")),
        {"C3": "auto_position_on"},
    ),
    Case(
        *("inject, A2", "pair97", conflict, "clash.t", with_what_waits),
        *({"A2": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, A2", "pair97", conflict, "clash.t", with_what_waits),
        *({"A2": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("inject, A3", "pair97", check_violated, "checked.t", with_what_waits),
        *({"A3": "inject_empty"}, _LEFT_OUT),
    ),
    Case(
        *("append, E2", "star97", purged_errant_rows, "shop.t", unchanged),
        *({"E2": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("append, H8", "pair97", faults_plans.skipped_by_counter, "skip.t", unchanged),
        *({"H8": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, E1, 5.6", "pair56", one_way(errant_rows_in_pair), "shop.t", unchanged),
        *({"E1": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("reset, H8, 5.6", "pair56", relay_position, "applier.t", unchanged),
        *({"H8": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("reset, P1, 5.6", "pair56", one_way(faults.purge_under_stopped_replica), "purged.t"),
        *(unchanged, {"P1": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("reset, A2, 5.6", "pair56", conflict, "clash.t", with_what_waits),
        *({"A2": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("append, A3", "pair97", check_violated, "checked.t", with_what_waits),
        *({"A3": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, A3, 5.6", "pair56", table_there, "made.t", unchanged),
        *({"A3": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("reset, E2, 5.6", "pair56", one_way(purged_errant_rows_in_pair), "shop.t", unchanged),
        *({"E2": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case(
        *("append, H7", "pair97", one_way(by_hand_in_pair), "by_hand.t", unchanged),
        *({"H7": "gtid_purged_append"}, _LEFT_OUT),
    ),
    Case(
        *("reset, H7, 5.6", "pair56", one_way(by_hand_in_pair), "by_hand.t", unchanged),
        *({"H7": "reset_and_purge"}, _LEFT_OUT),
    ),
    Case("start, E1", "pair97", rows_behind_a_stopped_channel, "waits.t", as_on("b")),
)


@pytest.fixture
def star56(installation56: Installation) -> Iterator[Topology]:
    with shapes.star(installation56) as star:
        yield star


EVERY_CASE = pytest.mark.parametrize(
    "case", CASES, ids=[case.name.replace(", ", "-") for case in CASES]
)


@EVERY_CASE
def test_no_acknowledged_row_is_lost_unannounced(
    case: Case, request: pytest.FixtureRequest
) -> None:
    topology: Topology = request.getfixturevalue(case.shape)
    plan, ends = planned(case, topology)
    run_cut_everywhere(topology, case.choice, plan)
    require(case, topology, plan, ends)


@EVERY_CASE
def test_apply_ends_as_the_scripts_do(
    case: Case, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """`repair apply` compares the servers with its simulation after each script."""
    topology: Topology = request.getfixturevalue(case.shape)
    plan, ends = planned(case, topology)
    applying = Applying.of(topology, plan, tmp_path)
    end = applying.run()
    assert (end.state, end.message) == (ProcedureState.DONE, "")
    assert applying.now.scripts_done == len(plan.steps) + sum(
        len(step.checks) for step in plan.steps
    )
    require(case, topology, plan, ends)


@EVERY_CASE
def test_apply_that_is_killed_again_and_again_ends_as_the_scripts_do(
    case: Case, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    topology: Topology = request.getfixturevalue(case.shape)
    plan, ends = planned(case, topology)
    choice, last = case.choice or {}, plan
    for folder in (tmp_path / "first", tmp_path / "again"):
        folder.mkdir()
        end = killed_again_and_again(Applying.of(topology, last, folder))
        if end.state is ProcedureState.DONE:
            break
        # What an interrupted script committed looks like other work, as in `run_cut_everywhere`.
        assert any(each in end.message for each in (*_PLAN_AGAIN.values(), _GO_ON)), end
        again = examine(topology)
        choice = still_chosen(again, choice, last)
        last = again.plan(choice)
    else:
        pytest.fail(f"the second plan was not applied: {end}")
    require(case, topology, plan, ends)


def killed_again_and_again(applying: Applying) -> RunEnd:
    """Apply a plan in a process that ends after more and more statements, until it is done."""
    for power in range(2, 20):
        applying.kill_after = 2**power
        try:
            end = applying.run()
        except Killed:
            continue
        assert power > 3, "it was killed at least twice"
        return end
    raise AssertionError("a plan has less than 500,000 statements")


def planned(case: Case, topology: Topology) -> tuple[Plan, Held]:
    """Make the fault; return the plan, and the rows that every server is to have after it."""
    case.fault(topology)
    held = {name: rows(server, case.table) for name, server in topology.servers.items()}
    ends = case.ends(held)
    found = examine(topology)
    if case.choice is not None:
        assert not _LEAVE_OUT & {step.action for step in found.plan().steps}, "never by default"
    plan = found.plan(case.choice)
    assert plan.steps, plan.not_planned
    gone = {
        row for each in held.values() for row in each if not all(row in e for e in ends.values())
    }
    if case.announces:
        assert gone, "this case is about rows that are lost"
        assert case.announces in render_files(plan)[RUNBOOK]
    return plan, ends


def require(case: Case, topology: Topology, plan: Plan, ends: Held) -> None:
    """Require the rows on every server, and an audit that finds what the plan announced."""
    for link in topology.links:
        if topology[link.replica].replica_status():
            wait_for(topology[link.replica], executed(topology[link.source]))
    held = {name: rows(server, case.table) for name, server in topology.servers.items()}
    assert held == ends
    await_clean(topology, announced=set(announced(plan)))


def announced(plan: Plan) -> Iterator[str]:
    """Yield the codes that an audit reports after a plan, by its runbook."""
    yield from (each.code for each in plan.afterwards)
    if any("An audit reports them as E4" in each for each in plan.warnings):
        yield "E4"


def run_cut_everywhere(topology: Topology, choice: Mapping[str, str] | None, plan: Plan) -> None:
    """Run each script up to each of its statements, and in full, twice.

    What a redo under its own GTIDs committed before it was cut off looks like other work of the
    server, and a channel of which one thread runs like one that an operator wanted so: the script
    stops and changes nothing, and the operator plans again.
    """
    files = render_files(plan)
    for step in plan.steps:
        checks = [(topology[each.server], files[step.check_name(each)]) for each in step.checks]
        server, script = topology[step.server], files[step.file_name]
        for piece in (*pieces(script), script, script):
            for other, check in checks:
                looked = other.client(check)
                assert looked.returncode == 0, f"{step.action}: {looked.stderr}"
            done = server.client(piece)
            if step.action in _PLAN_AGAIN and _PLAN_AGAIN[step.action] in done.stderr:
                again = examine(topology)
                left = still_chosen(again, choice or {}, plan)
                run_cut_everywhere(topology, left, again.plan(left))
                return
            if _GO_ON in done.stderr:
                break
            assert done.returncode == 0, f"{step.action}: {done.stderr}\n{piece[-300:]}"
        else:
            assert f"step {step.number} is done" in done.stdout


def still_chosen(again: Examination, choice: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """Return what `repair plan --again` selects: the choices whose findings are left.

    Once the lost GTIDs are there (E3), only the error of the receiver is left of it (A4).
    """
    left = {code: way for code, way in choice.items() if code in again.codes}
    if (
        not left
        and "A4" in again.codes
        and any(each.action == "StartChannel" for each in plan.steps)
    ):
        left["A4"] = "start_channel"
    return left


def pieces(script: str) -> Iterator[str]:
    """Yield the beginnings of a script that end behind a statement of its change."""
    lines = script.splitlines(keepends=True)
    begun = next(at for at, line in enumerate(lines) if line.startswith(_CHANGE))
    for count, line in enumerate(lines, start=1):
        if count > begun and line.rstrip().endswith(";"):
            yield "".join(lines[:count])
