"""Evaluates a batch of stored clusters: columns decide what is clean, the rules the rest.

1. Whole columns find the clean clusters (spark_audit/clean_clusters.py). The others go, one at a
   time, to evaluate_cluster.py, which alone calls the rules. No result depends on the other
   clusters of the batch.
2. Every cluster of a batch must be whole (`whole_clusters`).
3. Columns do not show what lies beside the rows (spark_audit/run_context.py): a cluster with such
   facts goes to the rules, however clean its readings are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gtid import GtidSet
from gtid.kernels.words import Flags, Numbers
from spark_audit.clean_clusters import ASKED, COLUMNS, Batch, Sets, clean_clusters, other_columns
from spark_audit.evaluate_cluster import judge_records
from spark_audit.run_context import NOTHING, Beside
from spark_audit.schema import AUDIT_SCHEMA, JUDGED_SCHEMA
from topology.adapters.columns import SNAPSHOT_SCHEMA, readings_of_table, table_of_records
from topology.findings import ClusterAudit, Severity, Verdict
from topology.policy import Policy
from topology.records import Record, audit_to_record

# Gives the rows of these numbers, with these columns alone.
FetchRows = Callable[[Numbers, Sequence[str]], pa.Table]
# The same, by the numbers of rows of the batch.
FetchMore = Callable[[range | Numbers, Sequence[str]], pa.Table]
_OK: Final = Verdict.OK.value

# Enough that columns pay, and little to hold: some 20 MB.
ROWS_MIN: Final = 10_000


def judge_batch(
    rows: pa.Table,
    *,
    policy: Policy,
    beside: Beside = NOTHING,
    fetch: FetchRows | None = None,
) -> pa.Table:
    """Evaluate whole clusters: one row of AUDIT_SCHEMA for each, in order of name. Never raises.

    Args:
        rows: all rows of each cluster in it, in any order; clean.COLUMNS at least.
        policy: of all of them.
        beside: what is known of some clusters beside their rows.
        fetch: gives rows with other columns of the snapshots, for the few clusters that need them;
            without it, `rows` has them.
    """
    if not rows.num_rows:
        return AUDIT_SCHEMA.empty_table()
    batch, order = _in_batch(rows)
    clean, sets = clean_clusters(batch)
    clean &= ~_are_told_of(batch, beside)
    spans = [
        range(first, end)
        for first, end, is_clean in zip(batch.starts, batch.starts[1:], clean, strict=False)
        if not is_clean
    ]

    def more_of(wanted: range | Numbers, names: Sequence[str]) -> pa.Table:
        chosen = order[wanted]
        return rows.select(names).take(chosen) if fetch is None else fetch(chosen, names)

    judged = [
        audit_to_record(_judge_singly(span, own, more_of, policy=policy, beside=beside))
        for span, own in zip(spans, _readings(batch, sets, spans, more_of), strict=True)
    ]
    audits = pa.concat_tables([_clean_audits(batch, clean), table_of_records(judged, AUDIT_SCHEMA)])
    return audits.sort_by("cluster").combine_chunks()


def _are_told_of(batch: Batch, beside: Beside) -> Flags:
    """Return of each cluster whether something is known of it beside its rows."""
    names = batch.table["cluster"].chunk(0).take(batch.starts[:-1])
    return np.array(pc.is_in(names, pa.array(beside.clusters, pa.string())), dtype=np.bool_)


def _judge_singly(
    span: range,
    own: list[Record],
    more_of: FetchMore,
    *,
    policy: Policy,
    beside: Beside,
) -> ClusterAudit:
    """Ask the rules about one cluster.

    Columns that only evidence quotes are left out, as if they had not been stored, until there is a
    finding with such evidence.
    """
    # A row without its cluster's name must not become OK by that.
    name = own[0]["cluster"]
    cluster = name if isinstance(name, str) else ""
    audit = judge_records(cluster, own, policy=policy, beside=beside)
    has_evidence = any(record["history_evidence"] is not None for record in own)
    names = other_columns(audit.findings, has_evidence=has_evidence)
    if names:
        whole = _joined(own, more_of(span, names))
        audit = judge_records(cluster, whole, policy=policy, beside=beside)
    return audit


def _joined(rows: list[Record], others: pa.Table) -> list[Record]:
    """Return readings with the columns that were read of them later."""
    return [row | more for row, more in zip(rows, readings_of_table(others), strict=True)]


def _readings(
    batch: Batch, sets: Sets, spans: Sequence[range], more_of: FetchMore
) -> Iterator[list[Record]]:
    """Yield the rows of each cluster as readings, with the sets that are well as sets.

    What rules decide by is there, for all at once: without replica_preserve_commit_order,
    transactions that an applier has passed would count as on their way.
    """
    if not spans:
        return
    known = (*COLUMNS, *ASKED)
    unread = dict.fromkeys(name for name in SNAPSHOT_SCHEMA.names if name not in known)
    rows = np.concatenate([np.arange(span.start, span.stop) for span in spans])
    decisive = readings_of_table(batch.table.select(list(COLUMNS)).take(rows))
    readings = _joined(decisive, more_of(rows, ASKED))
    starts = sets.channel_starts
    channels = np.concatenate([np.arange(starts[row], starts[row + 1]) for row in rows])
    executed = sets.executed.exact_sets(rows)
    purged = sets.purged.exact_sets(sets.purged_at[rows])
    retrieved = iter(sets.retrieved.exact_sets(channels))
    for reading, has, had in zip(readings, executed, purged, strict=True):
        reading.update(unread)
        _put(reading, "gtid_executed", has)
        _put(reading, "gtid_purged", had)
        for channel in reading["channels"] or ():  # type: ignore[union-attr]
            _put(channel, "gtid_retrieved", next(retrieved))
    place = 0
    for span in spans:
        yield readings[place : place + len(span)]
        place += len(span)


def _put(reading: Any, name: str, known: GtidSet | None) -> None:  # noqa: ANN401 - a record
    """Put a set where its text was; a text that is not well stays, to be complained of.

    A null stays as well: columns read it like the empty text, and the rules must not.
    """
    if known is not None and reading is not None and reading[name] is not None:
        reading[name] = known


def judged_rows(audits: pa.Table) -> pa.Table:
    """Turn rows of AUDIT_SCHEMA into rows of JUDGED_SCHEMA: what was found is counted, or null."""
    findings = audits["findings"].combine_chunks()
    lengths = _lengths(findings)
    severities = pc.struct_field(findings.flatten(), "severity")
    cluster = np.repeat(np.arange(len(lengths)), lengths)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        name: audits[name] for name in ("cluster", "verdict", "servers", "read_at")
    }
    columns["server_count"] = pa.array(_lengths(audits["servers"].combine_chunks()), pa.int32())
    columns["unknown_count"] = pa.array(_lengths(audits["unknown"].combine_chunks()), pa.int32())
    for severity in Severity:
        is_such = np.asarray(pc.equal(severities, severity.value), np.bool_)
        counts = np.bincount(cluster[is_such], minlength=len(lengths))
        columns[f"{severity.value}_count"] = pa.array(counts, pa.int32())
    for name in ("findings", "unknown"):
        columns[name] = _null_where_empty(audits[name].combine_chunks())
    return pa.table(columns).select(JUDGED_SCHEMA.names).cast(JUDGED_SCHEMA)


def _null_where_empty(lists: pa.ListArray) -> pa.ListArray:
    lengths = _lengths(lists)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    mask = pa.array(lengths == 0)
    return pa.ListArray.from_arrays(ends, lists.flatten(), type=lists.type, mask=mask)


def _lengths(lists: pa.Array) -> Numbers:
    lengths: Numbers = np.asarray(pc.list_value_length(lists)).astype(np.int64)
    return lengths


def whole_clusters(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cut a stream in which the rows of each cluster follow one another between two clusters.

    Batches come in any size and leave with about ROWS_MIN rows, except for larger clusters.
    """
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= ROWS_MIN:
            table = pa.Table.from_batches(waiting)
            codes = _cluster_codes(table)
            earlier = np.flatnonzero(codes != codes[-1])
            cut = int(earlier[-1]) + 1 if len(earlier) else 0
            if cut:
                yield table.slice(0, cut)
            waiting, count = table.slice(cut).to_batches(), table.num_rows - cut
    if count:
        yield pa.Table.from_batches(waiting)


def _in_batch(rows: pa.Table) -> tuple[Batch, Numbers]:
    """Bring the rows of each cluster together; give the batch, and where each of its rows was."""
    rows = rows.combine_chunks()
    codes = _cluster_codes(rows)
    order = np.arange(len(codes))
    if (np.diff(codes) < 0).any():  # codes are given out as names appear
        order = np.argsort(codes, kind="stable")
        codes, rows = codes[order], rows.take(order).combine_chunks()
    starts = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
    return Batch(rows, starts), order


def _cluster_codes(rows: pa.Table) -> Numbers:
    """Return each row's cluster as a number; no name is the same as the empty one."""
    names = rows["cluster"].combine_chunks().fill_null("")
    codes: Numbers = np.asarray(names.dictionary_encode().indices).astype(np.int64)
    return codes


def _clean_audits(batch: Batch, clean: Flags) -> pa.Table:
    """Write the evaluation of the clean clusters: OK, and nothing more to say."""
    chosen = np.flatnonzero(clean)
    first, end = batch.starts[chosen], batch.starts[chosen + 1]
    middle = first + (end - first) // 2
    offsets = np.concatenate([[0], np.cumsum(end - middle)]).astype(np.int32)
    servers = np.repeat(middle - offsets[:-1], end - middle) + np.arange(offsets[-1])
    moments = np.asarray(batch.table["read_ended"].chunk(0).cast(pa.int64()).fill_null(0))
    empty = np.zeros(len(chosen) + 1, np.int32)
    latest = np.maximum.reduceat(moments[servers], offsets[:-1]) if len(chosen) else moments[:0]
    columns = {
        "cluster": batch.table["cluster"].chunk(0).take(first),
        "verdict": pa.array([_OK]).take(np.zeros(len(chosen), np.int64)),
        "servers": _lists("servers", offsets, batch.table["name"].chunk(0).take(servers)),
        "read_at": pa.array(latest, pa.int64()).cast(AUDIT_SCHEMA.field("read_at").type),
        "findings": _lists("findings", empty, None),
        "unknown": _lists("unknown", empty, None),
    }
    return pa.Table.from_pydict(columns, schema=AUDIT_SCHEMA)


def _lists(name: str, offsets: NDArray[np.int32], items: pa.Array | None) -> pa.Array:
    kind = AUDIT_SCHEMA.field(name).type
    held = pa.array([], kind.value_type) if items is None else items
    return pa.ListArray.from_arrays(pa.array(offsets), held, type=kind)
