"""Turns the numbers of clusters into rows of stored snapshots, column by column.

1. One row per server and phase; the rows of a cluster stand together, as the product writes them:
   the first reading of each server in order of name, then the last.
2. The columns are those of SNAPSHOT_SCHEMA. Nothing here is drawn: what looks arbitrary follows
   from the number of the cluster.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.generate.columns import (
    binary_logs_column,
    channels_column,
    nulled,
    positions,
    settings_column,
    taken,
    unread_column,
)
from benchmarks.generate.draws import Bools, Int64s
from benchmarks.generate.numbers import A, B, C, Numbers
from benchmarks.generate.texts import (
    Family,
    Gaps,
    fixed_array,
    set_texts,
    uuid_characters,
)
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, TIMESTAMP

# The fleet is read in the night of 2 January 2026, all of it within ten minutes.
_BEGUN = int(np.datetime64("2026-01-02T03:00:00", "us").astype(np.int64))
_SPREAD_MICROSECONDS = 600_000_000
_BETWEEN_PHASES_MICROSECONDS = 200_000

VERSIONS = (
    ("8.0.36", "8.0.36-28", "Percona"),
    ("8.0.42", "8.0.42", "MySQL"),
    ("8.4.6", "8.4.6", "MySQL"),
    ("9.7.4", "9.7.4", "MySQL"),
)


@dataclass(frozen=True, slots=True)
class GeneratedRows:
    """Which server and phase each row is."""

    cluster: Int64s  # index into the chunk
    server: Int64s
    phase: Int64s
    source: Int64s  # the server its channel reads from; -1 for none

    def __len__(self) -> int:
        return len(self.cluster)


def rows_of(numbers: Numbers) -> GeneratedRows:
    """Lay the rows of a chunk out."""
    servers = np.where(numbers.three, 3, 2)
    cluster = np.repeat(np.arange(len(numbers)), 2 * servers)
    begun = np.cumsum(2 * servers) - 2 * servers
    within = np.arange(len(cluster)) - begun[cluster]
    server = within % servers[cluster]
    source = np.select(
        [server == B, (server == A) & numbers.dual[cluster], server == C],
        [A, B, np.where(numbers.star[cluster], A, B)],
        default=-1,
    )
    return GeneratedRows(cluster, server, within // servers[cluster], source)


def table_of(numbers: Numbers) -> pa.Table:
    """Return the rows of a chunk with the columns of SNAPSHOT_SCHEMA."""
    rows = rows_of(numbers)
    c, s, p = rows.cluster, rows.server, rows.phase
    names = _Names.of(numbers, rows)
    sets = _Sets(numbers, family_of(numbers))
    uuids = fixed_array(sets.family.uuids[c, numbers.uuid_slots[c, s]])
    number = numbers.first + c
    version = number % len(VERSIONS)
    unread = numbers.unread[c, s]
    started, ended = _times(number, s, p)
    read = {
        "server_clock": pa.array(started + 500, TIMESTAMP),
        "server_uuid": uuids,
        "server_id": pa.array(number * 3 + s + 1),
        "version": taken([text for text, _, _ in VERSIONS], version),
        "version_text": taken([text for _, text, _ in VERSIONS], version),
        "vendor": taken([vendor for _, _, vendor in VERSIONS], version),
        "uptime_seconds": pa.array(numbers.uptime[c, s, p]),
        "gtid_executed": _damaged(sets.executed(rows), numbers.malformed[c, s]),
        "gtid_purged": sets.purged(rows),
        "gtid_owned": sets.owned(rows),
        "log_end": positions(numbers.log_file[c, s], numbers.log_end[c, s, p]),
        "channels": channels_column(
            numbers,
            cluster=c,
            server=s,
            phase=p,
            source=rows.source,
            sources=names.sources,
            uuids=fixed_array(sets.family.uuids[c, numbers.uuid_slots[c, rows.source]]),
            retrieved=sets.retrieved(rows),
            applying=sets.applying(rows),
        ),
        "binary_logs": binary_logs_column(numbers.log_file[c, s], numbers.log_end[c, s, p]),
        "settings": settings_column(
            hosts=names.hosts,
            server=s,
            read_only=_read_only(numbers, rows),
            in_any_order=numbers.gap_received[c, s],
        ),
        "notable_settings": taken([""], np.zeros(len(rows), dtype=np.int64)),
        **{
            name: pa.nulls(len(rows), SNAPSHOT_SCHEMA.field(name).type)
            for name in ("group", "history_evidence")
        },
    }
    columns = {
        "cluster": names.clusters,
        "name": names.servers,
        "host": names.hosts,
        "port": pa.array(np.full(len(rows), 3306, dtype=np.int32)),
        "phase": pa.array((p + 1).astype(np.int32)),
        "read_started": pa.array(started, TIMESTAMP),
        "read_ended": pa.array(ended, TIMESTAMP),
        **{name: nulled(column, unread) for name, column in read.items()},
        "unread": unread_column(unread),
    }
    return pa.table([columns[name] for name in SNAPSHOT_SCHEMA.names], schema=SNAPSHOT_SCHEMA)


@dataclass(frozen=True, slots=True)
class _Names:
    clusters: pa.StringArray
    servers: pa.StringArray
    hosts: pa.StringArray
    sources: pa.StringArray  # the host of the row's source

    @classmethod
    def of(cls, numbers: Numbers, rows: GeneratedRows) -> "_Names":
        digits = pc.utf8_lpad(
            pc.cast(pa.array(numbers.first + np.arange(len(numbers))), pa.string()), 8, "0"
        )
        clusters = pc.binary_join_element_wise("cluster", digits, "-")
        of_rows = clusters.take(pa.array(rows.cluster))
        letters = ("a", "b", "c")
        servers = pc.binary_join_element_wise(of_rows, taken(letters, rows.server), "-")
        return cls(
            of_rows,
            servers,
            pc.binary_join_element_wise(servers, "db.example", "."),
            pc.binary_join_element_wise(
                of_rows, taken([f"{letter}.db.example" for letter in letters], rows.source), "-"
            ),
        )


def family_of(numbers: Numbers) -> Family:
    """Return what the sets of each cluster are cut from."""
    return Family(
        uuids=uuid_characters(numbers.uuid_high, numbers.uuid_low),
        order=numbers.order,
        uuid_counts=numbers.uuid_counts,
        hole_slots=numbers.hole_slots,
        hole_lows=numbers.hole_lows,
        hole_highs=numbers.hole_highs,
    )


@dataclass(frozen=True, slots=True)
class _Sets:
    """The set columns, all cut from what the servers of a cluster share."""

    numbers: Numbers
    family: Family

    def executed(self, rows: GeneratedRows) -> pa.StringArray:
        highs = self.numbers.executed[rows.cluster, rows.server, rows.phase] + 1
        return self._texts(rows, np.ones_like(highs), highs, self._gaps(rows))

    def purged(self, rows: GeneratedRows) -> pa.StringArray:
        highs = self.numbers.purged[rows.cluster, rows.server] + 1
        return self._texts(rows, np.ones_like(highs), highs, Gaps.none(len(rows)))

    def owned(self, rows: GeneratedRows) -> pa.StringArray:
        """Return the number that a writer is committing."""
        n, (c, s, p) = self.numbers, (rows.cluster, rows.server, rows.phase)
        writer = np.minimum(s, B)
        lows, highs = self._nothing(rows)
        number = n.executed[c, s, p, writer] + 1
        at = np.arange(len(rows))
        lows[at, writer] = number
        highs[at, writer] = np.where(n.owned[c, s, p], number + 1, 0)
        return self._texts(rows, lows, highs, Gaps.none(len(rows)))

    def retrieved(self, rows: GeneratedRows) -> pa.StringArray:
        """Return what the row's channel has received of its writer's UUID."""
        n, (c, s, p) = self.numbers, (rows.cluster, rows.server, rows.phase)
        writer = np.where(s == A, B, A)
        lows, highs = self._nothing(rows)
        at = np.arange(len(rows))
        lows[at, writer] = n.received_from[c, writer]
        highs[at, writer] = np.where(rows.source >= 0, n.received[c, s, p] + 1, 0)
        gaps = self._gaps(rows)
        hidden = np.where(n.gap_received[c, s], -1, gaps.slots)
        return self._texts(rows, lows, highs, Gaps(hidden, gaps.lows, gaps.highs))

    def applying(self, rows: GeneratedRows) -> pa.StringArray:
        """Return the GTID at which the applier of the row failed; empty where it did not."""
        n, (c, s, p) = self.numbers, (rows.cluster, rows.server, rows.phase)
        lows, highs = self._nothing(rows)
        next_one = n.executed[c, s, p, A] + 1
        failed = (n.applier[c, s] != 0) & (n.error[c, s] != 0)
        lows[:, A] = next_one
        highs[:, A] = np.where(failed, next_one + 1, 0)
        return self._texts(rows, lows, highs, Gaps.none(len(rows)))

    def _gaps(self, rows: GeneratedRows) -> Gaps:
        lows = self.numbers.gap_low[rows.cluster, rows.server]
        slots = np.where(lows > 0, A, -1)
        return Gaps(slots, lows, self.numbers.gap_high[rows.cluster, rows.server])

    def _nothing(self, rows: GeneratedRows) -> tuple[Int64s, Int64s]:
        shape = (len(rows), self.numbers.top.shape[1])
        return np.ones(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)

    def _texts(
        self, rows: GeneratedRows, lows: Int64s, highs: Int64s, gaps: Gaps
    ) -> pa.StringArray:
        return set_texts(self.family, rows.cluster, lows=lows, highs=highs, gaps=gaps)


def _times(number: Int64s, server: Int64s, phase: Int64s) -> tuple[Int64s, Int64s]:
    """Return when each reading began and ended: the last ones after all first ones."""
    begun = _BEGUN + number * 7_919 % _SPREAD_MICROSECONDS
    started = begun + phase * _BETWEEN_PHASES_MICROSECONDS + server * 150
    return started, started + 2_000 + number * 613 % 40_000


def _read_only(numbers: Numbers, rows: GeneratedRows) -> Bools:
    writes: Bools = (rows.server == A) | ((rows.server == B) & numbers.dual[rows.cluster])
    return ~writes


def _damaged(texts: pa.StringArray, malformed: Bools) -> pa.StringArray:
    """Cut the last number off some texts, as a column that was too short would."""
    if not malformed.any():
        return texts
    return pc.if_else(pa.array(malformed), pc.binary_join_element_wise(texts, "7-", ":"), texts)
