"""Folding before the shuffle: the same unions as the aggregate's, in fewer rows."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import spark_audit.set_union as folding
from gtid import GtidError, GtidSet
from spark_audit.functions import gtid_functions
from spark_audit.set_union import union_by

A = "aaaaaaaa-0000-0000-0000-000000000001"
B = "bbbbbbbb-0000-0000-0000-000000000002"
SEED = 20260103

Table = list[tuple[str | None, int, str | None]]


def generated(rows: int, *, seed: int) -> Table:
    """Some keys with many sets, one that is null, one spoilt, one with nothing but nulls."""
    random = Random(seed)
    table: Table = [("spoilt", 1, f"{A}:1"), ("spoilt", 1, "1-2-3"), ("null", 1, None)]
    for _ in range(rows):
        gno = random.randrange(1, 500)
        texts = (f"{A}:{gno}-{gno + 5}", f"{B.upper()}:tag:{gno}, {A}:3", "", None)
        table.append((random.choice(("x", "y", None)), gno % 2, random.choice(texts)))
    return table


def unions(table: Table) -> dict[tuple[str | None, int], str | None]:
    """The definition: nulls are passed over, one unreadable text makes null."""
    groups: dict[tuple[str | None, int], list[str]] = {}
    for name, number, text in table:
        groups.setdefault((name, number), []).extend([] if text is None else [text])
    found: dict[tuple[str | None, int], str | None] = {}
    for key, texts in groups.items():
        try:
            sets = [GtidSet.parse(text) for text in texts]
        except GtidError:
            sets = []
        found[key] = str(GtidSet.union_of(sets)) if sets else None
    return found


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_unions_do_not_depend_on_how_rows_are_spread(spark: SparkSession, partitions: int) -> None:
    table = generated(600, seed=SEED)
    frame = spark.createDataFrame(table, "name string, number int, a string")
    spread = frame.orderBy(sf.rand(seed=partitions)).repartition(partitions)
    united = union_by(spread, ["name", "number"], "a")
    assert united.schema.simpleString() == "struct<name:string,number:int,a:string>"
    found = {(row["name"], row["number"]): row["a"] for row in united.collect()}
    assert found == unions(table), f"seed {SEED}"
    assert {"spoilt", "null", "x", "y", None} == {name for name, _ in found}


@pytest.mark.spark
def test_without_keys_there_is_one_row_or_none(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(f"{A}:1-3",), (f"{A}:4,{B}:1",)], "a string").repartition(2)
    assert [row["a"] for row in union_by(frame, [], "a").collect()] == [f"{A}:1-4,{B}:1"]
    assert union_by(frame.where("a = 'none'"), [], "a").collect() == []


@pytest.mark.spark
def test_what_cannot_be_read_reaches_a_strict_union(spark: SparkSession) -> None:
    rows = [("x", f"{A}:{gno}") for gno in range(1, 9)] + [("x", "1-2-3")]
    frame = spark.createDataFrame(rows, "name string, a string").coalesce(1)
    message = r"gtid_union_agg: gtid_set: expected a UUID at character 0: \[HERE\]1-2-3"
    with pytest.raises(PythonException, match=message):
        union_by(frame, ["name"], "a", strict=True).collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("keys", "column", "error"),
    [
        (["number", "list"], "a", "list cannot be a key: array<int>"),
        (["a"], "a", "a cannot be a key: string"),
        (["a"], "number", "number must be text, not int"),
    ],
)
def test_a_union_that_cannot_be_is_refused_before_a_job_starts(
    spark: SparkSession, keys: list[str], column: str, error: str
) -> None:
    frame = spark.createDataFrame([(1, [1], "")], "number int, list array<int>, a string")
    with pytest.raises((ValueError, TypeError), match=error):
        union_by(frame, keys, column)


def folded(table: Table, keys: Sequence[str], *, batch_rows: int) -> list[pa.RecordBatch]:
    """What a worker makes of one partition."""
    columns: list[list[Any]] = [list(column) for column in zip(*table, strict=True)]
    whole = pa.table(dict(zip(("name", "number", "a"), columns, strict=True)))
    chosen = whole.select([*keys, "a"]).to_batches(max_chunksize=batch_rows)
    return list(folding._folder(tuple(keys), "a")(iter(chosen)))


def test_a_partition_is_folded_to_one_row_per_key() -> None:
    table = generated(500, seed=SEED)
    batches = folded(table, ["name", "number"], batch_rows=90)
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert len(rows) == len(unions(table))
    # The last word is the aggregate's: it must find each group as it was.
    assert unions(rows) == unions(table)
    assert ("spoilt", 1, "1-2-3") in rows
    assert batches[0].schema == pa.schema({"name": "string", "number": "int64", "a": "string"})


@pytest.mark.parametrize("keys", [["name", "number"], ["name"]])
def test_what_a_worker_holds_has_a_bound(monkeypatch: pytest.MonkeyPatch, keys: list[str]) -> None:
    monkeypatch.setattr(folding, "HELD_BYTES_MAX", 100)
    # As many keys as rows: nothing is gained by holding them, so they are sent on.
    many: Table = [(f"key {row}", row, f"{A}:{row + 1}") for row in range(300)]
    sent = folded(many, keys, batch_rows=50)
    assert len(sent) > 3
    assert sum(batch.num_rows for batch in sent) == 300
    # One key, folded again and again: one row, whatever the bound.
    one: Table = [("key", 1, f"{A}:{2 * row + 1}") for row in range(300)]
    texts = [row["a"] for batch in folded(one, keys, batch_rows=50) for row in batch.to_pylist()]
    united = GtidSet.union_of(map(GtidSet.parse, texts))
    assert united == GtidSet.parse(f"{A}:{':'.join(str(2 * row + 1) for row in range(300))}")
    assert len(texts) < 10


def test_an_empty_partition_is_nothing() -> None:
    assert folded([("x", 1, "")], ["name"], batch_rows=1)[0].num_rows == 1
    assert list(folding._folder(("name",), "a")(iter([]))) == []


def test_the_union_of_the_aggregate_is_the_union_of_the_fold() -> None:
    texts = [text for name, _, text in generated(400, seed=SEED + 1) if name != "spoilt"]
    aggregate = gtid_functions().gtid_union_agg.func  # type: ignore[attr-defined]
    rows: Table = [("x", 1, text) for text in texts]
    (batch,) = folded(rows, [], batch_rows=1_000)
    assert batch.column("a")[0].as_py() == aggregate(pa.array(texts)).as_py()
    assert batch.num_rows == 1
