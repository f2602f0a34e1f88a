"""An accepted E4 covers its own transactions: one more under which two servers differ is reported."""

from collections.abc import Sequence

import pytest

from gtid import Gtid, GtidSet
from tests.snapshots import NOON, A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Severity
from topology.facts.accepted_findings import AcceptedFinding
from topology.policy import Policy
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)


def gtids(numbers: str) -> GtidSet:
    return GtidSet.parse(f"{A}:{numbers}")


def difference(number: int, kind: Difference) -> ContentDifference:
    [gtid] = gtids(str(number)).gtids()
    assert isinstance(gtid, Gtid)
    source, replica = (
        TransactionVersion(name, "binlog.000001:4", NOON, NOON, name) for name in "ab"
    )
    return ContentDifference(gtid, kind, True, "two commits", source, replica)


def entry(
    numbers: str, severity: Severity = Severity.CRITICAL, code: str = "E4"
) -> AcceptedFinding:
    place = {"cluster": "pair", "source": "a", "replica": "b"}
    made = AcceptedFinding(
        code, severity, "compared", NOON.date(), gtid_set=gtids(numbers), **place
    )
    return made


def e4_of(differences: Sequence[tuple[int, Difference]], *entries: AcceptedFinding) -> Finding:
    channel = a_channel("a", A, gtid_retrieved=gtids("1-20"))
    a, b = a_server("a", A, gtids("1-20")), a_server("b", B, gtids("1-20"), channels=(channel,))
    found = tuple(difference(*each) for each in differences)
    reading = ContentReading(NOON, 20, (), found, ())
    snapshot = a_cluster("pair", a, b).with_contents(reading)
    audit = audit_cluster(snapshot, Policy(accepted_findings=entries))
    [e4] = [each for each in audit.findings if each.code == "E4"]
    return e4


SEVERE, LESSER = (11, Difference.CONTENT), (15, Difference.EMPTY)


def test_a_lesser_difference_beside_an_accepted_one_is_reported() -> None:
    accepted = entry("11")
    alone = e4_of([SEVERE], accepted)
    assert (alone.severity, alone.gtid_set) == (Severity.INFO, gtids("11"))
    both = e4_of([SEVERE, LESSER], accepted)
    assert (both.severity, both.gtid_set) == (Severity.WARNING, gtids("15"))
    assert f"{A}:11 accepted by the fleet file." in both.explanation
    assert f"Not accepted by the fleet file: {A}:15 is not in the accepted set" in both.explanation
    # With an entry for each of them, or one for both, nothing is left.
    for entries in ([accepted, entry("15", Severity.WARNING)], [entry("11:15")]):
        whole = e4_of([SEVERE, LESSER], *entries)
        assert (whole.severity, whole.gtid_set) == (Severity.INFO, gtids("11"))


@pytest.mark.parametrize(
    ("differences", "accepted", "severity", "reported"),
    [
        # What is accepted as a warning is not accepted once it is critical.
        ([(11, Difference.CONTENT)], entry("11", Severity.WARNING), Severity.CRITICAL, "11"),
        ([SEVERE, LESSER], entry("15", Severity.WARNING), Severity.CRITICAL, "11"),
        ([SEVERE, (12, Difference.CONTENT)], entry("11"), Severity.CRITICAL, "12"),
        # Without an entry for it, or with one for another code, all of it is one finding.
        ([SEVERE, LESSER], entry("11", code="E1"), Severity.CRITICAL, "11"),
        # What is information by itself hides no accepted finding.
        ([SEVERE, (15, Difference.UPKEEP)], entry("11"), Severity.INFO, "11"),
    ],
)
def test_an_entry_covers_a_difference_by_itself(
    differences: list[tuple[int, Difference]],
    accepted: AcceptedFinding,
    severity: Severity,
    reported: str,
) -> None:
    found = e4_of(differences, accepted)
    assert (found.severity, found.gtid_set) == (severity, gtids(reported))
