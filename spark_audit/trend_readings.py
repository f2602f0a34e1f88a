"""Reduces stored snapshots, batch by batch, to what trends need: counts and digests.

1. Only the last reading of each server counts, because findings are about that one.
2. A digest of its canonical text represents a UUID's part of a set. Equal parts have equal digests,
   wherever and whenever they were read. So no set has to travel to be compared.
3. A set that was not read, or is not a GTID set, is null, never the empty set.
"""

import hashlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from gtid.columns import GtidSetColumn
from spark_audit.schema import READING_SCHEMA, READINGS
from topology.adapters.snapshot_columns import list_of

LAST_PHASE: Final = 2
_UUID_CHARS: Final = 36
_DIGEST_BYTES: Final = 16
_PART: Final = READING_SCHEMA.field("parts").type.value_type


def readings_of(snapshots: DataFrame) -> DataFrame:
    """Return READINGS of SNAPSHOTS that have an additional column `run` with the run's name."""
    last = snapshots.where(sf.col("phase") == LAST_PHASE).select(
        "run",
        "cluster",
        sf.col("name").alias("server"),
        sf.col("read_ended").alias("read_at"),
        "server_uuid",
        # Null if the channels were not read. A channel that never connected has no source_uuid.
        sf.filter("channels.source_uuid", lambda uuid: uuid.isNotNull()).alias("source_uuids"),
        "gtid_executed",
    )
    return last.mapInArrow(_measured, READINGS).select(*READINGS.names)


def _measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sets = GtidSetColumn.parse(batch["gtid_executed"])
        measured = {"interval_count": sets.interval_count(), "parts": _parts_of(sets)}
        columns = [
            measured[name] if name in measured else batch[name].cast(kind)
            for name, kind in zip(READING_SCHEMA.names, READING_SCHEMA.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=READING_SCHEMA)


def _parts_of(sets: GtidSetColumn) -> pa.Array:
    """Return, for each row, its UUIDs with the digest and the counts of their part of the set.

    Canonical text has one item per UUID, tags included, and a comma between items.
    """
    split = pc.split_pattern(sets.to_arrow(), ",")
    texts, rows = pc.list_flatten(split), pc.list_parent_indices(split)
    is_part = pc.not_equal(texts, "")  # the empty set has an empty text
    texts, rows = texts.filter(is_part), rows.filter(is_part).to_numpy()
    parsed = GtidSetColumn.parse(texts)
    parts = pa.StructArray.from_arrays(
        [
            pc.utf8_slice_codeunits(texts, 0, _UUID_CHARS).cast(pa.string()),
            pa.array(map(_digest_of, texts.to_pylist()), pa.string()),
            parsed.gtid_count(),
            parsed.interval_count(),
        ],
        fields=list(_PART.fields),
    )
    ends = np.cumsum(np.bincount(rows, minlength=len(sets)))
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32(), mask=_nulls_with_end(sets))
    return pa.ListArray.from_arrays(offsets, parts, type=list_of(_PART))


def _nulls_with_end(sets: GtidSetColumn) -> np.ndarray:
    nulls = np.asarray(sets.is_null().to_numpy(zero_copy_only=False), bool)
    return np.append(nulls, False)


def _digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
