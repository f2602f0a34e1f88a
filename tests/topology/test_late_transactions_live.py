"""A hole that auto-position would fill after later transactions, on real servers."""

import pytest

from compose.faults import commit, move_past
from compose.faults_applier import await_received
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for
from gtid import GtidSet
from tests.topology.test_handshake_live import matrix_of, point, read
from topology.catalogue.findings import Grade, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.rules.could_join import can_join

pytestmark = pytest.mark.mysql
_TABLE = "late.t"


def rows_of(server: Server) -> list[tuple[int]]:
    return [(int(row[0]),) for row in server.query(f"SELECT id FROM {_TABLE} ORDER BY id")]


def with_a_hole(star: Topology) -> tuple[Server, Server, GtidSet]:
    """Move replica2 past a TRUNCATE by file position. It has the rows that were written later."""
    source, holed = star["source"], star["replica2"]
    source.execute("CREATE DATABASE late", f"CREATE TABLE {_TABLE} (id INT)")
    wait_for(holed, commit(source, f"INSERT INTO {_TABLE} VALUES (1)"))
    holed.execute("STOP REPLICA")
    late = commit(source, f"TRUNCATE TABLE {_TABLE}")
    move_past(source, holed)
    last = commit(source, f"INSERT INTO {_TABLE} VALUES (2)", f"INSERT INTO {_TABLE} VALUES (3)")
    for each in (holed, star["replica1"]):
        wait_for(each, last)
    return star["replica1"], holed, GtidSet.parse(late)


def test_a_promotion_does_not_fill_a_hole(star97: Topology) -> None:
    """As it did: a TRUNCATE arrived after the rows, and every set was equal afterwards."""
    whole, holed, late = with_a_hole(star97)
    snapshot = read(star97)
    matrix = matrix_of(snapshot)
    answer = matrix.answer(replica="replica2", source="replica1")
    assert (answer.late, matrix.verdict) == (late, Verdict.CRITICAL)
    for candidate, verdict in (("replica1", Verdict.WARNING), ("replica2", Verdict.CRITICAL)):
        found = promotion_of(matrix, candidate)
        steps = promotion_steps(found, snapshot)
        assert found.verdict is verdict
        assert not any(each.statements for each in steps if each.server == "replica2"), steps
        assert any("Plan the repair of this hole" in each.what for each in steps), steps
    # Unlinked, it is no proved J1 either.
    holed.execute("STOP REPLICA", "RESET REPLICA ALL")
    [joins] = can_join(gather_facts(read(star97), Policy()))
    assert (joins.replica, joins.grade) == ("replica2", Grade.LIKELY)
    assert "Repair this hole first" in joins.explanation
    # What they say happens: the rows go, and nothing shows it.
    point(holed, whole)
    await_received(holed, str(late))
    holed.execute("START REPLICA")
    wait_for(holed, str(late))
    assert rows_of(holed) == []
    assert rows_of(whole) == [(2,), (3,)]
    assert matrix_of(read(star97)).verdict is not Verdict.CRITICAL
