"""`gtid-audit binlog schema`: manages the tracked table definitions that row events need.

1. `follow` reads logs into the store; the other commands show the store or change it by hand. While
   one process follows, the store is locked: another process ends with status 64.
2. A change by hand backs up the old definition first; `update --restore` restores it.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gtid_audit import exits
from gtid_audit.commands.log_options import LogSources, TrackedServer
from gtid_audit.commands.options import AsJson, AskPassword, ServerSeconds, seconds_of
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.logs_from_operands import (
    SECONDS_DEFAULT,
    LogServer,
    one_source,
    read_log_operand,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.output import progress, write_json, write_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from binlog.adapters.schema_servers import ServerTables
    from binlog.adapters.schema_store import SchemaStore
    from binlog.schema.table_history import Entry

Store = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE", help="The file with the definitions."),
]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")]


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(no_args_is_help=False, **settings)
    family.callback()(_schema)
    for command in (follow, list_, update, delete, compare):
        family.command(command.__name__.rstrip("_"), cls=PlainCommand)(command)
    return family


def _schema() -> None:
    """Follow, list, compare, update and delete the tracked definitions of tables."""


def follow(
    sources: LogSources,
    *,
    store: Store = None,
    server: TrackedServer = None,
    skip_gap: Annotated[
        bool,
        typer.Option(
            "--skip-gap", help="Continue after missing logs; all tables are unknown from there."
        ),
    ] = False,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Read logs into the store, from the position that it has reached to their end.

    Exit status: 0 every table is known; 3 some are not, or something could not be read.
    """
    source = one_source(read_log_operands(sources, ask=ask_password))
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    if isinstance(source, LogServer) and server is not None:
        raise UsageProblem("--server is for files only; a live server reports its own UUID")

    def work() -> int:
        from binlog.adapters import schema_following
        from gtid_audit.operands import schema_operands
        from gtid_audit.views import schema_text

        with _opened(store, may_be_new=True) as opened:
            if isinstance(source, LogServer):
                tables = _tables_of(source, seconds)
                done = schema_following.follow_server(opened, tables, skips_gap=skip_gap)
            else:
                schema_operands.check_names(source)
                uuid = schema_operands.server_of_files(source, server)
                done = schema_following.follow_files(opened, uuid, source, skips_gap=skip_gap)
        if as_json:
            write_json(schema_text.follow_document(done))
        else:
            schema_text.show_follow(done)
        return _UNKNOWN if done.unknown else exits.OK

    return _run(work)


def list_(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE...]", help="schema.table; shows its columns."),
    ] = None,
    *,
    store: Store = None,
    server: TrackedServer = None,
    as_json: AsJson = False,
) -> int:
    """List the tracked tables, or show the definitions of some."""

    def work() -> int:
        from binlog.schema.table_history import State
        from gtid_audit.operands import schema_operands, tracked_entries
        from gtid_audit.views import schema_text

        with _opened(store) as opened:
            uuid = schema_operands.server_in(opened, server)
            keys = [schema_operands.table_of(text) for text in tables or ()]
            found = [
                tracked_entries.current_entry(opened, uuid, key)
                for key in keys or opened.tables(uuid)
            ]
            if not keys:
                found = [entry for entry in found if entry.state is not State.ABSENT]
            staged = [e for e in opened.staged(uuid) if not keys or e.key in keys]
            document = schema_text.listing_document(opened, uuid, found, staged)
        if as_json:
            write_json(document)
        else:
            schema_text.show_listing(document, found, is_detailed=bool(keys))
        return exits.OK

    return _run(work)


def update(
    table: TableName,
    *,
    from_file: Annotated[
        str | None,
        typer.Option("--from-file", metavar="FILE", help="Take it from a CREATE TABLE statement."),
    ] = None,
    from_source: Annotated[
        str | None,
        typer.Option("--from-source", metavar="DSN", help="Take it from the source as it is now."),
    ] = None,
    from_target: Annotated[
        str | None,
        typer.Option("--from-target", metavar="DSN", help="Take it from the replica as it is now."),
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Restore what the last change by hand replaced.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="FILE:POS", help="It holds from here. Default: the last change."
        ),
    ] = None,
    flush: Annotated[
        bool,
        typer.Option("--flush/--no-flush", help="Write it now, or at the next `follow`."),
    ] = True,
    store: Store = None,
    server: TrackedServer = None,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Set the tracked definition of a table. The old definition is backed up."""
    ways = [way for way in (from_file, from_source, from_target) if way is not None]
    if len(ways) + restore != 1:
        raise UsageProblem(
            "give exactly one of --from-file FILE, --from-source DSN, --from-target DSN, --restore"
        )
    if restore and (at is not None or not flush):
        raise UsageProblem("--restore restores the old places too: omit --at and --no-flush")
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    dsn = from_source or from_target
    live = _server(dsn, seconds, ask=ask_password) if dsn is not None else None

    def work() -> int:
        from gtid_audit.operands import schema_operands, tracked_entries
        from gtid_audit.views import schema_text

        key = schema_operands.table_of(table)
        with _opened(store) as opened, opened.writing("gtid-audit binlog schema update"):
            uuid = schema_operands.server_in(opened, server)
            if restore:
                entries: tuple[Entry, ...] = opened.restore(uuid, key)
            else:
                since = tracked_entries.place_to_hold_from(at, opened, uuid, key)
                entry = tracked_entries.entry_by_hand(key, since, from_file=from_file, live=live)
                entries = (entry,)
                (opened.put if flush else opened.stage)(uuid, entry)
        what = "restored" if restore else "updated" if flush else "staged"
        if as_json:
            write_json(schema_text.change_document(what, uuid, entries))
        else:
            since_text = f", since {entries[-1].place}" if entries else ""
            write_line(f"{what}: {key}{since_text}")
        return exits.OK

    return _run(work)


def delete(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="schema.table")],
    *,
    store: Store = None,
    server: TrackedServer = None,
    as_json: AsJson = False,
) -> int:
    """Delete tracked definitions. To restore one from its backup: `update TABLE --restore`."""

    def work() -> int:
        from gtid_audit.operands import schema_operands, tracked_entries
        from gtid_audit.views import schema_text

        keys = [schema_operands.table_of(text) for text in tables]
        with _opened(store) as opened, opened.writing("gtid-audit binlog schema delete"):
            uuid = schema_operands.server_in(opened, server)
            entries = [tracked_entries.current_entry(opened, uuid, key) for key in keys]
            for key in keys:
                opened.delete(uuid, key)
        if as_json:
            write_json(schema_text.change_document("deleted", uuid, entries))
        else:
            for key in keys:
                write_line(f"deleted: {key}")
        return exits.OK

    return _run(work)


def compare(
    table: TableName,
    *,
    source: Annotated[
        str | None, typer.Option("--source", metavar="DSN", help="Server with the tracked logs.")
    ] = None,
    replica: Annotated[
        str | None, typer.Option("--replica", metavar="DSN", help="Server that applies them.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="FILE:POS|GTID", help="A transaction that changed rows of the table."
        ),
    ] = None,
    store: Store = None,
    server: TrackedServer = None,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Show four definitions side by side: source now, at an event, tracked, replica now.

    Exit status: 0 they agree; 1 they differ; 2 the tracked definition does not fit the event; 3
    some could not be read.
    """
    if at is not None and source is None:
        raise UsageProblem("--at needs --source: the event is read from its log")
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    live = _server(source, seconds, ask=ask_password) if source is not None else None
    other = _server(replica, seconds, ask=ask_password) if replica is not None else None

    def work() -> int:
        from gtid_audit.operands import schema_operands
        from gtid_audit.views import schema_text
        from topology.adapters import compare_definitions as schema_comparing

        key = schema_operands.table_of(table)
        logged = None
        if at is not None and live is not None:
            place_or_gtid = schema_operands.place_or_gtid(at)
            logged = schema_comparing.find_event(live, key, at=place_or_gtid)
        with _opened(store) as opened:
            known_as = str(live.uuid_and_facts()[0]) if live is not None else None
            uuid = schema_operands.server_in(opened, server or known_as)
            tracked = opened.current(uuid, key)
            if logged is not None:
                tracked = opened.entry_at(uuid, key, logged.place)
        comparison = schema_comparing.compare(
            key,
            source=schema_comparing.server_view(schema_comparing.SOURCE, live, key),
            logged=logged,
            tracked=tracked,
            replica=schema_comparing.server_view(schema_comparing.REPLICA, other, key),
            at=at,
        )
        if as_json:
            write_json(schema_text.comparison_document(comparison))
        else:
            schema_text.show_comparison(comparison)
        return exits.status_of(comparison.verdict)

    return _run(work)


_UNKNOWN = 3


def _run(work: "Callable[[], int]") -> int:
    """Run the work. A store that is in use, or is missing an entry, is a usage error."""
    from binlog.adapters.schema_store import StoreProblem
    from binlog.schema.sql_words import CannotFollow

    def guarded() -> int:
        try:
            with progress("reading definitions"):
                return work()
        except (StoreProblem, CannotFollow) as problem:
            raise UsageProblem(str(problem)) from problem

    return said_if_unread(guarded)


def _opened(store: str | None, *, may_be_new: bool = False) -> "SchemaStore":
    from binlog.adapters.schema_store import SchemaStore
    from gtid_audit.operands.schema_operands import store_path

    return SchemaStore(store_path(store), may_be_new=may_be_new)


def _tables_of(server: LogServer, seconds: float) -> "ServerTables":
    from binlog.adapters.schema_servers import ServerTables

    return ServerTables(server.connector(seconds_max=seconds), seconds)


def _server(dsn: str, seconds: float, *, ask: bool) -> "ServerTables":
    operand = read_log_operand(dsn, ask=ask)
    if not isinstance(operand, LogServer):
        raise UsageProblem("expected user@host:port")
    return _tables_of(operand, seconds)
