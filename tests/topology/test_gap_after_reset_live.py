"""H2: what a RESET forgot looks like a gap that workers left, on real servers."""

import json

import pytest

from compose.faults import await_status, commit
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.shapes import Link, TopologyPlan, running, wait_for
from tests.gtid_audit.build import run_cli

pytestmark = pytest.mark.mysql


def test_what_a_reset_forgot_is_no_proved_gap_of_workers(installation97: Installation) -> None:
    """As it was: "it fills the gap when it starts", and the applier stopped with 1062."""
    settings = {"b": Settings(extra=("--skip-replica-start",))}
    plan = TopologyPlan(names=("a", "b"), links=(Link("a", "b"),), settings=settings)
    with running(installation97, plan) as two:
        a, b = two["a"], two["b"]
        for server in (a, b):  # without a GTID: the first one of a is an INSERT
            server.execute(
                "SET sql_log_bin = 0",
                "CREATE DATABASE gap",
                "CREATE TABLE gap.t (id INT PRIMARY KEY)",
            )
        wait_for(b, commit(a, *(f"INSERT INTO gap.t VALUES ({number})" for number in range(3))))
        b.execute("STOP REPLICA", "RESET BINARY LOGS AND GTIDS", "START REPLICA")
        wait_for(b, commit(a, "INSERT INTO gap.t VALUES (7)"))
        with b.connect() as session, session.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM gap.t FOR UPDATE")  # the worker waits at the first one
            b.execute(
                "STOP REPLICA",
                "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1",  # deletes the relay log
                "START REPLICA",
            )
            await_status(b, lambda status: ":1-3" in str(status["Retrieved_Gtid_Set"]))
            b.kill()  # STOP REPLICA would wait for the worker
        b.start()
        done = run_cli("pair", a.dsn, b.dsn, "--json")
        [found] = [each for each in json.loads(done.stdout)["findings"] if each["code"] == "H2"]
        assert found["grade"] == "likely"
        assert "If it was reset (RESET BINARY LOGS AND GTIDS)" in found["explanation"]
        b.execute("START REPLICA")
        await_status(b, lambda status: str(status["Last_SQL_Errno"]) == "1062")
