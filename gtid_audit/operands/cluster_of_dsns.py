"""Makes a cluster of DSNs: a pair, any number of servers, or those found from one server."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.operands.user_accounts import accounts_of_user
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.accepted_plans import read_accepted
from topology.adapters.inventory.targets import pair_targets, targets_of
from topology.policy import Policy
from topology.readings.target import ServerTarget

if TYPE_CHECKING:
    from topology.adapters.discover import Discovery

CLUSTER = "pair"
PAIR = 2  # servers
SERVERS = "servers"


def pair_to_read(
    dsn_a: str, dsn_b: str, *, ask: bool, seconds_max: float | None, policy: Policy
) -> ClusterToRead:
    """Return the two servers with their accounts. Raises UsageProblem, InventoryProblem.

    `seconds_max` is the requested time for one server; None: the defaults.
    """
    targets = pair_targets(dsn_a, dsn_b, accounts_of_user(ask=ask))
    return _to_read(CLUSTER, targets, seconds_max, policy)


def servers_to_read(
    dsns: Sequence[str], *, ask: bool, seconds_max: float | None, policy: Policy
) -> ClusterToRead:
    """Return the servers with their accounts. Raises UsageProblem, InventoryProblem."""
    return _to_read(SERVERS, targets_of(dsns, accounts_of_user(ask=ask)), seconds_max, policy)


def cluster_of_dsns(
    dsns: Sequence[str], *, ask: bool, seconds_max: float | None, policy: Policy
) -> ClusterToRead:
    """Return two servers as a pair, more of them as they are. Raises as the functions above."""
    if len(dsns) == PAIR:
        first, second = dsns
        return pair_to_read(first, second, ask=ask, seconds_max=seconds_max, policy=policy)
    return servers_to_read(dsns, ask=ask, seconds_max=seconds_max, policy=policy)


def found_from(
    starts: ClusterToRead, *, say: Callable[[str], None]
) -> "tuple[ClusterToRead, Discovery]":
    """Return the servers of a topology, found from some of them, and how they were found."""
    from topology.adapters.discover import discover, live_answers

    ask_server = live_answers(starts.limits.server_seconds_max)
    found = discover(starts.targets, ask=ask_server, say=say)
    return replace(starts, targets=found.targets), found


def _to_read(
    name: str, targets: tuple[ServerTarget, ...], seconds_max: float | None, policy: Policy
) -> ClusterToRead:
    if seconds_max is None:
        return ClusterToRead(name, targets, CollectLimits(), policy)
    limits = CollectLimits(server_seconds_max=seconds_max)
    return ClusterToRead(name, targets, limits, policy, seconds_max)


def policy_of(allowed: Sequence[str], accepted: Sequence[str]) -> Policy:
    """Return a policy from UUIDs and plans as typed. Raises UsageProblem, InventoryProblem."""
    return Policy(
        allowed_uuids=frozenset(map(_uuid, allowed)),
        accepted=read_accepted(map(Path, accepted)) if accepted else (),
    )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UsageProblem("--allow-uuid: not a UUID") from None
