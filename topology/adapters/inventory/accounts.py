"""Servers whose account is not looked up yet: the source of user and password, not their values.

1. Nothing here is a secret until `target` is called. That may happen on another machine than the
   one that read the fleet file.
2. A fleet file has the addresses of its servers. A file that it names gives user, password and what
   the fleet file leaves out about TLS. The files of the user (~/.my.cnf) do not count: the audit of
   a fleet must not depend on who runs it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.dsn import Dsn
from topology.adapters.inventory.option_meanings import NO_OPTIONS, ClientOptions
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import (
    Warn,
    password_from_environment,
    password_from_variable,
)
from topology.adapters.inventory.targets import target_of
from topology.readings.target import NO_PASSWORD, Secret, ServerTarget

NO_USER: Final = "no user, neither here nor in an option file nor in the defaults"


class NoUser(InventoryProblem):
    """No source has the user of a server."""


class TlsProblem(InventoryProblem):
    """The TLS settings of a server cannot be used."""


@dataclass(frozen=True, slots=True)
class AccountSource:
    """The source of one server's account; at most one of the four that have a password."""

    user: str | None = None  # set for the server; precedes the option file
    user_default: str | None = None  # set in the defaults; follows the option file
    env: str | None = None
    option_file: str | None = None
    group: str | None = None
    login_path: str | None = None
    password_file: str | None = None

    def look_up(self, files: AccountFiles) -> tuple[str, Secret, ClientOptions]:
        """Return the user, the password, and the options of the file. Raises InventoryProblem."""
        found = NO_OPTIONS
        password: Secret | None = None
        if self.env is not None:
            password = password_from_variable(self.env, files.environment)
        elif self.password_file is not None:
            password = files.password(self.password_file)
        elif self.option_file is not None:
            found = files.option_file(self.option_file, group=self.group)
        elif self.login_path is not None:
            found = files.login_path(self.login_path)
        user = self.user or found.user or self.user_default
        if user is None:
            raise NoUser(NO_USER)
        password = password or found.password_or_problem()
        return user, password or password_from_environment(files.environment) or NO_PASSWORD, found


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of a fleet file: its name, its address, and the source of its account."""

    name: str
    dsn: Dsn
    account: AccountSource

    def target(self, files: AccountFiles) -> ServerTarget:
        """Return the address with its account, looked up now.

        Raises:
            InventoryProblem: the account cannot be looked up. NoUser and TlsProblem are such.
        """
        user, password, found = self.account.look_up(files)
        try:
            tls = self.dsn.tls.with_mode().over(found.tls).settled()
            files.check_tls(tls)
        except InventoryProblem as problem:
            raise TlsProblem(str(problem)) from None
        return target_of(self.dsn, tls, name=self.name, user=user, password=password)

    def target_without_account(self) -> ServerTarget:
        """Return the target of a server to which no connection is made."""
        return ServerTarget(
            self.name, self.dsn.host, self.dsn.port, user="", unix_socket=self.dsn.unix_socket
        )


def look_up_accounts(
    environment: Mapping[str, str], warn: Warn
) -> Callable[[ServerEntry], ServerTarget]:
    """Return what completes a server with its account; each file is read once for all of them."""
    files = AccountFiles(environment, warn)
    return lambda entry: entry.target(files)
