"""What becomes of comparisons: differences, remarks and what is unknown; and what the rule reports."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import pytest

from binlog.content.compare import Comparison, compare_versions
from binlog.content.reuse import Compared, Unread
from gtid import GtidSet
from tests.binlog.builders import UUID_A, Log
from tests.binlog.test_compare import LONG, NOON, empty, rows, statement, two_tables, version
from topology.adapters.content_facts import Comparing, reading_of
from topology.catalogue.findings import Grade, Severity
from topology.readings.contents import ContentReading, Difference, UnreadContent
from topology.readings.replication_filters import ReplicationFilters, ServerFilters
from topology.rules.content import same_gtid_different_content

ORIGIN_ID = 7  # of all transactions of the builders
READ_AT = datetime(2026, 1, 2, tzinfo=UTC)
NO_FILTERS = ServerFilters()
ONE = GtidSet.parse(f"{UUID_A}:5")


def compared(
    left: Log, right: Log, *, at: tuple[int | None, int | None] = (NOON, NOON)
) -> Comparison:
    return compare_versions(version(left, at=at[0]), version(right, at=at[1]))


def reading(
    *comparisons: Comparison,
    origin: str = "a",
    filters: Callable[[], ServerFilters | None] = lambda: NO_FILTERS,
    is_asked_for: bool = False,
    unread: tuple[Unread, ...] = (),
    source: str | None = None,
) -> ContentReading:
    comparing = Comparing(
        names=("a", "b"),
        origins={UUID_A: origin} if origin else {},
        filters={"a": filters, "b": filters},
        is_asked_for=is_asked_for,
        source=source,
    )
    found = Compared(comparisons, ONE, (), unread)
    return reading_of(found, comparing, read_at=READ_AT)


def reported(found: ContentReading) -> tuple[Severity, str]:
    [finding] = same_gtid_different_content(found, cluster="c")
    assert not finding.explanation.startswith("None")
    return finding.severity, finding.explanation


def test_less_on_a_replica_is_a_difference_and_the_server_is_named() -> None:
    found = reading(compared(rows(1), empty()))
    [difference] = found.differences
    assert (difference.difference, difference.lesser) == (Difference.SKIPPED, "b")
    severity, text = reported(found)
    assert severity is Severity.WARNING
    assert text.startswith("b logged less of 1 transaction than a: its log has nothing")
    found = reading(compared(rows(1, 2), rows(1)))
    assert "fewer rows under the GTID" in reported(found)[1]
    assert found.compared_count == 1


def test_only_a_filter_of_the_server_with_less_explains_it() -> None:
    for ignored, difference in (("u", Difference.SKIPPED), ("t", Difference.FILTERED)):
        ignored_here = ReplicationFilters(ignore_table=frozenset({f"d.{ignored}"}))
        ignoring = partial(ServerFilters, channels=((str(UUID_A), ignored_here),))
        [found] = reading(compared(rows(1), empty()), filters=ignoring).differences
        assert found.difference is difference
    of_another = ServerFilters(
        channels=((str(UUID(int=9)), ReplicationFilters()), ("", ignored_here))
    )
    [found] = reading(compared(rows(1), empty()), filters=lambda: of_another).differences
    assert found.difference is Difference.SKIPPED
    [found] = reading(compared(rows(1), empty()), filters=lambda: None).differences
    assert found.difference is Difference.SKIPPED  # filters that could not be read explain nothing
    filters = ServerFilters(ReplicationFilters(ignore_table=frozenset({"d.u"})))
    partly = reading(compared(two_tables(), rows(1)), filters=lambda: filters)
    assert [each.difference for each in partly.differences] == [Difference.FILTERED]
    assert reported(partly)[0] is Severity.INFO
    [drifted] = reading(compared(rows(1), rows(2)), filters=lambda: filters).differences
    assert drifted.difference is Difference.DRIFT


def test_it_is_reported_whether_two_commits_or_no_commit_times_are_known() -> None:
    one, later = statement("UPDATE t SET a = NOW()"), statement("UPDATE t SET a = NOW()", seconds=1)
    for at in ((NOON, NOON + 1), (None, None)):
        severity, text = reported(reading(compared(one, later, at=at)))
        assert severity is Severity.CRITICAL
        assert "whether the two commits had the same result" in text
        assert "not known" not in text
    severity, text = reported(reading(compared(rows(1), rows(2), at=(None, None))))
    assert "The commit times are not known." in text


def test_what_neither_committed_came_from_the_source_of_the_channel() -> None:
    both = compared(rows(1), rows(2), at=(NOON, NOON + 1))
    for origin, source, expected in (
        ("", "b", "b"),
        ("", "a", "a"),
        ("", None, "a"),
        ("a", "b", "a"),
    ):
        [found] = reading(both, origin=origin, source=source).differences
        assert found.source.server == expected


def test_more_rows_than_the_origin_logged_are_a_difference() -> None:
    found = reading(compared(rows(1, 2), rows(1)), origin="b")
    [difference] = found.differences
    assert (difference.difference, difference.lesser) == (Difference.ADDED, "b")
    severity, text = reported(found)
    assert severity is Severity.WARNING
    assert text.startswith("a logged more rows of 1 transaction than b, which committed")
    [finding] = same_gtid_different_content(found, cluster="c")
    assert (finding.grade, finding.strategies) == (Grade.LIKELY, ())
    emptied = reading(compared(rows(1), empty()), origin="b")
    assert [(each.difference, each.lesser) for each in emptied.differences] == [
        (Difference.SKIPPED, "b")
    ]


@pytest.mark.parametrize(
    ("origin", "source", "replica_id", "kind"),
    [
        ("a", "a", 2, Difference.AGAIN),
        ("a", "a", ORIGIN_ID, Difference.COMMIT),  # redone on the source that lost it
        ("b", "a", 2, Difference.COMMIT),  # redone on the source under the GTID of its replica
        ("a", None, 2, Difference.COMMIT),  # each receives from the other
    ],
)
def test_a_replica_that_commits_again_may_have_another_order(
    origin: str, source: str | None, replica_id: int, kind: Difference
) -> None:
    twice = compared(rows(1), rows(1), at=(NOON, NOON + 1))
    changed = replace(
        twice.right, transaction=replace(twice.right.transaction, server_id=replica_id)
    )
    twice = replace(twice, right=changed)
    assert twice.left.transaction.server_id == ORIGIN_ID
    found = reading(twice, origin=origin, source=source)
    [difference] = found.differences
    assert difference.difference is kind
    [finding] = same_gtid_different_content(found, cluster="c")
    is_again = kind is Difference.AGAIN
    assert (finding.severity, finding.grade) == (
        (Severity.WARNING, Grade.LIKELY) if is_again else (Severity.INFO, Grade.PROVED)
    )
    assert ("A session of b committed 1 transaction of a" in finding.explanation) is is_again


def test_an_empty_transaction_of_another_commit_was_committed_by_hand() -> None:
    found = reading(compared(empty(), rows(1), at=(NOON, NOON + 1)), origin="b")
    [difference] = found.differences
    assert (difference.difference, difference.lesser) == (Difference.EMPTY, "a")
    severity, text = reported(found)
    assert severity is Severity.WARNING
    assert "committed an empty transaction under the GTID on a, or a does not log" in text


def test_maintenance_that_was_left_out_by_an_empty_transaction_is_information() -> None:
    for sql, severity in (("ANALYZE TABLE t", Severity.INFO), ("DROP TABLE t", Severity.WARNING)):
        made = statement(sql, inside=False)
        found = reading(compared(empty(), made, at=(NOON, NOON + 1)), origin="b")
        assert [each.lesser for each in found.differences] == ["a"]
        reported_as, text = reported(found)
        assert reported_as is severity
        assert ("changed no data on b" in text) == (severity is Severity.INFO)


def test_what_is_not_comparable_is_counted_and_unknown_if_it_was_asked_for() -> None:
    other_form = rows(1, types=LONG * 2)
    for at, is_asked_for, is_unknown in (
        ((NOON, NOON), False, False),  # one commit: no GTID was reused
        ((NOON, NOON), True, True),
        ((None, None), False, True),
        ((None, None), True, True),
    ):
        found = reading(compared(rows(1), other_form, at=at), is_asked_for=is_asked_for)
        assert (found.compared_count, found.undecided_count) == (0, 1)
        assert bool(found.unread) == is_unknown
        assert bool(found.remarks) != is_unknown
        [told] = (*found.unread, *found.remarks)
        assert told.server == "b"
        assert told.reason.startswith(f"not comparable with a: 1 GTID, {UUID_A}:5: ")


def test_what_is_gone_is_a_remark_and_what_failed_is_unknown() -> None:
    gone, failed = Unread("a", "purged", is_lasting=True), Unread("b", "no answer")
    found = reading(unread=(gone, failed))
    assert found.remarks == (UnreadContent("a", "purged"),)
    assert found.unread == (UnreadContent("b", "no answer"),)


def test_rows_are_repaired_only_towards_the_server_that_has_more() -> None:
    for origin, has_strategies in (("a", True), ("b", False)):
        found = reading(compared(rows(1), empty()), origin=origin)
        [finding] = same_gtid_different_content(found, cluster="c")
        assert bool(finding.strategies) == has_strategies, origin


def test_the_worst_kind_is_reported_and_the_others_are_counted() -> None:
    worst = reading(compared(rows(1), rows(2), at=(NOON, NOON + 1))).differences
    lesser = reading(compared(rows(1), empty())).differences
    both = replace(reading(), differences=(*lesser, *worst))
    severity, text = reported(both)
    assert severity is Severity.CRITICAL
    assert text.endswith("1 more differ, less severely.")
