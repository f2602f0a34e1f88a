"""The requested transactions as SQL, of which memory has only the places in the logs.

How it works
------------
1. The logs are read once without reading a row. Each transaction is checked: DDL, statements,
   columns without names, images that are not whole. So what is refused is known before the first
   row is decoded.
2. A script asks for each transaction, forwards or backwards (`script_lines`). Only then its rows
   are read and written, one event at a time. A value that no literal can express is found only
   here: `problems` has it after the script was written, and the caller discards the script.

A transaction of a large file that has rows only is read again at its place (RowLog). All others are
kept as events in a temporary file without a name: a server sends its log once. For each transaction
memory has its GTID, its place, and the number of what it shares with others (tables, checks).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final, overload

from binlog.adapters.row_decoder import RowDecoder
from binlog.adapters.row_transactions import RowTransaction
from binlog.adapters.spooled import Spooled
from binlog.events import Event
from binlog.rows.values import LoggedRows
from binlog.scan import EventGroup
from gtid import Gtid, Tsid
from gtid_audit.tasks.placed_transactions import PlacedTransactions
from gtid_audit.tasks.requested_transactions import RequestedTransactions
from repair.sql.event_texts import EventTexts
from repair.sql.redo_sql import redo, redo_lines, rows_way
from repair.sql.replay import Replayed, touched_by
from repair.sql.row_literals import CannotRender
from repair.sql.undo_sql import UNDO_ROWS, undo, undo_lines

# The lines of a transaction that is turned around: more go to a temporary file.
TURNED_CHARACTERS_MAX: Final = 16 * 1024**2
_STORED: Final = -1
_CHECKED_MAX: Final = 1024


class ScriptedTransactions(Sequence[Replayed]):
    """The transactions in the order of the logs, each with lines that are written when read."""

    def __init__(self, run: RequestedTransactions, *, is_undo: bool, keeps_gtids: bool) -> None:
        self._placed = PlacedTransactions(run)
        self._is_undo = is_undo
        self._keeps_gtids = keeps_gtids
        self._way = UNDO_ROWS if is_undo else rows_way(keeps_gtid=keeps_gtids)
        self._problems: dict[int, str] = {}
        # Of each transaction: its GTID, its kind, the file or _STORED, and there the numbers of its
        # row events, or its own.
        self._gnos, self._tsids = array("q"), array("L")
        self._logs, self._kinds = array("q"), array("L")
        self._begins, self._ends = array("Q"), array("Q")
        self._known_tsids: dict[Tsid, int] = {}
        self._tsid_texts: list[str] = []
        self._tsids_in_order: list[Tsid] = []
        # Transactions without their label and lines: what they share with others.
        self._known_kinds: dict[Replayed, int] = {}
        self._kinds_in_order: list[Replayed] = []
        self._store: Spooled[EventGroup] = Spooled()
        self._long: dict[int, EventGroup] = {}
        self._checked: dict[tuple[int, ...], tuple[int, str | None, object]] = {}
        for log, found in self._placed.all():
            if isinstance(found, EventGroup):
                self._keep(found)
            else:
                self._add_rows(log, found)
        self._texts = EventTexts(self._way, RowDecoder())

    def close(self) -> None:
        """Close the file that was read last."""
        self._placed.close()

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Return the transactions that cannot be written so far, each with the reason."""
        return [(self._label(number), self._problems[number]) for number in sorted(self._problems)]

    @property
    def labels(self) -> Iterator[tuple[str, str | None]]:
        """Return every transaction, with the reason if it cannot be written."""
        return ((self._label(at), self._problems.get(at)) for at in range(len(self)))

    def __len__(self) -> int:
        """Return the number of transactions."""
        return len(self._gnos)

    @overload
    def __getitem__(self, at: int) -> Replayed: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Replayed]: ...
    def __getitem__(self, at: int | slice) -> Replayed | Sequence[Replayed]:
        """Return a transaction, or some of them."""
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number = range(len(self))[at]
        kind = self._kinds_in_order[self._kinds[number]]
        gtid = self._gtid(number) if self._keeps_gtids else None
        return Replayed(
            self._label(number),
            _Lines(self, number),
            tables=kind.tables,
            gtid=gtid,
            unguarded=kind.unguarded,
            sets_restricted=kind.sets_restricted,
            has_statements=kind.has_statements,
            creates=kind.creates,
        )

    def lines_of(self, number: int) -> Iterator[str]:
        """Yield the lines of a transaction; a value that cannot be written ends them."""
        label = self._label(number)
        try:
            if self._is_undo:
                yield from undo_lines(label, self._items(number), self._texts.write, _TurnedLines)
            else:
                yield from redo_lines(
                    label, self._items(number), self._texts.write, keeps_gtid=self._keeps_gtids
                )
        except CannotRender as refusal:
            self._problems[number] = str(refusal)

    def _items(self, number: int) -> Iterator[LoggedRows | Event]:
        log, begin = self._logs[number], self._begins[number]
        if log != _STORED:
            yield from self._placed.rows_of(log, begin, self._ends[number])
            return
        yield from self._placed.logged(self._long.get(number) or self._store[begin])

    def _add_rows(self, log: int, found: RowTransaction) -> None:
        """Check a transaction of rows by the heads of its row events, most of which are known."""
        ids = tuple(map(id, found.heads))
        if ids not in self._checked:
            if len(self._checked) >= _CHECKED_MAX:
                self._checked.clear()
            its_kind, problem = self._check(found.heads)
            self._checked[ids] = self._kind(its_kind), problem, found.heads
        kind, problem, _heads = self._checked[ids]
        self._add(found.gtid, (log, found.begin, found.end), kind, problem)

    def _check(self, heads: tuple[LoggedRows, ...]) -> tuple[Replayed, str | None]:
        tables = set()
        for head in heads:
            self._placed.run.note_misfit(head)
            try:
                tables.add(touched_by(head, self._way))
            except CannotRender as refusal:
                return Replayed("", ()), str(refusal)
        return Replayed("", (), tables=frozenset(tables)), None

    def _keep(self, group: EventGroup) -> None:
        """Check a transaction, and keep its events."""
        items = self._placed.logged(group)
        if self._is_undo:
            checked = undo(group, items)
        else:
            checked = redo(group, items, keeps_gtid=self._keeps_gtids)
        gtid = group.transaction.gtid
        assert gtid is not None, "a wanted one has a GTID"
        place = len(self._store)
        if isinstance(group.events, Spooled):
            self._long[len(self)] = group
        elif checked.problem is None and not self._problems:
            self._store.append(group)
        kind = replace(checked, label="", lines=(), gtid=None, problem=None)
        self._add(gtid, (_STORED, place, place), self._kind(kind), checked.problem)

    def _add(self, gtid: Gtid, place: tuple[int, int, int], kind: int, problem: str | None) -> None:
        if problem is not None:
            self._problems[len(self)] = problem
        self._gnos.append(gtid.gno)
        if not self._tsids or gtid.tsid is not self._tsids_in_order[self._tsids[-1]]:
            self._tsids.append(self._tsid(gtid.tsid))
        else:
            self._tsids.append(self._tsids[-1])
        for column, number in zip((self._logs, self._begins, self._ends), place, strict=True):
            column.append(number)
        self._kinds.append(kind)

    def _tsid(self, tsid: Tsid) -> int:
        """Return the number of a TSID."""
        if tsid not in self._known_tsids:
            self._known_tsids[tsid] = len(self._tsids_in_order)
            self._tsids_in_order.append(tsid)
            self._tsid_texts.append(str(tsid))
        return self._known_tsids[tsid]

    def _kind(self, kind: Replayed) -> int:
        """Return the number of a kind."""
        if kind not in self._known_kinds:
            self._known_kinds[kind] = len(self._kinds_in_order)
            self._kinds_in_order.append(kind)
        return self._known_kinds[kind]

    def _gtid(self, number: int) -> Gtid:
        return Gtid(self._tsids_in_order[self._tsids[number]], self._gnos[number])

    def _label(self, number: int) -> str:
        return f"{self._tsid_texts[self._tsids[number]]}:{self._gnos[number]}"


class _Lines(Collection[str]):
    """The lines of one transaction, written again each time they are read."""

    def __init__(self, transactions: ScriptedTransactions, number: int) -> None:
        self._transactions = transactions
        self._number = number

    def __iter__(self) -> Iterator[str]:
        """Return the lines in order."""
        return self._transactions.lines_of(self._number)

    def __len__(self) -> int:
        """Return the number of lines, which takes as long as writing them."""
        return sum(1 for _ in self)

    def __contains__(self, item: object) -> bool:
        """Return whether a line is among them."""
        return any(line == item for line in self)


class _TurnedLines(Collection[str]):
    """Lines that are read from the end; many go to a temporary file."""

    def __init__(self) -> None:
        self._lines: list[str] | Spooled[str] = []
        self._characters = 0

    def append(self, item: str) -> None:
        """Add one line."""
        self._characters += len(item)
        if self._characters > TURNED_CHARACTERS_MAX and isinstance(self._lines, list):
            lines, self._lines = self._lines, Spooled()
            for line in lines:
                self._lines.append(line)
        self._lines.append(item)

    def __iter__(self) -> Iterator[str]:
        """Return the lines in order."""
        return iter(self._lines)

    def __reversed__(self) -> Iterator[str]:
        """Return the lines, the last one first."""
        return reversed(self._lines)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def __contains__(self, item: object) -> bool:
        """Return whether a line is among them."""
        return item in self._lines
