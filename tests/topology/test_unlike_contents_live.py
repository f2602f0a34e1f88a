"""A replica of one of two servers that differ under a GTID, on real servers: whose content it has."""

import pytest

from compose.faults import commit
from compose.native.installation import Installation
from compose.native.shapes import Link, TopologyPlan, running, wait_for
from gtid import GtidSet
from tests.repair.live import targets_of
from topology.adapters.collect import collect_cluster
from topology.adapters.compare_contents import read_contents
from topology.audit_cluster import audit_cluster
from topology.facts.source_answer import Outcome
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

_CHAIN = TopologyPlan(
    names=("source", "other", "below"),
    links=(Link(source="source", replica="other"), Link(source="other", replica="below")),
)


@pytest.mark.slow
def test_a_replica_below_has_the_content_of_its_source(installation97: Installation) -> None:
    with running(installation97, _CHAIN) as chain:
        source, other, below = (chain[name] for name in _CHAIN.names)
        source.execute("CREATE DATABASE unlike", "CREATE TABLE unlike.t (id INT PRIMARY KEY)")
        chain.settle()
        other.execute("STOP REPLICA")
        reused = commit(source, "INSERT INTO unlike.t VALUES (1)")
        with other.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET GTID_NEXT = '{reused}'")
            cursor.execute("INSERT INTO unlike.t VALUES (2)")
        wait_for(below, reused)
        targets = targets_of(chain)
        snapshot = collect_cluster("chain", [*targets.values()])

        # Without contents, all sets agree. One pair shows a difference, and nothing of `below`.
        pair = ("source", "other")
        part = ClusterSnapshot(
            "chain",
            tuple(each for each in snapshot.first if each.name in pair),
            tuple(each for each in snapshot.last if each.name in pair),
        )
        for compared, outcome in ((part, Outcome.UNKNOWN), (snapshot, Outcome.DIVERGED)):
            back = {each.name: None for each in compared.last}
            looked = read_contents(
                compared, targets.values(), back=back, suspects=GtidSet.parse(reused)
            )
            found = matrix_of(snapshot.with_contents(looked.reading))
            assert found.answer(replica="other", source="source").unlike == GtidSet.parse(reused)
            answer = found.answer(replica="below", source="source")
            assert answer.outcome is outcome
            beside = found.answer(replica="below", source="other").outcome
            assert beside is (Outcome.SERVED if outcome is Outcome.DIVERGED else Outcome.UNKNOWN)
        assert answer.unlike == GtidSet.parse(reused)
        assert below.query("SELECT id FROM unlike.t") == [(2,)]


def matrix_of(snapshot: ClusterSnapshot) -> HandshakeMatrix:
    return handshake_matrix(snapshot, audit_cluster(snapshot), Policy())
