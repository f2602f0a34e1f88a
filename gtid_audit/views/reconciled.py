"""What `reconcile` found in a cluster, and what was done about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from topology.catalogue.findings import Finding, Verdict


@dataclass(frozen=True, slots=True)
class WrittenRepair:
    """A plan in its directory; `procedure` if it is being applied."""

    plan: str
    directory: Path
    strategies: tuple[str, ...]
    procedure: str | None = None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What was found in a cluster, and what was done about it."""

    cluster: str
    verdict: Verdict
    found: tuple[Finding, ...]  # above info, in the selected scope
    left: tuple[Finding, ...]  # of these, what is not being applied
    applied: WrittenRepair | None = None
    kept: WrittenRepair | None = None  # for an operator
    why_kept: str = ""
    unread: tuple[str, ...] = ()
    # By finding id: why the plan has no step for it.
    reasons: Mapping[str, str] = field(default_factory=dict)
    compares_definitions: bool = True
