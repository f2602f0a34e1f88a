"""Plans applied on real servers: to their end, interrupted anywhere, and against what changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from compose import faults, faults_after_plan
from compose.native.server import Server
from compose.native.shapes import Pair, Topology
from repair import Plan
from repair.adapters.script_runner import (
    LOCK_NAME,
    ServerBusy,
    ServerLock,
    open_session,
    run_script,
)
from repair.applying.procedures_applied import EventKind, ProcedureState
from repair.render import render_files
from tests.repair.applying import Applying, Killed
from tests.repair.live import await_clean, examine, executed, rows, targets_of, wait_until
from tests.server_pool import Stock


def a_hole(pair: Pair, strategy: str = "inject_empty") -> Plan:
    faults.position_bypass(pair)
    return examine(pair).plan({"H1": strategy})


def past_an_event(pair: Pair) -> Plan:
    faults.failing_create_view(pair)
    return examine(pair).plan()


def ended(applying: Applying) -> tuple[ProcedureState, str]:
    end = applying.run()
    assert applying.now.state is end.state
    assert applying.now.message == end.message
    return end.state, end.message


def hold(applying: Applying) -> None:
    """Require that a plan is applied to its end, and the servers agree."""
    assert ended(applying) == (ProcedureState.DONE, "")
    assert applying.now.scripts_done == len(applying.plan.scripts)
    await_clean(applying.topology)


def test_a_hole_is_filled(pair97: Pair, tmp_path: Path) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    hold(applying)
    assert executed(pair97.a) == executed(pair97.b)
    assert applying.events(EventKind.ANSWERED) == [
        "step 1 is done",
        "go on with step 3",
        "step 3 is done",
    ]
    assert applying.events(EventKind.COMPARED) == ["as simulated: b", "as simulated: b"]


def test_an_event_is_moved_past(pair56: Pair, tmp_path: Path) -> None:
    hold(Applying.of(pair56, past_an_event(pair56), tmp_path))


def test_a_finished_plan_changes_nothing_when_it_is_applied_again(
    pair97: Pair, tmp_path: Path
) -> None:
    plan = a_hole(pair97)
    hold(Applying.of(pair97, plan, tmp_path / "first"))
    before = {name: executed(server) for name, server in pair97.servers.items()}
    hold(Applying.of(pair97, plan, tmp_path / "second"))
    assert {name: executed(server) for name, server in pair97.servers.items()} == before


def interrupted(applying: Applying, *, every: int) -> None:
    """Kill the process before each statement, or before every so many; resume each time."""
    applying.kill_after = 0
    killed = 0
    while True:
        try:
            end = applying.run()
        except Killed:
            assert applying.now.state is ProcedureState.INTERRUPTED
            killed += 1
            applying.kill_after += every
            continue
        assert end.state is ProcedureState.DONE, end.message
        break
    assert killed > len(applying.plan.scripts)
    await_clean(applying.topology)
    assert executed(applying.topology["a"]) == executed(applying.topology["b"])


EVERY = [11, pytest.param(1, marks=pytest.mark.slow)]


@pytest.mark.parametrize("every", EVERY)
def test_a_plan_that_is_interrupted_before_every_statement_reaches_its_end(
    every: int, pair97: Pair, tmp_path: Path
) -> None:
    interrupted(Applying.of(pair97, a_hole(pair97), tmp_path), every=every)


@pytest.mark.parametrize("every", EVERY)
def test_a_move_past_an_event_that_is_interrupted_everywhere(
    every: int, pair56: Pair, tmp_path: Path
) -> None:
    interrupted(Applying.of(pair56, past_an_event(pair56), tmp_path), every=every)


@pytest.mark.parametrize("statement", [5, 14])
def test_a_server_that_is_killed_in_the_middle(
    pairs97: Stock[Pair], statement: int, tmp_path: Path
) -> None:
    with pairs97.lent() as pair:
        applying = Applying.of(pair, a_hole(pair), tmp_path)
        sent = 0

        def count() -> None:
            nonlocal sent
            sent += 1
            if sent == statement:
                pair.b.kill()
            else:
                applying.at[EventKind.SENT, None] = count

        applying.at[EventKind.SENT, None] = count
        state, message = ended(applying)
        assert state is ProcedureState.FAILED
        assert "the connection was lost" in message
        pair.b.start()
        state, message = ended(applying)
        assert state is ProcedureState.FAILED, "the restart may have lost transactions"
        assert message.endswith("audit and plan again")
        hold(Applying.of(pair, examine(pair).plan(), tmp_path / "again"))


def test_a_plan_about_another_state_sends_no_change(pair97: Pair, tmp_path: Path) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    stop = pair97.b.dialect.stop_replica
    pair97.b.execute(stop, pair97.b.dialect.reset_replica)
    before = executed(pair97.b)
    state, message = ended(applying)
    assert state is ProcedureState.FAILED
    assert "a condition of the script is false" in message
    assert "its channels changed since the plan was made" in message
    assert (executed(pair97.b), applying.now.scripts_done) == (before, 0)


def test_the_first_difference_from_the_simulation_stops_the_plan(
    pair97: Pair, tmp_path: Path
) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    b = pair97.b
    applying.at[EventKind.ANSWERED, 1] = lambda: b.execute(f"{b.dialect.stop_replica} SQL_THREAD")
    state, message = ended(applying)
    assert state is ProcedureState.STOPPED
    assert "not as simulated: b: channel: expected '' from a, auto-position off, running" in message
    assert "auto-position off, stopped" in message
    assert applying.now.scripts_done == 1
    again, _ = ended(applying)
    assert again is ProcedureState.STOPPED, "the state after the last script is compared first"
    b.execute(b.dialect.start_replica)
    hold(applying)


def test_a_stop_is_honoured_between_scripts(pair97: Pair, tmp_path: Path) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    applying.at[EventKind.SENT, 1] = lambda: applying.journal.request_stop(applying.procedure.id)
    assert ended(applying) == (ProcedureState.STOPPED, "stopped by request before 02-a.sql")
    assert applying.now.scripts_done == 1
    hold(applying)


def test_a_check_runs_again_with_its_step(pair97: Pair, tmp_path: Path) -> None:
    """What it found may have changed between the two runs."""
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)

    def die() -> None:
        raise Killed

    applying.at[EventKind.ANSWERED, 2] = die
    with pytest.raises(Killed):
        applying.run()
    hold(applying)
    begun = [each.partition(":")[0] for each in applying.events(EventKind.SCRIPT)]
    check, change = "check a before step 3", "switch b to auto-position"
    assert begun == ["commit 3 empty transactions on b", check, check, change]


def test_rows_that_arrived_elsewhere_meanwhile_are_not_undone(pair97: Pair, tmp_path: Path) -> None:
    """The run ends between the check of a and the undo on b. Then a receives the transactions."""
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE DATABASE own",
        "CREATE TABLE own.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO own.t VALUES (1, 1), (2, 2)",
    )
    pair97.settle()
    faults_after_plan.remove_channel(a)
    b.execute("INSERT INTO own.t VALUES (5, 5)", "UPDATE own.t SET v = 9 WHERE id = 1")
    plan = examine(pair97).plan({"E1": "undo_on_replica"})
    [undo, *_] = plan.steps
    assert (undo.server, [each.server for each in undo.checks]) == ("b", ["a"])
    applying = Applying.of(pair97, plan, tmp_path)

    def die() -> None:
        raise Killed

    applying.at[EventKind.ANSWERED, len(undo.checks)] = die
    with pytest.raises(Killed):
        applying.run()
    faults_after_plan.add_channel(a, b)
    a.execute(a.dialect.start_replica)
    wait_until(lambda: executed(a) == executed(b))
    state, message = ended(applying)
    assert state is ProcedureState.FAILED
    assert message.startswith("01-a.sql on a: a condition of the script is false")
    assert rows(a, "own.t") == rows(b, "own.t") == [(1, 9), (2, 2), (5, 5)]


def test_one_repair_at_a_time_is_at_work_on_a_server(pair97: Pair, tmp_path: Path) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    target, before = targets_of(pair97)["b"], executed(pair97.b)
    with ServerLock(target):
        state, message = ended(applying)
        assert state is ProcedureState.FAILED
        assert "b: another repair is at work there: its session is" in message
        assert "Nothing was sent to any server" in message
        assert (applying.events(EventKind.SENT), executed(pair97.b)) == ([], before)
        with pytest.raises(ServerBusy):
            ServerLock(target)
    hold(applying)


def test_two_plans_of_a_cluster_do_not_run_at_once(star97: Topology, tmp_path: Path) -> None:
    """Each was simulated without the steps of the other, and their scripts share no server."""
    star97["source"].execute("CREATE DATABASE any_database")
    star97.settle()
    second = _a_start_of(star97, "replica2", tmp_path)
    star97["replica2"].execute(star97["replica2"].dialect.start_replica)
    first = _a_start_of(star97, "replica1", tmp_path)
    ends: list[tuple[ProcedureState, str]] = []
    first.at[EventKind.SENT, None] = lambda: ends.append(ended(second))
    hold(first)
    [(state, message)] = ends
    assert state is ProcedureState.FAILED
    assert message.startswith("replica1: another repair is at work there: its session is")
    assert message.endswith("Nothing was sent to any server")
    assert second.now.scripts_done == 0
    assert second.events(EventKind.SENT) == []


def _a_start_of(star: Topology, name: str, folder: Path) -> Applying:
    """A plan whose only scripts run on one replica."""
    replica = star[name]
    replica.execute(replica.dialect.stop_replica)
    applying = Applying.of(star, examine(star).plan(), folder / name)
    assert {each.server for each in applying.plan.scripts} == {name}
    return applying


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_repair_that_lost_a_lock_stops(name: str, pair97: Pair, tmp_path: Path) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    applying.at[EventKind.ANSWERED, 2] = lambda: _kill_lock(pair97[name])
    state, message = ended(applying)
    assert state is ProcedureState.STOPPED
    assert message.startswith(f"stopped before 03-b.sql: the lock of {name} was lost")
    hold(applying)


# The client sends comments between statements with the next one, or alone.
_COMMENT = re.compile(r"\A(?:--[^\n]*(?:\n|\Z)|\s+)+")
_HOLDER = f"IS_USED_LOCK('{LOCK_NAME}')"


def _kill_lock(server: Server) -> None:
    server.execute(f"KILL {server.value(_HOLDER)}")
    wait_until(lambda: server.value(_HOLDER) is None)


def test_another_server_at_the_address_receives_nothing(pair97: Pair, tmp_path: Path) -> None:
    applying = Applying.of(pair97, a_hole(pair97), tmp_path)
    targets = targets_of(pair97)
    applying.targets = {"a": replace(targets["b"], name="a"), "b": replace(targets["a"], name="b")}
    state, message = ended(applying)
    assert state is ProcedureState.FAILED
    assert "the server there has server_uuid" in message
    assert applying.events(EventKind.SENT) == []


def test_what_arrives_later_below_is_awaited(pair97: Pair, tmp_path: Path) -> None:
    """b is repaired by a start, and a lock on a table there keeps the applier for a moment."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    b.execute(b.dialect.stop_replica)
    a.execute("INSERT INTO d.t VALUES (1)")
    applying = Applying.of(pair97, examine(pair97).plan(), tmp_path)
    hold(applying)
    assert rows(b, "d.t") == [(1,)]


def test_what_is_sent_is_what_the_client_sends(pair97: Pair) -> None:
    sent_alike(pair97)


def test_what_is_sent_to_5_6_is_what_the_client_sends(pair56: Pair) -> None:
    sent_alike(pair56)


def sent_alike(pair: Pair) -> None:
    """Require that the general log has the same statements, by the client and by gtid-audit."""
    pair.a.execute("CREATE DATABASE own")
    pair.settle()
    faults.errant_transaction(pair)
    pair.b.execute(
        "CREATE PROCEDURE errant.p() COMMENT 'it''s; \\\\' BEGIN /* a; */ SELECT ';' -- '\n; END",
        "INSERT INTO errant.t (note) VALUES ('a;\\\\''b\\n'), (CONVERT(0xE282AC USING utf8))",
    )
    plan = examine(pair).plan({"E1": "redo_on_source"})
    files = render_files(plan)
    assert any("DELIMITER" in each for each in files.values())
    for step in plan.steps:
        script, server = files[step.file_name], pair[step.server]
        assert server.client(script).returncode == 0
        with open_session(targets_of(pair)[step.server]) as session:
            by_us = _logged(server, partial(run_script, session, script, sending=lambda _: None))
        by_client = _logged(server, partial(server.client, script))
        assert by_us == by_client
        assert len(by_us) > 10


def _logged(server: Server, run: Callable[[], object]) -> list[str]:
    """Return the statements of a run, as the server's general log has them."""
    server.execute("SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")
    run()
    server.execute("SET GLOBAL general_log = 0")
    found = server.query(
        "SELECT CONVERT(argument USING utf8) FROM mysql.general_log WHERE command_type IN ('Query',"
        " 'Prepare', 'Execute') AND argument NOT LIKE '%general_log%' ORDER BY event_time, thread_id"
    )
    server.execute("TRUNCATE mysql.general_log")
    # The client also adds a space after a comment within a statement.
    texts = [_COMMENT.sub("", str(text)).strip().replace("*/ ", "*/") for (text,) in found]
    texts = [text for text in texts if text]
    return texts[next(at for at, text in enumerate(texts) if text.startswith("SET @client")) :]
