"""A parallel applier that was killed within a gap: its channel is started before it is changed."""

from contextlib import suppress
from dataclasses import replace

import pymysql
import pytest

from compose import faults
from compose.faults_applier import by_position
from compose.faults_content import restart_with
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from repair.model.actions import StartChannel
from tests.repair.live import examine, executed, rows, run_plan, statements_of, wait_until
from topology.catalogue.findings import Grade

KEPT = {
    False: ("--slave-parallel-workers=4", "--skip-slave-start"),
    True: (
        "--replica-parallel-workers=4",
        "--replica-preserve-commit-order=OFF",
        "--skip-replica-start",
    ),
}


def killed_in_a_gap(pair: Pair, options: tuple[str, ...], *, recovery: int = 0) -> None:
    """Kill b while an older transaction waits for a lock, and start it without its channel."""
    b: Server = pair.b
    with suppress(pymysql.err.OperationalError), faults.tail_gap(pair):
        b.kill()  # the lock goes with the server
    extra = (*b.settings.extra, f"--relay-log-recovery={recovery}", *options)
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
    # The workers of 5.6 write down a moment later that no gap is left.
    wait_until(lambda: bool(examine(pair).plan().steps))
    run_plan(pair, examine(pair).plan())
    assert rows(pair.b, "gap_held.t") == rows(pair.a, "gap_held.t") == [(1, "changed")]
    assert "C3" not in examine(pair).codes


def test_a_gap_that_forbids_every_start_is_a6(pair56: Pair) -> None:
    """With relay_log_recovery = 1 the applier cannot start, nor can its channel be changed."""
    b = pair56.b
    pair56.a.execute(pair56.a.dialect.stop_replica, pair56.a.dialect.reset_replica)
    by_position(b)
    killed_in_a_gap(pair56, KEPT[False], recovery=1)
    until = f"{b.dialect.start_replica} UNTIL SQL_AFTER_MTS_GAPS"
    for statement in (b.dialect.start_replica, until):
        with pytest.raises(pymysql.err.MySQLError, match="1872"):
            b.execute(statement)
    with pytest.raises(pymysql.err.MySQLError, match="1802"):
        b.execute(b.dialect.change_source_to(auto_position=1))
    found = examine(pair56)
    assert found.codes == ["A6", "C3"]
    [finding] = [each for each in found.audit.findings if each.code == "A6"]
    missing = GtidSet.parse(executed(pair56.a)) - GtidSet.parse(executed(b))
    assert (finding.gtid_set, finding.grade) == (missing, Grade.LIKELY)
    [left] = [each for each in found.plan().not_planned if each.code == "A6"]
    [text] = [each.removeprefix("until_after_gaps: ") for each in left.by_hand]
    option = "relay_log_recovery = 0 and skip_slave_start in its configuration file; then "
    restart, _, statements = text.partition(option)
    assert restart.endswith("would be skipped); restart b once with ")
    restart_with(b, "--relay-log-recovery=0", "--skip-slave-start")
    until, start = statements.split("; wait until the applier has stopped by itself; ")
    b.execute(*statements_of(pair56, until))
    faults.await_applier_stopped(b)
    b.execute(*statements_of(pair56, start))
    wait_for(b, executed(pair56.a))
    assert rows(b, "gap_held.t") == rows(pair56.a, "gap_held.t") == [(1, "changed")]
    assert "A6" not in examine(pair56).codes
