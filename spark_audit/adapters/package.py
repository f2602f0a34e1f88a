"""What the executors of a cluster need of this project, as two files.

    gtid-audit.zip   the packages, for `spark-submit --py-files`
    gtid-audit.py    the program that spark-submit runs; see spark_audit/adapters/submit.py

1. The zip holds our packages as they are installed here, and nothing else: what they import (NumPy,
   Numba, PyArrow, …) has machine code in it and belongs into the cluster's Python.
2. The same sources give the same bytes: no moment and no path of this machine is in them.
3. Both appear whole or not at all.
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

# All that spark_audit imports of ours, whatever is called; a test holds this to it.
PACKAGES: Final = ("binlog", "gtid", "spark_audit", "topology")
# What these import from elsewhere, by the names under which it is installed.
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
# Python would end in 1 if it lacked a module, which is what WARNING ends in.
PROGRAM: Final = """\
\"\"\"Audits stored snapshots on the cluster it is submitted to; --help says how.\"\"\"

import sys

if __name__ == "__main__":
    try:
        from spark_audit.adapters.submit import main
    except ImportError as lacking:
        sys.stderr.write(f"gtid-audit: {sys.executable}: {lacking}\\n")
        sys.exit(70)
    sys.exit(main(sys.argv[1:]))
"""
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can tell
_MODE: Final = 0o100644 << 16


class Package(NamedTuple):
    """Where the two files are."""

    archive: Path
    program: Path


class UnfitName(ValueError):
    """A name that Python would not take for an archive of modules."""


def write_package(archive: Path) -> Package:
    """Write the archive, and the program beside it under the same name. Raises UnfitName, OSError.

    What was there before is replaced.
    """
    if archive.suffix != ".zip":
        raise UnfitName(f"{archive}: expected a name that ends in .zip")
    program = archive.with_suffix(".py")
    _replace(archive, _zipped())
    _replace(program, PROGRAM.encode())
    return Package(archive, program)


def _zipped() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for package in PACKAGES:
            for name, content in _files_of(resources.files(package), package):
                entry = zipfile.ZipInfo(name, date_time=_MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.create_system = 3  # Unix, wherever it is made: the mode below is one
                entry.external_attr = _MODE
                packed.writestr(entry, content)
    return held.getvalue()


def _files_of(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield what a package holds, in order of name, without what Python has compiled there."""
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_of(each, f"{name}/{each.name}")
        else:
            yield f"{name}/{each.name}", each.read_bytes()


def _replace(file: Path, content: bytes) -> None:
    with NamedTemporaryFile(prefix=f".{file.name}-", dir=file.parent, delete=False) as written:
        try:
            written.write(content)
            written.close()
            umask = os.umask(0)
            os.umask(umask)
            Path(written.name).chmod(0o666 & ~umask)  # a temporary file is for its maker alone
            Path(written.name).replace(file)
        except BaseException:
            Path(written.name).unlink(missing_ok=True)
            raise
