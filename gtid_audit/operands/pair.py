"""Makes a cluster of two DSNs, from the command line alone."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.operands.prompt import ask_password
from gtid_audit.output import warn
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.accepted_plans import read_accepted
from topology.adapters.inventory.secrets import environment
from topology.adapters.inventory.targets import Accounts, pair_targets
from topology.policy import Policy

CLUSTER = "pair"


def pair_to_read(
    dsn_a: str, dsn_b: str, *, ask: bool, seconds_max: float | None, policy: Policy
) -> ClusterToRead:
    """Return the two servers with their accounts. Raises UsageProblem, InventoryProblem.

    `seconds_max` is the requested time for one server; None: the defaults.
    """
    typed = ask_password() if ask else None
    targets = pair_targets(dsn_a, dsn_b, Accounts(environment(), warn, typed))
    if seconds_max is None:
        return ClusterToRead(CLUSTER, targets, CollectLimits(), policy)
    limits = CollectLimits(server_seconds_max=seconds_max)
    return ClusterToRead(CLUSTER, targets, limits, policy, seconds_max)


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
