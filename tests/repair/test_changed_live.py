"""Servers that changed after the plan was made: each change stops a script before it does harm."""

import time

import pytest

import repair.sql.script
from compose import faults, faults_after_plan
from compose.native.server import Server
from compose.native.shapes import Pair
from repair import Plan
from repair.render import render_files
from repair.sql.channel_queries import ChannelQuestions
from repair.sql.script import same_source, still_by_position
from tests.repair.live import examine, executed, rows, run_plan, run_step, wait_until
from topology.readings.version import ServerVersion

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def refused(pair: Pair, plan: Plan, *, because: str, at: int = 0) -> None:
    """Run a step. It must stop with that message, and change nothing: told to go on as well."""
    step = plan.steps[at]
    server = pair[step.server]
    script = render_files(plan)[step.file_name]
    before = _state(server)
    for options in ((), ("--force",)):
        done = server.client(script, *options)
        assert options or done.returncode != 0
        assert because in done.stderr
        assert "is done" not in done.stdout
        assert _state(server) == before


def _state(server: Server) -> tuple[object, ...]:
    status = server.replica_status()
    names = ("Source_Host", "Source_Port", "Auto_Position", "Replica_IO_Running")
    threads = (*names, "Replica_SQL_Running", "Relay_Log_File")
    log = server.binary_log_position()
    return (executed(server), log, *(status.get(name) for name in threads))


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_channel_that_was_pointed_elsewhere(shape: str, request: pytest.FixtureRequest) -> None:
    """Its SOURCE_UUID is empty until it connects: only the address shows it."""
    pair: Pair = request.getfixturevalue(shape)
    faults.position_bypass(pair)
    plan = examine(pair).plan({"H1": "refetch"})
    faults_after_plan.point_channel_elsewhere(pair.b)
    refused(pair, plan, because="its channels changed since the plan was made")


def _without_a_way_home(pair: Pair) -> Plan:
    faults.errant_transaction(pair)
    faults_after_plan.remove_channel(pair.a)
    plan = examine(pair).plan({"E1": "inject_empty"})
    assert [(step.server, step.action) for step in plan.steps] == [("a", "InjectEmpty")]
    return plan


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_way_home_that_was_configured_since(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    plan = _without_a_way_home(pair)
    faults_after_plan.add_channel(pair.a, pair.b)
    refused(pair, plan, because="its channels changed since the plan was made")


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_one_more_errant_transaction(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    plan = _without_a_way_home(pair)
    [step] = plan.steps
    [check] = step.checks
    script = render_files(plan)[step.check_name(check)]
    pair.a.execute("CREATE DATABASE delivered")  # what b receives means nothing
    wait_until(lambda: bool(pair.b.query("SHOW DATABASES LIKE 'delivered'")))
    done = pair.b.client(script)
    assert done.returncode == 0, done.stderr
    assert "go on with step 2" in done.stdout
    assert "a: this" not in pair.a.client(script).stderr
    assert "b: this is another server" in pair.a.client(script).stderr
    pair.b.execute("CREATE DATABASE one_more")
    done = pair.b.client(script)
    assert done.returncode != 0
    assert "it has committed more transactions that a does not have" in done.stderr


def _stopped(pair: Pair) -> Plan:
    """Plan to start b's stopped channel, which then fetches three rows."""
    pair.a.execute("CREATE DATABASE late", "CREATE TABLE late.t (id INT PRIMARY KEY)")
    pair.settle()
    pair.b.execute(pair.b.dialect.stop_replica)
    pair.a.execute(*(f"INSERT INTO late.t VALUES ({number})" for number in (1, 2, 3)))
    plan = examine(pair).plan()
    assert [(step.server, step.action) for step in plan.steps] == [("b", "StartChannel")]
    return plan


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_auto_position_that_was_switched_off(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    plan = _stopped(pair)
    faults_after_plan.switch_to_file_position(pair.b)
    refused(pair, plan, because="auto-position was switched off")
    # A plan for the channel as it is now asks the opposite.
    asks = ChannelQuestions.of(ServerVersion(*pair.b.version), "")
    by_position = still_by_position("b", asks).condition
    assert pair.b.value(by_position) == 1
    pair.b.execute(pair.b.dialect.change_source_to(auto_position=1))
    assert pair.b.value(by_position) == 0


def test_an_applier_that_stopped_with_an_error_since(pair97: Pair) -> None:
    plan = _stopped(pair97)
    faults_after_plan.occupy_row(pair97.b, "late.t", 2)
    pair97.b.execute(pair97.b.dialect.start_replica)
    wait_until(lambda: pair97.b.replica_status()["Replica_SQL_Running"] == "No")
    refused(pair97, plan, because="the applier stopped since the plan was made")
    assert rows(pair97.b, "late.t") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("pair97", "b: the applier stopped; audit and plan again: error 1062: Worker"),
        ("pair56", "b: replication does not run; read the errors in SHOW SLAVE STATUS"),
    ],
)
def test_an_applier_that_stops_in_the_script_is_not_a_matter_of_time(
    shape: str, message: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An applier of 9.7 may stop before the first look, or during the first turn: both are waited out.
    monkeypatch.setattr(repair.sql.script, "CONNECT_LOOKS_MAX", 5)
    monkeypatch.setattr(repair.sql.script, "APPLY_TURN_SECONDS", 2)
    pair: Pair = request.getfixturevalue(shape)
    plan = _stopped(pair)
    pair.a.execute("INSERT INTO late.t VALUES (4)")  # after the plan: its rows were not compared
    faults_after_plan.occupy_row(pair.b, "late.t", 4)
    begun = time.monotonic()
    done = run_step(pair, plan, plan.steps[0])
    assert done.returncode != 0
    assert message in done.stderr
    assert "wait" not in done.stderr
    assert time.monotonic() - begun < 60


def test_a_history_that_was_reset_since(pair97: Pair) -> None:
    plan = _stopped(pair97)
    pair97.b.execute(pair97.b.dialect.words.reset_binary_logs_and_gtids)
    refused(pair97, plan, because="gtid_executed is empty now")
    pair97.b.execute("CREATE DATABASE since_then")
    refused(pair97, plan, because="gtid_executed lost transactions")


def test_a_hole_must_be_filled_before_auto_position(pair97: Pair) -> None:
    faults.position_bypass(pair97)
    plan = examine(pair97).plan({"H1": "inject_empty"})
    refused(pair97, plan, because="fill the gap first", at=1)
    run_plan(pair97, plan)


def test_no_reset_while_transactions_run(pair56: Pair) -> None:
    faults.position_bypass(pair56)
    plan = examine(pair56).plan({"H1": "reset_and_purge"})
    number = next(at for at, each in enumerate(plan.steps) if each.action == "ResetAndPurge")
    with pair56.b.connect() as session, session.cursor() as cursor:
        cursor.execute("SET SESSION gtid_next = 'aaaaaaaa-0000-0000-0000-000000000000:1'")
        refused(pair56, plan, because="transactions are running", at=number)
        cursor.execute("ROLLBACK")
        cursor.execute("SET SESSION gtid_next = 'AUTOMATIC'")


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_another_source_at_the_same_address(shape: str, request: pytest.FixtureRequest) -> None:
    """Host and port can stay while the server behind them is another: its UUID shows it."""
    pair: Pair = request.getfixturevalue(shape)
    asks = ChannelQuestions.of(ServerVersion(*pair.b.version), "")
    mine = pair.a.value("@@GLOBAL.server_uuid")
    assert pair.b.value(same_source("b", asks, mine).condition) == 1
    assert pair.b.value(same_source("b", asks, "another").condition) == 0
    faults_after_plan.point_channel_elsewhere(pair.b)
    assert pair.b.value(same_source("b", asks, "another").condition) == 1, "not known yet"
