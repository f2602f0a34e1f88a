"""Which servers may keep the version of rows that a plan replaces (E4), where no audit reports it.

`data_repair` writes the version of one server on another, without logging it, and so does
`data_repair_on_source` the other way. Servers below the other one got the transactions from there,
or will, and so its version. Their logs agree with the log of the server above, which no step
changes. So no later audit reports that their rows differ by then: the plan lists them, and its exit
status and that of `repair apply` are not 0.

A server does not count if a step of the plan writes the same version there, or if all its ways from
that server lead through the one whose version is written. In a ring the servers below are those
above as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from repair.model.strategy_case import UNREPORTED
from repair.plan_parts import ROWS_ALIKE
from repair.repair_plan import Plan
from topology.catalogue.findings import ClusterAudit, Finding
from topology.facts.graph import Graph, build_graph
from topology.readings.snapshot import ClusterSnapshot

_REASON: Final = (
    "{servers} got {gtids} through {to}, or will, and may have the version that is replaced,"
    " which no step changes there. Compare these rows on {servers} with"
    " {of} (`repair check-data`)"
)


@dataclass(frozen=True, slots=True)
class _Written:
    """Whose version of a finding's rows the plan writes, and where."""

    finding: Finding
    of: str
    to: str


def with_replaced_below(plan: Plan, audit: ClusterAudit, snapshot: ClusterSnapshot) -> Plan:
    """Return a plan that lists the servers below its steps that may keep the replaced version."""
    found = _unreported(plan, audit, snapshot)
    return replace(plan, warnings=(*plan.warnings, *(f"{UNREPORTED}{each}" for each in found)))


def _unreported(plan: Plan, audit: ClusterAudit, snapshot: ClusterSnapshot) -> Iterator[str]:
    graph, repaired = build_graph(snapshot), [*_written(plan, audit)]
    for each in repaired:
        left = sorted(
            name
            for name in _below(graph, each.to, apart_from=each.of)
            if not _is_written(each, name, repaired)
        )
        if left:
            gtids = each.finding.gtid_set.shortened()
            yield _REASON.format(servers=", ".join(left), gtids=gtids, to=each.to, of=each.of)


def _written(plan: Plan, audit: ClusterAudit) -> Iterator[_Written]:
    findings = {each.id: each for each in audit.findings}
    for answered in plan.answered:
        if answered.strategy not in ROWS_ALIKE or not answered.steps:
            continue
        finding = findings[answered.finding_id]
        source, replica = finding.source, finding.replica
        assert source is not None, "different content is between two servers"
        assert replica is not None, "different content is between two servers"
        is_on_replica = answered.strategy == "data_repair"
        of, to = (source, replica) if is_on_replica else (replica, source)
        yield _Written(finding, of, to)


def _below(graph: Graph, name: str, *, apart_from: str) -> Iterator[str]:
    """Yield the servers that receive from a server on a way that does not lead through another."""
    found, frontier = {name, apart_from}, [name]
    while frontier:
        for edge in graph.out_of(frontier.pop()):
            if edge.replica not in found:
                found.add(edge.replica)
                frontier.append(edge.replica)
                yield edge.replica


def _is_written(of: _Written, name: str, repaired: Sequence[_Written]) -> bool:
    """Return whether the plan writes the same version of these transactions' rows on a server."""
    return any(
        (each.of, each.to) == (of.of, name) and of.finding.gtid_set <= each.finding.gtid_set
        for each in repaired
    )
