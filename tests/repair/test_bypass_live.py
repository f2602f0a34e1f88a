"""The event that fails differently, on real servers: the seed's 1050 on 5.6, and 1062 on 9.7."""

import pymysql
import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from repair.render import render_files
from tests.repair.live import await_clean, examine, executed, rows, run_plan, run_step, wait_until

_STATEMENT = "INSERT INTO myisam.t VALUES (5), (6), (1)"


def _fails_half_way(pair: Pair) -> str:
    """Log a statement with error 1062 that succeeds on b: no transaction, no rollback (MyISAM)."""
    _lacks_a_row(pair)
    return _insert_half(pair.a)


def _lacks_a_row(pair: Pair) -> None:
    """Let b lack the row over which the statement fails on a."""
    pair.a.execute(
        "CREATE DATABASE myisam",
        "CREATE TABLE myisam.t (id INT PRIMARY KEY) ENGINE = MyISAM",
        "INSERT INTO myisam.t VALUES (1)",
    )
    pair.settle()
    pair.b.execute("SET SESSION sql_log_bin = 0", "DELETE FROM myisam.t")


def _insert_half(a: Server) -> str:
    before = executed(a)
    with pytest.raises(pymysql.err.IntegrityError):
        a.execute("SET SESSION binlog_format = STATEMENT", _STATEMENT)
    return str(a.query("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, %s)", [before])[0][0])


def _stops(server: Server) -> None:
    wait_until(lambda: server.replica_status()["Replica_SQL_Running"] == "No")


def _write_more(server: Server) -> str:
    server.execute("CREATE DATABASE later", "CREATE TABLE later.t (id INT PRIMARY KEY)")
    return executed(server)


def _replicates_by_auto_position(replica: Server) -> None:
    status = replica.replica_status()
    assert status["Auto_Position"] == 1
    assert status["Replica_IO_Running"] == status["Replica_SQL_Running"] == "Yes"


def test_the_seeds_case_is_brought_back(pair56: Pair) -> None:
    fault = faults.failing_create_view(pair56)
    later = _write_more(pair56.a)
    found = examine(pair56)
    assert found.codes == ["A1"]
    plan = found.plan()
    assert [step.action for step in plan.steps] == ["MovePast", "InjectEmpty", "AutoPositionOn"]
    run_plan(pair56, plan)
    _replicates_by_auto_position(pair56.b)
    wait_for(pair56.b, later)
    assert not pair56.b.query("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", [fault.failed])[
        0
    ][0]
    await_clean(pair56)

    # Run again, a finished plan changes nothing: not even the channel is touched.
    before, status = executed(pair56.b), pair56.b.replica_status()
    run_plan(pair56, plan)
    assert executed(pair56.b) == before
    assert pair56.b.replica_status()["Relay_Log_File"] == status["Relay_Log_File"]


def test_the_event_is_read_with_its_real_coordinates(pair56: Pair) -> None:
    fault = faults.failing_create_view(pair56)
    event = next(iter(examine(pair56).read.events.values()))
    assert str(event.gtid) == fault.failed
    assert event.error_code == 1050
    listed = pair56.a.query(
        f"SHOW BINLOG EVENTS IN '{event.start.file}' FROM {event.start.position} LIMIT 2"
    )
    assert fault.failed in listed[0][5]
    assert listed[1][2] == "Query"
    assert listed[1][4] == event.end.position


@pytest.mark.parametrize("shape", ["pair56", "pair97"])
def test_an_empty_transaction_alone_does_not_help(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    failed = faults.failing_create_view(pair).failed if shape == "pair56" else _fails_half_way(pair)
    b = pair.b
    done = b.client(
        f"{b.dialect.stop_replica}; SET SESSION gtid_next = '{failed}'; BEGIN; COMMIT;"
        f" SET SESSION gtid_next = 'AUTOMATIC'; {b.dialect.start_replica};"
    )
    assert done.returncode == 0, done.stderr
    assert b.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", [failed])[0][0] == 1
    _stops(b)
    found = examine(pair)
    assert found.codes == ["A1"]
    warnings = found.plan().warnings
    assert any("an empty transaction alone does not help" in text for text in warnings)


@pytest.mark.parametrize("cut", [1, 2])
def test_stopped_after_any_step_a_new_plan_reaches_the_same_end(pair56: Pair, cut: int) -> None:
    fault = faults.failing_create_view(pair56)
    plan = examine(pair56).plan()
    for step in plan.steps[:cut]:
        assert run_step(pair56, plan, step).returncode == 0
    run_plan(pair56, examine(pair56).plan())
    _replicates_by_auto_position(pair56.b)
    assert not pair56.b.query("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", [fault.failed])[
        0
    ][0]
    await_clean(pair56)


def test_stopped_inside_the_first_script_it_can_be_run_again(pair56: Pair) -> None:
    faults.failing_create_view(pair56)
    plan = examine(pair56).plan()
    script = render_files(plan)[plan.steps[0].file_name]
    pieces = script.split("EXECUTE todo;\n")
    assert len(pieces) == 4, "stop, change, start"
    for count in (1, 2, 3):
        begun = "EXECUTE todo;\n".join(pieces[:count]) + ("EXECUTE todo;\n" if count else "")
        assert pair56.b.client(begun).returncode == 0
    run_plan(pair56, plan)
    _replicates_by_auto_position(pair56.b)
    await_clean(pair56)


def test_a_statement_that_failed_half_way_on_nine_seven(pair97: Pair) -> None:
    failed = _fails_half_way(pair97)
    _stops(pair97.b)
    later = _write_more(pair97.a)
    found = examine(pair97)
    assert found.codes == ["A1"]
    assert [str(event.gtid) for event in found.read.events.values()] == [failed]
    plan = found.plan()
    run_plan(pair97, plan)
    _replicates_by_auto_position(pair97.b)
    wait_for(pair97.b, later)
    await_clean(pair97)
    before = executed(pair97.b)
    run_plan(pair97, plan)
    assert executed(pair97.b) == before


def _emptied_and_stopped(pair: Pair) -> str:
    """Reset b, which has executed all of a, and stop its applier at an event that fails (A1)."""
    a, b, view = pair.a, pair.b, "CREATE VIEW kept.v AS SELECT 1"
    is_56 = b.version < (5, 7)
    a.execute(
        "CREATE DATABASE kept", "CREATE TABLE kept.t (v INT)", "INSERT INTO kept.t VALUES (1)"
    )
    if is_56:
        a.execute(view)
    _lacks_a_row(pair)
    if is_56:
        b.execute("SET SESSION sql_log_bin = 0", "DROP VIEW kept.v")
    b.execute(b.dialect.stop_replica, b.dialect.words.reset_binary_logs_and_gtids)
    b.execute(b.dialect.start_replica)
    a.execute(a.dialect.stop_replica, a.dialect.start_replica)  # its source was reset (A4)
    # 5.6 logs a CREATE VIEW that failed.
    failed = faults.commit(a, view, expected_error=1050) if is_56 else _insert_half(a)
    _stops(b)
    return failed


@pytest.fixture(params=["pair56", "pair97"])
def emptied(request: pytest.FixtureRequest) -> tuple[Pair, str]:
    """Reset b, and stop it at an event of a. Return the GTID of the event as well."""
    pair: Pair = request.getfixturevalue(request.param)
    return pair, _emptied_and_stopped(pair)


def test_rows_that_a_reset_left_are_not_fetched_again(emptied: tuple[Pair, str]) -> None:
    """The way out of A1 ends with auto-position: a table without a key would get them twice."""
    pair, failed = emptied
    a, b = pair.a, pair.b
    found = examine(pair)
    assert found.codes == ["A1", "H8"]
    plan = found.plan()
    assert plan.steps == ()
    why = next(each.why for each in plan.not_planned if each.code == "A1")
    assert "would fetch these again, and their rows may be there" in why

    # As it says, if the rows are there:
    chosen = found.plan({"H8": "inject_empty"})
    actions = [step.action for step in chosen.steps]
    assert actions == ["InjectEmpty", "MovePast", "InjectEmpty", "AutoPositionOn"]
    run_plan(pair, chosen)
    _replicates_by_auto_position(b)
    await_clean(pair)
    assert b.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", [failed])[0][0] == 1
    assert rows(b, "kept.t") == rows(a, "kept.t") == [(1,)]


def test_missing_rows_behind_such_an_event_are_fetched_after_a_move_by_hand(
    emptied: tuple[Pair, str],
) -> None:
    """The sets and places are those after a reset, but the rows are gone: the next plan has them."""
    pair, failed = emptied
    a, b = pair.a, pair.b
    b.execute("SET SESSION sql_log_bin = 0", "DROP DATABASE kept", "DROP DATABASE myisam")
    found = examine(pair)
    assert found.codes == ["A1", "H8"]
    [event] = found.read.events.values()
    [left] = [each for each in found.plan().not_planned if each.code == "A1"]
    assert f"with a file position ({event.end})" in left.why
    b.execute(
        b.dialect.stop_replica,
        b.dialect.change_source_to(
            auto_position=0, log_file=event.end.file, log_pos=event.end.position
        ),
        b.dialect.start_replica,
    )
    found = examine(pair)
    assert found.codes == ["H1", "C3"]
    run_plan(pair, found.plan({"H1": "refetch"}))
    _replicates_by_auto_position(b)
    await_clean(pair)
    assert b.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", [failed])[0][0] == 1
    assert rows(b, "kept.t") == rows(a, "kept.t") == [(1,)]


def test_a_hole_with_such_an_event_in_it_is_fetched_without_the_event(pair97: Pair) -> None:
    """Jumped over by position, it would stop the applier as soon as auto-position brings it."""
    a, b = pair97.a, pair97.b
    _lacks_a_row(pair97)
    b.execute(b.dialect.stop_replica)
    failed = _insert_half(a)
    a.execute("INSERT INTO myisam.t VALUES (20)")
    log_file, log_pos = a.binary_log_position()
    a.execute("INSERT INTO myisam.t VALUES (30)")
    b.execute(
        b.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        b.dialect.start_replica,
    )
    wait_until(lambda: (30,) in rows(b, "myisam.t"))
    found = examine(pair97)
    assert found.codes == ["H1"]
    assert [str(event.gtid) for event in found.read.events.values()] == [failed]
    [left] = [each for each in found.plan().not_planned if each.code == "H1"]
    assert "is logged as a statement" in left.why, "what it did cannot be compared with the rows"
    plan = found.plan({"H1": "refetch"})
    assert [step.action for step in plan.steps] == ["InjectEmpty", "AutoPositionOn"]
    run_plan(pair97, plan)
    assert rows(b, "myisam.t") == [(20,), (30,)]
    await_clean(pair97)


def test_without_the_event_nothing_is_guessed(pair56: Pair) -> None:
    from repair import plan_repair

    faults.failing_create_view(pair56)
    found = examine(pair56)
    plan = plan_repair(found.snapshot, found.audit)
    assert not plan.steps
    assert "must not be guessed" in plan.not_planned[0].why
