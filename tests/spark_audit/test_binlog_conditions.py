"""Filters as Spark means them: each held to a plain reading of SQL's three-valued logic."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from binlog.errors import CorruptBinlog
from binlog.ledger.ledger_columns import LedgerRequest
from gtid import GtidSet, Tsid
from spark_audit.binlog_conditions import is_exact, mask_of
from spark_audit.binlog_sought import Sought, sought_by
from spark_audit.ledger_schema import (
    COLUMNS,
    LedgerRows,
    UnreadPart,
    chosen,
    columns_of,
    spark_schema,
)
from tests.hypothesis_profiles import laws
from tests.spark_audit.sparks_schema import sparks_arrow_schema

A, B = (UUID(int=number << 120) for number in (0xAA, 0xBB))
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MOMENTS = [NOON + timedelta(seconds=number) for number in range(4)]

OPERATORS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda cell, value: cell == value,
    GreaterThan: lambda cell, value: cell > value,
    GreaterThanOrEqual: lambda cell, value: cell >= value,
    LessThan: lambda cell, value: cell < value,
    LessThanOrEqual: lambda cell, value: cell <= value,
    In: lambda cell, value: cell in value,
    StringStartsWith: lambda cell, value: cell.startswith(value),
    StringEndsWith: lambda cell, value: cell.endswith(value),
    StringContains: lambda cell, value: value in cell,
}


def meant(condition: Filter, row: dict[str, Any]) -> bool | None:
    """What SQL says of one row: true, false or unknown."""
    if isinstance(condition, Not):
        inner = meant(condition.child, row)
        return None if inner is None else not inner
    cell = row.get(condition.attribute[0])  # type: ignore[attr-defined]
    if isinstance(condition, IsNull | IsNotNull):
        return (cell is None) == isinstance(condition, IsNull)
    value = condition.value  # type: ignore[attr-defined]
    if isinstance(condition, EqualNullSafe):
        return bool(cell == value)
    return None if cell is None else OPERATORS[type(condition)](cell, value)


def a_transaction(
    uuid: UUID | None, tag: str | None, gno: int | None, **more: Any
) -> dict[str, Any]:
    at = NOON if gno is None else MOMENTS[gno % 4]
    row = {
        "file": "binlog.000001", "kind": "dml", "start": 4, "end": 10, "bytes": 6, "server_id": 1,
        "uuid": None if uuid is None else str(uuid), "tag": tag, "gno": gno, "logged_at": at,
        "immediate_commit_at": None if uuid is None else at, "error_code": 0, "is_complete": True,
    }  # fmt: skip
    return {**row, **more}


TRANSACTIONS = [
    a_transaction(None, None, None, file="binlog.000002", kind="ddl"),
    *(a_transaction(*key) for key in product((A, B), (None, "dba"), range(1, 5))),
    a_transaction(A, None, 9, is_complete=False, kind="xa", error_code=1050),
]


def ledger(rows: list[dict[str, Any]]) -> LedgerRows:
    return LedgerRows("db1/binlog.000001", pa.Table.from_pylist(rows, LedgerRequest().schema))


texts = st.sampled_from([str(A), str(B), "dba", "", "b", "binlog.000001", "dml", "å"])
numbers = st.integers(-1, 10)
moments = st.sampled_from(MOMENTS).map(lambda at: at.astimezone(timezone(timedelta(hours=5))))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("path", "file", "uuid", "tag", "kind", "error"), texts),
    **dict.fromkeys(("gno", "error_code", "sequence_number"), numbers),
    **dict.fromkeys(("logged_at", "immediate_commit_at"), moments),
    "is_complete": st.booleans(),
}
BINARY = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
ON_TEXT = (StringStartsWith, StringEndsWith, StringContains)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    name = draw(st.sampled_from(sorted(VALUES)))
    kinds = (*BINARY, In, IsNull, IsNotNull, *(ON_TEXT if VALUES[name] is texts else ()))
    kind: Any = draw(st.sampled_from(kinds))
    condition: Filter
    if kind in (IsNull, IsNotNull):
        condition = kind((name,))
    elif kind is In:
        condition = In((name,), tuple(draw(st.lists(VALUES[name], max_size=3))))
    else:
        condition = kind((name,), draw(VALUES[name]))
    return Not(condition) if draw(st.booleans()) else condition


@laws(200)
@given(st.lists(filters(), max_size=3))
def test_a_row_is_kept_exactly_if_every_filter_is_true_of_it(conditions: list[Filter]) -> None:
    assert all(map(is_exact, conditions))
    rows = ledger(TRANSACTIONS)
    mask = mask_of(conditions, rows)
    kept = (rows if mask is None else rows.where(mask)).rows.to_pylist()
    expected = [
        row
        for row in TRANSACTIONS
        if all(meant(each, {**row, "path": "db1/binlog.000001"}) is True for each in conditions)
    ]
    assert [(row["uuid"], row["tag"], row["gno"]) for row in kept] == [
        (row["uuid"], row["tag"], row["gno"]) for row in expected
    ]


@laws(200)
@given(st.lists(filters(), max_size=3))
def test_the_row_of_damage_is_kept_by_the_same_rule(conditions: list[Filter]) -> None:
    damage = UnreadPart.of(
        CorruptBinlog(file="f", position=7, what="x"), path="db1/f", file="binlog.000001"
    )
    mask = mask_of(conditions, damage)
    is_kept = mask is None or mask.to_pylist() == [True]
    assert is_kept == all(meant(each, dict(damage.values)) is True for each in conditions)


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("gno",), 5.0),
        EqualTo(("gno",), "5"),
        EqualTo(("gno",), True),
        EqualTo(("gno",), 2**63),
        EqualTo(("is_complete",), 1),
        EqualTo(("uuid",), 5),
        EqualTo(("uuid",), None),
        In(("gno",), (1, None)),
        EqualTo(("logged_at",), NOON.replace(tzinfo=None)),
        EqualTo(("tables", "schema"), "d"),
        EqualTo(("elsewhere",), "d"),
        Not(EqualTo(("gno",), "5")),
    ],
)
def test_what_spark_would_convert_first_is_left_to_spark(condition: Filter) -> None:
    assert not is_exact(condition)


# -- what is sought -------------------------------------------------------------------------------


def gtid_of(row: dict[str, Any]) -> GtidSet:
    if row["gno"] is None:
        return GtidSet()
    tsid = Tsid(UUID(row["uuid"]), row["tag"] or "")
    return GtidSet.from_intervals([(tsid, row["gno"], row["gno"] + 1)])


KNOWN = GtidSet.union_of(map(gtid_of, TRANSACTIONS))


@laws(200)
@given(st.lists(filters(), max_size=4), st.sampled_from([None, KNOWN]))
def test_no_row_that_is_wanted_is_outside_of_what_is_sought(
    conditions: list[Filter], known: GtidSet | None
) -> None:
    sought = sought_by(conditions, Sought())
    for row in TRANSACTIONS:
        placed = {**row, "path": "db1/binlog.000001"}
        if not all(meant(each, placed) is True for each in conditions):
            continue
        if sought.has_gtids:
            among = sought.gtids_among(known)
            assert row["gno"] is not None
            assert among is None or gtid_of(row) <= among
        committed_at = row["immediate_commit_at"] or row["logged_at"]
        assert sought.committed_from is None or sought.committed_from <= committed_at
        assert sought.committed_until is None or committed_at <= sought.committed_until


def sought_among(known: GtidSet | None, *conditions: Filter) -> str | None:
    sought = sought_by(conditions, Sought())
    among = sought.gtids_among(known) if sought.has_gtids else known
    return None if among is None else str(among)


def test_what_filters_say_is_all_used() -> None:
    uuid, untagged = EqualTo(("uuid",), str(A)), IsNull(("tag",))
    numbered = (GreaterThan(("gno",), 1), LessThanOrEqual(("gno",), 3))
    assert sought_among(None, uuid, untagged, *numbered) == f"{A}:2-3"
    assert sought_among(None, uuid, EqualTo(("tag",), "dba"), *numbered) == f"{A}:dba:2-3"
    assert sought_among(None, uuid, *numbered) is None, "it may have any tag"
    assert sought_among(KNOWN, uuid, *numbered) == f"{A}:2-3:dba:2-3"
    assert sought_among(KNOWN, *numbered) == f"{A}:2-3:dba:2-3,{B}:2-3:dba:2-3"
    assert sought_among(KNOWN, In(("gno",), (2, 4)), uuid, untagged) == f"{A}:2-4"
    assert sought_among(KNOWN, In(("gno",), ())) == ""
    assert sought_among(None, EqualTo(("gtid",), f"{A}:dba:7")) == f"{A}:dba:7"
    assert sought_among(None, In(("gtid",), (f"{A}:1", f"{A}:3"))) == f"{A}:1:3"
    assert sought_among(KNOWN, untagged) == str(KNOWN), "an anonymous transaction has no tag either"
    for nonsense in ("gtid", "uuid", "tag"):
        assert sought_among(KNOWN, EqualTo((nonsense,), "no such thing")) == str(KNOWN)


# -- columns --------------------------------------------------------------------------------------


def test_columns_are_as_spark_makes_them() -> None:
    # Spark compares the schema of the first batch with its own and takes nothing but equality.
    for columns in (COLUMNS, chosen(digests=False, details=False)):
        assert sparks_arrow_schema(spark_schema(columns)) == columns
    assert "gtid" not in chosen(digests=True, details=True).names
    assert chosen(digests=False, details=False, names=("gno", "path")).names == ["gno", "path"]
    assert columns_of(spark_schema(COLUMNS)) == COLUMNS


def test_columns_that_are_not_ours_are_refused() -> None:
    one = spark_schema(pa.schema({"uuid": pa.int64()}))
    with pytest.raises(ValueError, match="the column uuid is string"):
        columns_of(one)
    with pytest.raises(ValueError, match="no column lenght; the columns are path, gtid, file"):
        columns_of(spark_schema(pa.schema({"lenght": pa.int64()})))


def batches(rows: LedgerRows) -> Iterator[pa.RecordBatch]:
    for batch in rows.batches(COLUMNS):
        batch.validate(full=True)
        assert batch.schema == COLUMNS
        yield batch


def test_rows_are_cast_and_cut_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_audit.ledger_schema.ROWS_PER_BATCH", 2)
    schema = LedgerRequest(digests=True, details=True).schema
    tables = [
        {"schema": "d", "table": "t", "rows_written": 1, "rows_updated": 2, "rows_deleted": 3}
    ]
    rows = [
        a_transaction(A, None, 1, digest=2**64 - 1, tables=tables),
        a_transaction(A, "dba", 2, digest=5, tables=[], ddl="DROP TABLE t"),
        a_transaction(None, None, None),
    ]
    first, second = batches(LedgerRows("p", pa.Table.from_pylist(rows, schema)))
    assert (first.num_rows, second.num_rows) == (2, 1)
    whole = pa.Table.from_batches([first, second]).to_pylist()
    assert [row["gtid"] for row in whole] == [f"{A}:1", f"{A}:dba:2", None]
    assert [row["digest"] for row in whole] == [-1, 5, None]
    assert [row["tables"] for row in whole] == [tables, [], None]
    assert {row["path"] for row in whole} == {"p"}
    assert whole[0]["immediate_commit_at"] == MOMENTS[1]
    assert list(LedgerRows("p", pa.Table.from_pylist([], schema)).batches(COLUMNS)) == []
