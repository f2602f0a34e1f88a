"""A crash that takes GTIDs and leaves rows: before 8.0.17 only the binary log has the GTIDs."""

import os
import time

import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine


def lose_the_end_of_the_log(source: Server, replica: Server, changes: list[str]) -> str:
    """Commit, then cut exactly that off the binary log, as power loss does with sync_binlog=0."""
    file, position = source.binary_log_position()
    lost = faults.commit(source, *changes)
    wait_for(replica, lost)
    time.sleep(1.5)  # InnoDB writes the last commit to its log within a second
    source.kill()
    os.truncate(source.datadir / file, position)
    source.start()
    return lost


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_rows_that_a_crash_left_are_not_done_again(pair56: Pair, key: str) -> None:
    a, b = pair56.a, pair56.b
    a.execute("CREATE DATABASE kept", f"CREATE TABLE kept.t (id INT {key})")
    pair56.settle()
    changes = [f"INSERT INTO kept.t VALUES ({row})" for row in range(3)]
    lost = lose_the_end_of_the_log(a, b, changes)
    assert a.value("COUNT(*) FROM kept.t") == 3, "the crash left the rows"
    found = examine(pair56)
    [finding] = [one for one in found.audit.findings if one.code == "E3"]
    assert str(finding.gtid_set) == lost
    assert "rows may still be there" in finding.explanation
    assert finding.strategies[0].name == "check_data"
    plan = found.plan({"E3": "redo_on_source"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E3"]
    assert ("are on a already" if key else "may still be on a") in left.why
