"""What E4 names of two versions: who logged less, what else may explain it, and what was not compared."""

from dataclasses import replace
from datetime import datetime

import pytest

from gtid import Gtid
from tests.contents import NOON, a_version, differing
from tests.finding_words import finding_in_words
from tests.snapshots import A, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.readings.contents import ContentReading, Difference
from topology.rules.content import _extra_between


def found(reading: ContentReading) -> Finding:
    cluster = a_cluster("pair", a_server("a", A, f"{A}:1-9"))
    [one] = [
        each for each in audit_cluster(cluster.with_contents(reading)).findings if each.code == "E4"
    ]
    return one


def of_kind(
    kind: Difference,
    *gnos: int,
    empty: str = "",
    lesser: str = "",
    committed: tuple[datetime | None, datetime | None] = (NOON, NOON),
) -> ContentReading:
    reading = differing(*gnos)
    source, replica = (
        replace(a_version(name, name, committed_at=at), is_empty=name == empty)
        for name, at in zip("ab", committed, strict=True)
    )
    differences = tuple(
        replace(
            each,
            gtid=Gtid.parse(f"{A}:{gno}"),
            difference=kind,
            source=source,
            replica=replica,
            lesser=lesser,
        )
        for gno, each in zip(gnos, reading.differences, strict=True)
    )
    return replace(reading, differences=differences)


@pytest.mark.parametrize("kind", [Difference.SKIPPED, Difference.EMPTY, Difference.UPKEEP])
@pytest.mark.parametrize(
    ("empty", "lesser", "expected"),
    [
        ("a", "", "a"),
        ("b", "", "b"),
        ("b", "b", "b"),
        ("", "a", "a"),
        ("", "b", "b"),
        ("b", "a", "a"),  # what the comparison found counts
    ],
)
def test_the_server_that_logged_less_is_named(
    kind: Difference, empty: str, lesser: str, expected: str
) -> None:
    other = {"a": "b", "b": "a"}[expected]
    text = found(of_kind(kind, 1, empty=empty, lesser=lesser)).explanation
    starts = {
        Difference.SKIPPED: f"{expected} logged less of 1 transaction than {other}",
        Difference.EMPTY: f"changed data on {other} and nothing on {expected}",
        Difference.UPKEEP: f"changed no data on {other} (",
    }
    assert starts[kind] in text


@pytest.mark.parametrize(
    ("committed", "is_named"),
    [((NOON, NOON), False), ((None, NOON), True), ((NOON, None), True), ((None, None), True)],
)
def test_a_skip_by_hand_is_possible_where_a_commit_time_is_unknown(
    committed: tuple[datetime | None, datetime | None], *, is_named: bool
) -> None:
    """The time of the first commit shows that the replica applied it, in part."""
    text = found(of_kind(Difference.SKIPPED, 1, lesser="b", committed=committed)).explanation
    assert ("sql_replica_skip_counter" in text) is is_named


@pytest.mark.parametrize(("empty", "words"), [("b", "has nothing"), ("", "has fewer rows")])
def test_less_is_nothing_or_fewer_rows(empty: str, words: str) -> None:
    text = found(of_kind(Difference.SKIPPED, 1, empty=empty, lesser="b")).explanation
    assert f"its log {words} under the GTID" in text


@pytest.mark.parametrize(("gnos", "was"), [((1,), "was"), ((1, 2), "were")])
def test_work_that_was_committed_twice_agrees(gnos: tuple[int, ...], was: str) -> None:
    text = found(of_kind(Difference.COMMIT, *gnos)).explanation
    assert f" {was} committed on both servers" in text


@pytest.mark.parametrize("is_cut", [True, False])
def test_differences_beyond_the_limit_are_mentioned(*, is_cut: bool) -> None:
    text = found(replace(differing(1), is_cut=is_cut)).explanation
    assert text.endswith(" There are more transactions than gtid-audit compared.") is is_cut


def test_only_errant_transactions_of_the_two_servers_explain_drift() -> None:
    one = replace(found(differing(1)), code="E1", source="a", replica="b")
    for other, is_named in (
        (one, True),
        (replace(one, source="b", replica="a"), True),
        (replace(one, code="H1"), False),
        (replace(one, replica="c"), False),
        (replace(one, source=None), False),
    ):
        assert ("E1" in _extra_between("a", "b", (other,))) is is_named
    assert _extra_between("a", "b", ()) == ""


def test_a_version_without_a_commit_time_is_dated_by_its_log() -> None:
    lines = list(finding_in_words(found(differing(1))))
    assert [line.partition(", ")[2].partition(" 2026")[0] for line in lines if ":198" in line] == [
        "committed",
        "logged",
    ]


@pytest.mark.parametrize("is_proved", [True, False])
def test_every_cause_of_two_transactions_under_one_gtid_is_named(*, is_proved: bool) -> None:
    reading = of_kind(Difference.CONTENT, 4)
    differences = tuple(replace(each, is_proved=is_proved) for each in reading.differences)
    text = found(replace(reading, differences=differences)).explanation
    for cause in ("in a crash", "an older copy", "RESET", "gtid_next", "the same server_uuid"):
        assert cause in text


def test_what_an_earlier_audit_proved_is_reported_with_the_way_to_end_it() -> None:
    reading = of_kind(Difference.CONTENT, 4)
    [one] = reading.differences
    one = replace(one, is_proved=False, is_two_commits=True, is_remembered=True)
    text = found(replace(reading, differences=(one,))).explanation
    assert "An earlier audit proved a difference" in text
    assert "`gtid-audit history PLACE --forget SET --server a --server b`" in text
    assert "The logs do not show" not in text  # they did, then
    assert "until an operator repairs them" not in text  # one may have
    assert "--forget" not in found(reading).explanation
