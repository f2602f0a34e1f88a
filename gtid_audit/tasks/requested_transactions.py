"""Reads the transactions that `binlog show` was asked for, with the definitions of their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from binlog.errors import ReusedGtid
from binlog.events import Event
from binlog.rows.values import LoggedRows, RowChanges, rows_of_group
from binlog.scan import EventGroup
from gtid import Gtid, GtidSet
from gtid_audit import exits
from gtid_audit.operands.logs_from_operands import LogServer
from gtid_audit.output import warn
from gtid_audit.tasks.source_events import events_of_source
from topology.catalogue.findings import Verdict

if TYPE_CHECKING:
    from gtid_audit.operands.definition_sources import GivenDefinitions
    from gtid_audit.tasks.misfit_definitions import Misfits

# The GTIDs that were found are joined to a set when there are so many.
_FOUND_MAX: Final = 65_536


@dataclass(slots=True)
class RequestedTransactions:
    """The requested transactions: where they come from, and which have arrived."""

    wanted: GtidSet
    source: LogServer | tuple[Path, ...]
    seconds: float
    definitions: GivenDefinitions
    found: list[Gtid] = field(default_factory=list)
    has_reused: bool = False
    _found: GtidSet = field(default_factory=GtidSet)
    _misfits: Misfits | None = None

    def contents(self) -> Iterator[tuple[EventGroup, Iterator[Any]]]:
        """Yield each transaction; its rows are decoded when the caller iterates over them."""
        from binlog.adapters.row_decoder import RowDecoder

        read = RowDecoder()
        groups = events_of_source(self.source, self.wanted, self.seconds, reused=self.note_reused)
        for group in groups:
            self.note_found(group.transaction.gtid)
            definition_of = self.definitions.at(group.transaction.file, group.rows_begin)
            yield group, self._noting(rows_of_group(group, read, definition_of=definition_of))

    def _noting(self, items: Iterator[RowChanges | Event]) -> Iterator[RowChanges | Event]:
        for item in items:
            if isinstance(item, RowChanges):
                self.note_misfit(item)
            yield item

    def note_misfit(self, rows: RowChanges | LoggedRows) -> None:
        """Compare definitions (S3), if that of the options does not fit these rows."""
        if rows.table.unfitting is None:
            return
        from gtid_audit.tasks.misfit_definitions import Misfits

        if self._misfits is None:
            self._misfits = Misfits.of(self.source, self.definitions, self.seconds)
        self._misfits.note(rows)

    def note_reused(self, error: ReusedGtid) -> None:
        """Note that a GTID has two transactions, of which both are shown."""
        self.has_reused = True
        warn(str(error))

    def note_found(self, gtid: Gtid | None) -> None:
        """Note that a transaction has arrived."""
        if gtid is not None:
            self.found.append(gtid)
        if len(self.found) >= _FOUND_MAX:
            self._found |= GtidSet.of(self.found)
            self.found.clear()

    @property
    def missing(self) -> GtidSet:
        """Return the wanted GTIDs that have not arrived."""
        return self.wanted - (self._found | GtidSet.of(self.found))

    @property
    def misfits(self) -> list[dict[str, Any]]:
        """Return the definitions that do not fit the rows so far, each beside the others (S3)."""
        return self._misfits.documents() if self._misfits is not None else []

    def report_misfits(self) -> None:
        """Print the same on standard error: standard output has the script."""
        if self._misfits is not None:
            self._misfits.report()

    def status(self) -> int:
        """Return the exit status, after all were read; report GTIDs that are missing, and S3."""
        self.report_misfits()
        if not self.missing:
            return exits.status_of(Verdict.WARNING if self.has_reused else Verdict.OK)
        warn(f"not in these logs: {self.missing.shortened()}")
        return exits.status_of(Verdict.WARNING)
