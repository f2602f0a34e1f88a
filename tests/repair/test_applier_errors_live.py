"""Appliers that stop at an error which is not the transaction's, on real servers.

To leave the transaction out loses its rows, and the next start would have applied it. No plan does
so, not even when it is selected; what the finding tells the operator to do brings it.
"""

import pytest

from compose import faults, faults_applier
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from repair.strategies.strategy_registry import PLANNERS
from tests.repair.live import (
    Examination,
    await_clean,
    examine,
    executed,
    rows,
    run_plan,
    run_step,
    statements_of,
    wait_until,
)
from topology.catalogue.explanations import explain
from topology.catalogue.strategy_table import strategies_for

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow


def instruction(found: Examination) -> str:
    """Return what the operator is to do about the one stopped applier."""
    [left] = [each for each in found.plan().not_planned if each.code == "A3"]
    [text] = [way for way in left.by_hand if way.startswith("explain: ")]
    return text.removeprefix("explain: ")


def assert_nothing_is_left_out(found: Examination, title: str) -> None:
    assert not found.plan().steps
    for name in strategies_for("A3"):
        if name in PLANNERS:
            assert not found.plan({"A3": name}).steps, name
    why = str(found.plan({"A3": "inject_empty"}).not_planned)
    assert title in why or "could not be identified" in why


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_damaged_relay_log_is_received_again(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    fault = faults_applier.relay_log_damaged(pair)
    found = examine(pair)
    assert found.codes == ["A3"]
    assert_nothing_is_left_out(found, "the relay log cannot be read")
    text = instruction(found)
    assert text.startswith("no transaction caused the error, and a still has all of them: on b run")
    pair.b.execute(*statements_of(pair, text))
    wait_for(pair.b, fault.held)
    wait_until(lambda: rows(pair.b, "applier.t") == rows(pair.a, "applier.t"))
    await_clean(pair)


def test_a_damaged_relay_log_by_file_position_is_received_from_its_place(pair97: Pair) -> None:
    faults_applier.by_position(pair97.b)
    fault = faults_applier.relay_log_damaged(pair97)
    found = examine(pair97)
    [text] = [
        way.removeprefix("explain: ")
        for each in found.plan().not_planned
        if each.code == "A3"
        for way in each.by_hand
        if way.startswith("explain: ")
    ]
    status = pair97.b.replica_status()
    names = ("Relay_Source_Log_File", "Exec_Source_Log_Pos")
    assert "with the values of SHOW REPLICA STATUS" in text
    for name in names:
        text = text.replace(f"({name})", str(status[name]))
    pair97.b.execute(*statements_of(pair97, text))
    wait_for(pair97.b, fault.held)
    assert rows(pair97.b, "applier.t") == rows(pair97.a, "applier.t")


def test_a_damaged_relay_log_that_is_the_last_copy_is_kept(pair97: Pair) -> None:
    a = pair97.a
    fault = faults_applier.relay_log_damaged(pair97)
    a.execute("FLUSH BINARY LOGS")

    def is_purged() -> bool:
        a.execute(f"PURGE BINARY LOGS TO '{a.binary_log_position()[0]}'")
        return GtidSet.parse(fault.held) <= GtidSet.parse(str(a.value("@@GLOBAL.gtid_purged")))

    wait_until(is_purged)
    found = examine(pair97)
    assert found.codes == ["A3", "P2"]
    assert_nothing_is_left_out(found, "the relay log cannot be read")
    text = instruction(found)
    assert text.startswith("do NOT delete the relay log of b")
    assert GtidSet.parse(fault.held).shortened() in text
    assert not statements_of(pair97, text)


def _worker(server: Server, gtids: str) -> int:
    [(thread,)] = server.query(
        "SELECT t.PROCESSLIST_ID FROM performance_schema.threads AS t JOIN"
        " performance_schema.replication_applier_status_by_worker AS w"
        " ON t.THREAD_ID = w.THREAD_ID WHERE w.APPLYING_TRANSACTION = %s",
        [gtids],
    )
    return int(thread)


def test_a_worker_that_was_killed_applies_it_at_the_next_start(pair97: Pair) -> None:
    b = pair97.b
    with faults_applier.held_up(pair97, "row lock") as held:
        wait_until(lambda: held.held in str(b.value("@@GLOBAL.gtid_owned")))
        b.execute(f"KILL {_worker(b, held.held)}")
        faults.await_applier_stopped(b)
        found = examine(pair97)
        assert found.codes == ["A3"]
        assert_nothing_is_left_out(found, "a replication thread was interrupted")
        assert "START REPLICA continues: the applier applies the transaction again" in instruction(
            found
        )
        b.execute("START REPLICA")
    wait_for(b, held.held)
    assert rows(b, "applier.t") == rows(pair97.a, "applier.t")
    await_clean(pair97)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_wait_that_was_given_up_ends_with_the_lock(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    b = pair.b
    prefix = b.dialect.words.replica_variable_prefix
    b.execute(
        "SET GLOBAL innodb_lock_wait_timeout = 1",
        f"SET GLOBAL {prefix}transaction_retries = 0",
        b.dialect.stop_replica,
        b.dialect.start_replica,
    )
    with faults_applier.held_up(pair, "row lock") as held:
        faults.await_applier_stopped(b)
        found = examine(pair)
        assert found.codes == ["A3"]
        assert_nothing_is_left_out(found, "the applier waited too long for a lock")
        text = instruction(found)
        assert "End the session that holds the lock" in text
        b.execute("SET GLOBAL innodb_lock_wait_timeout = 50", b.dialect.start_replica)
    wait_for(b, held.held)
    await_clean(pair)
    assert executed(b) == executed(pair.a)


def test_a_channel_with_restrictions_goes_on_after_what_is_left_out(pair97: Pair) -> None:
    """It applied all until the error: the plan does not stop half-way, with the GTID used up."""
    a, b = pair97.a, pair97.b
    unlogged = "SET SESSION sql_log_bin = 0"
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    b.execute(
        unlogged,
        "CREATE USER 'applier'@'%'",
        "GRANT REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN ON *.* TO 'applier'@'%'",
        "GRANT INSERT ON d.* TO 'applier'@'%'",
        "INSERT INTO d.t VALUES (1)",
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = 'applier'@'%'",
        "START REPLICA",
    )
    a.execute("INSERT INTO d.t VALUES (1)", "INSERT INTO d.t VALUES (2)")
    faults.await_applier_stopped(b)
    run_plan(pair97, examine(pair97).plan({"A2": "inject_empty"}))
    pair97.settle()
    assert rows(b, "d.t") == [(1,), (2,)]
    b.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = NULL")


def test_a_default_fetch_does_not_stop_a_channel_for_the_privileges_of_its_account(
    pair97: Pair,
) -> None:
    """It runs with them, and would stop at the first operation that it may not do."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    a.execute("INSERT INTO d.t VALUES (1, 1)")
    pair97.settle()
    unlogged = "SET SESSION sql_log_bin = 0"
    b.execute(
        unlogged,
        "CREATE USER 'applier'@'%'",
        "GRANT REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN ON *.* TO 'applier'@'%'",
        "GRANT INSERT ON d.* TO 'applier'@'%'",
        "STOP REPLICA",
    )
    missing = faults.commit(a, "UPDATE d.t SET v = 5 WHERE id = 1")
    b.execute("CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = 'applier'@'%'")
    faults.move_past(a, b)
    wait_for(b, faults.commit(a, "INSERT INTO d.t VALUES (2, 2)"))
    plan = examine(pair97).plan()
    [step] = [each for each in plan.steps if each.action == "AutoPositionOn"]
    refused = run_step(pair97, plan, step)
    assert "may not be allowed what is fetched; if it is, select the strategy" in refused.stderr
    assert "'applier'@'%'" in refused.stderr
    wait_for(b, faults.commit(a, "INSERT INTO d.t VALUES (3, 3)"))
    b.execute(unlogged, "GRANT UPDATE ON d.* TO 'applier'@'%'")
    run_plan(pair97, examine(pair97).plan({"H1": "refetch"}))
    wait_for(b, missing)
    assert rows(b, "d.t") == rows(a, "d.t")
    b.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = NULL")


@pytest.mark.parametrize(
    ("options", "statement", "repaired"),
    [
        (
            "REQUIRE_TABLE_PRIMARY_KEY_CHECK = ON",
            "CREATE TABLE refused.t (id INT)",
            "CHANGE REPLICATION SOURCE TO REQUIRE_TABLE_PRIMARY_KEY_CHECK = STREAM",
        ),
        (
            "PRIVILEGE_CHECKS_USER = 'applier'@'%'",
            "CREATE TABLE refused.t (id INT PRIMARY KEY)",
            "GRANT CREATE ON *.* TO 'applier'@'%'",
        ),
    ],
)
def test_what_a_channel_forbids_is_named_with_the_way_out(
    pair97: Pair, options: str, statement: str, repaired: str
) -> None:
    a, b = pair97.a, pair97.b
    unlogged = "SET SESSION sql_log_bin = 0"
    b.execute(
        unlogged,
        "CREATE USER 'applier'@'%'",
        "GRANT REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN ON *.* TO 'applier'@'%'",
    )
    a.execute("CREATE DATABASE refused")
    pair97.settle()
    b.execute("STOP REPLICA", f"CHANGE REPLICATION SOURCE TO {options}", "START REPLICA")
    held = faults.commit(a, statement)
    faults.await_applier_stopped(b)
    found = examine(pair97)
    assert found.codes == ["A3"]
    text = instruction(found)
    assert repaired.removeprefix("CHANGE REPLICATION SOURCE TO ").split(" ")[0] in text
    b.execute(unlogged, "STOP REPLICA SQL_THREAD", repaired, "START REPLICA SQL_THREAD")
    wait_for(b, held)
    await_clean(pair97)
    assert explain(str(b.replica_status()["Last_SQL_Errno"] or 3750)).code == "A3"
    b.execute(
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = NULL,"
        " REQUIRE_TABLE_PRIMARY_KEY_CHECK = STREAM",
    )
