"""Compares what two logs hold under the same GTID.

1. Never a false alarm, and never "the same" about what was not compared. Servers may log the same
   work in different forms (statements or rows, full or minimal images, partial JSON, more columns
   on a replica, filters, rewritten schemas): then forms prove nothing, and the answer is UNKNOWN.
2. The moment of the first commit (original_commit_timestamp, 8.0.1 and later) is passed on from
   server to server to the microsecond. Where both logs have it, equal moments mean one commit, and
   different ones two. Before 8.0.1 different server_ids mean two commits: a replica logs the
   server_id of the server that committed first (Log_event::server_id, sql/log_event.h). So do two
   timestamps of equal statements: a replica runs a statement by its source's clock, and logs that.
   Two commits with equal content are reported separately: a transaction redone under its GTID, or a
   GTID reused for the same work. The transactions agree.
3. One commit whose rows differ found other rows on one of the servers: the data had drifted apart
   before. One commit of which one log has fewer rows, or nothing, was skipped there: by an error
   that the server ignores (replica_skip_errors, replica_exec_mode=IDEMPOTENT), or by a filter.
   Neither is a reused GTID.
4. Servers with different lower_case_table_names spell names differently: see `names_fold`.
5. Pure: it gets transactions and their content; adapters read them. What the parts of a content
   prove is in parts.py.
"""

import re
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
from binlog.content.digest import Content, content_of
from binlog.errors import BinlogMisuse
from binlog.scan import EventGroup
from binlog.transactions import Transaction, TransactionKind
from gtid import Gtid

# Of transactions up to this size the events are kept with what is compared.
EVENT_BYTES_KEPT: Final = 8 * 1024


class Agreement(Enum):
    """Whether two logs hold one transaction under one GTID."""

    SAME = "same"
    TWICE = "committed twice, with equal content"
    DIFFERENT = "different"
    DRIFTED = "one commit, applied to other rows"
    SKIPPED = "one commit, and one log has less of it"
    UNKNOWN = "not comparable"


@dataclass(frozen=True, slots=True)
class Version:
    """A transaction as one log has it. Its content is read when it is first asked for."""

    transaction: Transaction
    # None once the content has been read, if they are more than EVENT_BYTES_KEPT.
    events: EventGroup | None = None
    _content: list[Content] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, group: EventGroup) -> "Version":
        """Take what is compared from a transaction and its events."""
        return cls(group.transaction, group)

    @property
    def content(self) -> Content:
        """Return what the transaction does."""
        if not self._content:
            assert self.events is not None, "they are let go only once the content is known"
            self._content.append(_content_of(self.events))
        return self._content[0]

    def lightened(self) -> "Version":
        """Return it with its content read, and without events that are many bytes."""
        assert self.content is not None
        if self.events is None:
            return self
        size = sum(event.header.event_bytes for event in self.events.events)
        return self if size <= EVENT_BYTES_KEPT else replace(self, events=None)

    @property
    def committed_at(self) -> int | None:
        """Return the moment of the first commit, in microseconds since 1970; None if unknown.

        A source older than 8.0.1 hands none down, and a later server then writes 0.
        """
        return self.transaction.original_commit_timestamp or None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One GTID in two logs, and whether they hold one transaction.

    `is_proved`: the commits were two, and did other work, which no form of logging explains, or the
    same. `is_two_commits`: they were two, whatever they did. `reason` is what decided.
    """

    left: Version
    right: Version
    agreement: Agreement
    is_proved: bool
    reason: str
    has_less: LeftOut = LeftOut.NONE  # the log that has fewer rows, or nothing, where SKIPPED
    is_two_commits: bool = False

    def __post_init__(self) -> None:
        if self.left.transaction.gtid is None or self.gtid != self.right.transaction.gtid:
            raise BinlogMisuse("only transactions of one GTID are compared")

    @property
    def gtid(self) -> Gtid:
        """Return the GTID that both carry."""
        gtid = self.left.transaction.gtid
        assert gtid is not None, "the constructor has looked"
        return gtid

    @property
    def has_one_empty(self) -> bool:
        """Return whether exactly one of the two does nothing."""
        return self.left.content.is_empty != self.right.content.is_empty

    @property
    def is_one_commit(self) -> bool:
        """Return whether both logs have the same moment of the first commit."""
        return are_one_commit(self.left, self.right)


def are_one_commit(left: Version, right: Version) -> bool:
    """Return whether both logs say that it was committed at one moment: for that, see rule 2."""
    return left.committed_at is not None and left.committed_at == right.committed_at


def compare_versions(
    left: Version, right: Version, *, names_fold: bool | None = False
) -> Comparison:
    """Compare one GTID in two logs, by the moments and by the content.

    `names_fold`: at least one of the servers stores the names of tables in lower case. None: that
    is not known; names that differ in letter case only are then UNKNOWN.
    """
    found = _Pair(left, right, folds=bool(names_fold)).judged()
    if names_fold is None and found.agreement not in (Agreement.SAME, Agreement.TWICE):
        other = _Pair(left, right, folds=True).judged()
        if other.agreement in (Agreement.SAME, Agreement.TWICE):
            found = replace(found, agreement=Agreement.UNKNOWN, reason=_LETTER_CASE)
    return replace(found, left=left.lightened(), right=right.lightened())


def _content_of(group: EventGroup) -> Content:
    if not group.transaction.is_complete:
        return Content(None, unreadable="its end is not in the log")
    return content_of(group.events)


_LETTER_CASE: Final = (
    "names differ in letter case only, and lower_case_table_names of both servers is not known"
)


class _Pair:
    """Two versions of one GTID, with names in lower case if they fold."""

    def __init__(self, left: Version, right: Version, *, folds: bool) -> None:
        self._left = left
        self._right = right
        contents = left.content, right.content
        self._contents = (folded(contents[0]), folded(contents[1])) if folds else contents
        moments = left.committed_at, right.committed_at
        self._is_dated = None not in moments
        self._is_one = self._is_dated and moments[0] == moments[1]

    def judged(self) -> Comparison:
        """Return the answer."""
        if any(content.is_of_each_member for content in self._contents):
            return self._of(
                Agreement.SAME, "a view change, which every member of a group logs for itself"
            )
        if are_equal(*self._contents):
            if self._why_two() is None:
                return self._of(Agreement.SAME, "the content is equal")
            return self._of(
                Agreement.TWICE, f"{self._why_two()}, and the content is equal", is_proved=True
            )
        return self._one_commit() if self._is_one else self._unequal()

    def _why_two(self) -> str | None:
        """Return what proves that there were two commits, or None."""
        if self._is_dated:
            return None if self._is_one else "committed at two moments"
        servers = self._left.transaction.server_id, self._right.transaction.server_id
        if servers[0] != servers[1]:
            return f"committed on two servers (server_id {servers[0]} and {servers[1]})"
        if ran_twice(*self._contents):
            return "run at two times by the clock in the logs, which a replica keeps"
        return None

    def _unequal(self) -> Comparison:
        """Evaluate two commits, or two versions of which the number of commits is not known."""
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
        # Two commits for sure; that they did different things is not.
        return self._of(Agreement.DIFFERENT, f"{two}, though {why}")

    def _one_commit(self) -> Comparison:
        """Evaluate two logs of one commit whose contents are not equal."""
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
            # Statements are passed on as they are, or as a server words them anew.
            return self._of(Agreement.SAME, f"one commit by its time, though {why}")
        less, fewer = rows_left_out(left, right)
        if less is not LeftOut.NONE:
            reason = f"one commit by its time, and {fewer}"
            return self._of(Agreement.SKIPPED, reason, has_less=less)
        if work is Work.DIFFERENT and has_only_rows(left, right):
            return self._of(Agreement.DRIFTED, reason)
        return self._of(Agreement.UNKNOWN, reason)

    def _is_work_that_every_server_logs(self) -> bool:
        """Return whether the one that is not empty is rows, or DDL on what is not temporary.

        A server that logs rows has nothing to log for statements that change no row, or only
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
        """Return whether nothing but temporary tables is made or dropped, and no rows are read."""
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
        return LeftOut.LEFT if self._contents[0].is_empty else LeftOut.RIGHT

    def _work(self) -> tuple[Work, str]:
        """Compare the work of contents with different digests."""
        left, right = self._contents
        for content in (left, right):
            if content.digest is None:
                return (
                    Work.UNKNOWN,
                    f"the content of one cannot be read ({content.unreadable})",
                )
        if left.is_empty or right.is_empty:
            return Work.UNKNOWN, "one of them is empty"
        kinds = {self._left.transaction.kind, self._right.transaction.kind}
        differ = len(kinds) > 1 and bool(kinds & {TransactionKind.DDL, TransactionKind.INCIDENT})
        named = " and the other ".join(sorted(kind.value for kind in kinds))
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
_TEMPORARY_ONLY: Final = "one has temporary tables, and the other nothing"
_READS: Final = re.compile(rb"\bSELECT\b", re.IGNORECASE)  # it may call what writes
_AGREEMENTS: Final = {
    Work.SAME: Agreement.SAME,
    Work.DIFFERENT: Agreement.DIFFERENT,
    Work.UNKNOWN: Agreement.UNKNOWN,
}
