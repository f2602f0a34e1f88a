"""The columns of `mysql_binlog`: a ledger (binlog/ledger) in types that Spark has.

1. Every row has the `path` it was read from. Every row is a transaction, except one per damaged
   file: that row has `error`, the position where reading stopped as `start`, and nothing else.
2. Spark has no dictionaries and no unsigned numbers. It accepts a batch only if its Arrow schema is
   exactly the one that Spark derives from its own schema. The 64 bits of a digest become a signed
   number: digests are for comparison, not for arithmetic.
3. A column that the query does not need is not produced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from binlog.errors import CorruptBinlog
from binlog.ledger.ledger_columns import DETAIL_FIELDS, DIGEST_FIELD, LEDGER_SCHEMA
from topology.adapters.snapshot_columns import list_of

PATH: Final = "path"
GTID: Final = "gtid"
ERROR: Final = "error"
ROWS_PER_BATCH: Final = 1 << 16


def _as_spark_has_it(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_uint64(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return list_of(_as_spark_has_it(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _as_spark_has_it(each.type)) for each in kind])
    return kind


def _fields(*fields: pa.Field) -> list[pa.Field]:
    return [pa.field(each.name, _as_spark_has_it(each.type)) for each in fields]


# All columns, in order. `gtid` is text built from three other columns, and is produced only if the
# query asks for it explicitly.
COLUMNS: Final = pa.schema(
    [
        pa.field(PATH, pa.string()),
        pa.field(GTID, pa.string()),
        *_fields(*LEDGER_SCHEMA, DIGEST_FIELD, *DETAIL_FIELDS),
        pa.field(ERROR, pa.string()),
    ]
)
DIGEST: Final = DIGEST_FIELD.name
DETAILS: Final = tuple(field.name for field in DETAIL_FIELDS)
_MADE_OF: Final = ("uuid", "tag", "gno")  # the parts of `gtid`


def chosen(*, digests: bool, details: bool, names: Sequence[str] | None = None) -> pa.Schema:
    """Return the named columns, in this order; without names, all columns that are switched on."""
    if names is not None:
        return pa.schema([COLUMNS.field(name) for name in names])
    left_out = {GTID, *(() if digests else (DIGEST,)), *(() if details else DETAILS)}
    return pa.schema([field for field in COLUMNS if field.name not in left_out])


def spark_schema(columns: pa.Schema) -> StructType:
    """Return the Spark schema for some of COLUMNS."""
    return from_arrow_schema(columns)


def columns_of(schema: StructType) -> pa.Schema:
    """Return the columns of a Spark schema. Raises ValueError for columns that we do not have."""
    ours = {field.name: field for field in spark_schema(COLUMNS)}
    for field in schema:
        if field.name not in ours:
            raise ValueError(f"no column {field.name}; the columns are {', '.join(ours)}")
        if field.dataType != ours[field.name].dataType:
            kind = ours[field.name].dataType.simpleString()
            raise ValueError(f"the column {field.name} is {kind}")
    return pa.schema([COLUMNS.field(field.name) for field in schema])


@dataclass(frozen=True, slots=True)
class LedgerRows:
    """Transactions of one log, and the path it was read from. Returns columns in Spark's types."""

    path: str
    rows: pa.Table

    @property
    def count(self) -> int:
        """Return the number of rows."""
        count: int = self.rows.num_rows
        return count

    def raw(self, name: str) -> pa.ChunkedArray:
        """Return a column of COLUMNS. A column of the ledger is returned as it is, undecoded."""
        if name == PATH:
            return pa.chunked_array([pa.array([self.path]).dictionary_encode()]).take(self._zeros())
        if name == ERROR:
            return pa.chunked_array([pa.nulls(self.count, pa.string())])
        return _gtids(self.rows) if name == GTID else self.rows.column(name)

    def where(self, mask: pa.ChunkedArray) -> "LedgerRows":
        """Return the rows for which the mask is true (not null)."""
        return LedgerRows(self.path, self.rows.filter(mask))

    def batches(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows, ROWS_PER_BATCH at a time."""
        for start in range(0, self.count, ROWS_PER_BATCH):
            part = LedgerRows(self.path, self.rows.slice(start, ROWS_PER_BATCH))
            arrays = [_cast(part.raw(field.name), field.type) for field in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    def _zeros(self) -> pa.Array:
        return pa.repeat(pa.scalar(0, pa.int32()), self.count)


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """The one row for the part of a log that could not be read."""

    values: Mapping[str, object]

    @classmethod
    def of(cls, error: Exception, *, path: str, file: str) -> "UnreadPart":
        """Return the error, and its byte position if that is known."""
        position = error.position if isinstance(error, CorruptBinlog) else None
        return cls({PATH: path, "file": file, "start": position, ERROR: str(error)})

    def raw(self, name: str) -> pa.ChunkedArray:
        """Return a column of COLUMNS."""
        return pa.chunked_array([pa.array([self.values.get(name)], COLUMNS.field(name).type)])

    def batch(self, columns: pa.Schema) -> pa.RecordBatch:
        """Return the row."""
        arrays = [self.raw(field.name).combine_chunks() for field in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # Arrow does not combine an empty column
        array = pa.array([], column.type) if not array.num_chunks else array.chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_uint64(array.type):
        return array.view(kind)
    return array if array.type == kind else array.cast(kind)


def _gtids(rows: pa.Table) -> pa.ChunkedArray:
    """Write GTIDs as servers do: `uuid:gno`, `uuid:tag:gno`; null if there is none."""
    uuid, tag, gno = (_decoded(rows.column(name)) for name in _MADE_OF)
    tag = pc.coalesce(pc.binary_join_element_wise(tag, "", ":"), "")
    text = pc.binary_join_element_wise(uuid, pc.binary_join_element_wise(tag, gno, ""), ":")
    return text if isinstance(text, pa.ChunkedArray) else pa.chunked_array([text])


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())
