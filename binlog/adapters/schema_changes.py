"""Finds column changes at or after a position in the logs, in files or on a live server.

The logs are read once, from the first requested position to their end. A later request for an
earlier position reads them again from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from binlog.adapters.heads_server import facts_of_server
from binlog.adapters.schema_defining import DefiningEvents
from binlog.adapters.stream_session import Connect
from binlog.errors import StatementRefused, TruncatedBinlog
from binlog.schema.column_changes import ColumnChanges, LogPlace
from binlog.schema.table_history import Place, bytes_behind

# The place of a file that does not exist, so every file is read from its first event.
_BEGINNING: Final = Place("none.0", 0)


class ChangesBehind(Protocol):
    """Finds where the columns of a table change at or after a place in the same logs."""

    def __call__(self, schema: str, table: str, file: str, position: int) -> str | None:
        """Return the place of the change as text; None without a change. Raises BinlogError."""


@dataclass(slots=True)
class FileChanges:
    """A `ChangesBehind` over files, in the order of the logs."""

    paths: tuple[Path, ...]
    _found: ColumnChanges | None = None
    _from: LogPlace | None = None

    def __call__(self, schema: str, table: str, file: str, position: int) -> str | None:
        """See `ChangesBehind`."""
        place = LogPlace([path.name for path in self.paths].index(file), position)
        if self._found is None or self._from is None or place < self._from:
            self._found, self._from = self._read(place), place
        return self._found.behind(schema, table, place)

    def _read(self, start: LogPlace) -> ColumnChanges:
        found = ColumnChanges()
        for number, path in enumerate(self.paths[start.log :], start.log):
            try:
                for event in DefiningEvents().of_files((path,), _BEGINNING):
                    found.take(event, log=number)
            except TruncatedBinlog as error:
                if not error.in_use:
                    raise
                # The server is still writing this event: the log ends before it.
        return found


@dataclass(slots=True)
class ServerChanges:
    """A `ChangesBehind` over a live server's logs, up to their end at the time of the request."""

    connect: Connect
    timeout_seconds_max: float
    say: Callable[[str], None]
    _found: ColumnChanges | None = None
    _from: LogPlace | None = None

    def __call__(self, schema: str, table: str, file: str, position: int) -> str | None:
        """See `ChangesBehind`."""
        place = LogPlace(Place(file, position).number, position)
        if self._found is None or self._from is None or place < self._from:
            self.say(f"reading the log from {file}:{position} to its end for changes of tables")
            self._found, self._from = self._read(Place(file, position)), place
        return self._found.behind(schema, table, place)

    def _read(self, start: Place) -> ColumnChanges:
        found = ColumnChanges()
        events = DefiningEvents().of_server(
            self.connect,
            start,
            bytes_ahead=self._bytes_ahead(start),
            timeout_seconds_max=self.timeout_seconds_max,
        )
        for event in events:
            found.take(event, log=Place(event.file, 0).number)
        return found

    def _bytes_ahead(self, start: Place) -> int:
        """Return the bytes to read; a large number if the account may not list the logs."""
        try:
            facts = facts_of_server(self.connect)
        except StatementRefused:
            return 1 << 62
        return bytes_behind(start, zip(facts.files, facts.sizes, strict=True))
