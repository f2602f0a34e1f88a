"""The union of many GTID sets per key, for groups too large to collect unreduced.

1. Each partition is reduced before the shuffle. So about one set per key and partition travels, not
   one per row. gtid_union_agg, which Spark cannot split into partial steps, makes the final union.
2. The result does not depend on how the rows were partitioned, or on their order.
3. An unreadable text travels unchanged, in place of its key's union. So the aggregate receives it,
   and returns null or raises, as it would without this module.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from gtid.columns import GtidSetColumn
from spark_audit.functions import gtid_functions

Numbers: TypeAlias = NDArray[np.int64]

# What a worker holds while it reduces a partition: as much as one batch of Spark. Above this limit
# it reduces, and sends the result on if that did not halve it: then reducing does not pay.
HELD_BYTES_MAX: Final = 64 * 1024 * 1024

_ROW: Final = "gtid_union_row"  # a temporary column of row numbers
_NO_KEYS: Final[tuple[type[DataType], ...]] = (ArrayType, MapType, StructType, VariantType)


def union_by(
    frame: DataFrame, keys: Sequence[str], column: str, *, strict: bool = False
) -> DataFrame:
    """Return the union of `column` for each combination of `keys`, as gtid_union_agg would.

    The result has the keys and the column, under their names. Nulls are ignored; a key with only
    nulls has null. A key with an unreadable text has null; if `strict`, the job fails. Without keys
    there is one row, or none if `frame` has none. Raises ValueError if a key is a list, a map or a
    structure, and TypeError if the column is not text.
    """
    selected = frame.select(*keys, column)
    for name in keys:
        kind = selected.schema[name].dataType
        if isinstance(kind, _NO_KEYS) or name == column:
            raise ValueError(f"{name} cannot be a key: {kind.simpleString()}")
    if not isinstance(selected.schema[column].dataType, StringType):
        kind = selected.schema[column].dataType
        raise TypeError(f"{column} must be text, not {kind.simpleString()}")
    folded = selected.mapInArrow(_folder(tuple(keys), column), selected.schema)
    united = gtid_functions(strict=strict).gtid_union_agg(column).alias(column)
    return folded.groupBy(*keys).agg(united).select(*keys, column)


def _folder(
    keys: tuple[str, ...], column: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def fold_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.Table] = []
        held_bytes = 0
        for batch in batches:
            held.append(_fold(pa.Table.from_batches([batch]), keys, column))
            held_bytes += held[-1].nbytes
            if held_bytes > HELD_BYTES_MAX:
                held = [_fold(pa.concat_tables(held), keys, column)]
                if held[0].nbytes > held_bytes // 2:
                    yield from held.pop().to_batches()
                held_bytes = sum(table.nbytes for table in held)
        if held:
            yield from _fold(pa.concat_tables(held), keys, column).to_batches()

    return fold_partition


def _fold(table: pa.Table, keys: tuple[str, ...], column: str) -> pa.Table:
    """Return one row for each combination of keys."""
    rows, groups = _by_group(table, keys)
    firsts = rows[_firsts(groups)]
    if len(firsts) == table.num_rows:
        return table
    texts = table.column(column).combine_chunks()
    sets = GtidSetColumn.parse(texts)
    unread = np.asarray(sets.is_null(), dtype=np.bool_)[rows]
    spoilt = unread & ~np.asarray(texts.is_null(), dtype=np.bool_)[rows]
    united, united_groups = _unite(sets.take(rows[~unread]), groups[~unread])
    # The text of a group: its union, or, if it has one, an unreadable text of its own.
    choice = np.full(len(firsts), -1, dtype=np.int64)
    choice[united_groups] = np.arange(len(united_groups))
    choice[groups[spoilt]] = len(united_groups) + rows[spoilt]
    offered = pa.concat_arrays([united.to_arrow().cast(texts.type), texts])
    chosen = offered.take(pa.array(choice, mask=choice < 0))
    place = table.schema.get_field_index(column)
    return table.take(pa.array(firsts)).set_column(place, table.schema.field(place), chosen)


def _by_group(table: pa.Table, keys: tuple[str, ...]) -> tuple[Numbers, Numbers]:
    """Return the row numbers, group by group, and the group number of each."""
    numbers = np.arange(table.num_rows, dtype=np.int64)
    if not keys:
        return numbers, np.zeros_like(numbers)
    numbered = table.select(keys).append_column(_ROW, pa.array(numbers))
    listed = numbered.group_by(list(keys), use_threads=False).aggregate([(_ROW, "list")])
    lists = listed.column(f"{_ROW}_list").combine_chunks()
    sizes = lists.value_lengths().to_numpy()
    return lists.flatten().to_numpy(), np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


def _unite(sets: GtidSetColumn, groups: Numbers) -> tuple[GtidSetColumn, Numbers]:
    """Unite neighbours within groups, for all groups at once, until each has one row left."""
    while len(firsts := _firsts(groups)) < len(groups):
        sizes = np.diff(firsts, append=len(groups))
        places = np.arange(len(groups)) - np.repeat(firsts, sizes)
        left = np.flatnonzero(places % 2 == 0)
        right = np.minimum(left + 1, len(groups) - 1)
        right = np.where(groups[right] == groups[left], right, left)  # unpaired: with itself
        sets = sets.take(left) | sets.take(right)
        groups = groups[left]
    return sets, groups


def _firsts(groups: Numbers) -> Numbers:
    """Return the places where groups begin; the rows of a group are neighbours."""
    return np.flatnonzero(np.diff(groups, prepend=-1))
