"""Which servers may keep the version of rows that a plan replaces (E4), where no audit reports it.

`data_repair` writes the version of one server on another, without logging it. Servers below the
other one got the transactions from there, or will, and so its version. Their logs agree with the
log of the server above, which no step changes. So no later audit reports that their rows differ by
then: the plan lists them, and its exit status and that of `repair apply` are not 0.

A server does not count if a step of the plan writes the same version there. In a ring the servers
below are those above as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from repair.model.strategy_case import UNREPORTED
from repair.plan_parts import DATA_REPAIR
from repair.repair_plan import Plan
from topology.catalogue.findings import ClusterAudit, Finding
from topology.facts.graph import build_graph
from topology.readings.snapshot import ClusterSnapshot

_REASON: Final = (
    "{servers} got {gtids} through {replica}, or will, and may have the version that is replaced,"
    " which no step changes there. Compare these rows on {servers} with"
    " {source} (`repair check-data`)"
)


def with_replaced_below(plan: Plan, audit: ClusterAudit, snapshot: ClusterSnapshot) -> Plan:
    """Return a plan that lists the servers below its steps that may keep the replaced version."""
    found = _unreported(plan, audit, snapshot)
    return replace(plan, warnings=(*plan.warnings, *(f"{UNREPORTED}{each}" for each in found)))


def _unreported(plan: Plan, audit: ClusterAudit, snapshot: ClusterSnapshot) -> Iterator[str]:
    written = {
        each.finding_id for each in plan.answered if each.strategy == DATA_REPAIR and each.steps
    }
    repaired = [each for each in audit.findings if each.id in written]
    graph = build_graph(snapshot)
    for finding in repaired:
        assert finding.replica is not None, "different content is between two servers"
        left = sorted(
            name
            for name in graph.below(finding.replica)
            if name != finding.source and not _is_written(finding, name, repaired)
        )
        if left:
            yield _REASON.format(
                servers=", ".join(left),
                gtids=finding.gtid_set.shortened(),
                replica=finding.replica,
                source=finding.source,
            )


def _is_written(finding: Finding, name: str, repaired: Sequence[Finding]) -> bool:
    """Return whether the plan writes the same version of these transactions' rows on a server."""
    return any(
        (each.source, each.replica) == (finding.source, name) and finding.gtid_set <= each.gtid_set
        for each in repaired
    )
