"""`gtid-audit binlog show`: shows the contents of transactions, and SQL to redo or undo them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

import typer

from gtid import GtidSet
from gtid_audit import exits
from gtid_audit.commands.log_options import LogSources, TrackedServer, WantedSet
from gtid_audit.commands.options import AsJson, AskPassword, ServerSeconds, seconds_of
from gtid_audit.exits import UsageProblem
from gtid_audit.logs_from_operands import (
    SECONDS_DEFAULT,
    LogServer,
    one_source,
    read_log_operand,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.output import warn, write_json
from gtid_audit.sets_from_operands import read_operands
from topology.findings import Verdict

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from binlog.adapters.schema_changes import ChangesBehind
    from binlog.scan import EventGroup
    from binlog.schema.table_definitions import TableDefinition
    from gtid_audit.definition_sources import GivenDefinitions, TrackedAt
    from repair.replay import Replayed

TRANSACTIONS_SHOWN_MAX: Final = 50
SCRIPT_CHARACTERS_MAX: Final = 1024**3

Redo = Annotated[bool, typer.Option("--redo", help="Write SQL that redoes the transactions.")]
Undo = Annotated[bool, typer.Option("--undo", help="Write SQL that undoes the transactions.")]
KeepGtids = Annotated[
    bool, typer.Option("--keep-gtids", help="Redo with the same GTIDs, not with new ones.")
]
Definitions = Annotated[
    list[Path] | None,
    typer.Option("--definitions", metavar="FILE", help="CREATE TABLE statements, for old logs."),
]
Store = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE", help="Definitions of `binlog schema follow`."),
]
SchemaFrom = Annotated[
    str | None,
    typer.Option(
        "--schema-from", metavar="DSN", help="Use the tables of this server as they are now."
    ),
]


class _ServerOfNow(TypedDict, total=False):
    """A server that is queried for its tables, and the questions to its logs about them."""

    connect: Callable[[], Connection[Any]]
    server_name: str
    changed_behind: ChangesBehind


@dataclass(slots=True)
class _Run:
    """One run: the source of the transactions, and which have arrived."""

    wanted: GtidSet
    groups: Iterator[EventGroup]
    definitions: GivenDefinitions
    found: list[Any] = field(default_factory=list)

    def contents(self) -> Iterator[tuple[EventGroup, Iterator[Any]]]:
        """Yield each transaction; its rows are decoded when the caller iterates over them."""
        from binlog.adapters.row_decoder import RowDecoder
        from binlog.rows.values import rows_of_group

        read = RowDecoder()
        for group in self.groups:
            self.found.append(group.transaction.gtid)
            definition_of = self.definitions.at(group.transaction.file, group.transaction.start)
            yield group, rows_of_group(group, read, definition_of=definition_of)

    @property
    def missing(self) -> GtidSet:
        """Return the wanted GTIDs that have not arrived."""
        return self.wanted - GtidSet.of(self.found)


def show(
    wanted: WantedSet,
    sources: LogSources,
    *,
    redo: Redo = False,
    undo: Undo = False,
    keep_gtids: KeepGtids = False,
    definitions: Definitions = None,
    store: Store = None,
    server: TrackedServer = None,
    schema_from: SchemaFrom = None,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Show the content of the transactions in SET, or write SQL for the mysql client.

    Exit status: 0 all were read; 1 some are not in the logs; 3 something could not be read, or
    could not be written as SQL.
    """
    if redo and undo:
        raise UsageProblem("use --redo or --undo, not both")
    if keep_gtids and not redo:
        raise UsageProblem("--keep-gtids: only with --redo")
    [gtids] = read_operands((wanted,))
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    source = one_source(read_log_operands(sources, ask=ask_password))
    if server is not None and store is None:
        raise UsageProblem("--server: only with --store")
    from gtid_audit.definition_sources import GivenDefinitions

    with ExitStack() as held:
        known = GivenDefinitions(
            _given(definitions or []),
            tracked=_tracked(store, server, held) if store is not None else None,
            **(_asked(schema_from, source, seconds, ask=ask_password) if schema_from else {}),
            say=warn,
        )
        run = _Run(gtids, _groups(source, gtids, seconds), known)
        if redo or undo:
            return said_if_unread(
                lambda: _write_script(run, is_undo=undo, keeps_gtids=keep_gtids, as_json=as_json)
            )
        return said_if_unread(lambda: _show(run, as_json=as_json))


def _groups(
    source: LogServer | tuple[Path, ...], wanted: GtidSet, seconds: float
) -> Iterator[EventGroup]:
    from binlog.adapters.spooled import Spooled

    if isinstance(source, LogServer):
        from binlog.adapters.heads_server import purged_of
        from binlog.adapters.stream import ServerLogs

        connect = source.connector(seconds_max=seconds)
        # The server refuses the whole dump if it has purged a part of the wanted set.
        purged = purged_of(connect) & wanted
        if purged:
            warn(f"{source.name} has purged {purged.shortened()}")
        logs = ServerLogs(connect, timeout_seconds_max=seconds)
        yield from logs.events_of(wanted - purged, store=Spooled)
        return
    from binlog.adapters.log_files import FileLogs

    yield from FileLogs(source).events_of(wanted, store=Spooled)


def _given(files: list[Path]) -> dict[tuple[str, str], TableDefinition]:
    from gtid_audit.definition_sources import definitions_of_file

    given: dict[tuple[str, str], TableDefinition] = {}
    for path in files:
        given |= definitions_of_file(path)
    return given


def _tracked(file: str, server: str | None, held: ExitStack) -> TrackedAt:
    from binlog.adapters.schema_store import SchemaStore, StoreProblem
    from gtid_audit.schema_operands import server_in, store_path

    try:
        store = held.enter_context(SchemaStore(store_path(file), may_be_new=False))
    except StoreProblem as problem:
        raise UsageProblem(f"--store: {problem}") from problem
    return partial(store.definition_at, server_in(store, server))


def _asked(
    dsn: str, source: LogServer | tuple[Path, ...], seconds: float, *, ask: bool
) -> _ServerOfNow:
    from binlog.adapters.schema_changes import FileChanges, ServerChanges

    server = read_log_operand(dsn, ask=ask)
    if not isinstance(server, LogServer):
        raise UsageProblem(f"--schema-from: expected mysql://user@host:port/, not {dsn}")
    warn(
        f"using the table definitions of {server.name} as they are now, except where these logs"
        " change a table after the transaction"
    )
    changes: FileChanges | ServerChanges
    if isinstance(source, LogServer):
        changes = ServerChanges(source.connector(seconds_max=seconds), seconds, warn)
    else:
        changes = FileChanges(source)
    return {
        "connect": server.connector(seconds_max=seconds),
        "server_name": server.name,
        "changed_behind": changes,
    }


def _show(run: _Run, *, as_json: bool) -> int:
    if as_json:
        from gtid_audit.output import write_streamed_json
        from gtid_audit.views.transactions_json import show_document

        write_streamed_json(show_document(run.wanted, run.contents(), lambda: run.missing))
        return _status(run)
    from rich.text import Text

    from gtid_audit.output import counted
    from gtid_audit.views.report_text import QUIET
    from gtid_audit.views.report_text import show as show_parts
    from gtid_audit.views.transactions_text import transaction_parts

    notes: set[str] = set()
    hidden = 0
    for number, (group, items) in enumerate(run.contents()):
        if number >= TRANSACTIONS_SHOWN_MAX:
            hidden += 1
            continue
        for part in transaction_parts(group, items, notes=notes):
            show_parts(part)
        show_parts(Text())
    if hidden:
        more = counted(hidden, "more transaction")
        show_parts(Text(f"… and {more}; --json has all", style=QUIET))
    return _status(run)


def _status(run: _Run) -> int:
    if not run.missing:
        return exits.OK
    warn(f"not in these logs: {run.missing.shortened()}")
    return exits.status_of(Verdict.WARNING)


def _write_script(run: _Run, *, is_undo: bool, keeps_gtids: bool, as_json: bool) -> int:
    from repair.replay_script import Direction, script_lines

    direction = Direction.UNDO if is_undo else Direction.REDO
    replayed = _replayed(run, is_undo=is_undo, keeps_gtids=keeps_gtids, as_json=as_json)
    problems = [each for each in replayed if each.problem]
    for each in problems:
        warn(f"{each.label}: {direction.value} is not possible: {each.problem}")
    is_whole = bool(replayed) and not problems and not run.missing
    lines = script_lines(direction, replayed, caveats=run.definitions.caveats) if is_whole else ()
    if as_json:
        script = "\n".join(lines) + "\n" if is_whole else None
        transactions = [{"gtid": each.label, "problem": each.problem} for each in replayed]
        document: dict[str, Any] = {"direction": direction.value, "wanted": str(run.wanted)}
        document |= {"missing": str(run.missing), "transactions": transactions, "script": script}
        write_json(document)
    else:
        _write_lines(lines)
    if not is_whole:
        warn("no script was written: it must contain all transactions that were requested")
    return exits.status_of(Verdict.UNKNOWN) if problems else _status(run)


def _replayed(run: _Run, *, is_undo: bool, keeps_gtids: bool, as_json: bool) -> list[Replayed]:
    """Write each transaction as SQL; a large one goes to a temporary file."""
    from binlog.adapters.spooled import Spooled
    from repair.replay import redo, undo

    write = undo if is_undo else partial(redo, keeps_gtid=keeps_gtids)
    replayed: list[Replayed] = []
    characters = 0
    for group, items in run.contents():
        is_spooled = isinstance(group.events, Spooled)
        if is_spooled and as_json:
            raise UsageProblem(
                f"{group.transaction.gtid} is too long for a script in JSON: leave out --json"
            )
        done = write(group, items, make_lines=Spooled if is_spooled else list)
        characters += 0 if is_spooled else sum(map(len, done.lines))
        if characters > SCRIPT_CHARACTERS_MAX:
            raise UsageProblem(
                f"the script is longer than {SCRIPT_CHARACTERS_MAX:,} characters: select fewer"
                " transactions"
            )
        replayed.append(done)
    return replayed


def _write_lines(lines: Iterable[str]) -> None:
    """Write a script unchanged: a statement may contain bytes that are not UTF-8."""
    from gtid_audit.output import ReaderGone

    try:
        sys.stdout.flush()
        for line in lines:
            sys.stdout.buffer.write(line.encode("utf-8", errors="surrogateescape") + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderGone from None
