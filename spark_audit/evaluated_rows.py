"""Makes the rows of the table `clusters`: every engine writes these.

A row has a cluster with its counts, and its findings beside them. Both engines derive all other
tables, and the summary, from it. Importing this module imports no compiled kernel.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_audit.result_columns import AUDIT_SCHEMA, EVALUATED_SCHEMA
from topology.adapters.snapshot_columns import table_of_records
from topology.catalogue.findings import ClusterAudit, Severity
from topology.documents.records import audit_to_record


def rows_of_audits(audits: Iterable[ClusterAudit]) -> pa.Table:
    """Return one row of EVALUATED_SCHEMA per evaluation, in their order."""
    records = [audit_to_record(audit) for audit in audits]
    return evaluated_rows(table_of_records(records, AUDIT_SCHEMA))


def evaluated_rows(audits: pa.Table) -> pa.Table:
    """Convert rows of AUDIT_SCHEMA to EVALUATED_SCHEMA: count findings; empty lists become null."""
    findings = audits["findings"].combine_chunks()
    lengths = _lengths(findings)
    severities = pc.struct_field(findings.flatten(), "severity")
    cluster = np.repeat(np.arange(len(lengths)), lengths)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        name: audits[name] for name in ("cluster", "verdict", "servers", "read_at", "labels")
    }
    columns["server_count"] = pa.array(_lengths(audits["servers"].combine_chunks()), pa.int32())
    columns["unknown_count"] = pa.array(_lengths(audits["unknown"].combine_chunks()), pa.int32())
    for severity in Severity:
        is_such = np.asarray(pc.equal(severities, severity.value), np.bool_)
        counts = np.bincount(cluster[is_such], minlength=len(lengths))
        columns[f"{severity.value}_count"] = pa.array(counts, pa.int32())
    for name in ("findings", "unknown"):
        columns[name] = _null_where_empty(audits[name].combine_chunks())
    return pa.table(columns).select(EVALUATED_SCHEMA.names).cast(EVALUATED_SCHEMA)


def _null_where_empty(lists: pa.ListArray) -> pa.ListArray:
    lengths = _lengths(lists)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    mask = pa.array(lengths == 0)
    return pa.ListArray.from_arrays(ends, lists.flatten(), type=lists.type, mask=mask)


def _lengths(lists: pa.Array) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = np.asarray(pc.list_value_length(lists)).astype(np.int64)
    return lengths
