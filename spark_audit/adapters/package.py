"""Writes the two files that the executors of a cluster need from this project.

    gtid-audit.zip   the packages, for `spark-submit --py-files`
    gtid-audit.py    the program that spark-submit runs; see spark_audit/adapters/submit.py

1. The zip contains our packages as they are installed here, and nothing else. Their dependencies
   (NumPy, Numba, PyArrow, …) contain machine code and must be installed in the cluster's Python.
2. The same sources produce the same bytes: the zip has no times and no paths of this machine.
3. Each file appears whole or not at all.
"""

import io
import os
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NamedTuple

# All of our packages that spark_audit imports, directly or indirectly. A test verifies it.
PACKAGES: Final = ("binlog", "gtid", "spark_audit", "topology")
# What these import from elsewhere, by distribution name.
REQUIREMENTS: Final = (
    "cryptography",
    "mysql-replication",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "pymysql",
    "pyyaml",
    "zstandard",
)
# For a missing module Python would exit with status 1, which means WARNING.
PROGRAM: Final = """\
\"\"\"Audits stored snapshots on the cluster it is submitted to; --help lists the options.\"\"\"

import sys

if __name__ == "__main__":
    try:
        from spark_audit.adapters.submit import main
    except ImportError as absent:
        sys.stderr.write(f"gtid-audit: {sys.executable}: {absent}\\n")
        sys.exit(70)
    sys.exit(main(sys.argv[1:]))
"""
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold
_MODE: Final = 0o100644 << 16


class Package(NamedTuple):
    """The paths of the two files."""

    archive: Path
    program: Path


class UnfitName(ValueError):
    """A name that Python would not accept for an archive of modules."""


def write_package(archive: Path) -> Package:
    """Write the archive, and the program beside it under the same name. Raises UnfitName, OSError.

    Existing files are replaced.
    """
    if archive.suffix != ".zip":
        raise UnfitName(f"{archive}: expected a name that ends in .zip")
    program = archive.with_suffix(".py")
    replace_file(archive, _zipped())
    replace_file(program, PROGRAM.encode())
    return Package(archive, program)


def _zipped() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for package in PACKAGES:
            for name, content in _files_of(resources.files(package), package):
                add_file(packed, name, content)
    return held.getvalue()


def add_file(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file to an archive: the same content gives the same bytes, at any time."""
    entry = zipfile.ZipInfo(name, date_time=_MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix on every platform, because the mode below is Unix's
    entry.external_attr = _MODE
    packed.writestr(entry, content)


def _files_of(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a package, in order of name, without compiled Python files."""
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_of(each, f"{name}/{each.name}")
        else:
            yield f"{name}/{each.name}", each.read_bytes()


def replace_file(file: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises OSError."""
    with NamedTemporaryFile(prefix=f".{file.name}-", dir=file.parent, delete=False) as written:
        try:
            written.write(content)
            written.close()
            umask = os.umask(0)
            os.umask(umask)
            Path(written.name).chmod(0o666 & ~umask)  # a temporary file is private to its owner
            Path(written.name).replace(file)
        except BaseException:
            Path(written.name).unlink(missing_ok=True)
            raise
