"""Table definitions for logs that do not contain enough: from a file, a store, or a server.

1. A file has the output of SHOW CREATE TABLE, or of `mysqldump --no-data`: CREATE TABLE statements,
   and USE for those without a schema. A statement without either applies to every schema.
2. A store (`binlog schema follow`) has the definition at the beginning of the transaction. If the
   store does not know it, or was not followed to there, the reason is reported once, and the next
   source is used.
3. A server is queried for a table when rows of it appear, and returns the definition as it is
   *now*. That definition is not used if the same logs change the table's columns after the
   transaction. Otherwise values would go to other columns, or become other members of an ENUM.
4. An assumption that a script relies on without proof is a caveat, and is written into the script.
5. An unreadable source is a UsageProblem. The code that reads the rows finds a definition that does
   not fit them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from binlog.quoting import quote_identifier
from binlog.schema.table_definitions import CannotFollow, TableDefinition
from binlog.schema.table_history import Place, TableKey
from gtid_audit.exits import UsageProblem

if TYPE_CHECKING:
    from binlog.adapters.schema_changes import ChangesBehind
    from binlog.adapters.schema_servers import ServerTables
    from binlog.rows.values import DefinitionOf

FILE_BYTES_MAX: Final = 64 * 1024**2

# Parts of an SQL text in which a semicolon does not end a statement: strings, names, comments.
_PIECES: Final = re.compile(
    r"""'(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*" | `(?:[^`]|``)*`
    | /\*.*?\*/ | --[ \t][^\n]* | \#[^\n]* | ; | [^'"`/\-\#;]+ | .""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"--[ \t]|--\Z|#|/\*(?!!)")
_USE: Final = re.compile(r"USE\s+(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\S+))\s*\Z", re.IGNORECASE)
_CREATE_TABLE: Final = re.compile(r"CREATE\s+TABLE\b", re.IGNORECASE)


def definitions_of_file(path: Path) -> dict[tuple[str, str], TableDefinition]:
    """Read a file of definitions, by schema (empty if the file has none) and table.

    Raises UsageProblem.
    """
    from binlog.schema.show_create import definition_from_create

    try:
        text = text_within(path, bytes_max=FILE_BYTES_MAX)
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{path}: not UTF-8 at byte {error.start}") from error
    found: dict[tuple[str, str], TableDefinition] = {}
    schema = ""
    for statement in statements_of(text):
        if used := _USE.match(statement):
            schema = used["plain"] or used["quoted"].replace("``", "`")
        elif _CREATE_TABLE.match(statement):
            try:
                definition = definition_from_create(statement, schema=schema)
            except (CannotFollow, ValueError) as error:
                raise UsageProblem(f"{path}: {error}") from error
            found[definition.schema, definition.table] = definition
    if not found:
        raise UsageProblem(f"{path}: contains no CREATE TABLE")
    return found


def text_within(path: Path, *, bytes_max: int) -> str:
    """Read a text up to a limit of bytes; the size of a pipe is not known in advance.

    The pipe of a shell's <(…) is read. A named pipe is refused: opening it waits forever if no
    process writes to it. Raises UsageProblem, OSError, UnicodeDecodeError.
    """
    if path.is_fifo() and not path.is_relative_to("/dev/fd"):
        raise UsageProblem(f"{path}: a named pipe; copy its content into a file first")
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise UsageProblem(f"{path}: more than the limit of {bytes_max:,} bytes")
    return content.decode()


def statements_of(text: str) -> Iterator[str]:
    """Split an SQL text at its semicolons, without comments (version comments stay)."""
    pieces: list[str] = []
    for match in _PIECES.finditer(text):
        piece = match[0]
        if piece == ";":
            yield "".join(pieces).strip()
            pieces = []
        elif not _COMMENT.match(piece):
            pieces.append(piece)
    if last := "".join(pieces).strip():
        yield last


# Returns the definition of a table at a place in the logs. Raises CannotFollow.
TrackedAt: TypeAlias = "Callable[[TableKey, Place], TableDefinition]"


@dataclass(frozen=True, slots=True)
class ServerNow:
    """A server that is queried for its tables, and what its logs changed about them."""

    tables: ServerTables
    name: str
    changed_behind: ChangesBehind


class GivenDefinitions:
    """Definitions from a file, else from a store, else from a server."""

    def __init__(
        self,
        given: dict[tuple[str, str], TableDefinition],
        *,
        tracked: TrackedAt | None = None,
        now: ServerNow | None = None,
        say: Callable[[str], None],
    ) -> None:
        self._given = given
        self._tracked = tracked
        self._now = now
        self._caveats: dict[str, None] = {}
        self._say = say
        self._said: set[str] = set()
        self._asked: dict[TableKey, TableDefinition | None] = {}

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the assumptions so far, one sentence for each table."""
        return tuple(sorted(self._caveats))

    @property
    def server_now(self) -> ServerTables | None:
        """Return the server of --schema-from, if there is one."""
        return self._now.tables if self._now is not None else None

    def at(self, file: str, position: int) -> DefinitionOf:
        """Return a function for the tables of a transaction that begins there."""
        return lambda schema, table: self._find(schema, table, file, position)

    def _find(self, schema: str, table: str, file: str, position: int) -> TableDefinition | None:
        """Query the sources in turn. Raises MySQLError, OSError, UsageProblem, BinlogError."""
        for name in ((schema, table), ("", table)):
            if name in self._given:
                self._caveats[
                    f"The columns of {schema}.{table} come from the file of --definitions. No log"
                    " shows that the table had these columns at these transactions."
                ] = None
                return self._given[name]
        if self._tracked is not None:
            place = Place(file, position)
            try:
                return self._tracked(TableKey(schema, table), place)
            except CannotFollow as error:
                text = str(error)
                # One reason is valid at many transactions: the first of them is reported.
                self._say_once(text, reason=text.replace(str(place), ""))
        if self._now is None:
            return None
        key = TableKey(schema, table)
        if key not in self._asked:
            self._asked[key] = _definition_now(self._now.tables, key)
        definition = self._asked[key]
        if definition is None:
            return None
        return self._unchanged(self._now, definition, file, position)

    def _unchanged(
        self, server: ServerNow, definition: TableDefinition, file: str, position: int
    ) -> TableDefinition | None:
        """Return a present definition if the logs show no change after a place, else None."""
        name = f"{definition.schema}.{definition.table}"
        changed = server.changed_behind(definition.schema, definition.table, file, position)
        if changed is not None:
            self._say_once(
                f"{name}: its columns or partitions were changed at {changed}, after the"
                f" requested transaction at {file}:{position}. The definition on {server.name} now"
                " is not used. Use --store (binlog schema follow), or --definitions with the older"
                " definition"
            )
            return None
        self._caveats[
            f"The columns of {name} are those on {server.name} when this script was written."
            " The logs that were read do not change them after these transactions. A change that"
            " is not in these logs is not detected."
        ] = None
        return definition

    def _say_once(self, text: str, *, reason: str = "") -> None:
        """Report a text, but not a second one with the same reason."""
        if (reason or text) not in self._said:
            self._said.add(reason or text)
            self._say(text)


def _definition_now(tables: ServerTables, key: TableKey) -> TableDefinition | None:
    try:
        return tables.definition(key)
    except CannotFollow as error:
        name = f"{quote_identifier(key.schema)}.{quote_identifier(key.table)}"
        raise UsageProblem(f"{name}: {error}") from error
