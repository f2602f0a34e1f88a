"""S3: a definition that does not fit the rows that are read, beside the others of its table.

1. The definition is the one that the options select: a file, a store, or a server as it is now. It
   is not used (binlog/rows/tables.py), so no value lands in a wrong column.
2. Beside it are what the TABLE_MAP says, the table on the server whose log is read, and the one on
   the server of --schema-from. A server that cannot be asked is a reason, and no error.
3. Each table is compared once, at its first rows that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pymysql import MySQLError

from binlog.adapters.schema_servers import ServerTables
from binlog.adapters.server_errors import server_words
from binlog.rows.values import LoggedRows, RowChanges
from binlog.schema.check import misfit
from binlog.schema.table_history import Entry, Place, Source, State, TableKey
from gtid_audit.operands.definition_sources import GivenDefinitions
from gtid_audit.operands.logs_from_operands import LogServer
from gtid_audit.output import warn, without_credentials
from gtid_audit.views.schema_text import comparison_document, comparison_lines
from topology.adapters.compare_definitions import (
    REPLICA,
    SOURCE,
    DefinitionComparison,
    LoggedTable,
    View,
    compare,
    server_view,
)


@dataclass(slots=True)
class Misfits:
    """The tables whose definition did not fit so far."""

    source: ServerTables | None  # of the logs; None if they are files
    other: ServerTables | None  # of --schema-from
    _found: dict[TableKey, DefinitionComparison] = field(default_factory=dict)

    @classmethod
    def of(
        cls, source: LogServer | tuple[Path, ...], definitions: GivenDefinitions, seconds: float
    ) -> Misfits:
        """Return none so far, of transactions of a source."""
        logs = None
        if isinstance(source, LogServer):
            logs = ServerTables(source.connector(seconds_max=seconds), seconds)
        return cls(logs, definitions.server_now)

    @property
    def found(self) -> tuple[DefinitionComparison, ...]:
        """Return one comparison for each table, in order of name."""
        return tuple(self._found[key] for key in sorted(self._found, key=str))

    def documents(self) -> list[dict[str, Any]]:
        """Return them as documents of `binlog schema compare`."""
        return [comparison_document(each) for each in self.found]

    def report(self) -> None:
        """Print them on standard error."""
        for each in self.found:
            for line in comparison_lines(each):
                warn(line)

    def note(self, changes: RowChanges | LoggedRows) -> None:
        """Compare the definitions of these rows, if that of the options does not fit them."""
        table, unfitting = changes.table, changes.table.unfitting
        key = TableKey(table.schema, table.table)
        if unfitting is None or key in self._found:
            return
        logged_as, definition = unfitting
        place = Place(changes.file, changes.position)
        logged = LoggedTable(place, logged_as)
        comparison = compare(
            key,
            source=_view(SOURCE, self.source, key),
            logged=logged,
            tracked=Entry(key, place, State.KNOWN, Source.HAND, definition),
            replica=_view(REPLICA, self.other, key),
            at=str(place),
        )
        lines = (f"{table.mismatch}", *_advice(comparison, logged))
        self._found[key] = replace(comparison, explanation=lines)


def _view(name: str, server: ServerTables | None, key: TableKey) -> View:
    try:
        return server_view(name, server, key)
    except MySQLError as error:
        return View(name, why=f"not read: {without_credentials(server_words(error))}")
    except OSError as error:
        return View(name, why=f"not read: {error.strerror or error}")


def _advice(comparison: DefinitionComparison, logged: LoggedTable) -> Iterator[str]:
    yield "the definition of the options (tracked) is not used: values would get wrong names"
    names = [
        view.name
        for view in comparison.views
        if view.name in (SOURCE, REPLICA)
        and view.definition is not None
        and misfit(view.definition, logged.table) is None
    ]
    if names:
        yield f"the definition on the {names[0].removesuffix(' now')} now fits: use --schema-from"
    else:
        yield "use --definitions with the older definition, or --store (binlog schema follow)"
