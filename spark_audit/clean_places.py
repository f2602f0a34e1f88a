"""Log positions: finds incomplete ones, and receivers that wait beyond the end of a source's log.

A part of clean_clusters.py. File names become numbers here, so that a kernel can compare them.
Names are compared for equality only: a receiver in another file than its source's last one leaves
the cluster to the rules, unless it moved between the readings.
"""

import pyarrow as pa
import pyarrow.compute as pc

from gtid.arrow_text import UuidWords, flat_text, text_buffers
from gtid.kernels.eight_bytes import Flags, Numbers
from spark_audit import kernels
from spark_audit.arrow_arrays import filled, is_there

_NOWHERE = -1


def keep_places_in_log(
    starts: Numbers,
    uuid: UuidWords,
    *,
    channel_starts: Numbers,
    source: UuidWords,
    received_to: pa.Array,
    log_end: pa.Array,
    clean: Flags,
) -> None:
    """Clear the clusters for which the rule on receivers may have a finding."""
    names = [pc.struct_field(each, "file").cast(pa.string()) for each in (received_to, log_end)]
    files = filled(pa.concat_arrays(names).dictionary_encode().indices, _NOWHERE)
    offsets = [filled(pc.struct_field(each, "position"), 0) for each in (received_to, log_end)]
    kernels.within_logs(
        starts,
        uuid.high,
        uuid.low,
        channel_starts,
        source.high,
        source.low,
        files[: len(received_to)],
        offsets[0],
        files[len(received_to) :],
        offsets[1],
        clean,
    )


def whole_places(column: pa.Array) -> Flags:
    """Return which log positions are null or complete."""
    file = flat_text(pc.struct_field(column, "file"))
    whole = is_there(file) & is_there(pc.struct_field(column, "position"))
    data, offsets = text_buffers(file)
    kernels.numbered(data.ctypes.data, offsets, whole)
    return whole | ~is_there(column)
