"""Turns comparisons of logs into the facts that the rule on content evaluates.

1. A difference keeps both versions, and which server has less.
2. Transactions that were read but are not comparable are counted. For a command that requested them
   they are UNKNOWN. In an audit they are UNKNOWN only if two commits are possible. The same commit
   time on both servers excludes that the GTID was reused; then they are reported as info.
3. What can never be compared (purged, or in no log) is reported as info.
4. A replica that logged more rows of one commit than the server that committed it is a difference.
   Foreign keys are no excuse: a replica cascades in InnoDB, and logs nothing of it, where the
   source did (an event says so; tried on 9.7.4 with innodb_native_foreign_keys on either side).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from binlog.content.compare import Agreement, Comparison, Version
from binlog.content.compared_parts import LeftOut
from binlog.content.content_digest import Content, RowsPart, StatementPart
from binlog.content.reuse import Compared, gtids_in_words
from binlog.log_times import EPOCH, moment
from gtid import Gtid, GtidSet
from topology.adapters.transaction_summary import in_short
from topology.readings.content_class import ContentClass
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
    UnreadContent,
)
from topology.readings.replication_filters import ServerFilters, Table, tables_named_in
from topology.readings.transaction_parts import class_of

_DIFFERENCES: Final = {
    Agreement.TWICE: Difference.COMMIT,
    Agreement.DIFFERENT: Difference.CONTENT,
    Agreement.DRIFTED: Difference.DRIFT,
    Agreement.SKIPPED: Difference.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Comparing:
    """The facts about two compared servers and about the request.

    `filters` reads a server's filters; for logs in files none are known.
    """

    names: tuple[str, str]  # of the left and the right server
    origins: Mapping[UUID, str]  # the server of a UUID
    filters: Mapping[str, Callable[[], ServerFilters | None]]
    is_asked_for: bool  # by a command that compares, not by an audit
    # Which of the two sends the other what neither committed; None if unknown.
    source: str | None = None
    # Which of the two would have to join the other one: its rows are those to repair.
    joins: str | None = None


def reading_of(compared: Compared, comparing: Comparing, *, read_at: datetime) -> ContentReading:
    """Turn one comparison into the facts that the rule evaluates."""
    differences, undecided = _sorted_out(compared, comparing)
    open_: dict[str, list[Gtid]] = {}
    closed: dict[str, list[Gtid]] = {}
    unread, remarks = (
        [
            UnreadContent(each.log, each.reason)
            for each in compared.unread
            if each.is_lasting is gone
        ]
        for gone in (False, True)
    )
    for each, why in undecided:
        is_unknown = comparing.is_asked_for or not each.is_one_commit
        (open_ if is_unknown else closed).setdefault(why, []).append(each.gtid)
    unread += _not_comparable(open_, comparing.names)
    remarks += _not_comparable(closed, comparing.names)
    return ContentReading(
        read_at=read_at,
        compared_count=compared.gtids.gtid_count - len(undecided),
        starts=compared.starts,
        differences=tuple(differences),
        unread=tuple(sorted(set(unread))),
        is_cut=compared.is_cut,
        pairs=(comparing.names,),
        undecided_count=len(undecided),
        remarks=tuple(sorted(set(remarks))),
    )


def _sorted_out(
    compared: Compared, comparing: Comparing
) -> tuple[list[ContentDifference], list[tuple[Comparison, str]]]:
    """Return the differences, and the comparisons without an answer, with the reason."""
    filters = _Filters(comparing)
    differences: list[ContentDifference] = []
    undecided: list[tuple[Comparison, str]] = []
    for each in compared.comparisons:
        if each.agreement is Agreement.UNKNOWN:
            undecided.append((each, each.reason))
        else:
            differences.append(_difference(each, comparing, filters))
    return differences, undecided


def _has_more_than_its_origin(each: Comparison, comparing: Comparing) -> bool:
    """Return whether a replica logged more rows than the server that committed."""
    return (
        each.agreement is Agreement.SKIPPED
        and not each.has_one_empty
        and comparing.origins.get(each.gtid.tsid.uuid) == _lesser(each, comparing.names)
    )


def _is_of_a_replica(each: Comparison, comparing: Comparing) -> bool:
    """Return whether a session of a replica committed a GTID of its source (gtid_next).

    A redo on the source under the replica's GTIDs looks the same where each receives from the
    other.
    """
    ids = {version.transaction.server_id for version in (each.left, each.right)}
    is_of_source = comparing.origins.get(each.gtid.tsid.uuid) == comparing.source
    return comparing.source is not None and is_of_source and len(ids) > 1


def _lesser(each: Comparison, names: tuple[str, str]) -> str:
    if each.has_less is LeftOut.NONE:
        return ""
    return names[0] if each.has_less is LeftOut.LEFT else names[1]


def _not_comparable(
    gtids: Mapping[str, list[Gtid]], names: tuple[str, str]
) -> Iterator[UnreadContent]:
    """Report, by reason, the transactions of which both versions were read without an answer."""
    for why, of_reason in gtids.items():
        which = gtids_in_words(GtidSet.of(of_reason))
        yield UnreadContent(names[1], f"not comparable with {names[0]}: {which}: {why}")


def _difference(
    comparison: Comparison, comparing: Comparing, filters: "_Filters"
) -> ContentDifference:
    names = comparing.names
    versions = [
        _version(version, name)
        for version, name in zip((comparison.left, comparison.right), names, strict=True)
    ]
    origin = comparing.origins.get(comparison.gtid.tsid.uuid, comparing.source)
    if names[0] == comparing.joins or (comparing.joins is None and origin == names[1]):
        versions.reverse()
    difference, reason = _DIFFERENCES[comparison.agreement], comparison.reason
    lesser = _lesser(comparison, names)
    if difference is Difference.CONTENT and comparison.has_one_empty:
        is_left = comparison.left.content.is_empty
        lesser, fuller = names[not is_left], comparison.right if is_left else comparison.left
        is_upkeep = class_of(fuller.transaction) is ContentClass.HARMLESS
        difference = Difference.UPKEEP if is_upkeep else Difference.EMPTY
    elif difference is Difference.COMMIT and _is_of_a_replica(comparison, comparing):
        difference = Difference.AGAIN
    elif _has_more_than_its_origin(comparison, comparing):
        difference = Difference.ADDED
    elif difference is Difference.SKIPPED and filters.explain(comparison, lesser):
        difference, reason = Difference.FILTERED, f"{reason}; the filters of {lesser} explain it"
    return ContentDifference(
        gtid=comparison.gtid,
        difference=difference,
        is_proved=comparison.is_proved and difference is not Difference.AGAIN,
        reason=reason,
        source=versions[0],
        replica=versions[1],
        lesser=lesser,
        is_two_commits=comparison.is_two_commits,
    )


class _Filters:
    """The filters of the compared servers; each is read when it is first needed."""

    def __init__(self, comparing: Comparing) -> None:
        self._comparing = comparing
        self._read: dict[str, ServerFilters | None] = {}

    def explain(self, comparison: Comparison, lesser: str) -> bool:
        """Return whether a server's filters explain what is missing in its log."""
        if lesser not in self._comparing.filters:
            return False
        if lesser not in self._read:
            self._read[lesser] = self._comparing.filters[lesser]()
        filters = self._read[lesser]
        contents = comparison.left.content, comparison.right.content
        less, more = contents if comparison.has_less is LeftOut.LEFT else contents[::-1]
        uuids = {name: uuid for uuid, name in self._comparing.origins.items()}
        [other] = [name for name in self._comparing.names if name != lesser]
        return filters is not None and filters.explain(_absent(less, more), uuids.get(other))


def _absent(less: Content, more: Content) -> set[Table]:
    """Return the tables of which one content has fewer rows than the other."""
    tables = {table for table, count in _rows(more).items() if _rows(less).get(table, 0) < count}
    if less.is_empty:
        for part in more.parts:
            if isinstance(part, StatementPart):
                tables |= tables_named_in(part.sql.decode(errors="backslashreplace"), part.schema)
    return tables


def _rows(content: Content) -> dict[Table, int]:
    counts: dict[Table, int] = {}
    for part in content.parts:
        if isinstance(part, RowsPart):
            table = (part.schema, part.table)
            counts[table] = counts.get(table, 0) + part.row_count
    return counts


def _version(version: Version, server: str) -> TransactionVersion:
    transaction, committed = version.transaction, version.committed_at
    return TransactionVersion(
        server=server,
        place=f"{transaction.file}:{transaction.start}",
        committed_at=None if committed is None else moment(committed),
        logged_at=EPOCH + timedelta(seconds=transaction.timestamp_seconds),
        content=in_short(version),
        is_empty=version.content.is_empty,
    )
