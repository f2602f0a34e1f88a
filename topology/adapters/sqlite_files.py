"""What our SQLite files have in common: who owns them, which version, and errors as text.

1. A file is created empty with mode 0600, and gets its tables in the first transaction. An empty
   file is what a process leaves that ended between the two.
2. A file of another application or version, or a damaged one, is refused and not changed.
"""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOCK_SECONDS_MAX: Final = 30.0  # an audit of a large fleet writes for about a second


class UnusableFile(Exception):
    """A file that cannot be read or written. Its text has the file and what to do."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The kind of a file: its name in texts, and what its header must say."""

    noun: str
    application_id: int  # PRAGMA application_id
    version: int  # PRAGMA user_version
    tables: tuple[str, ...]

    @property
    def way_out(self) -> str:
        """Return what to do with a damaged file."""
        return f"Restore a copy, or move the file away to begin a new {self.noun}"


class DamagedFile(Exception):
    """Another application's file, one of another version, or one with an impossible value."""

    @classmethod
    def of(cls, what: str, form: FileFormat) -> "DamagedFile":
        """Return the error about damage, with what to do."""
        return cls(f"{what}. The file was not changed. {form.way_out}")


def create_private(path: Path) -> None:
    """Create an empty file with mode 0600. Another process may have created it just before.

    Raises OSError.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return


def require_format(database: sqlite3.Connection, form: FileFormat) -> None:
    """Raise DamagedFile unless the file is sound and of this format. Fill an empty file."""
    owner = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    is_new = database.execute("PRAGMA schema_version").fetchone()[0] == 0
    if is_new and owner == 0:
        for statement in form.tables:
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {form.application_id}")
        database.execute(f"PRAGMA user_version = {form.version}")
        return
    if owner != form.application_id:
        raise DamagedFile(f"a SQLite file, but not a {form.noun} of gtid-audit")
    if version != form.version:
        raise DamagedFile(
            f"a {form.noun} of version {version}; this gtid-audit reads and writes"
            f" {form.version}. The file was not changed. Use the gtid-audit that wrote it, or"
            " another file"
        )
    sound = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if sound != "ok":
        raise DamagedFile.of(f"the file is damaged: {' '.join(str(sound).split())}", form)


def in_words(error: sqlite3.Error, form: FileFormat) -> str:
    """Return what happened and what to do. The texts of SQLite's errors have no values."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has locked the {form.noun} for {LOCK_SECONDS_MAX:.0f} seconds"
    if primary == sqlite3.SQLITE_NOTADB:
        return f"not a {form.noun} of gtid-audit: not a SQLite file"
    if primary == sqlite3.SQLITE_READONLY:
        return f"the {form.noun} cannot be written: the file or its directory is read-only"
    if primary == sqlite3.SQLITE_CORRUPT:
        return f"the file is damaged: {error}. {form.way_out}"
    return f"the {form.noun} cannot be read or written: {error}"
