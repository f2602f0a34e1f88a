"""MySQL before 5.7: the last transaction of a relay log is in no set once its source lost it."""

from compose.faults import await_status, commit, table_on
from compose.faults_applier import await_received
from compose.native.installation import Installation
from compose.native.shapes import chain, wait_for
from repair.model.actions import StartChannel
from tests.repair.live import examine, rows


def test_a_start_names_what_no_set_shows(installation56: Installation) -> None:
    """The receiver forgets the GTID when it connects; the reset source does not send it again."""
    with chain(installation56) as topology:
        first, middle, last = (topology[name] for name in ("first", "middle", "last"))
        table_on(first, middle, "hidden")
        kept = str(first.value("@@GLOBAL.gtid_executed"))
        wait_for(last, commit(middle, "INSERT INTO hidden.t VALUES (1, 'middle')"))
        wait_for(last, kept)
        kept = str(last.value("@@GLOBAL.gtid_executed"))
        last.execute(last.dialect.stop_applier)
        lost = commit(first, "INSERT INTO hidden.t VALUES (2, 'first')")
        wait_for(middle, lost)
        await_received(last, lost)
        received = last.replica_status()["Retrieved_Gtid_Set"]
        middle.execute("STOP SLAVE", "RESET MASTER", f"SET GLOBAL gtid_purged = '{kept}'")
        last.execute("STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
        await_status(last, lambda status: status["Retrieved_Gtid_Set"] != received)
        plan = examine(topology).plan()
        [start] = [step.effect for step in plan.steps]
        assert isinstance(start, StartChannel)
        assert start.server == "last"
        [warning] = [each for each in plan.warnings if "does not count the last" in each]
        assert "If middle lost it since (RESET MASTER, a crash, a clone)" in warning
        last.execute(last.dialect.start_applier)
        wait_for(last, lost)
        assert rows(last, "hidden.t") == [(1, "middle"), (2, "first")]
