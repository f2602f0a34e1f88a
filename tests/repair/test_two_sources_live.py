"""Two sources that write one row: a start of the second one may put an older version back."""

from compose.faults import commit, table_on
from compose.native.provision import REPLICATION_USER
from compose.native.shapes import Topology, wait_for
from tests.repair.live import examine, rows, run_plan


def test_a_start_names_rows_that_another_source_changed_back(star97: Topology) -> None:
    one, two, replica = star97["source"], star97["replica1"], star97["replica2"]
    table_on(one, replica, "shared")
    wait_for(two, str(one.value("@@GLOBAL.gtid_executed")))
    two.execute("STOP REPLICA", "RESET REPLICA ALL")
    commit(two, "INSERT INTO shared.t VALUES (5, 'two')")
    wait_for(
        replica,
        commit(one, "INSERT INTO shared.t VALUES (5, 'one')", "DELETE FROM shared.t WHERE id = 5"),
    )
    change = replica.dialect.change_source_to(
        host=two.host, port=two.port, user=REPLICATION_USER, auto_position=1
    )
    replica.execute(f"{change} FOR CHANNEL 'second'")
    plan = examine(star97).plan()
    [warning] = [each for each in plan.warnings if "from other sources than replica1" in each]
    assert "older versions replace them" in warning
    assert rows(replica, "shared.t") == []
    run_plan(star97, plan)
    assert rows(replica, "shared.t") == [(5, "two")]
