"""Decides when long sequences are worth the compiled kernels, and is the one way to them.

1. Importing `gtid` imports no NumPy. Callers with long sequences ask here, with the number of
   boundaries that would be looked at, and gets the kernels or None; None means: do it in Python.
2. The kernels have a price: what they take to be imported. Like somebody who hires skis until the
   hire would have bought a pair, a process works in Python until that work has cost about as much,
   and then imports. So no process pays more than twice what it would have needed to.
3. Without NumPy and Numba (the extra `columns`), or on a machine that is not little-endian,
   everything is done in Python. That is a choice, not a failure: the results are the same. Any
   other failure of the import is raised.
4. This file knows no algebra.
"""

from __future__ import annotations

import sys
from array import array
from typing import Protocol

# Fewer boundaries than this are done in Python in any case. A call costs some 4 microseconds, to
# read text 11: once the kernels are there they win from 30 boundaries on, or 50. At 256 they take
# a twentieth of Python's time to combine (5 microseconds, not 96) and a fourth to read text. Below
# that Python's tuples do well enough.
CALL_MIN = 256

# How many boundaries Python looks at in the time that the kernels cost at first: 0.3 microseconds
# each, against 0.6 s for importing NumPy and Numba and 0.4 s for loading machine code that was
# compiled before. The very first process of a user compiles for some 8 s, once; see gtid/jit.py.
PRICE = 3_000_000

# The same where compiled code cannot be kept, and every process must compile.
PRICE_OF_COMPILING = 50_000_000


class Kernels(Protocol):
    """What gtid/flat.py offers: sequences are arrays of 64-bit integers."""

    def combine(
        self, left: array[int], right: array[int], *, left_only: bool, right_only: bool, both: bool
    ) -> array[int]:
        """Apply a truth table to two canonical sequences; the result is canonical."""

    def finds(self, left: array[int], right: array[int], *, left_only: bool, both: bool) -> bool:
        """Return whether applying a truth table would leave anything."""

    def canonical(self, numbers: array[int]) -> array[int]:
        """Fold start, end, start, end, ... into canonical form."""

    def is_canonical(self, numbers: array[int]) -> bool:
        """Return whether the numbers ascend strictly."""

    def count(self, boundaries: array[int]) -> int:
        """Count the numbers inside."""

    def count_colons(self, text: str) -> int:
        """Count the colons of an ASCII text."""

    def read(
        self, text: str, *, colon_count: int, tsids_max: int
    ) -> dict[str, tuple[int, ...] | array[int]]:
        """Read an ASCII text; give each key's canonical boundaries, keys in order."""

    def write(self, boundaries: array[int]) -> str:
        """Write `1-2:5`."""


class _Account:
    """What this process has done in Python so far, and the kernels once it has them."""

    def __init__(self) -> None:
        self.kernels: Kernels | None = None
        self.spent = 0
        self.price = PRICE
        self.is_open = sys.byteorder == "little"

    def buy(self) -> None:
        """Import the kernels; use them if they need not be compiled, or that has been paid for."""
        if not _are_installed():
            self.is_open = False
            return
        from gtid import flat

        if flat.is_kept() or self.spent >= PRICE_OF_COMPILING:
            self.kernels = flat
        else:
            self.price = PRICE_OF_COMPILING


def kernels_for(boundary_count: int) -> Kernels | None:
    """Return the kernels if they are worth it for so much work more; None: do it in Python."""
    if boundary_count < CALL_MIN:
        return None
    if _account.kernels is None and _account.is_open:
        _account.spent += boundary_count
        if _account.spent >= _account.price:
            _account.buy()
    return _account.kernels


def kernels_if_there() -> Kernels | None:
    """Return the kernels if they were imported already: for work that Python does well, too."""
    return _account.kernels


def _are_installed() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("numpy", "numba"))


_account = _Account()
