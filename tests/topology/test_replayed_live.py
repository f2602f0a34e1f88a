"""A source after a point-in-time recovery: its history was reset, and its own logs replayed."""

import subprocess
import time

import pytest

from compose.native.installation import Clients
from compose.native.server import Server
from compose.native.shapes import Pair, await_uptime, wait_for
from tests.repair.live import examine, executed, rows
from topology.catalogue.findings import Grade

pytestmark = pytest.mark.slow  # a rare shape: make nightly

_KEPT = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY)",
    "INSERT INTO d.t VALUES (1), (2)",
)


def _printed(source: Server, file: str, position: int, clients: Clients) -> str:
    return subprocess.run(
        [
            *clients.command("mysqlbinlog"),
            f"--stop-position={position}",
            str(source.datadir / file),
        ],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    ).stdout


def _by_statements(source: Server) -> str:
    """Return what mysqlbinlog prints for 5.6; that of 9.7 prints more than 5.6 takes."""
    seconds, uuid = source.value("UNIX_TIMESTAMP()"), source.value("@@GLOBAL.server_uuid")
    return "".join(
        f"SET TIMESTAMP = {seconds}; SET gtid_next = '{uuid}:{number}'; BEGIN; {each}; COMMIT;\n"
        if each.startswith("INSERT")
        else f"SET TIMESTAMP = {seconds}; SET gtid_next = '{uuid}:{number}'; {each};\n"
        for number, each in enumerate(_KEPT, 1)
    )


def _recover(source: Server, replayed: str) -> None:
    """Do the recovery as the Reference Manual has it ("Point-in-Time Recovery")."""
    source.execute("SET SESSION sql_log_bin = 0", "DROP DATABASE d")
    source.execute(source.dialect.words.reset_binary_logs_and_gtids)
    done = source.client(replayed)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_replay_is_neither_a_proved_crash_nor_a_reset_that_left_the_rows(
    shape: str, request: pytest.FixtureRequest, mysql_clients: Clients, *, is_restarted: bool
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    assert not executed(a), "the GTIDs begin with 1"
    by_statements = _by_statements(a)
    a.execute(*_KEPT)
    await_uptime(a)
    time.sleep(2.1)
    file, position = a.binary_log_position()
    a.execute("INSERT INTO d.t VALUES (3)", "DELETE FROM d.t WHERE id = 1")
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica)
    time.sleep(2.1)
    is_old = shape == "pair56"
    _recover(a, by_statements if is_old else _printed(a, file, position, mysql_clients))
    if is_restarted:
        a.stop()
        a.start()
    assert (rows(a, "d.t"), rows(b, "d.t")) == ([(1,), (2,)], [(2,), (3,)])
    examination = examine(pair)
    [finding] = [each for each in examination.audit.findings if each.code in ("E3", "E6")]
    assert (finding.code, finding.grade) == ("E6", Grade.LIKELY), finding.explanation
    assert "followed by a replay of binary logs" in finding.explanation
    assert "still there" not in finding.explanation
    assert ("a crash that lost" in finding.explanation) is is_restarted
    plan = examination.plan()
    assert not [each for each in plan.steps if "E6" in str(each)]
    [left] = [each for each in plan.not_planned if each.code == "E6"]
    assert "rows are probably on a" not in left.why
