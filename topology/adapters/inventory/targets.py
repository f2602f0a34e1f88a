"""Converts addresses to servers to which gtid-audit can connect: names, accounts, passwords.

This module combines a `Dsn` with its secret. `pair` uses it; fleet_file.py does the same for a
fleet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from topology.adapters.inventory.dsn import SCHEME, Dsn, endpoint_of, parse_dsn
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import (
    Warn,
    account_from_option_file,
    password_from_environment,
)
from topology.readings.target import Secret, ServerTarget


@dataclass(frozen=True, slots=True)
class Accounts:
    """The sources of passwords in this run: see secrets.py for the order."""

    environment: Mapping[str, str]
    warn: Warn
    typed: Secret | None = None

    def target(self, name: str, dsn: Dsn) -> ServerTarget:
        """Return one address with its user and password. Raises InventoryProblem."""
        user, password = dsn.user, None
        if dsn.option_file is not None:
            file_user, password = account_from_option_file(
                dsn.option_file, group=dsn.group, warn=self.warn
            )
            user = user or file_user
        if user is None:
            raise InventoryProblem(
                f"{name}: no user: write mysql://user@… or 'user' in an option file"
            )
        found = self.typed or password or password_from_environment(self.environment)
        return target_of(dsn, name=name, user=user, password=found)


def target_of(dsn: Dsn, *, name: str, user: str, password: Secret) -> ServerTarget:
    """Return the target of an address and an account."""
    return ServerTarget(
        name=name,
        host=dsn.host,
        port=dsn.port,
        user=user,
        password=password,
        unix_socket=dsn.unix_socket,
        ssl_ca=dsn.ssl_ca,
        ssl_cert=dsn.ssl_cert,
        ssl_key=dsn.ssl_key,
        ssl_required=dsn.ssl_required,
        enable_cleartext_plugin=dsn.enable_cleartext_plugin,
        get_server_public_key=dsn.get_server_public_key,
    )


def dsn_of(target: ServerTarget) -> str:
    """Return the DSN that leads to a target, without its password."""
    options = {
        "unix_socket": target.unix_socket,
        "ssl": "required" if target.ssl_required else None,
        "ssl_ca": target.ssl_ca,
        "ssl_cert": target.ssl_cert,
        "ssl_key": target.ssl_key,
        "enable_cleartext_plugin": "1" if target.enable_cleartext_plugin else None,
        "get_server_public_key": "1" if target.get_server_public_key else None,
    }
    query = "&".join(f"{name}={quote(value)}" for name, value in options.items() if value)
    address = endpoint_of(host=target.host, port=target.port, unix_socket=None)
    return f"{SCHEME}{quote(target.user, safe='')}@{address}/{f'?{query}' if query else ''}"


def targets_of(dsns: Sequence[str], accounts: Accounts) -> tuple[ServerTarget, ...]:
    """Return servers with their addresses as names, in this order. Raises InventoryProblem."""
    parsed = [_parsed(str(number), text) for number, text in enumerate(dsns, start=1)]
    seen: set[object] = set()
    for each in parsed:
        if each.identity in seen:
            raise InventoryProblem(f"two DSNs refer to the same server: {each.endpoint}")
        seen.add(each.identity)
    return tuple(accounts.target(each.endpoint, each) for each in parsed)


def pair_targets(dsn_a: str, dsn_b: str, accounts: Accounts) -> tuple[ServerTarget, ServerTarget]:
    """Return the two servers of a pair, with their addresses as names. Raises InventoryProblem."""
    first, second = _parsed("A", dsn_a), _parsed("B", dsn_b)
    if first.identity == second.identity:
        raise InventoryProblem("both DSNs refer to the same server")
    return accounts.target(first.endpoint, first), accounts.target(second.endpoint, second)


def _parsed(which: str, text: str) -> Dsn:
    try:
        return parse_dsn(text)
    except InventoryProblem as problem:
        raise InventoryProblem(str(problem).replace("the DSN", f"DSN {which}", 1)) from None
