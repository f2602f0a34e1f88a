"""Applies the options of `mysql_binlog` to the transactions that were read: exactly those remain.

Pure, except for late imports: NumPy is needed only if a set of GTIDs is asked for.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_audit.adapters.binlog_options import BinlogOptions, Table
from spark_audit.binlog_sought import Sought

_MICROSECOND: Final = timedelta(microseconds=1)


def with_columns(options: BinlogOptions, columns: pa.Schema) -> BinlogOptions:
    """Return the options, with the columns that the query needs."""
    return replace(options, columns=tuple(columns.names))


def sought_by_options(options: BinlogOptions) -> Sought:
    """Return what the options state about the wanted transactions."""
    until = options.until
    return Sought(
        gtids=options.gtids,
        committed_from=options.since,
        committed_until=None if until is None else until - _MICROSECOND,
    )


def restricted(rows: pa.Table, options: BinlogOptions) -> pa.Table:
    """Return the rows that the options ask for."""
    if options.gtids is not None:
        from binlog.ledger.ledger_sets import rows_in

        rows = rows.filter(pa.array(rows_in(rows, options.gtids)))
    if options.since is not None:
        rows = rows.filter(pc.greater_equal(_committed(rows), _scalar(options.since)))
    if options.until is not None:
        rows = rows.filter(pc.less(_committed(rows), _scalar(options.until)))
    return rows if options.table is None else rows.filter(_touches(rows, options.table))


def _committed(rows: pa.Table) -> pa.ChunkedArray:
    return pc.coalesce(rows.column("immediate_commit_at"), rows.column("logged_at"))


def _scalar(moment: datetime) -> pa.Scalar:
    return pa.scalar(moment, pa.timestamp("us", tz="UTC"))


def _touches(rows: pa.Table, table: Table) -> pa.Array:
    """Return for each row whether the transaction changed rows of the table."""
    tables = rows.column("tables").combine_chunks()
    touched = pc.list_flatten(tables)
    is_it = pc.and_(
        pc.equal(pc.struct_field(touched, "schema"), table.schema),
        pc.equal(pc.struct_field(touched, "table"), table.table),
    )
    owners = pc.unique(pc.list_parent_indices(tables).filter(is_it))
    return pc.is_in(pa.array(range(rows.num_rows), owners.type), owners)
