"""Processes eight characters at once: hexadecimal and decimal digits in a machine word.

1. Text is read by its address: neither this file nor reading.py receives an array or its owner. The
   caller of a kernel keeps the text in memory and passes its end.
2. Words are in the machine's byte order; the arithmetic requires a little-endian machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gtid.jit import inlined

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]

_ONES: Final = np.uint64(0x0101010101010101)
_TOPS: Final = np.uint64(0x8080808080808080)
_LOWS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_PAIRS: Final = np.uint64(0x00FF00FF00FF00FF)
_NIBBLES: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTE: Final = np.uint64(0xFF)
_CASE: Final = np.uint64(0x2020202020202020)  # the bit that makes a letter lower case
_NINE: Final = np.uint64(9)
_FOUR: Final = np.uint64(4)
_SIX: Final = np.uint64(6)
_EIGHT: Final = np.uint64(8)
_ZEROS: Final = np.uint64(0x3030303030303030)
_FOURTHS: Final = np.uint64(0x000000FF000000FF)

assert sys.byteorder == "little", "these kernels are for little-endian machines"


def _loader(bits: int) -> Callable[[int], Any]:
    """Make an intrinsic that reads `bits` at an address, aligned or not, as an unsigned word."""

    def load(_typing: Any, _address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            loaded = builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)
            return builder.zext(loaded, ir.IntType(64)) if bits < 64 else loaded

        return types.uint64(types.int64), generate

    made: Callable[[int], Any] = intrinsic(load)
    return made


load_eight = _loader(64)
load_four = _loader(32)
load_byte = _loader(8)


def _storer(bits: int) -> Callable[[int, int], Any]:
    """Make an intrinsic that writes the lowest `bits` of a number at an address."""

    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.trunc(arguments[1], kind) if bits < 64 else arguments[1]
            builder.store(value, builder.inttoptr(arguments[0], kind.as_pointer()), align=1)

        return types.void(types.int64, types.int64), generate

    made: Callable[[int, int], Any] = intrinsic(store)
    return made


store_eight = _storer(64)
store_four = _storer(32)
store_byte = _storer(8)


@intrinsic
def _trailing_zeros(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _ones(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@inlined
def count_byte(word: int, byte: int) -> int:
    """Count how many of eight bytes are `byte`."""
    others = word ^ (_ONES * byte)
    return np.int64(8) - np.int64(_ones((((others & _LOWS) + _LOWS) | others) & _TOPS))


@inlined
def digit_count(word: int) -> int:
    """Return how many of the eight bytes, from the first on, are decimal digits."""
    offsets = word ^ _ZEROS
    others = ((offsets + _ONES * np.uint64(0x76)) | offsets) & _TOPS
    return np.int64(_trailing_zeros(others) >> np.uint64(3))


@inlined
def decimal_value(word: int, count: int) -> int:
    """Return the value of the first `count` of eight bytes, all of them decimal digits."""
    digits = (word ^ _ZEROS) << np.uint64(64 - 8 * count)
    tens = digits * np.uint64(10) + (digits >> _EIGHT)
    upper = (tens & _FOURTHS) * np.uint64(100 + (1_000_000 << 32))
    lower = ((tens >> np.uint64(16)) & _FOURTHS) * np.uint64(1 + (10_000 << 32))
    return np.int64((upper + lower) >> np.uint64(32))


@inlined
def are_hex_digits(word: int) -> bool:
    """Return whether all eight bytes are hexadecimal digits, in either case."""
    if word & _TOPS:
        return False
    letters = word | _CASE
    # Adding a constant to a byte below 0x80 sets its top bit if the byte reaches a threshold.
    # There is no carry into the next byte.
    digit = (word + _ONES * np.uint64(0x50)) & ~(word + _ONES * np.uint64(0x46))
    letter = (letters + _ONES * np.uint64(0x1F)) & ~(letters + _ONES * np.uint64(0x19))
    # Setting the bit 0x20 also changes bytes below 0x40; only bytes with the bit 0x40 are letters.
    letter &= word << np.uint64(1)
    return (digit | letter) & _TOPS == _TOPS


@inlined
def has_capitals(word: int) -> bool:
    """Return whether any of eight hexadecimal digits is a capital letter."""
    return ((word << np.uint64(1)) & ~(word << np.uint64(2)) & _TOPS) != np.uint64(0)


@inlined
def hex_value(word: int) -> int:
    """Return the 32-bit value of eight hexadecimal digits, the first in the lowest byte."""
    nibbles = (word & _NIBBLES) + _NINE * ((word >> _SIX) & _ONES)
    pairs = ((nibbles << _FOUR) | (nibbles >> _EIGHT)) & _PAIRS
    return (
        ((pairs & _BYTE) << np.uint64(24))
        | ((pairs >> np.uint64(16) & _BYTE) << np.uint64(16))
        | ((pairs >> np.uint64(32) & _BYTE) << np.uint64(8))
        | (pairs >> np.uint64(48) & _BYTE)
    )
