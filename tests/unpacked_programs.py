"""Programs that this machine may not have: Debian's packages, unpacked into the cache."""

from pathlib import Path

import pytest

from compose.native.apt import unpack_packages
from compose.native.cache import build_once, cache_root
from compose.native.installation import ProviderMissing

_SUITE = "bookworm"


def unpacked_or_skip(name: str, *packages: str) -> Path:
    """Return the folder with these packages and what they need. Skips the test by name."""

    def build(folder: Path) -> None:
        work = cache_root() / "download" / f"apt-{name}"
        unpack_packages(packages, suite=_SUITE, into=folder, work=work, progress=lambda _line: None)

    try:
        return build_once(f"{name}-{_SUITE}", build)
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


def command_in(root: Path, program: str) -> list[str]:
    """Return the command of a program, with the C library that was unpacked with it."""
    folders = [*(root / "lib").glob("*-linux-gnu"), *(root / "usr/lib").glob("*-linux-gnu")]
    [loader, *_] = [each for folder in folders for each in folder.glob("ld-linux*.so.*")]
    [path] = root.glob(program)
    return [str(loader), "--library-path", ":".join(map(str, folders)), str(path)]
