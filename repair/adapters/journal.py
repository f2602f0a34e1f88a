"""The journal of applied plans: a SQLite file with each procedure and each of its events.

How it works
------------
A procedure is at work in at most one process. That process holds a lock on a file beside the
journal, which the kernel releases when the process ends, however it ends. So `interrupted` is never
guessed from an age or a process id: the state says "running" and no process holds the lock.

What is written when:

1. The beginning and the end of a script, and each state, are on the disk before anything else
   happens (synchronous = FULL). After a power failure the journal knows each script that was begun.
2. The statements of a script are written before they are sent, each in its own transaction, without
   waiting for the disk (synchronous = NORMAL). They survive the end of the process; a power failure
   may lose the last ones of the script that ran.

Why a write-ahead log and not a rollback journal: another process must be able to request a stop
while a script runs for hours, and a script of 1,000 transactions writes 3,000 events. WAL needs
shared memory, so the journal belongs on a local file system.

The file has names, addresses, times and the SQL that was sent, in which passwords and their hashes
are hidden. Rows of tables may be in it: its mode is 0600.
"""

import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from repair.applying.procedures_applied import (
    AppliedProcedure,
    EventKind,
    ProcedureEvent,
    ProcedureState,
)
from topology.adapters.sqlite_files import (
    LOCK_SECONDS_MAX,
    DamagedFile,
    FileFormat,
    UnusableFile,
    create_private,
    in_words,
    require_format,
)
from topology.catalogue.findings import Verdict
from topology.documents.records import time_from_text, time_to_text

APPLICATION_ID: Final = 0x4754494A  # "GTIJ": whose file it is, in SQLite's header
JOURNAL_VERSION: Final = 1  # PRAGMA user_version; raised when a column changes its meaning
_DIRECTORY_MODE: Final = 0o700
_TEXT_CHARACTERS_MAX: Final = 4096  # of one event; a redone row may have megabytes

_TABLES: Final = (
    (
        "CREATE TABLE procedure (id TEXT PRIMARY KEY, plan_id TEXT NOT NULL, cluster TEXT NOT NULL,"
        " directory TEXT NOT NULL, servers TEXT NOT NULL, operator TEXT NOT NULL,"
        " started_at TEXT NOT NULL, ended_at TEXT, state TEXT NOT NULL,"
        " scripts_total INTEGER NOT NULL, scripts_done INTEGER NOT NULL, message TEXT NOT NULL,"
        " verdict TEXT, is_stop_requested INTEGER NOT NULL) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE event (procedure TEXT NOT NULL, number INTEGER NOT NULL, at TEXT NOT NULL,"
        " kind TEXT NOT NULL, script INTEGER, server TEXT, text TEXT NOT NULL,"
        " PRIMARY KEY (procedure, number)) WITHOUT ROWID"
    ),
)
_FORMAT: Final = FileFormat("journal", APPLICATION_ID, JOURNAL_VERSION, _TABLES)
_COLUMNS: Final = (
    *("id", "plan_id", "cluster", "directory", "servers", "operator", "started_at", "ended_at"),
    *("state", "scripts_total", "scripts_done", "message", "verdict", "is_stop_requested"),
)


class UnusableJournal(UnusableFile):
    """A journal that cannot be read or written. Its text has the file and what to do."""


class UnknownProcedure(LookupError):
    """No procedure, or several, have an id that begins like this."""


class AtWork(Exception):
    """Another process is at work on a procedure."""


def default_path(environment: Mapping[str, str], home: Path) -> Path:
    """Return where the journal is by default (XDG Base Directory Specification, state files)."""
    state = environment.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else home / ".local" / "state"
    return base / "gtid-audit" / "journal.sqlite"


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that exists and can be written."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> "Journal":
        """Return the journal of a file, created if it is absent. Raises UnusableJournal."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=_DIRECTORY_MODE)
            create_private(path)
        except OSError as error:
            raise UnusableJournal(f"{path}: {error.strerror or error}") from error
        journal = cls(path)
        with journal._open():
            return journal

    def begin(
        self,
        *,
        plan_id: str,
        cluster: str,
        directory: Path,
        servers: Sequence[str],
        operator: str,
        scripts_total: int,
    ) -> AppliedProcedure:
        """Record a new procedure, on which no process is at work yet. Raises UnusableJournal."""
        procedure = AppliedProcedure(
            id=str(uuid4()),
            plan_id=plan_id,
            cluster=cluster,
            directory=str(directory),
            servers=tuple(servers),
            operator=operator,
            started_at=datetime.now(UTC),
            ended_at=None,
            state=ProcedureState.PENDING,
            scripts_total=scripts_total,
            scripts_done=0,
            message="",
            verdict=None,
            is_stop_requested=False,
        )
        marks = ", ".join("?" * len(_COLUMNS))
        with self._open() as database:
            database.execute(
                f"INSERT INTO procedure ({', '.join(_COLUMNS)}) VALUES ({marks})",  # noqa: S608 - names of columns
                _row(procedure),
            )
        return procedure

    def procedures(self) -> tuple[AppliedProcedure, ...]:
        """Return all procedures, the newest first. Raises UnusableJournal."""
        with self._open() as database:
            found = database.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM procedure"  # noqa: S608 - names of columns
                " ORDER BY started_at DESC, id"
            )
            return tuple(self._seen(_procedure(row)) for row in found)

    def find(self, beginning: str) -> AppliedProcedure:
        """Return the procedure whose id begins with a text.

        Raises UnknownProcedure, UnusableJournal.
        """
        wanted = beginning.strip().lower()
        found = [each for each in self.procedures() if wanted and each.id.startswith(wanted)]
        if len(found) != 1:
            number = f"{len(found)} procedures have" if found else "no procedure has"
            raise UnknownProcedure(f"{number} an id that begins with {beginning!r} in {self.path}")
        return found[0]

    def events(self, procedure_id: str, *, after: int = 0) -> tuple[ProcedureEvent, ...]:
        """Return the events of a procedure after a number, in order. Raises UnusableJournal."""
        with self._open() as database:
            found = database.execute(
                "SELECT number, at, kind, script, server, text FROM event"
                " WHERE procedure = ? AND number > ? ORDER BY number",
                (procedure_id, after),
            )
            return tuple(map(_event, found))

    def request_stop(self, procedure_id: str) -> None:
        """Request that the process at work stops before the next step. Raises UnusableJournal."""
        with self._open() as database:
            database.execute(
                "UPDATE procedure SET is_stop_requested = 1 WHERE id = ?", (procedure_id,)
            )

    @contextmanager
    def at_work(self, procedure_id: str) -> Iterator["JournalWriter"]:
        """Provide the writer of a procedure, of which there is one at a time.

        Raises AtWork, UnusableJournal.
        """
        lock = self._lock_file(procedure_id)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AtWork(f"another process is at work on procedure {procedure_id}") from None
            with self._open() as database:
                # A stop that was requested of a process that has ended since is not for this one.
                database.execute(
                    "UPDATE procedure SET is_stop_requested = 0 WHERE id = ?", (procedure_id,)
                )
                yield JournalWriter(self, database, procedure_id)
        finally:
            os.close(descriptor)  # the file stays: removing it would let two processes lock

    def _seen(self, procedure: AppliedProcedure) -> AppliedProcedure:
        """Return a procedure; it is interrupted if it should go on and no process is at work."""
        if procedure.state.is_going_on and not self._is_at_work(procedure.id):
            return replace(procedure, state=ProcedureState.INTERRUPTED)
        return procedure

    def _is_at_work(self, procedure_id: str) -> bool:
        try:
            descriptor = os.open(self._lock_file(procedure_id), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _lock_file(self, procedure_id: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{procedure_id}.lock")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Provide the file; every statement is a transaction."""
        try:
            # Never the default mode `rwc`: a file that SQLite creates would not have mode 0600.
            address = f"{self.path.absolute().as_uri()}?mode=rw"
            with closing(
                sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS_MAX, isolation_level=None)
            ) as database:
                database.execute("BEGIN IMMEDIATE")
                require_format(database, _FORMAT)
                database.execute("COMMIT")
                database.execute("PRAGMA journal_mode = WAL").fetchone()
                database.execute("PRAGMA synchronous = FULL")
                yield database
        except sqlite3.Error as error:
            raise UnusableJournal(f"{self.path}: {in_words(error, _FORMAT)}") from error
        except DamagedFile as error:
            raise UnusableJournal(f"{self.path}: {error}") from error


class JournalWriter:
    """Writes the events and the state of one procedure."""

    def __init__(self, journal: Journal, database: sqlite3.Connection, procedure_id: str) -> None:
        self._path = journal.path
        self._database = database
        self.procedure_id = procedure_id

    def write(
        self, kind: EventKind, text: str, *, script: int | None = None, server: str | None = None
    ) -> ProcedureEvent:
        """Write an event. A statement need not reach the disk before it is sent; all others must.

        Raises UnusableJournal.
        """
        shown = _shortened(text)
        at = datetime.now(UTC)
        level = "NORMAL" if kind is EventKind.SENT else "FULL"
        self._execute(f"PRAGMA synchronous = {level}")
        number = self._execute(
            "INSERT INTO event (procedure, number, at, kind, script, server, text)"
            " SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? FROM event WHERE procedure = ?"
            " RETURNING number",
            (
                *(self.procedure_id, time_to_text(at), kind.value, script, server, shown),
                self.procedure_id,
            ),
        ).fetchall()[0][0]
        return ProcedureEvent(number, at, kind, script, server, shown)

    def enter(
        self,
        state: ProcedureState,
        message: str = "",
        *,
        done: int | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        """Record the state, and how many scripts are done. Raises UnusableJournal."""
        self._execute("PRAGMA synchronous = FULL")
        ended = None if state.is_going_on else time_to_text(datetime.now(UTC))
        self._execute(
            "UPDATE procedure SET state = ?, message = ?, ended_at = ?, verdict = ?,"
            " scripts_done = coalesce(?, scripts_done),"
            " is_stop_requested = CASE WHEN ? THEN is_stop_requested ELSE 0 END WHERE id = ?",
            (
                *(state.value, message, ended, None if verdict is None else verdict.value),
                *(done, state.is_going_on, self.procedure_id),
            ),
        )

    def has_sent(self, script: int) -> bool:
        """Return whether any statement of a script was sent. Raises UnusableJournal."""
        found = self._execute(
            "SELECT count(*) FROM event WHERE procedure = ? AND kind = ? AND script = ?",
            (self.procedure_id, EventKind.SENT.value, script),
        ).fetchone()
        return bool(found[0])

    @property
    def is_stop_requested(self) -> bool:
        """Return whether another process requested a stop. Raises UnusableJournal."""
        row = self._execute(
            "SELECT is_stop_requested FROM procedure WHERE id = ?", (self.procedure_id,)
        ).fetchone()
        return bool(row[0])

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise UnusableJournal(f"{self._path}: {in_words(error, _FORMAT)}") from error


def _shortened(text: str) -> str:
    """Return a text that fits the journal; a cut one ends with the length and digest of the whole.

    The digest shows whether a statement of a script is the one that was sent. Passwords are hidden
    before: a digest of one could be guessed.
    """
    if len(text) <= _TEXT_CHARACTERS_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:_TEXT_CHARACTERS_MAX]}… (cut: {len(text):,} characters, SHA-256 {digest})"


def _row(procedure: AppliedProcedure) -> tuple[object, ...]:
    ended = procedure.ended_at
    return (
        *(procedure.id, procedure.plan_id, procedure.cluster, procedure.directory),
        *(json.dumps(procedure.servers), procedure.operator, time_to_text(procedure.started_at)),
        *(None if ended is None else time_to_text(ended), procedure.state.value),
        *(procedure.scripts_total, procedure.scripts_done, procedure.message),
        None if procedure.verdict is None else procedure.verdict.value,
        int(procedure.is_stop_requested),
    )


def _procedure(row: tuple[Any, ...]) -> AppliedProcedure:
    """Read one row. Raises DamagedFile for values that `_row` does not write."""
    given = dict(zip(_COLUMNS, row, strict=True))
    try:
        ended = given["ended_at"]
        return AppliedProcedure(
            **{
                **given,
                "servers": tuple(map(str, json.loads(given["servers"]))),
                "started_at": time_from_text(given["started_at"]),
                "ended_at": None if ended is None else time_from_text(ended),
                "state": ProcedureState(given["state"]),
                "verdict": None if given["verdict"] is None else Verdict(given["verdict"]),
                "is_stop_requested": bool(given["is_stop_requested"]),
            }
        )
    except (ValueError, TypeError) as error:
        raise DamagedFile.of(f"procedure {given['id']} is damaged: {error}", _FORMAT) from error


def _event(row: tuple[Any, ...]) -> ProcedureEvent:
    number, at, kind, script, server, text = row
    try:
        return ProcedureEvent(number, time_from_text(at), EventKind(kind), script, server, text)
    except (ValueError, TypeError) as error:
        raise DamagedFile.of(f"event {number} is damaged: {error}", _FORMAT) from error
