"""Donors of what a source has purged, or lost: those whose logs are all there come first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.topology.test_purged_holes import cluster, found, names, one, own, values
from tests.topology.test_source_ghosts import h5, star
from topology.catalogue.findings import Grade
from topology.facts.donors import DOUBTFUL_DONORS, Donor, donors_of
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.snapshot import BinaryLog, UnreadFact, UnreadReason
from topology.readings.version import ServerVersion

GONE = (BinaryLog("binlog.000001", 900), BinaryLog("binlog.000002", 0))
UNLISTED = (BinaryLog("binlog.000001", 900), BinaryLog("binlog.000003", 500))
WHOLE = (BinaryLog("binlog.000001", 900), BinaryLog("binlog.000002", 500))
CANNOT_OPEN = (
    "c cannot open its binary log binlog.000002: if b needs transactions from there, it is refused"
    " with error 1236"
)


def donors(*others: Any) -> tuple[Donor, ...]:
    return donors_of(cluster(*others), own("3-5"), replica="b", apart_from=("a", "b"))


def test_donors_with_a_missing_log_are_last() -> None:
    c, d = one("c", "1-9", binary_logs=GONE), one("d", "1-9", binary_logs=WHOLE)
    assert donors(c, d) == (Donor("d", own("3-5")), Donor("c", own("3-5"), CANNOT_OPEN))
    assert donors(one("c", "1-9"), d) == (Donor("c", own("3-5")), Donor("d", own("3-5")))


def test_a_server_whose_version_is_refused_is_no_donor() -> None:
    old, new = ServerVersion(5, 6, 24), ServerVersion(9, 7, 4)
    c, d = one("c", "1-9", version=old), one("d", "1-9", version=new)
    assert donors(c, d) == (Donor("d", own("3-5")),)  # b is 9.7, as all that say nothing else
    assert donors(c, one("d", "1-9", version=ServerVersion(8, 4, 3)))[0].name == "d"


def test_what_no_log_of_a_donor_has_it_does_not_send() -> None:
    searched = HistoryEvidence(None, (), absent=own("3-4"))
    assert donors(one("c", "1-9", history_evidence=searched)) == (Donor("c", own("5")),)
    assert donors(one("c", "1-9", "1-5")) == ()


@pytest.mark.parametrize("auto_position", [True, False])
def test_a_certain_donor_is_named_before_one_whose_log_is_missing(*, auto_position: bool) -> None:
    c, d = one("c", "1-9", binary_logs=GONE), one("d", "1-9", binary_logs=WHOLE)
    [gap] = found(c, d, auto_position=auto_position)
    assert (gap.code, gap.grade) == ("P1" if auto_position else "H3", Grade.PROVED)
    assert ("donors that still have all of it", "d", "a") in values(gap)
    assert (DOUBTFUL_DONORS, "c", "a") in values(gap)
    assert " d can still send them." in gap.explanation
    assert "not certain" not in gap.explanation


NOT_READ = UnreadFact("binary_logs", UnreadReason.PRIVILEGE, "no REPLICATION CLIENT")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"binary_logs": GONE}, CANNOT_OPEN),
        ({"binary_logs": UNLISTED}, "the binary logs of c have no binlog.000002"),
        ({"unread": (NOT_READ,)}, "the list of binary logs of c was not read"),
    ],
)
def test_no_finding_is_certain_of_a_donor_whose_log_is_missing(
    facts: dict[str, Any], why: str
) -> None:
    """The donor had the transactions by its sets only: a replica that follows it may stop too."""
    c = one("c", "1-9", **facts)
    [p1] = found(c, auto_position=True)
    assert (p1.code, p1.grade) == ("P1", Grade.PROVED)  # that the source refuses it is certain
    [h3] = found(c)
    assert (h3.code, h3.grade) == ("H3", Grade.LIKELY)
    for each in (p1, h3):
        assert names(each) == ["donor_refetch", "reclone"]
        assert ("donors that still have all of it", "none", "a") in values(each)
        assert (DOUBTFUL_DONORS, "c", "a") in values(each)
        assert f"whether it can send them is not certain: {why}" in each.explanation
        assert "can still send them" not in each.explanation


def test_a_part_that_a_donor_may_not_have_is_not_certain() -> None:
    c = one("c", "1-9", "1-4", binary_logs=GONE)
    [h3] = found(c, one("d", "3-4"))
    assert (h3.gtid_set, h3.grade, names(h3)) == (own("3-5"), Grade.LIKELY, ["reclone"])
    assert (
        " d can send a part of them. By its GTID sets c has a part of them in its binary logs, but"
        f" whether it can send that is not certain: {CANNOT_OPEN}."
    ) in h3.explanation


def test_a_donor_of_lost_transactions_may_have_lost_them_too() -> None:
    gap = h5(star(c={"binary_logs": GONE}))
    assert [each.name for each in gap.strategies] == ["donor_refetch", "reclone"]
    assert (DOUBTFUL_DONORS, "c", "a") in values(gap)
    assert f"Whether c can send them is not certain: {CANNOT_OPEN}." in gap.explanation
