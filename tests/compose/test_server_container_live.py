"""A test server in a container is started, killed, paused and ended like a process.

It needs a Docker engine and an image: GTID_AUDIT_MYSQL_IMAGE, or the one of `make images`.
"""

import os
import subprocess
import time
from collections.abc import Iterator

import pymysql
import pytest

from compose.containers.engine import docker_environment, docker_program
from compose.containers.server_container import image_installation
from compose.native.installation import Installation, ProviderMissing
from compose.native.server import Server

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


@pytest.fixture(scope="module")
def installation() -> Installation:
    image = os.environ.get("GTID_AUDIT_MYSQL_IMAGE", "gtid-audit/mysql:debian")
    try:
        return image_installation(image)
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


@pytest.fixture
def server(installation: Installation) -> Iterator[Server]:
    made = Server(installation, "contained")
    try:
        made.start()
        yield made
    finally:
        made.discard()


def containers_of(server: Server) -> list[str]:
    label = f"label=gtid-audit.run={server.folder.parent}"
    command = [docker_program(), "ps", "--all", "--quiet", "--filter", label]
    done = subprocess.run(
        command, env=docker_environment(), capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_what_is_committed_survives_a_kill(server: Server) -> None:
    server.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    server.execute("INSERT INTO d.t VALUES (1)")
    number = int((server.datadir / "mysqld.pid").read_text())
    server.kill()
    assert not server.running
    assert containers_of(server) == []
    # The next container numbers its processes in the same way: this is the loop beside mysqld.
    (server.datadir / "mysql.sock.lock").write_text(f"{number + 1}\n")
    server.start()
    assert server.query("SELECT id FROM d.t") == [(1,)]


def test_a_frozen_server_does_not_answer_until_it_is_thawed(server: Server) -> None:
    server.freeze()
    assert server.running
    timed_out = pytest.raises(pymysql.err.OperationalError, match="timed out")
    with timed_out, server.connect(timeout_seconds_max=1.0):
        pass
    server.thaw()
    assert server.value("1") == 1


def test_a_frozen_server_is_killed(server: Server) -> None:
    server.freeze()
    server.kill()
    assert containers_of(server) == []


def test_a_container_ends_when_the_lock_of_its_run_goes(server: Server) -> None:
    lock = server.folder.parent / "lock"
    away = lock.with_suffix(".away")
    lock.rename(away)
    try:
        deadline = time.monotonic() + 60
        while containers_of(server):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        away.rename(lock)
