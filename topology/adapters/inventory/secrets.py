"""Finds passwords in the environment and in files of their own. It returns each as a `Secret`.

1. The order of all sources is that of targets.py (for a DSN) and accounts.py (for a fleet file).
2. No message repeats a part of a file.
"""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from topology.adapters.inventory.problem import InventoryProblem
from topology.readings.target import Secret

ENVIRONMENT: Final = ("GTID_AUDIT_PASSWORD", "MYSQL_PWD")
PASSWORD_BYTES_MAX: Final = 4096

Warn = Callable[[str], None]


class WarnOnce:
    """Prints each warning once, even if many servers share an option file."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        """Print a warning, once for each text."""
        if text not in self._said:
            self._said.add(text)
            self._warn(text)


def password_from_environment(environment: Mapping[str, str]) -> Secret | None:
    """Return the password of the environment; None if no variable has one."""
    for name in ENVIRONMENT:
        if name in environment:
            return Secret(environment[name])
    return None


def password_from_variable(name: str, environment: Mapping[str, str]) -> Secret:
    """Return the password in one named variable. Raises InventoryProblem if it is not set."""
    if name not in environment:
        raise InventoryProblem(f"the environment variable {name} is not set")
    return Secret(environment[name])


def password_from_file(file: str, *, warn: Warn) -> Secret:
    """Return the password that is the content of a file, without the end of its line.

    Such files are the secrets of Docker, Kubernetes and systemd. Blanks belong to the password.

    Raises:
        InventoryProblem: the file cannot be read, is writable by any user, is empty, or has more
            than one line.
    """
    path = expanded(file)
    look_at_mode(path, warn)
    try:
        with path.open("rb") as opened:
            content = opened.read(PASSWORD_BYTES_MAX + 2)
    except OSError as error:
        raise InventoryProblem(f"{path}: {error.strerror or error}") from error
    line = content.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) > PASSWORD_BYTES_MAX:
        raise InventoryProblem(f"{path}: longer than {PASSWORD_BYTES_MAX:,} bytes")
    if not line:
        raise InventoryProblem(f"{path}: is empty; expected a password")
    if b"\n" in line or b"\0" in line:
        raise InventoryProblem(f"{path}: expected one line with the password, and nothing else")
    try:
        return Secret(line.decode())
    except UnicodeDecodeError:
        raise InventoryProblem(f"{path}: not UTF-8") from None


def environment() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ


def expanded(file: str) -> Path:
    """Return a path in which `~` is the home directory. Raises InventoryProblem without one."""
    try:
        return Path(file).expanduser()
    except RuntimeError:  # a process without a home directory, as on a cluster's executors
        raise InventoryProblem(f"{file}: no home directory is known to this process") from None


def look_at_mode(path: Path, warn: Warn) -> None:
    """Refuse a file that any user can write, and warn of one that any user can read.

    A group may read it: that is how Kubernetes (fsGroup) and systemd pass secrets to a user. Raises
    InventoryProblem.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InventoryProblem(f"{path}: {error.strerror or error}") from error
    if not stat.S_ISREG(mode):
        raise InventoryProblem(f"{path}: not a regular file")
    # The server's own clients ignore such a file (mysys/my_default.cc). Ignoring it here would lead
    # to an "access denied" error without a visible cause.
    if mode & stat.S_IWOTH:
        raise InventoryProblem(
            f"{path}: every user of this machine can change it; run `chmod 600` on it"
        )
    if mode & stat.S_IROTH:
        warn(f"{path}: every user of this machine can read it; run `chmod 600` on it")
