"""Compiles the kernels, once: on the first call ever, and never again for the same sources.

1. What was compiled is kept in a folder named for the digest of all sources of gtid.kernels and for
   the compiler's version, and there in one named for the kernel's own source and for those of the
   kernels that its module imports. So none can call an outdated one, wherever and from whatever
   archive the package is imported, and a read-only site-packages is no obstacle.
2. A cache holds machine code that is run as it is: only a folder that is this user's own or the
   system's, and that nobody else can write to or put another in the place of, is trusted. One that
   was filled beforehand, in an image say, serves although it is read-only.
3. Where no such folder can be had the kernels are compiled in every process: some ten seconds each.
4. What cannot be kept, or no longer be read, costs a compilation and never an answer.
5. This is the only file of the package that looks at the world.
"""

from __future__ import annotations

import fcntl
import hashlib
import linecache
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Literal, ParamSpec, TypeVar

import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.dispatcher import Dispatcher

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
    made: Any = numba.njit(nogil=True, error_model="numpy", inline=inline)(function)
    if cache_directory() is not None:
        with _our_locator_only():
            # What cache=True does, with a cache of ours.
            made._cache = KernelCache(function)  # type: ignore[no-untyped-call]  # noqa: SLF001
    compiled: Callable[P, R] = made
    return compiled


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
        self._py_file = file  # where the compiler's warnings point to
        # linecache asks the module's loader, and so finds what lies within an archive.
        source = "".join(linecache.getlines(file, function.__globals__))
        assert source, "a kernel has a source"
        imported = sorted(_stamps_imported(function))
        self._stamp = hashlib.sha256("\n".join((source, *imported)).encode()).hexdigest()

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> SourceLocator:
        """Make the locator of a kernel."""
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        """Create the module's folder, and those above it if another process removed them."""
        _make_private(Path(self.get_cache_path()))

    def get_cache_path(self) -> str:
        """Return the folder of the kernel's module, as its source is now.

        Were it one for all versions of a source, a process could find the new one's entry in the
        index while the code beside it is still the old one's.
        """
        directory = cache_directory()
        assert directory is not None, "without a folder nothing is cached"
        return str(directory / f"{self._module}-{self._stamp[:16]}")

    def get_source_stamp(self) -> str:
        """Return what changes when the kernel's source does."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return what distinguishes kernels of one name."""
        return str(self._line)


def _stamps_imported(function: FunctionType) -> set[str]:
    """Return the stamps of the kernels that a kernel's module has imported from others."""
    kernels = [each for each in function.__globals__.values() if isinstance(each, Dispatcher)]
    others = [each for each in kernels if each.py_func.__module__ != function.__module__]
    caches = [getattr(each, "_cache", None) for each in others]
    return {each.source_stamp for each in caches if isinstance(each, KernelCache)}


class _Located(CompileResultCacheImpl):
    _locator_classes = [SourceLocator]  # noqa: RUF012 - the base class has an instance's


class KernelCache(FunctionCache):
    """The compiler's cache, made fit for several processes that compile at once.

    The compiler's own reads the index of a kernel, adds an entry and writes it back. Of two that do
    so at once for two types of arguments, both may name the same file, and one type then finds the
    code of the other. Here they take turns.
    """

    _impl_class = _Located

    @property
    def source_stamp(self) -> str:
        """What changes when the kernel, or one that it calls, does."""
        stamp: str = self._impl.locator.get_source_stamp()
        return stamp

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - Numba's
        """Return the compiled kernel, or None if it is not here or cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - unpickling what is damaged may raise anything
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401 - Numba's
        """Store a compiled kernel if the disk has space; it is used in any case."""
        # The disk may be full, and the folder gone or read-only by now: see rule 4.
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            with _alone_in(Path(self.cache_path)):
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]

    def _forget(self) -> None:
        """Delete all that is kept of this kernel: a damaged index could not be added to."""
        folder = Path(self.cache_path)
        files = folder.glob(f"{self._impl.filename_base}.*")
        with suppress(OSError), _alone_in(folder):
            # The index last would name, for a moment, what others are about to write.
            for file in sorted(files, key=lambda each: each.suffix != ".nbi"):
                file.unlink(missing_ok=True)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep all other processes that would write to the folder waiting; a dead one holds none up."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _our_locator_only() -> Iterator[None]:
    """Set aside the locators that NUMBA_CACHE_LOCATOR_CLASSES names: our rules are not theirs."""
    settings: Any = config  # its attributes are made as the environment says
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
    """Make the folder if need be; tell whether it can be trusted, and written to or is filled."""
    root = folder.parent.parent
    try:
        _make_private(folder)
        for each in (folder, folder.parent, root):
            state = each.lstat()
            if _is_foreign(state) or _others_write(state) or not stat.S_ISDIR(state.st_mode):
                return False
        for each in root.resolve().parents:
            state = each.stat()
            # In a sticky folder, such as /tmp, nobody can move what is ours.
            may_move = _others_write(state) and not state.st_mode & stat.S_ISVTX
            if _is_foreign(state) or may_move:
                return False
        return _can_be_written(folder) or any(folder.iterdir())
    except OSError:
        return False  # read-only, full, or no folder at all: the next one may do


def _can_be_written(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _make_private(folder: Path) -> None:
    """Make a folder and what lacks above it, each for this user alone, whatever the umask says."""
    if not folder.parent.exists():
        _make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _others_write(state: os.stat_result) -> bool:
    return bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_foreign(state: os.stat_result) -> bool:
    return state.st_uid not in (0, os.geteuid())


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
