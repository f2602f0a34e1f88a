"""Another server at the address of a stopped channel's source, after the plan was made."""

from collections.abc import Callable

import pytest

from compose import faults, faults_after_plan
from compose.native.shapes import Pair
from repair import Plan
from repair.render import render_files
from repair.steps import Step
from tests.repair.live import examine, executed, rows, run_plan, run_step


def _stopped(pair: Pair) -> Plan:
    """Plan to start b's stopped channel, which then fetches a row."""
    pair.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair.settle()
    pair.b.execute(pair.b.dialect.stop_replica)
    pair.a.execute("INSERT INTO d.t VALUES (1)")
    return examine(pair).plan()


def _bypassed(pair: Pair) -> Plan:
    """Plan to fetch what b's channel has passed; it is stopped."""
    faults.position_bypass(pair)
    pair.b.execute(pair.b.dialect.stop_replica)
    return examine(pair).plan({"H1": "refetch"})


def _refused(pair: Pair, step: Step, plan: Plan, why: str) -> None:
    """Run a step, without and with --force: it starts no applier, and stops the receiver again."""
    before = executed(pair.b)
    for options in ((), ("--force",)):
        done = pair.b.client(render_files(plan)[step.file_name], *options)
        assert options or done.returncode != 0
        assert why in done.stderr, done.stderr
        assert "is done" not in done.stdout
    status = pair.b.replica_status()
    threads = (status["Replica_IO_Running"], status["Replica_SQL_Running"])
    assert (executed(pair.b), *threads) == (before, "No", "No")


@pytest.mark.parametrize("planned", [_stopped, _bypassed])
def test_another_server_that_answers_is_noticed(
    pair97: Pair, planned: Callable[[Pair], Plan]
) -> None:
    plan = planned(pair97)
    step = plan.steps[-1]
    faults_after_plan.another_server_uuid(pair97.a)
    pair97.a.execute("CREATE DATABASE elsewhere")
    _refused(pair97, step, plan, "another server than the audited one answers")
    assert run_step(pair97, plan, step).returncode != 0
    assert not pair97.b.query("SHOW DATABASES LIKE 'elsewhere'")


def test_a_source_that_does_not_answer_leaves_the_channel_as_it_was(
    pair97: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repair.script.CONNECT_LOOKS_MAX", 2)
    plan = _stopped(pair97)
    [step] = plan.steps
    pair97.a.stop()
    _refused(pair97, step, plan, "its receiver does not connect and was stopped again")
    pair97.a.start()
    run_plan(pair97, plan)
    assert rows(pair97.b, "d.t") == [(1,)]
