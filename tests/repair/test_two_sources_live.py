"""Two sources that write one row: a start of the second one may put an older version back."""

import shutil

import pytest

from compose.faults import commit, table_on
from compose.faults_applier import await_received
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for
from tests.repair.live import await_clean, examine, rows, run_plan, wait_until

pytestmark = pytest.mark.slow  # a rare shape: make nightly


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


@pytest.mark.parametrize("is_behind", [True, False])
def test_nothing_is_fetched_from_a_source_that_is_behind_its_replica(
    star97: Topology, *, is_behind: bool
) -> None:
    """replica2 skips row 5 of replica1, and receives of their source that it came and went."""
    source, other, replica = star97["source"], star97["replica1"], star97["replica2"]
    table_on(source, replica, "shared")
    wait_for(other, str(source.value("@@GLOBAL.gtid_executed")))
    commit(other, "SET GLOBAL read_only = OFF", "INSERT INTO shared.t VALUES (5, 'skipped')")
    log_file, log_pos = other.binary_log_position()
    change = replica.dialect.change_source_to(
        host=other.host,
        port=other.port,
        user=REPLICATION_USER,
        auto_position=0,
        log_file=log_file,
        log_pos=log_pos,
    )
    replica.execute(f"{change} FOR CHANNEL 'second'", "START REPLICA FOR CHANNEL 'second'")
    key = 5 if is_behind else 6
    later = commit(
        source,
        f"INSERT INTO shared.t VALUES ({key}, 'came')",
        f"DELETE FROM shared.t WHERE id = {key}",
    )
    wait_for(replica, later)
    if is_behind:
        wait_until(lambda: bool(other.replica_status()["Last_SQL_Errno"]))
    else:
        wait_for(other, later)
    plan = examine(star97).plan()
    left = {each.code: each.why for each in plan.not_planned}
    run_plan(star97, plan)
    if is_behind:
        assert "over another channel, and replica1 does not have it yet" in left["H1"]
        assert rows(replica, "shared.t") == []
    else:
        assert "H1" not in left
        assert rows(replica, "shared.t") == rows(other, "shared.t") == [(5, "skipped")]


@pytest.mark.parametrize("is_engine_safe", [True, False], ids=["InnoDB", "MyISAM"])
def test_the_second_channel_is_started_once_the_first_one_has_executed_it(
    star97: Topology, *, is_engine_safe: bool
) -> None:
    """A diamond: both channels stop at one row. MyISAM keeps a part of what failed."""
    source, other, replica = star97["source"], star97["replica1"], star97["replica2"]
    table_on(source, replica, "shared")
    if not is_engine_safe:
        wait_for(replica, commit(source, "ALTER TABLE shared.t ENGINE = MyISAM"))
    change = replica.dialect.change_source_to(
        host=other.host, port=other.port, user=REPLICATION_USER, auto_position=1
    )
    replica.execute(f"{change} FOR CHANNEL 'second'", "START REPLICA FOR CHANNEL 'second'")
    replica.execute("SET sql_log_bin = 0", "INSERT INTO shared.t VALUES (6, 'here')")
    commit(source, "INSERT INTO shared.t VALUES (5, 'one'), (6, 'there'), (7, 'two')")
    wait_until(lambda: len(_in_conflict(replica)) == (2 if is_engine_safe else 1))
    if is_engine_safe:
        commit(source, "UPDATE shared.t SET note = 'since' WHERE id = 6")
        first = next(each for each in examine(star97).audit.findings if each.code == "A2")
        run_plan(star97, examine(star97).plan({first.id: "resolve_conflict"}))
        wait_until(lambda: len(_in_conflict(replica)) == 1)
    wait_for(other, str(source.value("@@GLOBAL.gtid_executed")))
    examination = examine(star97)
    [stuck] = [each for each in examination.audit.findings if each.code == "A2"]
    assert "counts as executed on replica2" in stuck.explanation
    assert "stays missing" not in stuck.explanation
    plan = examination.plan()
    if not is_engine_safe:
        assert not plan.steps
        [why] = [each.why for each in plan.not_planned if each.code == "A2"]
        assert "its rows are not as it left them" in why
        return
    [step] = plan.steps
    assert (step.action, step.server) == ("StartChannel", "replica2")
    run_plan(star97, plan)
    await_clean(star97)
    assert rows(replica, "shared.t") == rows(source, "shared.t")


def _in_conflict(server: Server) -> list[tuple[object, ...]]:
    return list(
        server.query(
            "SELECT CHANNEL_NAME FROM performance_schema.replication_applier_status_by_worker"
            " WHERE LAST_ERROR_NUMBER = 1062 GROUP BY CHANNEL_NAME"
        )
    )


@pytest.mark.parametrize("is_restored", [True, False], ids=["restored", "still there"])
def test_a_former_history_is_not_brought_beside_what_replaced_it(
    star97: Topology, *, is_restored: bool
) -> None:
    """A delayed replica will apply what its source no longer has: a backup was restored there."""
    source, late, replica = star97["source"], star97["replica1"], star97["replica2"]
    table_on(source, replica, "shared")
    wait_for(late, str(source.value("@@GLOBAL.gtid_executed")))
    backup = source.datadir.with_suffix(".backup")
    source.stop()
    shutil.copytree(source.datadir, backup)
    source.start()
    change = replica.dialect.change_source_to(
        host=late.host, port=late.port, user=REPLICATION_USER, auto_position=1
    )
    replica.execute("STOP REPLICA", f"{change} FOR CHANNEL 'second'")
    late.execute(
        "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600", "START REPLICA"
    )
    await_received(late, commit(source, "INSERT INTO shared.t VALUES (5, 'former')"))
    if is_restored:
        source.stop()
        shutil.rmtree(source.datadir)
        backup.rename(source.datadir)
        source.start()
    replica.execute("START REPLICA FOR CHANNEL ''")
    wait_for(replica, str(source.value("@@GLOBAL.gtid_executed")))
    plan = examine(star97).plan()
    if backup.exists():
        shutil.rmtree(backup)
    refused = [each for each in plan.not_planned if "belongs to a former history" in each.why]
    started = [step for step in plan.steps if step.server == "replica2"]
    assert [each.code for each in refused] == ["A7"] * is_restored
    assert bool(started) is not is_restored
