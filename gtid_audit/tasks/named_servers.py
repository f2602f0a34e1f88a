"""Audits one cluster of servers that were named on the command line, or found from one of them."""

from collections.abc import Callable
from dataclasses import replace

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.audited_cluster import read_and_audit
from gtid_audit.tasks.kept_history import KeptHistory
from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.report import Engine, report_of
from topology.catalogue.findings import ClusterAudit, Unknown, verdict_of


def answer_of_servers(
    to_read: ClusterToRead,
    *,
    content: bool | None,
    definitions: bool,
    say: Callable[[str], None],
    also_unknown: tuple[Unknown, ...] = (),
    history: KeptHistory | None = None,
) -> InMemory:
    """Read the servers and evaluate them as one cluster. Raises UsageProblem.

    `content` and `definitions` are as in audited_cluster.py. `also_unknown` is what the discovery
    of the servers left open; it makes the verdict UNKNOWN unless something is critical. `history`
    is where findings are recorded and looked up, and what the next audit must compare.
    """
    names = [each.name for each in to_read.targets]
    memory = None if history is None else history.memory_of_servers(to_read.name, names)
    done = read_and_audit(to_read, content=content, definitions=definitions, say=say, memory=memory)
    report = report_of(Engine.LOCAL, [_with_unknown(done.audit, also_unknown)])
    if history is not None:
        report = history.dated_report(report)
    compared = {} if done.contents is None else {to_read.name: done.contents}
    return InMemory(
        report,
        (done.snapshot,),
        None if content is False else compared,
        definitions={to_read.name: done.definitions} if done.definitions is not None else None,
    )


def _with_unknown(audit: ClusterAudit, others: tuple[Unknown, ...]) -> ClusterAudit:
    if not others:
        return audit
    unknown = tuple(sorted({*audit.unknown, *others}))
    verdict = verdict_of(findings=audit.findings, unknown=unknown)
    return replace(audit, unknown=unknown, verdict=verdict)
