"""Removes from installed packages what the auditor never uses: it runs while its image is built.

Sizes are of pyarrow 26.0, numba 0.68, llvmlite 0.50, numpy 2.4. It imports the standard library
only: it runs inside the image. A pattern that matches nothing is an error, so that a new version of
a package does not silently keep what an old one called otherwise.

It needs `strip` (binutils): symbols for debuggers are 60 MB of the shared libraries.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

UNUSED: Final = {
    "pyarrow/tests": "tests",
    "numba/tests": "tests",
    "numpy/**/tests": "tests",
    "llvmlite/tests": "tests",
    "pyarrow/include": "headers",
    "numpy/_core/include": "headers",
    "numpy/_core/lib": "static libraries",
    "pyarrow/*.p[xy][xdi]": "sources of Cython",
    "pyarrow/src": "sources of C++",
    "**/*.pyi": "types, for checkers",
    # Arrow's libraries that only their own module loads: the auditor reads and writes local files.
    # (libarrow_substrait is not one of them: pyarrow.lib is linked with it.)
    "pyarrow/libarrow_flight.so*": "RPC: 32 MB",
    "pyarrow/_flight.*": "RPC",
    "pyarrow/libarrow_python_flight.so*": "RPC",
    "pyarrow/libarrow_s3.so*": "object storage: 17 MB",
    "pyarrow/_s3fs.*": "object storage",
    "pyarrow/_gcsfs.*": "object storage",
    "pyarrow/_azurefs.*": "object storage",
    "pyarrow/_hdfs.*": "Hadoop",
    "pyarrow/_substrait.*": "query plans",
    "pyarrow/_orc.*": "another format",
}
# Libraries with symbols for debuggers. NumPy's are left out: auditwheel has moved their sections,
# and what `strip` makes of them cannot be loaded.
STRIPPED: Final = (
    *("llvmlite/binding/*.so", "zstandard/*.so", "cryptography/hazmat/bindings/*.so"),
    *("pyarrow/libarrow*.so*", "pyarrow/libparquet.so*", "pyarrow/lib.*.so"),
)


def unused_in(folder: Path) -> Iterator[Path]:
    """Yield what is to be removed. Raises ValueError if a pattern matches nothing."""
    yield from _matching(folder, UNUSED)


def _matching(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if not found:
            raise ValueError(f"{pattern}: nothing in {folder} has this name")
        yield from found


def slim(folder: Path) -> None:
    """Remove what is not used, replace copies of libraries by links, and remove symbols."""
    for path in list(unused_in(folder)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)  # below a folder that is gone
    _link_copies(folder / "pyarrow")
    for library in list(_matching(folder, STRIPPED)):
        if not library.is_symlink():
            command = ["strip", "--strip-unneeded", str(library)]
            subprocess.run(command, check=True)


def _link_copies(folder: Path) -> None:
    """Replace equal libraries by links to the longest name: a wheel cannot have links."""
    for library in sorted(folder.glob("*.so")):
        names = sorted(folder.glob(f"{library.name}*"), key=lambda each: len(each.name))
        content = names[-1].read_bytes() if len(names) > 1 else b""
        for each in names[:-1]:
            if not each.is_symlink() and each.read_bytes() == content:
                each.unlink()
                each.symlink_to(names[-1].name)


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
