"""The stream of a server's transactions: every GTID once, however often the query ends."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="provider missing: PySpark 4.2")

from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from spark_audit.adapters import binlog_stream
from spark_audit.adapters.binlog_options import BinlogOptions
from spark_audit.adapters.binlog_server import (
    ServerPartition,
    ServerUnread,
    TransactionsLacking,
    rows_from,
)
from spark_audit.adapters.binlog_source import MysqlBinlogSource
from spark_audit.adapters.binlog_stream import BinlogStreamReader, TailLost
from spark_audit.adapters.sources import register_sources
from spark_audit.ledger_schema import chosen, spark_schema
from topology.adapters.gtid_server import ServerSets

pytestmark = pytest.mark.spark

PASSWORD = "Zx9-recognisable-4b1d7c"
A, B = (UUID(int=number << 120) for number in (0xAA, 0xBB))
COLUMNS = chosen(digests=False, details=False, names=("file", "uuid", "tag", "gno"))


# -- offsets, without a server --------------------------------------------------------------------


class Told:
    """A server that is as it is told to be, and counts how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, executed: str, purged: str = "") -> None:
        self.executed, self.purged, self.asked = executed, purged, 0
        monkeypatch.setattr(binlog_stream, "SetQueries", lambda _options: self)
        monkeypatch.setattr(binlog_stream, "POLL_SECONDS", 0.0)

    def sets(self) -> ServerSets:
        self.asked += 1
        return ServerSets(A, GtidSet.parse(self.purged), GtidSet.parse(self.executed))


def a_reader(**options: str) -> BinlogStreamReader:
    return BinlogStreamReader(BinlogOptions.of({"server": "mysql://u@h/", **options}), COLUMNS)


def at(text: str) -> dict[str, str]:
    return {"gtid_executed": text}


def wanted_by(reader: BinlogStreamReader, start: str, end: str) -> list[str]:
    tasks = reader.partitions(at(start), at(end))
    return [str(task.wanted) for task in tasks if isinstance(task, ServerPartition)]


def test_a_stream_starts_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    Told(monkeypatch, f"{A}:1-9", f"{A}:1-4")
    assert a_reader().initialOffset() == at(f"{A}:1-4")
    assert a_reader(start_at="NOW").initialOffset() == at(f"{A}:1-9")
    assert a_reader(start_at=f"{A}:1-2:5, {B}:7").initialOffset() == at(f"{A}:1-2:5,{B}:7")


def test_the_first_batch_is_empty_and_keeps_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Told(monkeypatch, f"{A}:1-9")
    reader = a_reader(start_at="now")
    start = reader.initialOffset()
    server.executed = f"{A}:1-12"
    assert reader.latestOffset(start, ReadMaxRows(5)) == start
    assert wanted_by(reader, f"{A}:1-9", f"{A}:1-9") == []
    assert reader.latestOffset(start, ReadMaxRows(5)) == at(f"{A}:1-12")


def test_a_restart_within_the_first_batch_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Told(monkeypatch, f"{A}:1-9")
    before = a_reader(start_at="now")
    logged = before.latestOffset(before.initialOffset(), ReadMaxRows(5))
    server.executed = f"{A}:1-20"  # killed; and Spark asks again where a new stream would start
    after = a_reader(start_at="now")
    assert after.initialOffset() == at(f"{A}:1-20")
    assert after.partitions(after.initialOffset(), logged) == []
    assert after.latestOffset(logged, ReadMaxRows(99)) == at(f"{A}:1-20")
    assert wanted_by(after, logged["gtid_executed"], f"{A}:1-20") == [f"{A}:10-20"]


def test_a_batch_is_bounded_unless_spark_wants_all(monkeypatch: pytest.MonkeyPatch) -> None:
    Told(monkeypatch, f"{A}:1-9:dba:1-3,{B}:5-6")
    reader = a_reader(transactions_max="4")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    given, batches = at(""), []
    while (end := reader.latestOffset(given, limit)) != given:
        batches += wanted_by(reader, given["gtid_executed"], end["gtid_executed"])
        given = end
    assert batches == [f"{A}:1-4", f"{A}:5-8", f"{A}:9:dba:1-3", f"{B}:5-6"]
    assert reader.latestOffset(at(""), ReadAllAvailable()) == given
    assert given == at(f"{A}:1-9:dba:1-3,{B}:5-6")
    only = a_reader(gtids=f"{A}:2:8,{B}:1-9")
    assert wanted_by(only, "", f"{A}:1-4") == [f"{A}:2"]
    assert wanted_by(only, f"{A}:1-2", f"{A}:1-4") == []


def test_available_now_ends_where_the_server_was(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Told(monkeypatch, f"{A}:1-9")
    reader = a_reader()
    reader.prepareForTriggerAvailableNow()
    server.executed = f"{A}:1-30"
    end = reader.latestOffset(at(f"{A}:1-5"), ReadMaxRows(100))
    assert end == at(f"{A}:1-9")
    assert reader.latestOffset(end, ReadMaxRows(100)) == end


def test_a_server_that_lost_its_tail_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Told(monkeypatch, f"{A}:1-7,{B}:1-5")
    with pytest.raises(TailLost, match=rf"the server {A} no longer has {A}:8-10, which it"):
        a_reader().latestOffset(at(f"{A}:1-10,{B}:1-5"), ReadMaxRows(5))
    # It has not received all of another server's yet: after a failover, say. That will come.
    server.executed = f"{A}:1-12,{B}:1-3"
    end = a_reader().latestOffset(at(f"{A}:1-10,{B}:1-5"), ReadMaxRows(5))
    assert end == at(f"{A}:1-12,{B}:1-5")


# -- on a server ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(installation97: Installation) -> Iterator[Server]:
    with shapes.single(installation97) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT)",
            f"CREATE USER watched@'%' IDENTIFIED BY '{PASSWORD}'",
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO watched@'%'",
        )
        yield server


@pytest.fixture(scope="module")
def dsn(server: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of an account whose password lies in a file."""
    file = tmp_path_factory.mktemp("account") / "my.cnf"
    file.touch(mode=0o600)
    file.write_text(f"[client]\npassword={PASSWORD}\n")
    return f"mysql://watched@127.0.0.1:{server.port}/?option_file={file}"


def write(server: Server, count: int) -> None:
    server.execute(*[f"INSERT INTO d.t VALUES ({number})" for number in range(count)])


def executed_by(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def pickled(thing: object) -> bytes:
    """Pickle as Spark does."""
    made: bytes = cloudpickle.dumps(thing)  # type: ignore[no-untyped-call]
    return made


def stream_of(spark: SparkSession, dsn: str, **options: str) -> DataFrame:
    register_sources(spark)
    given = {"columns": "file,uuid,tag,gno", **options}
    return spark.readStream.format("mysql_binlog").option("server", dsn).options(**given).load()


def gtids_in(rows: list[dict[str, object]]) -> GtidSet:
    """Return the GTIDs of rows, each of which must be there once."""
    texts = [f"{row['uuid']}:{row['tag']}:{row['gno']}".replace(":None:", ":") for row in rows]
    assert len(texts) == len(set(texts)), "a transaction came twice"
    return GtidSet.parse(",".join(texts))


def taken(batch: DataFrame, rows: list[dict[str, object]]) -> None:
    """Read a batch: of one that nobody reads, Spark reads nothing."""
    rows.extend(batch.toArrow().to_pylist())


def run(
    frame: DataFrame, checkpoint: Path, take: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    """Run a query until it has what there was when it began."""
    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_every_transaction_once_though_the_query_fails_in_the_middle(
    server: Server, dsn: str, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(server, 9)
    kept: dict[int, list[dict[str, object]]] = {}

    def take(batch: DataFrame, number: int) -> None:
        is_first_time = number not in kept
        kept[number] = []  # as a sink that knows a batch by its number
        taken(batch, kept[number])
        if number == 2 and is_first_time:
            server.execute("FLUSH LOGS")
            write(server, 3)
            raise RuntimeError(f"batch {number} is lost on its way")

    frame = stream_of(spark, dsn, transactions_max="7")
    with pytest.raises(StreamingQueryException, match="is lost on its way"):
        run(frame, tmp_path, take)
    query = run(frame, tmp_path, take)
    query.explain(extended=True)
    rows = [row for number in sorted(kept) for row in kept[number]]
    assert gtids_in(rows) == executed_by(server)
    assert [len(kept[number]) for number in sorted(kept)] == [0, 7, 6, 3]
    assert len({row["file"] for row in rows}) == 2
    offsets = (tmp_path / "offsets" / str(max(kept))).read_text().splitlines()
    assert json.loads(offsets[-1]) == at(str(executed_by(server)))
    # The driver looked the account up, and gave it to the tasks; nobody else has seen it.
    said = capfd.readouterr()
    held = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(held) > 8
    for text in (*held, said.out.encode(), said.err.encode(), str(query.recentProgress).encode()):
        assert PASSWORD.encode() not in text


def test_the_account_is_carried_by_tasks_if_at_all(dsn: str) -> None:
    for credentials, is_carried in (("executor", False), ("driver", True)):
        source = MysqlBinlogSource({"server": dsn, "credentials": credentials})
        reader = source.streamReader(spark_schema(COLUMNS))
        (task,) = reader.partitions(at(""), at(f"{A}:1"))
        assert (PASSWORD.encode() in pickled(task)) is is_carried
        assert PASSWORD not in repr(task)
        for thing in (source, reader, reader.read):
            assert PASSWORD.encode() not in pickled(thing)


def test_purged_logs_end_the_query_in_the_servers_own_words(
    server: Server, dsn: str, spark: SparkSession, tmp_path: Path
) -> None:
    server.execute("FLUSH LOGS")
    (last,) = (row[0] for row in server.query("SHOW BINARY LOGS")[-1:])
    server.execute(f"PURGE BINARY LOGS TO '{last}'")
    frame = stream_of(spark, dsn, start_at=f"{A}:1")
    with pytest.raises(StreamingQueryException) as ended:
        run(frame, tmp_path, lambda batch, _number: taken(batch, []))
    assert "error 1236" in str(ended.value)
    assert "purged required binary logs" in str(ended.value)


def test_digests_and_tables_come_from_a_server_too(server: Server, dsn: str) -> None:
    write(server, 1)
    options = BinlogOptions.of({"server": dsn, "digests": "true", "table": "d.t"})
    columns = chosen(digests=True, details=True, names=("gno", "digest", "tables"))
    wanted = executed_by(server) - GtidSet.parse(server.value("@@GLOBAL.gtid_purged"))
    (batch,) = rows_from(ServerPartition(dsn, wanted), options, columns)
    (row,) = batch.to_pylist()
    assert row["digest"] is not None
    assert [(each["table"], each["rows_written"]) for each in row["tables"]] == [("t", 1)]


def test_digests_are_the_same_with_tables_and_without(server: Server, dsn: str) -> None:
    write(server, 3)
    server.execute("CREATE TABLE d.more (a INT)", "INSERT INTO d.more VALUES (1), (2)")
    wanted = executed_by(server) - GtidSet.parse(server.value("@@GLOBAL.gtid_purged"))
    columns = chosen(digests=True, details=False, names=("gno", "digest"))
    read = [
        [
            row
            for batch in rows_from(
                ServerPartition(dsn, wanted), BinlogOptions.of({"server": dsn, **asked}), columns
            )
            for row in batch.to_pylist()
        ]
        for asked in ({"digests": "true"}, {"digests": "true", "details": "true"})
    ]
    assert read[0] == read[1]
    assert len(read[0]) == wanted.gtid_count
    assert len({row["digest"] for row in read[0] if row["digest"] is not None}) > 3


def test_a_transaction_that_does_not_come_is_an_error(dsn: str) -> None:
    options = BinlogOptions.of({"server": dsn, "credentials": "executor"})
    with pytest.raises(TransactionsLacking, match=rf"did not send {A}:1-3, and reported no error"):
        list(rows_from(ServerPartition(dsn, GtidSet.parse(f"{A}:1-3")), options, COLUMNS))


def test_one_connection_for_all_questions_and_another_if_that_is_gone(
    server: Server, dsn: str
) -> None:
    before = int(server.query("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])
    reader = a_reader(server=dsn, start_at="now")
    offset = reader.initialOffset()
    for _ in range(3):
        assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    held = server.query("SELECT id FROM information_schema.processlist WHERE user = 'watched'")
    assert len(held) == 1
    server.execute(f"KILL {held[0][0]}")
    write(server, 1)
    assert reader.latestOffset(offset, ReadAllAvailable()) == at(str(executed_by(server)))
    reader.stop()
    after = int(server.query("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])
    ours = after - before - 5  # the questions of this test itself
    assert ours == 2


def test_a_server_that_does_not_let_us_in_says_so(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", f"{PASSWORD}-wrong")
    for user, port, words in (
        ("watched", server.port, "Access denied for user 'watched'@"),
        ("watched", 1, "Can't connect to MySQL server"),
    ):
        reader = a_reader(server=f"mysql://{user}@127.0.0.1:{port}/")
        with pytest.raises(ServerUnread) as said:
            reader.initialOffset()
        assert f"127.0.0.1:{port}: {words}" in str(said.value)
        assert PASSWORD not in str(said.value)
