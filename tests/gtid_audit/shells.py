"""Shells and mandoc that this machine may not have: Debian's packages, unpacked into the cache."""

from collections.abc import Mapping
from pathlib import Path

from compose.native.apt import unpack_packages
from compose.native.cache import build_once, cache_root

_PACKAGES = ("fish", "mandoc", "zsh")
_PLACES: Mapping[str, str] = {"fish": "usr/bin/fish", "mandoc": "usr/bin/mandoc", "zsh": "bin/zsh"}


def unpacked_program(name: str) -> list[str]:
    """Return the command of a program, with the C library that was unpacked with it."""

    def build(folder: Path) -> None:
        work = cache_root() / "download" / "apt-shells"
        unpack_packages(
            _PACKAGES, suite="bookworm", into=folder, work=work, progress=lambda _line: None
        )

    root = build_once("shells-bookworm", build)
    folders = [*(root / "lib").glob("*-linux-gnu"), *(root / "usr/lib").glob("*-linux-gnu")]
    [loader, *_] = [each for folder in folders for each in folder.glob("ld-linux*.so.*")]
    libraries = ":".join(map(str, folders))
    return [str(loader), "--library-path", libraries, str(root / _PLACES[name])]
