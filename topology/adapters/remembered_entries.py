"""What a service remembers from audit to audit, in the history file: a table of texts by key.

1. The table is created when it is first written, also in a file of an earlier version of
   gtid-audit. Commands that only record findings neither create nor read it.
2. This module does not know what the texts mean (gtid_audit/tasks/served_history.py does).
"""

from collections.abc import Iterable
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


def read_entries(file: HistoryFile) -> tuple[RememberedEntry, ...]:
    """Return all entries, in order of kind and key. Raises UnusableHistory."""
    with file.transaction(READ) as database:
        if not database.execute("PRAGMA table_info(remembered)").fetchall():
            return ()  # no service has used the file
        found = database.execute("SELECT kind, key, value FROM remembered ORDER BY kind, key")
        return tuple(RememberedEntry(*map(str, row)) for row in found)


def write_entries(
    file: HistoryFile, entries: Iterable[RememberedEntry], *, gone: Iterable[tuple[str, str]]
) -> None:
    """Store entries, and remove those of a kind and a key. Raises UnusableHistory."""
    with file.transaction(WRITE) as database:
        database.execute(_TABLE)
        database.executemany(
            "REPLACE INTO remembered (kind, key, value) VALUES (?, ?, ?)",
            [(each.kind, each.key, each.value) for each in entries],
        )
        database.executemany("DELETE FROM remembered WHERE kind = ? AND key = ?", list(gone))
