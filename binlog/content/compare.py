"""Compares the transactions that two logs contain under the same GTID.

How it works
------------
The comparison has two independent inputs: how often the transaction was committed, and whether the
contents are equal. `_Pair.evaluated` combines them:

    commits     equal content     unequal content
    one         SAME              SKIPPED, DRIFTED, SAME or UNKNOWN   (`_one_commit`)
    two         TWICE             DIFFERENT                           (`_unequal`)
    not known   SAME              by the work: SAME, SKIPPED, DIFFERENT or UNKNOWN

The evidence for the number of commits (`_why_two`), in this order:

* The time of the first commit (original_commit_timestamp, 8.0.1 and later) is passed on from server
  to server to the microsecond. If both logs have it, equal times mean one commit, and different
  times mean two.
* Before 8.0.1, different server_ids mean two commits: a replica logs the server_id of the server
  that committed first (Log_event::server_id, sql/log_event.h).
* Before 8.0.1, different timestamps of equal statements also mean two commits: a replica runs a
  statement with its source's clock, and logs that time.

Two commits with equal content are a transaction that was repeated under its GTID, or a GTID that
was reused for the same work. The data agrees, so they are reported separately (TWICE).

One commit with different rows found other rows on one of the servers: the data had drifted before
(DRIFTED). If one log has fewer rows of one commit, or nothing, that server skipped them (SKIPPED):
because of an error that it ignores (replica_skip_errors, replica_exec_mode=IDEMPOTENT), or because
of a filter. Neither is a reused GTID.

Invariants: no false alarm, and never SAME for content that was not compared. Servers may log the
same work in different forms: statements or rows, full or minimal images, partial JSON, more columns
on a replica, filters, rewritten schemas. Then the form proves nothing, and the result is UNKNOWN.
`is_proved` is set only if there were two commits and no form of logging explains the difference.

Example: one log has `d.t: 2 rows written`, the other `d.t: 1 row written`.

    both commit times equal     SKIPPED: "one commit by its time, and one has 1 of 2 rows of d.t"
    commit times different      DIFFERENT, proved: two commits, and the rows of d.t differ
    no times (5.6), equal       DIFFERENT, not proved: the rows differ, but nothing shows that
      server_ids                there were two commits

Simpler ways fail. Event bytes and checksums differ on every replica. A digest alone cannot separate
a reused GTID from another logging form or a skipped row. Commit times alone do not show skipped or
different rows, and servers before 8.0.1 do not log them.

Servers with different lower_case_table_names write the same name differently: see `names_fold`.
This module is pure: adapters read the transactions. compared_parts.py compares the parts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from binlog.content.compared_parts import (
    LeftOut,
    Work,
    are_equal,
    compare_parts,
    folded,
    has_only_rows,
    has_rows,
    ran_twice,
    rows_left_out,
    statements_of,
)
from binlog.content.content_digest import Content, content_of
from binlog.errors import BinlogMisuse
from binlog.scan import EventGroup
from binlog.transactions import Transaction, TransactionKind
from gtid import Gtid

# The events of transactions up to this size are kept with the comparison.
EVENT_BYTES_KEPT: Final = 8 * 1024


class Agreement(Enum):
    """Whether two logs contain the same transaction under one GTID."""

    SAME = "same"
    TWICE = "committed twice, with equal content"
    DIFFERENT = "different"
    DRIFTED = "one commit, applied to other rows"
    SKIPPED = "one commit, and one log has less of it"
    UNKNOWN = "not comparable"


@dataclass(frozen=True, slots=True)
class Version:
    """A transaction as one log contains it. Its content is read on first access."""

    transaction: Transaction
    # None after the content has been read, if they have more than EVENT_BYTES_KEPT bytes.
    events: EventGroup | None = None
    _content: list[Content] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, group: EventGroup) -> "Version":
        """Make a version of a transaction and its events."""
        return cls(group.transaction, group)

    @property
    def content(self) -> Content:
        """Return the content of the transaction."""
        if not self._content:
            assert self.events is not None, "they are dropped only after the content is known"
            self._content.append(_content_of(self.events))
        return self._content[0]

    def lightened(self) -> "Version":
        """Return the version with its content read, and without its events if they are large."""
        assert self.content is not None
        if self.events is None:
            return self
        size = sum(event.header.event_bytes for event in self.events.events)
        return self if size <= EVENT_BYTES_KEPT else replace(self, events=None)

    @property
    def committed_at(self) -> int | None:
        """Return the time of the first commit, in microseconds since 1970; None if unknown.

        A source older than 8.0.1 passes no time on, and a later replica then writes 0.
        """
        return self.transaction.original_commit_timestamp or None


def each_version(groups: Iterable[EventGroup]) -> Iterator[tuple[Gtid, Version]]:
    """Yield the transactions that have a GTID, in the order of the log."""
    for group in groups:
        if group.transaction.gtid is not None:
            yield group.transaction.gtid, Version.of(group)


def versions_of(groups: Iterable[EventGroup]) -> dict[Gtid, tuple[Version, ...]]:
    """Return the whole versions of each GTID; one without its end if there is no other.

    A receiver that was disconnected within a transaction requests it again. Then its relay logs
    have the first half of it and, before or behind that, the whole. Files from before and after a
    reset may have two transactions under one GTID.
    """
    found: dict[Gtid, tuple[Version, ...]] = {}
    for gtid, version in each_version(groups):
        before = found.get(gtid, ())
        if not version.transaction.is_complete:
            found.setdefault(gtid, (version,))
        elif before and before[0].transaction.is_complete:
            found[gtid] = (*before, version)
        else:
            found[gtid] = (version,)
    return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """One GTID in two logs, and whether they contain the same transaction.

    `is_two_commits`: there were two commits. `is_proved`: there were two commits, and their content
    is equal, or differs in a way that no form of logging explains. `reason` explains the result.
    """

    left: Version
    right: Version
    agreement: Agreement
    is_proved: bool
    reason: str
    has_less: LeftOut = LeftOut.NONE  # if SKIPPED: the log that has fewer rows, or nothing
    is_two_commits: bool = False

    def __post_init__(self) -> None:
        if self.left.transaction.gtid is None or self.gtid != self.right.transaction.gtid:
            raise BinlogMisuse("only transactions of one GTID are compared")

    @property
    def gtid(self) -> Gtid:
        """Return the GTID of both transactions."""
        gtid = self.left.transaction.gtid
        assert gtid is not None, "the constructor has looked"
        return gtid

    @property
    def has_one_empty(self) -> bool:
        """Return whether exactly one of the two does nothing."""
        return self.left.content.is_empty != self.right.content.is_empty

    @property
    def is_one_commit(self) -> bool:
        """Return whether both logs have the same time of the first commit."""
        return are_one_commit(self.left, self.right)


def are_one_commit(left: Version, right: Version) -> bool:
    """Return whether both logs have the same time of the first commit; see *How it works*."""
    return left.committed_at is not None and left.committed_at == right.committed_at


def compare_versions(
    left: Version, right: Version, *, names_fold: bool | None = False
) -> Comparison:
    """Compare one GTID in two logs, by commit times and content.

    `names_fold`: at least one of the servers stores table names in lower case. None: this is not
    known; if names differ in letter case only, the result is then UNKNOWN.
    """
    found = _Pair(left, right, folds=bool(names_fold)).evaluated()
    if names_fold is None and found.agreement not in (Agreement.SAME, Agreement.TWICE):
        other = _Pair(left, right, folds=True).evaluated()
        if other.agreement in (Agreement.SAME, Agreement.TWICE):
            found = replace(found, agreement=Agreement.UNKNOWN, reason=_LETTER_CASE)
    return replace(found, left=left.lightened(), right=right.lightened())


def compare_all_versions(
    left: Sequence[Version], right: Sequence[Version], *, names_fold: bool | None
) -> Comparison:
    """Compare two logs of which one may have several transactions under a GTID.

    If all of them agree, or none, that is the result. Otherwise it is not known which one counts.
    """
    found = [compare_versions(a, b, names_fold=names_fold) for a in left for b in right]
    alike = [each.agreement is Agreement.SAME for each in found]
    if all(alike) or not any(alike):
        return found[-1]
    both = left if len(left) > 1 else right
    files = " and ".join(dict.fromkeys(each.transaction.file for each in both))
    why = f"{files} have two transactions under this GTID: select the files of one history"
    return replace(found[-1], agreement=Agreement.UNKNOWN, reason=why)


def _content_of(group: EventGroup) -> Content:
    """Return the content of a transaction; without a digest if the log ends within it."""
    if not group.transaction.is_complete:
        return Content(None, unreadable="its end is missing in the log")
    return content_of(group.events)


_LETTER_CASE: Final = (
    "names differ in letter case only, and lower_case_table_names of both servers is not known"
)


class _Pair:
    """Two versions of one GTID; names are converted to lower case if `folds`.

    `_is_dated`: both logs have the time of the first commit. `_is_one`: and it is the same. Without
    both times, whether there was one commit is not known (`_why_two` may show two).
    """

    def __init__(self, left: Version, right: Version, *, folds: bool) -> None:
        self._left = left
        self._right = right
        contents = left.content, right.content
        self._contents = (folded(contents[0]), folded(contents[1])) if folds else contents
        moments = left.committed_at, right.committed_at
        self._is_dated = None not in moments
        self._is_one = self._is_dated and moments[0] == moments[1]

    def evaluated(self) -> Comparison:
        """Return the comparison."""
        if any(content.is_of_each_member for content in self._contents):
            return self._of(Agreement.SAME, "a view change: every member of a group logs its own")
        if are_equal(*self._contents):
            if self._why_two() is None:
                return self._of(Agreement.SAME, "the content is equal")
            return self._of(
                Agreement.TWICE, f"{self._why_two()}, and the content is equal", is_proved=True
            )
        return self._one_commit() if self._is_one else self._unequal()

    def _why_two(self) -> str | None:
        """Return the evidence that there were two commits, or None."""
        if self._is_dated:
            return None if self._is_one else "committed at two different times"
        servers = self._left.transaction.server_id, self._right.transaction.server_id
        if servers[0] != servers[1]:
            return f"committed on two servers (server_id {servers[0]} and {servers[1]})"
        if ran_twice(*self._contents):
            return "run at two times by the clock in the logs, which replicas keep unchanged"
        return None

    def _unequal(self) -> Comparison:
        """Evaluate unequal contents of two commits, or of an unknown number of commits."""
        work, why = self._work()
        has_one_empty = self._contents[0].is_empty != self._contents[1].is_empty
        if (two := self._why_two()) is None:
            if has_one_empty and self._are_temporary_tables():
                return self._of(Agreement.SAME, _TEMPORARY_ONLY)
            if has_one_empty and self._is_work_that_every_server_logs():
                return self._of(Agreement.SKIPPED, why, has_less=self._emptied())
            return self._of(_AGREEMENTS[work], why)
        if work is Work.DIFFERENT or has_one_empty:
            return self._of(Agreement.DIFFERENT, f"{two}, and {why}", is_proved=True)
        # There were two commits, but it is not proved that they did different work.
        return self._of(Agreement.DIFFERENT, f"{two}, but {why}")

    def _one_commit(self) -> Comparison:
        """Evaluate unequal contents of one commit.

        The first answer that fits is the result, in this order:

        1. A content that cannot be read: UNKNOWN.
        2. One is empty: SKIPPED if every server would log the other's work. Otherwise the server
           with the empty one may have had nothing to log, or a filter: UNKNOWN.
        3. Statements only, as many on both: SAME. A replica cannot run another statement.
        4. One has only some of the rows of the other: SKIPPED.
        5. Rows only, and different ones: DRIFTED, because the statement found other rows.
        6. Anything else may be another form of the same work: UNKNOWN.
        """
        left, right = self._contents
        work, why = self._work()
        reason = f"one commit by its time, and {why}"
        if left.digest is None or right.digest is None:
            return self._of(Agreement.UNKNOWN, reason)
        if left.is_empty or right.is_empty:
            if self._are_temporary_tables():
                return self._of(Agreement.SAME, f"{_TEMPORARY_ONLY}: one commit by its time")
            if not self._is_work_that_every_server_logs():
                return self._of(Agreement.UNKNOWN, reason)
            return self._of(Agreement.SKIPPED, reason, has_less=self._emptied())
        if not has_rows(left, right) and len(statements_of(left)) == len(statements_of(right)):
            # A replica logs a statement unchanged, or in the server's own wording.
            return self._of(Agreement.SAME, f"one commit by its time, but {why}")
        less, fewer = rows_left_out(left, right)
        if less is not LeftOut.NONE:
            reason = f"one commit by its time, and {fewer}"
            return self._of(Agreement.SKIPPED, reason, has_less=less)
        if work is Work.DIFFERENT and has_only_rows(left, right):
            return self._of(Agreement.DRIFTED, reason)
        return self._of(Agreement.UNKNOWN, reason)

    def _is_work_that_every_server_logs(self) -> bool:
        """Return whether the content that is not empty is rows, or DDL on permanent tables.

        A server with binlog_format=ROW logs nothing for statements that change no row, or only
        temporary tables.
        """
        left, right = self._contents
        if has_rows(left, right):
            return True
        kinds = {self._left.transaction.kind, self._right.transaction.kind}
        return TransactionKind.DDL in kinds and not any(
            _TEMPORARY.match(part.sql) for each in (left, right) for part in statements_of(each)
        )

    def _are_temporary_tables(self) -> bool:
        """Return whether the statements only create or drop temporary tables, and read no rows."""
        left, right = self._contents
        statements = [*statements_of(left), *statements_of(right)]
        is_known = None not in (left.digest, right.digest) and not has_rows(left, right)
        return (
            is_known
            and bool(statements)
            and all(
                _TEMPORARY.match(part.sql) and not _READS.search(part.sql) for part in statements
            )
        )

    def _emptied(self) -> LeftOut:
        """Return which side is empty."""
        return LeftOut.LEFT if self._contents[0].is_empty else LeftOut.RIGHT

    def _work(self) -> tuple[Work, str]:
        """Compare the work of contents with different digests."""
        left, right = self._contents
        for content in (left, right):
            if content.digest is None:
                return (
                    Work.UNKNOWN,
                    f"the content of one version cannot be read ({content.unreadable})",
                )
        if left.is_empty or right.is_empty:
            return Work.UNKNOWN, "one version is empty"
        kinds = {self._left.transaction.kind, self._right.transaction.kind}
        differ = len(kinds) > 1 and bool(kinds & {TransactionKind.DDL, TransactionKind.INCIDENT})
        named = " and the other is ".join(sorted(kind.value for kind in kinds))
        return compare_parts(left, right, kinds=f"one is {named}" if differ else None)

    def _of(
        self,
        agreement: Agreement,
        reason: str,
        *,
        is_proved: bool = False,
        has_less: LeftOut = LeftOut.NONE,
    ) -> Comparison:
        is_two = self._why_two() is not None
        return Comparison(self._left, self._right, agreement, is_proved, reason, has_less, is_two)


_TEMPORARY: Final = re.compile(rb"\s*(?:CREATE|DROP)\s+TEMPORARY\b", re.IGNORECASE)
_TEMPORARY_ONLY: Final = (
    "one version has only statements on temporary tables, and the other is empty"
)
_READS: Final = re.compile(rb"\bSELECT\b", re.IGNORECASE)  # it may call a function that writes
_AGREEMENTS: Final = {
    Work.SAME: Agreement.SAME,
    Work.DIFFERENT: Agreement.DIFFERENT,
    Work.UNKNOWN: Agreement.UNKNOWN,
}
