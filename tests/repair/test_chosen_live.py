"""Strategies that run only when they are selected, on real servers: what was said is what happens."""

from pathlib import Path

import pytest

from compose import faults, faults_applier, faults_history, faults_plans
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, follow, wait_for
from gtid import GtidSet
from gtid_audit.cli import run
from repair.adapters.plan_files import write_plan
from repair.model.actions import InjectEmpty, StartChannel
from tests.repair.live import await_clean, examine, executed, rows, run_plan, run_step, wait_until


def _arrives(source: Server, replica: Server, table: str) -> None:
    """A new commit arrives: no GTID of it counts as executed already."""
    source.execute(f"INSERT INTO {table} (note) VALUES ('afterwards')")
    wait_for(replica, executed(source))
    assert rows(replica, table)[-1] == rows(source, table)[-1]


@pytest.mark.parametrize(
    ("shape", "strategy"),
    [
        pytest.param("pair97", "inject_empty", marks=pytest.mark.slow),
        ("pair97", "gtid_purged_append"),
        ("pair56", "inject_empty"),
        ("pair56", "reset_and_purge"),
    ],
)
def test_what_a_source_purged_is_left_out(
    shape: str, strategy: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    faults.purge_under_stopped_replica(pair)
    found = examine(pair)
    assert found.codes == ["P1"]
    assert not found.plan().steps
    plan = found.plan({"P1": strategy})
    assert any("the data will NOT" in each for each in plan.warnings)
    assert any("THE DATA WAS NOT CHECKED" in each for each in plan.warnings)
    for _ in range(2):
        run_plan(pair, plan)
    _arrives(a, b, "purged.t")
    if strategy == "gtid_purged_append":
        write_plan(plan, tmp_path / "record")
        assert examine(pair).codes == ["E4"]
        assert run(["pair", a.dsn, b.dsn, "--accepted", str(tmp_path / "record")]) == 0
    else:
        await_clean(pair)
    assert len(rows(a, "purged.t")) == 4
    assert len(rows(b, "purged.t")) == 1, "what was said would be left out"


@pytest.mark.parametrize("strategy", ["redo_on_source", "undo_on_replica"])
def test_the_tail_of_an_old_primary(star97: Topology, strategy: str) -> None:
    # Keys of their own: with equal ones neither side could have the other's rows.
    star97["replica1"].execute(
        "SET GLOBAL auto_increment_increment = 10", "SET GLOBAL auto_increment_offset = 5"
    )
    fault = faults_history.failover_with_tail(star97)
    old, promoted = fault.old, fault.promoted
    promoted.execute(
        "SET GLOBAL auto_increment_increment = 1", "SET GLOBAL auto_increment_offset = 1"
    )
    found = examine(star97)
    assert "J3" in found.codes
    assert not [each for each in found.plan().steps if each.server == old.name]
    plan = found.plan({"J3": strategy})
    assert plan.steps, plan.not_planned
    for _ in range(2):
        run_plan(star97, plan)
    follow(old, promoted)
    _arrives(promoted, old, "tail.t")
    wait_for(star97["replica2"], executed(promoted))
    await_clean(star97)
    tables = [rows(server, "tail.t") for server in star97.servers.values()]
    assert tables[0] == tables[1] == tables[2]
    kept = [note for _, note in tables[0] if note == "not replicated"]
    assert len(kept) == (2 if strategy == "redo_on_source" else 0)


def test_the_transaction_of_another_applier_error_is_left_out(pair97: Pair) -> None:
    """An A3 has no default: its cause is repaired, or its one transaction is left out by choice."""
    fault = faults_plans.violated_check(pair97)
    found = examine(pair97)
    assert found.codes == ["A3"]
    plan = found.plan()
    assert not plan.steps
    [left] = plan.not_planned
    assert "inject_empty: it leaves the transactions out: only planned when selected" in left.why
    [shown] = plan.rows
    assert (shown.source_row, shown.replica_row) == (
        {"note": "on the source"},
        {"note": "on the replica"},
    )
    plan = found.plan({"A3": "inject_empty"})
    inject, start = (step.effect for step in plan.steps)
    assert inject == InjectEmpty("b", GtidSet.parse(fault.failing))
    assert isinstance(start, StartChannel)
    assert any("the data will NOT" in each and fault.failing in each for each in plan.warnings)
    assert plan.saved, "what is left out is kept as SQL"
    for _ in range(2):
        run_plan(pair97, plan)
    wait_for(pair97.b, executed(pair97.a))
    await_clean(pair97)
    assert rows(pair97.a, "checked.t") == [(1, "on the source"), (2, "behind it")]
    assert rows(pair97.b, "checked.t") == [(1, "on the replica"), (2, "behind it")]


@pytest.mark.slow  # the script of the start waits for its transactions
def test_a_file_position_behind_which_rows_conflict(pair97: Pair) -> None:
    pair97.a.execute(pair97.a.dialect.stop_replica, pair97.a.dialect.reset_replica)
    fault = faults_plans.stopped_behind_position(pair97)
    found = examine(pair97)
    assert sorted(found.codes) == ["A7", "C3"]
    plan = found.plan()
    assert not plan.steps, "a start would stop at a row"
    whys = {each.code: each.why for each in plan.not_planned}
    assert all("row behind.t `id` = 1 is not as expected" in whys[code] for code in ("A7", "C3"))
    assert ({"note": "newer"}, {"note": "on the replica"}) in [
        (each.source_row, each.replica_row) for each in plan.rows
    ]
    chosen = found.plan({"C3": "auto_position_on"})
    [step] = chosen.steps
    assert "may stop the applier or overwrite rows" in str(chosen.warnings)
    done = run_step(pair97, chosen, step)
    assert done.returncode != 0
    assert "1062" in done.stderr
    assert rows(fault.replica, "behind.t") == [(1, "on the replica")]
    stopped = examine(pair97)
    assert stopped.codes == ["A2"]
    resolved = stopped.plan({"A2": "resolve_conflict"})
    run_plan(pair97, resolved)
    wait_for(fault.replica, fault.waiting)
    await_clean(pair97)
    assert rows(fault.replica, "behind.t") == rows(fault.source, "behind.t") == [(1, "newer")]


@pytest.mark.slow
def test_a_conflict_in_a_history_that_is_received_again_is_not_skipped(pair97: Pair) -> None:
    """The gtid_purged of b is too small: it has the rows of what conflicts, and of what follows."""
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    fault = faults_applier.reset_with_old_purged(pair97, later_count=1)
    there = rows(b, "applier.t")
    b.execute("CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1", b.dialect.start_replica)
    faults.await_applier_stopped(b)
    found = examine(pair97)
    assert found.codes == ["A2"]
    for strategy in ("inject_empty", "gtid_purged_append", "resolve_conflict"):
        plan = found.plan({"A2": strategy})
        assert not plan.steps, strategy
        [why] = [each.why for each in plan.not_planned if each.code == "A2"]
        assert "receive again what it has" in why, why
    # The way that the reason names.
    b.execute(b.dialect.stop_replica, f"SET GLOBAL gtid_purged = '+{fault.passed}'")
    b.execute(b.dialect.start_replica)
    wait_for(b, executed(a))
    assert rows(b, "applier.t") == rows(a, "applier.t")
    assert rows(b, "applier.t")[:-1] == there


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_rows_that_are_equal_by_now_are_not_fetched(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """b has the rows from a dump, and later transactions changed them: older ones would return."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    faults_plans.bypass_with_rows_there(pair)
    a.execute("UPDATE bypassed.t SET note = 'changed again'")
    wait_until(lambda: rows(b, "bypassed.t") == rows(a, "bypassed.t"))
    found = examine(pair)
    choices = {"H1": "refetch", "C3": "auto_position_on"}
    assert "H1" in found.codes
    for code in choices.keys() & set(found.codes):
        plan = found.plan({code: choices[code]})
        assert not plan.steps
        [left] = [each.why for each in plan.not_planned if each.code == code]
        assert "changed since, and are equal on b and a" in left
