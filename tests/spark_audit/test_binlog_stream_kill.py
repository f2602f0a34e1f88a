"""A stream whose processes are killed again and again while the server is written to.

The quick twin, in one process, is in test_binlog_stream.py.
"""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from spark_audit.adapters.java import JavaMissing, require_java
from tests.background import in_background
from tests.spark_audit import streamed_run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PASSWORD = "Zx9-recognisable-4b1d7c"
KILLS = 3
SECONDS_MAX = 180


def write(server: Server, number: int) -> None:
    """Write to the server, and rotate its log now and then."""
    server.execute(f"INSERT INTO d.t VALUES ({number})")
    if number % 100 == 0:
        server.execute("FLUSH LOGS")


def started(scratch: Path, server: Server, *, transactions_max: int) -> "subprocess.Popen[bytes]":
    """Start the query in a group of its own, JVM and all."""
    (scratch / "runs").unlink(missing_ok=True)
    with (scratch / "stderr").open("ab") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                streamed_run.__file__,
                str(scratch),
                f"mysql://watched@127.0.0.1:{server.port}/",
                str(transactions_max),
            ],
            env={
                **{name: value for name, value in os.environ.items() if "SPARK" not in name},
                "GTID_AUDIT_PASSWORD": PASSWORD,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    until = time.monotonic() + SECONDS_MAX
    while not (scratch / "runs").exists():
        assert process.poll() is None, (scratch / "stderr").read_text()[-4000:]
        assert time.monotonic() < until, (scratch / "stderr").read_text()[-4000:]
        time.sleep(0.05)
    return process


def killed_in_mid_batch(process: "subprocess.Popen[bytes]", scratch: Path) -> bool:
    """Kill everything between two commits. Tell whether a batch was begun and not finished."""

    def newest(what: str) -> int:
        numbers = [int(path.name) for path in (scratch / "checkpoint" / what).glob("[0-9]*")]
        return max(numbers, default=-1)

    until = time.monotonic() + SECONDS_MAX
    finished = newest("commits")
    while time.monotonic() < until:
        # Some batches of this run are through, and one is under way.
        if newest("commits") >= finished + 2 and newest("offsets") > newest("commits"):
            break
        assert process.poll() is None
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return newest("offsets") > newest("commits")


def rows_in(scratch: Path) -> list[dict[str, object]]:
    """Return what the sink says it holds: files that a killed batch left behind are not in it."""
    log = scratch / "out" / "_spark_metadata"
    files: set[str] = set()
    for path in log.iterdir():
        if path.name.startswith("."):
            continue
        lines = path.read_text().splitlines()[1:]
        files.update(entry["path"] for entry in map(json.loads, lines) if entry["action"] == "add")
    assert files
    return [
        row
        for file in sorted(files)
        for row in pq.read_table(file.removeprefix("file://")).to_pylist()
    ]


def test_every_gtid_once_though_everything_is_killed_again_and_again(
    installation97: Installation, tmp_path: Path
) -> None:
    try:
        require_java(os.environ)
    except JavaMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    with shapes.single(installation97) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT)",
            f"CREATE USER watched@'%' IDENTIFIED BY '{PASSWORD}'",
            "GRANT REPLICATION SLAVE ON *.* TO watched@'%'",
        )
        with in_background(partial(write, server), every_seconds=0.02):
            in_mid_batch = [
                killed_in_mid_batch(started(tmp_path, server, transactions_max=20), tmp_path)
                for _ in range(KILLS)
            ]
            last = started(tmp_path, server, transactions_max=100_000)
            time.sleep(2)
        (tmp_path / "stop").touch()  # and it ends, if only with an error
        assert last.wait(SECONDS_MAX) == 0, (tmp_path / "stderr").read_text()[-4000:]
        executed = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
    assert sum(in_mid_batch) >= KILLS - 1, "killed while batches were under way"
    rows = rows_in(tmp_path)
    numbers = [row["gno"] for row in rows]
    assert len(numbers) == len(set(numbers)), "no GTID twice"
    (uuid,) = {row["uuid"] for row in rows}
    assert GtidSet.parse(",".join(f"{uuid}:{number}" for number in numbers)) == executed
    assert len(numbers) > 100
    assert len({row["file"] for row in rows}) > 1

    places = [
        tmp_path / name for name in ("checkpoint", "events", "out", "shown", "plan", "stderr")
    ]
    searched = 0
    for place in places:
        for file in [place] if place.is_file() else place.rglob("*"):
            if file.is_file():
                searched += file.stat().st_size
                assert PASSWORD.encode() not in file.read_bytes(), file
    assert searched > 100_000
    assert b"mysql_binlog" in (tmp_path / "plan").read_bytes().lower()
