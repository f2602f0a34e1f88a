"""Folds the runs of a row: keys ascend, each occurs once, and boundaries are canonical.

A folded row never takes more space than the runs as they were written. Text that a server prints is
already in order. Reading it does not even compile this file.
"""

from __future__ import annotations

import numpy as np

from gtid.jit import kernel
from gtid.kernels.eight_bytes import Flags, Numbers, Words
from gtid.kernels.keys import copy_key, copy_run, key_order


@kernel
def runs_in_order(keys: Words, first: int, last: int) -> Numbers:
    """Return the runs of a row sorted by key; runs of the same key stay in the order written.

    This is a bottom-up merge sort, so no input makes it slow.
    """
    count = last - first
    order = np.arange(first, last)
    other = np.empty_like(order)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for place in range(begin, end):
                if left < middle and (
                    right >= end or key_order(keys, order[left], keys, order[right]) <= 0
                ):
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def canonical(numbers: Numbers) -> Numbers:
    """Fold start, end, start, end, ... in any order, overlapping or not, into canonical form.

    No interval may be empty.
    """
    count = len(numbers) // 2
    starts, ends = numbers[0::2], numbers[1::2]
    order = np.arange(count)
    for index in range(1, count):
        if starts[index] < starts[index - 1]:
            order = np.argsort(starts, kind="mergesort")
            break
    result = np.empty_like(numbers)
    length = 0
    for index in order:
        if length > 0 and starts[index] <= result[length - 1]:
            result[length - 1] = max(result[length - 1], ends[index])
        else:
            result[length], result[length + 1] = starts[index], ends[index]
            length += 2
    return result[:length]


@kernel
def fold_row(
    first_run: int,
    run: int,
    bound: int,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
) -> tuple[int, int]:
    """Fold the runs from `first_run` up to `run`, the last of which ends at `bound`.

    Returns the new (run, bound).
    """
    if run == first_run:
        return run, bound
    first_bound = run_bounds[first_run]
    run_bounds[run] = bound
    order = runs_in_order(keys, first_run, run)
    old_keys = keys[first_run:run].copy()
    old_bounds = bounds[first_bound:bound].copy()
    begins = run_bounds[first_run : run + 1].copy() - first_bound
    to_run, to_bound = first_run, first_bound
    place = 0
    while place < len(order):
        same = place + 1
        here = order[place] - first_run
        length = begins[here + 1] - begins[here]
        while same < len(order):
            there = order[same] - first_run
            if key_order(old_keys, here, old_keys, there) != 0:
                break
            length += begins[there + 1] - begins[there]
            same += 1
        gathered = np.empty(length, np.int64)
        filled = 0
        for index in order[place:same]:
            begin, end = begins[index - first_run], begins[index - first_run + 1]
            gathered[filled : filled + end - begin] = old_bounds[begin:end]
            filled += end - begin
        folded = canonical(gathered)
        copy_key(keys, to_run, old_keys, here)
        run_bounds[to_run] = to_bound
        bounds[to_bound : to_bound + len(folded)] = folded
        to_run += 1
        to_bound += len(folded)
        place = same
    return to_run, to_bound


@kernel
def fold_rows(
    is_orderly: Flags,
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
    out_rows: Numbers,
    out_keys: Words,
    out_run_bounds: Numbers,
    out_bounds: Numbers,
) -> None:
    """Copy all rows; fold those that are not in order."""
    run, bound = 0, 0
    for row in range(len(is_orderly)):
        out_rows[row] = run
        first_run = run
        for index in range(rows[row], rows[row + 1]):
            begin, end = run_bounds[index], run_bounds[index + 1]
            bound = copy_run(
                keys, index, bounds, begin, end, out_keys, out_run_bounds, out_bounds, run, bound
            )
            run += 1
        if not is_orderly[row]:
            run, bound = fold_row(first_run, run, bound, out_keys, out_run_bounds, out_bounds)
    out_rows[len(is_orderly)] = run
    out_run_bounds[run] = bound
