"""A delayed replica whose source restarted: its relay log may have what the source lost.

The two cases look alike until it is applied: the source reused the GTIDs of what it lost (an older
copy was restored), or it was only restarted.
"""

import pytest

from compose.faults import purge_until_gone
from compose.faults_former import apply_at_once, former_in_relay_log
from compose.native.shapes import Pair
from gtid import GtidSet
from tests.repair.live import await_clean, examine, executed, rows, run_plan
from topology.catalogue.findings import Grade, Severity, Verdict

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


@pytest.mark.parametrize("is_purged", [False, True])
@pytest.mark.parametrize("is_restored", [True, False])
def test_a_backlog_that_may_be_former_is_likely_and_starts_nothing(
    pair97: Pair, *, is_restored: bool, is_purged: bool
) -> None:
    """Also where only the log of the replica has what was applied last."""
    fault = former_in_relay_log(pair97, is_restored=is_restored)
    if is_purged:
        purge_until_gone(fault.source, executed(fault.replica))
    examination = examine(pair97)
    plan = examination.plan()
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert "has reused their GTIDs: the relay log of b has the former ones" in left.why
    [waits] = [each for each in examination.audit.findings if each.code == "T2"]
    assert waits.grade is Grade.LIKELY
    assert GtidSet.parse(fault.former) <= waits.gtid_set

    fault.replica.execute(fault.replica.dialect.start_replica)
    audit = examine(pair97).audit
    assert audit.verdict is Verdict.OK
    [waits] = [each for each in audit.findings if each.code == "T2"]
    assert (waits.grade, waits.severity) == (Grade.LIKELY, Severity.INFO)
    assert "a was restarted after it committed what b has executed" in waits.explanation
    assert "the relay log has the former transactions" in waits.explanation

    apply_at_once(fault)
    same = rows(fault.replica, fault.table) == rows(fault.source, fault.table)
    assert same is not is_restored
    if not is_restored:
        await_clean(pair97)


def test_a_planned_start_after_a_restart_in_order_is_a_choice(pair97: Pair) -> None:
    fault = former_in_relay_log(pair97, is_restored=False)
    plan = examine(pair97).plan(choices={"A7": "start_channel"})
    run_plan(pair97, plan)
    apply_at_once(fault)
    assert rows(fault.replica, fault.table) == rows(fault.source, fault.table)
