"""A file position in a log that its source no longer has, on real servers."""

from uuid import UUID

from compose import faults
from compose.native.shapes import Pair
from gtid import GtidSet
from tests.topology.test_faults_live import audited
from topology.catalogue.findings import Grade


def test_a_position_in_the_log_of_a_reset_source_does_not_prove_h1(pair97: Pair) -> None:
    """The source uses its numbers again, so the sets show no reset."""
    a, b = pair97["a"], pair97["b"]
    fault = faults.position_bypass(pair97)
    (before,) = [each for each in audited(pair97).findings if each.code == "H1"]
    assert before.grade is Grade.PROVED
    a.execute(a.dialect.words.reset_binary_logs_and_gtids)
    own = str(a.value("@@GLOBAL.server_uuid"))
    held = GtidSet.parse(str(b.value("@@GLOBAL.gtid_executed"))).from_uuid(UUID(own))
    for number in range(held.filled().gtid_count + 1):
        a.execute(f"CREATE DATABASE again_{number}")
    (after,) = [each for each in audited(pair97).findings if each.code == "H1"]
    assert after.grade is Grade.LIKELY
    assert GtidSet.parse(fault.skipped) <= after.gtid_set
    assert "RESET BINARY LOGS AND GTIDS on a" in after.explanation
    assert "has read past" not in after.explanation
