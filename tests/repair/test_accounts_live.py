"""The privileges in a plan are enough, each is needed, and a missing one stops a script in time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compose import faults, faults_after_plan, faults_plans
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from repair import Plan
from repair.render import render_files
from tests.repair.live import examine, executed, run_step

pytestmark = pytest.mark.slow  # a rare shape: make nightly

ACCOUNT = "repairer@'%'"
ODD_MODE = "PAD_CHAR_TO_FULL_LENGTH,ANSI,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE"


@contextmanager
def account(server: Server, privileges: list[str], schema: str) -> Iterator[None]:
    """Make an account with these privileges alone, each as a plan lists it."""
    server.execute("SET SESSION sql_log_bin = 0", f"CREATE USER {ACCOUNT}")
    try:
        for text in privileges:
            names, _, place = text.partition(" on ")
            place = place.replace("the tables of the rows", f"{schema}.*")
            grant = f"GRANT {names.split(' or ')[0]} ON {place or '*.*'} TO {ACCOUNT}"
            server.execute("SET SESSION sql_log_bin = 0", grant)
        yield
    finally:
        server.execute("SET SESSION sql_log_bin = 0", f"DROP USER {ACCOUNT}")


def runs_with_its_privileges_alone(pair: Topology, plan: Plan, *, schema: str = "bypassed") -> None:
    """Run each step as an account that has just them; before, as accounts that lack one each.

    A client with --force goes on behind the error of a statement: rows stay as they are even then.
    """
    for step in plan.steps:
        server, script = pair[step.server], render_files(plan)[step.file_name]
        assert step.privileges
        before = (executed(server), server.binary_log_position())
        for missing in step.privileges:
            left = [each for each in step.privileges if each != missing]
            held = _rows_of(server, schema)
            with account(server, left, schema):
                done = server.client(script, "--user=repairer")
                if missing.startswith(("INSERT", "UPDATE", "DELETE")):
                    forced = server.client(script, "--user=repairer", "--force")
                    assert "is done" not in forced.stdout
            assert _rows_of(server, schema) == held
            assert done.returncode != 0
            assert any(each in done.stderr for each in _refusals(missing)), done.stderr
            assert (executed(server), server.binary_log_position()) == before
        with account(server, list(step.privileges), schema):
            done = server.client(script, "--user=repairer")
        assert done.returncode == 0, done.stderr
        assert "is done" in done.stdout


def _refusals(missing: str) -> tuple[str, ...]:
    """Return the texts by which a script, or the server itself, names a privilege."""
    name = missing.partition(" on ")[0]
    own = (f"{name} command denied", f"at least one of) the {name.rpartition(' or ')[2]}")
    return (f"needs {missing}", *own, *(("see the triggers",) if name == "TRIGGER" else ()))


def _rows_of(server: Server, schema: str) -> list[tuple[object, ...]]:
    tables = server.query(
        "SELECT table_name FROM information_schema.tables"
        f" WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE'"
    )
    return [row for (name,) in tables for row in server.query(f"SELECT * FROM {schema}.{name}")]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize("strategy", ["redo_on_source", "undo_on_replica"])
def test_errant_rows_need_each_privilege_on_their_table(
    shape: str, strategy: str, request: pytest.FixtureRequest
) -> None:
    """A redo of several transactions once ended behind the first that was denied."""
    pair: Pair = request.getfixturevalue(shape)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    faults_plans.errant_rows(pair, source="a", on="b")
    plan = examine(pair).plan({"E1": strategy})
    runs_with_its_privileges_alone(pair, plan, schema="shop")
    assert executed(pair.a) == executed(pair.b)
    assert _rows_of(pair.a, "shop") == _rows_of(pair.b, "shop")


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_row_conflict_needs_each_privilege_on_its_table(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """MakeRowsAlike and StartChannel."""
    pair: Pair = request.getfixturevalue(shape)
    faults.await_applier_stopped(faults_plans.row_conflict(pair).replica)
    plan = examine(pair).plan({"A2": "resolve_conflict"})
    assert [step.action for step in plan.steps] == ["MakeRowsAlike", "StartChannel"]
    runs_with_its_privileges_alone(pair, plan, schema="clash")
    wait_for(pair.b, executed(pair.a))
    assert _rows_of(pair.a, "clash") == _rows_of(pair.b, "clash")


@pytest.mark.slow
def test_a_move_past_an_event_needs_each_privilege(pair56: Pair) -> None:
    faults.failing_create_view(pair56)
    plan = examine(pair56).plan()
    assert [step.action for step in plan.steps] == ["MovePast", "InjectEmpty", "AutoPositionOn"]
    runs_with_its_privileges_alone(pair56, plan, schema="viewed")


@pytest.mark.parametrize("strategy", ["refetch", "inject_empty", "gtid_purged_append"])
def test_holes_on_9_7(pair97: Pair, strategy: str) -> None:
    faults.position_bypass(pair97)
    runs_with_its_privileges_alone(pair97, examine(pair97).plan({"H1": strategy}))


@pytest.mark.parametrize("strategy", ["inject_empty", "reset_and_purge"])
def test_holes_on_5_6(pair56: Pair, strategy: str) -> None:
    faults.position_bypass(pair56)
    runs_with_its_privileges_alone(pair56, examine(pair56).plan({"H1": strategy}))


@pytest.mark.parametrize("strategy", ["inject_empty", "gtid_purged_append"])
def test_tags_need_a_privilege_of_their_own(pair97: Pair, strategy: str) -> None:
    _tagged(pair97)
    plan = examine(pair97).plan({"E1": strategy})
    assert "TRANSACTION_GTID_TAG" in plan.steps[0].privileges
    runs_with_its_privileges_alone(pair97, plan)


def _tagged(pair: Pair) -> None:
    faults_after_plan.remove_channel(pair.a)
    pair.b.execute(
        "SET SESSION gtid_next = 'AUTOMATIC:dba'",
        "CREATE DATABASE tagged",
        "SET SESSION gtid_next = 'AUTOMATIC'",
    )


def test_a_role_is_as_good_and_its_gaps_are_found_by_trying(pair97: Pair) -> None:
    _tagged(pair97)
    a = pair97.a
    plan = examine(pair97).plan({"E1": "inject_empty"})
    unlogged = "SET SESSION sql_log_bin = 0"
    a.execute(
        unlogged,
        "CREATE ROLE helper",
        f"CREATE USER {ACCOUNT} DEFAULT ROLE helper",
        "GRANT REPLICATION_APPLIER ON *.* TO helper",
        "GRANT SELECT ON performance_schema.* TO helper",
    )
    script = render_files(plan)[plan.steps[0].file_name]
    before = executed(a)
    refused = a.client(script, "--user=repairer")
    assert refused.returncode != 0
    assert "TRANSACTION_GTID_TAG" in refused.stderr
    assert executed(a) == before
    a.execute(unlogged, "GRANT TRANSACTION_GTID_TAG ON *.* TO helper")
    done = a.client(script, "--user=repairer")
    assert done.returncode == 0, done.stderr
    assert executed(a) == executed(pair97.b)


@pytest.mark.parametrize("name", ["nörd\\1'x", "\\'"])
def test_any_channel_name_any_sql_mode_any_client(pair97: Pair, name: str) -> None:
    """A backslash was a syntax error in FOR CHANNEL, and latin1 clients named other channels."""
    a, b = pair97.a, pair97.b
    b.execute("CREATE DATABASE history")  # an empty one may be a reset that stopped
    pair97.settle()
    faults_after_plan.remove_channel(b)
    a.execute("CREATE DATABASE named", "CREATE TABLE named.t (id INT PRIMARY KEY)")
    literal = "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"
    change = b.dialect.change_source_to(host=a.host, port=a.port, user="replication")
    b.execute("SET NAMES utf8mb4", f"{change} FOR CHANNEL {literal}")
    plan = examine(pair97).plan({"C3": "auto_position_on"})
    assert [step.action for step in plan.steps] == ["AutoPositionOn"]
    odd = "PAD_CHAR_TO_FULL_LENGTH,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE"
    b.execute(f"SET GLOBAL sql_mode = '{odd}'")
    [step] = plan.steps
    script = render_files(plan)[step.file_name]
    done = b.client(script, "--default-character-set=latin1")
    assert done.returncode == 0, done.stderr
    assert executed(b) == executed(a)
    b.execute("SET NAMES utf8mb4", "SET sql_mode = ''", f"STOP REPLICA FOR CHANNEL {literal}")
    done = run_step(pair97, plan, step)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_servers_sql_mode_changes_no_script(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    faults.position_bypass(pair)
    plan = examine(pair).plan({"H1": "inject_empty"})
    pair.b.execute(f"SET GLOBAL sql_mode = '{ODD_MODE}'")
    for step in plan.steps:
        done = run_step(pair, plan, step)
        assert done.returncode == 0, done.stderr
    pair.settle()
    assert executed(pair.a) == executed(pair.b)


def test_a_servers_sql_mode_hides_no_failing_event(pair56: Pair) -> None:
    """What a server sets for all sessions must not keep the plan from the event at which it stands."""
    for server in (pair56.a, pair56.b):
        server.execute(f"SET GLOBAL sql_mode = '{ODD_MODE}'")
    faults.failing_create_view(pair56)
    plan = examine(pair56).plan()
    assert [step.action for step in plan.steps] == ["MovePast", "InjectEmpty", "AutoPositionOn"]
    for step in plan.steps:
        assert run_step(pair56, plan, step).returncode == 0
    pair56.settle()
    assert executed(pair56.a) == executed(pair56.b)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_servers_sql_mode_changes_no_row(shape: str, request: pytest.FixtureRequest) -> None:
    """A CHAR is read with its trailing spaces there, and is another value in the log."""
    pair: Pair = request.getfixturevalue(shape)
    faults_after_plan.remove_channel(pair.a)
    pair.a.execute("CREATE DATABASE padded", "CREATE TABLE padded.t (id CHAR(9) KEY, note CHAR(9))")
    pair.settle()
    for server in (pair.a, pair.b):
        server.execute(f"SET GLOBAL sql_mode = '{ODD_MODE}'")
    pair.b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO padded.t VALUES ('one', 'on b')")
    pair.a.execute("INSERT INTO padded.t VALUES ('one', 'on a')")
    faults.await_applier_stopped(pair.b)
    found = examine(pair)
    assert [(each.source_row, each.replica_row) for each in found.plan().rows] == [
        ({"note": "on a"}, {"note": "on b"})
    ]
    plan = found.plan({"A2": "resolve_conflict"})
    for step in plan.steps:
        done = run_step(pair, plan, step)
        assert done.returncode == 0, done.stderr
    wait_for(pair.b, executed(pair.a))
    assert _rows_of(pair.a, "padded") == _rows_of(pair.b, "padded")


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_servers_time_zone_changes_no_script(shape: str, request: pytest.FixtureRequest) -> None:
    """A TIMESTAMP is shown in the session's time zone, and the rows that a script expects in UTC."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(
        "CREATE DATABASE zones",
        "CREATE TABLE zones.t (at TIMESTAMP PRIMARY KEY, v INT)",
        "INSERT INTO zones.t VALUES ('2026-07-01 10:00:00', 1)",
    )
    pair.settle()
    b.execute("SET GLOBAL time_zone = '+05:00'", b.dialect.stop_replica)
    a.execute("UPDATE zones.t SET v = 2")
    plan = examine(pair).plan()
    assert plan.not_planned == ()
    for step in plan.steps:
        done = run_step(pair, plan, step)
        assert done.returncode == 0, done.stderr
    pair.settle()
    assert b.value("(SELECT v FROM zones.t)") == 2
