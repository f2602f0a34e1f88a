"""A server that was reset below two sources: the start of one brings what it has from the other."""

from collections.abc import Iterator

import pytest

from compose.faults import commit, table_on
from compose.native.installation import Installation
from compose.native.shapes import Topology, TopologyPlan, follow, follow_by_name, running, wait_for
from tests.repair.live import examine, left_by, run_plan

pytestmark = [pytest.mark.mysql, pytest.mark.slow]
_ROWS = "COUNT(*) FROM below.t"


@pytest.fixture
def diamond(installation97: Installation) -> Iterator[Topology]:
    """Yield a -> b, c -> d, in which b is stopped and behind by one row of a table without a key."""
    with running(installation97, TopologyPlan(names=tuple("abcd"), links=())) as four:
        a, b, c, d = (four[name] for name in "abcd")
        for middle in (b, c):
            follow(middle, a)
            follow_by_name(d, middle)
        table_on(a, d, "below")
        a.execute("ALTER TABLE below.t MODIFY id INT, DROP PRIMARY KEY")
        wait_for(d, commit(a, "INSERT INTO below.t (id) VALUES (1)"))
        b.execute("STOP REPLICA")
        wait_for(d, commit(a, "INSERT INTO below.t (id) VALUES (2)"))
        yield four


def test_a_start_above_does_not_bring_rows_twice(diamond: Topology) -> None:
    """No set of d shows that it has the row: the start of b alone would insert it again."""
    b, d = diamond["b"], diamond["d"]
    d.execute("RESET BINARY LOGS AND GTIDS")
    seen = examine(diamond)
    assert {"H8", "A7"} <= {*seen.codes}
    plan = seen.plan({"A7": "start_channel"})
    assert "b" not in [each.effect.server for each in plan.steps]
    [left] = [each for each in left_by(plan) if each.code == "A7"]
    assert "d would get " in left.why
    assert "Answer the H8 of d first" in left.why
    assert d.value(_ROWS) == 2
    # What it prevents.
    b.execute("START REPLICA")
    wait_for(b, diamond["a"].value("@@GLOBAL.gtid_executed"))
    commit(diamond["a"], "CREATE DATABASE last")
    wait_for(d, diamond["a"].value("@@GLOBAL.gtid_executed").split(":")[0] + ":6")
    assert d.value(_ROWS) == 3


def test_a_start_above_is_planned_where_the_server_below_has_all(diamond: Topology) -> None:
    """The benign twin: d was not reset, and skips what it has."""
    plan = examine(diamond).plan({"A7": "start_channel"})
    assert [each.effect.server for each in plan.steps] == ["b"]
    run_plan(diamond, plan)
    last = commit(diamond["a"], "CREATE DATABASE last")
    for name in "bd":
        wait_for(diamond[name], last)
        assert diamond[name].value(_ROWS) == 2
