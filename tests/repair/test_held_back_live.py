"""Channels that hold transactions back on purpose: SOURCE_DELAY, START REPLICA UNTIL."""

import time

from compose.faults import await_applier_stopped, await_status, commit, table_on
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.repair.live import await_clean, examine, executed, rows, run_plan, run_step

_DELAY_SECONDS = 86_400


def test_a_channel_that_holds_back_is_started_with_its_time_or_when_selected(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    table_on(a, b, "held")
    a.execute("CREATE DATABASE gone", "CREATE TABLE gone.t (id INT)")
    wait_for(b, executed(a))
    _with_delay(b, _DELAY_SECONDS)
    commit(a, "INSERT INTO held.t VALUES (1, 'one')", "INSERT INTO held.t VALUES (2, 'two')")
    plan = examine(pair97).plan()
    [step] = plan.steps
    assert step.action == "StartChannel"
    assert plan.estimated_seconds > _DELAY_SECONDS
    assert f"{_DELAY_SECONDS} s after its commit on the source" in step.procedure.estimate_assumes
    assert f"within {_DELAY_SECONDS} s gtid_executed contains" in step.procedure.check
    began = time.monotonic()
    run_plan(pair97, plan)  # it does not wait for a day
    assert time.monotonic() - began < 60
    assert rows(b, "held.t") == []
    dropped = commit(a, "DROP TABLE gone.t")
    await_status(b, lambda shown: dropped.rpartition(":")[2] in shown["Retrieved_Gtid_Set"])
    b.execute("STOP REPLICA SQL_THREAD")  # its last copy is here
    plan = examine(pair97).plan()
    assert not plan.steps
    assert any("`DROP TABLE" in each.why for each in plan.not_planned)
    b.execute(b.dialect.stop_replica)
    _with_delay(b, 0)
    b.execute(b.dialect.start_replica)
    wait_for(b, executed(a))

    b.execute(b.dialect.stop_replica)
    wanted = commit(a, "INSERT INTO held.t VALUES (3, 'wanted')")
    unwanted = commit(a, "DELETE FROM held.t")
    late = examine(pair97).plan()
    for before in (wanted, unwanted):
        b.execute(
            b.dialect.stop_replica, f"{b.dialect.start_replica} UNTIL SQL_BEFORE_GTIDS = '{before}'"
        )
        if before == unwanted:
            wait_for(b, wanted)
        await_applier_stopped(b)
        assert "is stopped again" in run_step(pair97, late, late.steps[0]).stderr
    found = examine(pair97)
    assert "A7" in found.codes
    plan = found.plan()
    assert not plan.steps
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert "UNTIL SQL_BEFORE_GTIDS" in left.why
    assert (3, "wanted") in rows(b, "held.t")
    run_plan(pair97, found.plan({"A7": "start_channel"}))
    await_clean(pair97)
    assert rows(b, "held.t") == []


def _with_delay(server: Server, seconds: int) -> None:
    server.execute(
        server.dialect.stop_replica,
        f"{server.dialect.words.change_source} {server.dialect.words.option_prefix}DELAY = {seconds}",
    )
