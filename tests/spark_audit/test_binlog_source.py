"""`mysql_binlog` on logs that a real server wrote: what Spark gives is the ledger, and no less."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from binlog.adapters.ledger_files import ledger_of_file
from compose.native.installation import Installation
from gtid import GtidSet
from spark_audit.adapters import binlog_files
from spark_audit.adapters.binlog_files import files_of, tasks_of
from spark_audit.adapters.binlog_source import LogPartition, MysqlBinlogSource, PushingReader
from spark_audit.adapters.sources import register_sources
from spark_audit.ledger_schema import COLUMNS, chosen, spark_schema
from tests.binlog.material import FOREIGN, SCRIPT_97, Written, written_by
from topology.adapters.inventory.problem import InventoryProblem

pytestmark = pytest.mark.spark
PLAIN = chosen(digests=False, details=False)


@pytest.fixture(scope="module")
def written(installation97: Installation) -> Iterator[Written]:
    with written_by(installation97, SCRIPT_97) as written:
        for number in (1, 2):
            written.server.execute("FLUSH LOGS", f"INSERT INTO d.t (b) VALUES ('more {number}')")
        yield written


@pytest.fixture(scope="module")
def archive(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's logs as they were once, with what else lies beside logs."""
    folder = tmp_path_factory.mktemp("archive") / "db1"
    folder.mkdir()
    for file in written.server.datadir.glob("binlog.*"):
        shutil.copy(file, folder)
    (folder / "binlog.000001.sha256").write_text("no log\n")
    assert (folder / "binlog.index").exists()
    return folder


def names_in(archive: Path) -> list[str]:
    names = sorted(path.name for path in archive.iterdir() if path.name[-6:].isdigit())
    assert len(names) == 5
    return names


def load(spark: SparkSession, *paths: Path | str, **options: str) -> DataFrame:
    register_sources(spark)
    source = spark.read.format("mysql_binlog").options(**options)
    return source.load([str(path) for path in paths] if len(paths) > 1 else str(paths[0]))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def read_here(columns: pa.Schema = PLAIN, **options: str) -> list[dict[str, Any]]:
    """Read as executors do, in this process."""
    reader = MysqlBinlogSource(options).reader(spark_schema(columns))
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    return pa.Table.from_batches(batches, columns).to_pylist()  # type: ignore[no-any-return]


def parts_of(**options: str) -> list[tuple[str, ...]]:
    reader = MysqlBinlogSource(options).reader(spark_schema(PLAIN))
    tasks = [task for task in reader.partitions() if isinstance(task, LogPartition)]
    return [tuple(Path(file).name for file in task.files) for task in tasks if task.files]


# -- rows -----------------------------------------------------------------------------------------


def test_every_transaction_of_every_file_is_a_row(archive: Path, spark: SparkSession) -> None:
    expected = [
        {"path": str(archive / name), **row, "error": None}
        for name in names_in(archive)
        for row in ledger_of_file(archive / name).rows.to_pylist()
    ]
    assert len(expected) > 20
    frame = load(spark, f"{archive}/binlog.*")
    assert frame.schema == spark_schema(PLAIN)
    assert rows_of(frame) == expected
    assert frame.rdd.getNumPartitions() == 5
    for options in ({"path": str(archive)}, {"path": f"{archive.parent}/*/*"}):
        assert read_here(**options) == expected


def test_how_files_are_dealt_changes_nothing(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_each = read_here(path=str(archive))
    monkeypatch.setattr(binlog_files, "TASKS_OF_ONE_FILE_MAX", 1)
    assert parts_of(path=str(archive)) == [tuple(names_in(archive))]
    assert read_here(path=str(archive)) == one_each
    monkeypatch.setattr(binlog_files, "TASK_BYTES", 1_000)
    dealt = tasks_of(files_of([str(archive)]))
    assert [Path(file).name for task in dealt for file in task] == names_in(archive)
    assert 2 < len(dealt) <= 5
    assert read_here(path=str(archive)) == one_each


def test_only_the_columns_that_are_asked_for(archive: Path, spark: SparkSession) -> None:
    whole = read_here(path=str(archive))
    named = load(spark, archive, columns="gtid, error, start")
    assert named.columns == ["gtid", "error", "start"]
    assert [row["start"] for row in rows_of(named)] == [row["start"] for row in whole]
    assert {row["gtid"] for row in rows_of(named)} >= {f"{FOREIGN}:5", f"{FOREIGN}:dba:7"}
    typed = spark.read.format("mysql_binlog").schema("gno bigint, uuid string").load(str(archive))
    assert rows_of(typed) == [{"gno": row["gno"], "uuid": row["uuid"]} for row in whole]


def test_details_say_which_tables_and_which_ddl(archive: Path, spark: SparkSession) -> None:
    rows = rows_of(load(spark, archive, details="true"))
    tagged = next(row for row in rows if row["tag"] == "dba")
    (change,) = tagged["tables"]
    assert (change["schema"], change["table"], change["rows_written"]) == ("d", "s", 1)
    assert "CREATE DATABASE d" in [row["ddl"] for row in rows]
    of_one_table = load(spark, archive, table="d.s", columns="gtid,tables")
    touched = [row for row in rows if any(each["table"] == "s" for each in row["tables"] or ())]
    assert 3 <= len(touched) < len(rows)
    assert [row["tables"] for row in rows_of(of_one_table)] == [row["tables"] for row in touched]


def test_a_live_server_gives_the_same_rows_as_its_files(
    written: Written, archive: Path, spark: SparkSession
) -> None:
    server = f"mysql://root@127.0.0.1:{written.server.port}/"
    asked = {"digests": "true", "details": "true"}
    register_sources(spark)
    rows = rows_of(spark.read.format("mysql_binlog").options(server=server, **asked).load())
    assert {row.pop("path") for row in rows} == {f"127.0.0.1:{written.server.port}"}
    files = read_here(chosen(digests=True, details=True), path=str(archive), **asked)
    assert rows == [{name: row[name] for name in row.keys() - {"path"}} for row in files]
    assert sum(row["digest"] is not None for row in rows) > len(rows) / 2
    wanted = read_here(server=server, gtids=f"{FOREIGN}:5:dba:7")
    assert [(row["gno"], row["tag"]) for row in wanted] == [(5, None), (7, "dba")]


# -- damage ---------------------------------------------------------------------------------------


def test_damage_is_a_row_and_the_rows_before_it_stay(
    archive: Path, spark: SparkSession, tmp_path: Path
) -> None:
    sound = read_here(path=str(archive / "binlog.000001"))
    content = (archive / "binlog.000001").read_bytes()
    bitten = sound[7]["start"]
    damaged = bytearray(content)
    damaged[bitten + 4] ^= 0xFF  # the type of a GTID event
    for name, data in {
        "binlog.000001": content,
        "binlog.000002": bytes(damaged),
        "binlog.000003": content[: sound[9]["start"] + 11],
        "binlog.000004": b"no log at all",
        "binlog.000005": b"",
    }.items():
        (tmp_path / name).write_bytes(data)
    rows = rows_of(load(spark, tmp_path))
    counts = dict.fromkeys(map(str, sorted(tmp_path.iterdir())), 0)
    for row in rows:
        counts[row["path"]] += row["error"] is None
    assert list(counts.values()) == [len(sound), 7, 9, 0, 0]
    errors = {row["file"]: row for row in rows if row["error"] is not None}
    assert sorted(errors) == [f"binlog.00000{number}" for number in (2, 3, 4, 5)]
    assert errors["binlog.000002"]["start"] == bitten
    assert errors["binlog.000003"]["start"] == sound[9]["start"]
    assert errors["binlog.000002"]["error"].startswith(f"binlog.000002: at byte {bitten}: ")
    assert errors["binlog.000002"]["gno"] is None
    (tmp_path / "binlog.000001").unlink()
    assert read_here(path=str(tmp_path), gtids=f"{FOREIGN}:99")[-1]["error"] is not None


def test_a_file_that_went_away_meanwhile_is_a_row(archive: Path, tmp_path: Path) -> None:
    shutil.copy(archive / "binlog.000001", tmp_path)
    reader = MysqlBinlogSource({"path": str(tmp_path)}).reader(spark_schema(PLAIN))
    (task,) = reader.partitions()
    (tmp_path / "binlog.000001").unlink()
    (batch,) = reader.read(task)
    (row,) = batch.to_pylist()  # type: ignore[union-attr]
    assert row["path"] == str(tmp_path / "binlog.000001")
    assert row["error"].startswith("[Errno 2] No such file or directory")


# -- what is asked for ----------------------------------------------------------------------------


def test_options_restrict_exactly(archive: Path) -> None:
    whole = read_here(path=str(archive))
    wanted = GtidSet.parse(f"{FOREIGN}:1-6:dba:1-100")
    found = read_here(path=str(archive), gtids=str(wanted))
    assert found == [row for row in whole if row["uuid"] == FOREIGN]
    assert len(found) == 2
    middle = whole[8]["immediate_commit_at"]
    text = middle.isoformat()
    assert read_here(path=str(archive), since=text) == whole[8:]
    assert read_here(path=str(archive), until=text) == whole[:8]
    later = (middle + timedelta(microseconds=1)).isoformat()
    assert read_here(path=str(archive), since=text, until=later) == whole[8:9]


def test_files_that_cannot_hold_it_are_not_opened(archive: Path) -> None:
    names, whole = names_in(archive), read_here(path=str(archive))
    assert [row["file"] for row in whole if row["uuid"] == FOREIGN] == [names[0]] * 2
    only_first = parts_of(path=str(archive), gtids=f"{FOREIGN}:5:dba:7")
    # Of the newest nobody knows yet what it will hold; but what came before, it will not.
    assert only_first == [(names[0],)]
    assert parts_of(path=str(archive), gtids=f"{FOREIGN}:6") == [(names[-1],)]
    in_middle = next(row for row in whole if row["file"] == names[2])
    one = f"{in_middle['uuid']}:{in_middle['gno']}"
    assert parts_of(path=str(archive), gtids=one) == [(names[2],)]
    far_later, far_earlier = "2100-01-01", "2001-01-01T00:00:00+05:00"
    assert parts_of(path=str(archive), since=far_later) == [(names[-1],)]
    assert parts_of(path=str(archive), until=far_earlier) == []
    assert parts_of(path=str(archive), until=far_later) == [(name,) for name in names]


@pytest.mark.parametrize(
    ("condition", "tasks"),
    [
        (f"uuid = '{FOREIGN}' AND gno IN (5, 7) AND NOT (tag <> 'dba') AND bytes % 2 = 1", 2),
        ("immediate_commit_at < TIMESTAMP '2001-01-01 00:00:00'", 1),  # an empty one
    ],
)
def test_filters_that_are_taken_over_give_the_same_rows_from_fewer_files(
    archive: Path, spark: SparkSession, condition: str, tasks: int
) -> None:
    expected = rows_of(load(spark, archive).where(condition))
    taken = load(spark, archive, pushdown="true").where(condition)
    assert rows_of(taken) == expected
    assert taken.rdd.getNumPartitions() == tasks


def test_spark_itself_filters_a_source_that_is_used_twice(
    archive: Path, spark: SparkSession
) -> None:
    frame = load(spark, archive)
    everything = len(read_here(path=str(archive)))
    assert frame.where(f"uuid = '{FOREIGN}'").union(frame).count() == everything + 2


def test_why_filters_are_not_taken_over_unless_somebody_says_so(
    archive: Path, spark: SparkSession
) -> None:
    """Spark keeps one query's filters for the next. Once this fails, `pushdown` may be the rule."""
    frame = load(spark, archive, pushdown="true")
    assert frame.where(sf.col("uuid") == FOREIGN).count() == 2
    assert frame.count() == 2 != len(read_here(path=str(archive)))


def test_pushing_keeps_what_it_can_answer_and_returns_the_rest(archive: Path) -> None:
    from pyspark.sql.datasource import EqualTo, Filter, IsNotNull

    reader = MysqlBinlogSource({"path": str(archive), "pushdown": "true"}).reader(
        spark_schema(PLAIN)
    )
    assert isinstance(reader, PushingReader)
    ours: list[Filter] = [IsNotNull(("gno",)), EqualTo(("gno",), 5)]
    other = EqualTo(("tables",), [])
    assert list(reader.pushFilters([*ours, other])) == [other]
    assert reader.conditions == tuple(ours)


# -- what is refused ------------------------------------------------------------------------------


def refused(**options: str) -> str:
    with pytest.raises(InventoryProblem) as refusal:
        MysqlBinlogSource(options).reader(spark_schema(COLUMNS)).partitions()
    return str(refusal.value)


def test_what_cannot_be_read_is_said_before_anything_is(tmp_path: Path) -> None:
    assert refused(path=f"{tmp_path}/nowhere") == f"{tmp_path}/nowhere: no such file or directory"
    assert refused(path=f"{tmp_path}/*") == f"{tmp_path}/*: contains no log files"
    (tmp_path / "binlog.000001").symlink_to("gone")
    for paths in (tmp_path, f"{tmp_path}/*"):
        assert "binlog.000001 is not a regular file, or a link to nothing" in refused(
            path=str(paths)
        )
    for address in ("hdfs://namenode/logs", "s3a://bucket/logs/*"):
        assert "is not a file system that every machine has mounted" in refused(path=address)
    assert refused() == "expected either paths of logs or the option server, not both"
    assert "not both" in refused(path="x", server="mysql://root@db1/")
    for paths in ("/archive/a,/archive/b", '{"a": 1}'):
        assert refused(paths=paths) == "option paths: is reserved by Spark; pass a list to load(…)"
    said = refused(
        path="x", detials="true", db_password="hunter2", since="yesterday", table="t",
        gtids="1-2", columns="gno,gno", transactions_max="0", verify="perhaps",
    )  # fmt: skip
    assert "hunter2" not in said
    assert "option detials: unknown; did you mean details?" in said
    assert "option db_password: a password must not be an option" in said
    for name in ("since", "table", "gtids", "columns", "transactions_max", "verify"):
        assert f"option {name}: expected" in said
    password_in_dsn = refused(server="mysql://root:hunter2@db1/")
    assert "password" in password_in_dsn
    assert "hunter2" not in password_in_dsn
    with pytest.raises(InventoryProblem, match="a stream is read from a server"):
        MysqlBinlogSource({"path": "x"}).streamReader(spark_schema(PLAIN))
    with pytest.raises(InventoryProblem, match="no column colour"):
        MysqlBinlogSource({"path": "x"}).reader(spark_schema(pa.schema({"colour": pa.string()})))
