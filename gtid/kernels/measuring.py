"""Operations on one set at a time: gaps, counts, and selections of rows and UUIDs."""

from __future__ import annotations

import numpy as np

from gtid.jit import kernel
from gtid.kernels.eight_bytes import Flags, Numbers, Words
from gtid.kernels.keys import copy_run


@kernel
def holes_of_rows(
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
    out_rows: Numbers,
    out_keys: Words,
    out_run_bounds: Numbers,
    out_bounds: Numbers,
) -> None:
    """Write the gaps of each run: the numbers missing between its lowest and highest."""
    run, bound = 0, 0
    for row in range(len(rows) - 1):
        out_rows[row] = run
        for index in range(rows[row], rows[row + 1]):
            begin, end = run_bounds[index] + 1, run_bounds[index + 1] - 1
            if begin >= end:
                continue
            bound = copy_run(
                keys, index, bounds, begin, end, out_keys, out_run_bounds, out_bounds, run, bound
            )
            run += 1
    out_rows[len(rows) - 1] = run
    out_run_bounds[run] = bound


@kernel
def filled_runs(run_bounds: Numbers, bounds: Numbers, out_bounds: Numbers) -> None:
    """Write, for each run, the interval from 1 to its highest number."""
    for run in range(len(run_bounds) - 1):
        out_bounds[2 * run] = 1
        out_bounds[2 * run + 1] = bounds[run_bounds[run + 1] - 1]


@kernel
def count_rows(rows: Numbers, run_bounds: Numbers, bounds: Numbers, counts: Words) -> None:
    """Count the GTIDs of each row into (low word, high word): a row may hold more than 2**64."""
    for row in range(len(rows) - 1):
        low, high = np.uint64(0), np.uint64(0)
        for index in range(run_bounds[rows[row]], run_bounds[rows[row + 1]], 2):
            low += np.uint64(bounds[index + 1] - bounds[index])
            if low < np.uint64(bounds[index + 1] - bounds[index]):
                high += np.uint64(1)
        counts[row, 0], counts[row, 1] = low, high


@kernel
def take_rows(
    chosen: Numbers,
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
    out_rows: Numbers,
    out_keys: Words,
    out_run_bounds: Numbers,
    out_bounds: Numbers,
) -> None:
    """Copy the chosen rows in the given order; a negative number yields an empty row."""
    run, bound = 0, 0
    for place in range(len(chosen)):
        out_rows[place] = run
        if chosen[place] < 0:
            continue
        for index in range(rows[chosen[place]], rows[chosen[place] + 1]):
            begin, end = run_bounds[index], run_bounds[index + 1]
            bound = copy_run(
                keys, index, bounds, begin, end, out_keys, out_run_bounds, out_bounds, run, bound
            )
            run += 1
    out_rows[len(chosen)] = run
    out_run_bounds[run] = bound


@kernel
def keep_uuid(
    high: Words,
    low: Words,
    wanted: Flags,
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
    out_rows: Numbers,
    out_keys: Words,
    out_run_bounds: Numbers,
    out_bounds: Numbers,
) -> None:
    """Copy of each row the runs with its UUID if that is wanted, else the runs without it."""
    run, bound = 0, 0
    for row in range(len(rows) - 1):
        out_rows[row] = run
        for index in range(rows[row], rows[row + 1]):
            is_of_uuid = keys[index, 0] == high[row] and keys[index, 1] == low[row]
            if is_of_uuid != wanted[row]:
                continue
            begin, end = run_bounds[index], run_bounds[index + 1]
            bound = copy_run(
                keys, index, bounds, begin, end, out_keys, out_run_bounds, out_bounds, run, bound
            )
            run += 1
    out_rows[len(rows) - 1] = run
    out_run_bounds[run] = bound
