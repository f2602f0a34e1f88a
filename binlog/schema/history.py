"""What is known of tables over time: entries, each of which holds from its place on.

1. A place is in one server's logs: file and byte. Files are in the order of their numbers.
2. An entry says that a table is known, is not known and why, or is not there. Between entries
   nothing changes: the latest entry at or before a place is what holds there.
3. Plain values; who keeps them is binlog/adapters/schema_store.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from binlog.errors import BinlogMisuse
from binlog.schema.tables import TableDefinition
from binlog.schema.words import CannotFollow

# Text kept of the statement that made an entry.
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
        """The number the file's name ends in."""
        return int(self.file.rpartition(".")[2])

    @property
    def order(self) -> tuple[int, int]:
        """What places are sorted by."""
        return self.number, self.position

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"


class State(Enum):
    """What an entry says."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    ABSENT = "absent"


class Source(Enum):
    """Where an entry comes from."""

    STATEMENT = "statement"  # followed
    TABLE_MAP = "table map"  # binlog_row_metadata=FULL
    SERVER = "server"  # asked, and nothing had changed since
    HAND = "hand"  # `binlog schema update`


@dataclass(frozen=True, slots=True, order=True)
class TableKey:
    """Which table. Names are folded where the server folds them (lower_case_table_names)."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Entry:
    """What holds for one table from `place` on."""

    key: TableKey
    place: Place
    state: State
    source: Source
    definition: TableDefinition | None = None
    # Why it is not known; empty if it is.
    why: str = ""
    gtid: str | None = None
    statement: str = ""

    def __post_init__(self) -> None:
        assert (self.definition is not None) == (self.state is State.KNOWN)
        assert bool(self.why) == (self.state is State.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Database:
    """What is known of a database. Of one that is whole every table is: its creation was seen."""

    charset: str | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class TemporaryTable:
    """A temporary table a logged session made; it hides the table of its name."""

    server_id: int
    thread_id: int
    key: TableKey


@dataclass(slots=True)
class Catalogue:
    """What is known of a server's tables at one place: the latest entry of each."""

    entries: dict[TableKey, Entry] = field(default_factory=dict)
    databases: dict[str, Database] = field(default_factory=dict)
    temporary: set[TemporaryTable] = field(default_factory=set)


def entry_at(entries: Iterable[Entry], place: Place) -> Entry | None:
    """Return the entry that holds at a place; of two at one place the later one given."""
    held = None
    for entry in entries:
        if entry.place.order <= place.order and (
            held is None or entry.place.order >= held.place.order
        ):
            held = entry
    return held


def definition_at(entries: Iterable[Entry], key: TableKey, place: Place) -> TableDefinition:
    """Return the definition of a table at a place. Raises CannotFollow with the reason."""
    entry = entry_at(entries, place)
    if entry is None:
        raise CannotFollow(why=f"{key} is not tracked at {place}, nor before")
    if entry.definition is None:
        raise CannotFollow(why=f"{key} at {place}: {explain(entry)}")
    return entry.definition


def explain(entry: Entry) -> str:
    """Return what an entry says, for a person."""
    if entry.state is State.ABSENT:
        return f"there is no such table since {entry.place}"
    if entry.state is State.UNKNOWN:
        return f"not known since {entry.place}: {entry.why}"
    return f"known since {entry.place}"
