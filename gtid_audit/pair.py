"""Audits one pair in this process: from two DSNs directly to an audit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, warn
from gtid_audit.prompt import ask_password
from gtid_audit.refuse_same_server import refuse_same_servers
from topology.accepted import AcceptedRepair
from topology.adapters.collect import CollectLimits, collect_cluster
from topology.adapters.inventory.accepted_plans import read_accepted
from topology.adapters.inventory.secrets import environment
from topology.adapters.inventory.targets import Accounts, pair_targets
from topology.audit_cluster import audit_cluster
from topology.contents import ContentReading
from topology.contents_to_compare import QUERY_SECONDS_MAX, looked_back, suspects_now
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot
from topology.target import ServerTarget

CLUSTER = "pair"


def targets_of(dsn_a: str, dsn_b: str, *, ask: bool) -> tuple[ServerTarget, ServerTarget]:
    """Return the two servers with their accounts. Raises UsageProblem, InventoryProblem."""
    typed = ask_password() if ask else None
    return pair_targets(dsn_a, dsn_b, Accounts(environment(), warn, typed))


def limits_of(seconds_max: float | None) -> CollectLimits:
    """Return the limits, with the requested time for one server."""
    return CollectLimits() if seconds_max is None else CollectLimits(server_seconds_max=seconds_max)


def policy_of(allowed: Sequence[str], accepted: Sequence[str]) -> Policy:
    """Return a policy from UUIDs and plans as typed. Raises UsageProblem, InventoryProblem."""
    return Policy(
        allowed_uuids=frozenset(map(_uuid, allowed)),
        accepted=read_accepted(map(Path, accepted)) if accepted else (),
    )


@dataclass(frozen=True, slots=True)
class PairAudit:
    """The audit of a pair, with its sources."""

    snapshot: ClusterSnapshot
    contents: ContentReading | None  # None: the content of transactions was not compared
    audit: ClusterAudit


def audit_pair(
    dsn_a: str,
    dsn_b: str,
    *,
    ask: bool,
    seconds_max: float | None,
    policy: Policy,
    content: bool | None = None,
) -> PairAudit:
    """Read both servers and evaluate them. Raises UsageProblem and InventoryProblem.

    `content`: compare the content of transactions, or not; None compares after a recent restart.
    """
    targets = targets_of(dsn_a, dsn_b, ask=ask)
    with progress() as line:
        snapshot = collect_cluster(
            CLUSTER, targets, limits=limits_of(seconds_max), policy=policy, progress=line.say
        )
        refuse_same_servers([snapshot])
        contents = contents_of(snapshot, targets, content, seconds_max, line.say, policy=policy)
    return PairAudit(snapshot, contents, audit_cluster(snapshot.with_contents(contents), policy))


def contents_of(
    snapshot: ClusterSnapshot,
    targets: Sequence[ServerTarget],
    chosen: bool | None,
    seconds_max: float | None,
    say: Callable[[str], None],
    *,
    policy: Policy | None = None,
) -> ContentReading | None:
    """Compare contents if that is due. The modules for it are imported only then.

    If a plan of `policy` undoes rows, these rows are read.
    """
    back = looked_back(snapshot, chosen)
    suspects = suspects_now(snapshot, chosen)
    if not back and not suspects:
        return None
    from topology.adapters.compare_contents import read_contents

    say("comparing the content of transactions")
    limit = QUERY_SECONDS_MAX if seconds_max is None else seconds_max
    reading = read_contents(
        snapshot,
        targets,
        back=back,
        suspects=suspects,
        newest=chosen is True,
        seconds_max=limit,
    ).reading
    accepted = policy.accepted if policy is not None else ()
    return with_undone_rows(reading, accepted, targets, seconds_max=limit)


def with_undone_rows(
    reading: ContentReading | None,
    accepted: Sequence[AcceptedRepair],
    targets: Sequence[ServerTarget],
    *,
    seconds_max: float,
) -> ContentReading | None:
    """Read the rows that accepted plans undo, if there are such plans and a comparison."""
    if reading is None or not any(each.undone for each in accepted):
        return reading
    from repair.adapters.undone_rows import with_equal_rows

    return with_equal_rows(reading, accepted, targets, seconds_max=seconds_max)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UsageProblem("--allow-uuid: not a UUID") from None
