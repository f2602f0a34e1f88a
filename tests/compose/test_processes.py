"""No server outlives its run, and two runs do not disturb each other."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compose.native import command, processes, server, shapes
from compose.native.cache import locked, runs_root
from compose.native.installation import Installation
from compose.native.processes import Supervisor, SupervisorDied

# A run of its own: starts a pair from a thread that has ended by the time it says so.
# It looks for signals while it waits: Python handles none that comes just before a read blocks.
_RUNNER = """
import select, signal, sys, threading, time
from compose.native import shapes
from compose.native.processes import current_supervisor
from compose.native.provision import OLD, provision

def run():
    shape = shapes.pair(provision(OLD))
    pairs.append((shape, shape.__enter__()))

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup this one
pairs = []
thread = threading.Thread(target=run)
thread.start()
thread.join()
shape, pair = pairs[0]
pair.a.execute("CREATE DATABASE d")
pair.settle()
time.sleep(0.2)
print(current_supervisor().folder, current_supervisor().pid, pair.a.pid, pair.b.pid,
      pair.a.port, pair.b.port, pair.b.query("SHOW DATABASES LIKE 'd'")[0][0], flush=True)
while not select.select([sys.stdin], [], [], 0.1)[0]:
    pass
shape.__exit__(None, None, None)
"""


@contextmanager
def _runner() -> Iterator[subprocess.Popen[str]]:
    runner = subprocess.Popen(
        [sys.executable, "-c", _RUNNER],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield runner
    finally:
        runner.kill()
        runner.communicate()


def _report(runner: subprocess.Popen[str]) -> tuple[Path, list[int], list[int]]:
    """Return the runner's folder, its processes and its ports."""
    assert runner.stdout is not None
    folder, *numbers, schema = runner.stdout.readline().split()
    assert schema == "d"
    return Path(folder), [int(pid) for pid in numbers[:3]], [int(port) for port in numbers[3:]]


def _alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _await_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if _alive(pid)]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_the_runner_dies(
    installation56: Installation, end: signal.Signals
) -> None:
    with _runner() as runner:
        folder, pids, _ = _report(runner)
        assert all(_alive(pid) for pid in pids)
        os.killpg(runner.pid, end)  # as a terminal does: to the whole group
        runner.wait(timeout=30)
        _await_gone(pids)
        assert not folder.exists()


def test_servers_die_with_their_supervisor_and_the_next_run_sweeps(
    installation56: Installation,
) -> None:
    with _runner() as runner:
        folder, (supervisor, *servers), _ = _report(runner)
        with locked(runs_root() / ".lock"):  # or another run may sweep it first
            os.kill(supervisor, signal.SIGKILL)
            _await_gone([supervisor, *servers])
            assert folder.exists()
    second = Supervisor()
    try:
        assert not folder.exists()
    finally:
        second.close()


def test_two_runs_at_once(installation56: Installation) -> None:
    with _runner() as one, _runner() as two:
        first, second = _report(one), _report(two)
        assert first[0] != second[0]
        assert not set(first[1]) & set(second[1])
        assert not set(first[2]) & set(second[2])
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
        assert one.wait(timeout=30) == 0
        _await_gone(first[1])
        assert not first[0].exists()
        assert all(_alive(pid) for pid in second[1])  # the other run goes on
        assert second[0].exists()


def test_a_taken_port_is_answered_by_another_choice(
    installation56: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = server.free_port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        offers = iter([taken.getsockname()[1], choose("127.0.0.1")])
        monkeypatch.setattr(server, "free_port", lambda _address: next(offers))
        with shapes.single(installation56) as single:
            assert single.port != taken.getsockname()[1]
            assert single.value("1") == 1
        assert next(offers, None) is None


def test_a_server_that_cannot_start_shows_its_log(installation56: Installation) -> None:
    settings = command.Settings(extra=("--no-such-option=1",))
    with (
        pytest.raises(server.ServerFailed, match="no-such-option"),
        shapes.single(installation56, settings=settings),
    ):
        pytest.fail("it started")


def test_restart_keeps_port_uuid_and_data(installation56: Installation) -> None:
    with shapes.single(installation56) as single:
        single.execute("CREATE DATABASE d")
        before = (
            single.port,
            single.value("@@GLOBAL.server_uuid"),
            single.value("@@GLOBAL.gtid_executed"),
        )
        single.restart()
        assert (
            single.port,
            single.value("@@GLOBAL.server_uuid"),
            single.value("@@GLOBAL.gtid_executed"),
        ) == before
        single.kill()
        assert not single.running
        single.start()
        assert single.query("SHOW DATABASES LIKE 'd'") == [("d",)]


def test_client_speaks_to_both_ends(mysql97: server.Server, mysql56: server.Server) -> None:
    for one in (mysql97, mysql56):
        answer = one.client("SELECT @@GLOBAL.server_uuid;\n", "--skip-column-names")
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.strip() == one.value("@@GLOBAL.server_uuid")
        assert one.client("SELECT no_such_column;\n").returncode == 1


def test_supervisor_reports_what_it_cannot_start_and_its_own_end(tmp_path: Path) -> None:
    supervisor = Supervisor()
    with pytest.raises(OSError, match="no-such-program"):
        supervisor.start(
            [str(tmp_path / "no-such-program")],
            folder=tmp_path,
            output=tmp_path / "log",
            environment={},
        )
    child = supervisor.start(
        ["sleep", "60"], folder=tmp_path, output=tmp_path / "log", environment={}
    )
    assert child.status() is None
    with pytest.raises(TimeoutError, match="still runs"):
        child.wait(timeout_seconds_max=0.05)
    supervisor.close()
    assert not _alive(child.pid)
    assert not supervisor.folder.exists()
    with pytest.raises(SupervisorDied):
        child.status()


def test_a_fork_gets_a_supervisor_of_its_own() -> None:
    mine = processes.current_supervisor()
    assert processes.current_supervisor() is mine
    assert mine.folder.parent == runs_root()
    child = os.fork()
    if child == 0:
        theirs = processes.current_supervisor()
        differs = theirs.pid != mine.pid and theirs.folder != mine.folder
        theirs.close()
        os._exit(0 if differs else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mine.alive
