"""The storage of results: a directory on this machine, or on any file system that Hadoop supports.

1. A place is a text: `/srv/gtid/x` here, `hdfs://host/gtid/x` or `s3a://bucket/gtid/x` elsewhere. A
   path without a scheme is on this machine, whatever the cluster's default file system is.
2. Both storages have the same few operations, and the same tests verify both. They differ in their
   guarantees:
   =================  ==================  =====================  =================================
   storage            rename              survives power loss    so a run appears
   =================  ==================  =====================  =================================
   this machine       atomic              after make_durable     whole, by rename
   hdfs               atomic              by replication         whole, by rename
   any other (s3a …)  a copy, file by     as the store promises  when `_SUCCESS` is there: it is
                      file                                       written last, readers check it
   =================  ==================  =====================  =================================

3. This module does not know the contents of the files.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from topology.adapters.run_directory import LocalStorage

_RENAMES_ATOMICALLY: Final = frozenset({"file", "hdfs"})


class Storage(Protocol):
    """The operations that results need of a file system."""

    @property
    def renames_atomically(self) -> bool:
        """Return whether a directory appears under its new name whole or not at all."""

    def names_in(self, place: str) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""

    def exists(self, place: str) -> bool:
        """Return whether a file or directory exists."""

    def write_text(self, place: str, text: str) -> None:
        """Write a small file, and create its directories."""

    def read_text(self, place: str) -> str:
        """Read a small file. Raises FileNotFoundError."""

    def rename(self, place: str, new: str) -> None:
        """Rename a directory and create those above it. Raises FileExistsError."""

    def delete(self, place: str) -> None:
        """Delete a directory and everything in it; do nothing if it does not exist."""

    def make_durable(self, place: str) -> None:
        """Return once everything below a place would survive a power loss, if we control that."""

    def address(self, place: str) -> str:
        """Return a place in the form that Spark takes."""


def storage_of(place: str, session: SparkSession) -> tuple[Storage, str]:
    """Return the storage of a place, and the place in the form that this storage takes."""
    scheme = urlsplit(place).scheme
    if scheme in ("", "file"):
        return LocalStorage(), str(Path(place.removeprefix("file://")).resolve())
    return HadoopStorage(session, scheme=scheme), place.rstrip("/")


class HadoopStorage:
    """Directories on a file system that Spark's JVM supports."""

    def __init__(self, session: SparkSession, *, scheme: str) -> None:
        # PySpark has no public access to its JVM; Spark Connect has no access at all.
        context = session.sparkContext
        gateway: Any = context._gateway  # noqa: SLF001 - no public way
        self._gateway = gateway
        self._hadoop: Any = gateway.jvm.org.apache.hadoop.fs
        self._conf: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001 - no public way
        self._scheme = scheme

    @property
    def renames_atomically(self) -> bool:
        """Return whether a directory appears under its new name whole or not at all."""
        return self._scheme in _RENAMES_ATOMICALLY

    def names_in(self, place: str) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""
        with _as_ours(place):
            system, path = self._opened(place)
            if not system.exists(path) or not system.getFileStatus(path).isDirectory():
                return []
            return sorted(str(each.getPath().getName()) for each in system.listStatus(path))

    def exists(self, place: str) -> bool:
        """Return whether a file or directory exists."""
        with _as_ours(place):
            system, path = self._opened(place)
            return bool(system.exists(path))

    def write_text(self, place: str, text: str) -> None:
        """Write a small file, and create its directories."""
        with _as_ours(place):
            system, path = self._opened(place)
            stream = system.create(path, True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

    def read_text(self, place: str) -> str:
        """Read a small file. Raises FileNotFoundError."""
        with _as_ours(place):
            system, path = self._opened(place)
            stream = system.open(path)
            try:
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

    def rename(self, place: str, new: str) -> None:
        """Rename a directory and create those above it. Raises FileExistsError."""
        with _as_ours(new):
            system, target = self._opened(new)
            if system.exists(target):
                raise FileExistsError(f"{new}: already exists")
            system.mkdirs(target.getParent())
            # If the target has appeared since, FileSystem.rename would move the directory into it.
            # The rename of FileContext refuses that.
            options = self._gateway.new_array(self._hadoop.Options.Rename, 0)
            root = self._hadoop.FileContext.getFileContext(system.getUri(), self._conf)
            root.rename(self._hadoop.Path(place), target, options)

    def delete(self, place: str) -> None:
        """Delete a directory and everything in it; do nothing if it does not exist."""
        with _as_ours(place):
            system, path = self._opened(place)
            system.delete(path, True)

    def make_durable(self, place: str) -> None:
        """Do nothing: the file system is responsible for a file once it is closed."""

    def address(self, place: str) -> str:
        """Return a place in the form that Spark takes."""
        return place

    def _opened(self, place: str) -> tuple[Any, Any]:
        path = self._hadoop.Path(place)
        return path.getFileSystem(self._conf), path


_OURS: Final = {
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
}


@contextmanager
def _as_ours(place: str) -> Iterator[None]:
    """Convert Java exceptions into the OSError that the local storage would raise."""
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        kind = _OURS.get(thrown.getClass().getSimpleName(), OSError)
        raise kind(f"{place}: {thrown.getMessage()}") from error
