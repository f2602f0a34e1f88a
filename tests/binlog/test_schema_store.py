"""The store on its own: its lock, its versions, what is kept and brought back."""

from __future__ import annotations

import pickle
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from binlog.adapters.schema_follow import LogGap, LogsReset, starting_place
from binlog.adapters.schema_store import (
    Followed,
    NothingToRestore,
    SchemaStore,
    StoreInUse,
    StoreProblem,
)
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import Column, TableDefinition
from binlog.schema.table_history import (
    Catalogue,
    Database,
    Entry,
    Place,
    Source,
    State,
    TableKey,
    TemporaryTable,
    UnfollowedEntry,
)

A, B = (UUID(letter * 8 + "-0000-0000-0000-000000000000") for letter in "ab")
KEY = TableKey("d", "t")

HOLDER = """
import sys, time
from pathlib import Path
from binlog.adapters.schema_store import SchemaStore
with SchemaStore(Path(sys.argv[1])) as store, store.writing("a follower"):
    print("held", flush=True)
    time.sleep(60)
"""


def entry(position: int, *names: str, key: TableKey = KEY) -> Entry:
    columns = tuple(Column(name, "int") for name in names)
    definition = TableDefinition(key.schema, key.table, columns) if names else None
    state = State.KNOWN if names else State.ABSENT
    return Entry(key, Place("log.000001", position), state, Source.STATEMENT, definition)


def save(store: SchemaStore, *entries: Entry, server: UUID = A) -> None:
    store.save(server, entries, Catalogue(), Followed(Place("log.000001", 900), 7))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store.sqlite"


def test_a_holder_that_is_killed_holds_nothing(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with SchemaStore(path) as store:
            with pytest.raises(StoreInUse, match=f"a follower, process {holder.pid}") as error:
                store.writing("us").__enter__()
            again = pickle.loads(pickle.dumps(error.value))
            assert (str(again), again.holder) == (str(error.value), error.value.holder)
            holder.send_signal(signal.SIGKILL)
            holder.wait(timeout=30)
            with store.writing("us"):
                save(store, entry(100, "a"))
            assert store.tables(A) == (KEY,)


def test_servers_are_told_apart(path: Path) -> None:
    with SchemaStore(path) as store:
        save(store, entry(100, "a"))
        save(store, entry(100, "b"), server=B)
        assert store.servers() == (A, B)
        assert store.current(A, KEY) != store.current(B, KEY)
        assert store.current(A, TableKey("d", "other")) is None
        assert store.followed(A) == Followed(Place("log.000001", 900), 7)


def test_what_a_tracker_needs_comes_back(path: Path) -> None:
    catalogue = Catalogue(
        databases={"d": Database("latin1", is_whole=True), "e": Database(None, is_whole=False)},
        temporary={TemporaryTable(1, 2, KEY)},
    )
    with SchemaStore(path) as store:
        store.save(A, [entry(1, "a"), entry(2, "a", "b")], catalogue, Followed(Place("x.1", 2), 3))
    with SchemaStore(path, may_be_new=False) as store:
        found = store.catalogue(A)
    assert found.databases == catalogue.databases
    assert found.temporary == catalogue.temporary
    assert found.entries == {KEY: entry(2, "a", "b")}


def test_changes_by_hand_are_backed_up_one_by_one(path: Path) -> None:
    first, second, later = entry(100, "a"), entry(100, "b"), entry(300, "c")
    with SchemaStore(path) as store:
        save(store, first, later)
        with pytest.raises(NothingToRestore):
            store.restore(A, KEY)
        store.put(A, second)  # from its place on it replaces everything
        assert store.entries(A, KEY) == (second,)
        assert store.delete(A, KEY) == 1
        assert store.entries(A, KEY) == ()
        assert store.backup_count(A, KEY) == 2
        assert store.restore(A, KEY) == (second,)
        assert store.restore(A, KEY) == (first, later)
        assert store.entries(A, KEY) == (first, later)
        store.stage(A, second)
        assert store.entries(A, KEY) == (first, later)
        assert store.put_staged(A) == (second,)
        assert store.staged(A) == ()
        assert store.definition_at(A, KEY, Place("log.000001", 900)) == second.definition


def test_a_store_that_cannot_be_used_is_said(path: Path) -> None:
    with pytest.raises(StoreProblem, match="does not exist"):
        SchemaStore(path, may_be_new=False)
    SchemaStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreProblem, match="found 99"):
        SchemaStore(path)
    path.write_bytes(b"something else, of some length that sqlite looks at " * 10)
    with pytest.raises(StoreProblem, match="not a database"):
        SchemaStore(path)


def test_where_following_goes_on() -> None:
    followed = Followed(Place("log.000003", 44), 7)
    files = ["log.000002", "log.000003"]
    assert starting_place(None, files, created_at=lambda _file: 1) == Place("log.000002", 0)
    assert starting_place(followed, files, created_at=lambda _file: 7) == followed.place
    with pytest.raises(LogsReset, match="logs were reset"):
        starting_place(followed, files, created_at=lambda _file: 8)
    with pytest.raises(LogGap, match=r"was followed to log\.000003:44"):
        starting_place(followed, ["log.000004"], created_at=lambda _file: 7)


def test_a_place_that_was_not_followed_to_has_no_definition(path: Path) -> None:
    """A statement behind the followed logs may have changed the table."""
    end = Place("log.000001", 900)
    with SchemaStore(path) as store:
        save(store, entry(100, "a"))
        for known in (Place("log.000001", 100), end):
            assert store.definition_at(A, KEY, known) == entry(100, "a").definition
        for unknown in (Place("log.000001", 901), Place("log.000002", 4)):
            assert isinstance(store.entry_at(A, KEY, unknown), UnfollowedEntry)
            with pytest.raises(CannotFollow) as refused:
                store.definition_at(A, KEY, unknown)
            assert str(refused.value) == (
                f"d.t at {unknown}: not known since {end}: the store ends there. Run first:"
                f" gtid-audit binlog schema follow SOURCE --store {path}"
            )
        # Also a table without an entry, and one whose only entry was set by hand.
        with pytest.raises(CannotFollow, match="the store ends there"):
            store.definition_at(A, TableKey("d", "new"), Place("log.000002", 4))
        store.put(B, entry(100, "a"))
        with pytest.raises(CannotFollow, match="no log was followed into the store"):
            store.definition_at(B, KEY, Place("log.000001", 100))
