"""The privileges in a plan are enough, each is needed, and a missing one stops a script in time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compose import faults, faults_after_plan
from compose.native.server import Server
from compose.native.shapes import Pair
from repair import Plan
from repair.render import render_files
from tests.repair.live import examine, executed, run_step

ACCOUNT = "repairer@'%'"


@contextmanager
def account(server: Server, privileges: list[str]) -> Iterator[None]:
    """Make an account with these privileges alone, each as a plan lists it."""
    server.execute("SET SESSION sql_log_bin = 0", f"CREATE USER {ACCOUNT}")
    try:
        for text in privileges:
            names, _, place = text.partition(" on ")
            place = place.replace("the tables of the rows", "bypassed.*")
            grant = f"GRANT {names.split(' or ')[0]} ON {place or '*.*'} TO {ACCOUNT}"
            server.execute("SET SESSION sql_log_bin = 0", grant)
        yield
    finally:
        server.execute("SET SESSION sql_log_bin = 0", f"DROP USER {ACCOUNT}")


def runs_with_its_privileges_alone(pair: Pair, plan: Plan) -> None:
    """Run each step as an account that has just them; before, as accounts that lack one each."""
    for step in plan.steps:
        server, script = pair[step.server], render_files(plan)[step.file_name]
        assert step.privileges
        before = (executed(server), server.binary_log_position())
        for missing in step.privileges:
            left = [each for each in step.privileges if each != missing]
            with account(server, left):
                done = server.client(script, "--user=repairer")
            assert done.returncode != 0
            shown = missing.partition(" on ")[0]
            assert f"this account needs {missing}" in done.stderr or f"{shown} command" in (
                done.stderr
            )
            assert (executed(server), server.binary_log_position()) == before
        with account(server, list(step.privileges)):
            done = server.client(script, "--user=repairer")
        assert done.returncode == 0, done.stderr
        assert "is done" in done.stdout


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
    mode = "PAD_CHAR_TO_FULL_LENGTH,ANSI,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE"
    faults.position_bypass(pair)
    plan = examine(pair).plan({"H1": "inject_empty"})
    pair.b.execute(f"SET GLOBAL sql_mode = '{mode}'")
    for step in plan.steps:
        done = run_step(pair, plan, step)
        assert done.returncode == 0, done.stderr
    pair.settle()
    assert executed(pair.a) == executed(pair.b)
