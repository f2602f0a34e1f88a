"""Plans that are run late, when replication has done meanwhile what they would have decided."""

import time

import pytest

from compose import faults, faults_applier, faults_plans
from compose.faults import await_status
from compose.native.shapes import Pair, Topology, follow, wait_for
from gtid import GtidSet
from repair.render import render_files
from tests.repair.live import examine, executed, refusals, rows, run_plan, run_step
from topology.readings.snapshot import START_SLACK

pytestmark = pytest.mark.slow  # a rare shape: make nightly

_SHOP_CHANGED = [(1, "changed"), (3, "three"), (10, "new")]


def test_nothing_is_undone_that_has_arrived_elsewhere(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    faults_plans.errant_rows(star97, source="source", on="replica1")
    found = examine(star97)
    undo, redo = found.plan({"E1": "undo_on_replica"}), found.plan({"E1": "redo_on_source"})
    assert refusals(star97, undo) == []
    # What is done again must fit the rows of the other replica, and those of the one that has it.
    assert refusals(star97, redo) == []
    for server, late, back in (
        (star97["replica2"], "INSERT INTO shop.t VALUES (10, 'late')", "DELETE FROM shop.t"),
        (replica, "REPLACE INTO shop.t VALUES (10, 'late')", "UPDATE shop.t SET note = 'new'"),
    ):
        server.execute("SET SESSION sql_log_bin = 0", late)
        [refused] = refusals(star97, redo)
        assert "it would differ from what is redone on source" in refused
        server.execute("SET SESSION sql_log_bin = 0", f"{back} WHERE id = 10")
        assert refusals(star97, redo) == []
    run_plan(star97, redo)  # a colleague has decided otherwise
    wait_for(star97["replica2"], executed(replica))
    [refused, *_] = refusals(star97, undo)
    assert "a row of shop.t is as the transactions leave it" in refused
    assert rows(source, "shop.t") == rows(replica, "shop.t") == _SHOP_CHANGED


def test_nothing_is_undone_that_is_on_its_way_elsewhere(star97: Topology) -> None:
    """Received and not yet applied, or to come by a channel that is new: it once came behind."""
    source, replica, other = star97["source"], star97["replica1"], star97["replica2"]
    faults_plans.errant_rows(star97, source="source", on="replica1")
    undo = examine(star97).plan({"E1": "undo_on_replica"})
    other.execute("STOP REPLICA SQL_THREAD")
    source.execute(source.dialect.change_source_to(host=replica.host, port=replica.port))
    [refused] = refusals(star97, undo)
    assert "its channels changed since the plan was made" in refused
    follow(source, replica)
    wait_for(source, executed(replica))
    received = (
        "SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status"
    )
    deadline = time.monotonic() + 30
    while not int(other.value(f"GTID_SUBSET('{executed(replica)}', ({received}))")):
        assert time.monotonic() < deadline, "nothing was received"
        time.sleep(0.05)
    on_other, on_source = refusals(star97, undo)
    assert "a row of shop.t is as the transactions leave it" in on_source
    assert "and not applied them yet" in on_other
    assert rows(replica, "shop.t") == _SHOP_CHANGED


def test_what_the_source_has_written_since_is_not_taken_back(star97: Topology) -> None:
    """A client writes the same row properly: it reaches the replica, which has it already."""
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)")
    source.execute("INSERT INTO shop.t VALUES (1, 1)")
    star97.settle()
    replica.execute("SET GLOBAL super_read_only = 0", "UPDATE shop.t SET v = 2")
    undo = examine(star97).plan({"E1": "undo_on_replica"})
    assert refusals(star97, undo) == []
    source.execute("UPDATE shop.t SET v = 2")
    star97.settle()
    refused = refusals(star97, undo)
    assert all("a client has written the same since the plan was made" in each for each in refused)
    assert refused


def test_a_hole_is_not_filled_when_its_rows_are_gone_again(pair97: Pair) -> None:
    faults_plans.bypass_with_rows_there(pair97)
    plan = examine(pair97).plan()
    kept = rows(pair97.b, "bypassed.t")
    pair97.b.execute("SET SESSION sql_log_bin = 0", "DELETE FROM bypassed.t")
    before = executed(pair97.b)
    done = run_step(pair97, plan, plan.steps[0])
    assert done.returncode != 0
    assert "is not as it was when the plan was made" in done.stderr
    assert executed(pair97.b) == before
    values = ", ".join(map(repr, kept)).replace("None", "NULL")
    pair97.b.execute("SET SESSION sql_log_bin = 0", f"INSERT INTO bypassed.t VALUES {values}")
    for _ in range(2):
        run_plan(pair97, plan)


def test_an_undo_may_be_run_again_after_its_last_step(star97: Topology) -> None:
    faults_plans.errant_rows(star97, source="source", on="replica1")
    undo = examine(star97).plan({"E1": "undo_on_replica"})
    for _ in range(2):
        assert refusals(star97, undo) == []
        run_plan(star97, undo)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["pair97", "pair56"])
def test_what_the_source_writes_beside_an_undo_stays_if_the_applier_is_stopped(
    pair: str, request: pytest.FixtureRequest
) -> None:
    """As the pages say: stop it before the check. Once the plan is done, the check refuses."""
    servers: Pair = request.getfixturevalue(pair)
    a, b = servers.a, servers.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    faults_plans.errant_rows(servers, source="a", on="b")
    undo = examine(servers).plan({"E1": "undo_on_replica"})
    b.execute(f"{b.dialect.stop_replica} SQL_THREAD")
    assert refusals(servers, undo) == []
    a.execute("INSERT INTO shop.t VALUES (10, 'new')")
    assert run_step(servers, undo, undo.steps[0]).returncode == 0
    b.execute(f"{b.dialect.start_replica} SQL_THREAD")
    wait_for(b, executed(a))
    assert rows(a, "shop.t") == rows(b, "shop.t")
    assert any("a client has written the same" in each for each in refusals(servers, undo))


def test_gtids_are_used_up_only_behind_the_undo(star97: Topology) -> None:
    """Out of order, or behind a script that failed: the rows would stay, and the sets agree."""
    faults_plans.errant_rows(star97, source="source", on="replica1")
    plan = examine(star97).plan({"E1": "undo_on_replica"})
    undo, inject = plan.steps
    assert "its undo did not finish" in "".join(refusals(star97, plan, inject))
    assert run_step(star97, plan, undo).returncode == 0
    assert refusals(star97, plan, inject) == []
    assert run_step(star97, plan, inject).returncode == 0


def test_a_gtid_that_its_server_has_given_away_is_not_called_redone(pair97: Pair) -> None:
    fault = faults.lost_tail_crash(pair97)
    found = examine(pair97)
    redo, undo = found.plan({"E3": "redo_on_source"}), found.plan({"E3": "undo_on_replica"})
    assert refusals(pair97, undo) == []
    pair97.a.execute("INSERT INTO lost.t (note) VALUES ('takes a lost GTID')")
    late = run_step(pair97, redo, redo.steps[0])
    assert late.returncode != 0
    assert "they may use these GTIDs" in late.stderr
    [refused] = refusals(pair97, undo)
    assert "it has used the GTIDs for transactions of its own" in refused
    # A client that takes the second GTID while the script redoes the first.
    script = render_files(redo)[redo.steps[0].file_name]
    second = sorted(GtidSet.parse(fault.lost).gtids())[1]
    between = script.index(f"SET @there = GTID_SUBSET('{second}'")
    taken = f"SET @there = 1;\nSET @go = 1;\n{script[script.index(';', between) + 1 :]}"
    stopped = pair97.a.client(taken)
    assert stopped.returncode != 0
    assert "was used for another transaction meanwhile" in stopped.stderr


def test_a_lost_tail_that_two_replicas_have_is_redone_for_both(star97: Topology) -> None:
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    wait_for(star97["replica2"], fault.lost)
    plan = examine(star97).plan({"E3": "redo_on_source"})
    assert [f"{step.server} {step.action}" for step in plan.steps] == [
        "source RedoTransactions",
        "replica1 StartChannel",
        "replica2 StartChannel",
    ]
    run_plan(star97, plan)
    star97["source"].execute("INSERT INTO lost.t (note) VALUES ('after the repair')")
    star97.settle()
    assert len({tuple(rows(server, "lost.t")) for server in star97.servers.values()}) == 1


def test_a_lost_tail_that_waits_on_a_delayed_replica_is_redone_and_not_undone(
    star97: Topology,
) -> None:
    late = star97["replica2"]
    change = "CHANGE REPLICATION SOURCE TO SOURCE_DELAY"
    late.execute("STOP REPLICA", f"{change} = 3600", "START REPLICA")
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    await_status(late, lambda status: status["Last_IO_Errno"] == 13114)
    assert GtidSet.parse(fault.lost) <= GtidSet.parse(
        str(late.replica_status()["Retrieved_Gtid_Set"])
    )
    found = examine(star97)
    undo = found.plan({"E3": "undo_on_replica"})
    assert not undo.steps
    assert "replica2 had not applied" in str(undo.not_planned)
    redo = found.plan({"E3": "redo_on_source"})
    assert redo.steps[0].action == "RedoTransactions"
    run_plan(star97, redo)
    late.execute("STOP REPLICA", f"{change} = 0", "START REPLICA")
    star97.settle()
    assert len({tuple(rows(server, "lost.t")) for server in star97.servers.values()}) == 1


@pytest.mark.parametrize("pair", ["pair97", "pair56"])
def test_auto_position_is_not_switched_on_behind_a_restart(
    pair: str, request: pytest.FixtureRequest
) -> None:
    """A crash may have lost what the plan did not see, and a file position goes on behind it."""
    servers: Pair = request.getfixturevalue(pair)
    faults.table_on(servers.a, servers.b, "late")
    faults_applier.by_position(servers.b)
    plan = examine(servers).plan()
    [step] = plan.steps
    assert step.action == "AutoPositionOn"
    time.sleep(START_SLACK.total_seconds() + 1)  # a start is known to two seconds
    servers.b.restart()
    assert "it was restarted since the plan was made" in run_step(servers, plan, step).stderr
    servers.settle()
    run_plan(servers, examine(servers).plan())
    assert "C3" not in examine(servers).codes
