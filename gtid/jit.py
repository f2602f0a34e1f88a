"""Compiles each kernel on its first call and caches the machine code until the sources change.

1. The cache is a folder named after a digest of all sources of gtid.kernels and the compiler's
   version. It contains one folder for each module, named after a digest of the module's source and
   of what it imports: the sources of kernels, and the values of constants. So no kernel can call an
   outdated one, or contain an outdated number. This holds wherever the package is imported from,
   including an archive or a read-only site-packages.
2. The cache contains machine code that the process executes. So this file accepts a folder only if
   this user or root owns it, and no other user can write to it or replace it. A read-only folder
   that was filled in advance, for example in an image, is accepted, too.
3. Without such a folder every process compiles the kernels, which takes about ten seconds each.
4. If machine code cannot be stored or loaded, the kernel is compiled again. The result of a
   computation never depends on the cache.
5. This is the only file of the package that accesses the environment and the file system.
"""

from __future__ import annotations

import fcntl
import hashlib
import linecache
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import EnumType
from functools import lru_cache
from importlib import resources
from numbers import Number
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Literal, ParamSpec, TypeVar

import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.dispatcher import Dispatcher

P = ParamSpec("P")
R = TypeVar("R")

SOURCES: Final = "gtid.kernels"  # the digest covers the sources of this package
_FOLDER: Final = "kernels"
_IMPORTED: Final = re.compile(r"^(?:from \S+ )?import (\([^)]*\)|.*)$", re.MULTILINE)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function to machine code, once for each combination of argument types.

    The machine code runs without the GIL. Integers wrap, and indices are not checked.
    """
    return _compiled(function, inline="never")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function into each kernel that calls it: for the innermost steps.

    A call updates the reference count of every array it passes. That costs more than such a step.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[P, R], *, inline: Literal["never", "always"]) -> Callable[P, R]:
    made: Any = numba.njit(nogil=True, error_model="numpy", inline=inline)(function)
    if cache_directory() is not None:
        with _our_locator_only():
            # The same as cache=True, but with KernelCache.
            made._cache = KernelCache(function)  # type: ignore[no-untyped-call]  # noqa: SLF001
    compiled: Callable[P, R] = made
    return compiled


@lru_cache(maxsize=1)
def cache_directory() -> Path | None:
    """Return the folder of compiled kernels; None if no folder is both safe and usable."""
    for root in _roots():
        folder = root / _FOLDER / _digest()
        if _is_ours(folder):
            return folder
    return None


class SourceLocator:
    """Provides the compiler's cache with the folder of a kernel's machine code (rule 1)."""

    def __init__(self, function: FunctionType, file: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._module = function.__module__
        self._py_file = file  # the compiler's warnings show this path
        # linecache uses the module's loader, so it also finds sources in an archive.
        source = "".join(linecache.getlines(file, function.__globals__))
        assert source, "a kernel has a source"
        imported = sorted(_stamps_imported(function, source))
        self._stamp = hashlib.sha256("\n".join((source, *imported)).encode()).hexdigest()

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> SourceLocator:
        """Make the locator of a kernel."""
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        """Create the module's folder, and its parents if another process removed them."""
        _make_private(Path(self.get_cache_path()))

    def get_cache_path(self) -> str:
        """Return the folder for the current source of the kernel's module.

        A folder shared by all versions of a source would not be safe. A process could find the new
        version's entry in the index while the code file is still that of the old version.
        """
        directory = cache_directory()
        assert directory is not None, "without a folder nothing is cached"
        return str(directory / f"{self._module}-{self._stamp[:16]}")

    def get_source_stamp(self) -> str:
        """Return a digest that changes with the kernel's source."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return the line number, which distinguishes kernels with the same name."""
        return str(self._line)


def _stamps_imported(function: FunctionType, source: str) -> Iterator[str]:
    """Yield a stamp for each kernel and each constant that a kernel's module imports."""
    names = {name for names in _IMPORTED.findall(source) for name in re.findall(r"\w+", names)}
    for name in names & function.__globals__.keys():
        value: Any = function.__globals__[name]
        if isinstance(value, EnumType):
            yield f"{name} {dict(value.__members__)}"
        elif isinstance(value, Number | str | bytes | tuple | range):
            yield f"{name} {value!r}"
        else:
            for each in vars(value).values() if isinstance(value, ModuleType) else (value,):
                cache = getattr(each, "_cache", None) if isinstance(each, Dispatcher) else None
                if isinstance(cache, KernelCache):
                    yield cache.source_stamp


class _Located(CompileResultCacheImpl):
    _locator_classes = [SourceLocator]  # noqa: RUF012 - the base class has an instance's


class KernelCache(FunctionCache):
    """Numba's cache, made safe for several processes that compile at the same time.

    Numba's own cache reads the index of a kernel, adds an entry and writes the index back. If two
    processes do this at once for different argument types, both entries may point to the same file.
    Then one type would load the code of the other. A lock prevents this.
    """

    _impl_class = _Located

    @property
    def source_stamp(self) -> str:
        """A digest that changes with the source of the kernel or of one that it calls."""
        stamp: str = self._impl.locator.get_source_stamp()
        return stamp

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - Numba's
        """Return the compiled kernel, or None if it is not cached or cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - unpickling a damaged file may raise any exception
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401 - Numba's
        """Store a compiled kernel if possible; the process uses it in any case."""
        # The disk may be full, or the folder removed or read-only: see rule 4.
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            with _alone_in(Path(self.cache_path)):
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]

    def _forget(self) -> None:
        """Delete all cache files of this kernel: Numba cannot add entries to a damaged index."""
        folder = Path(self.cache_path)
        files = folder.glob(f"{self._impl.filename_base}.*")
        with suppress(OSError), _alone_in(folder):
            # The index goes first: otherwise it would briefly list files that others may rewrite.
            for file in sorted(files, key=lambda each: each.suffix != ".nbi"):
                file.unlink(missing_ok=True)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on the folder; the kernel releases the lock of a dead process."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _our_locator_only() -> Iterator[None]:
    """Ignore the locators in NUMBA_CACHE_LOCATOR_CLASSES: they do not check who owns a folder."""
    settings: Any = config  # Numba sets its attributes from the environment
    before = getattr(settings, "CACHE_LOCATOR_CLASSES", "")
    settings.CACHE_LOCATOR_CLASSES = ""
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
    """Create the folder if necessary; return whether it is safe, and writable or already filled."""
    root = folder.parent.parent
    try:
        _make_private(folder)
        for each in (folder, folder.parent, root):
            state = each.lstat()
            if _is_foreign(state) or _others_write(state) or not stat.S_ISDIR(state.st_mode):
                return False
        for each in root.resolve().parents:
            state = each.stat()
            # In a sticky folder, such as /tmp, other users cannot move this user's files.
            may_move = _others_write(state) and not state.st_mode & stat.S_ISVTX
            if _is_foreign(state) or may_move:
                return False
        return _can_be_written(folder) or any(folder.iterdir())
    except OSError:
        return False  # read-only, full, or not a folder: try the next root


def _can_be_written(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _make_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible only to this user under any umask."""
    if not folder.parent.exists():
        _make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _others_write(state: os.stat_result) -> bool:
    return bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_foreign(state: os.stat_result) -> bool:
    return state.st_uid not in (0, os.geteuid())


@lru_cache(maxsize=1)
def _digest() -> str:
    """Return a digest of all kernel sources, this file and the compiler's version."""
    digest = hashlib.sha256()
    digest.update(f"{numba.__version__} {sys.implementation.cache_tag}".encode())
    files: list[Any] = [resources.files("gtid") / "jit.py"]
    files += [each for each in resources.files(SOURCES).iterdir() if each.name.endswith(".py")]
    for file in sorted(files, key=lambda each: each.name):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
