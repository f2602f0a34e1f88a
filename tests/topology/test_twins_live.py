"""Benign and malign causes that look the same, on real servers: the evidence separates them.

Where it does not, the grade is `likely` and the finding names the causes that remain.
"""

import time

import pytest

from compose import faults, faults_history
from compose.faults import await_status
from compose.native.shapes import Topology
from gtid import GtidSet
from tests.topology.test_faults_live import audited, only
from topology.findings import Grade, Severity

pytestmark = pytest.mark.slow

# Start and uptime have whole seconds, and a claim needs two: commit later than the server started.
SECONDS_APART = 3.1


def part_of(topology: Topology, *names: str) -> Topology:
    return Topology({name: topology[name] for name in names}, ())


# -- lost by a crash, or committed by a copy of the server ----------------------------------------


def test_what_a_copy_of_a_server_committed_is_not_proved_to_be_lost(star97: Topology) -> None:
    """Its twin, a lost tail, is proved: the channel has received it from the origin."""
    time.sleep(SECONDS_APART)
    fault = faults_history.committed_by_copy(star97)
    seen = part_of(star97, "source", "replica1")
    running = only(audited(seen))
    assert (running.code, running.grade) == ("E6", Grade.LIKELY)
    fault.origin.stop()
    time.sleep(1.1)
    fault.origin.start()
    await_status(fault.replica, faults._source_refused)
    restarted = only(audited(seen))
    assert (restarted.code, restarted.grade) == ("E3", Grade.LIKELY)
    for finding in (running, restarted):
        assert finding.gtid_set == GtidSet.parse(fault.gtid)
        assert "another server that commits under the same server_uuid" in finding.explanation
        assert finding.strategies[0].name == "check_data"
    whole = audited(star97)
    found = {each.code for each in whole.findings if each.severity is not Severity.INFO}
    assert found == {"C1"}, whole


def test_a_lost_tail_is_proved_also_behind_a_restarted_receiver(star97: Topology) -> None:
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    fault.replica.execute(fault.replica.dialect.stop_replica, fault.replica.dialect.start_replica)
    await_status(fault.replica, faults._source_refused)
    finding = only(audited(part_of(star97, "source", "replica1")))
    assert (finding.code, finding.grade) == ("E3", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.lost)
