"""Plans after a promotion by hand, and what they show of rows, on real servers."""

import pytest

from compose.faults import commit, table_on
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, rows


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_promoted_replica_keeps_its_newer_rows(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """The replica was promoted by STOP REPLICA alone; the old source returns with an older row."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    table_on(a, b, "promoted")
    wait_for(b, commit(a, "INSERT INTO promoted.t VALUES (1, 'first'), (2, 'same')"))
    b.execute(b.dialect.stop_replica)
    commit(
        a,
        "UPDATE promoted.t SET note = 'unsent, old' WHERE id = 1",
        "UPDATE promoted.t SET note = 'equal' WHERE id = 2",
    )
    commit(
        b,
        "UPDATE promoted.t SET note = 'newest' WHERE id = 1",
        "UPDATE promoted.t SET note = 'equal' WHERE id = 2",
    )
    found = examine(pair)
    assert {"A7", "E1"} <= set(found.codes)
    plan = found.plan()
    assert not plan.steps
    whys = {each.code: each.why for each in plan.not_planned}
    assert "an older version over a newer one" in whys["A7"]
    # No channel leads from b to a: starting one is not offered.
    assert "redo_on_source" in whys["E1"]
    assert "start_channel," not in whys["E1"].partition("--strategy E1=NAME")[2]
    # Row 2 is equal on both servers, so it is not among the rows that differ.
    shown = {
        (each.where, *_texts(each.source_row), *_texts(each.replica_row)) for each in plan.rows
    }
    assert shown == {("`id` = 1", "unsent, old", "newest")}
    before = executed(a), executed(b)
    [risky] = found.plan({"A7": "start_channel"}).steps
    assert any(
        "were changed since" in each for each in found.plan({"A7": "start_channel"}).warnings
    )
    assert risky.server == "b"
    assert (executed(a), executed(b)) == before
    assert rows(b, "promoted.t") == [(1, "newest"), (2, "equal")]


def _texts(row: dict[str, str | None] | None) -> tuple[str | None, ...]:
    return tuple((row or {}).values())
