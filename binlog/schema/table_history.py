"""The history of table definitions: entries, each of which is valid from its place on.

1. A place is a file and a byte in the logs of one server. Files are in the order of their numbers.
2. An entry states that a table is known, is unknown for a reason, or does not exist. Nothing
   changes between entries: the latest entry at or before a place is valid there.
3. The entries say nothing of a place that the logs were not followed to. A statement that was not
   read may have changed the table, so there it is unknown (`UnfollowedEntry`).
4. These are plain values; binlog/adapters/schema_store.py stores them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from binlog.errors import BinlogMisuse
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import TableDefinition

# How many characters are kept of the statement that made an entry.
STATEMENT_SHOWN_MAX = 500


@dataclass(frozen=True, slots=True)
class Place:
    """A byte of a log file. `position` is where an event starts."""

    file: str
    position: int

    def __post_init__(self) -> None:
        if not self.file.rpartition(".")[2].isdigit():
            raise BinlogMisuse(f"{self.file}: expected a log whose name ends in a number")

    @property
    def number(self) -> int:
        """The number at the end of the file's name."""
        return int(self.file.rpartition(".")[2])

    @property
    def order(self) -> tuple[int, int]:
        """The sort key of places."""
        return self.number, self.position

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"


def bytes_behind(place: Place, logs: Iterable[tuple[str, int]]) -> int:
    """Return how many bytes of the logs, whose sizes are given, are after a place."""
    rest = (size for file, size in logs if Place(file, 0).number >= place.number)
    return sum(rest) - place.position


class State(Enum):
    """The state of a table in an entry."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    ABSENT = "absent"


class Source(Enum):
    """The source of an entry."""

    STATEMENT = "statement"  # a statement in the log
    TABLE_MAP = "table map"  # binlog_row_metadata=FULL
    SERVER = "server"  # read from the server, and unchanged since
    HAND = "hand"  # `binlog schema update`


@dataclass(frozen=True, slots=True, order=True)
class TableKey:
    """A table's names, in lower case if the server compares them so (lower_case_table_names)."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Entry:
    """The state of one table from `place` on."""

    key: TableKey
    place: Place
    state: State
    source: Source
    definition: TableDefinition | None = None
    # Why it is UNKNOWN; empty for other states.
    why: str = ""
    gtid: str | None = None
    statement: str = ""

    def __post_init__(self) -> None:
        assert (self.definition is not None) == (self.state is State.KNOWN)
        assert bool(self.why) == (self.state is State.UNKNOWN)


class UnfollowedEntry(Entry):
    """The state of a table where the logs were not followed to; no store contains it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Database:
    """The facts about a database. `is_whole`: all its tables are known, as the log created it."""

    charset: str | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class TemporaryTable:
    """A temporary table of a logged session; in that session it hides a table of its name."""

    server_id: int
    thread_id: int
    key: TableKey


@dataclass(slots=True)
class Catalogue:
    """The state of a server's tables at one place: the latest entry of each."""

    entries: dict[TableKey, Entry] = field(default_factory=dict)
    databases: dict[str, Database] = field(default_factory=dict)
    temporary: set[TemporaryTable] = field(default_factory=set)

    def is_absent(self, key: TableKey) -> bool:
        """Return whether a table certainly does not exist."""
        held = self.entries.get(key)
        if held is not None:
            return held.state is State.ABSENT
        database = self.databases.get(key.schema)
        return database is not None and database.is_whole

    def charset_of(self, schema: str) -> str | None:
        """Return the default charset of a database; None if it is not known."""
        database = self.databases.get(schema)
        return database.charset if database is not None else None


def entry_at(entries: Iterable[Entry], place: Place) -> Entry | None:
    """Return the entry that is valid at a place; of two at the same place, the last in order."""
    held = None
    for entry in entries:
        if entry.place.order <= place.order and (
            held is None or entry.place.order >= held.place.order
        ):
            held = entry
    return held


def unfollowed_at(
    key: TableKey, place: Place, *, followed_to: Place | None, store: str
) -> UnfollowedEntry | None:
    """Return the entry of a table at a place behind the followed logs; None if it is not behind.

    `followed_to` is the place after the last transaction that was followed, None if none was. A
    transaction that begins there is not behind: nothing is between.
    """
    if followed_to is not None and place.order <= followed_to.order:
        return None
    reached = "the store ends there" if followed_to else "no log was followed into the store"
    why = f"{reached}. Run first: gtid-audit binlog schema follow SOURCE --store {store}"
    # The source of an entry is where its definition is from: the logs, which were not read here.
    return UnfollowedEntry(key, followed_to or place, State.UNKNOWN, Source.STATEMENT, why=why)


def definition_if_known(entry: Entry | None, key: TableKey, place: Place) -> TableDefinition:
    """Return the definition of the entry that is valid at a place.

    Raises CannotFollow with the reason.
    """
    if entry is None:
        raise CannotFollow(why=f"{key} is not tracked at {place} or before")
    if entry.definition is None:
        raise CannotFollow(why=f"{key} at {place}: {explain(entry)}")
    return entry.definition


def explain(entry: Entry) -> str:
    """Describe the state of an entry as text."""
    if entry.state is State.ABSENT:
        return f"the table does not exist since {entry.place}"
    if entry.state is State.UNKNOWN:
        return f"not known since {entry.place}: {entry.why}"
    return f"known since {entry.place}"
