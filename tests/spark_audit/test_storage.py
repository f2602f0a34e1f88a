"""Both storages, of this machine and of Hadoop, keep the same promises."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_audit.adapters.runs import latest_before, runs_newest_first
from spark_audit.adapters.storage import HadoopStorage, Storage, storage_of
from topology.adapters.run_directory import LocalStorage, RunName

pytestmark = pytest.mark.spark


@pytest.fixture(params=["local", "hadoop"])
def there(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> tuple[Storage, str]:
    """A storage, and an empty place in it."""
    if request.param == "local":
        return LocalStorage(), str(tmp_path)
    return HadoopStorage(spark, scheme="file"), f"file://{tmp_path}"


def test_a_small_file_is_read_as_it_was_written(there: tuple[Storage, str]) -> None:
    storage, root = there
    place = f"{root}/day=2026-01-02/x/_summary.json"
    assert not storage.exists(place)
    storage.write_text(place, "ä\n1")
    assert storage.exists(place)
    assert storage.read_text(place) == "ä\n1"
    storage.write_text(place, "")
    assert storage.read_text(place) == ""


def test_names_are_sorted_and_an_absent_directory_has_none(there: tuple[Storage, str]) -> None:
    storage, root = there
    for name in ("b", "a=1", "_c"):
        storage.write_text(f"{root}/d/{name}/file", "")
    assert storage.names_in(f"{root}/d") == ["_c", "a=1", "b"]
    assert storage.names_in(f"{root}/nowhere") == []
    assert storage.names_in(f"{root}/d/b/file") == []


def test_a_rename_makes_what_lies_above_and_never_replaces(there: tuple[Storage, str]) -> None:
    storage, root = there
    storage.write_text(f"{root}/draft/file", "new")
    storage.make_durable(f"{root}/draft")
    storage.rename(f"{root}/draft", f"{root}/day=2026-01-02/run")
    assert storage.read_text(f"{root}/day=2026-01-02/run/file") == "new"
    assert not storage.exists(f"{root}/draft")
    storage.write_text(f"{root}/draft/file", "newer")
    with pytest.raises(FileExistsError, match="already exists"):
        storage.rename(f"{root}/draft", f"{root}/day=2026-01-02/run")
    assert storage.names_in(f"{root}/day=2026-01-02/run") == [
        name for name in storage.names_in(f"{root}/day=2026-01-02/run") if "draft" not in name
    ]
    assert storage.read_text(f"{root}/day=2026-01-02/run/file") == "new"


def test_what_is_not_there_is_deleted_in_peace_and_read_in_vain(there: tuple[Storage, str]) -> None:
    storage, root = there
    storage.write_text(f"{root}/a/b/c", "x")
    storage.delete(f"{root}/a")
    storage.delete(f"{root}/a")
    assert not storage.exists(f"{root}/a")
    with pytest.raises(FileNotFoundError):
        storage.read_text(f"{root}/a/b/c")


def test_what_cannot_be_written_is_an_os_error(there: tuple[Storage, str]) -> None:
    storage, root = there
    storage.write_text(f"{root}/file", "x")
    with pytest.raises(OSError, match="file"):
        storage.write_text(f"{root}/file/below", "y")


def test_spark_reads_what_lies_there(there: tuple[Storage, str], spark: SparkSession) -> None:
    storage, root = there
    storage.write_text(f"{root}/day=2026-01-02/x.txt", "one\ntwo\n")
    rows = spark.read.text(storage.address(f"{root}/day=2026-01-02/x.txt")).collect()
    assert [row["value"] for row in rows] == ["one", "two"]


@pytest.mark.parametrize(
    ("place", "kind", "is_atomic"),
    [
        ("/srv/gtid", LocalStorage, True),
        ("file:///srv/gtid", LocalStorage, True),
        ("hdfs://name/gtid/", HadoopStorage, True),
        ("s3a://bucket/gtid", HadoopStorage, False),
    ],
)
def test_the_scheme_chooses_the_storage(
    spark: SparkSession, place: str, kind: type, *, is_atomic: bool
) -> None:
    storage, named = storage_of(place, spark)
    assert type(storage) is kind
    assert storage.renames_atomically is is_atomic
    assert named in ("/srv/gtid", "hdfs://name/gtid", "s3a://bucket/gtid")


def test_runs_are_found_newest_first_and_only_when_complete(there: tuple[Storage, str]) -> None:
    storage, root = there
    first, second, third = (RunName(f"run=2026010{day}T030000.000000Z") for day in (2, 3, 4))
    assert second.moment == datetime(2026, 1, 3, 3, tzinfo=UTC)
    assert second.path == "day=2026-01-03/run=20260103T030000.000000Z"
    for run in (third, first, second):
        storage.write_text(f"{root}/{run.path}/_SUCCESS", "")
    storage.write_text(f"{root}/day=2026-01-05/run=20260105T030000.000000Z/part", "")  # died
    storage.write_text(f"{root}/day=2026-01-06/{first.text}/_SUCCESS", "")  # moved by hand
    storage.write_text(f"{root}/_writing-1/_SUCCESS", "")
    storage.write_text(f"{root}/day=2026-01-04/run=yesterday/_SUCCESS", "")
    assert list(runs_newest_first(storage, root)) == [third, second, first]
    assert latest_before(storage, root, third) == second
    assert latest_before(storage, root, first) is None
    with pytest.raises(ValueError, match="expected a run like"):
        RunName.of_place("/srv/yesterday")
