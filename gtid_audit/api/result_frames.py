"""Results as Arrow tables and pandas frames, with the columns of stored runs.

Times are microseconds with the zone UTC. Counts of GTIDs, which may exceed 2**63, are 38-digit
decimals in Arrow and Python integers in pandas.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from gtid_audit.api.api_errors import translated
from gtid_audit.optional_packages import require_arrow, require_pandas
from topology.documents.record_codec import RecordShape

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def arrow_of(shape: RecordShape[Any], values: Iterable[Any], *, without: Iterable[str] = ()) -> Any:  # noqa: ANN401 - pa.Table, of a package without types
    """Return a table with a row for each value, and a column for each field of its shape.

    `without` names fields that are left out. Raises MissingPackage.
    """
    with translated():
        require_arrow()
    from topology.adapters.snapshot_columns import columns_of, table_of_records

    table = table_of_records(map(shape.write, values), columns_of(shape))
    return table.drop_columns(list(without))


def pandas_of(table: "pa.Table") -> "pd.DataFrame":
    """Return a table as a frame. Raises MissingPackage."""
    with translated():
        require_pandas()
    import pyarrow as pa

    frame: pd.DataFrame = table.to_pandas(**_KEEP_MICROSECONDS)
    for column in table.schema:
        if pa.types.is_decimal(column.type):
            frame[column.name] = frame[column.name].map(int, na_action="ignore").astype(object)
    return frame


# Nanoseconds would end in the year 2262, and the times of readings have microseconds.
_KEEP_MICROSECONDS: Final = {"coerce_temporal_nanoseconds": False}
