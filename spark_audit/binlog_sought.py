"""Derives from filters and options what is known about the sought transactions.

The result may be too wide, but never too narrow: spark_audit/binlog_skipping.py skips whole logs
because of it. The rows of the other logs are still filtered one by one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any, Final
from uuid import UUID

from pyspark.sql import datasource as filters

from gtid import GNO_END, GtidError, GtidSet, Tsid
from spark_audit.binlog_conditions import column_of, value_of
from spark_audit.ledger_schema import GTID


@dataclass(frozen=True, slots=True)
class Sought:
    """The properties that every wanted transaction has; None where nothing is known."""

    gtids: GtidSet | None = None
    uuids: frozenset[UUID] | None = None
    tags: frozenset[str] | None = None  # "" means GTIDs without a tag
    gno_start: int = 1
    gno_end: int = GNO_END
    # Inclusive bounds of the commit time on the log's own server. The lower bound may also come
    # from the origin's times: a transaction is committed at its origin before it is committed here.
    committed_from: datetime | None = None
    committed_until: datetime | None = None

    def gtids_among(self, known: GtidSet | None) -> GtidSet | None:
        """Return which GTIDs of `known` (None: of all) are sought; None: any may be.

        Requires: has_gtids. Otherwise anonymous transactions are sought too.
        """
        assert self.has_gtids
        limited = self._limited(known)
        if self.gtids is None or limited is None:
            return self.gtids if limited is None else limited
        return self.gtids & limited

    def _limited(self, known: GtidSet | None) -> GtidSet | None:
        if self.uuids is None and self.tags is None and self._is_every_gno:
            return known
        if known is not None:
            tsids = [
                tsid
                for tsid in known.tsids
                if (self.uuids is None or tsid.uuid in self.uuids)
                and (self.tags is None or tsid.tag in self.tags)
            ]
            return known & self._intervals(tsids)
        if self.uuids is None or self.tags is None:
            return None
        return self._intervals(Tsid(uuid, tag) for uuid in self.uuids for tag in self.tags)

    @property
    def has_gtids(self) -> bool:
        """Return whether every sought transaction has a GTID, of which something is known.

        The condition "without a tag" alone shows neither: an anonymous transaction has no tag.
        """
        is_tagged = self.tags is not None and "" not in self.tags
        is_numbered = self.uuids is not None or not self._is_every_gno
        return self.gtids is not None or is_tagged or is_numbered

    @property
    def _is_every_gno(self) -> bool:
        return (self.gno_start, self.gno_end) == (1, GNO_END)

    def _intervals(self, tsids: Iterable[Tsid]) -> GtidSet:
        if self.gno_start >= self.gno_end:
            return GtidSet()
        return GtidSet.from_intervals((tsid, self.gno_start, self.gno_end) for tsid in tsids)


def sought_by(conditions: Iterable[filters.Filter], start: Sought) -> Sought:
    """Return what the filters add to what is known about the sought transactions."""
    return reduce(_narrowed, conditions, start)


def _narrowed(sought: Sought, condition: filters.Filter) -> Sought:
    if isinstance(condition, filters.Not | filters.IsNotNull):
        return sought
    narrow = _NARROWING.get(column_of(condition))
    return sought if narrow is None else narrow(sought, condition)


def _values(condition: filters.Filter) -> list[Any] | None:
    """Return the values that a column may have; None if it may have others."""
    if isinstance(condition, filters.In):
        return list(condition.value)
    is_one = isinstance(condition, filters.EqualTo | filters.EqualNullSafe)
    return [value_of(condition)] if is_one else None


def _by_gtid(sought: Sought, condition: filters.Filter) -> Sought:
    texts = _values(condition)
    if texts is None:
        return sought
    try:
        found = GtidSet.union_of(GtidSet.parse(text) for text in texts)
    except GtidError:  # no row has such a text, so the row filter removes all rows
        return sought
    return replace(sought, gtids=found if sought.gtids is None else found & sought.gtids)


def _by_uuid(sought: Sought, condition: filters.Filter) -> Sought:
    texts = _values(condition)
    if texts is None:
        return sought
    try:
        found = frozenset(UUID(text) for text in texts)
    except ValueError:
        return sought
    return replace(sought, uuids=found if sought.uuids is None else found & sought.uuids)


def _by_tag(sought: Sought, condition: filters.Filter) -> Sought:
    found = [""] if isinstance(condition, filters.IsNull) else _values(condition)
    if found is None:
        return sought
    tags = frozenset(found)
    try:
        assert all(Tsid(UUID(int=0), tag) for tag in tags)
    except GtidError:  # not a tag, so no row has it
        return sought
    return replace(sought, tags=tags if sought.tags is None else tags & sought.tags)


def _by_gno(sought: Sought, condition: filters.Filter) -> Sought:
    start, end = sought.gno_start, sought.gno_end
    numbers = _values(condition)
    if numbers is not None:
        first, last = min(numbers, default=1), max(numbers, default=0)
        start, end = max(start, first), min(end, last + 1)
    elif isinstance(condition, filters.GreaterThan | filters.GreaterThanOrEqual):
        start = max(start, condition.value + isinstance(condition, filters.GreaterThan))
    elif isinstance(condition, filters.LessThan | filters.LessThanOrEqual):
        end = min(end, condition.value + isinstance(condition, filters.LessThanOrEqual))
    return replace(sought, gno_start=start, gno_end=max(end, 1))


def _moments(condition: filters.Filter, *bounds: type[filters.Filter]) -> list[Any] | None:
    """Return the bounds of a time column: a filter of these types, or its values."""
    return [value_of(condition)] if isinstance(condition, bounds) else _values(condition)


def _from(sought: Sought, condition: filters.Filter) -> Sought:
    moments = _moments(condition, filters.GreaterThan, filters.GreaterThanOrEqual)
    if not moments:
        return sought
    earliest = min(moments)
    known = sought.committed_from
    return replace(sought, committed_from=earliest if known is None else max(known, earliest))


def _from_until(sought: Sought, condition: filters.Filter) -> Sought:
    sought = _from(sought, condition)
    moments = _moments(condition, filters.LessThan, filters.LessThanOrEqual)
    if not moments:
        return sought
    latest = max(moments)
    known = sought.committed_until
    return replace(sought, committed_until=latest if known is None else min(known, latest))


_NARROWING: Final[Mapping[str, Callable[[Sought, filters.Filter], Sought]]] = {
    GTID: _by_gtid,
    "uuid": _by_uuid,
    "tag": _by_tag,
    "gno": _by_gno,
    "immediate_commit_at": _from_until,
    # By the origin's clock: it may have committed the transaction long before this log was opened.
    "original_commit_at": _from,
    "logged_at": _from,
}
