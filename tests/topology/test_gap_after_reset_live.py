"""H2: what a RESET forgot looks like a gap that workers left, on real servers."""

import json

import pytest

from compose.faults import await_status, commit
from compose.faults_applier import await_received
from compose.native.shapes import Pair, wait_for
from tests.gtid_audit.build import run_cli

pytestmark = pytest.mark.mysql


def test_what_a_reset_forgot_is_no_proved_gap_of_workers(pair97: Pair) -> None:
    """As it was: "it fills the gap when it starts", and the applier stopped with 1062."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE gap", "CREATE TABLE gap.t (id INT PRIMARY KEY)")
    forgotten = commit(a, *(f"INSERT INTO gap.t VALUES ({number})" for number in range(3)))
    pair97.settle()
    b.execute("STOP REPLICA", "RESET BINARY LOGS AND GTIDS", "START REPLICA")
    wait_for(b, commit(a, "INSERT INTO gap.t VALUES (7)"))
    b.execute(
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1",  # deletes the relay log
        "START REPLICA IO_THREAD",
    )
    await_received(b, forgotten)
    done = run_cli("pair", a.dsn, b.dsn, "--json")
    found = [each for each in json.loads(done.stdout)["findings"] if each["code"] in {"H2", "H8"}]
    about = [each for each in found if forgotten.rpartition(":")[0] in each["gtid_set"]]
    assert [each["grade"] for each in about] == ["likely"], found
    assert "RESET BINARY LOGS AND GTIDS" in about[0]["explanation"]
    b.execute("START REPLICA SQL_THREAD")
    await_status(b, lambda status: str(status["Last_SQL_Errno"]) not in {"0", ""})
