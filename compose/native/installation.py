"""An unpacked MySQL: a server to start, clients to call, and the error if it is missing.

It does not know how either came onto the machine; provision.py does.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Version = tuple[int, int, int]

_VERSION = re.compile(r"\bVer (?:\S+ Distrib )?(\d+)\.(\d+)\.(\d+)")

CLIENTS = ("mysql", "mysqlbinlog", "mysqldump", "mysqlslap")


class ProviderMissing(Exception):
    """A requirement is missing on the machine; the message states which, and how to install it."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A mysqld that starts on this machine.

    Limits: the server must support GTIDs (5.6.5 or newer). It must not be MariaDB, whose GTIDs are
    a different concept under the same name.
    """

    provider: str
    version: Version
    mysqld: tuple[str, ...]
    """The command up to, not including, the first option."""
    options: tuple[str, ...] = ()
    """Options that say where this server's own files are."""
    environment: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    """The image whose containers the servers run in; empty: they are processes of this machine."""

    @property
    def series(self) -> tuple[int, int]:
        """Return major and minor version."""
        return self.version[:2]


@dataclass(frozen=True, slots=True)
class Clients:
    """The client programs, as commands that run on this machine and work with old servers too."""

    folder: Path
    loader: tuple[str, ...] = ()
    plugin_folder: Path | None = None
    """Since 9.0 the old password plugin is a file the client must find (seen with 9.7 to 5.6)."""

    def command(self, name: str) -> list[str]:
        """Return the command line of one of ``CLIENTS``, without the machine's option files.

        Raises ProviderMissing if the program does not exist.
        """
        assert name in CLIENTS
        binary = self.folder / name
        if not binary.exists():
            raise ProviderMissing(
                f"no {name} in {self.folder}; unset GTID_AUDIT_MYSQL to use the packaged one"
            )
        options = ["--no-defaults"]
        if self.plugin_folder is not None:
            options.append(f"--plugin-dir={self.plugin_folder}")
        return [*self.loader, str(binary), *options]


def probe_version(mysqld: tuple[str, ...], environment: Mapping[str, str] | None = None) -> Version:
    """Run ``mysqld --version``. Raises ProviderMissing if it does not run or is not MySQL."""
    answer = subprocess.run(
        [*mysqld, "--no-defaults", "--version"],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    found = _VERSION.search(answer.stdout)
    if answer.returncode != 0 or found is None:
        raise ProviderMissing(
            f"{mysqld[-1]} does not run here: {(answer.stderr or answer.stdout).strip()}"
            f"{_library_hint(answer.stderr)}"
        )
    if "MariaDB" in answer.stdout:
        raise ProviderMissing(
            f"{mysqld[-1]} is MariaDB, whose GTIDs have another format; set GTID_AUDIT_MYSQLD "
            f"to a MySQL server"
        )
    return int(found[1]), int(found[2]), int(found[3])


_LIBRARY_PACKAGES = {
    "libcrypt.so.1": "libcrypt1",
    "libstdc++.so.6": "libstdc++6",
    "libgcc_s.so.1": "libgcc-s1",
}


def _library_hint(loader_message: str) -> str:
    for library, package in _LIBRARY_PACKAGES.items():
        if library in loader_message:
            return f"; try: apt-get install {package}"
    return ""


def require_tool(name: str, *, brought_by: str, needed_for: str) -> str:
    """Return the path of a program. Raises ProviderMissing with the command that installs it."""
    found = shutil.which(name)
    if found is None:
        raise ProviderMissing(
            f"{name} is not on PATH and is needed for {needed_for}; try: {brought_by}"
        )
    return found
