"""Stores table definitions in one SQLite file, with the log position up to which they are known.

1. A transaction of the store contains the entries of some events and the place after them. So a
   follower that is killed at any time continues at a place where the store is consistent.
2. A process that writes holds the writer's lock, a file beside the store. The lock ends with the
   process. A follower holds it while it reads, so no other process changes definitions.
3. `update` and `delete` first back up what they replace, in the same transaction.
4. This file handles paths and SQL only; binlog/schema/table_history.py interprets the entries.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import UUID

from binlog.errors import BinlogError
from binlog.schema.documents import as_text, entry_document, entry_of_document
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import (
    Catalogue,
    Database,
    Entry,
    Place,
    TableKey,
    TemporaryTable,
    definition_if_known,
    entry_at,
    unfollowed_at,
)

_VERSION = 1
_BUSY_SECONDS_MAX = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS servers (
    server TEXT PRIMARY KEY, file TEXT NOT NULL, position INTEGER NOT NULL,
    created_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, server TEXT NOT NULL, schema_name TEXT NOT NULL,
    table_name TEXT NOT NULL, number INTEGER NOT NULL, position INTEGER NOT NULL,
    document TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS entries_of_table
    ON entries (server, schema_name, table_name, number, position);
CREATE TABLE IF NOT EXISTS databases (
    server TEXT NOT NULL, name TEXT NOT NULL, charset TEXT, is_whole INTEGER NOT NULL,
    PRIMARY KEY (server, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS temporary_tables (
    server TEXT NOT NULL, server_id INTEGER NOT NULL, thread_id INTEGER NOT NULL,
    schema_name TEXT NOT NULL, table_name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS backups (
    id INTEGER PRIMARY KEY, server TEXT NOT NULL, schema_name TEXT NOT NULL,
    table_name TEXT NOT NULL, documents TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS staged (
    server TEXT NOT NULL, schema_name TEXT NOT NULL, table_name TEXT NOT NULL,
    document TEXT NOT NULL, PRIMARY KEY (server, schema_name, table_name)) WITHOUT ROWID;
"""


class StoreProblem(BinlogError):
    """The store cannot be used: it is not a store, not readable, or of a later version."""


class StoreInUse(StoreProblem):
    """Another process, usually a follower, holds the lock. `holder` describes it."""

    def __init__(self, *, store: str, holder: str) -> None:
        super().__init__(
            f"{store} is in use by {holder}; definitions can be changed only when no other process"
            " uses it"
        )
        self.store = store
        self.holder = holder


class NothingToRestore(StoreProblem):
    """There is no backup of this table."""


@dataclass(frozen=True, slots=True)
class Followed:
    """How far a server's logs were followed. `created_at` is the file's time: seconds, UTC."""

    place: Place
    created_at: int


class SchemaStore:
    """An open store. Close it, or use it in a `with` statement.

    Raises StoreProblem if it cannot be opened, or is missing and may not be created.
    """

    def __init__(self, path: Path, *, may_be_new: bool = True) -> None:
        self.path = path
        if not may_be_new and not path.exists():
            raise StoreProblem(
                f"{path} does not exist: no table is tracked yet; start with: binlog schema follow"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS_MAX, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise StoreProblem(f"{path}: {error}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise StoreProblem(f"{path}: {error}") from error
        except StoreProblem:
            self.close()
            raise

    def _prepare(self) -> None:
        [[version]] = self._database.execute("PRAGMA user_version").fetchall()
        if version not in (0, _VERSION):
            raise StoreProblem(f"{self.path}: expected store version {_VERSION}, found {version}")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        if version == 0:
            self._database.executescript(_TABLES)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    # ---- the lock

    @contextmanager
    def writing(self, who: str) -> Iterator[None]:
        """Hold the writer's lock. Raises StoreInUse at once if another process holds it."""
        beside = self.path.with_name(self.path.name + ".lock")
        with beside.open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.seek(0)
                holder = lock.read().strip() or "another process"
                raise StoreInUse(store=str(self.path), holder=holder) from error
            lock.truncate(0)
            lock.write(f"{who}, process {os.getpid()}")
            lock.flush()
            try:
                yield
            finally:
                lock.truncate(0)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    # ---- reading

    def servers(self) -> tuple[UUID, ...]:
        """Return the servers that the store contains data of."""
        rows = self._database.execute(
            "SELECT server FROM servers UNION SELECT server FROM entries ORDER BY 1"
        )
        return tuple(UUID(row[0]) for row in rows)

    def followed(self, server: UUID) -> Followed | None:
        """Return how far a server was followed; None if it never was."""
        row = self._database.execute(
            "SELECT file, position, created_at FROM servers WHERE server = ?", (str(server),)
        ).fetchone()
        return Followed(Place(row[0], row[1]), row[2]) if row else None

    def tables(self, server: UUID) -> tuple[TableKey, ...]:
        """Return the tables of a server that have entries."""
        rows = self._database.execute(
            "SELECT DISTINCT schema_name, table_name FROM entries WHERE server = ? ORDER BY 1, 2",
            (str(server),),
        )
        return tuple(TableKey(*row) for row in rows)

    def entries(self, server: UUID, key: TableKey) -> tuple[Entry, ...]:
        """Return all entries of a table, in the order of their places."""
        rows = self._database.execute(
            "SELECT document FROM entries WHERE server = ? AND schema_name = ? AND table_name = ?"
            " ORDER BY number, position, id",
            (str(server), key.schema, key.table),
        )
        return tuple(entry_of_document(json.loads(row[0])) for row in rows)

    def current(self, server: UUID, key: TableKey) -> Entry | None:
        """Return the latest entry of a table."""
        row = self._database.execute(
            "SELECT document FROM entries WHERE server = ? AND schema_name = ? AND table_name = ?"
            " ORDER BY number DESC, position DESC, id DESC LIMIT 1",
            (str(server), key.schema, key.table),
        ).fetchone()
        return entry_of_document(json.loads(row[0])) if row else None

    def entry_at(self, server: UUID, key: TableKey, place: Place) -> Entry | None:
        """Return the entry that is valid at a place; an UnfollowedEntry where no log was read."""
        followed = self.followed(server)
        behind = unfollowed_at(
            key,
            place,
            followed_to=followed.place if followed else None,
            store=shlex.quote(str(self.path)),
        )
        return behind or entry_at(self.entries(server, key), place)

    def definition_at(self, server: UUID, key: TableKey, place: Place) -> TableDefinition:
        """Return the definition that is valid at a place. Raises CannotFollow with the reason."""
        return definition_if_known(self.entry_at(server, key, place), key, place)

    def catalogue(self, server: UUID) -> Catalogue:
        """Return the state that a tracker needs to continue."""
        found = Catalogue()
        for key in self.tables(server):
            if (entry := self.current(server, key)) is not None:
                found.entries[key] = entry
        for name, charset, is_whole in self._database.execute(
            "SELECT name, charset, is_whole FROM databases WHERE server = ?", (str(server),)
        ):
            found.databases[name] = Database(charset, bool(is_whole))
        for server_id, thread_id, schema, table in self._database.execute(
            "SELECT server_id, thread_id, schema_name, table_name FROM temporary_tables"
            " WHERE server = ?",
            (str(server),),
        ):
            found.temporary.add(TemporaryTable(server_id, thread_id, TableKey(schema, table)))
        return found

    # ---- following

    def save(
        self, server: UUID, entries: Iterable[Entry], catalogue: Catalogue, followed: Followed
    ) -> None:
        """Store entries, and the place after their events, in one transaction."""
        name = str(server)
        with self._transaction():
            for entry in entries:
                self._insert(name, entry)
            self._database.execute("DELETE FROM databases WHERE server = ?", (name,))
            self._database.executemany(
                "INSERT INTO databases VALUES (?, ?, ?, ?)",
                [
                    (name, database, each.charset, int(each.is_whole))
                    for database, each in sorted(catalogue.databases.items())
                ],
            )
            self._database.execute("DELETE FROM temporary_tables WHERE server = ?", (name,))
            self._database.executemany(
                "INSERT INTO temporary_tables VALUES (?, ?, ?, ?, ?)",
                [
                    (name, each.server_id, each.thread_id, each.key.schema, each.key.table)
                    for each in catalogue.temporary
                ],
            )
            self._database.execute(
                "INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)",
                (name, followed.place.file, followed.place.position, followed.created_at),
            )

    def _insert(self, server: str, entry: Entry) -> None:
        self._database.execute(
            "INSERT INTO entries (server, schema_name, table_name, number, position, document)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                server,
                entry.key.schema,
                entry.key.table,
                *entry.place.order,
                as_text(entry_document(entry)),
            ),
        )

    # ---- changes by the operator

    def stage(self, server: UUID, entry: Entry) -> None:
        """Store an entry as staged; the next run that follows the logs applies it."""
        with self._transaction():
            self._database.execute(
                "INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?)",
                (str(server), entry.key.schema, entry.key.table, as_text(entry_document(entry))),
            )

    def staged(self, server: UUID) -> tuple[Entry, ...]:
        """Return the staged entries."""
        rows = self._database.execute(
            "SELECT document FROM staged WHERE server = ? ORDER BY schema_name, table_name",
            (str(server),),
        )
        return tuple(entry_of_document(json.loads(row[0])) for row in rows)

    def put_staged(self, server: UUID) -> tuple[Entry, ...]:
        """Apply the staged entries and return them."""
        waiting = self.staged(server)
        for entry in waiting:
            self.put(server, entry)
        return waiting

    def put(self, server: UUID, entry: Entry) -> None:
        """Insert an operator's entry; back up and replace the table's entries from its place on."""
        with self._transaction():
            self._back_up(server, entry.key)
            self._database.execute(
                "DELETE FROM entries WHERE server = ? AND schema_name = ? AND table_name = ?"
                " AND (number, position) >= (?, ?)",
                (str(server), entry.key.schema, entry.key.table, *entry.place.order),
            )
            self._insert(str(server), entry)
            self._unstage(server, entry.key)

    def delete(self, server: UUID, key: TableKey) -> int:
        """Back up and delete every entry of a table; return their number."""
        with self._transaction():
            if self.entries(server, key):
                self._back_up(server, key)
            self._unstage(server, key)
            return self._delete(server, key)

    def restore(self, server: UUID, key: TableKey) -> tuple[Entry, ...]:
        """Replace a table's entries by its latest backup. Raises NothingToRestore."""
        with self._transaction():
            row = self._database.execute(
                "SELECT id, documents FROM backups WHERE server = ? AND schema_name = ?"
                " AND table_name = ? ORDER BY id DESC LIMIT 1",
                (str(server), key.schema, key.table),
            ).fetchone()
            if row is None:
                raise NothingToRestore(f"there is no backup of {key}")
            self._delete(server, key)
            self._unstage(server, key)
            entries = tuple(entry_of_document(each) for each in json.loads(row[1]))
            for entry in entries:
                self._insert(str(server), entry)
            self._database.execute("DELETE FROM backups WHERE id = ?", (row[0],))
            return entries

    def backup_count(self, server: UUID, key: TableKey) -> int:
        """Return the number of backups of a table."""
        [[count]] = self._database.execute(
            "SELECT count(*) FROM backups WHERE server = ? AND schema_name = ? AND table_name = ?",
            (str(server), key.schema, key.table),
        ).fetchall()
        return int(count)

    def _back_up(self, server: UUID, key: TableKey) -> None:
        documents = [entry_document(entry) for entry in self.entries(server, key)]
        self._database.execute(
            "INSERT INTO backups (server, schema_name, table_name, documents) VALUES (?, ?, ?, ?)",
            (str(server), key.schema, key.table, json.dumps(documents, ensure_ascii=False)),
        )

    def _delete(self, server: UUID, key: TableKey) -> int:
        return self._database.execute(
            "DELETE FROM entries WHERE server = ? AND schema_name = ? AND table_name = ?",
            (str(server), key.schema, key.table),
        ).rowcount

    def _unstage(self, server: UUID, key: TableKey) -> None:
        self._database.execute(
            "DELETE FROM staged WHERE server = ? AND schema_name = ? AND table_name = ?",
            (str(server), key.schema, key.table),
        )
