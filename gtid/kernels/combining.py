"""Two sets at a time: the one engine, an operation as a truth table, and the questions of two.

A truth table is a number of three bits: 1, what is in the left alone belongs to the result; 2, in
the right alone; 4, in both. It is gtid/boundaries.py's TruthTable, for machines.
"""

from __future__ import annotations

from typing import Final

from gtid.jit import inlined, kernel
from gtid.kernels.keys import copy_key, key_order
from gtid.kernels.words import Flags, Numbers, Words

LEFT_ONLY: Final = 1
RIGHT_ONLY: Final = 2
BOTH: Final = 4


@inlined
def sweep(left: Numbers, right: Numbers, table: int, out: Numbers, length: int) -> int:
    """Append the combination of two canonical sequences to out[:length]; return the new length.

    `out` needs room for as many boundaries as both have. Every boundary is written, and stays only
    if membership flips there: so nothing is left to guess for the processor.
    """
    keep = table << 1  # by state: bit 0 of a state is "in the left", bit 1 "in the right"
    # Two servers' sets are mostly the same up to their ends: what begins alike is copied, or not.
    i, shared = 0, min(len(left), len(right))
    if table & BOTH:
        while i < shared and left[i] == right[i]:
            out[length] = left[i]
            length += 1
            i += 1
    else:
        while i < shared and left[i] == right[i]:
            i += 1
    j, inside = i, i & (table >> 2)
    while i < len(left) and j < len(right):
        at_left, at_right = left[i], right[j]
        out[length] = min(at_left, at_right)
        i += at_left <= at_right
        j += at_right <= at_left
        now = (keep >> ((i & 1) | ((j & 1) << 1))) & 1
        length += now ^ inside
        inside = now
    if i < len(left):
        length = _finish(left, i, keep & 1, (keep >> 1) & 1, inside, out, length)
    else:
        length = _finish(right, j, keep & 1, (keep >> 2) & 1, inside, out, length)
    return length


@inlined
def _finish(
    rest: Numbers, index: int, outside: int, within: int, inside: int, out: Numbers, length: int
) -> int:
    """Append what is left of one sequence when the other has ended."""
    while index < len(rest):
        out[length] = rest[index]
        index += 1
        now = within if index & 1 else outside
        length += now ^ inside
        inside = now
    return length


@kernel
def sweep_finds(left: Numbers, right: Numbers, table: int) -> bool:
    """Return whether the combination of two canonical sequences has any number in it."""
    keep = table << 1
    i, j = 0, 0
    while i < len(left) and j < len(right):
        at_left, at_right = left[i], right[j]
        i += at_left <= at_right
        j += at_right <= at_left
        if (keep >> ((i & 1) | ((j & 1) << 1))) & 1:
            return True
    # Whatever is left of one: the very next boundary starts or ends an interval of it alone.
    return (table & LEFT_ONLY != 0 and i < len(left)) or (
        table & RIGHT_ONLY != 0 and j < len(right)
    )


@kernel
def combine_rows(
    table: int,
    left_rows: Numbers,
    left_keys: Words,
    left_run_bounds: Numbers,
    left_bounds: Numbers,
    right_rows: Numbers,
    right_keys: Words,
    right_run_bounds: Numbers,
    right_bounds: Numbers,
    valid: Flags,
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
) -> None:
    """Combine row with row. The last four are the result; a row that is not valid stays empty."""
    run, bound = 0, 0
    for row in range(len(valid)):
        rows[row] = run
        if not valid[row]:
            continue
        i, i_end = left_rows[row], left_rows[row + 1]
        j, j_end = right_rows[row], right_rows[row + 1]
        while i < i_end or j < j_end:
            order = -1 if j == j_end else 1
            if i < i_end and j < j_end:
                order = key_order(left_keys, i, right_keys, j)
            if order <= 0:
                copy_key(keys, run, left_keys, i)
                ours = left_bounds[left_run_bounds[i] : left_run_bounds[i + 1]]
                i += 1
            else:
                ours = left_bounds[:0]
            if order >= 0:
                copy_key(keys, run, right_keys, j)
                theirs = right_bounds[right_run_bounds[j] : right_run_bounds[j + 1]]
                j += 1
            else:
                theirs = right_bounds[:0]
            reached = sweep(ours, theirs, table, bounds, bound)
            if reached > bound:
                run_bounds[run] = bound
                run += 1
                bound = reached
    rows[len(valid)] = run
    run_bounds[run] = bound


@kernel
def find_rows(
    table: int,
    left_rows: Numbers,
    left_keys: Words,
    left_run_bounds: Numbers,
    left_bounds: Numbers,
    left_chosen: Numbers,
    right_rows: Numbers,
    right_keys: Words,
    right_run_bounds: Numbers,
    right_bounds: Numbers,
    right_chosen: Numbers,
    found: Flags,
) -> None:
    """Return for each chosen pair of rows whether their combination has any GTID in it."""
    for pair in range(len(found)):
        found[pair] = False
        i, i_end = left_rows[left_chosen[pair]], left_rows[left_chosen[pair] + 1]
        j, j_end = right_rows[right_chosen[pair]], right_rows[right_chosen[pair] + 1]
        while i < i_end or j < j_end:
            order = -1 if j == j_end else 1
            if i < i_end and j < j_end:
                order = key_order(left_keys, i, right_keys, j)
            if order == 0:
                found[pair] = sweep_finds(
                    left_bounds[left_run_bounds[i] : left_run_bounds[i + 1]],
                    right_bounds[right_run_bounds[j] : right_run_bounds[j + 1]],
                    table,
                )
                i += 1
                j += 1
            elif order < 0:
                found[pair] = table & LEFT_ONLY != 0
                i += 1
            else:
                found[pair] = table & RIGHT_ONLY != 0
                j += 1
            if found[pair]:
                break
