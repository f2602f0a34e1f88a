"""Finds passwords: environment, option file, prompt. It returns each as a `Secret`.

1. The order is: the input at the prompt; the option file in the DSN or the configuration;
   GTID_AUDIT_PASSWORD; MYSQL_PWD; the empty password.
2. It reads only a file that the operator specified, never ~/.my.cnf.
3. No message repeats a line of an option file.
"""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from topology.adapters.inventory.option_file import (
    GROUPS_DEFAULT,
    OptionFileProblem,
    read_option_file,
)
from topology.adapters.inventory.problem import InventoryProblem
from topology.readings.target import NO_PASSWORD, Secret

ENVIRONMENT: Final = ("GTID_AUDIT_PASSWORD", "MYSQL_PWD")

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


def password_from_environment(environment: Mapping[str, str]) -> Secret:
    """Return the password of the environment; the empty one if no variable has it."""
    for name in ENVIRONMENT:
        if name in environment:
            return Secret(environment[name])
    return NO_PASSWORD


def password_from_variable(name: str, environment: Mapping[str, str]) -> Secret:
    """Return the password in one named variable. Raises InventoryProblem if it is not set."""
    if name not in environment:
        raise InventoryProblem(f"the environment variable {name} is not set")
    return Secret(environment[name])


def account_from_option_file(
    file: str, *, group: str | None, warn: Warn
) -> tuple[str | None, Secret | None]:
    """Return user and password of an option file, None for what it does not contain.

    Without a group, [client] and then [gtid-audit] are read; with one, only that.

    Raises:
        InventoryProblem: the file cannot be read, is writable by any user, or has no such group.
    """
    try:
        path = Path(file).expanduser()
    except RuntimeError:  # a process without a home directory, as on a cluster's executors
        raise InventoryProblem(f"{file}: no home directory is known to this process") from None
    _look_at_mode(path, warn)
    groups = (group,) if group is not None else GROUPS_DEFAULT
    try:
        found = read_option_file(path, groups=groups)
    except OptionFileProblem as problem:
        raise InventoryProblem(str(problem)) from problem
    if group is not None and group not in found.groups:
        there = ", ".join(f"[{name}]" for name in found.groups) or "none"
        raise InventoryProblem(f"{path}: no group [{group}]; groups in the file: {there}")
    password = found.values.get("password")
    return found.values.get("user"), None if password is None else Secret(password)


def environment() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ


def _look_at_mode(path: Path, warn: Warn) -> None:
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
