"""The rows of a DataFrame as items of a JSON document, written by the executors.

The driver receives texts, and holds those of one partition at a time. It needs neither PyArrow nor
pandas for that.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from topology.adapters.snapshot_columns import records_of_table
from topology.documents.json_items import items_text

_ITEMS_PER_PIECE: Final = 1_000  # in one text: a few megabytes at most
_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"  # %S includes microseconds for this column type
_TEXTS: Final = StructType([StructField("items", StringType())])


def items_of(rows: DataFrame) -> Iterator[str]:
    """Yield the rows, in order, as texts for topology/documents/json_items.py."""
    for row in rows.mapInArrow(_texts_of, _TEXTS).toLocalIterator():
        yield row["items"]


def _texts_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        written = _with_times_written(batch)
        texts = [
            items_text(records_of_table(written.slice(start, _ITEMS_PER_PIECE)))
            for start in range(0, written.num_rows, _ITEMS_PER_PIECE)
        ]
        yield pa.record_batch({"items": pa.array(texts, pa.string())})


def _with_times_written(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Write the times of a batch as topology/documents/records.py does, a column at a time.

    For a short row, converting each time to an object and then to text is most of the work. Times
    inside lists are still converted that way, by records_of_table: such lists are rare.
    """
    columns = {
        name: pc.strftime(column.cast(pa.timestamp("us")), format=_TIME_FORMAT)
        if pa.types.is_timestamp(column.type)
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.record_batch(columns)
