"""The columns of a stored snapshot, and the conversion of records to columns and back.

1. The columns are derived from the fields of a record (topology/documents/records.py). Times are
   UTC microseconds, GTID sets are MySQL's text.
2. Typing loses nothing: records_of_table(table_of_records(x)) is x, for any schema.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa

from topology.documents.plain_types import PlainKind, PlainType
from topology.documents.record_codec import RecordShape
from topology.documents.records import SNAPSHOT, Plain, Record, time_from_text, time_to_text

Cell: TypeAlias = "bool | int | str | datetime | Decimal | list[Cell] | dict[str, Cell] | None"

# -- the columns ----------------------------------------------------------------------------------


def list_of(item: pa.DataType) -> pa.DataType:
    """Return the type of a list, with its item named as in Parquet and Spark."""
    return pa.list_(pa.field("element", item))


TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
# A set may hold more than 2**63 GTIDs; 38 digits are the widest exact number of Spark and Parquet.
COUNT: Final = pa.decimal128(38, 0)
_OF_KIND: Final = {
    PlainKind.TEXT: pa.string(),
    PlainKind.NUMBER: pa.int64(),
    PlainKind.SMALL_NUMBER: pa.int32(),
    PlainKind.COUNT: COUNT,
    PlainKind.FLAG: pa.bool_(),
    PlainKind.TIME: TIMESTAMP,
    PlainKind.REAL: pa.float64(),
}


def column_type(plain: PlainType) -> pa.DataType:
    """Return the type of a column that holds values of a plain type, or null."""
    if plain.kind is PlainKind.LIST and plain.item is not None:
        return list_of(column_type(plain.item))
    if plain.kind is PlainKind.RECORD:
        return pa.struct({name: column_type(part) for name, part in plain.parts})
    return _OF_KIND[plain.kind]


def columns_of(shape: RecordShape[Any]) -> pa.Schema:
    """Return the columns that hold the records of a shape: one for each field, in its order."""
    return columns_of_type(shape.plain_type)


def columns_of_type(record: PlainType) -> pa.Schema:
    """Return the columns that hold records of a type."""
    return pa.schema({name: column_type(part) for name, part in record.parts})


SNAPSHOT_SCHEMA: Final = columns_of(SNAPSHOT)


# -- records and columns --------------------------------------------------------------------------


def table_of_records(records: Iterable[Record], schema: pa.Schema) -> pa.Table:
    """Return records as typed columns: times and exact counts are converted from text."""
    rows = list(records)
    columns = []
    for column in schema:
        write = _cell_writer(column.type)
        values: Iterable[object] = (row[column.name] for row in rows)
        cells = list(values if write is None else map(write, values))
        columns.append(pa.array(cells, type=column.type))
    return pa.Table.from_arrays(columns, schema=schema)


def records_of_table(table: pa.Table | pa.RecordBatch) -> list[Record]:
    """Return columns as records."""
    records: list[Record] = table.to_pylist()
    typed = {column.name: column.type for column in table.schema if _has_own_cells(column.type)}
    for record in records:
        for name, kind in typed.items():
            record[name] = _from_cell(cast("Cell", record[name]), kind)
    return records


def readings_of_table(table: pa.Table) -> list[Record]:
    """Return rows of SNAPSHOT_SCHEMA as `snapshot_from_record` reads them, with times unchanged."""
    readings: list[Record] = table.to_pylist()
    return readings


def _has_own_cells(kind: pa.DataType) -> bool:
    """Return whether cells of this type, or within it, differ from the values of a record."""
    if pa.types.is_list(kind):
        return _has_own_cells(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_has_own_cells(part.type) for part in kind.fields)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_decimal(kind))


@cache
def _cell_writer(kind: pa.DataType) -> Callable[[Any], Cell] | None:
    """Return the function that converts a record's value to a cell of this type, or None.

    None means that the cell is the value itself.
    """
    if pa.types.is_timestamp(kind):
        return _writing(str, time_from_text)
    if pa.types.is_decimal(kind):
        return _writing(int, Decimal)
    if pa.types.is_list(kind):
        item = _cell_writer(kind.value_type)
        return None if item is None else _writing(list, lambda values: list(map(item, values)))
    if pa.types.is_struct(kind):
        parts = [(part.name, _cell_writer(part.type)) for part in kind.fields]
        # Rebuilt even where nothing changes: a missing field must not become a null.
        return _writing(
            dict,
            lambda record: {
                name: record[name] if write is None else write(record[name])
                for name, write in parts
            },
        )
    return None


def _writing(expected: type, write: Callable[[Any], Cell]) -> Callable[[Any], Cell]:
    def write_cell(value: object) -> Cell:
        if value is None:
            return None
        assert isinstance(value, expected), "a record has the types of its columns"
        return write(value)

    return write_cell


def _from_cell(cell: Cell, kind: pa.DataType) -> Plain:
    if isinstance(cell, datetime):
        return time_to_text(cell)
    if isinstance(cell, Decimal):
        return int(cell)
    if isinstance(cell, list):
        return [_from_cell(item, kind.value_type) for item in cell]
    if isinstance(cell, dict):
        return {part.name: _from_cell(cell[part.name], part.type) for part in kind.fields}
    return cell


def leaves_of(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the column paths as Parquet names them, down to the values."""
    if pa.types.is_list(kind):
        yield from leaves_of(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind.fields:
            yield from leaves_of(f"{path}.{part.name}", part.type)
    else:
        yield path
