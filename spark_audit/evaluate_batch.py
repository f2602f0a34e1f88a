"""Evaluates a batch of stored clusters: columns find the clean ones, the rules evaluate the rest.

How it works
------------
Most clusters of a fleet have no finding. To read such a cluster into objects and run every rule on
it costs far more than to compare columns. So a batch takes two paths:

    rows, COLUMNS only ─► clean_clusters.py ─┬─► clean: OK, without findings         (fast path)
                                             └─► other: evaluate_cluster.py, one at a time

Layout: cluster c is the rows starts[c] up to starts[c + 1]. The first half has the first reading of
each server, ordered by name; the second half has the last readings in the same order. A cluster
with another arrangement is not clean. `clean` has one flag per cluster. Every condition may only
clear a flag, so their order has no influence on the result.

Invariant: if a cluster is clean, every rule is silent about it. The opposite need not hold. An
error in that direction costs time; an error in this one would hide a finding. The proof:

1. For each rule of CLEAN_WHEN_SILENT a developer compared the conditions with the rule. Each
   condition is at least as strict as what the rule needs to be silent. Example: a rule reports an
   applier that stopped; here every applier must be running, without an error text or number.
2. If RULES has a rule that is not in that list, no cluster is clean. A new rule cannot be
   forgotten.
3. A fact that is missing or unreadable makes a cluster not clean, so UNKNOWN never becomes OK.
4. Facts beside the rows (spark_audit/run_context.py) send a cluster to the rules.
5. tests/spark_audit/test_clean.py puts every odd value into every field of a clean pair, and
   test_clean_fleet.py compares both paths on simulated fleets.

Example: b replicates from a. U is the UUID of a.

    row  server  reading  gtid_executed  Retrieved_Gtid_Set
    0    a       first    U:1-10
    1    b       first    U:1-8          U:1-8
    2    a       last     U:1-12
    3    b       last     U:1-10         U:1-10

Each first reading is compared with the last readings of the other servers. Row 0 is a subset of
row 3: b received all that a had at first. Row 1 is a subset of row 2: b has nothing extra. What b
had retrieved at first is a subset of row 2: a lost nothing. The cluster is clean. If row 3 were
U:1-9, the rules would decide whether U:10 is on its way or missing for good.

Why simpler ways fail: the sets of two servers are read at different times, so they differ whenever
clients write. And equal sets alone do not show a stopped thread or a duplicate server_id. A full
second set of rules on columns would have to be right in both directions.

Clusters that are not clean keep the sets that were parsed. Columns that only evidence quotes are
read when a finding needs them. No result depends on the other clusters of a batch. Every cluster of
a batch must be whole (`whole_clusters`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gtid import GtidSet
from gtid.kernels.eight_bytes import Flags, Numbers
from spark_audit.clean_clusters import ClusterBatch, Sets, clean_clusters
from spark_audit.columns_for_rules import ASKED, COLUMNS, other_columns
from spark_audit.evaluate_cluster import evaluate_records
from spark_audit.result_columns import AUDIT_SCHEMA
from spark_audit.run_context import NOTHING, Beside
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, readings_of_table, table_of_records
from topology.catalogue.findings import ClusterAudit, Verdict
from topology.documents.label_records import LABELS
from topology.documents.records import Record, audit_to_record
from topology.policy import Policy

# Returns the rows with these numbers, with only these columns.
FetchRows = Callable[[Numbers, Sequence[str]], pa.Table]
# The same, for row numbers within the batch.
FetchMore = Callable[[range | Numbers, Sequence[str]], pa.Table]
_OK: Final = Verdict.OK.value

# Enough rows for columns to pay off, and small in memory: about 20 MB.
ROWS_MIN: Final = 10_000


def evaluate_rows(
    rows: pa.Table,
    *,
    policy: Policy,
    beside: Beside = NOTHING,
    fetch: FetchRows | None = None,
) -> pa.Table:
    """Evaluate whole clusters: one row of AUDIT_SCHEMA for each, in order of name. Never raises.

    Args:
        rows: all rows of each cluster in it, in any order; at least COLUMNS (columns_for_rules.py).
        policy: for all of them.
        beside: what is known about some clusters in addition to their rows.
        fetch: returns rows with other columns of the snapshots, for the few clusters that need
            them; without it, `rows` must have these columns.
    """
    if not rows.num_rows:
        return AUDIT_SCHEMA.empty_table()
    batch, order = _in_batch(rows)
    clean, sets = clean_clusters(batch)
    clean &= ~_have_context(batch, beside)
    spans = [
        range(first, end)
        for first, end, is_clean in zip(batch.starts, batch.starts[1:], clean, strict=False)
        if not is_clean
    ]

    def more_of(wanted: range | Numbers, names: Sequence[str]) -> pa.Table:
        chosen = order[wanted]
        return rows.select(names).take(chosen) if fetch is None else fetch(chosen, names)

    evaluated = [
        audit_to_record(_evaluate_singly(span, own, more_of, policy=policy, beside=beside))
        for span, own in zip(spans, _readings(batch, sets, spans, more_of), strict=True)
    ]
    audits = pa.concat_tables(
        [_clean_audits(batch, clean, beside), table_of_records(evaluated, AUDIT_SCHEMA)]
    )
    return audits.sort_by("cluster").combine_chunks()


def _have_context(batch: ClusterBatch, beside: Beside) -> Flags:
    """Return for each cluster whether there are facts beside its rows."""
    names = batch.table["cluster"].chunk(0).take(batch.starts[:-1])
    return np.array(pc.is_in(names, pa.array(beside.clusters, pa.string())), dtype=np.bool_)


def _evaluate_singly(
    span: range,
    own: list[Record],
    more_of: FetchMore,
    *,
    policy: Policy,
    beside: Beside,
) -> ClusterAudit:
    """Run the rules on one cluster.

    Columns that only evidence quotes are first left out, as if they had not been stored. They are
    read if there is a finding with such evidence.
    """
    # A row without its cluster's name must not become OK because of that.
    name = own[0]["cluster"]
    cluster = name if isinstance(name, str) else ""
    audit = evaluate_records(cluster, own, policy=policy, beside=beside)
    # What a consumer is refused for depends on settings and on the list of logs.
    has_evidence = cluster in beside.consumers
    has_evidence |= any(record["history_evidence"] is not None for record in own)
    names = other_columns(audit.findings, has_evidence=has_evidence)
    if names:
        whole = _joined(own, more_of(span, names))
        audit = evaluate_records(cluster, whole, policy=policy, beside=beside)
    return audit


def _joined(rows: list[Record], others: pa.Table) -> list[Record]:
    """Return readings, extended by the columns that were read later."""
    return [row | more for row, more in zip(rows, readings_of_table(others), strict=True)]


def _readings(
    batch: ClusterBatch, sets: Sets, spans: Sequence[range], more_of: FetchMore
) -> Iterator[list[Record]]:
    """Yield the rows of each cluster as readings, with valid sets already parsed.

    ASKED is fetched for all clusters at once, because rules decide by it: without
    replica_preserve_commit_order, transactions that an applier has passed would count as on their
    way.
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
    """Replace the text of a set by the parsed set. An invalid text stays, so the rules report it.

    A null stays as well: columns read it like the empty text, but rules must not.
    """
    if known is not None and reading is not None and reading[name] is not None:
        reading[name] = known


def whole_clusters(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Split a stream in which the rows of each cluster are neighbours, between two clusters.

    Batches arrive in any size and leave with about ROWS_MIN rows; a larger cluster stays whole.
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


def _in_batch(rows: pa.Table) -> tuple[ClusterBatch, Numbers]:
    """Group rows by cluster; return the batch, and the former place of each of its rows."""
    rows = rows.combine_chunks()
    codes = _cluster_codes(rows)
    order = np.arange(len(codes))
    if (np.diff(codes) < 0).any():  # codes are assigned in order of appearance
        order = np.argsort(codes, kind="stable")
        codes, rows = codes[order], rows.take(order).combine_chunks()
    starts = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
    return ClusterBatch(rows, starts), order


def _cluster_codes(rows: pa.Table) -> Numbers:
    """Return each row's cluster as a number. A missing name counts as the empty name."""
    names = rows["cluster"].combine_chunks().fill_null("")
    codes: Numbers = np.asarray(names.dictionary_encode().indices).astype(np.int64)
    return codes


def _clean_audits(batch: ClusterBatch, clean: Flags, beside: Beside) -> pa.Table:
    """Write the evaluation of the clean clusters: OK, without findings."""
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
        "labels": _labels(batch.table["cluster"].chunk(0).take(first), beside),
        "findings": _lists("findings", empty, None),
        "unknown": _lists("unknown", empty, None),
    }
    return pa.Table.from_pydict(columns, schema=AUDIT_SCHEMA)


def _labels(clusters: pa.Array, beside: Beside) -> pa.Array:
    """Return the labels of each cluster. Most fleets have none, and then no name is read."""
    kind = AUDIT_SCHEMA.field("labels").type
    if not beside.labels:
        return _lists("labels", np.zeros(len(clusters) + 1, np.int32), None)
    found = (LABELS.write(beside.labels.get(name, ())) for name in clusters.to_pylist())
    return pa.array(list(found), kind)


def _lists(name: str, offsets: NDArray[np.int32], items: pa.Array | None) -> pa.Array:
    kind = AUDIT_SCHEMA.field(name).type
    held = pa.array([], kind.value_type) if items is None else items
    return pa.ListArray.from_arrays(pa.array(offsets), held, type=kind)
