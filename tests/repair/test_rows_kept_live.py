"""Rows whose GTIDs a server has forgotten: they must not be done, or fetched, a second time."""

import os
import shutil
import time

import pytest
from pymysql.constants import ER

from compose import faults
from compose.native.provision import REPLICATION_USER, copy_data_directory
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from tests.repair.live import examine, run_plan
from topology.catalogue.findings import Grade

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def lose_the_end_of_the_log(source: Server, replica: Server, changes: list[str]) -> str:
    """Commit, then cut exactly that off the binary log, as power loss does with sync_binlog=0."""
    file, position = source.binary_log_position()
    lost = faults.commit(source, *changes)
    wait_for(replica, lost)
    time.sleep(1.5)  # InnoDB writes the last commit to its log within a second
    source.kill()
    os.truncate(source.datadir / file, position)
    source.start()
    return lost


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_rows_that_a_crash_left_are_not_done_again(pair56: Pair, key: str) -> None:
    a, b = pair56.a, pair56.b
    a.execute("CREATE DATABASE kept", f"CREATE TABLE kept.t (id INT {key})")
    pair56.settle()
    changes = [f"INSERT INTO kept.t VALUES ({row})" for row in range(3)]
    lost = lose_the_end_of_the_log(a, b, changes)
    assert a.value("COUNT(*) FROM kept.t") == 3, "the crash left the rows"
    found = examine(pair56)
    [finding] = [one for one in found.audit.findings if one.code == "E3"]
    assert str(finding.gtid_set) == lost
    assert "rows may still be there" in finding.explanation
    assert finding.strategies[0].name == "check_data"
    plan = found.plan({"E3": "redo_on_source"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E3"]
    assert ("are already on a" if key else "may still be on a") in left.why


def test_what_a_crash_of_a_replica_cut_off_its_log_is_not_proved_to_be_missing(
    pair56: Pair,
) -> None:
    """Its GTIDs were in the binary log only; the rows and the applier's place are elsewhere."""
    a, b = pair56.a, pair56.b
    a.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT PRIMARY KEY)")
    pair56.settle()
    file, position = b.binary_log_position()
    wait_for(b, faults.commit(a, *(f"INSERT INTO kept.t VALUES ({row})" for row in range(3))))
    time.sleep(1.5)  # InnoDB writes the last commit to its log within a second
    b.kill()
    os.truncate(b.datadir / file, position)
    b.start()
    b.execute("START SLAVE")
    # It receives them again, and the rows are there.
    faults.await_status(b, lambda shown: shown["Last_SQL_Errno"] == ER.DUP_ENTRY)
    assert b.value("COUNT(*) FROM kept.t") == 3, "the crash left the rows"
    found = examine(pair56)
    [finding] = [each for each in found.audit.findings if each.code == "H8"]
    assert finding.grade is Grade.LIKELY
    assert "a crash of b that lost the end of its binary log" in finding.explanation
    assert found.plan().steps == ()


def test_rows_behind_a_history_that_was_set_are_not_fetched_unasked(star97: Topology) -> None:
    """Nothing is left of the old channel: no place in the source's log, no relay log."""
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT)")
    star97.settle()
    old = source.value("@@gtid_executed")
    source.execute("INSERT INTO kept.t VALUES (1)", "INSERT INTO kept.t VALUES (2)")
    star97.settle()
    replica.execute(
        "STOP REPLICA",
        "RESET REPLICA ALL",
        "RESET BINARY LOGS AND GTIDS",
        f"SET GLOBAL gtid_purged = '{old}'",
        replica.dialect.change_source_to(
            host=source.host, port=source.port, user=REPLICATION_USER, auto_position=1
        ),
    )
    found = examine(star97)
    plan = found.plan()
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if "replica1" in each.about]
    assert "kept.t" in left.why
    assert found.plan({left.code: "start_channel"}).steps


def lose_what_was_received(pair: Pair) -> str:
    """Let a crash, and lose what b has received and not applied; return its GTID.

    Both threads of b are stopped then.
    """
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT PRIMARY KEY)")
    pair.settle()
    b.execute("STOP REPLICA SQL_THREAD")
    a.freeze()
    before_crash = a.folder / "before-crash"
    try:
        copy_data_directory(a.datadir, before_crash)
    finally:
        a.thaw()
    lost = faults.commit(a, "INSERT INTO kept.t VALUES (1)")
    faults.await_status(
        b, lambda status: GtidSet.parse(lost) <= GtidSet.parse(status["Retrieved_Gtid_Set"])
    )
    b.execute(b.dialect.stop_replica)
    a.kill()
    shutil.rmtree(a.datadir)
    before_crash.rename(a.datadir)
    a.start()
    return lost


@pytest.mark.slow
def test_a_relay_log_of_what_the_source_lost_and_gave_again_is_not_applied(pair97: Pair) -> None:
    """The sets would agree then, and the rows not: b has read more of a's log than a has of it."""
    a, b = pair97.a, pair97.b
    lost = lose_what_was_received(pair97)
    assert faults.commit(a, "INSERT INTO kept.t VALUES (2)") == lost, "given again"
    found = examine(pair97)
    assert "A7" in found.codes
    assert found.plan().steps == ()
    plan = found.plan({"A7": "start_channel"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert f"the relay log of b has {lost}, which a may have lost" in left.why
    # The way that the reason names.
    b.execute("CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1", b.dialect.start_replica)
    wait_for(b, lost)
    assert b.query("SELECT id FROM kept.t") == a.query("SELECT id FROM kept.t")


def test_what_waits_from_before_a_start_of_the_source_is_not_applied_unasked(pair97: Pair) -> None:
    """As above, and the receiver has gone on: its place is one of the log that a has."""
    a, b = pair97.a, pair97.b
    lost = lose_what_was_received(pair97)
    time.sleep(3)  # a start is known to two seconds
    assert faults.commit(a, "INSERT INTO kept.t VALUES (2)") == lost, "given again"
    last = faults.commit(a, "INSERT INTO kept.t VALUES (3)")
    b.execute("START REPLICA IO_THREAD")
    faults.await_status(
        b, lambda status: GtidSet.parse(last) <= GtidSet.parse(status["Retrieved_Gtid_Set"])
    )
    found = examine(pair97)
    assert "A7" in found.codes
    plan = found.plan()
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert "a was restarted after it committed" in left.why
    chosen = found.plan({"A7": "start_channel"})
    assert len(chosen.steps) == 1
    assert any("the relay log of b has the former ones" in each for each in chosen.warnings)


@pytest.mark.slow
def test_a_source_that_was_shut_down_in_order_looks_the_same(pair97: Pair) -> None:
    """The benign twin: nothing was lost, and what was selected is applied as it is on a."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT PRIMARY KEY)")
    pair97.settle()
    b.execute("STOP REPLICA SQL_THREAD")
    faults.commit(a, "INSERT INTO kept.t VALUES (1)")
    time.sleep(3)  # a start is known to two seconds
    a.restart()
    time.sleep(3)
    last = faults.commit(a, "INSERT INTO kept.t VALUES (2)")
    faults.await_status(
        b, lambda status: GtidSet.parse(last) <= GtidSet.parse(status["Retrieved_Gtid_Set"])
    )
    found = examine(pair97)
    assert found.plan().steps == ()
    run_plan(pair97, found.plan({"A7": "start_channel"}))
    assert b.query("SELECT id FROM kept.t") == a.query("SELECT id FROM kept.t")
