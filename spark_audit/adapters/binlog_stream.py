"""Spark's stream of a server's transactions. Its offset is a GTID set.

    spark.readStream.format("mysql_binlog").option("server", "mysql://audit@db1:3306").load()

1. An offset is {"gtid_executed": text}: the GTIDs that the stream has delivered so far. A batch is
   the difference of two offsets, and the reader requests it as a set. So after a restart, a retry,
   a rotation or a purge of files, the batch is those transactions or an error. With Spark's
   checkpoint and an idempotent sink (files, or foreachBatch by its number), delivery is exactly
   once.
2. Spark calls `initialOffset` again when it restarts before the first batch was finished. By then
   the server has moved on, and "now" or "oldest" means another set. So the first batch is empty and
   only writes the start into the checkpoint. No transaction can be lost between the two calls.
3. `transactions_max` limits a batch. A batch takes UUIDs and tags in the order of the server's set,
   and the lowest GNOs first. Its rows come in log order. The order across batches is log order for
   a server with one writer and one batch at a time; otherwise it is not.
4. The server may be missing transactions of its own that the stream has read. Then it lost the end
   of its log and will reuse their GTIDs. The query fails, as the server would refuse a replica in
   that state (error 1885).
"""

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from gtid import GtidSet
from spark_audit.adapters.binlog_options import NOW, OLDEST, BinlogOptions
from spark_audit.adapters.binlog_server import (
    ServerPartition,
    SetQueries,
    partition_of,
    rows_from,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSET: Final = "gtid_executed"
POLL_SECONDS: Final = 0.25

Offset = dict[str, Any]  # Spark's type; ours has one entry


class TailLost(Exception):
    """The server no longer has transactions that it had (rule 4)."""


@dataclass(slots=True)
class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reports how far the stream can read, and reads one batch."""

    options: BinlogOptions
    columns: pa.Schema
    # The result of initialOffset, until a batch has put it into the checkpoint (rule 2).
    initial: GtidSet | None = field(default=None)
    # With Trigger.AvailableNow: what the server had when the query began.
    target: GtidSet | None = field(default=None)
    # Spark asks every 10 ms while there is nothing to read. One connection, at a lower rate.
    questions: SetQueries | None = field(default=None)
    asked_in_vain_at: float = field(default=-math.inf)  # of time.monotonic

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset at which a new stream starts. Raises ServerUnread, InventoryProblem."""
        start_at = self.options.start_at
        if isinstance(start_at, GtidSet):
            self.initial = start_at
        else:
            sets = self._questions().sets()
            self.initial = {OLDEST: sets.gtid_purged, NOW: sets.gtid_executed}[start_at]
        return _offset(self.initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch."""
        return ReadMaxRows(self.options.transactions_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset at which the next batch ends: `start` itself if nothing is new.

        Raises ServerUnread, TailLost, InventoryProblem.
        """
        given = _read(start)
        if self.initial is not None:
            initial, self.initial = self.initial, None
            if given == initial:
                return start
        time.sleep(max(0.0, self.asked_in_vain_at + POLL_SECONDS - time.monotonic()))
        new = self._available(given) - given
        if not new:
            self.asked_in_vain_at = time.monotonic()
            return start
        if isinstance(limit, ReadMaxRows):
            new = new.first(limit.max_rows)
        return _offset(given | new)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Keep the server's current set: the stream ends there."""
        self.target = self._questions().sets().gtid_executed

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the one task that reads a batch; none if it is empty."""
        self.initial = None  # the checkpoint has it: Spark writes it before it plans a batch
        wanted = _read(end) - _read(start)
        if wanted and self.options.gtids is not None:
            wanted &= self.options.gtids
        return [partition_of(self.options, wanted)] if wanted else []

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Read the rows of a batch."""
        assert isinstance(partition, ServerPartition), "we made it"
        return rows_from(partition, self.options, self.columns)

    def stop(self) -> None:
        """Close the connection."""
        if self.questions is not None:
            self.questions.close()

    def _available(self, given: GtidSet) -> GtidSet:
        sets = self._questions().sets()
        lost = (given - sets.gtid_executed).from_uuid(sets.server_uuid)
        if lost:
            raise TailLost(
                f"the server {sets.server_uuid} no longer has {lost.shortened()}, which it"
                " committed itself and this stream has read: it lost the end of its log, and will"
                " reuse these GTIDs for other transactions"
            )
        return sets.gtid_executed if self.target is None else self.target & sets.gtid_executed

    def _questions(self) -> SetQueries:
        if self.questions is None:
            self.questions = SetQueries(self.options)
        return self.questions


def _offset(gtids: GtidSet) -> Offset:
    return {OFFSET: str(gtids)}


def _read(offset: Offset) -> GtidSet:
    return GtidSet.parse(offset[OFFSET])
