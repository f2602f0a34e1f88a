"""A script whose client or session dies while the server executes one of its statements.

Another session holds a lock that the statement waits for, so it is under way for certain. Whatever
the server makes of it, the script is run again, and each row is there once.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from compose.faults import commit
from compose.faults_plans import errant_rows
from compose.native.provision import provision_clients
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from repair import Plan
from repair.render import render_files
from repair.scripts.steps import Step
from tests.repair.live import await_clean, examine, executed, rows, run_plan, wait_until

pytestmark = pytest.mark.slow

_WAITING = (
    "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND COMMAND <>"
    " 'Sleep' AND ({}) AND USER = 'root'"
)
_FOR_ROW = _WAITING.format("STATE IN ('update', 'updating', 'Updating', 'executing')")
_FOR_TABLE = _WAITING.format("STATE LIKE 'Waiting for table metadata lock'")


def kill_client(_server: Server, client: subprocess.Popen[bytes], _session: int) -> None:
    client.kill()


def kill_session(server: Server, _client: subprocess.Popen[bytes], session: int) -> None:
    server.execute(f"KILL {session}")


def kill_query(server: Server, _client: subprocess.Popen[bytes], session: int) -> None:
    server.execute(f"KILL QUERY {session}")


KILLS = [kill_client, kill_session, kill_query]
Kill = Callable[[Server, "subprocess.Popen[bytes]", int], None]


@contextmanager
def begun(server: Server, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the client of a script while it runs."""
    words = [
        *provision_clients().command("mysql"),
        *("--user=root", f"--host={server.host}", f"--port={server.port}", "--protocol=TCP"),
    ]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdin=pipe, stdout=none, stderr=none) as client:
        assert client.stdin is not None
        client.stdin.write(script.encode())
        client.stdin.close()
        yield client
        client.wait(timeout=60)


def interrupt(server: Server, script: str, kill: Kill, *, held: str, waits: str) -> None:
    """Kill a script in the statement that waits for what another session holds."""
    with server.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(held)
        cursor.fetchall()
        with begun(server, script) as client:
            wait_until(lambda: bool(server.query(waits)))
            [(session,)] = server.query(waits)
            kill(server, client, int(str(session)))
            cursor.execute("ROLLBACK")
    wait_until(
        lambda: (
            not server.query(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {session}")
        )
    )


def the_script(plan: Plan, action: str) -> tuple[Step, str]:
    step = next(each for each in plan.steps if each.action == action)
    return step, render_files(plan)[step.file_name]


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_rows_that_are_redone_are_there_once(
    shape: str, kill: Kill, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    errant_rows(pair, source="a", on="b")
    plan = examine(pair).plan({"E1": "redo_on_source"})
    step, script = the_script(plan, "RedoTransactions")
    before = executed(pair.a), rows(pair.a, "shop.t")
    held = "SELECT * FROM shop.t WHERE id = 2 FOR UPDATE"
    interrupt(pair[step.server], script, kill, held=held, waits=_FOR_ROW)
    # Of the four transactions the first one is committed, and nothing of the second one.
    assert executed(pair.a) != before[0]
    assert [key for key, _ in rows(pair.a, "shop.t")] == [key for key, _ in before[1]]
    run_plan(pair, plan)
    assert rows(pair.a, "shop.t") == rows(pair.b, "shop.t")
    await_clean(pair)


@pytest.mark.parametrize("kill", KILLS)
def test_ddl_that_is_redone_is_done_once(pair97: Pair, kill: Kill) -> None:
    """ALTER TABLE commits by itself: it is done, with its GTID, or it is not."""
    a, b = pair97.a, pair97.b
    a.execute("STOP REPLICA", "RESET REPLICA ALL")
    a.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    wait_for(b, commit(a, "INSERT INTO shop.t VALUES (1)"))
    commit(b, "ALTER TABLE shop.t ADD note TEXT", "INSERT INTO shop.t VALUES (2, 'two')")
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    step, script = the_script(plan, "RedoTransactions")
    interrupt(pair97[step.server], script, kill, held="SELECT * FROM shop.t", waits=_FOR_TABLE)
    columns = a.query("SHOW COLUMNS FROM shop.t")
    is_done = b.value("@@GLOBAL.server_uuid") in executed(a)
    assert len(columns) == (2 if is_done else 1)
    run_plan(pair97, plan)
    assert rows(a, "shop.t") == rows(b, "shop.t") == [(1, None), (2, "two")]
    await_clean(pair97)
