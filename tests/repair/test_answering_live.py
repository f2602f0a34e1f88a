"""Another server at the address of a stopped channel's source, after the plan was made."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from compose import faults, faults_after_plan
from compose.faults import await_status
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from repair import Plan
from repair.render import render_files
from repair.scripts.steps import Step
from tests.repair.live import examine, executed, rows, run_plan, run_step


def _stopped(pair: Pair) -> Plan:
    """Plan to start b's stopped channel, which then fetches a row."""
    pair.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair.settle()
    pair.b.execute(pair.b.dialect.stop_replica)
    pair.a.execute("INSERT INTO d.t VALUES (1)")
    return examine(pair).plan()


def _bypassed(pair: Pair) -> Plan:
    """Plan to fetch what b's channel has passed; it is stopped."""
    faults.position_bypass(pair)
    pair.b.execute(pair.b.dialect.stop_replica)
    return examine(pair).plan({"H1": "refetch"})


def _refused(pair: Pair, step: Step, plan: Plan, why: str) -> None:
    """Run a step, without and with --force: it starts no applier, and stops the receiver again."""
    before = executed(pair.b)
    for options in ((), ("--force",)):
        done = pair.b.client(render_files(plan)[step.file_name], *options)
        assert options or done.returncode != 0
        assert why in done.stderr, done.stderr
        assert "is done" not in done.stdout
    status = pair.b.replica_status()
    threads = (status["Replica_IO_Running"], status["Replica_SQL_Running"])
    assert (executed(pair.b), *threads) == (before, "No", "No")


@pytest.mark.parametrize("planned", [_stopped, _bypassed])
def test_another_server_that_answers_is_noticed(
    pair97: Pair, planned: Callable[[Pair], Plan]
) -> None:
    plan = planned(pair97)
    step = plan.steps[-1]
    faults_after_plan.another_server_uuid(pair97.a)
    pair97.a.execute("CREATE DATABASE elsewhere")
    _refused(pair97, step, plan, "another server than the audited one answers")
    assert run_step(pair97, plan, step).returncode != 0
    assert not pair97.b.query("SHOW DATABASES LIKE 'elsewhere'")


@pytest.mark.slow
def test_a_source_that_does_not_answer_leaves_the_channel_as_it_was(
    pair97: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repair.sql.script.CONNECT_LOOKS_MAX", 2)
    plan = _stopped(pair97)
    [step] = plan.steps
    pair97.a.stop()
    _refused(pair97, step, plan, "its receiver does not connect and was stopped again")
    pair97.a.start()
    run_plan(pair97, plan)
    assert rows(pair97.b, "d.t") == [(1,)]


@dataclass
class _Address:
    """An address that is moved from one server to another; connections stay where they are."""

    server: Server
    port: int = 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            serving = threading.Thread(target=self._serve, args=(listener,))
            serving.start()
            try:
                yield
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                serving.join()

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the test is over
            while True:
                client, _ = listener.accept()
                there = socket.create_connection((self.server.host, self.server.port))
                for ends in ((client, there), (there, client)):
                    threading.Thread(target=_pass_on, args=ends).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with source, suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def test_an_address_that_moved_while_the_connection_lasted(star97: Topology) -> None:
    """The script itself stops the channel, and the next connection goes to another server."""
    source, replica, other = (star97[each] for each in ("source", "replica1", "replica2"))
    faults.position_bypass(star97, source="source", replica="replica1")
    wait_for(other, executed(source))
    other.execute(other.dialect.stop_replica, "CREATE DATABASE elsewhere")
    address = _Address(source)
    with address.answering():
        file, position = source.binary_log_position()
        replica.execute(
            replica.dialect.stop_replica,
            replica.dialect.change_source_to(
                host="127.0.0.1",
                port=address.port,
                auto_position=0,
                log_file=file,
                log_pos=position,
            ),
            replica.dialect.start_replica,
        )
        await_status(replica, lambda shown: shown["Replica_IO_Running"] == "Yes")
        pair = Topology({name: star97[name] for name in ("source", "replica1")}, links=())
        plan = examine(pair).plan({"H1": "refetch"})
        step = plan.steps[-1]
        assert step.action == "AutoPositionOn"
        address.server = other
        before = executed(replica)
        done = replica.client(render_files(plan)[step.file_name])
        assert "another server than the audited one answers" in done.stderr
        assert executed(replica) == before
        replica.execute(replica.dialect.stop_replica)
