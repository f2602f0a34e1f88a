"""Converts Arrow text columns to the form that the kernels read: an address and row offsets.

No text is copied. The caller must keep the column alive while a kernel reads at its address.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gtid.kernels import reading
from gtid.kernels.eight_bytes import Bytes, Flags, Numbers, Words


def flat_text(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the text as one chunk, of type `string` or `large_string`."""
    if isinstance(texts, pa.ChunkedArray):
        if texts.num_chunks != 1:
            texts = texts.cast(pa.large_string())
        texts = texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()
    if texts.type not in (pa.string(), pa.large_string()):
        texts = texts.cast(pa.large_string())
    return texts


def text_buffers(array: pa.Array) -> tuple[Bytes, Numbers]:
    """Return the bytes of a text column and the offset at which each row begins."""
    _, places, content = array.buffers()
    data: Any = np.frombuffer(content if content is not None else b"", np.uint8)
    data.flags.writeable = False
    if places is None or not len(array):
        return data[:0], np.zeros(len(array) + 1, np.int64)
    width = np.int32 if array.type == pa.string() else np.int64
    offsets = np.frombuffer(
        places, width, count=len(array) + 1, offset=array.offset * width().nbytes
    )
    return data, offsets.astype(np.int64)


def validity(valid: Flags) -> pa.Buffer | None:
    """Return Arrow's bitmap of the valid rows; None if all rows are valid."""
    return None if valid.all() else pa.array(valid).buffers()[1]


class UuidWords(NamedTuple):
    """A column of UUIDs, each as two words in the layout of a key."""

    high: Words
    low: Words
    exact: Flags  # not null, and in the form that MySQL writes: dashes, lower case


def uuid_words(texts: pa.Array | pa.ChunkedArray) -> UuidWords:
    """Read a column of UUIDs. The words of a row that is not `exact` are undefined."""
    array = flat_text(texts)
    data, offsets = text_buffers(array)
    made = UuidWords(
        np.zeros(len(array), np.uint64),
        np.zeros(len(array), np.uint64),
        np.array(array.is_valid(), dtype=np.bool_),
    )
    reading.read_uuids(data.ctypes.data, offsets, *made)
    return made
