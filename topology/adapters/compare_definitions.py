"""Shows the four definitions of a table side by side, and warns of errors that they will cause.

The four: on the source now, at an event, as tracked there, on the replica now. For the event only
its own TABLE_MAP counts. In a log without full metadata it has types and no names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from binlog.adapters.schema_events import server_events
from binlog.adapters.schema_servers import ServerTables
from binlog.adapters.stream import ServerLogs
from binlog.cursor import MalformedBody
from binlog.errors import BinlogError, CorruptBinlog
from binlog.events import Event, GtidLog, TableMap
from binlog.schema.check import misfit
from binlog.schema.metadata import shown_columns
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import Entry, Place, TableKey, UnfollowedEntry, explain
from binlog.table_metadata import read_table_metadata
from gtid import GtidSet
from topology.catalogue.findings import Verdict

SOURCE, EVENT, TRACKED, REPLICA = "source now", "at the event", "tracked", "replica now"


@dataclass(frozen=True, slots=True)
class View:
    """One of the four: its columns as (name, type), or the reason why there are none."""

    name: str
    columns: tuple[tuple[str, str], ...] = ()
    why: str = ""
    definition: TableDefinition | None = None
    is_asked: bool = True


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A TABLE_MAP of the table, and its position."""

    place: Place
    table: TableMap


@dataclass(frozen=True, slots=True)
class DefinitionComparison:
    """The four views, their differences by position, and the consequences."""

    key: TableKey
    place: Place | None
    views: tuple[View, ...]
    explanation: tuple[str, ...]
    verdict: Verdict
    is_misfit: bool = False  # S3: the tracked definition does not fit the event

    @property
    def rows(self) -> tuple[tuple[tuple[str, str] | None, ...], ...]:
        """Return the columns by position, one entry per view; None where a view has fewer."""
        count = max((len(view.columns) for view in self.views), default=0)
        return tuple(
            tuple(view.columns[at] if at < len(view.columns) else None for view in self.views)
            for at in range(count)
        )


def is_marked(row: tuple[tuple[str, str] | None, ...], views: tuple[View, ...]) -> bool:
    """Return whether the views that have columns differ at one position.

    A name that was not logged is no difference. Neither is a vague type; `misfit` evaluates it.
    """
    cells = [cell for cell, view in zip(row, views, strict=True) if view.columns]
    if None in cells:
        return True
    exact = [
        cell
        for cell, view in zip(row, views, strict=True)
        if cell is not None and view.columns and not cell[0].startswith("@")
    ]
    return len(set(exact)) > 1


def view_of(name: str, definition: TableDefinition | None, why: str = "") -> View:
    """Return the view of a definition, or of the reason why there is none."""
    if definition is None:
        return View(name, why=why or "there is no such table")
    columns = tuple((column.name, column.type_text) for column in definition.columns)
    return View(name, columns, definition=definition)


def find_event(source: ServerTables, key: TableKey, *, at: Place | GtidSet) -> LoggedTable | None:
    """Find the first TABLE_MAP of a table in the transaction at a place, or with a GTID."""
    if isinstance(at, GtidSet):
        logs = ServerLogs(source.connect, timeout_seconds_max=source.seconds_max)
        events = (event for group in logs.events_of(at) for event in group.events)
        return _first(events, key)
    stream = server_events(source.connect, at, timeout_seconds_max=source.seconds_max)
    with closing(stream):
        return _first(_one_transaction(stream), key)


def _one_transaction(events: Iterable[Event]) -> Iterator[Event]:
    heads = 0
    for event in events:
        heads += isinstance(event.body, GtidLog)
        if heads > 1:
            return
        yield event


def _first(events: Iterable[Event], key: TableKey) -> LoggedTable | None:
    for event in events:
        if isinstance(event.body, TableMap) and (event.body.schema, event.body.table) == (
            key.schema,
            key.table,
        ):
            try:
                read_table_metadata(event.body)
            except MalformedBody as error:
                raise CorruptBinlog(
                    file=event.file, position=event.start, what=error.what
                ) from error
            return LoggedTable(Place(event.file, event.start), event.body)
    return None


def compare(
    key: TableKey,
    *,
    source: View,
    logged: LoggedTable | None,
    tracked: Entry | None,
    replica: View,
    at: str | None,
) -> DefinitionComparison:
    """Evaluate the four views."""
    event = View(EVENT, why="not requested: add --at", is_asked=False)
    if at is not None:
        event = View(EVENT, why=f"no rows of {key} in the transaction at {at}")
    if logged is not None:
        event = View(EVENT, shown_columns(logged.table))
    why = "not tracked" if tracked is None else explain(tracked)
    tracked_view = view_of(TRACKED, tracked.definition if tracked else None, why)
    views = (source, event, tracked_view, replica)
    lines = tuple(_explain(logged, tracked, views))
    return DefinitionComparison(
        key,
        logged.place if logged else None,
        views,
        lines,
        _verdict(logged, tracked, views),
        is_misfit=_is_misfit(logged, tracked),
    )


def _verdict(logged: LoggedTable | None, tracked: Entry | None, views: tuple[View, ...]) -> Verdict:
    if tracked is None or tracked.definition is None:
        return Verdict.UNKNOWN
    if any(view.is_asked and not view.columns for view in views):
        return Verdict.UNKNOWN
    if _is_misfit(logged, tracked):
        return Verdict.CRITICAL
    definitions = [view.definition for view in views if view.definition is not None]
    shapes = {(each.columns, each.primary_key, each.unique_keys) for each in definitions}
    return Verdict.WARNING if len(shapes) > 1 else Verdict.OK


def _is_misfit(logged: LoggedTable | None, tracked: Entry | None) -> bool:
    if logged is None or tracked is None or tracked.definition is None:
        return False
    return misfit(tracked.definition, logged.table) is not None


def _explain(
    logged: LoggedTable | None, tracked: Entry | None, views: tuple[View, ...]
) -> Iterator[str]:
    if logged is not None:
        yield from _explain_event(logged, tracked, views)
    elif tracked is None or tracked.definition is None:
        yield "the table is not tracked: the columns of its rows have no names"
    source, _, held, replica = (view.definition for view in views)
    if source is not None and held is not None and source.columns != held.columns:
        yield (
            "the definition on the source now differs from the tracked one: statements changed it"
            " after the tracked position, or the tracked definition was set by hand (binlog schema"
            " list shows since when it holds)"
        )
    if source is not None and replica is not None and source.columns != replica.columns:
        yield (
            "the definitions on source and replica differ now: one server has not executed a DDL"
            " statement yet, or it was not replicated"
        )


def _explain_event(
    logged: LoggedTable, tracked: Entry | None, views: tuple[View, ...]
) -> Iterator[str]:
    held = tracked.definition if tracked else None
    if held is None:
        yield f"no definition is tracked for rows at {logged.place}: their columns have no names"
        if isinstance(tracked, UnfollowedEntry):
            return  # the logs are followed first: a definition set by hand would replace good ones
    elif why := misfit(held, logged.table):
        yield f"rows at {logged.place} do not fit the tracked definition: {why}"
        if held.column_count != len(logged.table.column_types):
            yield (
                "statements written from these rows with the tracked definition would fail with"
                ' "Column count doesn\'t match value count"'
            )
    else:
        yield f"rows at {logged.place} fit the tracked definition"
        return
    options = {SOURCE: "--from-source", REPLICA: "--from-target"}
    fitting = [
        options[view.name]
        for view in views
        if view.name in options
        and view.definition is not None
        and misfit(view.definition, logged.table) is None
    ]
    if fitting:
        yield f"a fitting one: binlog schema update {_quoted(tracked, logged)} {fitting[0]} DSN"
    else:
        yield (
            "no server has a fitting definition now: write the definition of that time to a file,"
            f" then run: binlog schema update {_quoted(tracked, logged)} --from-file FILE"
        )


def _quoted(tracked: Entry | None, logged: LoggedTable) -> str:
    if tracked is not None:
        return str(tracked.key)
    return f"{logged.table.schema}.{logged.table.table}"


def server_view(name: str, server: ServerTables | None, key: TableKey) -> View:
    """Read a table's definition on a server now; without a server, return an empty view."""
    if server is None:
        return View(name, why="not requested", is_asked=False)
    try:
        return view_of(name, server.definition(key))
    except BinlogError as error:
        return View(name, why=str(error))
