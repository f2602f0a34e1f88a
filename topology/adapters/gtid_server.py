"""Connects to a server whose binary logs are to be read, if it is one that has MySQL's GTIDs.

A server of another kind would answer the first statement about GTIDs with "Unknown system
variable", which shows neither what it is nor that no privilege helps. Readings of clusters refuse
the same servers with the same words (vendor_facts.py).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from binlog.adapters.server_errors import read_answer
from binlog.adapters.set_statements import SENT_SETS
from binlog.errors import UnsupportedServer
from gtid import GtidSet
from topology.adapters.answered_rows import only_row, rows_of
from topology.adapters.connection import Connection, connect
from topology.adapters.reading_statements import VERSION
from topology.adapters.vendor_facts import version_texts_of, why_refused
from topology.readings.target import ServerTarget
from topology.readings.vendors import row_of
from topology.readings.version import ServerVersion, UnreadableVersion

# MariaDB 10 greets as 5.5.5-10.11.18-MariaDB, so that MySQL 5.5 replicates from it
# (RPL_VERSION_HACK).
_REPLICATION_PREFIX: Final = "5.5.5-"


def connect_for_logs(target: ServerTarget, *, timeout_seconds_max: float) -> Connection:
    """Open a connection with a time limit for connecting and for each answer.

    Raises:
        UnsupportedServer: a server of another kind, or a version without GTIDs.
        pymysql.MySQLError, OSError: see connection.py.
    """
    connection = connect(target, timeout_seconds_max=timeout_seconds_max)
    try:
        _require_gtids(target.name, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_gtids(name: str, connection: Connection) -> None:
    with read_answer("its version"):
        refusals = (_refusal(name, row) for row in _version_rows(connection))
        refusal = next((each for each in refusals if each is not None), None)
    if refusal is not None:
        raise refusal


def _refusal(name: str, row: Mapping[str, object]) -> UnsupportedServer | None:
    """Return why a server that shows this version is not queried, if it is not."""
    text, vendor = version_texts_of(row)
    why = why_refused(vendor, _parsed(text))
    if not why:
        return None
    kind = row_of(vendor).unevaluated
    shown = f"{name} is {kind}" if kind else name
    return UnsupportedServer(name=shown, what=f"{vendor.value} {text} {why}")


def _version_rows(connection: Connection) -> Iterator[Mapping[str, object]]:
    """Yield what the server shows of its version: in its greeting, then in an answer.

    A gateway may have a greeting of its own, and a server of another kind need not have all
    variables of the statement.
    """
    shown: str = connection.get_server_info()  # type: ignore[no-untyped-call]
    greeting = shown.removeprefix(_REPLICATION_PREFIX)
    yield {"version": greeting, "version_comment": ""}
    yield only_row(rows_of(connection, VERSION, "version"), VERSION)


def _parsed(text: str) -> ServerVersion | None:
    try:
        return ServerVersion.parse(text)
    except UnreadableVersion:
        return None


@dataclass(frozen=True, slots=True)
class ServerSets:
    """The GTID sets and the UUID that a server reports."""

    server_uuid: UUID
    gtid_purged: GtidSet
    gtid_executed: GtidSet


def read_sets(connection: Connection) -> ServerSets:
    """Query the sets, in one statement. Raises pymysql.MySQLError, OSError."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SENT_SETS}, @@GLOBAL.server_uuid AS server_uuid")
        row = cursor.fetchone()
    assert row is not None, "a SELECT without FROM has a row"
    return ServerSets(
        UUID(row["server_uuid"]),
        GtidSet.parse(row["gtid_purged"]),
        GtidSet.parse(row["gtid_executed"]),
    )
