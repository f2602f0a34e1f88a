"""XA transactions: PREPARE and COMMIT have a GTID each, and the second one needs the first."""

import pytest

from compose.faults import await_applier_stopped, commit, table_on
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, rows, run_plan, run_step
from topology.catalogue.explanations import explain

PREPARE = ("XA END 'x'", "XA PREPARE 'x'")


@pytest.mark.slow
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


def test_what_a_left_out_xa_commit_leaves_locked_is_ended_by_hand(pair97: Pair) -> None:
    """The statements of the warning, run literally: the rows come, and no GTID is made."""
    a, b = pair97.a, pair97.b
    table_on(a, b, "xa")
    wait_for(b, commit(a, "XA START 'x'", "INSERT INTO xa.t VALUES (10, 'x')", *PREPARE))
    b.execute(b.dialect.stop_applier)
    ended = commit(a, "XA COMMIT 'x'")
    b.execute(f"SET SESSION gtid_next = '{ended}'", "BEGIN", "COMMIT")
    b.execute(b.dialect.start_applier)
    assert executed(b) == executed(a)
    assert [row[-1] for row in b.query("XA RECOVER")] == ["x"]
    assert rows(b, "xa.t") == []
    b.execute("SET sql_log_bin = 0", "XA COMMIT 'x'")
    assert b.query("XA RECOVER") == []
    assert rows(b, "xa.t") == rows(a, "xa.t") == [(10, "x")]
    assert executed(b) == executed(a)
