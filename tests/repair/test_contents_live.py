"""Plans that decide about data, on real servers: nothing is lost that was not named before."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from compose import faults, faults_plans
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, await_uptime, wait_for
from gtid import GtidSet
from gtid_audit.cli import run
from repair import Plan
from repair.adapters.plan_files import write_plan
from repair.model.strategy_case import SavedContent
from repair.render import render_files
from tests.repair.live import await_clean, examine, executed, rows, run_plan, run_step, wait_until

_SHOP = [(1, "one"), (2, "two"), (3, "three")]
_SHOP_CHANGED = [(1, "changed"), (3, "three"), (10, "new")]


def _actions(plan: Plan) -> list[str]:
    return [f"{step.server} {step.action}" for step in plan.steps]


def _left(plan: Plan, code: str) -> str:
    [left] = [each for each in plan.not_planned if each.code == code]
    return "\n".join((left.why, *left.by_hand))


def _replicates(source: Server, replicas: Sequence[Server]) -> None:
    """A new commit arrives everywhere: no GTID of it is taken for executed."""
    source.execute("INSERT INTO shop.t VALUES (77, 'afterwards')")
    for replica in replicas:
        wait_for(replica, executed(source))
        assert (77, "afterwards") in rows(replica, "shop.t")


def test_errant_rows_have_no_default_and_are_shown(star97: Topology) -> None:
    fault = faults_plans.errant_rows(star97, source="source", on="replica1")
    found = examine(star97)
    assert found.codes == ["E1"]
    plan = found.plan()
    assert not plan.steps
    why = _left(plan, "E1")
    assert "data: " in why
    assert "shop.t (1 inserted, 2 updated, 1 deleted)" in why
    assert "committed 20" in why
    assert "redo_on_source, undo_on_replica" in why
    [content] = plan.contents
    assert content.classes == {"data": fault.errant.replace("\n", "")}
    assert [each.code for each in plan.afterwards] == ["E1"]


def test_errant_rows_are_done_again_on_the_source(star97: Topology) -> None:
    faults_plans.errant_rows(star97, source="source", on="replica1")
    plan = examine(star97).plan({"E1": "redo_on_source"})
    assert _actions(plan) == ["source RedoTransactions"]
    assert not plan.afterwards
    script = render_files(plan)[plan.steps[0].file_name]
    lines = script.splitlines(keepends=True)
    for cut in range(len(lines) // 2, len(lines), 9):  # a client that dies there
        star97["source"].client("".join(lines[:cut]))
    rest = "".join(line for line in lines if not line.startswith("--"))
    wrong = star97["replica2"].client(rest, "--force")  # another server: nothing is run there
    assert "NOT done" in wrong.stdout
    for _ in range(2):
        run_plan(star97, plan)
        for server in star97.servers.values():
            wait_for(server, executed(star97["replica1"]))
            assert rows(server, "shop.t") == _SHOP_CHANGED
    await_clean(star97)
    _replicates(star97["source"], [star97["replica1"], star97["replica2"]])


def test_errant_rows_are_taken_back_and_their_gtids_used_up(star97: Topology) -> None:
    faults_plans.errant_rows(star97, source="source", on="replica1")
    plan = examine(star97).plan({"E1": "undo_on_replica"})
    assert _actions(plan) == ["replica1 UndoRows", "source InjectEmpty"]
    before = executed(star97["replica1"])
    assert run_step(star97, plan, plan.steps[0]).returncode == 0
    assert executed(star97["replica1"]) == before, "it is not logged"
    again = examine(star97)
    assert again.codes == ["E1"], "stopped half-way, it is still found"
    assert _actions(again.plan({"E1": "undo_on_replica"})) == _actions(plan)
    for _ in range(2):
        run_plan(star97, plan)
        assert all(rows(server, "shop.t") == _SHOP for server in star97.servers.values())
    await_clean(star97)
    _replicates(star97["source"], [star97["replica1"], star97["replica2"]])


def test_an_undo_of_which_only_the_end_was_run_is_not_accepted(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair97.a.execute("STOP REPLICA", "RESET REPLICA ALL")
    faults_plans.errant_rows(pair97, source="a", on="b")
    plan = examine(pair97).plan({"E1": "undo_on_replica"})
    write_plan(plan, tmp_path / "plan")
    assert _actions(plan) == ["b UndoRows", "a InjectEmpty"]
    command = ["pair", pair97.a.dsn, pair97.b.dsn, "--content", "--accepted"]
    assert run_step(pair97, plan, plan.steps[1]).returncode == 0
    assert rows(pair97.b, "shop.t") == _SHOP_CHANGED
    assert run([*command, str(tmp_path / "plan")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "does not show that their rows were undone on" in said
    assert run_step(pair97, plan, plan.steps[0]).returncode == 0
    assert rows(pair97.b, "shop.t") == _SHOP
    assert run([*command, str(tmp_path / "plan")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"emptied by plan {plan.id}, accepted." in said


def test_an_undo_of_documents_is_accepted_where_they_are_equal_by_value(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their text does not hold the type of a date, of bytes, or of a DECIMAL."""
    a, b = pair97.a, pair97.b
    document = (
        "JSON_OBJECT('d', CAST('2020-01-01 10:00:00.5' AS DATETIME(6)),"
        " 'x', CAST(x'00ff' AS BINARY), 'n', 1.10, 'w', 'it''s 2020-01-01')"
    )
    a.execute(
        *(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d"),
        "CREATE TABLE d.t (id INT PRIMARY KEY, j JSON)",
        f"INSERT INTO d.t VALUES (1, {document}), (2, '[4.5e300, -0.0, 18446744073709551615]')",
    )
    wait_for(b, executed(a))
    b.execute("DELETE FROM d.t WHERE id = 1", "UPDATE d.t SET j = '[1]' WHERE id = 2")
    plan = examine(pair97).plan({"E1": "undo_on_replica"})
    write_plan(plan, tmp_path / "plan")
    run_plan(pair97, plan)
    command = ["pair", a.dsn, b.dsn, "--content", "--accepted", str(tmp_path / "plan")]
    assert run(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"emptied by plan {plan.id}, accepted." in said
    b.execute(
        "SET SESSION sql_log_bin = 0",
        "UPDATE d.t SET j = JSON_SET(j, '$.d', '2020-01-01 10:00:00.500000') WHERE id = 1",
    )
    assert rows(a, "d.t") == rows(b, "d.t"), "the text is the same, the value is not"
    assert run(command) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "or could not be compared" in said
    assert "d.t: deleted (1, {" in said
    assert "JsonDocument" not in said


def test_a_row_changed_since_stops_the_undo(star97: Topology) -> None:
    faults_plans.errant_rows(star97, source="source", on="replica1")
    plan = examine(star97).plan({"E1": "undo_on_replica"})
    star97["replica1"].execute(
        "SET SESSION sql_log_bin = 0", "UPDATE shop.t SET note = 'later' WHERE id = 10"
    )
    refused = run_step(star97, plan, plan.steps[0])
    assert refused.returncode != 0
    assert "is not as the plan saw it" in refused.stderr
    why = _left(examine(star97).plan({"E1": "undo_on_replica"}), "E1")
    assert "rows were changed since" in why
    assert "`id` = 10" in why


def _is_accepted_with_its_record(
    star97: Topology, plan: Plan, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contents are compared: work is missing on the source, unless the record is named."""
    found = {}
    for options in ((), ("--accepted", str(record))):
        capsys.readouterr()
        dsns = star97["source"].dsn, star97["replica1"].dsn
        found[options] = run(["pair", *dsns, "--content", "--json", *options])
        [e4] = [
            each for each in json.loads(capsys.readouterr().out)["findings"] if each["code"] == "E4"
        ]
        is_accepted = f"emptied by plan {plan.id}, accepted" in e4["explanation"]
        assert (e4["severity"] == "info") == is_accepted == bool(options)
    assert list(found.values()) == [1, 0]


def test_errant_rows_left_out_are_saved_first(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults_plans.errant_rows(star97, source="source", on="replica1")
    plan = examine(star97).plan({"E1": "inject_empty"})
    assert _actions(plan) == ["source InjectEmpty"]
    assert any("the data will NOT" in warning for warning in plan.warnings)
    [saved] = plan.saved
    assert isinstance(saved, SavedContent)
    files = render_files(plan)
    assert files[saved.file_name] == saved.text
    assert saved.file_name in files["RUNBOOK.md"]
    write_plan(plan, tmp_path / "plan")
    run_plan(star97, plan)
    await_clean(star97)
    _is_accepted_with_its_record(star97, plan, tmp_path / "plan", capsys)
    done = star97["source"].client(saved.text)
    assert done.returncode == 0, done.stderr
    assert rows(star97["source"], "shop.t") == _SHOP_CHANGED


@pytest.mark.slow
def test_thousands_of_errant_rows_are_never_appended_unasked(pair97: Pair) -> None:
    faults.errant_transaction(pair97, transaction_count=1_050)
    pair97.a.execute(pair97.a.dialect.reset_replica)
    plan = examine(pair97).plan()
    assert not plan.steps
    assert "errant.t (1,050 inserted)" in _left(plan, "E1")


def test_a_way_back_that_brings_older_rows_is_not_started_unasked(pair97: Pair) -> None:
    pair97.a.execute(
        "CREATE DATABASE older",
        "CREATE TABLE older.t (id INT PRIMARY KEY, note VARCHAR(9))",
        "INSERT INTO older.t VALUES (1, 'first')",
    )
    pair97.settle()
    pair97.a.execute(pair97.a.dialect.stop_replica)
    pair97.b.execute("UPDATE older.t SET note = 'b old' WHERE id = 1")
    pair97.a.execute("UPDATE older.t SET note = 'a new' WHERE id = 1")
    wait_for(pair97.b, executed(pair97.a))
    found = examine(pair97)
    assert found.codes == ["E1"]
    plan = found.plan()
    assert not plan.steps
    assert "an older version over a newer one" in _left(plan, "E1")
    chosen = found.plan({"E1": "start_channel"})
    assert _actions(chosen) == ["a StartChannel"]
    assert any("were changed since" in warning for warning in chosen.warnings)


def test_a_split_brain_is_not_joined_unasked(pair97: Pair) -> None:
    pair97.a.execute(
        "CREATE DATABASE split",
        "CREATE TABLE split.t (id INT PRIMARY KEY, note VARCHAR(9))",
        "INSERT INTO split.t VALUES (1, 'first')",
    )
    pair97.settle()
    for server in (pair97.a, pair97.b):
        server.execute(server.dialect.stop_replica)
    pair97.a.execute("UPDATE split.t SET note = 'of a' WHERE id = 1")
    pair97.b.execute("UPDATE split.t SET note = 'of b' WHERE id = 1")
    plan = examine(pair97).plan()
    assert not plan.steps
    whys = [each.why for each in plan.not_planned]
    assert any("an older version over a newer one" in why for why in whys), whys


def test_rows_that_a_reset_forgot_are_not_fetched_again_unasked(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE twice", "CREATE TABLE twice.t (v INT)")
    pair97.settle()
    kept = executed(a)
    a.execute("INSERT INTO twice.t VALUES (1)", "INSERT INTO twice.t VALUES (2)")
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica, b.dialect.words.reset_binary_logs_and_gtids)
    b.execute(f"SET GLOBAL gtid_purged = '{kept}'")  # a set that was copied too early
    a.execute("INSERT INTO twice.t VALUES (3)")  # so that b's place is not the end of a's log
    found = examine(pair97)
    assert "H8" in found.codes
    assert "T2" not in [each.code for each in found.audit.findings]
    plan = found.plan()
    assert not plan.steps
    [h8] = [each for each in found.audit.findings if each.code == "H8"]
    assert "the rows are there" in h8.explanation
    assert rows(b, "twice.t") == [(1,), (2,)]


def test_errant_rows_on_5_6(pair56: Pair) -> None:
    pair56.a.execute(pair56.a.dialect.stop_replica, pair56.a.dialect.reset_replica)
    faults_plans.errant_rows(pair56, source="a", on="b")
    found = examine(pair56)
    undo = found.plan({"E1": "undo_on_replica"})
    assert _actions(undo) == ["b UndoRows", "a InjectEmpty"]
    redo = found.plan({"E1": "redo_on_source"})
    assert _actions(redo) == ["a RedoTransactions"]
    for _ in range(2):
        run_plan(pair56, redo)
        assert rows(pair56.a, "shop.t") == rows(pair56.b, "shop.t") == _SHOP_CHANGED


@pytest.mark.parametrize("strategy", ["redo_on_source", "undo_on_replica"])
def test_a_lost_tail_is_redone_or_undone_before_its_gtids_are_reused(
    pair97: Pair, strategy: str
) -> None:
    fault = faults.lost_tail_crash(pair97)
    found = examine(pair97)
    assert "E3" in found.codes
    assert not found.plan().steps
    plan = found.plan({"E3": strategy})
    run_plan(pair97, plan)
    wait_for(pair97.a, fault.lost)
    await_clean(pair97)
    pair97.a.execute("INSERT INTO lost.t (note) VALUES ('after the repair')")
    wait_for(pair97.b, executed(pair97.a))
    assert rows(pair97.a, "lost.t") == rows(pair97.b, "lost.t")
    assert len(rows(pair97.a, "lost.t")) == (4 if strategy == "redo_on_source" else 1)


@pytest.mark.slow
def test_a_lost_tail_that_two_replicas_have_is_undone_once(star97: Topology) -> None:
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    wait_for(star97["replica2"], fault.lost)
    found = examine(star97)
    assert [each.code for each in found.audit.findings].count("E3") == 2
    plan = found.plan({"E3": "undo_on_replica"})
    assert sorted(_actions(plan)) == sorted(
        [
            *("replica1 UndoRows", "replica2 UndoRows", "source InjectEmpty"),
            *("replica1 StartChannel", "replica2 StartChannel"),
        ]
    )
    run_plan(star97, plan)
    await_clean(star97)
    assert all(rows(server, "lost.t") == [] for server in star97.servers.values())


def test_in_a_ring_the_stopped_channel_delivers(chain97: Topology) -> None:
    fault = faults_plans.stopped_channel_in_ring(chain97)
    found = examine(chain97)
    plan = found.plan()
    assert _actions(plan) == ["middle StartChannel"]
    assert not plan.afterwards
    run_plan(chain97, plan)
    for server in chain97.servers.values():
        wait_for(server, fault.waiting)
        assert rows(server, "ring.t") == [(1, "one")]
    await_clean(chain97)


def test_a_hole_with_newer_rows_is_not_fetched_unasked(pair97: Pair) -> None:
    fault = faults_plans.bypass_with_newer_rows(pair97)
    found = examine(pair97)
    assert found.codes == ["H1"]
    plan = found.plan()
    # The row is as on its source: only the GTID is missing.
    assert _actions(plan) == ["b InjectEmpty", "b AutoPositionOn"]
    assert any("later transactions of a left them there" in each for each in plan.warnings)
    # A selected refetch would put the older version over the newer one.
    chosen = found.plan({"H1": "refetch"})
    assert _actions(chosen) == []
    assert "were changed since, and are equal on b and a" in _left(chosen, "H1")
    # The script looks for the row as the later transaction left it.
    unlogged = "SET SESSION sql_log_bin = 0"
    pair97.b.execute(unlogged, "DELETE FROM versions.t")
    done = run_step(pair97, plan, plan.steps[0])
    assert "is not as it was when the plan was made" in done.stderr
    pair97.b.execute(unlogged, "INSERT INTO versions.t VALUES (1, 'third')")
    for _ in range(2):
        run_plan(pair97, plan)
    wait_for(pair97.b, fault.skipped)
    assert rows(pair97.a, "versions.t") == rows(pair97.b, "versions.t") == [(1, "third")]


def test_a_row_that_an_errant_transaction_wrote_is_not_there_for_good(pair97: Pair) -> None:
    """Taken back later, it would be lost. The next test has the benign twin: it was loaded."""
    a, b = pair97.a, pair97.b
    faults.position_bypass(pair97, skipped_count=1)
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    [(key, _)] = set(rows(a, "bypassed.t")) - set(rows(b, "bypassed.t"))
    b.execute(f"INSERT INTO bypassed.t (id) VALUES ({key})")
    assert rows(a, "bypassed.t") == rows(b, "bypassed.t")
    plan = examine(pair97).plan()
    assert not any(step.action == "InjectEmpty" for step in plan.steps)
    assert "which only b has, may have written them" in _left(plan, "H1")


def test_a_hole_whose_rows_are_there_is_filled(pair97: Pair) -> None:
    faults_plans.bypass_with_rows_there(pair97)
    plan = examine(pair97).plan()
    assert _actions(plan) == ["b InjectEmpty", "b AutoPositionOn"]
    assert any("are already on b" in warning for warning in plan.warnings)
    run_plan(pair97, plan)
    await_clean(pair97)
    assert rows(pair97.a, "bypassed.t") == rows(pair97.b, "bypassed.t")


def test_never_both_servers_are_cloned(pair97: Pair) -> None:
    fault = faults_plans.both_purged(pair97)
    found = examine(pair97)
    assert found.codes.count("P1") == 2
    texts = [way for each in found.plan().not_planned if each.code == "P1" for way in each.by_hand]
    assert all("do NOT restore" in text for text in texts)
    assert all("Never restore both servers" in text for text in texts)
    assert any(fault.only_on_a in text for text in texts)
    assert any(fault.only_on_b in text for text in texts)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize("strategy", ["inject_empty", "resolve_conflict"])
def test_a_row_conflict_is_skipped_or_resolved(
    shape: str, strategy: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    fault = faults_plans.row_conflict(pair)
    faults.await_applier_stopped(fault.replica)
    found = examine(pair)
    assert found.codes == ["A2"]
    plan = found.plan()
    assert not plan.steps
    assert [(each.source_row, each.replica_row) for each in plan.rows] == [
        ({"note": "on the source"}, {"note": "on the replica"})
    ]
    plan = found.plan({"A2": strategy})
    run_plan(pair, plan)
    run_plan(pair, plan)
    wait_for(pair.b, executed(pair.a))
    await_clean(pair)
    kept = "on the replica" if strategy == "inject_empty" else "on the source"
    assert rows(pair.b, "clash.t") == [(1, kept), (2, "behind it")]
    if strategy == "resolve_conflict":
        _conflicts_in_another_key(pair)
    else:
        _waits_behind_a_skipped_conflict(pair)


def _waits_behind_a_skipped_conflict(pair: Pair) -> None:
    pair.b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO clash.t VALUES (5, 'kept?')")
    pair.a.execute(
        "INSERT INTO clash.t VALUES (5, 'skipped')", "UPDATE clash.t SET note = 'new' WHERE id = 5"
    )
    faults.await_applier_stopped(pair.b)
    plan = examine(pair).plan({"A2": "inject_empty"})
    [text] = [each for each in plan.warnings if "what waits may overwrite rows" in each]
    assert text.startswith("once replication runs on b, ")
    run_plan(pair, plan)
    wait_for(pair.b, executed(pair.a))
    assert (5, "new") in rows(pair.b, "clash.t"), "the row is found by its key alone"


def _conflicts_in_another_key(pair: Pair) -> None:
    pair.a.execute(
        "CREATE TABLE clash.u (id INT PRIMARY KEY, u VARCHAR(9) UNIQUE, z INT)",
        "INSERT INTO clash.u VALUES (60, 'sixty', 1)",
    )
    wait_for(pair.b, executed(pair.a))
    unlogged = "SET SESSION sql_log_bin = 0"
    changed = "UPDATE clash.u SET u = 'changed' WHERE id = 60"
    pair.b.execute(unlogged, changed, "INSERT INTO clash.u VALUES (70, 'new', 1)")
    update = "UPDATE clash.u SET z = 5 WHERE id = 60"
    pair.a.execute("BEGIN", update, "INSERT INTO clash.u VALUES (71, 'new', 2)", "COMMIT")
    faults.await_applier_stopped(pair.b)
    plan = examine(pair).plan({"A2": "resolve_conflict"})
    assert not plan.steps
    assert "in a unique key as a row that" in _left(plan, "A2")
    # The row that is met is one of the transaction's own: it goes back to what it was.
    pair.b.execute(
        unlogged,
        "DELETE FROM clash.u WHERE id = 70",
        "UPDATE clash.u SET u = 'new' WHERE id = 60",
    )
    plan = examine(pair).plan({"A2": "resolve_conflict"})
    assert _actions(plan) == ["b MakeRowsAlike", "b StartChannel"]
    assert run_step(pair, plan, plan.steps[0]).returncode == 0
    # Interrupted there, and planned again.
    again = examine(pair).plan({"A2": "resolve_conflict"})
    assert _actions(again) == ["b StartChannel"]
    run_plan(pair, again)
    wait_for(pair.b, executed(pair.a))
    assert rows(pair.b, "clash.u") == rows(pair.a, "clash.u") == [(60, "sixty", 5), (71, "new", 2)]


def test_what_the_applier_skipped_is_fetched_again(pair97: Pair) -> None:
    fault = faults_plans.skipped_by_counter(pair97)
    found = examine(pair97)
    assert "H8" in found.codes
    plan = found.plan()
    assert _actions(plan) == ["b AutoPositionOn"]
    run_plan(pair97, plan)
    wait_for(pair97.b, fault.passed)
    assert rows(pair97.b, "skip.t") == rows(pair97.a, "skip.t")
    await_clean(pair97)
    run_plan(pair97, plan)


def test_after_a_reset_on_a_replica_nothing_is_done_unasked(star97: Topology) -> None:
    fault = faults_plans.reset_on_running_replica(star97)
    found = examine(star97)
    assert "H8" in found.codes
    plan = found.plan()
    assert not plan.steps
    assert "are already on replica1" in _left(plan, "H8")
    run_plan(star97, found.plan({"H8": "gtid_purged_append"}))
    wait_for(fault.replica, fault.passed)
    await_clean(star97)
    assert rows(fault.replica, "reset_here.t") == [(1, "before"), (2, "after")]


def test_rows_that_change_before_the_script_runs_are_not_overwritten(pair97: Pair) -> None:
    faults.position_bypass(pair97)
    plan = examine(pair97).plan()
    assert _actions(plan) == ["b AutoPositionOn"]
    [missing, *_] = sorted(set(rows(pair97.a, "bypassed.t")) - set(rows(pair97.b, "bypassed.t")))
    pair97.b.execute(
        "SET SESSION sql_log_bin = 0",
        f"INSERT INTO bypassed.t (id, note) VALUES ({missing[0]}, 'meanwhile')",
    )
    done = run_step(pair97, plan, plan.steps[0])
    assert done.returncode != 0
    assert "rows that would be fetched changed" in done.stderr
    status = pair97.b.replica_status()
    assert (status["Replica_SQL_Running"], status["Auto_Position"]) == ("Yes", 0)
    assert (missing[0], "meanwhile") in rows(pair97.b, "bypassed.t")


def test_transactions_that_are_applied_before_the_script_runs_stop_it(pair97: Pair) -> None:
    """They may have changed the rows and changed them back; with the channel stopped none can."""
    fault = faults.position_bypass(pair97)
    plan = examine(pair97).plan()
    assert _actions(plan) == ["b AutoPositionOn"]
    pair97.a.execute("INSERT INTO bypassed.t () VALUES ()")
    wait_until(lambda: rows(pair97.a, "bypassed.t")[-1] in rows(pair97.b, "bypassed.t"))
    done = run_step(pair97, plan, plan.steps[0])
    assert done.returncode != 0
    assert "transactions were applied" in done.stderr
    status = pair97.b.replica_status()
    assert (status["Replica_SQL_Running"], status["Auto_Position"]) == ("Yes", 0)
    pair97.b.execute(pair97.b.dialect.stop_replica)
    run_plan(pair97, examine(pair97).plan())
    wait_for(pair97.b, fault.skipped)
    assert rows(pair97.b, "bypassed.t") == rows(pair97.a, "bypassed.t")
    await_clean(pair97)


def test_a_row_that_came_and_went_is_compared_as_well(pair97: Pair) -> None:
    faults_plans.bypassed_and_inserted_again(pair97)
    plan = examine(pair97).plan()
    assert not plan.steps
    assert "again.t" in _left(plan, "H1")
    assert "was changed since, and equal on b and a" in _left(plan, "H1")


def test_what_cannot_be_compared_hides_no_row_that_can(star97: Topology) -> None:
    """A restored dump without its gtid_purged: the rows are there, their GTIDs are not."""
    source, replica = star97["source"], star97["replica1"]
    source.execute(
        "CREATE DATABASE partly",
        "CREATE TABLE partly.t (id INT PRIMARY KEY)",
        "CREATE TABLE partly.n (id INT)",
    )
    star97.settle()
    replica.execute(replica.dialect.stop_replica)
    row = "INSERT INTO partly.t VALUES (50)"
    source.execute("INSERT INTO partly.n VALUES (7)", row, "DROP TABLE IF EXISTS partly.x")
    compared = examine(star97).plan()
    assert _actions(compared) == ["replica1 StartChannel"], "the row is not there yet"
    replica.execute("SET SESSION sql_log_bin = 0", row, "SET SESSION sql_log_bin = 1")
    plan = examine(star97).plan()
    assert not plan.steps
    assert "were changed since on replica1" in _left(plan, "A7")
    step = compared.steps[-1]
    assert run_step(star97, compared, step).returncode != 0, "the older plan does not do it either"
    assert str(replica.replica_status()["Replica_SQL_Running"]) == "No"


def test_what_the_source_purged_is_applied_from_the_relay_log(star97: Topology) -> None:
    """The start of the applier is what saves it: a refusal would forecast what it prevents."""
    source, replica = star97["source"], star97["replica1"]
    await_uptime(source)  # else its start may be between the commits, and the backlog is doubted
    source.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT PRIMARY KEY)")
    star97.settle()
    replica.execute(replica.dialect.stop_applier)
    source.execute("INSERT INTO kept.t VALUES (1)", "INSERT INTO kept.t VALUES (2)")
    last = GtidSet.parse(executed(source)) - GtidSet.parse(executed(replica))
    wait_until(lambda: last <= GtidSet.parse(replica.replica_status()["Retrieved_Gtid_Set"]))
    source.execute("FLUSH BINARY LOGS")
    current, _ = source.binary_log_position()

    def is_purged() -> bool:
        source.execute(f"PURGE BINARY LOGS TO '{current}'")
        return last <= GtidSet.parse(str(source.value("@@GLOBAL.gtid_purged")))

    wait_until(is_purged)
    plan = examine(star97).plan()
    assert _actions(plan) == ["replica1 StartChannel"]
    run_plan(star97, plan)
    wait_for(replica, executed(source))
    await_clean(star97)
    assert rows(replica, "kept.t") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("strategy", "more", "key"),
    [
        ("undo_on_replica", "", " PRIMARY KEY"),
        ("redo_on_source", ", (10)", " PRIMARY KEY"),
        ("inject_empty", "", " PRIMARY KEY"),
        ("redo_on_source", "", ""),
        ("inject_empty", "", ""),
    ],
)
def test_what_another_holder_did_under_the_same_gtid_is_named(
    star97: Topology, strategy: str, more: str, key: str
) -> None:
    """A plan reads the content of one of them: the row of the other one stays, and counts."""
    source, one, two = (star97[name] for name in ("source", "replica1", "replica2"))
    source.execute("CREATE DATABASE d", f"CREATE TABLE d.t (id INT{key})")
    for each in (one, two):
        wait_for(each, executed(source))
    gtid = "abababab-0000-0000-0000-000000000000:1"
    for each, row in ((one, "(10)"), (two, f"(20){more}")):
        each.execute(
            f"SET SESSION gtid_next = '{gtid}'",
            f"INSERT INTO d.t VALUES {row}",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    plan = examine(star97).plan({"E1": strategy})
    told = [each for each in plan.unreported if "has other rows under" in each]
    assert told, plan.not_planned
    assert gtid in told[0]
    assert any(each in told[0] for each in ("replica1", "replica2"))


@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_two_holders_of_one_transaction_are_no_two_contents(star97: Topology, key: str) -> None:
    source, one, two = (star97[name] for name in ("source", "replica1", "replica2"))
    source.execute("CREATE DATABASE d", f"CREATE TABLE d.t (id INT{key})")
    for each in (one, two):
        wait_for(each, executed(source))
    gtid = "abababab-0000-0000-0000-000000000000:1"
    for each in (one, two):
        each.execute(
            f"SET SESSION gtid_next = '{gtid}'",
            "INSERT INTO d.t VALUES (10)",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    plan = examine(star97).plan({"E1": "inject_empty"})
    assert plan.steps
    assert not [each for each in plan.unreported if "has other rows under" in each]
