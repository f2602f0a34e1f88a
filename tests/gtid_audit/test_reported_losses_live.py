"""E3, then GTIDs that were used again, and a replica that has no log of what it received."""

import json
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.faults import commit
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.shapes import Link, TopologyPlan, follow, running, wait_for
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.test_live import address, fleet_file

pytestmark = pytest.mark.mysql
_UNLOGGED = TopologyPlan(
    names=("a", "b"),
    links=(Link("a", "b"),),
    settings={"b": Settings(extra=("--log-replica-updates=OFF",))},
)
_ACCEPTED = """
policy:
  accepted_findings:
    - code: E4
      source: "*"
      severity: critical
      set: "{gtids}"
      reason: rows were compared
      expires: 2099-01-01
"""


@pytest.mark.slow
def test_a_loss_is_not_forgotten_because_its_holders_agree(
    installation97: Installation, tmp_path: Path
) -> None:
    """While the origin is not in the audit, the two replicas have equal contents, and logs."""
    links = (Link("a", "b"), Link("b", "c"))
    with running(installation97, TopologyPlan(names=("a", "b", "c"), links=links)) as three:
        a, b, c = (three[name] for name in "abc")
        whole = fleet_file(tmp_path / "whole.yaml", ("shop", list(map(address, (a, b, c)))))
        part = fleet_file(tmp_path / "part.yaml", ("shop", list(map(address, (b, c)))))

        def audited(fleet: Path) -> tuple[int, dict[str, Any]]:
            out = ("--engine", "local", "--out", str(tmp_path / "runs"), "--json")
            done = run_cli("audit", "--fleet", str(fleet), *out)
            return done.returncode, json.loads(done.stdout)

        lost = faults.lost_tail_crash(three)
        wait_for(c, lost.lost)
        status, found = audited(whole)
        assert (status, "E3" in {each["code"] for each in found["findings"]}) == (2, True)
        audited(part)
        c.execute("STOP REPLICA")  # it reads the log of b
        for server in (b, c):
            server.execute("FLUSH BINARY LOGS")
            faults.purge_until_gone(server, lost.lost)
        c.execute("START REPLICA")
        assert commit(a, *["INSERT INTO lost.t (note) VALUES ('again')"] * 3) == lost.lost
        b.execute("START REPLICA")
        wait_for(c, commit(a, "INSERT INTO lost.t (note) VALUES ('later')"))
        status, found = audited(whole)
        assert status == 3, found
        reasons = [each["reason"] for each in found["unknown"]]
        said = f"an earlier audit reported {lost.lost} as lost"
        assert len([each for each in reasons if said in each]) == 2, found  # of b and of c


def test_a_loss_that_no_log_shows_is_not_forgotten(
    installation97: Installation, tmp_path: Path
) -> None:
    """With a directory, a history of the fleet, and a history of two servers."""
    with running(installation97, _UNLOGGED) as two:
        a, b = two["a"], two["b"]
        fleet = fleet_file(tmp_path / "fleet.yaml", ("shop", [address(a), address(b)]))
        of_fleet, history = ("audit", "--fleet", str(fleet)), str(tmp_path / "history")
        kept = (*of_fleet, "--engine", "local", "--out", str(tmp_path / "runs"))
        with_memory: list[tuple[str, ...]] = [kept, (*of_fleet, "--history", history)]
        with_memory.append(("pair", a.dsn, b.dsn, "--history", history))

        def audited(*command: str) -> tuple[int, list[str], dict[str, Any]]:
            done = run_cli(*command, "--json")
            document = json.loads(done.stdout)
            codes = [each["code"] for each in document["findings"] if each["severity"] != "info"]
            return done.returncode, codes, document

        lost = faults.lost_tail_crash(two)
        for command in with_memory:
            status, codes, _ = audited(*command)
            assert (status, "E3" in codes) == (2, True)
        reused = commit(a, *["INSERT INTO lost.t (note) VALUES ('again')"] * 3)
        assert reused == lost.lost
        b.execute("START REPLICA")
        wait_for(b, commit(a, "INSERT INTO lost.t (note) VALUES ('later')"))
        for command in (*with_memory, *with_memory, (*kept, "--content")):
            status, codes, document = audited(*command)
            assert (status, "E3" in codes) == (3, False), document
            reasons = [each["reason"] for each in document["unknown"]]
            assert any(
                f"an earlier audit reported {lost.lost} as lost" in each for each in reasons
            ), document
        # As it says: the rows were compared, and the set is accepted.
        fleet.write_text(fleet.read_text() + _ACCEPTED.format(gtids=lost.lost))
        status, codes, document = audited(*kept)
        assert not [each for each in document["unknown"] if "earlier audit" in each["reason"]]


@pytest.mark.parametrize("is_fetched", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_either_side_of_two_histories_is_compared(
    installation97: Installation, tmp_path: Path, *, is_fetched: bool
) -> None:
    """J3 is about one of the two: what the other one has beyond it is declared there, or fetched."""
    links = (Link("a", "b"), Link("b", "a"))
    with running(installation97, TopologyPlan(names=("a", "b"), links=links)) as two:
        a, b = two["a"], two["b"]

        def audited() -> tuple[int, list[dict[str, Any]]]:
            done = run_cli("pair", a.dsn, b.dsn, "--history", str(tmp_path / "kept"), "--json")
            found = json.loads(done.stdout)["findings"]
            return done.returncode, [each for each in found if each["severity"] != "info"]

        faults.table_on(a, b, "apart")
        for server, first in ((a, 100), (b, 200)):  # what is next to a start is compared anyway
            commit(
                server, *(f"INSERT INTO apart.t (id) VALUES ({first + each})" for each in range(40))
            )
        two.settle()
        for server in (a, b):
            server.execute("STOP REPLICA", "RESET REPLICA ALL")
        made = {
            server.port: commit(
                server, *(f"INSERT INTO apart.t (id) VALUES ({each})" for each in rows)
            )
            for server, rows in ((a, (1, 2, 3)), (b, (4, 5, 6)))
        }
        status, [j3] = audited()
        assert (status, j3["code"]) == (2, "J3")
        one, other = (a, b) if j3["replica"].endswith(f":{a.port}") else (b, a)
        assert j3["gtid_set"] == made[one.port]
        if is_fetched:
            follow(one, other)
            wait_for(one, made[other.port])
        else:  # an operator takes the rows of one for those of the other
            uuid, _, numbers = made[other.port].partition(":")
            first, last = map(int, numbers.split("-"))
            for number in range(first, last + 1):
                one.execute(f"SET gtid_next = '{uuid}:{number}'", "BEGIN", "COMMIT")
        follow(other, one)
        wait_for(other, made[one.port])
        held = [server.query("SELECT id FROM apart.t ORDER BY id") for server in (a, b)]
        assert (held[0] == held[1]) is is_fetched
        for _ in range(2):  # it stays
            status, found = audited()
            assert ("E4" in {each["code"] for each in found}) is not is_fetched, found
