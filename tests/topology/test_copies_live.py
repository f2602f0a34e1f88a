"""Real copies of a server that no channel links to it: which of them may join, and which not."""

from collections.abc import Iterator

import pytest

from compose import faults_copies as faults
from compose.faults import await_status, commit, purge_until_gone
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Topology, TopologyPlan, follow, running, wait_for
from gtid import GtidSet
from tests.topology.test_faults_live import audited
from tests.topology.test_logs_live import above_info
from topology.catalogue.findings import Grade, Severity

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow

ROWS = "GROUP_CONCAT(id, note ORDER BY id) FROM copied.t"


@pytest.fixture(params=["installation97", "installation56"])
def two(request: pytest.FixtureRequest) -> Iterator[Topology]:
    installation: Installation = request.getfixturevalue(request.param)
    with running(installation, TopologyPlan(names=("a", "b"), links=())) as made:
        yield made


def refused(replica: Server, source: Server) -> None:
    follow(replica, source)
    await_status(replica, lambda status: status["Last_IO_Errno"] in (1236, 13114))


def test_a_clone_that_is_not_attached_yet_may_join(two: Topology) -> None:
    """J1 is right: with a channel it has the rows of its source, and nothing is reported."""
    made = faults.copied(two)
    found = above_info(audited(two))
    assert found.keys() == {"J1"}
    assert (found["J1"].grade, found["J1"].replica) == (Grade.PROVED, "b")
    assert found["J1"].gtid_set == GtidSet.parse(made.later)
    follow(made.copy, made.of)
    wait_for(made.copy, made.later)
    assert made.copy.value(ROWS) == made.of.value(ROWS) == "1before,2after"
    assert above_info(audited(two)) == {}


def test_a_backup_that_is_too_old_cannot_join(two: Topology) -> None:
    made = faults.copied(two)
    purge_until_gone(made.of, made.later)
    found = above_info(audited(two))
    assert found.keys() == {"J2"}
    assert (found["J2"].grade, found["J2"].gtid_set) == (Grade.PROVED, GtidSet.parse(made.later))
    refused(made.copy, made.of)


def test_a_copy_that_was_written_to_is_j3_with_its_rows(two: Topology) -> None:
    made = faults.copied(two)
    own = commit(made.copy, "INSERT INTO copied.t VALUES (2, 'by the copy')")
    found = above_info(audited(two))
    assert found.keys() == {"J3"}
    assert found["J3"].severity is Severity.CRITICAL
    # Each of them has one that the other one does not have.
    extra = {"a": made.later, "b": own}[str(found["J3"].replica)]
    assert found["J3"].gtid_set == GtidSet.parse(extra)
    assert "Content: data (copied.t: 1 row), committed" in found["J3"].explanation
    assert " in turn has 1 transaction that " in found["J3"].explanation


def test_a_copy_with_the_server_uuid_of_its_original_is_c1(two: Topology) -> None:
    """What each of them commits has the GTIDs of the other: no set would show it."""
    made = faults.copied(two, keeps_uuid=True)
    commit(made.copy, "INSERT INTO copied.t VALUES (2, 'by the copy')", "FLUSH BINARY LOGS")
    assert made.of.value("@@GLOBAL.gtid_executed") == made.copy.value("@@GLOBAL.gtid_executed")
    found = above_info(audited(two))
    assert "C1" in found
    assert found["C1"].severity is Severity.CRITICAL
    assert not found.keys() & {"J1", "J2"}
