"""Compares the rows of two live servers, part after part; it only reads them.

How it works
------------
1. A part that has the same checksum on both servers is the same. That is one statement on each.
2. A part that has not is read row by row, as part_comparison.py says, until each row is the same,
   or different twice. Rows that clients write all the time leave it unsettled.
3. Each statement is a read without locks on InnoDB. A table of an engine whose reads lock it
   (MyISAM) is not read.
4. The next part has as many rows as took about half a second. Before each part the check waits
   while a server has more running threads than `threads_running_max`.
5. A part is recorded as soon as it is compared, so that the next run goes on behind it.

A replica that is further behind than `behind_seconds_max` leaves parts unsettled, not different.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pymysql

from binlog.adapters.server_errors import server_words
from gtid import GtidSet
from repair.adapters.checked_server import CheckedServer
from repair.adapters.data_check_record import open_record
from repair.data_check.check_limits import CheckLimits, CheckScope
from repair.data_check.checked_data import (
    ROWS_KEPT_MAX,
    CheckedData,
    CheckedPart,
    CheckedTableResult,
    PartState,
    UnlikeRow,
)
from repair.data_check.checked_tables import (
    CheckedTable,
    TablePair,
    common_form,
    common_key,
    definition_of,
    unlike_columns,
)
from repair.data_check.part_comparison import PartOutcome, RowDigests, compared, confirmed
from repair.data_check.part_queries import (
    KeyValues,
    PartBounds,
    PartChecksum,
    bound_query,
    checksum_from,
    checksum_query,
    key_from,
    rows_query,
    shown_key,
)
from repair.sql.script import transactions
from topology.adapters.answered_rows import only_row
from topology.readings.target import ServerTarget

_PART_ROWS_MIN: Final = 100
_PART_ROWS_MAX: Final = 20_000  # whose keys and digests are below the limit of one answer
_PART_SECONDS: Final = 0.5
_ROUNDS_MAX: Final = 6
_POLL_SECONDS: Final = 0.2
# Reads of other engines lock the table against writes.
_ENGINES: Final = ("INNODB", "ROCKSDB")
_NO_KEY_ROWS_MAX: Final = 1_000_000


Record = Callable[[CheckedPart], None]
Say = Callable[[str], None]


class SameServer(Exception):
    """Both addresses lead to one server."""


class StillBehind(Exception):
    """A server has not executed in time what the other one has."""


def check_data(
    left: ServerTarget,
    right: ServerTarget,
    scope: CheckScope,
    *,
    limits: CheckLimits,
    record: Path | None = None,
    say: Say,
) -> CheckedData:
    """Compare the tables of a scope, and go on with `record` if an earlier run began it.

    What could not be read is UNKNOWN in the result, never an exception. `say` shows progress.

    Raises:
        SameServer: both addresses lead to one server.
        UnreadableRecord: the record is of other servers, or damaged.
        OSError: the record cannot be read or written.
    """
    with ExitStack() as opened:
        try:
            ours, theirs = (
                opened.enter_context(closing(_connected(each, limits))) for each in (left, right)
            )
            servers = ours.server_uuid(), theirs.server_uuid()
        except (pymysql.MySQLError, ConnectionError, ValueError) as error:
            return CheckedData(left.name, right.name, [], server_words(error))
        if servers[0] == servers[1]:
            raise SameServer(f"{left.name} and {right.name} are the same server ({servers[0]})")
        done: Sequence[CheckedPart] = ()
        add: Record = _unrecorded
        if record is not None:
            kept = opened.enter_context(open_record(record, servers))
            done, add = kept.done, kept.add
        try:
            apart = _apart(ours, theirs) if limits.as_they_are else ""
            tables = _Check(ours, theirs, limits, add, say).run(scope, done)
        except (pymysql.MySQLError, ConnectionError, ValueError) as error:
            return CheckedData(left.name, right.name, [], server_words(error))
    unread = "" if tables else "neither server shows a table of these to this account"
    return CheckedData(left.name, right.name, tables, unread, len(done), apart)


def _apart(left: CheckedServer, right: CheckedServer) -> str:
    """Return what one of two servers has executed and the other one has not; "" if nothing."""
    executed = left.executed(), right.executed()
    texts = [
        f"{side.name} has not executed {transactions(missing.gtid_count)} of {of.name}:"
        f" {missing.shortened()}"
        for side, of, missing in (
            (right, left, executed[0] - executed[1]),
            (left, right, executed[1] - executed[0]),
        )
        if missing
    ]
    return "; ".join(texts)


def _connected(target: ServerTarget, limits: CheckLimits) -> CheckedServer:
    return CheckedServer(
        target,
        connect_seconds_max=limits.connect_seconds_max,
        statement_seconds_max=limits.statement_seconds_max,
    )


def _unrecorded(_: CheckedPart) -> None:
    """Record nothing: no file was named."""


class _Check:
    """The comparison of two servers, table by table."""

    def __init__(
        self,
        left: CheckedServer,
        right: CheckedServer,
        limits: CheckLimits,
        record: Record,
        say: Say,
    ) -> None:
        self._left, self._right, self._limits = left, right, limits
        self._record, self._say = record, say
        self._part_rows = 1_000
        self._not_awaited = {left.name: GtidSet(), right.name: GtidSet()}
        self._table_of = ""  # "table 3 of 20"
        self._json_form = common_form(left.json_form(), right.json_form())

    def run(self, scope: CheckScope, done: Sequence[CheckedPart]) -> list[CheckedTableResult]:
        """Compare the tables of a scope. Raises pymysql.MySQLError: no table could be listed."""
        left, right = self._tables(scope)
        behind = ""
        if left.keys() != right.keys():
            # A CREATE or DROP may be on its way.
            try:
                self._await(self._right, self._left.executed(), of=self._left)
                self._await(self._left, self._right.executed(), of=self._right)
            except StillBehind as problem:
                behind = str(problem)
            left, right = self._tables(scope)
        named = scope.tables - left.keys() - right.keys()
        if named:
            missing = ", ".join(f"{schema}.{name}" for schema, name in sorted(named))
            raise ValueError(f"neither server shows {missing} to this account")
        places = sorted(left.keys() | right.keys())
        results = []
        for number, place in enumerate(places, start=1):
            result = CheckedTableResult(*place)
            results.append(result)
            if place not in right or place not in left:
                side = self._right if place in left else self._left
                result.unread = behind or side.hides(*place)
                result.missing_on = "" if result.unread else side.name
                continue
            self._table_of = f"table {number} of {len(places)}"
            try:
                self._compare(result, left[place], right[place], done)
            except (pymysql.MySQLError, ConnectionError, TimeoutError, ValueError) as error:
                result.unread = server_words(error)
        return results

    def _tables(self, scope: CheckScope) -> list[dict[tuple[str, str], CheckedTable]]:
        """Return the tables of a scope on each server."""
        return [
            {place: each for place, each in side.tables().items() if scope.has(place)}
            for side in (self._left, self._right)
        ]

    def _compare(
        self,
        result: CheckedTableResult,
        left: CheckedTable,
        right: CheckedTable,
        done: Sequence[CheckedPart],
    ) -> None:
        hidden = (side.hides(*left.place) for side in (self._left, self._right))
        result.unread = (
            next(filter(None, hidden), "")
            or unlike_columns(left, right)
            or _unreadable(left, right)
        )
        if result.unread:
            return
        pair = TablePair(left, right, common_key(left, right), self._json_form)
        result.note = pair.note
        if pair.key is None and max(left.rows_about, right.rows_about) > _NO_KEY_ROWS_MAX:
            result.unread = (
                "it has no key by which both servers could read it in parts, and about"
                f" {max(left.rows_about, right.rows_about):,} rows"
            )
            return
        same = [part for part in done if _is_of(part, pair)]
        for part in same:
            result.add(part)
        if result.is_whole:
            return
        lower = same[-1].upper if same else None
        for part in self._parts(pair, lower):
            self._record(part)
            result.add(part)
            self._say(
                f"{self._table_of}: {left.schema}.{left.name}, {result.rows:,} of about"
                f" {max(left.rows_about, result.rows):,} rows,"
                f" {result.different:,} different"
            )

    def _parts(self, pair: TablePair, lower: KeyValues | None) -> Iterator[CheckedPart]:
        """Yield the parts of a table above a key, compared."""
        while True:
            self._wait_while_busy()
            begun = time.monotonic()
            upper = self._upper(pair, lower)
            yield self._compared(pair, PartBounds(lower, upper))
            if upper is None:
                return
            lower = upper
            took = time.monotonic() - begun
            goal = self._part_rows * _PART_SECONDS / max(took, 0.001)
            bounded = min(goal, 2 * self._part_rows, _PART_ROWS_MAX)
            self._part_rows = max(_PART_ROWS_MIN, int(bounded))
            time.sleep(self._limits.pause_seconds)

    def _upper(self, pair: TablePair, lower: KeyValues | None) -> KeyValues | None:
        if pair.key is None:
            return None
        query = bound_query(pair.left, pair.key, lower, self._part_rows)
        rows = self._left.rows(query, "key_0")
        return key_from(dict(rows[0]), pair.key) if rows else None

    def _compared(self, pair: TablePair, bounds: PartBounds) -> CheckedPart:
        ours, theirs = (
            self._checksum(side, table, pair, bounds)
            for side, table in ((self._left, pair.left), (self._right, pair.right))
        )
        part = CheckedPart(
            *pair.left.place,
            key=_name_of_key(pair),
            upper=bounds.upper,
            definition=definition_of(pair),
            rows=ours.rows,
            state=PartState.SAME,
        )
        if ours.unread_rows or theirs.unread_rows:
            why = (
                f"{max(ours.unread_rows, theirs.unread_rows):,} rows of a part are longer than"
                " max_allowed_packet, or SHA2() is not available"
            )
            return replace(part, state=PartState.UNSETTLED, why=why)
        return part if ours == theirs else self._looked_closer(pair, bounds, part)

    def _looked_closer(self, pair: TablePair, bounds: PartBounds, part: CheckedPart) -> CheckedPart:
        """Return a part whose checksums differed once, after its rows were read."""
        try:
            outcome = self._settled(pair, bounds)
        except StillBehind as behind:
            return replace(part, state=PartState.UNSETTLED, why=str(behind))
        listed = [
            UnlikeRow(shown_key(pair.left, pair.key, values), outcome.different[values])
            for values in sorted(outcome.different)[:ROWS_KEPT_MAX]
        ]
        why = (
            f"clients wrote {outcome.moving:,} rows of a part each time that it was read"
            if outcome.moving
            else ""
        )
        if listed:
            return replace(
                part,
                state=PartState.DIFFERENT,
                different=len(outcome.different),
                listed=tuple(listed),
                why=why,
            )
        state = PartState.UNSETTLED if outcome.moving else PartState.SAME
        return replace(part, state=state, why=why)

    def _settled(self, pair: TablePair, bounds: PartBounds) -> PartOutcome:
        """Read a part until no row of it is in doubt, or often enough. Raises StillBehind."""
        last = self._read_thrice(pair, bounds)
        for _ in range(_ROUNDS_MAX):
            if not (last.different or last.moving):
                return last
            now = self._read_thrice(pair, bounds)
            outcome = confirmed(last, now)
            if not outcome.moving:
                return outcome
            last = now
        return outcome

    def _read_thrice(self, pair: TablePair, bounds: PartBounds) -> PartOutcome:
        first = self._digests(self._left, pair.left, pair, bounds)
        self._await(self._right, self._left.executed(), of=self._left)
        right = self._digests(self._right, pair.right, pair, bounds)
        self._await(self._left, self._right.executed(), of=self._right)
        return compared(first, right, self._digests(self._left, pair.left, pair, bounds))

    def _await(self, side: CheckedServer, gtids: GtidSet, *, of: CheckedServer) -> None:
        """Wait until a server has executed a set of the other one. Raises StillBehind."""
        if self._limits.as_they_are:
            return
        deadline = time.monotonic() + self._limits.behind_seconds_max
        while missing := gtids - side.executed():
            # What did not come for one part is not awaited for each other part again.
            if time.monotonic() > deadline or missing & self._not_awaited[side.name]:
                self._not_awaited[side.name] |= missing
                raise StillBehind(
                    f"{side.name} has not executed {missing.shortened()} of {of.name} within"
                    f" {self._limits.behind_seconds_max:g} seconds"
                )
            self._say(f"waiting until {side.name} has executed {missing.gtid_count:,} transactions")
            time.sleep(_POLL_SECONDS)

    def _digests(
        self, side: CheckedServer, table: CheckedTable, pair: TablePair, bounds: PartBounds
    ) -> RowDigests:
        if pair.key is None:
            checksum = self._checksum(side, table, pair, bounds)
            return {(): f"{checksum.rows} {checksum.sums}"}
        query = rows_query(table, pair.key, bounds, pair.left.columns, pair.json_form)
        rows = side.rows(query, "row_digest")
        return {key_from(dict(row), pair.key): str(row["row_digest"]) for row in rows}

    def _checksum(
        self, side: CheckedServer, table: CheckedTable, pair: TablePair, bounds: PartBounds
    ) -> PartChecksum:
        query = checksum_query(table, pair.key, bounds, pair.left.columns, pair.json_form)
        return checksum_from(dict(only_row(side.rows(query, "row_count"), query)))

    def _wait_while_busy(self) -> None:
        for side in (self._left, self._right):
            while (running := side.threads_running()) > self._limits.threads_running_max:
                self._say(f"{side.name} runs {running} threads: waiting")
                time.sleep(1)


def _name_of_key(pair: TablePair) -> str:
    return pair.key.name if pair.key is not None else ""


def _unreadable(left: CheckedTable, right: CheckedTable) -> str:
    for table in (left, right):
        if table.engine.upper() not in _ENGINES:
            return f"reading a table of {table.engine or 'an unknown engine'} would lock it"
    return "" if left.columns else "it has no column that is stored"


def _is_of(part: CheckedPart, pair: TablePair) -> bool:
    """Return whether an earlier run compared this part of the table as it is defined now."""
    found = (part.schema, part.table, part.key, part.definition)
    return found == (*pair.left.place, _name_of_key(pair), definition_of(pair))
