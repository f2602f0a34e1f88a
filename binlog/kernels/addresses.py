"""Access to memory by address in kernels, in addition to gtid.kernels.eight_bytes.

Only this file makes system calls from a kernel: pread, to read bytes of the mapped file, and
madvise, to map its pages. Neither changes the result of a read.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gtid.jit import inlined
from gtid.kernels.eight_bytes import load_byte, load_four

_PAGE_BYTES: Final = 4096  # the smallest page size; with larger pages, the first one is used
_POPULATE_READ: Final = 22  # MADV_POPULATE_READ: asm-generic/mman-common.h, since Linux 5.14

_pread: Any = types.ExternalFunction(
    "pread", types.int64(types.int32, types.int64, types.int64, types.int64)
)
_madvise: Any = types.ExternalFunction(
    "madvise", types.int32(types.int64, types.int64, types.int32)
)


@intrinsic
def fetch_line(_typing: Any, _address: Any) -> Any:
    """Prefetch the cache line at an address, which need not be mapped."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
        builder.call(prefetch, [place, word(0), word(3), word(1)])

    return types.void(types.int64), generate


@inlined
def byte_at(at: int) -> int:
    """Read a byte as a signed number."""
    return np.int64(load_byte(at))


@inlined
def four_at(at: int) -> int:
    """Read four bytes as a number that is never negative."""
    return np.int64(load_four(at))


@inlined
def read_file(file: int, position: int, memory: int, size: int) -> bool:
    """Read `size` bytes of an open file into memory; return whether all were read."""
    return np.int64(_pread(file, memory, size, position)) == size


@inlined
def map_pages(address: int, size: int) -> None:
    """Map the pages in one call, in a third of the time that the page faults would take.

    A system without this call maps them on access.
    """
    begin = address - address % _PAGE_BYTES
    _madvise(begin, address + size - begin, _POPULATE_READ)
