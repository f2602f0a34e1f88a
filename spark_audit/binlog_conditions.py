"""Evaluates the filters that Spark pushes to a source, on columns of transactions.

1. A filter is taken over only if the answer here is exactly Spark's: the same type on both sides,
   and unknown (null) where Spark has unknown. Other filters are left to Spark.
2. All filters of a scan must hold: a row for which one is false or unknown is dropped.
3. spark_audit/binlog_sought.py derives from the filters which whole logs to skip.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import reduce
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as filters

from spark_audit.ledger_schema import COLUMNS

Test = Callable[[pa.Array, pa.Scalar], pa.Array]

_WITH_VALUE: Final[Mapping[type[filters.Filter], Test]] = {
    filters.EqualTo: pc.equal,
    filters.EqualNullSafe: lambda column, value: pc.fill_null(pc.equal(column, value), False),
    filters.GreaterThan: pc.greater,
    filters.GreaterThanOrEqual: pc.greater_equal,
    filters.LessThan: pc.less,
    filters.LessThanOrEqual: pc.less_equal,
    filters.StringStartsWith: lambda column, value: pc.starts_with(column, pattern=value.as_py()),
    filters.StringEndsWith: lambda column, value: pc.ends_with(column, pattern=value.as_py()),
    filters.StringContains: lambda column, value: pc.match_substring(column, pattern=value.as_py()),
}
_WITHOUT: Final[Mapping[type[filters.Filter], Callable[[pa.Array], pa.Array]]] = {
    filters.IsNull: pc.is_null,
    filters.IsNotNull: pc.is_valid,
}


class Columns(Protocol):
    """Any object that returns columns by name."""

    def raw(self, name: str) -> pa.ChunkedArray:
        """Return a column, dictionary-encoded or not."""


# -- rows -----------------------------------------------------------------------------------------


def is_exact(condition: filters.Filter) -> bool:
    """Return whether a filter can be evaluated here as Spark would evaluate it."""
    if isinstance(condition, filters.Not):
        return is_exact(condition.child)
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in COLUMNS.names:
        return False
    kind = COLUMNS.field(attribute[0]).type
    if type(condition) in _WITHOUT:
        return True
    if isinstance(condition, filters.In):
        return all(_literal(value, kind) is not None for value in condition.value)
    return type(condition) in _WITH_VALUE and _literal(value_of(condition), kind) is not None


def mask_of(conditions: Iterable[filters.Filter], columns: Columns) -> pa.ChunkedArray | None:
    """Return which rows are wanted; None if all are. Requires: is_exact of every condition."""
    masks = [_mask(condition, columns) for condition in conditions]
    return reduce(pc.and_kleene, masks) if masks else None


def _mask(condition: filters.Filter, columns: Columns) -> pa.ChunkedArray:
    if isinstance(condition, filters.Not):
        return pc.invert(_mask(condition.child, columns))
    name = column_of(condition)
    kind = COLUMNS.field(name).type
    chunks = columns.raw(name).chunks
    return pa.chunked_array([_answer(condition, chunk, kind) for chunk in chunks], pa.bool_())


def _answer(condition: filters.Filter, chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    """Evaluate a filter on one chunk. A text that occurs a million times is compared once."""
    if type(condition) in _WITHOUT:
        return _WITHOUT[type(condition)](chunk)
    if pa.types.is_dictionary(chunk.type):
        found = pc.take(_answer(condition, chunk.dictionary, kind), chunk.indices)
        return pc.fill_null(found, False) if isinstance(condition, filters.EqualNullSafe) else found
    if isinstance(condition, filters.In):
        values = pa.array(list(condition.value), kind)
        # Arrow returns false where SQL has unknown, which matters below a NOT.
        return pc.if_else(pc.is_valid(chunk), pc.is_in(chunk, values), pa.scalar(None, pa.bool_()))
    value = _literal(value_of(condition), kind)
    assert value is not None, "exact"
    return _WITH_VALUE[type(condition)](chunk if chunk.type == kind else chunk.cast(kind), value)


def _literal(value: object, kind: pa.DataType) -> pa.Scalar | None:
    """Return a value in a column's type; None if its type differs, or it does not fit."""
    fits = (
        (pa.types.is_string(kind) and isinstance(value, str))
        or (pa.types.is_boolean(kind) and isinstance(value, bool))
        or (pa.types.is_integer(kind) and isinstance(value, int) and not isinstance(value, bool))
        or (
            pa.types.is_timestamp(kind) and isinstance(value, datetime) and value.tzinfo is not None
        )
    )
    if not fits:
        return None
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return None


def column_of(condition: filters.Filter) -> str:
    """Return the name of the one column that a filter uses. Requires: no Not."""
    name: str = condition.attribute[0]  # type: ignore[attr-defined]  # all except Not have it
    return name


def value_of(condition: filters.Filter) -> Any:  # noqa: ANN401 - Spark's type
    """Return the value that a filter compares with. Requires: no Not, IsNull or IsNotNull."""
    return condition.value  # type: ignore[attr-defined]  # all but Not, IsNull, IsNotNull have it
