"""A client that goes on behind a failed guard (--force): statements of a redo change nothing."""

import pytest

from compose.native.installation import Installation
from compose.native.shapes import Pair, single, wait_for
from repair.render import render_files
from tests.repair.live import examine, executed

pytestmark = pytest.mark.slow  # a rare shape: make nightly

ERRANT = (
    "CREATE DATABASE e",
    "CREATE TABLE e.t (id INT PRIMARY KEY)",
    "CREATE PROCEDURE e.p() SELECT 1",
    "INSERT INTO e.t VALUES (1)",
)
SCHEMAS = "GROUP_CONCAT(schema_name) FROM information_schema.schemata WHERE schema_name = 'e'"


def script_of_redo(pair: Pair) -> str:
    plan = examine(pair).plan({"E1": "redo_on_source"})
    [step] = [each for each in plan.steps if each.action == "RedoTransactions"]
    return render_files(plan)[step.file_name]


@pytest.mark.mysql
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_server_without_history_is_not_changed(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """There is no executed GTID under which statements could be passed over."""
    pair: Pair = request.getfixturevalue(shape)
    installation: Installation = request.getfixturevalue(shape.replace("pair", "installation"))
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    pair.b.execute(*ERRANT)
    script = script_of_redo(pair)
    with single(installation) as other:
        assert executed(other) == ""
        done = other.client(script, "--force")
        assert "NOT done" in done.stdout
        assert executed(other) == ""
        assert other.value(SCHEMAS) is None
    again = pair.a.client(script, "--force")
    assert "is done" in again.stdout, again.stderr
    assert executed(pair.a) == executed(pair.b)


@pytest.mark.parametrize("init", ["SET sql_log_bin = 0", "SET @x = 1"])
def test_a_history_that_begins_with_a_tag_does_not_let_statements_through(
    pair97: Pair, init: str
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        a.dialect.stop_replica,
        a.dialect.reset_replica,
        "SET SESSION gtid_next = '00000000-0000-1111-8000-000000000001:foo:1'",
        "BEGIN",
        "COMMIT",
        "SET SESSION gtid_next = 'AUTOMATIC'",
    )
    wait_for(b, executed(a))
    b.execute(*ERRANT)
    script = script_of_redo(pair97)
    before = executed(a)
    if "log_bin" not in init:
        a.execute("CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'elsewhere' FOR CHANNEL 'late'")
    done = a.client(script, "--force", f"--init-command={init}")
    assert "NOT done" in done.stdout
    assert executed(a) == before
    assert a.value(SCHEMAS) is None


def test_what_a_script_left_in_a_session_does_not_stop_the_next(pair97: Pair) -> None:
    """Read in with `source`: one session for both runs."""
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    b.execute(*ERRANT)
    script = script_of_redo(pair97)
    twice = f"SET SESSION sql_log_bin = 0;\n{script}\nSET SESSION sql_log_bin = 1;\n{script}"
    done = a.client(twice, "--force")
    assert "NOT done" in done.stdout
    assert "is done" in done.stdout
    assert executed(a) == executed(b)
