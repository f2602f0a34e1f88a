"""Rows of tables whose engine has no transactions, on real servers: no GTID is used up for them."""

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, rows, run_step

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def _set_engine(server: Server, engine: str) -> None:
    alter = f"ALTER TABLE d.t ENGINE = {engine}"
    server.execute("SET SESSION sql_log_bin = 0", alter, "SET SESSION sql_log_bin = 1")


@pytest.fixture
def errant(request: pytest.FixtureRequest) -> Pair:
    """Return a pair whose replica has three rows more, in one transaction."""
    name, here, there = request.param
    pair: Pair = request.getfixturevalue(name)
    pair.a.execute(
        pair.a.dialect.stop_replica,
        pair.a.dialect.reset_replica,
        "CREATE DATABASE d",
        f"CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE = {here}",
        "INSERT INTO d.t VALUES (1, 1)",
    )
    wait_for(pair.b, executed(pair.a))
    _set_engine(pair.b, there)
    pair.b.execute("INSERT INTO d.t VALUES (2, 2), (3, 3), (4, 4)")
    return pair


@pytest.mark.parametrize(
    "errant",
    [
        ("pair97", "MyISAM", "MyISAM"),
        ("pair97", "MyISAM", "InnoDB"),
        ("pair56", "MyISAM", "MyISAM"),
    ],
    indirect=True,
)
def test_they_are_not_done_again(errant: Pair) -> None:
    plan = examine(errant).plan({"E1": "redo_on_source"})
    assert not plan.steps
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "d.t (MyISAM) on a has an engine without transactions" in left.why


@pytest.mark.parametrize(
    "errant", [("pair97", "InnoDB", "MyISAM"), ("pair56", "InnoDB", "InnoDB")], indirect=True
)
def test_the_engine_is_asked_again_by_the_script(errant: Pair) -> None:
    plan = examine(errant).plan({"E1": "redo_on_source"})
    [step] = plan.steps
    before = executed(errant.a)
    _set_engine(errant.a, "MyISAM")
    for _ in range(2):
        refused = run_step(errant, plan, step)
        assert refused.returncode != 0
        assert "d.t has an engine without transactions" in refused.stderr
    assert executed(errant.a) == before
    assert rows(errant.a, "d.t") == [(1, 1)]
    _set_engine(errant.a, "InnoDB")
    assert run_step(errant, plan, step).returncode == 0
    assert rows(errant.a, "d.t") == rows(errant.b, "d.t")
