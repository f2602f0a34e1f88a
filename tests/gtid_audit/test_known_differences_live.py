"""A difference that was found, then a RESET: both logs agree, and the rows do or do not."""

import json
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.faults import commit
from compose.native.installation import Installation
from compose.native.shapes import Link, TopologyPlan, running, wait_for
from tests.gtid_audit.build import run_cli

pytestmark = pytest.mark.mysql


@pytest.mark.parametrize("is_loaded_anew", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_logs_that_agree_after_a_reset_show_nothing_of_the_rows(
    installation97: Installation, tmp_path: Path, *, is_loaded_anew: bool
) -> None:
    """The twins: the replica receives the GTID again, with and without the data of its source."""
    plan = TopologyPlan(names=("a", "b"), links=(Link("a", "b"),))
    with running(installation97, plan) as two:
        a, b = two["a"], two["b"]
        history = str(tmp_path / "history")

        def audited() -> tuple[int, list[dict[str, Any]]]:
            done = run_cli("pair", a.dsn, b.dsn, "--history", history, "--json")
            found = json.loads(done.stdout)["findings"]
            return done.returncode, [each for each in found if each["code"] == "E4"]

        lost = faults.lost_tail_crash(two, statements=["INSERT INTO lost.t (id) VALUES (101)"])
        assert commit(a, "INSERT INTO lost.t (id) VALUES (201)") == lost.lost
        b.execute("START REPLICA")
        wait_for(b, commit(a, "INSERT INTO lost.t (id) VALUES (202)"))
        status, [proved] = audited()
        assert (status, proved["grade"], proved["gtid_set"]) == (2, "proved", lost.lost)
        ids = "101, 202" if is_loaded_anew else "202"
        b.execute("SET sql_log_bin = 0", f"DELETE FROM lost.t WHERE id IN ({ids})")
        uuid, _, number = lost.lost.partition(":")
        b.execute(
            "STOP REPLICA",
            "RESET REPLICA",  # Retrieved_Gtid_Set has it
            "RESET BINARY LOGS AND GTIDS",
            f"SET GLOBAL gtid_purged = '{uuid}:1-{int(number) - 1}'",
            "START REPLICA",
        )
        wait_for(b, a.value("@@GLOBAL.gtid_executed"))
        rows = [server.query("SELECT id FROM lost.t ORDER BY id") for server in (a, b)]
        assert (rows[0] == rows[1]) is is_loaded_anew
        for _ in range(2):  # it stays
            status, [kept] = audited()
            assert (status, kept["grade"], kept["severity"]) == (2, "likely", "critical")
            assert kept["gtid_set"] == lost.lost
            assert "both logs have the same transaction now" in str(kept["evidence"])
        # As the finding says: make the rows the same, then say so.
        b.execute("SET sql_log_bin = 0", "DELETE FROM lost.t WHERE id = 101")
        assert run_cli("history", history, "--forget", lost.lost).returncode == 0
        status, found = audited()
        assert (status, found) == (0, [])
