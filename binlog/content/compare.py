"""Tells whether two logs hold the same transaction under the same GTID.

1. Three answers, and never a false alarm: the same, different, or not to be told. Servers may log
   the same work in different forms (statements or rows, full or minimal images, partial JSON, more
   columns on a replica, filters, rewritten schemas): then the forms say nothing.
2. The moment of the first commit (original_commit_timestamp, 8.0.1 and later) is handed down from
   server to server to the microsecond. Where both logs have it, equal moments mean one commit, and
   different ones two. Two with equal content are told apart: a transaction redone under its GTID,
   or a number reused for the same work. The rows agree.
3. One commit whose rows differ found other rows on one of the servers: the data had drifted apart
   before. That is no number given twice; it is told apart, and only where contents are read.
4. An empty transaction is a word of somebody's: "declared done", or a filter's. It is told apart.
5. Pure: it is given transactions and their content; adapters read them.
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import Final

from binlog.content.digest import Content, IncidentPart, Part, RowsPart, StatementPart, content_of
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
    UNKNOWN = "not to be told"


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
    """One GTID in two logs, and what they say of it.

    `is_proved`: the commits were two, which no way of logging explains. `reason` says what decided.
    """

    left: Version
    right: Version
    agreement: Agreement
    is_proved: bool
    reason: str

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
        """Tell whether exactly one of the two does nothing."""
        return self.left.content.is_empty != self.right.content.is_empty


def are_one_commit(left: Version, right: Version) -> bool:
    """Tell whether both logs say that it was committed at one moment: for that, see rule 2."""
    return left.committed_at is not None and left.committed_at == right.committed_at


def compare_versions(left: Version, right: Version) -> Comparison:
    """Judge one GTID in two logs, by the moments and by the content."""
    agreement, is_proved, reason = _judged(left, right)
    return Comparison(left.lightened(), right.lightened(), agreement, is_proved, reason)


def _content_of(group: EventGroup) -> Content:
    if not group.transaction.is_complete:
        return Content(None, unreadable="its end is not in the log")
    return content_of(group.events)


def _judged(left: Version, right: Version) -> tuple[Agreement, bool, str]:
    if left.content.is_of_each_member or right.content.is_of_each_member:
        return Agreement.SAME, False, "a view change, which every member of a group logs for itself"
    moments = {left.committed_at, right.committed_at}
    is_dated = None not in moments
    if left.content.digest is not None and left.content.digest == right.content.digest:
        if len(moments) == 1 or not is_dated:
            return Agreement.SAME, False, "the content is equal"
        return Agreement.TWICE, True, "committed at two moments, and the content is equal"
    agreement, why = _contents(left, right)
    if not is_dated:
        return agreement, False, why
    if len(moments) == 1:
        if agreement is Agreement.DIFFERENT and _is_of_rows(left.content, right.content):
            return Agreement.DRIFTED, False, f"one commit by its time, and {why}"
        # Statements are handed down as they are, or as a server words them anew.
        return Agreement.SAME, False, f"one commit by its time, though {why}"
    if agreement is Agreement.DIFFERENT or left.content.is_empty != right.content.is_empty:
        return Agreement.DIFFERENT, True, f"committed at two moments, and {why}"
    # Two commits for sure; that they did different things is not.
    return Agreement.DIFFERENT, False, f"committed at two moments, though {why}"


def _is_of_rows(*contents: Content) -> bool:
    """Tell whether they have rows and nothing else."""
    return all(isinstance(part, RowsPart) for each in contents for part in each.parts)


def _contents(left: Version, right: Version) -> tuple[Agreement, str]:
    """Say whether contents with different digests differ, or were only logged differently."""
    for version in (left, right):
        if version.content.digest is None:
            why = f"the content of one cannot be read ({version.content.unreadable})"
            return Agreement.UNKNOWN, why
    if left.content.is_empty or right.content.is_empty:
        return Agreement.UNKNOWN, "one of them is empty"
    if _creates_from_rows(left.content) != _creates_from_rows(right.content):
        return Agreement.UNKNOWN, _OTHER_FORM
    kinds = {left.transaction.kind, right.transaction.kind}
    if len(kinds) > 1 and kinds & {TransactionKind.DDL, TransactionKind.INCIDENT}:
        return (
            Agreement.DIFFERENT,
            f"one is {' and the other '.join(sorted(k.value for k in kinds))}",
        )
    if _differ_in_errors_only(left.content, right.content):
        return Agreement.SAME, "the statements are the same, and did not end with the same error"
    statements = _statements(left.content), _statements(right.content)
    rows = _runs(left.content), _runs(right.content)
    if len(statements[0]) != len(statements[1]) and (rows[0] or rows[1]):
        return Agreement.UNKNOWN, _OTHER_FORM
    agreement, why = _compare_statements(*statements)
    if agreement is Agreement.DIFFERENT:
        return agreement, why
    by_rows = _compare_rows(*rows)
    if by_rows is not None:
        return by_rows
    if agreement is Agreement.UNKNOWN:
        return agreement, why
    if left.content.is_cut or right.content.is_cut:
        return Agreement.UNKNOWN, "they differ only beyond what is kept of so many statements"
    return _rest(left.content, right.content)


_OTHER_FORM: Final = "one was logged as statements and the other as rows"
# With binlog_format=ROW, CREATE TABLE … SELECT is one transaction from 8.0.21 on: a statement that
# ends so, and the rows (sql/sql_table.cc). As a statement it is DDL like any other.
_CREATED_FROM_ROWS: Final = b" START TRANSACTION"


def _creates_from_rows(content: Content) -> bool:
    return any(part.sql.endswith(_CREATED_FROM_ROWS) for part in _statements(content))


def _differ_in_errors_only(left: Content, right: Content) -> bool:
    """Tell whether what was done is equal: a statement may end with an error on one server (A1)."""
    return not left.is_cut and not right.is_cut and _done(left) == _done(right)


def _done(content: Content) -> list[Part]:
    return [
        replace(part, error_code=0) if isinstance(part, StatementPart) else part
        for part in content.parts
    ]


def _rest(left: Content, right: Content) -> tuple[Agreement, str]:
    """Statements and runs are pairwise equal: what is left is what stands between, or incidents."""
    if _incidents(left) != _incidents(right):
        return Agreement.DIFFERENT, "the incidents differ"
    return Agreement.UNKNOWN, "they have the same parts in another order"


def _incidents(content: Content) -> list[IncidentPart]:
    return [part for part in content.parts if isinstance(part, IncidentPart)]


def _statements(content: Content) -> list[StatementPart]:
    return [part for part in content.parts if isinstance(part, StatementPart)]


# Statements that a server writes anew in its own words: accounts, with hashes for passwords.
_REWORDED = (b"CREATE USER", b"ALTER USER", b"DROP USER", b"GRANT", b"REVOKE", b"SET PASSWORD")


def _compare_statements(
    left: list[StatementPart], right: list[StatementPart]
) -> tuple[Agreement, str]:
    if len(left) != len(right):
        return Agreement.DIFFERENT, "the statements differ in number"
    doubt = None
    for ours, theirs in zip(left, right, strict=True):
        if ours.sql != theirs.sql:
            if not _is_reworded(ours.sql, theirs.sql):
                return Agreement.DIFFERENT, "the statements differ"
            doubt = "a statement is worded differently"
        elif ours.context != theirs.context:
            return Agreement.DIFFERENT, "what was logged with a statement differs"
        elif ours != theirs:
            doubt = "a statement ran under other settings, or ended with another error"
    if doubt is not None:
        return Agreement.UNKNOWN, doubt
    return Agreement.SAME, "the statements are equal"


def _is_reworded(left: bytes, right: bytes) -> bool:
    """Tell whether two servers may have logged one statement as these two."""
    for word in _REWORDED:
        if left.upper().startswith(word) and right.upper().startswith(word):
            return True
    return _plain(left) == _plain(right) or _is_created_anew(left, right)


# A server that logs rows writes the columns where the client wrote from where to take them, if that
# is a temporary table (mysql_create_like_table, sql/sql_table.cc) or a query.
_CREATED = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?(?:\S+\.)?(?P<name>\S+)", re.IGNORECASE)
_TAKEN_FROM = re.compile(rb"\b(?:LIKE|SELECT)\b", re.IGNORECASE)


def _is_created_anew(left: bytes, right: bytes) -> bool:
    """Tell whether one statement may be the other's CREATE TABLE … LIKE or SELECT, written out."""
    created = [_CREATED.match(_plain(sql)) for sql in (left, right)]
    names = {match["name"] for match in created if match is not None}
    taken = [_TAKEN_FROM.search(sql) is not None for sql in (left, right)]
    return None not in created and len(names) == 1 and taken[0] != taken[1]


# What a server adds to statements that it writes itself: of temporary tables it drops more than
# it was told to, if there are such (sql/sql_table.cc, mysql_rm_table_no_locks).
_ADDED = (b"/* generated by server */", b"`", b"IF EXISTS ")


def _plain(sql: bytes) -> bytes:
    """Leave out what a server may add or change when it writes a statement itself."""
    for word in _ADDED:
        sql = sql.replace(word, b"")
    return b" ".join(sql.split())


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring parts of one table and kind: minimal images cut more runs than full ones."""

    schema: str
    table: str
    kind: str
    parts: tuple[RowsPart, ...]

    @property
    def work(self) -> tuple[str, str, str]:
        return self.schema, self.table, self.kind


def _runs(content: Content) -> list[_Run]:
    rows = [part for part in content.parts if isinstance(part, RowsPart)]
    grouped = groupby(rows, key=lambda part: (part.schema, part.table, part.kind.value))
    return [_Run(*key, tuple(parts)) for key, parts in grouped]


def _compare_rows(left: list[_Run], right: list[_Run]) -> tuple[Agreement, str] | None:
    """Compare the runs of rows; None if they are equal."""
    if [run.work for run in left] != [run.work for run in right]:
        return _compare_tables(left, right)
    doubt = False
    for ours, theirs in zip(left, right, strict=True):
        if [part.form for part in ours.parts] != [part.form for part in theirs.parts]:
            doubt = True
        elif ours.parts != theirs.parts:
            return Agreement.DIFFERENT, f"the rows of {ours.schema}.{ours.table} differ"
    return (Agreement.UNKNOWN, "the rows were logged in different forms") if doubt else None


def _compare_tables(left: list[_Run], right: list[_Run]) -> tuple[Agreement, str]:
    """Tell whether other tables, or other work on them, can be a replica's doing."""
    tables = [{(run.schema, run.table) for run in runs} for runs in (left, right)]
    if tables[0] == tables[1]:
        return Agreement.DIFFERENT, "what was done to the tables differs"
    if tables[0] < tables[1] or tables[1] < tables[0]:
        return Agreement.UNKNOWN, "one leaves out tables, as a filter does"
    if {name for _, name in tables[0]} == {name for _, name in tables[1]}:
        return Agreement.UNKNOWN, "only the schemas differ, as a rewrite does"
    return Agreement.DIFFERENT, "the tables differ"
