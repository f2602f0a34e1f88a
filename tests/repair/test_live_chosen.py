"""Strategies that run only when they are selected, on real servers: what was said is what happens."""

from pathlib import Path

import pytest

from compose import faults, faults_history
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, follow, wait_for
from gtid_audit.cli import run
from repair.adapters.files import write_plan
from tests.repair.live import await_clean, examine, executed, rows, run_plan


def _arrives(source: Server, replica: Server, table: str) -> None:
    """A new commit arrives: no GTID of it counts as executed already."""
    source.execute(f"INSERT INTO {table} (note) VALUES ('afterwards')")
    wait_for(replica, executed(source))
    assert rows(replica, table)[-1] == rows(source, table)[-1]


@pytest.mark.parametrize(
    ("shape", "strategy"),
    [
        ("pair97", "inject_empty"),
        ("pair97", "gtid_purged_append"),
        ("pair56", "inject_empty"),
        ("pair56", "reset_and_purge"),
    ],
)
def test_what_a_source_purged_is_left_out(
    shape: str, strategy: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    faults.purge_under_stopped_replica(pair)
    found = examine(pair)
    assert found.codes == ["P1"]
    assert not found.plan().steps
    plan = found.plan({"P1": strategy})
    assert any("the data will NOT" in each for each in plan.warnings)
    for _ in range(2):
        run_plan(pair, plan)
    _arrives(a, b, "purged.t")
    if strategy == "gtid_purged_append":
        write_plan(plan, tmp_path / "record")
        assert examine(pair).codes == ["E4"]
        assert run(["pair", a.dsn, b.dsn, "--accepted", str(tmp_path / "record")]) == 0
    else:
        await_clean(pair)
    assert len(rows(a, "purged.t")) == 4
    assert len(rows(b, "purged.t")) == 1, "what was said would be left out"


@pytest.mark.parametrize("strategy", ["redo_on_source", "undo_on_replica"])
def test_the_tail_of_an_old_primary(star97: Topology, strategy: str) -> None:
    # Keys of their own: with equal ones neither side could have the other's rows.
    star97["replica1"].execute(
        "SET GLOBAL auto_increment_increment = 10", "SET GLOBAL auto_increment_offset = 5"
    )
    fault = faults_history.failover_with_tail(star97)
    old, promoted = fault.old, fault.promoted
    promoted.execute(
        "SET GLOBAL auto_increment_increment = 1", "SET GLOBAL auto_increment_offset = 1"
    )
    found = examine(star97)
    assert "J3" in found.codes
    assert not [each for each in found.plan().steps if each.server == old.name]
    plan = found.plan({"J3": strategy})
    assert plan.steps, plan.not_planned
    for _ in range(2):
        run_plan(star97, plan)
    follow(old, promoted)
    _arrives(promoted, old, "tail.t")
    wait_for(star97["replica2"], executed(promoted))
    await_clean(star97)
    tables = [rows(server, "tail.t") for server in star97.servers.values()]
    assert tables[0] == tables[1] == tables[2]
    kept = [note for _, note in tables[0] if note == "not replicated"]
    assert len(kept) == (2 if strategy == "redo_on_source" else 0)
