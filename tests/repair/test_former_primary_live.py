"""The stopped channel of a replica to a former primary: with a tail (J3), and without one."""

import pytest

from compose.faults import commit, table_on
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Topology, TopologyPlan, follow, running, wait_for
from tests.repair.live import examine, left_by

pytestmark = [pytest.mark.mysql, pytest.mark.slow]
# b was promoted, c followed it, and d was forgotten: its channel still leads to a.
_FOUR = TopologyPlan(names=tuple("abcd"), links=tuple(Link("a", name) for name in "bcd"))


def rows_of(server: Server) -> int:
    return int(server.value("COUNT(*) FROM tail.t"))


def failed_over(four: Topology, *, tail: bool) -> str:
    """Promote b and stop d. With a tail, a commits before it is cut off; without, d is behind."""
    a, b, c, d = (four[name] for name in "abcd")
    table_on(a, b, "tail")
    wait_for(d, a.value("@@GLOBAL.gtid_executed"))
    d.execute("STOP REPLICA")
    if tail:
        for each in (b, c):
            each.execute("STOP REPLICA", "RESET REPLICA ALL")
    last = commit(a, "INSERT INTO tail.t () VALUES ()")
    if not tail:
        for each in (b, c):
            wait_for(each, last)
            each.execute("STOP REPLICA", "RESET REPLICA ALL")
    follow(c, b)
    return last


def test_a_tail_is_not_spread_by_default(installation97: Installation) -> None:
    with running(installation97, _FOUR) as four:
        tail = failed_over(four, tail=True)
        wait_for(four["c"], commit(four["b"], "CREATE DATABASE since"))
        seen = examine(four)
        assert {"J3", "A7"} <= {*seen.codes}
        plan = seen.plan()
        assert not plan.steps
        [left] = [each for each in left_by(plan) if each.code == "A7"]
        assert f"a has {tail}, which b does not have (J3)" in left.why
        assert "d would fetch them, and could not join b afterwards" in left.why
        assert (rows_of(four["d"]), rows_of(four["a"])) == (0, 1)


def test_what_the_servers_in_use_have_is_delivered_by_default(
    installation97: Installation,
) -> None:
    """The benign twin: a has no tail, and d is behind it. The start brings what b and c have."""
    with running(installation97, _FOUR) as four:
        failed_over(four, tail=False)
        plan = examine(four).plan()
        assert [each.effect.server for each in plan.steps] == ["d"]
