"""What is on its way to one server, and was bypassed on another, on real servers."""

import pytest

from compose.faults import commit, move_past, table_on
from compose.native.installation import Installation
from compose.native.shapes import Link, TopologyPlan, running, wait_for
from gtid import GtidSet
from tests.topology.test_handshake_live import read
from topology.audit_cluster import audit_cluster
from topology.facts.source_answer import Outcome
from topology.handshake.offered_sets import answers_to_set
from topology.policy import Policy

pytestmark = [pytest.mark.mysql, pytest.mark.slow]
_PLAN = TopologyPlan(names=tuple("abc"), links=(Link("a", "b"), Link("b", "a"), Link("a", "c")))


@pytest.mark.parametrize("is_bypassed", [True, False])
def test_a_delayed_pair_above_does_not_deliver_what_a_replica_has_passed(
    installation97: Installation, *, is_bypassed: bool
) -> None:
    """b is delayed (T2). c has gone past the same transactions (H1), or only waits, too."""
    with running(installation97, _PLAN) as three:
        a, b, c = (three[name] for name in "abc")
        table_on(a, b, "late")
        wait_for(c, a.value("@@GLOBAL.gtid_executed"))
        delayed = "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600"
        b.execute("STOP REPLICA", delayed, "START REPLICA")
        c.execute("STOP REPLICA")
        passed = commit(a, *["INSERT INTO late.t () VALUES ()"] * 2)
        if is_bypassed:
            move_past(a, c)
            wait_for(c, commit(a, "INSERT INTO late.t () VALUES ()"))
        else:
            c.execute(delayed, "START REPLICA")
        offered = GtidSet.parse(a.value("@@GLOBAL.gtid_executed"))
        snapshot = read(three)
        found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), offered)
        answers = {each.source: each for each in found.answers}
        assert answers["b"].outcome is not Outcome.DIVERGED
        assert (answers["c"].outcome is Outcome.DIVERGED) is is_bypassed
        if is_bypassed:
            assert answers["c"].gtid_set == GtidSet.parse(passed)
