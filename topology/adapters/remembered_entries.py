"""What audits remember for the next ones, in the history file: a table of texts by kind and key.

1. The table is created when it is first written, also in a file of an earlier version of
   gtid-audit. Commands that only record findings neither create nor read it.
2. Several processes may use one file. What is written depends on what is there, so both happen in
   one transaction, which begins with the write lock.
3. This module does not know what the texts mean (gtid_audit/tasks/history_memory.py does).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from topology.adapters.history_file import READ, WRITE, HistoryFile

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS remembered (kind TEXT NOT NULL, key TEXT NOT NULL,"
    " value TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class RememberedEntry:
    """One text. `kind` and `key` identify it."""

    kind: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ChangedEntries:
    """Entries to store, and the kinds and keys of those to remove."""

    stored: tuple[RememberedEntry, ...]
    gone: tuple[tuple[str, str], ...]


def read_entries(file: HistoryFile, kinds: Iterable[str]) -> tuple[RememberedEntry, ...]:
    """Return the entries of some kinds. Raises UnusableHistory."""
    with file.transaction(READ) as database:
        if not database.execute("PRAGMA table_info(remembered)").fetchall():
            return ()  # nothing was remembered in this file yet
        query = "SELECT kind, key, value FROM remembered WHERE kind = ?"
        return tuple(
            RememberedEntry(*map(str, row))
            for kind in kinds
            for row in database.execute(query, (kind,))
        )


def change_entries(
    file: HistoryFile,
    names: Iterable[tuple[str, str]],
    change: Callable[[tuple[RememberedEntry, ...]], ChangedEntries],
) -> None:
    """Change entries, given those of some kinds and keys as they are now.

    Raises UnusableHistory.
    """
    with file.transaction(WRITE) as database:
        database.execute(_TABLE)
        query = "SELECT kind, key, value FROM remembered WHERE kind = ? AND key = ?"
        found = (row for name in names for row in database.execute(query, name))
        changed = change(tuple(RememberedEntry(*map(str, row)) for row in found))
        database.executemany(
            "REPLACE INTO remembered (kind, key, value) VALUES (?, ?, ?)",
            [(each.kind, each.key, each.value) for each in changed.stored],
        )
        database.executemany("DELETE FROM remembered WHERE kind = ? AND key = ?", changed.gone)
