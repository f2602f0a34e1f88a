"""What kernels do at an address, beside what gtid.kernels.words reads there.

Here, and nowhere else in a kernel, the system is asked for something: for bytes of the file that
the memory is mapped from, and to have pages of it mapped. Neither changes what is read.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gtid.jit import inlined
from gtid.kernels.words import load_byte, load_four

_PAGE_BYTES: Final = 4096  # the smallest there is; of larger ones the beginning will be meant
_POPULATE_READ: Final = 22  # MADV_POPULATE_READ: asm-generic/mman-common.h, since Linux 5.14

_pread: Any = types.ExternalFunction(
    "pread", types.int64(types.int32, types.int64, types.int64, types.int64)
)
_madvise: Any = types.ExternalFunction(
    "madvise", types.int32(types.int64, types.int64, types.int32)
)


@intrinsic
def fetch_line(_typing: Any, _address: Any) -> Any:
    """Ask for the bytes at an address before they are needed; it may be any."""

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
    """Read four bytes as a signed number, which is never negative."""
    return np.int64(load_four(at))


@inlined
def read_file(file: int, position: int, memory: int, size: int) -> bool:
    """Read so many bytes of an open file into memory; tell whether they were all there."""
    return np.int64(_pread(file, memory, size, position)) == size


@inlined
def map_pages(address: int, size: int) -> None:
    """Map the pages there at once: a third of the time of finding each one missing.

    A system that cannot do so maps them when they are looked at.
    """
    begin = address - address % _PAGE_BYTES
    _madvise(begin, address + size - begin, _POPULATE_READ)
