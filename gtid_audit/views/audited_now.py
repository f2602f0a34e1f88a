"""The audit of a cluster together with its readings: what the service keeps, and answers from."""

from dataclasses import dataclass

from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class AuditedNow:
    """One audit of a cluster, what was read for it, and the policy that evaluated it."""

    audit: ClusterAudit
    snapshot: ClusterSnapshot  # with compared contents and definitions
    policy: Policy
