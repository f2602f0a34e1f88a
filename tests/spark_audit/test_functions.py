"""The SQL functions: GtidSet's answers, for every row, in SQL and on DataFrames, or none."""

import os
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from decimal import Decimal
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from gtid import GtidError, GtidSet
from spark_audit.functions import (
    GtidFunctions,
    UnreadableGtidSet,
    gtid_functions,
    register_functions,
)

pytestmark = pytest.mark.spark

A = "aaaaaaaa-0000-0000-0000-000000000001"
B = "bbbbbbbb-0000-0000-0000-000000000002"
SEED = 20260102
GNO_MAX = 2**63 - 2

WELL_FORMED = (
    "",
    f"{A}:1-10",
    f"{A}:5",
    f"{A}:1-3:5-10,{B}:7",
    f"{B}:7,{A}:5-10:1-3:2",  # the same, written otherwise
    f" {A.upper()} : 1 - 3 ,\n{B}:tag:1-4:6, ,",
    f"{B.replace('-', '')}:tag:1-9:Other:2",
    f"{A}:9-3",  # one more way to write nothing
    f"{A}:1-{GNO_MAX},{B}:1-{GNO_MAX}:tag:1-{GNO_MAX}",
    f"{A}:" + ":".join(f"{gno}-{gno + 1}" for gno in range(1, 9_000, 3)),
)
MALFORMED = (
    "x",
    f"{A}:0",
    f"{A}:1-{2**63}",
    f"{A}:1;{B}:2",
    f"{A}:1\N{EM DASH}2",
    f"{A}:{'t' * 33}:1",
)
TEXTS = (None, *WELL_FORMED, *MALFORMED)

ONE = "gtid_set"
TWO = ("left", "right")
MEANING: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "gtid_union": (TWO, lambda left, right: str(left | right)),
    "gtid_intersect": (TWO, lambda left, right: str(left & right)),
    "gtid_subtract": (TWO, lambda left, right: str(left - right)),
    "gtid_symmetric_difference": (TWO, lambda left, right: str(left ^ right)),
    "gtid_subset": (TWO, lambda left, right: left <= right),
    "gtid_equal": (TWO, lambda left, right: left == right),
    "gtid_disjoint": (TWO, lambda left, right: left.is_disjoint(right)),
    "gtid_canonical": ((ONE,), str),
    "gtid_holes": ((ONE,), lambda one: str(one.holes())),
    "gtid_count": ((ONE,), lambda one: Decimal(one.gtid_count)),
    "gtid_interval_count": ((ONE,), lambda one: one.interval_count),
    "gtid_tsid_count": ((ONE,), lambda one: one.tsid_count),
    "gtid_purged_risk": (
        ("source_purged", "replica_executed", "replica_retrieved"),
        lambda purged, executed, retrieved: str(purged - (executed | retrieved)),
    ),
}


@cache
def understood(text: str | None) -> GtidSet | GtidError | None:
    try:
        return None if text is None else GtidSet.parse(text)
    except GtidError as error:
        return error


def expected(name: str, *texts: str | None) -> Any:
    """What the function must say, by the scalar algebra."""
    sets = [understood(text) for text in texts]
    if name == "gtid_error":
        return str(sets[0]) if isinstance(sets[0], GtidError) else None
    if not all(isinstance(one, GtidSet) for one in sets):
        return None
    return MEANING[name][1](*sets)


def generated_text(random: Random) -> str | None:
    """One row: mostly a set of a few UUIDs and tags, often untidy, now and then spoilt."""
    if random.random() < 0.05:
        return None
    entries = []
    for _ in range(random.randrange(4)):
        uuid = random.choice((A, B, A.upper()))
        parts = []
        for _ in range(random.randrange(1, 6)):
            start = random.randrange(1, 40)
            parts.append(f"{start}-{start + random.randrange(-2, 9)}")
            if random.random() < 0.2:
                parts.append(random.choice(("red", "_blue2")) + f":{start}")
        entries.append(f"{uuid}:{':'.join(parts)}")
    text = random.choice((",", ", ", ",\n")).join(entries)
    if text and random.random() < 0.1:
        place = random.randrange(len(text))
        text = text[:place] + random.choice("-:,x9 ") + text[place + 1 :]
    return text


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> GtidFunctions:
    return register_functions(spark)


@pytest.fixture(scope="module")
def strict(spark: SparkSession, functions: GtidFunctions) -> Iterator[SparkSession]:
    """A second session, with the same names, strict. The first one stays as it was."""
    session = spark.newSession()
    register_functions(session, strict=True)
    yield session
    spark.range(0).count()  # the first session is the active one again


@pytest.fixture(scope="module")
def operands(spark: SparkSession, functions: GtidFunctions) -> list[tuple[str | None, ...]]:
    """All pairs of the hand-picked texts, and some hundred generated triples, as the view `sets`."""
    random = Random(SEED)
    rows = [(left, right, left) for left, right in product(TEXTS, TEXTS)]
    for _ in range(400):
        rows.append((generated_text(random), generated_text(random), generated_text(random)))
    numbered = [(row, *texts) for row, texts in enumerate(rows)]
    frame = spark.createDataFrame(numbered, "row int, a string, b string, c string")
    frame.repartition(3).createOrReplaceTempView("sets")
    return rows  # type: ignore[return-value]


def test_every_function_of_sql_says_what_the_scalar_algebra_says(
    spark: SparkSession, operands: list[tuple[str | None, ...]]
) -> None:
    calls = [f"{name}({', '.join('abc'[: len(MEANING[name][0])])})" for name in MEANING]
    found = spark.sql(f"SELECT {', '.join(calls)}, gtid_error(a) FROM sets ORDER BY row").collect()
    assert len(found) == len(operands)
    for texts, row in zip(operands, found, strict=True):
        wanted = [expected(name, *texts[: len(MEANING[name][0])]) for name in MEANING]
        assert list(row) == [*wanted, expected("gtid_error", texts[0])], (texts, f"seed {SEED}")
    values = [value for row in found for value in row]
    assert {True, False, None, ""} <= {value for value in values if not isinstance(value, Decimal)}
    assert max(value for value in values if isinstance(value, Decimal)) == 3 * GNO_MAX


def test_dataframes_say_the_same_as_sql(
    spark: SparkSession, functions: GtidFunctions, operands: list[tuple[str | None, ...]]
) -> None:
    frame = spark.table("sets").orderBy("row")
    by_place = frame.select(
        functions.gtid_subtract("a", "b"),
        functions.gtid_subset(frame.a, sf.col("b")),
        functions.gtid_count("a"),
        functions.gtid_purged_risk("a", replica_retrieved="c", replica_executed="b"),
    )
    in_sql = spark.sql(
        "SELECT gtid_subtract(right => b, left => a), gtid_subset(a, b), gtid_count(a),"
        " gtid_purged_risk(a, replica_retrieved => c, replica_executed => b)"
        " FROM sets ORDER BY row"
    )
    assert [tuple(row) for row in by_place.collect()] == [tuple(row) for row in in_sql.collect()]
    assert by_place.schema.simpleString().count("decimal(38,0)") == 1
    assert [field.dataType.simpleString() for field in by_place.schema] == [
        "string",
        "boolean",
        "decimal(38,0)",
        "string",
    ]


def test_the_catalog_lists_what_the_dataclass_names(
    spark: SparkSession, functions: GtidFunctions
) -> None:
    named = {field.name for field in fields(functions)}
    assert named == MEANING.keys() | {"gtid_error", "gtid_union_agg"}
    listed = spark.sql("SHOW USER FUNCTIONS LIKE 'gtid_*'").collect()
    assert {row[0].rsplit(".")[-1] for row in listed} == named
    assert all(spark.catalog.functionExists(name) for name in named)
    assert spark.sql(f"SELECT gtid_count('{A}:1-3')").collect() == [(3,)]


def test_literals_are_operands_like_any_other(
    spark: SparkSession, operands: list[tuple[str | None, ...]]
) -> None:
    (literal,) = (text for text in WELL_FORMED if text.startswith(" "))
    escaped = literal.replace("\n", "\\n")
    found = spark.sql(
        f"SELECT gtid_subset('{escaped}', a), gtid_subtract(a, '{escaped}'), gtid_union(a, NULL),"
        " gtid_error('x'), gtid_canonical('x') FROM sets ORDER BY row"
    ).collect()
    for texts, row in zip(operands, found, strict=True):
        wanted = expected("gtid_subset", literal, texts[0])
        assert row[0] is wanted, texts
        assert row[1] == expected("gtid_subtract", texts[0], literal), texts
        assert row[2:] == (None, "expected a UUID at character 0: [HERE]x", None)


def test_one_pass_through_python_serves_all_functions_of_a_select(
    spark: SparkSession, operands: list[tuple[str | None, ...]]
) -> None:
    frame = spark.sql(
        "SELECT gtid_subtract(a, b), gtid_subtract(b, a), gtid_equal(a, b),"
        " gtid_count(gtid_holes(a)) FROM sets"
    )
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert plan.count("pythonUDF3") >= 1


def in_process(name: str, *, strict: bool = False) -> Callable[..., pa.Array]:
    """Return the function as Spark's workers call it."""
    function: Callable[..., pa.Array] = getattr(gtid_functions(strict=strict), name).func
    return function


TEXT = pa.array([f"{A}:1-3"])


@pytest.mark.parametrize(
    ("name", "given", "named", "message"),
    [
        ("gtid_count", [pa.array([1])], {}, "gtid_count: gtid_set must be text, not int64"),
        ("gtid_error", [pa.array([b"x"])], {}, "gtid_error: text must be text, not binary"),
        ("gtid_subtract", [TEXT], {}, "gtid_subtract(left, right): missing a required argument"),
        ("gtid_equal", [], {"left": TEXT, "wrong": TEXT}, "gtid_equal(left, right): "),
        ("gtid_union_agg", [TEXT, TEXT], {}, "gtid_union_agg(gtid_set): too many"),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(
    name: str, given: list[pa.Array], named: dict[str, pa.Array], message: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        in_process(name)(*given, **named)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_one_text_in_all_rows_is_read_once_and_means_the_same(rows: int) -> None:
    for text in TEXTS:
        column = pa.array([text] * rows, pa.string())
        for name in ("gtid_canonical", "gtid_count", "gtid_error"):
            found = in_process(name)(column).to_pylist()
            assert found == [expected(name, text)] * rows, (name, text)
        united = in_process("gtid_union_agg")(column)
        assert united.as_py() == expected("gtid_canonical", text)
        if text in MALFORMED:
            with pytest.raises(UnreadableGtidSet, match=f"row 0 of a batch of {rows}"):
                in_process("gtid_union_agg", strict=True)(column)


def test_a_slice_of_a_batch_is_a_batch_and_so_is_nothing() -> None:
    """Windows hand over slices, and empty ones where a frame has no row."""
    whole = pa.array(TEXTS, pa.string())
    for name, (parameters, _) in MEANING.items():
        function = in_process(name)
        for begin, end in ((3, 9), (len(TEXTS) - 2, len(TEXTS)), (4, 4)):
            part = whole.slice(begin, end - begin)
            wanted = [expected(name, *[text] * len(parameters)) for text in TEXTS[begin:end]]
            assert function(*[part] * len(parameters)).to_pylist() == wanted, name
    aggregate = in_process("gtid_union_agg")
    assert aggregate(whole.slice(0, 0)).as_py() is None
    assert aggregate(whole.slice(2, 2)).as_py() == expected("gtid_union", *TEXTS[2:4])


def test_strict_functions_fail_the_job_with_the_place_in_the_text(
    spark: SparkSession, strict: SparkSession, functions: GtidFunctions
) -> None:
    rows = [(f"{A}:1-3", f"{A}:2"), (None, f"{A}:1"), (f"{A}:1", f"{A}:1,{B}x")]
    frame = spark.createDataFrame(rows, "a string, b string").coalesce(1)
    frame.createOrReplaceGlobalTempView("some_sets")
    table = "global_temp.some_sets"
    with pytest.raises(PythonException) as refused:
        strict.sql(f"SELECT gtid_subtract(a, b) FROM {table}").collect()
    assert str(refused.value).rstrip().splitlines()[-1] == (
        "spark_audit.functions.UnreadableGtidSet: gtid_subtract: right: expected a colon, a"
        " comma or the end at character 75: ...000000000002[HERE]x (row 2 of a batch of 3)"
    )
    # What is readable is answered, nulls are nulls, and gtid_error still finds the row.
    found = strict.sql(f"SELECT gtid_count(a), gtid_error(b) IS NULL FROM {table}").collect()
    assert [tuple(row) for row in found] == [(3, True), (None, True), (1, False)]
    # The other session is as lenient as it was.
    lenient = spark.sql(f"SELECT gtid_subtract(a, b) FROM {table}").collect()
    assert [row[0] for row in lenient] == [f"{A}:1:3", None, None]


def test_the_error_of_a_strict_function_travels_between_processes() -> None:
    error = UnreadableGtidSet(
        function="gtid_count", parameter="gtid_set", problem="expected rain", row=2, batch_rows=5
    )
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "gtid_count: gtid_set: expected rain (row 2 of a batch of 5)"
    assert (copy.row, copy.batch_rows, copy.parameter) == (2, 5, "gtid_set")


GROUPS = (
    ("fine", f"{A}:1-3"),
    ("fine", f"{B}:tag:5,{A}:9"),
    ("fine", None),
    ("fine", f"{A}:4"),
    ("empty", ""),
    ("null", None),
    ("null", None),
    ("spoilt", f"{A}:1"),
    ("spoilt", "1-2-3"),
    (None, f"{B}:1"),
)
UNIONS = {
    "fine": f"{A}:1-4:9,{B}:tag:5",
    "empty": "",
    "null": None,
    "spoilt": None,
    None: f"{B}:1",
}


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_a_group_has_one_union_however_its_rows_are_spread(
    spark: SparkSession, functions: GtidFunctions, partitions: int
) -> None:
    frame = spark.createDataFrame(GROUPS, "name string, a string")
    spread = frame.orderBy(sf.rand(seed=partitions)).repartition(partitions)
    united = spread.groupBy("name").agg(functions.gtid_union_agg("a").alias("a")).collect()
    assert {row["name"]: row["a"] for row in united} == UNIONS


def test_the_aggregate_in_sql(spark: SparkSession, functions: GtidFunctions) -> None:
    spark.createDataFrame(GROUPS, "name string, a string").createOrReplaceTempView("groups")
    both = spark.sql(
        "SELECT name, gtid_union_agg(a), gtid_union_agg(gtid_holes(a))"
        " FROM groups WHERE name IN ('fine', 'spoilt') GROUP BY name ORDER BY name"
    ).collect()
    # What gtid_holes could not read is null by the time the second aggregate sees it.
    assert [tuple(row) for row in both] == [("fine", UNIONS["fine"], ""), ("spoilt", None, "")]
    of_all = spark.sql("SELECT gtid_union_agg(a) FROM groups WHERE gtid_error(a) IS NULL")
    assert [row[0] for row in of_all.collect()] == [f"{A}:1-4:9,{B}:1:tag:5"]
    windows = spark.sql(
        "SELECT name, a, gtid_union_agg(a) OVER (PARTITION BY name) AS whole,"
        " gtid_union_agg(a) OVER (PARTITION BY name ORDER BY a"
        "  ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,"
        " gtid_union_agg(a) OVER (PARTITION BY name ORDER BY a"
        "  ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS one_before"
        " FROM groups WHERE name IN ('fine', 'null') ORDER BY name, a"
    ).collect()
    assert [row["whole"] for row in windows] == [UNIONS["fine"]] * 4 + [None] * 2
    assert [row["so_far"] for row in windows] == [
        None,
        f"{A}:1-3",
        f"{A}:1-4",
        UNIONS["fine"],
        None,
        None,
    ]
    before = [None, None, f"{A}:1-3", f"{A}:4", None, None]
    assert [row["one_before"] for row in windows] == before


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("SELECT gtid_union_agg(a), count(*) FROM groups", "cannot be invoked together"),
        ("SELECT gtid_union_agg(DISTINCT a) FROM groups", "does not support DISTINCT"),
        ("SELECT gtid_union_agg(a) FILTER (WHERE a > '') FROM groups", "FILTER CLAUSE"),
    ],
)
def test_what_spark_refuses_of_an_aggregate_in_python(
    spark: SparkSession, functions: GtidFunctions, query: str, refused: str
) -> None:
    spark.createDataFrame(GROUPS, "name string, a string").createOrReplaceTempView("groups")
    with pytest.raises(AnalysisException, match=refused):
        spark.sql(query).collect()


def test_no_rows_have_no_union(spark: SparkSession, functions: GtidFunctions) -> None:
    """Spark asks an aggregate in Python nothing if there is no row: not even null comes back."""
    none = spark.createDataFrame([], "name string, a string")
    assert none.agg(functions.gtid_union_agg("a")).collect() == []
    assert none.groupBy("name").agg(functions.gtid_union_agg("a")).collect() == []
    assert none.select(functions.gtid_union("a", "name")).collect() == []


def test_batches_of_every_size_and_wide_text_change_nothing(
    spark: SparkSession, operands: list[tuple[str | None, ...]]
) -> None:
    query = "SELECT gtid_subtract(a, b), gtid_count(a), gtid_error(c) FROM sets ORDER BY row"
    usual = spark.sql(query).collect()
    changes = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
    }
    before = {name: spark.conf.get(name) for name in changes}
    try:
        for name, value in changes.items():
            spark.conf.set(name, value)
        assert spark.sql(query).collect() == usual
    finally:
        for name, was in before.items():
            assert was is not None
            spark.conf.set(name, was)


@pytest.mark.slow
def test_a_python_worker_that_starts_anew_finds_all_it_needs(spark: SparkSession) -> None:
    # Workers are shared by functions of one environment: this one brings its own.
    environment: dict[str, str] = spark.sparkContext.environment
    environment["GTID_AUDIT_TEST"] = "anew"
    try:
        functions = gtid_functions()

        where_am_i = sf.udf(lambda _: os.environ.get("GTID_AUDIT_TEST"), "string")
        frame = spark.createDataFrame([(f"{A}:1-3:5",)], "a string")
        row = frame.select(where_am_i("a"), functions.gtid_holes("a")).first()
    finally:
        del environment["GTID_AUDIT_TEST"]
    assert row is not None
    assert tuple(row) == ("anew", f"{A}:4")
