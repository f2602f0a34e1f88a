"""Reads one live server for `mysql_binlog`: its sets, and the rows of a set of GTIDs.

1. A task returns exactly the set that it was given. If the server refuses to send it, the query
   fails with the server's error text. If a transaction does not arrive and the server reported no
   error, the query fails too. Rows are never left out silently.
2. The server sends only the wanted transactions: the client announces all others as executed
   (binlog/adapters/stream.py). The client does not register as a replica.
3. The account travels in the pickled partition, as in snapshot_source.py. With credentials =
   executor only its location travels, and each executor reads the account there.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pymysql
from pyspark.sql.datasource import DataSourceReader, InputPartition

from binlog.adapters.stream import Only
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.errors import UnsupportedServer
from binlog.ledger.ledger_sets import gtids_of
from gtid import GtidSet
from spark_audit.adapters.binlog_options import BinlogOptions
from spark_audit.adapters.binlog_restrict import restricted, with_columns
from spark_audit.adapters.option_texts import Credentials
from spark_audit.adapters.pickled_accounts import packed, unpacked
from spark_audit.ledger_schema import LedgerRows
from topology.adapters.connection import Connection
from topology.adapters.gtid_server import ServerSets, connect_for_logs, read_sets
from topology.adapters.inventory.secrets import environment
from topology.adapters.inventory.targets import Accounts
from topology.readings.target import ServerTarget

T = TypeVar("T")


class ServerUnread(Exception):
    """The server does not answer, or refuses the account. Has the server's error text."""


class TransactionsLacking(Exception):
    """The server sent all it has of the wanted set, and some transactions did not arrive."""


class ServerPartition(InputPartition):
    """What one task reads from the server. `server` is its account, or its DSN."""

    def __init__(self, server: ServerTarget | str, wanted: GtidSet) -> None:
        super().__init__(None)
        self.server = server
        self.wanted = wanted

    def __repr__(self) -> str:
        return f"ServerPartition({self.wanted.gtid_count} GTIDs)"

    def __reduce__(self) -> tuple[Callable[[bytes], "ServerPartition"], tuple[bytes]]:
        return _unpacked, (packed((self.server, self.wanted)),)


def _unpacked(carried: bytes) -> ServerPartition:
    return ServerPartition(*unpacked(carried))


@dataclass(frozen=True, slots=True)
class ServerReader(DataSourceReader):
    """Reads all that a server has and has not purged, in one task."""

    options: BinlogOptions
    columns: pa.Schema

    def partitions(self) -> list[InputPartition]:
        """Query the server's sets. Raises InventoryProblem, ServerUnread."""
        with closing(SetQueries(self.options)) as questions:
            sets = questions.sets()
        wanted = sets.gtid_executed - sets.gtid_purged
        if self.options.gtids is not None:
            wanted &= self.options.gtids
        return [partition_of(self.options, wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        assert isinstance(partition, ServerPartition), "we made it"
        return rows_from(partition, self.options, self.columns)


def partition_of(options: BinlogOptions, wanted: GtidSet) -> ServerPartition:
    """Return the task that reads a set, with the account or its location."""
    assert options.server is not None
    if options.credentials is Credentials.EXECUTOR:
        return ServerPartition(options.server, wanted)
    return ServerPartition(target_of(options), wanted)


def target_of(options: BinlogOptions) -> ServerTarget:
    """Return the server and its account, as found on this machine. Raises InventoryProblem."""
    assert options.server is not None
    return _target(options.server)


def _target(server: str) -> ServerTarget:
    return Accounts(environment(), _warn).target(server)


class SetQueries:
    """Queries a server's sets repeatedly, over one connection as long as it lasts.

    Each connection looks up the account again, because passwords change while streams run.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        self._connection: Connection | None = None
        self._target: ServerTarget | None = None

    def sets(self) -> ServerSets:
        """Query the sets, in one statement. Raises ServerUnread, InventoryProblem."""
        if self._connection is not None and self._target is not None:
            try:
                return _asked(self._connection, self._target)
            except ServerUnread:
                self.close()  # perhaps only wait_timeout: the next connection shows it
        self._target = target_of(self._options)
        self._connection = _connected(self._target, self._options)
        return _asked(self._connection, self._target)

    def close(self) -> None:
        """Close the connection without waiting for the server."""
        if self._connection is not None:
            self._connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001 - COM_QUIT waits
            self._connection = None


def _asked(connection: Connection, target: ServerTarget) -> ServerSets:
    return _translated(target, lambda: read_sets(connection))


def rows_from(
    partition: ServerPartition, options: BinlogOptions, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of exactly the wanted transactions, in log order.

    Raises BinlogError (DumpRefused with the server's error text), ServerUnread, InventoryProblem,
    and TransactionsLacking.
    """
    if not partition.wanted:
        return
    target = _target(partition.server) if isinstance(partition.server, str) else partition.server
    options = with_columns(options, columns)
    given = GtidSet()
    with closing(_rows_of(target, partition.wanted, options)) as tables:
        for rows in tables:
            given |= gtids_of(rows)
            yield from LedgerRows(target.name, restricted(rows, options)).batches(columns)
            if partition.wanted <= given:
                return  # so that the server does not search the rest of its logs
    missing = partition.wanted - given
    if missing:
        raise TransactionsLacking(
            f"{target.name} did not send {missing.shortened()}, and reported no error"
        )


def _rows_of(
    target: ServerTarget, wanted: GtidSet, options: BinlogOptions
) -> Generator[pa.Table, None, None]:
    """Yield the rows as they arrive, with the parts of the contents that the options ask for."""
    batches = ledger_of_server(
        lambda: _connected(target, options),
        Only(wanted),
        options.request,
        timeout_seconds_max=options.timeout_seconds_max,
        held_bytes_max=options.bytes_max,
        event_bytes_max=options.bytes_max,
    )
    for batch in batches:
        # A transaction that was cut at a batch boundary is sent again, whole.
        yield batch.rows.filter(batch.rows.column("is_complete"))


# -- the connection -------------------------------------------------------------------------------


def _connected(target: ServerTarget, options: BinlogOptions) -> Connection:
    seconds = options.timeout_seconds_max
    return _translated(target, lambda: connect_for_logs(target, timeout_seconds_max=seconds))


def _translated(target: ServerTarget, ask: Callable[[], T]) -> T:
    """Run a query, and convert its errors into ServerUnread. No message contains the password."""
    try:
        return ask()
    except UnsupportedServer as problem:
        raise ServerUnread(str(problem)) from None
    except (pymysql.MySQLError, OSError) as error:
        text = str(error.args[-1]) if error.args else type(error).__name__
        raise ServerUnread(f"{target.name}: {target.password.hidden_in(text)}") from None


def _warn(text: str) -> None:
    sys.stderr.write(f"mysql_binlog: {text}\n")
