"""Manual instructions, run literally on real servers."""

import re

from compose import faults
from compose.faults import commit, table_on
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from repair import Plan
from tests.repair.live import await_clean, examine, executed, rows, run_plan


def _instruction(plan: Plan, code: str, strategy: str) -> str:
    [left] = [each for each in plan.not_planned if each.code == code]
    [text] = [way for way in left.by_hand if way.startswith(f"{strategy}: ")]
    return text.removeprefix(f"{strategy}: ")


def _point(replica: Server, statements: str, source: Server) -> None:
    text = re.sub(r"\(address of [^)]*\)", f"'{source.host}'", statements)
    text = text.replace("(its port)", str(source.port))
    replica.execute(*(each.strip() for each in text.split(";")))


def test_a_donor_serves_what_the_source_has_purged(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    fault = faults.purge_under_stopped_replica(star97, source="source", replica="replica1")
    wait_for(star97["replica2"], fault.purged)
    text = _instruction(examine(star97).plan(), "P1", "donor_refetch")
    statements, _, rest = text.partition("; wait until gtid_executed contains")
    assert "address of replica2" in statements
    assert "point the channel back to source" in rest
    _point(replica, statements.removeprefix("on replica1: "), star97["replica2"])
    wait_for(replica, fault.purged)
    _point(replica, statements.removeprefix("on replica1: "), source)
    await_clean(star97)
    assert rows(replica, "purged.t") == rows(source, "purged.t")


def test_workers_that_report_nothing_but_1756(pair56: Pair) -> None:
    """The seed's case with a parallel applier: the way of `explain 1756`, or the bypass at once."""
    a, b = pair56.a, pair56.b
    table_on(a, b, "viewed")
    b.execute(b.dialect.stop_replica, *b.dialect.parallel_applier, b.dialect.start_replica)
    statement = "CREATE VIEW viewed.v AS SELECT * FROM viewed.t"
    wait_for(b, commit(a, statement))
    b.execute("SET SESSION sql_log_bin = 0", "DROP VIEW viewed.v")
    commit(a, statement, expected_error=1050)
    faults.await_applier_stopped(b)
    a.execute("INSERT INTO viewed.t (note) VALUES ('later')")
    found = examine(pair56)
    assert found.codes == ["A3"]
    plan = found.plan()
    assert not plan.steps
    assert "slave_parallel_workers = 0" in _instruction(plan, "A3", "explain")
    plan = found.plan({"A3": "position_bypass"})
    assert [step.action for step in plan.steps] == ["MovePast", "InjectEmpty", "AutoPositionOn"]
    run_plan(pair56, plan)
    wait_for(b, executed(a))
    await_clean(pair56)
