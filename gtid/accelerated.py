"""Decides when a process uses the compiled kernels, and provides the only access to them.

1. Importing `gtid` does not import NumPy. A caller with long sequences passes the number of
   boundaries that it would visit. It receives the kernels, or None: then it works in Python.
2. Importing the kernels takes time (`PRICE`). This is the ski-rental problem: a process works in
   Python until that work has taken about as long as the import would, and then imports. So no
   process spends more than twice the time that it needed to.
3. Without NumPy and Numba (the extra `columns`), or on a machine that is not little-endian, the
   package does all work in Python. The results are the same, so this is not an error. Any other
   failure of the import is raised.
4. This file contains no set algebra.
"""

from __future__ import annotations

import sys
from array import array
from typing import Protocol

# Shorter sequences are always processed in Python. A kernel call costs about 4 microseconds, and 11
# to read text. Once loaded, the kernels are faster from 30 boundaries on, or 50 for text. At 256
# they need a twentieth of Python's time to combine (5 microseconds instead of 96) and a quarter to
# read text. Below 256, Python's tuples are fast enough.
CALL_MIN = 256

# How many boundaries Python visits in the time that loading the kernels takes. Python needs 0.3
# microseconds for each. Importing NumPy and Numba takes 0.6 s; loading cached machine code takes
# 0.4 s. The first process of a user compiles for about 8 s, once; see gtid/jit.py.
PRICE = 3_000_000

# The same where compiled code cannot be cached, and every process must compile.
PRICE_OF_COMPILING = 50_000_000


class Kernels(Protocol):
    """The interface of gtid/flat.py: sequences are arrays of 64-bit integers."""

    def combine(
        self, left: array[int], right: array[int], *, left_only: bool, right_only: bool, both: bool
    ) -> array[int]:
        """Apply a truth table to two canonical sequences; the result is canonical."""

    def finds(self, left: array[int], right: array[int], *, left_only: bool, both: bool) -> bool:
        """Return whether the result of applying a truth table is not empty."""

    def canonical(self, numbers: array[int]) -> array[int]:
        """Fold start, end, start, end, ... into canonical form."""

    def is_canonical(self, numbers: array[int]) -> bool:
        """Return whether the numbers ascend strictly."""

    def count(self, boundaries: array[int]) -> int:
        """Count the numbers in the set."""

    def count_colons(self, text: str) -> int:
        """Count the colons of an ASCII text."""

    def read(
        self, text: str, *, colon_count: int, tsids_max: int
    ) -> dict[str, tuple[int, ...] | array[int]]:
        """Read an ASCII text; return each key's canonical boundaries, in key order."""

    def write(self, boundaries: array[int]) -> str:
        """Write `1-2:5`."""


class _Account:
    """The work that this process has done in Python so far, and the kernels once imported."""

    def __init__(self) -> None:
        self.kernels: Kernels | None = None
        self.spent = 0
        self.price = PRICE
        self.is_open = sys.byteorder == "little"

    def buy(self) -> None:
        """Import the kernels; use them if they are cached, or `spent` covers compiling them."""
        if not _are_installed():
            self.is_open = False
            return
        from gtid import flat

        if flat.is_kept() or self.spent >= PRICE_OF_COMPILING:
            self.kernels = flat
        else:
            self.price = PRICE_OF_COMPILING


def kernels_for(boundary_count: int) -> Kernels | None:
    """Return the kernels if this much additional work justifies them; None: work in Python."""
    if boundary_count < CALL_MIN:
        return None
    if _account.kernels is None and _account.is_open:
        _account.spent += boundary_count
        if _account.spent >= _account.price:
            _account.buy()
    return _account.kernels


def kernels_if_there() -> Kernels | None:
    """Return the kernels if they are already imported. For work that is also fast in Python."""
    return _account.kernels


def _are_installed() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("numpy", "numba"))


_account = _Account()
