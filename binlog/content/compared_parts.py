"""Compares the parts of two contents: statements with statements, rows with rows.

How it works
------------
A content is a list of parts (binlog/content/content_digest.py): statements, runs of rows,
incidents. Two servers may log the same work in different forms. So different lists alone prove
nothing. The module answers two questions:

1. `compare_parts`: do the parts do different work? The answer is SAME, DIFFERENT or UNKNOWN. It is
   never DIFFERENT if the form alone may explain the difference.
2. `rows_left_out`: did one server skip rows of one commit? A replica applies the rows that its
   source logged. If one list has only some of the rows of the other, table by table, then one
   server skipped rows, in whatever form each logged them.

Example: the source logged `d.t: 2 rows written`, the replica `d.t: 1 row written`. If the commit
times differ, these are two transactions (question 1: the rows differ). If they are equal, the
replica skipped a row (question 2: "one has 1 of 2 rows of d.t").

Rows are counted by table and kind. A run with a count of 0 may contain rows without any logged
column (minimal row images). Then counts prove nothing.

Statements: equal text is equal work only if everything that affects the result is equal, including
the clock (binlog/content/content_digest.py). Some DDL has the same result at any time: `_TIMELESS`.

Names: a server with lower_case_table_names = 1 stores names in lower case, so one table may have
two spellings in two logs. `folded` converts all names of a content to lower case.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Final

from binlog.content.content_digest import Content, IncidentPart, Part, RowsPart, StatementPart
from binlog.content.temporary import drop_the_same_temporary


class Work(Enum):
    """Whether the parts of two contents do the same work."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "not comparable"


class LeftOut(Enum):
    """Which of two contents has only some of the rows of the other."""

    NONE = "neither"
    LEFT = "left"
    RIGHT = "right"


OTHER_FORM: Final = "one version was logged as statements and the other as rows"
OTHER_ORDER: Final = "both versions have the same parts, in a different order"
OTHER_ROW_FORM: Final = "the rows were logged in different forms"


def folded(content: Content) -> Content:
    """Return the content with the names of schemas and tables in lower case."""
    parts = tuple(_folded(part) for part in content.parts)
    return replace(content, parts=parts)


def _folded(part: Part) -> Part:
    match part:
        case RowsPart():
            return replace(part, schema=part.schema.lower(), table=part.table.lower())
        case StatementPart():
            # A client's text stays unchanged; in its own statements a server writes stored names.
            sql = part.sql.lower() if _BY_THE_SERVER in part.sql else part.sql
            return replace(part, schema=part.schema.lower(), sql=sql)
    return part


def are_equal(left: Content, right: Content) -> bool:
    """Return whether both contents are the same work, with the same result."""
    if left.digest is None or right.digest is None:
        return False
    if left.digest == right.digest:  # the digest does not cover what only some servers log
        return all(map(_is_one_session, left.parts, right.parts))
    is_whole = not left.is_cut and not right.is_cut and len(left.parts) == len(right.parts)
    return is_whole and all(map(_are_equal_parts, left.parts, right.parts))


def ran_twice(left: Content, right: Content) -> bool:
    """Return whether the same statements, or the same row changes, ran at two times.

    A replica uses the clock of its source, and logs that time with statements and rows.
    """
    if left.is_cut or right.is_cut or len(left.parts) != len(right.parts):
        return False
    pairs = list(zip(left.parts, right.parts, strict=True))
    return all(_is_repeated(ours, theirs) for ours, theirs in pairs) and any(
        _clock_of(ours) != _clock_of(theirs) for ours, theirs in pairs
    )


def _is_repeated(ours: Part, theirs: Part) -> bool:
    match ours, theirs:
        case StatementPart(), StatementPart():
            return ours.sql == theirs.sql
    return ours == theirs


def _clock_of(part: Part) -> int:
    return 0 if isinstance(part, IncidentPart) else part.began_at_seconds


def compare_parts(left: Content, right: Content, *, kinds: str | None) -> tuple[Work, str]:
    """Compare two contents with different digests, neither of which is empty or unreadable.

    `kinds` describes how the transactions' kinds differ, if no form of logging explains that.
    """
    if _creates_from_rows(left) != _creates_from_rows(right):
        return Work.UNKNOWN, OTHER_FORM
    if kinds is not None:
        return Work.DIFFERENT, kinds
    if _differ_in_errors_only(left, right):
        return Work.SAME, "the statements are the same, but ended with different errors"
    statements = statements_of(left), statements_of(right)
    rows = _runs(left), _runs(right)
    if len(statements[0]) != len(statements[1]) and (rows[0] or rows[1]):
        return Work.UNKNOWN, OTHER_FORM
    work, why = _compare_statements(*statements)
    if work is Work.DIFFERENT:
        return work, why
    by_rows = _compare_rows(*rows)
    if by_rows is not None:
        return by_rows
    if work is Work.UNKNOWN:
        return work, why
    if left.is_cut or right.is_cut:
        return Work.UNKNOWN, "they differ only in parts after the last compared one"
    return _rest(left, right)


def rows_left_out(left: Content, right: Content) -> tuple[LeftOut, str]:
    """Return which of two contents of one commit has only some of the other's rows, and why.

    Only rows that both servers logged as rows are counted.
    """
    if left.is_cut or right.is_cut or len(statements_of(left)) != len(statements_of(right)):
        return LeftOut.NONE, ""
    if _creates_from_rows(left) != _creates_from_rows(right):
        return LeftOut.NONE, ""
    if _has_uncounted_rows(left) or _has_uncounted_rows(right):
        return LeftOut.NONE, ""
    ours, theirs = _row_counts(left), _row_counts(right)
    if {name for _, name, _ in ours} == {name for _, name, _ in theirs} and (
        {schema for schema, _, _ in ours} != {schema for schema, _, _ in theirs}
    ):
        return LeftOut.NONE, ""  # a rewritten schema (replicate-rewrite-db)
    if not (ours < theirs or theirs < ours):
        return LeftOut.NONE, ""
    fewer, more = (ours, theirs) if ours < theirs else (theirs, ours)
    side = LeftOut.LEFT if fewer is ours else LeftOut.RIGHT
    [table, *others] = sorted(key for key in more if fewer[key] != more[key])
    why = f"one version has {fewer[table]:,} of {more[table]:,} rows of {table[0]}.{table[1]}"
    return side, why + (f", and fewer rows in other tables ({len(others):,})" if others else "")


def has_only_rows(*contents: Content) -> bool:
    """Return whether all parts are rows."""
    return all(isinstance(part, RowsPart) for each in contents for part in each.parts)


def has_rows(*contents: Content) -> bool:
    """Return whether any part is rows."""
    return any(isinstance(part, RowsPart) for each in contents for part in each.parts)


def statements_of(content: Content) -> list[StatementPart]:
    """Return the statements of a content, in order."""
    return [part for part in content.parts if isinstance(part, StatementPart)]


# ---- rows -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    """Adjacent parts of one table and kind: minimal images form more parts than full ones."""

    schema: str
    table: str
    kind: str
    parts: tuple[RowsPart, ...]

    @property
    def work(self) -> tuple[str, str, str]:
        return self.schema, self.table, self.kind


def _rows_of(content: Content) -> list[RowsPart]:
    return [part for part in content.parts if isinstance(part, RowsPart)]


def _runs(content: Content) -> list[_Run]:
    grouped = groupby(
        _rows_of(content), key=lambda part: (part.schema, part.table, part.kind.value)
    )
    return [_Run(*key, tuple(parts)) for key, parts in grouped]


def _row_counts(content: Content) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for part in _rows_of(content):
        counts[part.schema, part.table, part.kind.value] += part.row_count
    return counts


def _has_uncounted_rows(content: Content) -> bool:
    return any(not part.row_count for part in _rows_of(content))


def _compare_rows(left: list[_Run], right: list[_Run]) -> tuple[Work, str] | None:
    """Compare the runs of rows; None if they are equal."""
    if [run.work for run in left] != [run.work for run in right]:
        return _compare_tables(left, right)
    doubt = False
    for ours, theirs in zip(left, right, strict=True):
        if [part.shape for part in ours.parts] != [part.shape for part in theirs.parts]:
            doubt = True
        elif ours.parts != theirs.parts:
            return Work.DIFFERENT, f"the rows of {ours.schema}.{ours.table} differ"
    return (Work.UNKNOWN, OTHER_ROW_FORM) if doubt else None


def _compare_tables(left: list[_Run], right: list[_Run]) -> tuple[Work, str]:
    """Return whether replication can explain that the tables, or the work on them, differ."""
    tables = [{(run.schema, run.table) for run in runs} for runs in (left, right)]
    if tables[0] == tables[1]:
        if Counter(part for run in left for part in run.parts) == (
            Counter(part for run in right for part in run.parts)
        ):
            return Work.UNKNOWN, OTHER_ORDER
        return Work.DIFFERENT, "the changes to the tables differ"
    if tables[0] < tables[1] or tables[1] < tables[0]:
        return Work.UNKNOWN, "one version omits tables, as a filter does"
    if {name for _, name in tables[0]} == {name for _, name in tables[1]}:
        return Work.UNKNOWN, "only the schemas differ, as a rewrite does"
    return Work.DIFFERENT, "the tables differ"


# ---- statements -------------------------------------------------------------------------------

# Since 8.0.21, binlog_format=ROW logs CREATE TABLE … SELECT as one transaction: a statement with
# this ending, and the rows (sql/sql_table.cc). Logged as a statement it is ordinary DDL.
_CREATED_FROM_ROWS: Final = b" START TRANSACTION"


def _creates_from_rows(content: Content) -> bool:
    return any(part.sql.endswith(_CREATED_FROM_ROWS) for part in statements_of(content))


def _differ_in_errors_only(left: Content, right: Content) -> bool:
    """Return whether only error codes differ: a statement may fail on one server only (A1)."""
    without = [
        replace(
            content,
            parts=tuple(
                replace(part, error_code=0) if isinstance(part, StatementPart) else part
                for part in content.parts
            ),
        )
        for content in (left, right)
    ]
    return are_equal(without[0], without[1])


def _rest(left: Content, right: Content) -> tuple[Work, str]:
    """Compare incidents and order, when the statements and the runs are equal in pairs."""
    if _incidents(left) != _incidents(right):
        return Work.DIFFERENT, "the incidents differ"
    return Work.UNKNOWN, OTHER_ORDER


def _incidents(content: Content) -> list[IncidentPart]:
    return [part for part in content.parts if isinstance(part, IncidentPart)]


# Account statements: a server logs them in its own wording, with hashes for passwords.
_REWORDED = (b"CREATE USER", b"ALTER USER", b"DROP USER", b"GRANT", b"REVOKE", b"SET PASSWORD")


def _compare_statements(left: list[StatementPart], right: list[StatementPart]) -> tuple[Work, str]:
    if len(left) != len(right):
        return Work.DIFFERENT, "the number of statements differs"
    doubt = None
    for ours, theirs in zip(left, right, strict=True):
        if drop_the_same_temporary(ours.sql, theirs.sql):
            continue
        if ours.sql != theirs.sql:
            if not _is_reworded(ours.sql, theirs.sql):
                return Work.DIFFERENT, "the statements differ"
            doubt = "a statement is worded differently"
        elif ours.context != theirs.context:
            return Work.DIFFERENT, "the values logged with a statement differ"
        elif not _are_equal_parts(replace(ours, began_at_seconds=theirs.began_at_seconds), theirs):
            doubt = "a statement ran with different settings, or ended with a different error"
        elif not _are_equal_parts(ours, theirs):
            doubt = doubt or "the statements are equal, but their results may depend on the time"
    if doubt is not None:
        return Work.UNKNOWN, doubt
    return Work.SAME, "the statements are equal"


def _are_equal_parts(left: Part, right: Part) -> bool:
    match left, right:
        case StatementPart(), StatementPart():
            ran = (left.began_at_seconds, left.error_code)
            is_once = ran == (right.began_at_seconds, right.error_code)
            if is_once and drop_the_same_temporary(left.sql, right.sql):
                return True
            return _as_compared(left) == _as_compared(right) and _is_one_session(left, right)
    return left == right


def _as_compared(part: StatementPart) -> StatementPart:
    session = replace(part.session, used=())
    if _is_timeless(part.sql):
        return replace(part, session=session, began_at_seconds=0)
    return replace(part, session=session)


def _is_one_session(left: Part, right: Part) -> bool:
    """Return whether the settings that both servers logged because they were used are equal."""
    match left, right:
        case StatementPart(), StatementPart():
            return all(
                ours == theirs
                for ours, theirs in zip(left.session.used, right.session.used, strict=True)
                if ours is not None and theirs is not None
            )
    return True


# DDL whose result does not depend on the clock, because it fills no column with a time.
_TIMELESS: Final = re.compile(
    rb"""\s*(?:
        DROP | TRUNCATE | RENAME | GRANT | REVOKE | ANALYZE | OPTIMIZE | REPAIR | FLUSH
      | (?:CREATE | ALTER) \s+ (?:DATABASE | SCHEMA | USER | ROLE)
      | CREATE \s+ (?:(?:UNIQUE | FULLTEXT | SPATIAL) \s+)? INDEX
      | CREATE \s+ (?:OR \s+ REPLACE \s+)? (?:ALGORITHM \s* = \s* \w+ \s+)?
        (?:DEFINER \s* = \s* \S+ \s+)? (?:SQL \s+ SECURITY \s+ \w+ \s+)?
        (?:VIEW | PROCEDURE | FUNCTION | TRIGGER)
      | CREATE \s+ (?:TEMPORARY \s+)? TABLE \b (?! .* \b (?:SELECT | VALUES | TABLE) \b)
      | ALTER \s+ TABLE \b
        (?! .* (?:TIMESTAMP | DATETIME | NOW | CURRENT | CURDATE | CURTIME | LOCALTIME | SYSDATE
        | UTC_ | UUID | DEFAULT \s* \())
    )\b""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def _is_timeless(sql: bytes) -> bool:
    return _TIMELESS.match(sql) is not None


def _is_reworded(left: bytes, right: bytes) -> bool:
    """Return whether two servers may have logged one statement in these two forms."""
    for word in _REWORDED:
        if left.upper().startswith(word) and right.upper().startswith(word):
            return True
    plain = _plain(left), _plain(right)
    if _BY_THE_SERVER in left and _BY_THE_SERVER in right:  # each server writes stored names
        plain = plain[0].lower(), plain[1].lower()
    return plain[0] == plain[1] or _is_created_anew(left, right)


# With binlog_format=ROW, a server logs the column list instead of LIKE a temporary table
# (mysql_create_like_table, sql/sql_table.cc) or instead of a query.
_CREATED = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?(?:\S+\.)?(?P<name>\S+)", re.IGNORECASE)
_TAKEN_FROM = re.compile(rb"\b(?:LIKE|SELECT)\b", re.IGNORECASE)


def _is_created_anew(left: bytes, right: bytes) -> bool:
    """Return whether one may be the other's CREATE TABLE … LIKE or SELECT with all columns."""
    created = [_CREATED.match(_plain(sql)) for sql in (left, right)]
    names = {match["name"] for match in created if match is not None}
    taken = [_TAKEN_FROM.search(sql) is not None for sql in (left, right)]
    return None not in created and len(names) == 1 and taken[0] != taken[1]


# What a server adds to statements that it writes itself, such as DROP statements for temporary
# tables (sql/sql_table.cc, mysql_rm_table_no_locks).
_BY_THE_SERVER: Final = b"/* generated by server */"
_ADDED = (_BY_THE_SERVER, b"`", b"IF EXISTS ")


def _plain(sql: bytes) -> bytes:
    """Remove what a server may add or change when it writes a statement itself."""
    for word in _ADDED:
        sql = sql.replace(word, b"")
    return b" ".join(sql.split())
