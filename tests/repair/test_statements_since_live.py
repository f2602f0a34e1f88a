"""Statements behind a gap met other rows on the replica: nothing that fills the gap corrects that."""

import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair, await_uptime, wait_for
from repair.repair_plan import unreported_of
from tests.repair.live import examine, run_plan

TOTAL = "UPDATE since.sum SET total = (SELECT SUM(n) FROM since.t)"


def with_format(server: Server, form: str, *statements: str) -> str:
    return faults.commit(server, f"SET SESSION binlog_format = '{form}'", *statements)


def totals(pair: Pair) -> list[object]:
    return [each.value("(SELECT total FROM since.sum)") for each in (pair.a, pair.b)]


@pytest.mark.parametrize("form", ["STATEMENT", "ROW"])
@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_plan_warns_of_statements_behind_a_gap(
    shape: str, form: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    source, replica = pair.a, pair.b
    for server in (source, replica):
        words = server.dialect
        mixed = "SET GLOBAL binlog_format = 'MIXED'"
        server.execute(words.stop_replica, mixed, words.start_replica)
    source.execute(
        "CREATE DATABASE since",
        "CREATE TABLE since.t (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE since.sum (id INT PRIMARY KEY, total INT)",
        "INSERT INTO since.t VALUES (1, 1)",
        "INSERT INTO since.sum VALUES (1, 0)",
    )
    pair.settle()
    await_uptime(replica)
    replica.execute(replica.dialect.stop_replica)
    with_format(source, "ROW", "INSERT INTO since.t VALUES (5, 10)")
    faults.move_past(source, replica)
    wait_for(replica, with_format(source, form, TOTAL))
    plan = examine(pair).plan()
    assert [each.strategy for each in plan.answered if each.code == "H1"]
    counting = unreported_of(plan.warnings)
    warned = [each for each in counting if "has statements behind " in each]
    run_plan(pair, plan)
    assert bool(warned) is (form == "STATEMENT")
    assert (totals(pair) == [11, 11]) is not bool(warned)
