"""Row conflicts of a dual-primary pair in which each side would end with the other's version."""

from __future__ import annotations

import pytest

from compose.faults import await_applier_stopped, commit, table_on
from compose.native.shapes import Pair, wait_for
from tests.repair.live import await_clean, examine, executed, rows, run_plan

pytestmark = [pytest.mark.slow, pytest.mark.mysql]
RESOLVE = {"A2": "resolve_conflict"}


@pytest.fixture(params=["pair97", "pair56"])
def pair(request: pytest.FixtureRequest) -> Pair:
    found: Pair = request.getfixturevalue(request.param)
    table_on(found.a, found.b, "two")
    commit(found.a, "INSERT INTO two.t VALUES (5, 'first')")
    found.settle()
    return found


def left(pair: Pair, choices: dict[str, str]) -> list[str]:
    return [each.why for each in examine(pair).plan(choices).not_planned if each.code == "A2"]


def test_each_server_would_get_the_version_of_the_other_one(pair: Pair) -> None:
    a, b = pair.a, pair.b
    for server in (a, b):
        server.execute(server.dialect.stop_replica)
    for server in (a, b):
        commit(server, f"INSERT INTO two.t VALUES (20, '{server.name}')")
    for server in (a, b):
        server.execute(server.dialect.start_replica)
        await_applier_stopped(server)
    whys = left(pair, RESOLVE)
    assert len(whys) == 2
    assert all("each server would end with the version of the other one" in each for each in whys)
    # One of the two is left out, then the other conflict can be resolved.
    found = examine(pair)
    [on_a] = [each.id for each in found.audit.findings if (each.code, each.replica) == ("A2", "a")]
    run_plan(pair, found.plan({on_a: "inject_empty"}))
    run_plan(pair, examine(pair).plan(RESOLVE))
    wait_for(b, executed(a))
    assert rows(a, "two.t") == rows(b, "two.t") == [(5, "first"), (20, "a")]


def test_a_row_that_the_source_is_about_to_delete_is_not_written_back(pair: Pair) -> None:
    """b deleted it, and a has yet to apply that. Afterwards a has the newest version, too."""
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica)
    commit(b, "DELETE FROM two.t WHERE id = 5")
    commit(a, "UPDATE two.t SET note = 'a' WHERE id = 5")
    await_applier_stopped(b)
    [why] = left(pair, RESOLVE)
    assert (
        "which the other side does not have, changed the same rows, and a has yet to execute it"
        in why
    )
    a.execute(a.dialect.start_replica)
    wait_for(a, executed(b))
    assert rows(a, "two.t") == rows(b, "two.t") == []
    [why] = left(pair, RESOLVE)
    assert "was changed since, and is equal on b and a" in why
    run_plan(pair, examine(pair).plan({"A2": "inject_empty"}))
    wait_for(b, executed(a))
    assert rows(a, "two.t") == rows(b, "two.t") == []


def test_a_row_that_only_the_replica_deleted_is_written_back(pair: Pair) -> None:
    """The benign twin: the row was deleted without a log, and other work of b waits."""
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica)
    commit(b, "INSERT INTO two.t VALUES (6, 'b')")
    b.execute("SET SESSION sql_log_bin = 0", "DELETE FROM two.t WHERE id = 5")
    commit(a, "UPDATE two.t SET note = 'a' WHERE id = 5")
    await_applier_stopped(b)
    run_plan(pair, examine(pair).plan(RESOLVE))
    a.execute(a.dialect.start_replica)
    wait_for(a, executed(b))
    assert rows(a, "two.t") == rows(b, "two.t") == [(5, "a"), (6, "b")]
    await_clean(pair)
