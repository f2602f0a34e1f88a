"""What is removed from the image of the auditor is there today, and is not missed."""

import shutil
import subprocess
import sys
from importlib.metadata import distribution, version
from pathlib import Path

import pytest

from compose.containers.slim_packages import STRIPPED, UNUSED, slim, unused_in

ROOT = Path(__file__).parents[2]
SITE = Path(str(distribution("numpy").locate_file("")))
PACKAGES = ("pyarrow", "numpy", "numpy.libs", "numba", "llvmlite", "zstandard", "cryptography")
# In the slim packages: Arrow's Parquet, kernels that Numba compiles, compressed and encrypted data.
PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:3]
import cryptography, llvmlite, numba, numpy, pyarrow, zstandard
import pyarrow.compute, pyarrow.parquet
from cryptography.hazmat.primitives.asymmetric import rsa
from gtid.columns import GtidSetColumn

for each in (cryptography, llvmlite, numba, numpy, pyarrow, zstandard):
    assert each.__file__.startswith(sys.argv[1]), each
assert rsa.generate_private_key(65537, 2048).key_size == 2048
assert zstandard.decompress(zstandard.compress(b"x" * 1000)) == b"x" * 1000
assert numpy.linalg.det(numpy.eye(3)) == 1
sets = GtidSetColumn.parse(pyarrow.array(["3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"] * 3))
table = pyarrow.table({"set": sets.to_arrow(), "n": [1, 2, 3]})
pyarrow.parquet.write_table(table, sys.argv[3], compression="zstd")
assert pyarrow.parquet.read_table(sys.argv[3]).equals(table)
assert pyarrow.compute.sum(table["n"]).as_py() == 6
assert numba.njit(lambda x: x + 1)(1) == 2
"""


def are_of_the_lock() -> bool:
    """Return whether these versions are installed, and not those of `make lowest`."""
    locked = (ROOT / "requirements/lock.txt").read_text().splitlines()
    names = [each for each in PACKAGES if each != "numpy.libs"]  # a part of NumPy's wheel
    return all(f"{name}=={version(name)} \\" in locked for name in names)


def test_every_pattern_matches_the_packages_of_the_lock() -> None:
    """A new version that calls its files otherwise would make the image grow silently."""
    if not are_of_the_lock():
        pytest.skip("other versions are installed than those of requirements/lock.txt")
    assert len(list(unused_in(SITE))) > len(UNUSED)
    assert [pattern for pattern in STRIPPED if not list(SITE.glob(pattern))] == []


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing in"):
        list(unused_in(tmp_path))


@pytest.mark.slow
def test_the_slim_packages_work(tmp_path: Path) -> None:
    if shutil.which("strip") is None:
        pytest.skip("provider missing: strip; install it with: apt-get install binutils")
    packages = tmp_path / "packages"
    for name in PACKAGES:
        shutil.copytree(SITE / name, packages / name, symlinks=True)
    for each in SITE.glob("*.dist-info"):
        (packages / each.name).symlink_to(each)
    before = size_of(packages)
    slim(packages)
    assert before - size_of(packages) > 140_000_000
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(packages), str(ROOT), str(tmp_path / "x.parquet")],
        env={"GTID_AUDIT_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr


def size_of(folder: Path) -> int:
    files = (each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    return sum(each.stat().st_size for each in files)
