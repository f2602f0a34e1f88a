"""A GTID that a replica executed and did not receive is compared: a difference is found, or none.

The servers of a test have just started, and contents are compared around every restart: here that
is switched off, as it is for servers that have been up for long.
"""

import pytest

from compose.faults import await_status, commit, table_on
from compose.faults_content import hand_made_gtid
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from gtid_audit.tasks import cluster_contents
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Grade, Severity, Verdict
from topology.facts.not_received import not_received
from topology.readings.contents import ContentReading

pytestmark = pytest.mark.mysql


@pytest.fixture(autouse=True)
def up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_contents, "looked_back", lambda *_given: {})


def audited(topology: Topology) -> tuple[ClusterAudit, ContentReading | None, GtidSet]:
    targets = targets_of(topology)
    snapshot = collect_cluster("live", targets)
    contents = cluster_contents.look_at_contents(
        snapshot, targets, None, say=lambda _text: None
    ).reading
    return audit_cluster(snapshot.with_contents(contents)), contents, not_received(snapshot)


def test_a_gtid_made_by_hand_and_reached_later_is_e4(pair97: Pair) -> None:
    made = hand_made_gtid(pair97)
    b = pair97.b
    b.execute(b.dialect.stop_replica)
    commit(pair97.a, *["INSERT INTO handmade.t (note) VALUES ('by the origin')"] * 4)
    b.execute(b.dialect.start_replica)  # the source leaves out what b has
    pair97.a.execute(pair97.a.dialect.start_replica)
    pair97.settle()
    assert pair97.a.value("@@GLOBAL.gtid_executed") == b.value("@@GLOBAL.gtid_executed")
    audit, contents, suspects = audited(pair97)
    assert suspects == GtidSet.parse(made.gtid)
    [finding] = audit.findings
    assert (finding.code, finding.severity) == ("E4", Severity.CRITICAL)
    assert (finding.grade, finding.gtid_set) == (Grade.PROVED, suspects)
    assert contents is not None
    assert contents.suspect_count == contents.compared_count == 1


def test_a_gtid_made_by_hand_that_is_the_newest_of_its_origin_is_e4(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    table_on(source, replica, "newest")
    star97.settle()
    replica.execute("STOP REPLICA")
    made = commit(source, "INSERT INTO newest.t (note) VALUES ('by the origin')")
    replica.execute(
        f"SET gtid_next = '{made}'", "INSERT INTO newest.t (note) VALUES ('by hand')", "COMMIT"
    )
    replica.execute("START REPLICA")
    star97.settle()
    audit, _, suspects = audited(star97)
    assert suspects == GtidSet.parse(made)
    [finding] = audit.findings
    assert (finding.code, finding.grade, finding.replica) == ("E4", Grade.PROVED, "replica1")


def test_what_another_channel_brought_is_compared_and_the_same(chain97: Topology) -> None:
    first, middle, last = (chain97[name] for name in ("first", "middle", "last"))
    table_on(first, middle, "brought")
    chain97.settle()
    assert audited(chain97)[1] is None, "nothing to compare"
    last.execute("STOP REPLICA")
    options = last.dialect.change_source_to(
        host=first.host, port=first.port, user="replication", auto_position=1
    )
    last.execute(f"{options} FOR CHANNEL 'direct'", "START REPLICA FOR CHANNEL 'direct'")
    brought = commit(first, "INSERT INTO brought.t () VALUES ()")
    wait_for(last, brought)
    last.execute("STOP REPLICA FOR CHANNEL 'direct'", "RESET REPLICA ALL FOR CHANNEL 'direct'")
    last.execute("START REPLICA FOR CHANNEL ''")
    await_status(last, lambda status: status["Replica_IO_Running"] == "Yes")
    commit(first, "INSERT INTO brought.t () VALUES ()")
    chain97.settle()
    audit, contents, suspects = audited(chain97)
    assert suspects == GtidSet.parse(brought)
    assert (audit.verdict, audit.findings) == (Verdict.OK, ())
    assert contents is not None
    assert contents.compared_count >= 1


@pytest.mark.slow
def test_an_own_gtid_that_a_source_committed_by_hand_is_errant_and_e4(star97: Topology) -> None:
    """Of two sources one has the GTID, with another content: the sets look like a delivery."""
    source, side, replica = (star97[name] for name in ("source", "replica1", "replica2"))
    table_on(source, side, "twice")
    star97.settle()
    options = replica.dialect.change_source_to(
        host=side.host, port=side.port, user="replication", auto_position=1
    )
    replica.execute(f"{options} FOR CHANNEL 'side'", "START REPLICA FOR CHANNEL 'side'")
    made = commit(replica, "INSERT INTO twice.t (note) VALUES ('its own')")
    side.execute(
        f"SET gtid_next = '{made}'", "INSERT INTO twice.t (note) VALUES ('by hand')", "COMMIT"
    )
    star97.settle()
    audit, _, _ = audited(star97)
    found = {(one.code, one.source, one.replica): one for one in audit.findings}
    errant = found["E1", "source", "replica2"]
    assert (errant.grade, errant.gtid_set) == (Grade.PROVED, GtidSet.parse(made))
    different = next(one for key, one in found.items() if key[0] == "E4")
    assert {different.source, different.replica} == {"replica1", "replica2"}
    assert different.grade is Grade.PROVED
