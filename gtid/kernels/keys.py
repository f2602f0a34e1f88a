"""Runs and their keys. A key is a UUID in two words and a tag in four, big-endian.

So comparing the words in order compares the keys in MySQL's order.
"""

from __future__ import annotations

from typing import Final

from gtid.jit import inlined
from gtid.kernels.eight_bytes import Numbers, Words

KEY_WORDS: Final = 6


@inlined
def key_order(left_keys: Words, left: int, right_keys: Words, right: int) -> int:
    """Compare two keys: -1, 0 or 1."""
    for word in range(KEY_WORDS):
        if left_keys[left, word] != right_keys[right, word]:
            return -1 if left_keys[left, word] < right_keys[right, word] else 1
    return 0


@inlined
def copy_key(target: Words, to: int, keys: Words, run: int) -> None:
    """Copy one key, word by word: creating a slice would cost more than the copy."""
    for word in range(KEY_WORDS):
        target[to, word] = keys[run, word]


@inlined
def copy_run(
    keys: Words,
    index: int,
    bounds: Numbers,
    begin: int,
    end: int,
    out_keys: Words,
    out_run_bounds: Numbers,
    out_bounds: Numbers,
    run: int,
    bound: int,
) -> int:
    """Append bounds[begin:end] as run `run` with the key of `index`; return the new end."""
    copy_key(out_keys, run, keys, index)
    out_run_bounds[run] = bound
    out_bounds[bound : bound + end - begin] = bounds[begin:end]
    return bound + end - begin
