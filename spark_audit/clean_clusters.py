"""Finds the clusters about which no rule reports anything, for a whole batch at once.

1. A cluster is clean here only if every rule would report nothing: each condition is at least as
   strict as the rules. A cluster that fails one is left to the rules. So this module may be too
   careful, but never calls a cluster clean wrongly. evaluate_batch.py has the proof.
2. With a rule that was not compared with these conditions no cluster is clean: see
   CLEAN_WHEN_SILENT in columns_for_rules.py.
3. Facts that no rule reads (the values of other settings and of filters, lists of binary logs) are
   not read here either: see COLUMNS and _OF_A_CHANNEL.
4. The loops over clusters are in spark_audit/kernels.py, those over sets in gtid.

How it works
------------
The state is one flag per cluster, `clean`, and one per row, `row_ok`. Both only change from true to
false. A row that is not ok clears its cluster in `kernels.arranged`, with every cluster that is not
two readings of the same servers. So no order of the conditions changes the result.

The order changes the time. It goes from conditions on whole columns of numbers, over texts that are
parsed once, to the comparison of sets, which looks at the clusters that are still clean only.

    condition                                         a rule could otherwise report
    every fact is read, of a kind that has columns    UNKNOWN; a group, losses, Galera
    each channel runs, with auto-position, no error   threads, errors, filters, delays
    no worker has an error or a long transaction      an applier that is blocked or stalled
    each source is a server of the cluster (linked)   a source that was not read, islands
    receivers are within the logs of their sources    a receiver that will wait for ever
    server_ids, versions, clocks, settings            risks of the configuration
    sets of few pieces, numbers far from their end    shapes of sets
    no server was restarted or reset between          a history that was lost
    gtid_purged is within gtid_executed               purged without being executed
    first sets are within the last sets of others     missing and extra transactions

evaluate_batch.py has an example of the last condition. For n servers it makes n * (n - 1)
comparisons. Each passes once over the boundaries of two sets, and stops at the first number that
only the left one has.

gtid_purged rarely changes between two readings. It is parsed once per server, and once more where
it changed (`is_new`). `purged_at` has for each row the number of its set in `purged`:

    row  reading  gtid_purged   is_new   purged_at
    0    first a                yes      0
    1    first b  U:1-3         yes      1
    2    last a                 no       0
    3    last b   U:1-4         yes      2

The sets are returned, because the rules need them for each cluster that is not clean.

Why simpler ways fail: a condition per rule would parse and compare the same columns for each of
them. A digest of each set would show only equality, and under load no two readings are equal. Flags
that a condition may also set would need an order, and a proof for each order.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gtid.arrow_text import UuidWords, flat_text, text_buffers, uuid_words
from gtid.columns import GtidSetColumn
from gtid.kernels.eight_bytes import Flags, Numbers
from spark_audit import kernels
from spark_audit.arrow_arrays import filled, is_there, is_true, numbers, one
from spark_audit.clean_configuration import (
    keep_clocks_together,
    keep_configured,
    keep_one_series,
)
from spark_audit.clean_identity import keep_distinct_ids
from spark_audit.clean_places import keep_places_in_log, whole_places
from spark_audit.columns_for_rules import COLUMNS, every_rule_is_known
from topology.documents.record_codec import VERSION, Codec, MalformedRecord, word
from topology.policy import DEAD_UUIDS_LEAST, INTERVALS_LEAST
from topology.readings.snapshot import ALWAYS_READ, ThreadState
from topology.readings.vendors import Vendor
from topology.rules.set_shapes import NUMBERS_USED_MAX

_ALWAYS_THERE: Final = (
    *("cluster", "name", "host", "port", "phase", "read_started", "read_ended", "unread"),
    *ALWAYS_READ,
)
assert set(_ALWAYS_THERE) <= set(COLUMNS), "what every reading has is looked at here"
_OF_A_CHANNEL: Final = (
    "name",
    "source_host",
    "source_port",
    "source_uuid",
    "auto_position",
    "gtid_retrieved",
    "receiver_error_at",
    "applier_error_at",
    "applier_state",
    "receiver_state",
    "delay_seconds",
)
_OF_A_WORKER: Final = ("worker_id", "applying", "state", "last_applied")
_VENDOR: Final = word(Vendor)
_RUNNING: Final = ThreadState.RUNNING.value


class Channels(NamedTuple):
    """The channels of all rows, one after the other: row r has starts[r] up to starts[r + 1]."""

    starts: Numbers  # where the channels of each row begin
    source: UuidWords
    source_id: Numbers  # server_id, 0 where it is unknown
    retrieved: GtidSetColumn
    received_to: pa.Array


class ClusterBatch(NamedTuple):
    """Whole clusters: their rows together, in the order of the batch."""

    table: pa.Table  # with COLUMNS at least, each in one piece
    starts: Numbers  # where the rows of each cluster begin; one more for the end


class Sets(NamedTuple):
    """The sets of a batch, as they were parsed."""

    executed: GtidSetColumn
    purged: GtidSetColumn
    purged_at: Numbers  # the row of `purged` for each row of the batch
    channel_starts: Numbers
    retrieved: GtidSetColumn  # of the channels, one after the other


def clean_clusters(batch: ClusterBatch) -> tuple[Flags, Sets]:
    """Return for each cluster of a batch whether every rule is silent, and the parsed sets."""
    clean = np.full(len(batch.starts) - 1, every_rule_is_known())
    table = batch.table
    row_ok = _whole_rows(table)
    uuid = uuid_words(table["server_uuid"])
    row_ok &= uuid.exact
    executed = GtidSetColumn.parse(table["gtid_executed"])
    row_ok &= executed.is_exact()
    # GTIDs are rarely owned, and the empty text is canonical: parse the other texts only.
    owned_text = flat_text(table["gtid_owned"])
    owners = np.flatnonzero(np.diff(text_buffers(owned_text)[1]))
    row_ok[owners] &= GtidSetColumn.parse(owned_text.take(pa.array(owners))).is_exact()
    # Logs are rarely purged between two readings: parse a text that did not change only once.
    purged_text = flat_text(table["gtid_purged"])
    is_new = np.empty(len(purged_text), np.bool_)
    data, offsets = text_buffers(purged_text)
    kernels.differing(batch.starts, data.ctypes.data, offsets, is_new)
    purged_rows = np.flatnonzero(is_new)
    purged = GtidSetColumn.parse(purged_text.filter(pa.array(is_new)))
    row_ok[purged_rows] &= purged.is_exact()
    channels = _channels(table, row_ok)
    data, name_offsets = text_buffers(flat_text(table["name"]))
    kernels.arranged(
        batch.starts,
        numbers(table["phase"]),
        data.ctypes.data,
        name_offsets,
        numbers(table["read_started"]),
        numbers(table["read_ended"]),
        row_ok,
        clean,
    )
    ids = numbers(table["server_id"])
    sources = (*channels.source[:2], ids, channels.source_id)
    kernels.linked(batch.starts, uuid.high, uuid.low, channels.starts, *sources, clean)
    keep_places_in_log(
        batch.starts,
        uuid,
        channel_starts=channels.starts,
        source=channels.source,
        received_to=channels.received_to,
        log_end=one(table["log_end"]),
        clean=clean,
    )
    keep_distinct_ids(batch.starts, one(table["server_id"]), clean)
    notable = one(table["notable_settings"])
    keep_configured(batch.starts, notable, channels.starts, clean)
    keep_one_series(batch.starts, one(table["version"]), clean)
    clock, read_ended = one(table["server_clock"]), numbers(table["read_ended"])
    keep_clocks_together(batch.starts, clock, read_ended, clean)
    _keep_plain_sets(batch.starts, executed, clean)
    uptime = numbers(table["uptime_seconds"])
    _keep_uninterrupted(batch.starts, uptime, executed=executed, clean=clean)
    _keep_purged_within(batch.starts, purged, purged_rows, executed=executed, clean=clean)
    _keep_equal(batch.starts, executed=executed, channels=channels, clean=clean)
    halves = np.repeat(np.diff(batch.starts) // 2, np.diff(batch.starts))
    rows = np.arange(len(is_new))
    purged_at = (np.cumsum(is_new) - 1)[np.where(is_new, rows, rows - halves)]
    return clean, Sets(executed, purged, purged_at, channels.starts, channels.retrieved)


def _keep_plain_sets(starts: Numbers, executed: GtidSetColumn, clean: Flags) -> None:
    """Keep the clusters without sets in many pieces, numbers nearly used up, and dead UUIDs.

    At most one UUID is each server's own. A UUID has a TSID for each of its tags. The bounds are
    the least that a policy may set, because this module does not know the policy: a set within them
    is reported under none.
    """
    clusters = _clusters_of_rows(starts)
    owners = (np.diff(starts) // 2)[clusters]
    clean[clusters[filled(executed.tsid_count(), 0) > owners + DEAD_UUIDS_LEAST]] = False
    clean[clusters[filled(executed.interval_count(), 0) > INTERVALS_LEAST]] = False
    high = is_true(pc.greater(executed.gtid_count(), pa.scalar(NUMBERS_USED_MAX, _COUNT)))
    clean[clusters[high]] = False


def _keep_uninterrupted(
    starts: Numbers,
    uptime: Numbers,
    *,
    executed: GtidSetColumn,
    clean: Flags,
) -> None:
    """Keep the clusters in which no server was reset or restarted between its readings.

    gtid_executed only grows: a set that lost a number between the readings was reset. An uptime
    that is shorter in the last reading shows a restart. What they mean is for the rules.
    """
    clusters = _clusters_of_rows(starts)
    rows = np.flatnonzero(clean[clusters])
    halves = np.diff(starts) // 2
    firsts = rows[rows < (starts[:-1] + halves)[clusters[rows]]]
    lasts = firsts + halves[clusters[firsts]]
    shrunk = firsts[~executed.is_subset_at(firsts, executed, lasts)]
    restarted = firsts[uptime[lasts] < uptime[firsts]]
    for each in (shrunk, restarted):
        clean[clusters[each]] = False


def _keep_purged_within(
    starts: Numbers,
    purged: GtidSetColumn,
    purged_rows: Numbers,
    *,
    executed: GtidSetColumn,
    clean: Flags,
) -> None:
    """Keep the clusters in which every server has executed all that it has purged.

    `purged` has the rows `purged_rows`. A text that did not change between the readings is checked
    in the first reading only: that is enough, because gtid_executed has not shrunk.
    """
    clusters = _clusters_of_rows(starts)
    chosen = np.flatnonzero(clean[clusters[purged_rows]])
    within = purged.is_subset_at(chosen, executed, purged_rows[chosen])
    clean[clusters[purged_rows[chosen[~within]]]] = False


def _keep_equal(
    starts: Numbers, *, executed: GtidSetColumn, channels: Channels, clean: Flags
) -> None:
    """Keep the clusters in which no server is missing a GTID of another server.

    Every server has in its last reading what every other had in its first. So no GTID is missing or
    extra between any two servers. Every server also has what the relay logs of the others had in
    their first reading, so none has lost a transaction that came from it.

    `cross_pairs` and `spread` first count their pairs, and then write them: the arrays have exactly
    that size. `firsts` has the first reading of a server, and `lasts` the last one of another
    server of its cluster. `channel` has each channel of such a first reading, and `holders` that
    last reading. A column of sets may repeat a row, so no set is copied.
    """
    clusters = _clusters_of_rows(starts)
    count = kernels.cross_pairs(starts, clean, _NONE, _NONE)
    firsts, lasts = np.empty(count, np.int64), np.empty(count, np.int64)
    kernels.cross_pairs(starts, clean, firsts, lasts)
    clean[clusters[lasts[~executed.is_subset_at(firsts, executed, lasts)]]] = False
    count = kernels.spread(firsts, lasts, channels.starts, _NONE, _NONE)
    channel, holders = np.empty(count, np.int64), np.empty(count, np.int64)
    kernels.spread(firsts, lasts, channels.starts, channel, holders)
    held = channels.retrieved.is_subset_at(channel, executed, holders)
    clean[clusters[holders[~held]]] = False


def _clusters_of_rows(starts: Numbers) -> Numbers:
    """Return the number of its cluster for each row."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


_COUNT: Final = pa.decimal128(38, 0)
_NONE: Final = np.empty(0, np.int64)


def _whole_rows(table: pa.Table) -> Flags:
    """Return which rows can be converted back to readings, with every fact read.

    A value that no codec reads must not be clean: the rules report it with its place in the file.
    """
    ok = np.ones(table.num_rows, np.bool_)
    for name in _ALWAYS_THERE:
        ok &= is_there(one(table[name]))
    ok &= is_true(pc.equal(pc.list_value_length(one(table["unread"])), 0))
    ok &= _readable(one(table["version"]), VERSION)
    ok &= _readable(one(table["vendor"]), _VENDOR)
    ok &= whole_places(one(table["log_end"]))
    for name in ("group", "history_evidence"):  # group members and losses: left to the rules
        ok &= ~is_there(one(table[name]))
    ok &= is_true(pc.not_equal(one(table["vendor"]).fill_null(""), Vendor.GALERA.value))
    return ok


def _channels(table: pa.Table, row_ok: Flags) -> Channels:
    """Read the channels. Clear `row_ok` for a row with a channel that fails a condition.

    `ok` has one flag per channel. Lists in a channel (filters, workers) clear it through the number
    of their parent. At the end each channel that is not ok clears the row that it belongs to.
    """
    column = one(table["channels"])
    lengths = filled(pc.list_value_length(column), 0)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    channel = column.flatten()
    ok = is_there(channel)
    part = {each.name: pc.struct_field(channel, each.name) for each in channel.type.fields}
    for name in _OF_A_CHANNEL:
        ok &= is_there(part[name])
    for name in ("receiver", "applier"):
        ok &= is_true(pc.equal(part[f"{name}_errno"], 0))
        ok &= is_true(pc.equal(part[f"{name}_error"], ""))
    # A receiver that is not connected may have another source than its SOURCE_UUID (graph.py).
    ok &= is_true(pc.equal(part["receiver"], _RUNNING))
    ok &= is_true(pc.equal(part["applier"], _RUNNING))
    ok &= is_true(part["auto_position"])
    # An applier that has worked on one transaction for a second or more may be stalled (A5, A8).
    ok &= filled(part["lag_seconds"], 0) == 0
    # What a filter leaves out is missing on servers below its replica (C11).
    ok &= is_true(pc.equal(pc.list_value_length(part["filters"]), 0)) & is_there(part["workers"])
    ok &= is_true(pc.equal(pc.list_value_length(part["ignored_server_ids"]), 0))
    ok &= is_true(pc.equal(part["skip_counter"], 0))
    ok &= is_true(pc.equal(part["until"], ""))
    ok[np.asarray(pc.list_parent_indices(part["workers"]))[~_quiet(part["workers"])]] = False
    for name in ("received_to", "applied_to", "relay_applied_to"):
        ok &= whole_places(part[name])
    for name in ("last_queued", "last_applied"):
        ok &= GtidSetColumn.parse(part[name]).is_exact()
    source = uuid_words(part["source_uuid"])
    retrieved = GtidSetColumn.parse(part["gtid_retrieved"])
    ok &= source.exact & retrieved.is_exact()
    row_ok[np.repeat(np.arange(len(lengths)), lengths)[~ok]] = False
    source_ids = filled(part["source_server_id"], 0)
    return Channels(starts, source, source_ids, retrieved, part["received_to"])


def _quiet(workers: pa.Array) -> Flags:
    """Return which workers are complete, without an error, and not in a long transaction."""
    worker = workers.flatten()
    part = {each.name: pc.struct_field(worker, each.name) for each in worker.type.fields}
    ok = is_there(worker)
    for name in _OF_A_WORKER:
        ok &= is_there(part[name])
    ok &= is_true(pc.equal(part["errno"], 0)) & is_true(pc.equal(part["error"], ""))
    for name in ("applying", "last_applied"):
        ok &= GtidSetColumn.parse(part[name]).is_exact()
    return ok & ~is_true(pc.greater(part["applying_seconds"], 0))


def _readable(column: pa.Array, codec: Codec[Any]) -> Flags:
    """Return which values of a column are null or readable by their codec. Few are distinct."""
    encoded = column.dictionary_encode()
    fine = np.array([_reads(codec, value) for value in encoded.dictionary.to_pylist()] + [True])
    return fine[filled(encoded.indices, len(fine) - 1)]


def _reads(codec: Codec[Any], value: str) -> bool:
    """Return whether the codec of a stored reading accepts a value."""
    try:
        codec.read(value)
    except MalformedRecord:
        return False  # the rules report it, with its place
    return True
