"""An empty transaction under a wrong GTID, on a replica whose applier is stopped."""

from dataclasses import replace

from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.audited_cluster import read_and_audit
from tests.repair.live import examine, executed, left_by, rows, targets_of, wait_until
from topology.adapters.collect import CollectLimits
from topology.catalogue.findings import Grade
from topology.policy import Policy


def test_a_wrong_number_is_no_gap_of_workers_and_stays_in_the_report(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (n INT PRIMARY KEY)")
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_applier)
    before = GtidSet.parse(executed(a))
    a.execute(*(f"INSERT INTO d.t VALUES ({number})" for number in range(3)))
    _, skipped, _ = sorted((GtidSet.parse(executed(a)) - before).gtids())
    last = GtidSet.parse(executed(a)) - before
    wait_until(lambda: last <= GtidSet.parse(b.replica_status()["Retrieved_Gtid_Set"]))
    b.execute(f"SET gtid_next = '{skipped}'", "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")

    found = examine(pair97)
    assert found.codes == ["A7", "E4", "T2"], "no H2"
    [by_hand] = [each for each in found.audit.findings if each.code == "E4"]
    assert (by_hand.gtid_set, by_hand.grade) == (GtidSet.of(skipped), Grade.LIKELY)
    [left] = [each for each in left_by(found.plan()) if each.code == "A7"]
    assert f"{skipped} was committed by hand on b" in left.why
    b.execute("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0")  # no 1802: workers left no gap

    plan = found.plan({"A7": "start_channel"})
    assert any("was committed by hand on b" in each for each in plan.warnings)
    b.execute(b.dialect.start_replica)
    wait_for(b, executed(a))
    assert rows(b, "d.t") == [(0,), (2,)]
    whole = ClusterToRead("pair", tuple(targets_of(pair97).values()), CollectLimits(), Policy())
    again = replace(whole, suspects=GtidSet.of(skipped))
    [content] = [
        each
        for each in read_and_audit(again, content=None, say=lambda _: None).audit.findings
        if each.code == "E4"
    ]
    assert (content.gtid_set, content.grade) == (GtidSet.of(skipped), Grade.PROVED)
