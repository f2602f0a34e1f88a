"""Combines and compares two sets at a time: one engine for all operations, as truth tables.

How it works
------------
A truth table is a number of three bits: LEFT_ONLY (1), RIGHT_ONLY (2), BOTH (4). A bit is set if a
number that is only in the left set, only in the right set, or in both belongs to the result. It is
the TruthTable of gtid/boundaries.py in machine form.

`sweep` merges two canonical sequences like a merge sort. `i` and `j` count the boundaries that it
has passed in each. An odd count means that the position is inside of that set. So the low bits of
the counts are the state:

    state = (i & 1) | (j & 1) << 1       0 in neither, 1 left only, 2 right only, 3 in both
    keep = table << 1                    its bit number `state`: is such a number in the result?

Each step passes the lower of the next two boundaries, or both if they are equal. It writes that
boundary to out[length], and then adds 1 to `length` only if membership in the result has changed.
A boundary that does not count is overwritten by the next one. Example: 1-10 minus 3-4:6, table 1.

    left 1, 11     right 3, 5, 6, 7

    boundary   state   in the result   out[:length]
        1        1          1          1
        3        3          0          1, 3
        5        1          1          1, 3, 5
        6        3          0          1, 3, 5, 6
        7        1          1          1, 3, 5, 6, 7
       11        0          0          1, 3, 5, 6, 7, 11      1-2:5:7-10

Invariants: out[:length] is canonical, because the sweep passes boundaries in strictly ascending
order and keeps one only where membership changes. `length` is at most the number of boundaries
passed, so `out` needs space for the boundaries of both operands and no more. `length` is even at
the end, because a number in neither set never belongs to the result.

The unconditional write avoids a branch. Whether a boundary stays is unpredictable, and a wrong
prediction costs more than the write. A common prefix is handled first: two servers' sets mostly
differ only at the end. There both counts are equal, so the state is 0 or 3, and the prefix is
copied if the table has BOTH and skipped otherwise. The binary search of gtid/boundaries.py is not
used here: passing over 256 boundaries takes the kernel as long as one look-up takes Python.

A row is merged in the same way at the level of keys: a TSID that is missing in one row is combined
with an empty sequence. Example: u:1-5,v:7 minus u:2,w:1, where u < v < w.

    key   left    right   swept with table 1     appended
    u     1, 6    2, 3    1, 2, 3, 6             a run of u: 1:3-5
    v     7, 8    none    7, 8                   a run of v: 7
    w     none    1, 2    none                   nothing: `reached` is still `bound`

A run is appended only if the sweep wrote a boundary, so no TSID without numbers gets into a result.

`sweep_finds` and `find_rows` answer whether a result has any number, as "is a subset" does with
table 1. They write nothing and stop at the first one. Where only one row has a TSID, its first bit
decides without a look at the numbers, because a run is never empty.
"""

from __future__ import annotations

from typing import Final

from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import Flags, Numbers, Words
from gtid.kernels.keys import copy_key, key_order

LEFT_ONLY: Final = 1
RIGHT_ONLY: Final = 2
BOTH: Final = 4


@inlined
def sweep(left: Numbers, right: Numbers, table: int, out: Numbers, length: int) -> int:
    """Append the combination of two canonical sequences to out[:length]; return the new length.

    `out` needs space for the boundaries of both. Every boundary is written, but kept only if
    membership changes there: so the processor has no branch to predict.
    """
    keep = table << 1  # indexed by state: bit 0 of a state is "in the left", bit 1 "in the right"
    # Two servers' sets mostly differ only at the end: copy or skip the common prefix.
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
    """Append the rest of one sequence after the other has ended."""
    while index < len(rest):
        out[length] = rest[index]
        index += 1
        now = within if index & 1 else outside
        length += now ^ inside
        inside = now
    return length


@kernel
def sweep_finds(left: Numbers, right: Numbers, table: int) -> bool:
    """Return whether the combination of two canonical sequences is not empty."""
    keep = table << 1
    i, j = 0, 0
    while i < len(left) and j < len(right):
        at_left, at_right = left[i], right[j]
        i += at_left <= at_right
        j += at_right <= at_left
        if (keep >> ((i & 1) | ((j & 1) << 1))) & 1:
            return True
    # One sequence has boundaries left: the next one starts or ends an interval in it alone.
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
    """Combine row with row into the last four arrays; a row that is not valid becomes empty."""
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
    """Write for each chosen pair of rows whether their combination contains any GTID."""
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
