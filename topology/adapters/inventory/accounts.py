"""Servers whose account is not looked up yet: the source of user and password, not their values.

1. Nothing here is a secret until `look_up` is called. That may happen on another machine than the
   one that read the fleet file.
2. secrets.py defines the order in which the sources of a password are used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topology.adapters.inventory.dsn import Dsn
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import (
    Warn,
    account_from_option_file,
    password_from_environment,
    password_from_variable,
)
from topology.adapters.inventory.targets import target_of
from topology.readings.target import Secret, ServerTarget

NO_USER: Final = "no user, neither here nor in an option file nor in the defaults"


@dataclass(frozen=True, slots=True)
class AccountSource:
    """The source of one server's account."""

    user: str | None = None  # set for the server; precedes the option file
    user_default: str | None = None  # set in the defaults; follows the option file
    env: str | None = None
    option_file: str | None = None
    group: str | None = None

    def look_up(self, *, environment: Mapping[str, str], warn: Warn) -> tuple[str | None, Secret]:
        """Return the user, None if no source has one, and the password. Raises InventoryProblem."""
        file_user: str | None = None
        password: Secret | None = None
        if self.env is not None:
            password = password_from_variable(self.env, environment)
        elif self.option_file is not None:
            file_user, password = account_from_option_file(
                self.option_file, group=self.group, warn=warn
            )
        user = self.user or file_user or self.user_default
        return user, password or password_from_environment(environment)


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of a fleet file: its name, its address, and the source of its account."""

    name: str
    dsn: Dsn
    account: AccountSource

    def target(self, *, environment: Mapping[str, str], warn: Warn) -> ServerTarget:
        """Return the address with its account, looked up now. Raises InventoryProblem."""
        user, password = self.account.look_up(environment=environment, warn=warn)
        if user is None:
            raise InventoryProblem(NO_USER)
        return target_of(self.dsn, name=self.name, user=user, password=password)

    def target_without_account(self) -> ServerTarget:
        """Return the target of a server to which no connection can be made."""
        return target_of(self.dsn, name=self.name, user="", password=Secret(""))
