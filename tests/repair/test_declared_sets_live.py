"""A source that was promoted with RESET and a gtid_purged that is too small, and its look-alikes."""

from __future__ import annotations

import pytest

from compose.faults import commit, purge_until_gone
from compose.native.shapes import Pair, wait_for
from repair.model.actions import RedoTransactions
from tests.repair.live import await_clean, examine, executed, rows, run_plan
from topology.catalogue.findings import Finding, Grade

pytestmark = [pytest.mark.slow, pytest.mark.mysql]
SHAPES = ["pair97", "pair56"]


def promoted(pair: Pair, table: str, *, forgets: bool = True, keeps_rows: bool = True) -> str:
    """Make `b` the source of `a` with a set that was given to it; return what it does not list."""
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE given", f"CREATE TABLE given.t {table}")
    commit(a, "INSERT INTO given.t VALUES (1)")
    known = executed(a)
    lost = commit(a, "INSERT INTO given.t VALUES (2)", "INSERT INTO given.t VALUES (3)")
    wait_for(b, executed(a))
    a.execute(a.dialect.stop_replica)
    b.execute(
        b.dialect.stop_replica,
        b.dialect.reset_replica,
        b.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{known if forgets else executed(a)}'",
    )
    if not keeps_rows:  # as an older backup has them
        b.execute("SET SESSION sql_log_bin = 0", "DELETE FROM given.t WHERE id > 1")
    a.execute(a.dialect.start_replica)
    return lost


def errant(pair: Pair) -> Finding:
    [found] = [each for each in examine(pair).audit.findings if each.code == "E1"]
    return found


@pytest.mark.parametrize(
    ("keeps_rows", "purges"), [(True, False), (False, False), (True, True), (False, True)]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_without_a_key_nothing_is_redone_on_a_source_that_may_have_the_rows(
    shape: str, request: pytest.FixtureRequest, *, keeps_rows: bool, purges: bool
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    lost = promoted(pair, "(id INT)", keeps_rows=keeps_rows)
    if purges:
        begun = commit(pair.b, "CREATE DATABASE since")
        pair.b.execute("FLUSH BINARY LOGS")
        purge_until_gone(pair.b, begun)
        wait_for(pair.a, begun)
    found = errant(pair)
    assert (str(found.gtid_set), found.grade) == (lost, Grade.LIKELY)
    assert "before it was given its GTID set" in found.explanation
    assert "only the GTIDs are missing" in found.explanation
    plan = examine(pair).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "the rows may still be on b, and were not compared" in left.why


@pytest.mark.parametrize("keeps_rows", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_with_a_key_the_rows_decide(
    shape: str, request: pytest.FixtureRequest, *, keeps_rows: bool
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    promoted(pair, "(id INT PRIMARY KEY)", keeps_rows=keeps_rows)
    plan = examine(pair).plan({"E1": "redo_on_source"})
    if keeps_rows:
        for refused in (plan, examine(pair).plan({"E1": "undo_on_replica"})):
            assert refused.steps == ()
            [left] = [each for each in refused.not_planned if each.code == "E1"]
            assert "the rows are already on b: only their GTIDs are missing there" in left.why
        plan = examine(pair).plan({"E1": "inject_empty"})
    else:
        assert [type(step.effect) for step in plan.steps] == [RedoTransactions]
    run_plan(pair, plan)
    await_clean(pair)
    assert rows(pair.b, "given.t") == rows(pair.a, "given.t") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_committed_since_is_errant_for_certain(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    promoted(pair, "(id INT PRIMARY KEY)", forgets=False)
    written = commit(pair.a, "DO SLEEP(3)", "INSERT INTO given.t VALUES (4)")
    found = errant(pair)
    assert (str(found.gtid_set), found.grade) == (written, Grade.PROVED)
    assert "gtid_purged" not in found.explanation
