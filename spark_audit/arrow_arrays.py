"""Converts Arrow columns to NumPy arrays: numbers, and row flags."""

import numpy as np
import pyarrow as pa

from gtid.kernels.eight_bytes import Flags, Numbers


def one(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without chunks."""
    assert column.num_chunks == 1, "the columns of a batch are in one piece"
    return column.chunk(0)


def numbers(column: pa.ChunkedArray) -> Numbers:
    """Return numbers, or times as their stored numbers; the lowest number for a null."""
    return filled(one(column).cast(pa.int64()), np.iinfo(np.int64).min)


def filled(array: pa.Array, value: int) -> Numbers:
    """Return numbers, with `value` for a null."""
    whole = array.fill_null(value) if array.null_count else array
    return np.asarray(whole).astype(np.int64, copy=False)


def is_there(array: pa.Array) -> Flags:
    """Return which rows are not null."""
    return np.array(array.is_valid(), dtype=np.bool_)


def is_true(array: pa.Array) -> Flags:
    """Return which rows are true, and not null."""
    return np.array(array.fill_null(False), dtype=np.bool_)
