"""Reads the files that give accounts and TLS settings, each once, however many servers share it.

1. A file that was named (option_file, login_path, password_file) must be there, and must be valid.
2. The files of the user, `~/.my.cnf` and `~/.mylogin.cnf`, are read as the mysql client reads them:
   they need not be there, and one that any user could have changed is ignored, with a warning.
   GTID_AUDIT_DEFAULTS_FILE names another file instead of the first; empty: none.
3. Of the groups, [client] and [mysql] count in the order of their lines, and [gtid-audit] before
   both. Of a login file, [client], [mysql] and the login path count in the order of their lines.
4. Certificates are checked here, before any connection. Otherwise the first audit would report a
   server as unreachable.
"""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from topology.adapters.inventory.login_file import login_file_path, read_login_file
from topology.adapters.inventory.option_file import (
    OptionFile,
    OptionFileProblem,
    read_option_file,
)
from topology.adapters.inventory.option_meanings import NO_OPTIONS, ClientOptions, options_of
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import (
    Warn,
    WarnOnce,
    expanded,
    look_at_mode,
    password_from_file,
)
from topology.adapters.inventory.tls_choice import TlsChoice
from topology.adapters.tls_contexts import EncryptedKey, show_certificate, trust
from topology.readings.target import Secret

GROUPS: Final = ("client", "mysql")
OWN_GROUP: Final = "gtid-audit"
DEFAULTS_FILE: Final = "GTID_AUDIT_DEFAULTS_FILE"


class AccountFiles:
    """The files that were read for one command, and what they say."""

    def __init__(self, environment: Mapping[str, str], warn: Warn) -> None:
        self.environment = environment
        self.warn: Warn = WarnOnce(warn)
        self._named: dict[tuple[str, str | None], ClientOptions] = {}
        self._login_paths: dict[str, ClientOptions] = {}
        self._passwords: dict[str, Secret] = {}
        self._defaults: ClientOptions | None = None
        self._checked: dict[TlsChoice, str] = {}  # why its files cannot be used; empty: they can

    def option_file(self, file: str, *, group: str | None) -> ClientOptions:
        """Return what an option file says, with a group only that one. Raises InventoryProblem."""
        if (file, group) not in self._named:
            path = expanded(file)
            with _Problems():
                found = read_option_file(path, check=lambda each: look_at_mode(each, self.warn))
                if group is not None and group not in found.groups:
                    raise InventoryProblem(
                        f"{path}: no group [{group}]; {_listed(found, 'groups')}"
                    )
                self._named[file, group] = self._meaning(found, group)
        return self._named[file, group]

    def login_path(self, name: str) -> ClientOptions:
        """Return what a login path says, and the default ones with it. Raises InventoryProblem."""
        if name not in self._login_paths:
            path = login_file_path(self.environment)
            if path is None:
                raise InventoryProblem(f"login path {name}: HOME is not set")
            with _Problems():
                found = read_login_file(path)
                if name not in found.groups:
                    raise InventoryProblem(
                        f"{path}: no login path {name}; {_listed(found, 'login paths')}"
                    )
                lines = found.lines_of((*GROUPS, name))
                self._login_paths[name] = options_of(lines, warn=self.warn)
        return self._login_paths[name]

    def password(self, file: str) -> Secret:
        """Return the password in a file of its own. Raises InventoryProblem."""
        if file not in self._passwords:
            self._passwords[file] = password_from_file(file, warn=self.warn)
        return self._passwords[file]

    def defaults(self) -> ClientOptions:
        """Return what the files of the user say. Raises InventoryProblem for a malformed one."""
        if self._defaults is None:
            self._defaults = self._default_login_file().over(self._default_option_file())
        return self._defaults

    def check_tls(self, choice: TlsChoice) -> None:
        """Raise InventoryProblem if a file of certificates cannot be used, with its name."""
        if choice not in self._checked:
            try:
                _try_certificates(choice)
                self._checked[choice] = ""
            except InventoryProblem as problem:
                self._checked[choice] = str(problem)
        if text := self._checked[choice]:
            raise InventoryProblem(text)

    def _meaning(self, found: OptionFile, group: str | None) -> ClientOptions:
        if group is not None:
            return options_of(found.lines_of((group,)), warn=self.warn)
        own = options_of(found.lines_of((OWN_GROUP,)), warn=self.warn)
        return own.over(options_of(found.lines_of(GROUPS), warn=self.warn))

    def _default_option_file(self) -> ClientOptions:
        if DEFAULTS_FILE in self.environment:
            named = self.environment[DEFAULTS_FILE]
            return self.option_file(named, group=None) if named else NO_OPTIONS
        home = self.environment.get("HOME")
        path = Path(home) / ".my.cnf" if home else None
        if path is None or not self._is_usable(path, lambda: look_at_mode(path, self.warn)):
            return NO_OPTIONS
        return self.option_file(str(path), group=None)

    def _default_login_file(self) -> ClientOptions:
        path = login_file_path(self.environment)
        if path is None or not self._is_usable(path, lambda: None):
            return NO_OPTIONS
        try:
            found = read_login_file(path)
        except OptionFileProblem as problem:
            self.warn(f"{problem}; it is ignored")
            return NO_OPTIONS
        with _Problems():
            return options_of(found.lines_of(GROUPS), warn=self.warn)

    def _is_usable(self, path: Path, check: Callable[[], None]) -> bool:
        """Return whether a file of the user is there, and may be read; warn if it may not."""
        try:
            path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            self.warn(f"{path}: {error.strerror or error}; it is ignored")
            return False
        try:
            check()
        except InventoryProblem as problem:
            self.warn(f"{problem}; it is ignored")
            return False
        return True


class _Problems:
    """Turns problems of option files into those of the inventory."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OptionFileProblem):
            raise InventoryProblem(str(error)) from error


def _listed(found: OptionFile, what: str) -> str:
    there = ", ".join(f"[{name}]" for name in found.groups) or "none"
    return f"{what} in the file: {there}"


def _try_certificates(choice: TlsChoice) -> None:
    """Load the files of a settled choice as a connection would. Raises InventoryProblem."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name, file in (("ssl_ca", choice.ca), ("ssl_cert", choice.cert), ("ssl_key", choice.key)):
        if file is not None:
            _try_to_open(name, file)
    if choice.ca is not None:
        try:
            trust(context, choice.ca)
        except ssl.SSLError:
            raise InventoryProblem(f"ssl_ca: {choice.ca}: contains no certificate (PEM)") from None
    if choice.cert is not None:
        assert choice.key is not None, "a settled choice has both"
        try:
            show_certificate(context, cert=choice.cert, key=choice.key)
        except EncryptedKey as problem:
            raise InventoryProblem(f"ssl_key: {problem}") from None
        except ssl.SSLError as error:
            reason = (error.reason or "not PEM").replace("_", " ").lower()
            raise InventoryProblem(
                f"ssl_cert: {choice.cert}, ssl_key: {choice.key}: not a certificate and its key"
                f" (PEM): {reason}"
            ) from None


def _try_to_open(name: str, file: str) -> None:
    try:
        with Path(file).open("rb") as opened:
            opened.read(1)
    except OSError as error:
        raise InventoryProblem(f"{name}: {file}: {error.strerror or error}") from None
