"""A server that wrote while its channel was stopped: what waits for it may be older than its rows.

A statement waits before it, so no rows can be compared. Only the order of the source's log shows
whether the server's own work saw what waits.
"""

import pytest

from compose import faults
from compose.native.shapes import Pair, wait_for
from tests.repair.live import await_clean, examine, rows, run_plan

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


def _statement(pair: Pair) -> None:
    """Commit a statement on a that b must apply, and whose rows no log shows."""
    statement = "UPDATE own.t SET note = 'by statement' WHERE id = 2"
    faults.commit(pair.a, "SET SESSION binlog_format = STATEMENT", statement)


def _prepared(pair: Pair) -> None:
    faults.table_on(pair.a, pair.b, "own")
    faults.commit(pair.a, "INSERT INTO own.t VALUES (1, 'first'), (2, 'first')")
    pair.settle()


def test_own_work_behind_what_waits_starts_nothing_by_default(pair97: Pair) -> None:
    _prepared(pair97)
    pair97.b.execute(pair97.b.dialect.stop_replica)
    _statement(pair97)
    faults.commit(pair97.a, "UPDATE own.t SET note = 'older' WHERE id = 1")
    own = faults.commit(pair97.b, "UPDATE own.t SET note = 'newer' WHERE id = 1")
    wait_for(pair97.a, own)
    plan = examine(pair97).plan()
    assert plan.steps == ()
    [left] = plan.not_planned
    assert left.code == "A7"
    assert "were not compared on b" in left.why
    assert "choose with --strategy A7=" in left.why


def test_own_work_before_what_waits_does_not_prevent_the_start(pair97: Pair) -> None:
    _prepared(pair97)
    wait_for(pair97.a, faults.commit(pair97.b, "UPDATE own.t SET note = 'older' WHERE id = 1"))
    pair97.a.execute("FLUSH BINARY LOGS")
    pair97.b.execute(pair97.b.dialect.stop_replica)
    _statement(pair97)
    faults.commit(pair97.a, "UPDATE own.t SET note = 'newer' WHERE id = 1")
    plan = examine(pair97).plan()
    [step] = plan.steps
    assert step.server == "b"
    run_plan(pair97, plan)
    pair97.settle()
    await_clean(pair97)
    assert rows(pair97.b, "own.t") == rows(pair97.a, "own.t")
    assert rows(pair97.b, "own.t") == [(1, "newer"), (2, "by statement")]
