"""Opens the sources of table definitions that the options of `binlog show` select."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.definition_sources import GivenDefinitions, ServerNow, definitions_of_file
from gtid_audit.operands.logs_from_operands import LogServer, read_log_operand
from gtid_audit.output import warn

if TYPE_CHECKING:
    from binlog.schema.table_definitions import TableDefinition
    from gtid_audit.operands.definition_sources import TrackedAt


@dataclass(frozen=True, slots=True)
class DefinitionOptions:
    """The options as typed: files, a store with one of its servers, and a server of now."""

    files: tuple[Path, ...]
    store: str | None
    server: str | None
    schema_from: str | None


@contextmanager
def opened_definitions(
    options: DefinitionOptions,
    source: LogServer | tuple[Path, ...],
    seconds: float,
    *,
    ask: bool,
) -> Iterator[GivenDefinitions]:
    """Provide the definitions for the logs of `source`. Raises UsageProblem, InventoryProblem."""
    given: dict[tuple[str, str], TableDefinition] = {}
    for path in options.files:
        given |= definitions_of_file(path)
    with ExitStack() as held:
        tracked, now = None, None
        if options.store is not None:
            tracked = _tracked(options.store, options.server, held)
        if options.schema_from:
            now = _now(options.schema_from, source, seconds, ask=ask)
        yield GivenDefinitions(given, tracked=tracked, now=now, say=warn)


def _tracked(file: str, server: str | None, held: ExitStack) -> TrackedAt:
    from binlog.adapters.schema_store import SchemaStore, StoreProblem
    from gtid_audit.operands.schema_operands import server_in, store_path

    try:
        store = held.enter_context(SchemaStore(store_path(file), may_be_new=False))
    except StoreProblem as problem:
        raise UsageProblem(f"--store: {problem}") from problem
    return partial(store.definition_at, server_in(store, server))


def _now(dsn: str, source: LogServer | tuple[Path, ...], seconds: float, *, ask: bool) -> ServerNow:
    from binlog.adapters.schema_changes import FileChanges, ServerChanges
    from binlog.adapters.schema_servers import ServerTables

    server = read_log_operand(dsn, ask=ask)
    if not isinstance(server, LogServer):
        raise UsageProblem(f"--schema-from: expected user@host:port, not {dsn}")
    warn(
        f"using the table definitions of {server.name} as they are now, except where these logs"
        " change a table after the transaction"
    )
    changes: FileChanges | ServerChanges
    if isinstance(source, LogServer):
        changes = ServerChanges(source.connector(seconds_max=seconds), seconds, warn)
    else:
        changes = FileChanges(source)
    tables = ServerTables(server.connector(seconds_max=seconds), seconds)
    return ServerNow(tables, server.name, changes)
