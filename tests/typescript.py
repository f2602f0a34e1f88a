"""TypeScript's compiler and the types of other programs, from npm packages.

A JSON document that is written as a value of a type is checked by tsc: a field that the type does
not have is an error, and so is one of another type.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from compose.native.cache import build_once, cache_root
from compose.native.installation import ProviderMissing
from compose.native.npm import PinnedPackage, unpack_package

TYPESCRIPT = PinnedPackage(
    "typescript",
    "5.9.3",
    "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
)


def compile_or_skip(folder: Path, *packages: PinnedPackage) -> str:
    """Compile the files `*.ts` of a folder with the types of packages; return the errors of tsc.

    Skips the test by name if node or a package cannot be had.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("provider missing: node (apt-get install nodejs)")
    modules = folder / "node_modules"
    try:
        for package in (TYPESCRIPT, *packages):

            def build(into: Path, package: PinnedPackage = package) -> None:
                work = cache_root() / "download" / into.name
                unpack_package(package, into=into, work=work, progress=lambda _line: None)
                shutil.rmtree(work)

            name = f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}-npm"
            entry = build_once(name, build)
            (modules / package.name).parent.mkdir(parents=True, exist_ok=True)
            (modules / package.name).symlink_to(entry / "package")
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    done = subprocess.run(
        [
            *(node, str(modules / "typescript" / "bin" / "tsc"), "--noEmit", "--strict"),
            *("--skipLibCheck", "--preserveSymlinks", "--target", "es2022"),
            *("--module", "esnext", "--moduleResolution", "bundler"),
            *sorted(path.name for path in folder.glob("*.ts")),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr
