"""SQL functions on the text of GTID sets, for whole Arrow batches at a time.

1. Null in, null out. Text that is not a GTID set also gives null, and gtid_error returns what is
   wrong with it. Functions registered as strict raise UnreadableGtidSet instead. Unreadable text is
   never treated as the empty set, and never left out of a union.
2. A result depends only on the arguments in its row. So Spark may push a function down, call it
   twice, or distribute the rows in any way.
3. gtid.columns converts text to sets and sets to text; nothing here runs once per row.
4. No files and no jobs: this module only defines the functions of a session.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType, DataType, DecimalType, LongType, StringType

from gtid.columns import GtidSetColumn

# Takes columns or column names, by position or by the parameter names of the SQL function.
ColumnFunction: TypeAlias = Callable[..., Column]

_TEXT: Final = StringType()
_TRUTH: Final = BooleanType()
_NUMBER: Final = LongType()
# A set may hold more than 2**63 GTIDs; 38 digits are the widest exact number of Spark.
_COUNT: Final = DecimalType(38, 0)


class UnreadableGtidSet(Exception):
    """An argument of a strict function is not the text of a GTID set.

    `row` counts from 0 within the batch of `batch_rows` rows that Spark passed. Spark does not
    report which row of the table that is, but `problem` shows the text around the error.
    """

    def __init__(
        self, *, function: str, parameter: str, problem: str, row: int, batch_rows: int
    ) -> None:
        super().__init__(function, parameter, problem, row, batch_rows)
        self.function = function
        self.parameter = parameter
        self.problem = problem
        self.row = row
        self.batch_rows = batch_rows

    def __reduce__(self) -> tuple[object, ...]:
        return _unreadable, self.args

    def __str__(self) -> str:
        place = f"row {self.row} of a batch of {self.batch_rows}"
        return f"{self.function}: {self.parameter}: {self.problem} ({place})"


def _unreadable(
    function: str, parameter: str, problem: str, row: int, batch_rows: int
) -> UnreadableGtidSet:
    return UnreadableGtidSet(
        function=function, parameter=parameter, problem=problem, row=row, batch_rows=batch_rows
    )


# -- the functions -----------------------------------------------------------------------------
# Names and parameters are those in SQL; each docstring is the help of the function.


def gtid_union(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return the GTIDs that are in `left`, in `right`, or in both."""
    return (left | right).to_arrow()


def gtid_intersect(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return the GTIDs that are in both."""
    return (left & right).to_arrow()


def gtid_subtract(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return the GTIDs that are in `left` and not in `right`, as MySQL's GTID_SUBTRACT does."""
    return (left - right).to_arrow()


def gtid_symmetric_difference(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return the GTIDs that are in exactly one of the two."""
    return (left ^ right).to_arrow()


def gtid_subset(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return whether every GTID of `left` is in `right`, as MySQL's GTID_SUBSET does."""
    return left.is_subset(right)


def gtid_equal(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return whether both hold the same GTIDs, whatever their text form."""
    return left.equals(right)


def gtid_disjoint(left: GtidSetColumn, right: GtidSetColumn) -> pa.Array:
    """Return whether no GTID is in both."""
    return left.is_disjoint(right)


def gtid_canonical(gtid_set: GtidSetColumn) -> pa.Array:
    """Write the set as a server would, on one line: sorted, merged, without duplicates."""
    return gtid_set.to_arrow()


def gtid_holes(gtid_set: GtidSetColumn) -> pa.Array:
    """Return the numbers missing between the first and the last of each UUID and tag."""
    return gtid_set.holes().to_arrow()


def gtid_count(gtid_set: GtidSetColumn) -> pa.Array:
    """Return how many GTIDs the set holds; exact above 2**63."""
    return gtid_set.gtid_count()


def gtid_interval_count(gtid_set: GtidSetColumn) -> pa.Array:
    """Return how many intervals the text of the set needs."""
    return gtid_set.interval_count()


def gtid_tsid_count(gtid_set: GtidSetColumn) -> pa.Array:
    """Return how many UUIDs, or UUIDs with a tag, have at least one GTID in the set."""
    return gtid_set.tsid_count()


def gtid_purged_risk(
    source_purged: GtidSetColumn,
    replica_executed: GtidSetColumn,
    replica_retrieved: GtidSetColumn,
) -> pa.Array:
    """Return what the source has purged and the replica has neither executed nor retrieved.

    With auto-positioning a replica sends the union of executed and retrieved. The source refuses it
    with error 1236 unless that union holds all of the source's gtid_purged (check_start_file of
    sql/rpl_binlog_sender.cc). Empty: no refusal for this reason. For a channel that has retrieved
    nothing pass '', not null.
    """
    return (source_purged - (replica_executed | replica_retrieved)).to_arrow()


def gtid_error(text: GtidSetColumn) -> pa.Array:
    """Return what is wrong with the text, and where; null for valid text and for null."""
    return text.errors()


def gtid_union_agg(gtid_set: GtidSetColumn) -> pa.Scalar:
    """Return the union of a group, without nulls; null if the group has only nulls.

    One unreadable text makes the result of the whole group null.
    """
    nulls: int = gtid_set.is_null().true_count
    unreadable = len(gtid_set) - gtid_set.errors().null_count
    known = len(gtid_set) > nulls and not unreadable
    return pa.scalar(str(gtid_set.union_all()) if known else None, pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidFunctions:
    """The functions for the DataFrame API, under their SQL names."""

    gtid_union: ColumnFunction
    gtid_intersect: ColumnFunction
    gtid_subtract: ColumnFunction
    gtid_symmetric_difference: ColumnFunction
    gtid_subset: ColumnFunction
    gtid_equal: ColumnFunction
    gtid_disjoint: ColumnFunction
    gtid_canonical: ColumnFunction
    gtid_holes: ColumnFunction
    gtid_count: ColumnFunction
    gtid_interval_count: ColumnFunction
    gtid_tsid_count: ColumnFunction
    gtid_purged_risk: ColumnFunction
    gtid_error: ColumnFunction
    gtid_union_agg: ColumnFunction


_SCALARS: Final[tuple[tuple[Callable[..., pa.Array], DataType], ...]] = (
    (gtid_union, _TEXT),
    (gtid_intersect, _TEXT),
    (gtid_subtract, _TEXT),
    (gtid_symmetric_difference, _TEXT),
    (gtid_subset, _TRUTH),
    (gtid_equal, _TRUTH),
    (gtid_disjoint, _TRUTH),
    (gtid_canonical, _TEXT),
    (gtid_holes, _TEXT),
    (gtid_count, _COUNT),
    (gtid_interval_count, _NUMBER),
    (gtid_tsid_count, _NUMBER),
    (gtid_purged_risk, _TEXT),
)


def gtid_functions(*, strict: bool = False) -> GtidFunctions:
    """Return the functions for the DataFrame API; they need no registration with a session.

    gtid_error is never strict: its purpose is to find what the others cannot read.
    """
    made = {work.__name__: _scalar(work, returns, strict=strict) for work, returns in _SCALARS}
    made["gtid_error"] = _scalar(gtid_error, _TEXT, strict=False)
    made["gtid_union_agg"] = _aggregate(gtid_union_agg, _TEXT, strict=strict)
    return GtidFunctions(**made)


def register_functions(session: SparkSession, *, strict: bool = False) -> GtidFunctions:
    """Register the functions with the SQL of a session, and return them for its DataFrames.

    The names belong to this session until it ends. Registering again replaces them. To have both
    kinds at once, register the strict ones on `session.newSession()`.
    """
    functions = gtid_functions(strict=strict)
    for field in fields(functions):
        session.udf.register(field.name, getattr(functions, field.name))
    return functions


# -- from Arrow and back ----------------------------------------------------------------------


def _scalar(work: Callable[..., pa.Array], returns: DataType, *, strict: bool) -> ColumnFunction:
    """Make a Spark function that calls `work` with batches of text. PySpark reads annotations."""

    def over_batch(*texts: pa.Array, **named: pa.Array) -> pa.Array:
        return work(*_arguments(work, texts, named, strict=strict))

    return _as_udf(over_batch, work, returns)


def _aggregate(
    work: Callable[..., pa.Scalar], returns: DataType, *, strict: bool
) -> ColumnFunction:
    """Make a Spark function that calls `work` with all texts of a group, or of a window."""

    def over_group(*texts: pa.Array, **named: pa.Array) -> pa.Scalar:
        return work(*_arguments(work, texts, named, strict=strict))

    return _as_udf(over_group, work, returns)


def _as_udf(
    over_arrow: Callable[..., Any], work: Callable[..., Any], returns: DataType
) -> ColumnFunction:
    over_arrow.__name__ = work.__name__  # plans and error messages show it
    over_arrow.__doc__ = work.__doc__
    # PySpark's stubs require the kind of function too; PySpark itself asks for annotations instead.
    made: ColumnFunction = arrow_udf(over_arrow, returns)  # type: ignore[call-overload]
    return made


def _arguments(
    work: Callable[..., Any],
    texts: tuple[pa.Array, ...],
    named: dict[str, pa.Array],
    *,
    strict: bool,
) -> list[GtidSetColumn]:
    """Parse the arguments of one call. Raises TypeError, and UnreadableGtidSet if strict."""
    try:
        bound = signature(work).bind(*texts, **named).arguments
    except TypeError as error:
        takes = ", ".join(signature(work).parameters)
        raise TypeError(f"{work.__name__}({takes}): {error}") from None
    columns = []
    for parameter, array in bound.items():
        column = _read(work.__name__, parameter, array)
        if strict:
            _refuse_errors(work.__name__, parameter, column)
        columns.append(column)
    return columns


def _read(function: str, parameter: str, texts: pa.Array) -> GtidSetColumn:
    if pa.types.is_null(texts.type):  # the type of a bare NULL
        texts = texts.cast(pa.string())
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise TypeError(f"{function}: {parameter} must be text, not {texts.type}")
    if _is_constant(texts):
        # Spark repeats a literal in every row of a batch. A readable one is parsed once.
        once = GtidSetColumn.parse(texts.slice(0, 1))
        if not once.is_null()[0].as_py():
            return once.take(np.zeros(len(texts), dtype=np.int64))
    return GtidSetColumn.parse(texts)


def _is_constant(texts: pa.Array) -> bool:
    """Return whether all rows have one text. Cheap if not: first and last row usually differ."""
    several = len(texts) > 1 and not texts.null_count
    if not several or texts[0] != texts[-1]:
        return False
    same: bool = pc.all(pc.equal(texts, texts[0])).as_py()
    return same


def _refuse_errors(function: str, parameter: str, column: GtidSetColumn) -> None:
    errors = column.errors()
    if errors.null_count == len(errors):
        return
    row = errors.is_valid().index(True).as_py()
    raise UnreadableGtidSet(
        function=function,
        parameter=parameter,
        problem=errors[row].as_py(),
        row=row,
        batch_rows=len(errors),
    )
