"""Fills rows of a ledger: alternates the walk and `read_heads` in steps that fit the CPU cache."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.kernels.addresses import map_pages
from binlog.kernels.heads import read_heads
from binlog.kernels.walking import (
    AT,
    FAR_BYTES,
    FETCHED,
    FILE,
    FULL,
    HEADED,
    HEADS_AT,
    IS_OPEN,
    NO_FILE,
    PAYLOADS,
    ROW,
    ROWS_END,
    TRAILER,
    WALK_ROWS,
    walk,
)
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import Numbers, Words

_FETCH_BYTES: Final = 4 << 20  # mapped in one call


@kernel
def read_rows(
    address: int,
    limit: int,
    state: Numbers,
    walked: tuple[int, int, int, int],
    headed: tuple[int, int],
    rows_max: int,
    counts: Numbers,
    keys: Words,
    slots: NDArray[np.int32],
) -> int:
    """Walk and fill rows until the batch of `rows_max` is full or the caller must act.

    The result is that of `walk`. The caller must also act if there are payloads, or if the event of
    row state[HEADED] could not be read.
    """
    answer = FULL
    row, at = state[ROW], state[AT]
    while True:
        end = state[ROW] + state[IS_OPEN]
        state[HEADED] = read_heads(
            state[HEADS_AT],
            state[HEADED],
            end,
            state[TRAILER],
            headed[0],
            headed[1],
            rows_max,
            counts,
            keys,
            slots,
        )
        if answer != FULL or state[PAYLOADS] or state[HEADED] < end or end == rows_max:
            return answer
        if state[FILE] != NO_FILE and state[AT] - at < FAR_BYTES * (state[ROW] - row):
            _fetch(address, limit, state)
        row, at = state[ROW], state[AT]
        state[ROWS_END] = min(row + WALK_ROWS, rows_max)
        answer = walk(address, limit, state, walked, rows_max)


@inlined
def _fetch(address: int, limit: int, state: Numbers) -> None:
    """Map the next bytes if the walk is near the end of the mapped ones."""
    if state[AT] + _FETCH_BYTES // 2 >= state[FETCHED]:
        begin = max(state[FETCHED], state[AT])
        state[FETCHED] = min(begin + _FETCH_BYTES, limit)
        map_pages(address + begin, state[FETCHED] - begin)
