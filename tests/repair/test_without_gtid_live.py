"""Transactions without a GTID, ahead of a channel: no set shows them, and auto-position skips them.

The malign cause: gtid_mode of the source was OFF_PERMISSIVE for one transaction. The benign one
looks the same in every set: it was not.
"""

import pytest

from binlog.errors import BinlogError
from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair
from repair.adapters import transactions_without_gtid
from repair.adapters.transactions_without_gtid import read_without_gtid
from repair.model.strategy_case import WithoutGtid
from tests.repair.live import examine, executed, rows, run_plan, run_step, targets_of, wait_until
from topology.catalogue.findings import Grade

pytestmark = pytest.mark.slow  # a rare shape: make nightly

DOWN, UP = ("ON_PERMISSIVE", "OFF_PERMISSIVE"), ("ON_PERMISSIVE", "ON")


def modes(server: Server, names: tuple[str, ...]) -> None:
    server.execute(*(f"SET GLOBAL gtid_mode = {name}" for name in names))


def stopped_by_position(pair: Pair, *, without_gtid: bool, auto_position: int = 0) -> None:
    """Let b miss two rows of a, with a file position; the first one may have no GTID."""
    faults.table_on(pair.a, pair.b, "unnumbered")
    pair.b.execute("STOP REPLICA")
    if not auto_position:
        pair.b.execute("CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0")
    if without_gtid:
        modes(pair.a, DOWN)
    pair.a.execute("INSERT INTO unnumbered.t (id) VALUES (101)")
    if without_gtid:
        modes(pair.a, UP)
    pair.a.execute("INSERT INTO unnumbered.t (id) VALUES (102)")


def test_a_channel_that_assigns_gtids_goes_on(pair97: Pair) -> None:
    """Auto-position is refused (4014). And what it gave a GTID is not done again on its source."""
    pair97.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
    pair97.settle()
    pair97.b.execute(
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0,"
        " ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL",
        "START REPLICA",
    )
    pair97.a.execute("STOP REPLICA", "RESET REPLICA ALL")
    [step] = examine(pair97).plan({"C3": "auto_position_on"}).steps
    assert step.action == "AutoPositionOn"
    refused = run_step(pair97, examine(pair97).plan({"C3": "auto_position_on"}), step)
    assert "excludes auto-position; nothing was changed" in refused.stderr
    assert pair97.b.replica_status()["Replica_SQL_Running"] == "Yes"

    modes(pair97.a, DOWN)
    pair97.a.execute("INSERT INTO d.t VALUES (1)")
    modes(pair97.a, UP)
    wait_until(lambda: rows(pair97.b, "d.t") == [(1,)])
    [errant] = [each for each in examine(pair97).audit.findings if each.code == "E1"]
    assert errant.grade is Grade.LIKELY
    assert (
        "with the server_id of a. Possible causes: the channel of b gave it" in errant.explanation
    )
    for strategy in ("redo_on_source", "undo_on_replica"):
        plan = examine(pair97).plan({"E1": strategy})
        [left] = [each for each in plan.not_planned if each.code == "E1"]
        assert "carries the server_id of a, which may have committed it without a GTID" in left.why


def test_a_channel_that_assigns_gtids_is_past_nothing_by_a_gtid(pair97: Pair) -> None:
    """It gives the transaction the next number, and stops at it again: no GTID is used up."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    a.execute("STOP REPLICA", "RESET REPLICA ALL")
    modes(a, DOWN)
    b.execute(
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0,"
        " ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL",
        "SET SESSION sql_log_bin = 0",
        "INSERT INTO d.t VALUES (1)",
        "START REPLICA",
    )
    a.execute("INSERT INTO d.t VALUES (1)")
    faults.await_applier_stopped(b)
    before = executed(b)
    plan = examine(pair97).plan({"A2": "inject_empty"})
    assert [each.action for each in plan.steps][:1] == ["InjectEmpty"]
    refused = run_step(pair97, plan, plan.steps[0])
    assert "so no GTID skips one; nothing was changed" in refused.stderr
    assert executed(b) == before


@pytest.mark.parametrize("auto_position", [0, 1])
def test_no_channel_leaves_them_out(pair97: Pair, auto_position: int) -> None:
    stopped_by_position(pair97, without_gtid=True, auto_position=auto_position)
    refused = examine(pair97).without_gtid
    modes(pair97.a, UP[:1])
    assert examine(pair97).without_gtid == refused != {}  # now it is sent, and read
    modes(pair97.a, UP[1:])
    for choices in (None, {"A7": "start_channel"}, {"C3": "auto_position_on"}):
        if auto_position and choices == {"C3": "auto_position_on"}:
            continue  # there is no C3
        plan = examine(pair97).plan(choices)
        assert plan.steps == ()
        for left in plan.not_planned:
            if left.code == "C10":
                continue  # of its workers, whatever they apply
            assert "has a transaction without a GTID at binlog.0000" in left.why, left
            by_sets = auto_position or left.code == "C3"
            stops = "is never sent" if by_sets else "the channel would stop there"
            assert stops in left.why
    # As the reason says: by file position, where both servers accept them.
    pair97.b.execute("CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0")
    for server in pair97.servers.values():
        modes(server, DOWN[:1])
    pair97.b.execute("START REPLICA")
    pair97.settle()
    for server in pair97.servers.values():
        modes(server, UP[1:])
    assert rows(pair97.b, "unnumbered.t") == rows(pair97.a, "unnumbered.t")
    plan = examine(pair97).plan()
    assert [step.action for step in plan.steps] == ["AutoPositionOn"]
    run_plan(pair97, plan)
    assert rows(pair97.b, "unnumbered.t") == rows(pair97.a, "unnumbered.t")
    assert "C3" not in examine(pair97).codes


def test_a_channel_that_forgot_its_position_is_not_started_unasked(pair97: Pair) -> None:
    stopped_by_position(pair97, without_gtid=True, auto_position=1)
    pair97.b.execute("RESET REPLICA")
    found = examine(pair97)
    [one] = found.without_gtid.values()
    assert one.maybe_at.startswith("binlog.0000")
    assert not one.at
    plan = found.plan()
    assert plan.steps == ()
    assert f"without a GTID at {one.maybe_at}" in str(plan.not_planned)


def test_a_purged_log_may_have_had_one(pair97: Pair) -> None:
    """The source can send it in no way: the plan starts the channel, and warns."""
    stopped_by_position(pair97, without_gtid=True, auto_position=1)
    # Where the applier of b is: servers that tests share do not all begin with the first log.
    applied_in = pair97.b.replica_status()["Relay_Source_Log_File"]
    pair97.a.execute(f"PURGE BINARY LOGS TO '{pair97.a.binary_log_position()[0]}'")
    plan = examine(pair97).plan()
    assert [step.action for step in plan.steps] == ["StartChannel"]
    assert f"it has purged its log from {applied_in}:" in str(plan.warnings)
    assert "compare the rows if its gtid_mode was not always ON" in str(plan.warnings)


def test_without_them_the_switch_is_the_default(pair97: Pair) -> None:
    stopped_by_position(pair97, without_gtid=False)
    run_plan(pair97, examine(pair97).plan())
    pair97.settle()
    run_plan(pair97, examine(pair97).plan())
    assert examine(pair97).audit.findings == ()
    assert rows(pair97.b, "unnumbered.t") == rows(pair97.a, "unnumbered.t")


def test_a_log_that_is_not_read_leaves_the_question_open(
    pair97: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_by_position(pair97, without_gtid=False)
    snapshot = examine(pair97).snapshot
    targets = targets_of(pair97)

    def found() -> WithoutGtid:
        [one] = read_without_gtid(snapshot, targets, seconds_max=20.0).values()
        return one

    assert read_without_gtid(snapshot, targets, seconds_max=20.0) == {}
    with monkeypatch.context() as patch:
        patch.setattr(transactions_without_gtid, "READ_BYTES_MAX", 100)
        assert "0 MiB of its log follow binlog.0000" in found().unread
    with monkeypatch.context() as patch:
        patch.setattr(transactions_without_gtid, "dump_events", lambda *_: (_ for _ in ()))
        assert found().unread.startswith("the server sent its log only up to binlog.0000")

    def fails(*_: object) -> None:
        raise BinlogError("refused")

    monkeypatch.setattr(transactions_without_gtid, "dump_events", fails)
    assert found() == WithoutGtid(unread="refused")
    del targets["a"]
    assert found().unread == "no connection to it is configured"
