"""Steps that the rules evaluate together, run by the client on a real source and two replicas."""

import pytest

from compose.faults import commit, table_on
from compose.native.shapes import Topology, wait_for
from gtid import GtidSet
from repair import planner
from repair.model.actions import StartChannel
from tests.repair.live import await_clean, examine, executed, rows, run_plan

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


def test_stopped_replicas_of_one_source_are_started_by_one_plan(
    star97: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, replicas = star97["source"], [star97["replica1"], star97["replica2"]]
    table_on(source, replicas[0], "leaves")
    wait_for(replicas[1], executed(source))
    for each in replicas:
        each.execute(each.dialect.stop_replica)
    commit(source, "INSERT INTO leaves.t (note) VALUES ('while they were stopped')")
    examination = examine(star97)
    assert examination.codes == ["A7", "A7"]
    plan = examination.plan()
    assert [step.effect.server for step in plan.steps] == ["replica1", "replica2"]
    assert all(isinstance(step.effect, StartChannel) for step in plan.steps)
    with monkeypatch.context() as patched:
        patched.setattr(planner, "leaf_of", lambda _finding, _model: None)
        assert examination.plan() == plan, "as evaluated after each step"
    for _ in range(2):
        run_plan(star97, plan)
    for each in replicas:
        wait_for(each, executed(source))
        assert rows(each, "leaves.t") == rows(source, "leaves.t")
    await_clean(star97)
    assert GtidSet.parse(executed(source)) == GtidSet.parse(executed(replicas[0]))
