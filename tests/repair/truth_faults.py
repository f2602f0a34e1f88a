"""Faults whose rows matter: the cases of test_truth_live.py start from them."""

from collections.abc import Callable

from compose import faults, faults_applier, faults_history, faults_logs, faults_plans
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for


def one_way(fault: Callable[[Topology], object]) -> Callable[[Topology], object]:
    """Make a plain source and its replica of a pair first."""

    def made(pair: Topology) -> object:
        pair["a"].execute(pair["a"].dialect.stop_replica, pair["a"].dialect.reset_replica)
        return fault(pair)

    return made


def errant_rows(star: Topology) -> None:
    faults_plans.errant_rows(star, source="source", on="replica1")


def errant_rows_in_pair(pair: Topology) -> None:
    faults_plans.errant_rows(pair, source="a", on="b")


def rows_behind_a_stopped_channel(pair: Topology) -> None:
    """Stop a way back, and write behind it."""
    faults.table_on(pair["a"], pair["b"], "waits")
    pair["a"].execute(pair["a"].dialect.stop_replica)
    faults.commit(pair["b"], "INSERT INTO waits.t (note) VALUES ('behind a stopped channel')")


def purged_errant_rows(star: Topology) -> None:
    errant_rows(star)
    _purge(star["replica1"])


def purged_errant_rows_in_pair(pair: Topology) -> None:
    errant_rows_in_pair(pair)
    _purge(pair["b"])


def _purge(server: Server) -> None:
    server.execute("FLUSH BINARY LOGS")
    server.execute(f"PURGE BINARY LOGS TO '{server.binary_log_position()[0]}'")


def conflict(pair: Topology) -> None:
    faults.await_applier_stopped(faults_plans.row_conflict(pair).replica)


def bypassed_in_star(star: Topology) -> None:
    faults.bypassed_and_purged(star, source="source", replica="replica1")


def log_lost_in_star(star: Topology) -> None:
    faults_logs.log_lost(star, source="source", replica="replica1")


def failing_view(pair: Topology) -> None:
    fault = faults.failing_create_view(pair)
    faults.commit(fault.source, "INSERT INTO viewed.t (note) VALUES ('behind it')")


def attached_primary(star: Topology) -> None:
    """Attach the old primary with its tail to the new one: both its threads run."""
    faults_history.attached_with_tail(star, equal_keys=False)


def old_primary(star: Topology) -> None:
    """Let the old primary return with a tail whose keys no other server uses."""
    replica = star["replica1"]
    replica.execute(
        "SET GLOBAL auto_increment_increment = 10", "SET GLOBAL auto_increment_offset = 5"
    )
    faults_history.failover_with_tail(star)


def by_hand(star: Topology) -> None:
    faults_history.made_by_hand(star)


def by_hand_in_pair(pair: Topology) -> None:
    faults_history.made_by_hand(pair, owner="a", written_on="b")


def table_there(pair: Topology) -> None:
    """Make a table on b, with a row and without its log, that a makes as well (1050)."""
    made = "CREATE TABLE made.t (id INT PRIMARY KEY)"
    wait_for(pair["b"], faults.commit(pair["a"], "CREATE DATABASE made"))
    pair["b"].execute("SET SESSION sql_log_bin = 0", made, "INSERT INTO made.t VALUES (7)")
    faults.commit(pair["a"], made)
    faults.await_applier_stopped(pair["b"])


def relay_position(pair: Topology) -> None:
    faults_applier.relay_position_moved(pair, later_count=2)


def by_position(pair: Topology) -> None:
    faults_plans.stopped_behind_position(pair, conflicts=False)


def stopped(pair: Topology) -> None:
    faults.table_on(pair["a"], pair["b"], "waits")
    pair["b"].execute(pair["b"].dialect.stop_replica)
    faults.commit(pair["a"], "INSERT INTO waits.t (note) VALUES ('for a stopped channel')")


def check_violated(pair: Topology) -> None:
    faults_plans.violated_check(pair)
