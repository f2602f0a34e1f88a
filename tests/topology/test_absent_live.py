"""What else keeps transactions from a replica, on real servers: it looks like H1 or like H8."""

import pytest

from compose import faults_absent, faults_filters
from compose.faults import commit
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from tests.topology.test_faults_live import audited
from topology.catalogue.findings import Finding, Grade, Severity

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow


def plain(pair: Pair) -> Pair:
    """Let b alone replicate from a."""
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    return pair


def rows(server: Server, table: str) -> list[tuple[object, ...]]:
    return server.query(f"SELECT * FROM {table} ORDER BY 1")


def found(topology: Topology, code: str) -> Finding:
    """Return the finding with a code; C3 may stand beside it, and nothing else."""
    audit = audited(topology)
    above = {each.code: each for each in audit.findings if each.severity is not Severity.INFO}
    assert above.keys() <= {code, "C3"}, audit
    return above[code]


def assert_likely(finding: Finding, code: str, fault: faults_absent.NeverReceived) -> None:
    assert (finding.code, finding.grade) == (code, Grade.LIKELY)
    assert finding.gtid_set == GtidSet.parse(fault.absent)


# -- RESET BINARY LOGS AND GTIDS on both ----------------------------------------------------------


def assert_both_resets_are_named(fault: faults_absent.NeverReceived, finding: Finding) -> None:
    assert_likely(finding, "H8", fault)
    source, replica = fault.source.name, fault.replica.name
    assert f"RESET BINARY LOGS AND GTIDS on {source}, which has reused" in finding.explanation
    assert f"{replica} received the former transactions (the rows of the" in finding.explanation
    assert "it received them" not in finding.explanation
    assert any(each.fact == "source's first binary log" for each in finding.evidence)
    here, there = (rows(server, "resets.t") for server in (fault.source, fault.replica))
    assert len(here) > len(there), "the rows are missing"


def test_resets_of_source_and_replica_are_no_proof_of_receipt(star97: Topology) -> None:
    fault = faults_absent.both_reset(star97)
    two = Topology({name: star97[name] for name in ("source", "replica1")}, ())
    assert_both_resets_are_named(fault, found(two, "H8"))


def test_resets_of_an_old_source_and_replica_are_no_proof_of_receipt(pair56: Pair) -> None:
    fault = faults_absent.both_reset(plain(pair56), source="a", replica="b")
    assert_both_resets_are_named(fault, found(pair56, "H8"))


# -- a server_id that was equal for a while -------------------------------------------------------


def test_a_server_id_that_was_equal_is_the_cause_left_of_h8(pair97: Pair) -> None:
    fault = faults_absent.equal_id_for_a_while(plain(pair97))
    finding = found(pair97, "H8")
    assert_likely(finding, "H8", fault)
    causes = finding.explanation.partition("Possible causes: ")[2].partition(". Compare")[0]
    assert causes == (
        "a server_id that b then shared with the server that committed them (SET GLOBAL"
        " server_id; the rows are missing)"
    )


# -- IGNORE_SERVER_IDS that was removed -----------------------------------------------------------


@pytest.mark.parametrize("auto_position", [False, True])
def test_ignored_server_ids_that_were_removed_are_named(pair56: Pair, auto_position: bool) -> None:
    a, b = plain(pair56)["a"], pair56["b"]
    faults_filters.ignore_server(b, int(str(a.value("@@GLOBAL.server_id"))))
    absent = commit(a, "CREATE DATABASE was_ignored")
    faults_absent.await_read_to_end(b, a)
    file, offset = a.binary_log_position()
    b.execute(b.dialect.stop_replica, "CHANGE MASTER TO IGNORE_SERVER_IDS = ()")
    if not auto_position:
        b.execute(
            b.dialect.change_source_to(auto_position=0, log_file=file, log_pos=offset),
            b.dialect.start_replica,
        )
        wait_for(b, commit(a, "CREATE DATABASE arrives"))
    [finding] = [each for each in audited(pair56).findings if each.code in ("H1", "H8")]
    assert finding.gtid_set == GtidSet.parse(absent)
    assert "IGNORE_SERVER_IDS of its channel, removed since" in finding.explanation


# -- a dump ---------------------------------------------------------------------------------------


def test_h1_says_that_a_dump_may_have_brought_the_rows(pair97: Pair) -> None:
    fault = faults_absent.dump_loaded_at_its_place(plain(pair97))
    finding = found(pair97, "H1")
    assert finding.grade is Grade.PROVED
    assert finding.gtid_set == GtidSet.parse(fault.absent)
    assert rows(fault.source, "dumped.t") == rows(fault.replica, "dumped.t")
    assert "a dump or a backup that was loaded with the position" in finding.explanation


def test_a_likely_h1_says_that_a_dump_may_have_brought_the_rows(pair56: Pair) -> None:
    fault = faults_absent.dump_loaded_at_its_place(plain(pair56))
    finding = found(pair56, "H1")
    assert_likely(finding, "H1", fault)
    assert rows(fault.source, "dumped.t") == rows(fault.replica, "dumped.t")
    assert "unless a dump or backup contained them" in finding.explanation
