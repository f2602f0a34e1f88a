"""Makes clusters of the arguments of the Python interface: DSNs, or a fleet file."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import UUID

from gtid_audit.api.api_errors import warn_caller
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_of_dsns import CLUSTER, SERVERS
from gtid_audit.operands.cluster_to_read import ClusterToRead
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.fleet import Fleet
from topology.adapters.inventory.secrets import environment
from topology.adapters.inventory.targets import Accounts, targets_of
from topology.catalogue.findings import Unknown
from topology.policy import Policy
from topology.readings.target import Secret, ServerTarget

TIMEOUT_SECONDS_MAX: Final = 3600.0
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class RequestedServers:
    """Servers by DSN, and what a fleet file would say about them."""

    dsns: tuple[str, ...]
    password: Secret | None
    timeout_seconds: float | None
    allowed_uuids: frozenset[UUID] = frozenset()

    def refuse_settings(self) -> None:
        """Raise UsageProblem if there are settings without servers."""
        refuse(
            "is for DSNs",
            password=self.password,
            timeout_seconds=self.timeout_seconds,
            allowed_uuids=self.allowed_uuids,
        )

    def to_read(self) -> ClusterToRead:
        """Return the servers with their accounts. Raises UsageProblem, InventoryProblem."""
        name = CLUSTER if len(self.dsns) == _PAIR else SERVERS
        targets = targets_of(self.dsns, accounts_of(self.password))
        policy = Policy(allowed_uuids=self.allowed_uuids)
        seconds = checked_seconds(self.timeout_seconds)
        if seconds is None:
            return ClusterToRead(name, targets, CollectLimits(), policy)
        limits = CollectLimits(server_seconds_max=seconds)
        return ClusterToRead(name, targets, limits, policy, seconds)

    def discovered(self, say: Callable[[str], None]) -> tuple[ClusterToRead, tuple[Unknown, ...]]:
        """Return the servers that are linked with these, and what could not be found out.

        Raises UsageProblem, InventoryProblem.
        """
        from topology.adapters.discover import discover, live_answers

        starts = replace(self.to_read(), name=SERVERS)
        answers = live_answers(starts.limits.server_seconds_max)
        found = discover(starts.targets, ask=answers, say=say)
        return replace(starts, targets=found.targets), found.unknown(starts.name)


def requested_servers(
    dsns: Sequence[str],
    *,
    password: str | None,
    timeout_seconds: float | None,
    allowed_uuids: Iterable[UUID | str] = (),
) -> RequestedServers:
    """Check the arguments. Raises UsageProblem."""
    return RequestedServers(
        tuple(dsns),
        None if password is None else Secret(password),
        timeout_seconds,
        frozenset(map(_uuid, allowed_uuids)),
    )


def one_of(**sources: object) -> str:
    """Return the name of the only argument that was given. Raises UsageProblem."""
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise UsageProblem(
            f"expected one of {', '.join(sources)}, found {' and '.join(given) or 'none'}"
        )
    return given[0]


def refuse(reason: str, **arguments: object) -> None:
    """Raise UsageProblem for an argument that was given and has no meaning here."""
    for name, value in arguments.items():
        if value not in (None, False, (), frozenset()):
            raise UsageProblem(f"{name} {reason}")


def fleet_of(path: str | Path, cluster: str | None) -> Fleet:
    """Read a fleet file, or one cluster of it. Raises InventoryProblem."""
    from topology.adapters.inventory.fleet_file import load_fleet

    return load_fleet(
        Path(path).expanduser(), environment=environment(), warn=warn_caller, cluster=cluster
    )


def accounts_of(password: Secret | None) -> Accounts:
    """Return where passwords come from: the argument, option files, the environment."""
    return Accounts(environment(), warn_caller, password)


def target_of_dsn(dsn: str, password: Secret | None) -> ServerTarget:
    """Return one server with its account. Raises InventoryProblem."""
    [target] = targets_of((dsn,), accounts_of(password))
    return target


def checked_seconds(seconds: float | None) -> float | None:
    """Return a time limit in seconds, unchanged. Raises UsageProblem."""
    if seconds is not None and not 0 < seconds <= TIMEOUT_SECONDS_MAX:  # also rejects nan
        raise UsageProblem(
            f"timeout_seconds: expected more than 0 and at most {TIMEOUT_SECONDS_MAX:.0f} seconds"
        )
    return seconds


def _uuid(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except ValueError:
        raise UsageProblem("allowed_uuids: not a UUID") from None
