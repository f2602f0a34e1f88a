"""A parallel applier that was killed within a gap: its channel is started before it is changed."""

from contextlib import suppress
from dataclasses import replace

import pymysql
import pytest

from compose import faults
from compose.faults_applier import by_position
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from repair.model.actions import StartChannel
from tests.repair.live import examine, executed, rows, run_plan

KEPT = {
    False: ("--slave-parallel-workers=4", "--skip-slave-start"),
    True: (
        "--replica-parallel-workers=4",
        "--replica-preserve-commit-order=OFF",
        "--skip-replica-start",
    ),
}


def killed_in_a_gap(pair: Pair, options: tuple[str, ...]) -> None:
    """Kill b while an older transaction waits for a lock, and start it without its channel."""
    b: Server = pair.b
    with suppress(pymysql.err.OperationalError), faults.tail_gap(pair):
        b.kill()  # the lock goes with the server
    extra = (*b.settings.extra, "--relay-log-recovery=0", *options)
    b.settings = replace(b.settings, extra=extra)
    b.start()


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_gaps_are_filled_before_a_channel_is_changed(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """CHANGE REPLICATION SOURCE is refused until then (error 1802)."""
    pair: Pair = request.getfixturevalue(shape)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    by_position(pair.b)
    killed_in_a_gap(pair, KEPT[shape == "pair97"])
    found = examine(pair)
    assert found.codes == ["A7", "C3", "H2", "T2"]
    words = pair.b.dialect.words
    with pytest.raises(pymysql.err.MySQLError, match="1802"):
        pair.b.execute(f"{words.change_source} {words.option_prefix}AUTO_POSITION = 1")
    plan = found.plan()
    assert [type(step.effect) for step in plan.steps] == [StartChannel]
    run_plan(pair, plan)
    wait_for(pair.b, executed(pair.a))
    run_plan(pair, examine(pair).plan())
    assert rows(pair.b, "gap_held.t") == rows(pair.a, "gap_held.t") == [(1, "changed")]
    assert "C3" not in examine(pair).codes
