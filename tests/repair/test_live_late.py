"""Plans that are run late, when replication has done meanwhile what they would have decided."""

from compose import faults_plans
from compose.native.shapes import Topology, wait_for
from repair import Plan
from repair.render import render_files
from tests.repair.live import examine, executed, rows, run_plan

_SHOP_CHANGED = [(1, "changed"), (3, "three"), (10, "new")]


def refusals(topology: Topology, plan: Plan) -> list[str]:
    """Run the checks before the first step on their servers; return what they refuse."""
    files = render_files(plan)
    refused = []
    for check in plan.steps[0].checks:
        [name] = [each for each in files if each.startswith("01-check-") and check.server in each]
        done = topology[check.server].client(files[name])
        refused += [done.stderr] if done.returncode else []
    return refused


def test_nothing_is_undone_that_has_arrived_elsewhere(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    faults_plans.errant_rows(star97, source="source", on="replica1")
    found = examine(star97)
    undo, redo = found.plan({"E1": "undo_on_replica"}), found.plan({"E1": "redo_on_source"})
    assert refusals(star97, undo) == []
    run_plan(star97, redo)  # a colleague has decided otherwise
    wait_for(star97["replica2"], executed(replica))
    [refused, *_] = refusals(star97, undo)
    assert "has received the transactions since the plan was made" in refused
    assert rows(source, "shop.t") == rows(replica, "shop.t") == _SHOP_CHANGED


def test_an_undo_may_be_run_again_after_its_last_step(star97: Topology) -> None:
    faults_plans.errant_rows(star97, source="source", on="replica1")
    undo = examine(star97).plan({"E1": "undo_on_replica"})
    for _ in range(2):
        assert refusals(star97, undo) == []
        run_plan(star97, undo)
