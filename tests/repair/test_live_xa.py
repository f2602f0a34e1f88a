"""XA transactions: PREPARE and COMMIT have a GTID each, and the second one needs the first."""

from compose.faults import await_applier_stopped, commit, table_on
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, rows, run_plan, run_step
from topology.explain import explain


def test_what_leaves_an_xa_prepare_out_names_its_commit(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    table_on(a, b, "xa")
    b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO xa.t VALUES (10, 'mine')")
    insert = "INSERT INTO xa.t VALUES (10, 'theirs'), (11, 'theirs')"
    commit(a, "XA START 'x'", insert, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    await_applier_stopped(b)
    plan = examine(pair97).plan({"A2": "inject_empty"})
    [warning] = [each for each in plan.warnings if "XA PREPARE" in each]
    assert "stops the appliers of b with error 1397 unless it is left out as well" in warning
    done = [run_step(pair97, plan, step) for step in plan.steps]
    assert "the applier stopped; audit and plan again: error 1397" in done[-1].stderr
    found = examine(pair97)
    assert "A3" in found.codes
    [stopped] = [each for each in found.audit.findings if each.code == "A3"]
    assert explain(stopped.explanation).title.endswith("no such prepared XA transaction")
    plan = found.plan({"A3": "inject_empty"})
    assert any("ends an XA transaction" in each for each in plan.warnings)
    run_plan(pair97, plan)
    wait_for(b, executed(a))
    assert rows(b, "xa.t") == [(10, "mine")]
