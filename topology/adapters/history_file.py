"""The history file: since when each finding exists, and until when it did. SQLite, without a JVM.

How it works
------------
One row is one *episode* of a finding: from the first audit that found it to the last one. An open
episode has no end. The rule that opens and closes them is topology/finding_history.py:

    audit  the cluster          episode of the finding
    1      found                1 … (open)
    2      a server unreachable  unchanged: this audit disproves nothing
    3      found                1 … (open), last seen in 3
    4      read, not found      1 … 3, ended in 4
    5      found                1 … 3, and a second one: 5 … (open)

Invariants:

1. A finding has at most one open episode in a scope. A scope is a set of audits of which a later
   one replaces an earlier one: a cluster of a fleet file, or the same servers on the command line.
   `pair A B` must not end what `pair A C` found, although both clusters are called `pair`.
2. An audit whose readings are not newer than those of the last recorded audit of its scope changes
   nothing. So two audits at once may end in any order, and an audit recorded twice counts once.
3. One audit is one transaction, which begins with the write lock (BEGIN IMMEDIATE). A second
   process waits up to LOCK_SECONDS_MAX. After a crash the file has all of an audit, or nothing.
4. A file that is not a sound history of this version is refused, and not changed.

Why a rollback journal and not WAL: an audit writes one short transaction and reads nothing
meanwhile, so concurrent readers gain nothing. WAL needs shared memory, which network file systems
do not have, and a second file without which a copy is incomplete. The history must stay one file.

The file has names of clusters, servers and channels, codes and times. It has no account, no error
text and no evidence. It is created with mode 0600.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Final

from topology.adapters.sqlite_files import (
    LOCK_SECONDS_MAX,
    DamagedFile,
    FileFormat,
    UnusableFile,
    create_private,
    in_words,
    require_format,
)
from topology.catalogue.findings import ClusterAudit, Finding, Severity
from topology.documents.records import time_from_text, time_to_text
from topology.finding_history import with_history

APPLICATION_ID: Final = 0x47544944  # "GTID": whose file it is, in SQLite's header
HISTORY_VERSION: Final = 1  # PRAGMA user_version; raised when a column changes its meaning
# How long ended episodes stay. Backlogs (T) come and go with the load: many rows, little value.
ENDED_DAYS_MAX: Final = 400
ENDED_INFO_DAYS_MAX: Final = 7

_TABLES: Final = (
    "CREATE TABLE audited (scope TEXT PRIMARY KEY, read_at TEXT NOT NULL) WITHOUT ROWID",
    (
        "CREATE TABLE episode (scope TEXT NOT NULL, id TEXT NOT NULL, first_seen TEXT NOT NULL,"
        " last_seen TEXT NOT NULL, ended_at TEXT, ending TEXT, code TEXT NOT NULL,"
        " name TEXT NOT NULL, severity TEXT NOT NULL, cluster TEXT NOT NULL,"
        " source TEXT, replica TEXT, channel TEXT,"
        " PRIMARY KEY (scope, id, first_seen)) WITHOUT ROWID"
    ),
    "CREATE UNIQUE INDEX one_open_episode ON episode (scope, id) WHERE ended_at IS NULL",
)
_COLUMNS: Final = (
    *("id", "first_seen", "last_seen", "ended_at", "ending", "code", "name", "severity"),
    *("cluster", "source", "replica", "channel"),
)
_FORMAT: Final = FileFormat("history", APPLICATION_ID, HISTORY_VERSION, _TABLES)


class UnusableHistory(UnusableFile):
    """A history file that cannot be read or written. Its text has the file and what to do."""


class Ending(Enum):
    """Why an episode ended."""

    NOT_FOUND = "not found"
    NOT_SEEN = "not seen for a long time"


@dataclass(frozen=True, slots=True)
class Episode:
    """One period in which audits found a finding."""

    id: str
    first_seen: datetime
    last_seen: datetime
    ended_at: datetime | None  # the audit that did not find it; None: open
    ending: Ending | None  # None if, and only if, the episode is open
    code: str
    name: str
    severity: Severity
    cluster: str
    source: str | None
    replica: str | None
    channel: str | None


def _require_content(path: Path) -> None:
    """Raise DamagedFile if there is nothing to read. SQLite would say that it cannot write."""
    if not path.exists():
        raise DamagedFile("no such file")
    if path.is_file() and not path.stat().st_size:
        raise DamagedFile("the file is empty: no audit has recorded anything in it")


ScopeOf = Callable[[ClusterAudit], str]


def scope_of_cluster(audit: ClusterAudit) -> str:
    """Return the scope of a cluster of a fleet file: its name, whatever servers it has now."""
    return f"cluster {audit.cluster}"


def scope_of_servers(audit: ClusterAudit) -> str:
    """Return the scope of servers that were named on the command line, in any order."""
    return scope_of_names(audit.cluster, audit.servers)


def scope_of_names(cluster: str, servers: Iterable[str]) -> str:
    """Return the scope of servers that were named on the command line, in any order."""
    return f"{cluster} of {', '.join(sorted(servers))}"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A history file that exists and can be written."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> "HistoryFile":
        """Return the history of a file, which is created if it is absent. Raises UnusableHistory.

        It checks that the file can be written, so that a caller fails before it reads a server.
        """
        try:
            create_private(path)
        except OSError as error:
            raise UnusableHistory(f"{path}: {error.strerror or error}") from error
        history = cls(path)
        with history.transaction(WRITE):
            return history

    def record(
        self, audits: Iterable[ClusterAudit], *, scope_of: ScopeOf
    ) -> tuple[ClusterAudit, ...]:
        """Record audits, and return them with `first_seen` over all audits of the file.

        Raises UnusableHistory.
        """
        with self.transaction(WRITE) as database:
            dated = tuple(_recorded(database, audit, scope_of(audit)) for audit in audits)
            _forget(database)
            return dated

    def episodes(self) -> tuple[Episode, ...]:
        """Return every episode: open ones first, then in order of time. Raises UnusableHistory."""
        with self.transaction(READ) as database:
            found = database.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM episode"  # noqa: S608 - names of columns
                " ORDER BY ended_at IS NOT NULL, first_seen, cluster, code, id"
            )
            return tuple(map(_episode, found))

    def open_episodes(self, scope: str) -> tuple[Episode, ...]:
        """Return the episodes of a scope that have not ended. Raises UnusableHistory."""
        with self.transaction(READ) as database:
            return tuple(_open_in(database, scope))

    @contextmanager
    def transaction(self, access: "FileAccess") -> Iterator[sqlite3.Connection]:
        """Provide the file in one transaction, which ends with the context.

        Raises UnusableHistory.
        """
        try:
            with closing(self._begun(access)) as database:
                yield database
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise UnusableHistory(f"{self.path}: {in_words(error, _FORMAT)}") from error
        except DamagedFile as error:
            raise UnusableHistory(f"{self.path}: {error}") from error

    def _begun(self, access: "FileAccess") -> sqlite3.Connection:
        """Return a connection in a transaction. Raises sqlite3.Error and DamagedFile.

        A writer that was killed leaves a journal. Who reads next takes its changes back, and needs
        to write for that (https://sqlite.org/lockingv3.html, "Hot journals").
        """
        try:
            return self._opened(access)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
                raise
        self._opened(WRITE).close()
        return self._opened(access)

    def _opened(self, access: "FileAccess") -> sqlite3.Connection:
        if access is READ:
            _require_content(self.path)
        # Never the default mode `rwc`: a file that SQLite creates would not have mode 0600.
        address = f"{self.path.absolute().as_uri()}?mode={access.mode}"
        database = sqlite3.connect(
            address, uri=True, timeout=LOCK_SECONDS_MAX, isolation_level=None
        )
        try:
            database.execute(access.begin)
            require_format(database, _FORMAT)
        except BaseException:
            database.close()
            raise
        return database


@dataclass(frozen=True, slots=True)
class FileAccess:
    """How a transaction opens the file."""

    mode: str  # of SQLite's URI
    begin: str


WRITE: Final = FileAccess("rw", "BEGIN IMMEDIATE")
READ: Final = FileAccess("ro", "BEGIN")


def _open_in(database: sqlite3.Connection, scope: str) -> list[Episode]:
    found = database.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM episode"  # noqa: S608 - names of columns
        " WHERE scope = ? AND ended_at IS NULL",
        (scope,),
    )
    return [_episode(row) for row in found]


def _recorded(database: sqlite3.Connection, audit: ClusterAudit, scope: str) -> ClusterAudit:
    """Return an audit with the history of its scope; record it if it is the newest of the scope."""
    known = _open_in(database, scope)
    run_at = audit.read_at
    # No server was read: the audit shows the time of nothing, and disproves nothing.
    moment = run_at if run_at is not None else datetime.max.replace(tzinfo=UTC)
    [dated], carried = with_history([audit], known=known, run_at=moment)
    if run_at is not None and _is_newest(database, scope, run_at):
        _write(database, scope, dated.findings, known=known, carried=carried, audit=audit)
        database.execute("REPLACE INTO audited VALUES (?, ?)", (scope, time_to_text(run_at)))
    return dated


def _is_newest(database: sqlite3.Connection, scope: str, run_at: datetime) -> bool:
    last = database.execute("SELECT read_at FROM audited WHERE scope = ?", (scope,)).fetchone()
    return last is None or _time(last[0]) < run_at


def _write(
    database: sqlite3.Connection,
    scope: str,
    findings: Sequence[Finding],
    *,
    known: Sequence[Episode],
    carried: Sequence[Episode],
    audit: ClusterAudit,
) -> None:
    """End the episodes that are neither found nor carried; open or extend those that are found."""
    assert audit.read_at is not None, "checked by the caller"
    found = {finding.id for finding in findings}
    kept = found | {episode.id for episode in carried}
    for episode in known:
        if episode.id not in kept:
            ending = Ending.NOT_SEEN if audit.unknown else Ending.NOT_FOUND
            database.execute(
                "UPDATE episode SET ended_at = ?, ending = ?"
                " WHERE scope = ? AND id = ? AND ended_at IS NULL",
                (time_to_text(audit.read_at), ending.value, scope, episode.id),
            )
    database.executemany(
        "DELETE FROM episode WHERE scope = ? AND id = ? AND ended_at IS NULL",
        [(scope, each) for each in sorted(found)],
    )
    database.executemany(
        # REPLACE: results in Parquet may know that an ended episode has lasted (same first_seen).
        f"REPLACE INTO episode (scope, {', '.join(_COLUMNS)})"  # noqa: S608 - names of columns
        f" VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})",
        [(scope, *_row(finding)) for finding in findings],
    )


def _row(finding: Finding) -> tuple[str | None, ...]:
    return (
        finding.id,
        time_to_text(finding.first_seen),
        time_to_text(max(finding.first_seen, finding.last_seen)),
        None,
        None,
        *(finding.code, finding.name, finding.severity.value),
        *(finding.cluster, finding.source, finding.replica, finding.channel),
    )


def _episode(row: tuple[Any, ...]) -> Episode:
    """Read one row. Raises DamagedFile for values that `_row` does not write."""
    identity, first, last, ended, ending, code, name, severity, *place = row
    try:
        return Episode(
            identity,
            _time(first),
            _time(last),
            None if ended is None else _time(ended),
            None if ending is None else Ending(ending),
            *(code, name, Severity(severity)),
            *place,
        )
    except ValueError as error:
        what = f"the episode of finding {identity} is damaged: {error}"
        raise DamagedFile.of(what, _FORMAT) from error


def _time(text: object) -> datetime:
    try:
        return time_from_text(str(text))
    except ValueError as error:
        raise DamagedFile.of(f"expected a time, found {text!r}", _FORMAT) from error


def _forget(database: sqlite3.Connection) -> None:
    """Delete episodes that ended long before the newest audit of the file."""
    newest = database.execute("SELECT max(read_at) FROM audited").fetchone()[0]
    if newest is None:
        return
    for days, more in ((ENDED_DAYS_MAX, ""), (ENDED_INFO_DAYS_MAX, " AND severity = 'info'")):
        limit = time_to_text(_time(newest) - timedelta(days=days))
        database.execute(f"DELETE FROM episode WHERE ended_at < ?{more}", (limit,))  # noqa: S608
