"""Spark's stream of a server's transactions. Where it stands is a GTID set.

    spark.readStream.format("mysql_binlog").option("server", "mysql://audit@db1:3306").load()

1. An offset is {"gtid_executed": text}: everything up to there has been given. A batch is the
   difference of two offsets, asked for as a set: whatever happens between, a restart, a retry, a
   rotation or a purge of files, the batch is those transactions or an error. So Spark's checkpoint
   and a sink that takes a batch once (files, or foreachBatch by its number) make exactly once.
2. Spark calls `initialOffset` again when it restarts before the first batch was finished, and the
   server has moved on since. So the first batch is empty and only puts the start into the
   checkpoint: nothing can be lost between two ideas of where "now" or "oldest" is.
3. A batch is bounded by `transactions_max`. It takes the server's UUIDs and tags in their order and
   within each the numbers in theirs; its rows come in the order of the log. Order across batches is
   that of the log for a server with one writer and one batch at a time, and otherwise is not.
4. If the server lacks transactions of its own that were read before, it has lost its tail and will
   use their numbers again: the query ends, as the server would refuse a replica (error 1885).
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
    Questions,
    ServerPartition,
    partition_of,
    rows_from,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSET: Final = "gtid_executed"
POLL_SECONDS: Final = 0.25

Offset = dict[str, Any]  # as Spark has it; ours holds one text


class TailLost(Exception):
    """The server does not have what it had: see rule 4."""


@dataclass(slots=True)
class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says where the stream can go, and reads from here to there."""

    options: BinlogOptions
    columns: pa.Schema
    # What initialOffset said, until a batch has put it into the checkpoint: see rule 2.
    initial: GtidSet | None = field(default=None)
    # With Trigger.AvailableNow: what the server had when the query began.
    target: GtidSet | None = field(default=None)
    # Spark asks every 10 ms while there is nothing to read: over one connection, and not so often.
    questions: Questions | None = field(default=None)
    asked_in_vain_at: float = field(default=-math.inf)  # of time.monotonic

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where a new stream starts. Raises ServerUnread, InventoryProblem."""
        start_at = self.options.start_at
        if isinstance(start_at, GtidSet):
            self.initial = start_at
        else:
            sets = self._questions().sets()
            self.initial = {OLDEST: sets.gtid_purged, NOW: sets.gtid_executed}[start_at]
        return _offset(self.initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the bound of a batch."""
        return ReadMaxRows(self.options.transactions_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return where the next batch ends: `start` itself if there is nothing to read.

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
        """Keep what the server has now: the stream ends there."""
        self.target = self._questions().sets().gtid_executed

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the one task that reads a batch; none if it is empty."""
        self.initial = None  # the checkpoint has one: Spark plans nothing before
        wanted = _read(end) - _read(start)
        if wanted and self.options.gtids is not None:
            wanted &= self.options.gtids
        return [partition_of(self.options, wanted)] if wanted else []

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Read the rows of a batch."""
        assert isinstance(partition, ServerPartition), "we made it"
        return rows_from(partition, self.options, self.columns)

    def stop(self) -> None:
        """Leave the server."""
        if self.questions is not None:
            self.questions.close()

    def _available(self, given: GtidSet) -> GtidSet:
        sets = self._questions().sets()
        lost = (given - sets.gtid_executed).from_uuid(sets.server_uuid)
        if lost:
            raise TailLost(
                f"the server {sets.server_uuid} no longer has {lost.shortened()}, which it"
                " committed itself and this stream has read: it lost the end of its log, and will"
                " give the same GTIDs to other transactions"
            )
        return sets.gtid_executed if self.target is None else self.target & sets.gtid_executed

    def _questions(self) -> Questions:
        if self.questions is None:
            self.questions = Questions(self.options)
        return self.questions


def _offset(gtids: GtidSet) -> Offset:
    return {OFFSET: str(gtids)}


def _read(offset: Offset) -> GtidSet:
    return GtidSet.parse(offset[OFFSET])
