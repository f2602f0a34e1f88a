"""Servers whose account is still to be looked up: where user and password are, not what they are.

1. Nothing here is a secret until `look_up` is called, and it may be called on another machine than
   the one that read the fleet file.
2. The order in which places are asked is that of secrets.py.
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
from topology.target import Secret, ServerTarget

NO_USER: Final = "no user: not here, not in an option file, not in the defaults"


@dataclass(frozen=True, slots=True)
class AccountSource:
    """Where the account of one server is."""

    user: str | None = None  # the server's own word, before the option file's
    user_default: str | None = None  # the defaults' word, after it
    env: str | None = None
    option_file: str | None = None
    group: str | None = None

    def look_up(self, *, environment: Mapping[str, str], warn: Warn) -> tuple[str | None, Secret]:
        """Return user, None if nobody names one, and password. Raises InventoryProblem."""
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
    """One server of a fleet file: its name, its address, and where its account is."""

    name: str
    dsn: Dsn
    account: AccountSource

    def target(self, *, environment: Mapping[str, str], warn: Warn) -> ServerTarget:
        """Look up the account and put it to the address. Raises InventoryProblem."""
        user, password = self.account.look_up(environment=environment, warn=warn)
        if user is None:
            raise InventoryProblem(NO_USER)
        return target_of(self.dsn, name=self.name, user=user, password=password)

    def target_without_account(self) -> ServerTarget:
        """Return what can be said of a server nobody can connect to."""
        return target_of(self.dsn, name=self.name, user="", password=Secret(""))
