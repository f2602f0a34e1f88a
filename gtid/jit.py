"""Compiles the kernels, once: on the first call ever, and never again for the same sources.

1. What was compiled is kept in a folder named for the digest of all sources of gtid.kernels and for
   the compiler's version, and is stamped with the kernel's own source. A kernel calls kernels of
   gtid.kernels and of its own file only: so none can call an outdated one, wherever and from
   whatever archive the package is imported, and a read-only site-packages is no obstacle.
2. A cache holds machine code that is run as it is: only a folder that is this user's own, and that
   nobody else can write to, is trusted.
3. Where no such folder can be had the kernels are compiled in every process: some seconds each.
4. This is the only file of the package that looks at the world.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Literal, ParamSpec, TypeVar

import numba
from numba.core import config

P = ParamSpec("P")
R = TypeVar("R")

SOURCES: Final = "gtid.kernels"  # the package whose sources make the digest
_FOLDER: Final = "kernels"


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function to machine code for each combination of argument types it is called with.

    It runs without the interpreter's lock. Integers wrap, and indices are not checked.
    """
    return _compiled(function, inline="never")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function into each kernel that calls it: for the innermost steps.

    A call passes every array with its owner's count, which costs more than such a step itself.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[P, R], *, inline: Literal["never", "always"]) -> Callable[P, R]:
    directory = cache_directory()
    with _locating(f"{__name__}.SourceLocator" if directory else ""):
        made: Callable[P, R] = numba.njit(
            cache=directory is not None, nogil=True, error_model="numpy", inline=inline
        )(function)
    return made


@lru_cache(maxsize=1)
def cache_directory() -> Path | None:
    """Return where compiled kernels are kept; None if no folder can be trusted or written."""
    for root in _roots():
        folder = root / _FOLDER / _digest()
        if _is_ours(folder):
            return folder
    return None


class SourceLocator:
    """Tells the compiler's cache where a kernel's machine code lies. See the top of this file."""

    def __init__(self, function: FunctionType, file: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._module = function.__module__
        # linecache asks the module's loader, and so finds what lies within an archive.
        source = "".join(linecache.getlines(file, function.__globals__))
        assert source, "a kernel has a source"
        self._stamp = hashlib.sha256(source.encode()).hexdigest()

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> SourceLocator:
        """Make the locator of a kernel."""
        made = cls(py_func, py_file)
        made.ensure_cache_path()
        return made

    def ensure_cache_path(self) -> None:
        """Make the module's folder; the one above was tried before it was chosen."""
        Path(self.get_cache_path()).mkdir(mode=0o700, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder of the kernel's module."""
        directory = cache_directory()
        assert directory is not None, "without a folder nothing is cached"
        return str(directory / self._module)

    def get_source_stamp(self) -> str:
        """Return what changes when the kernel's source does."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Tell kernels of one name apart."""
        return str(self._line)


@contextmanager
def _locating(locator: str) -> Iterator[None]:
    """Have the compiler ask `locator` for the functions compiled meanwhile, and no others."""
    settings: Any = config  # its attributes are made as the environment says
    before = settings.CACHE_LOCATOR_CLASSES
    settings.CACHE_LOCATOR_CLASSES = locator or before
    try:
        yield
    finally:
        settings.CACHE_LOCATOR_CLASSES = before


def _roots() -> Iterator[Path]:
    named = os.environ.get("GTID_AUDIT_CACHE")
    if named:
        yield Path(named).absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    if users:
        yield Path(users).absolute() / "gtid-audit"
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is none
    if home != "~":
        yield Path(home) / ".cache" / "gtid-audit"
    yield Path(tempfile.gettempdir()) / f"gtid-audit-{os.geteuid()}"


def _is_ours(folder: Path) -> bool:
    """Make the folder if need be; tell whether it is ours alone and can be written to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in (folder, folder.parent, folder.parent.parent):
            state = each.lstat()
            others_write = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if state.st_uid != os.geteuid() or others_write or not stat.S_ISDIR(state.st_mode):
                return False
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False  # read-only, full, or no folder at all: the next one may do
    return True


@lru_cache(maxsize=1)
def _digest() -> str:
    """Return a name for the sources of all kernels, of this file, and for the compiler."""
    digest = hashlib.sha256()
    digest.update(f"{numba.__version__} {sys.implementation.cache_tag}".encode())
    files: list[Any] = [resources.files("gtid") / "jit.py"]
    files += [each for each in resources.files(SOURCES).iterdir() if each.name.endswith(".py")]
    for file in sorted(files, key=lambda each: each.name):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
