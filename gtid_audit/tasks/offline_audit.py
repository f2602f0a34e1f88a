"""Audits one cluster from pasted output: servers that gtid-audit cannot reach.

The rules and the report are those of a live audit. Two things cannot be pasted: the binary logs,
and so the content of transactions. Where a live audit would have read them, they are unread here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.offline_text import FromPastedOutput
from gtid_audit.views.report import Engine, report_of
from topology.adapters.offline.pasted_files import read_pasted
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Unknown, verdict_of
from topology.documents.run_record import CLOCK_DIFFERENCE_MAX, AgeLimit, in_words
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.questions.contents_to_compare import looked_back, suspects_now
from topology.questions.log_questions import LogQuestions, questions_of
from topology.readings.contents import ContentReading, UnreadContent
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.read_once import read_once_in
from topology.readings.snapshot import ClusterSnapshot

CLUSTER: Final = "offline"
_NO_LOGS: Final = "pasted output does not contain binary logs"
_NOT_READ: Final = HistoryEvidence(None, (), unread=_NO_LOGS, purged_changes=None)


def answer_of_offline(
    directory: Path, policy: Policy, limit: AgeLimit, *, compares: bool
) -> FromPastedOutput:
    """Read the files of a directory and evaluate them as one cluster. Raises InventoryProblem.

    `compares`: contents that a live audit would compare are unread; otherwise (--no-content) they
    are not part of the audit.
    """
    snapshot = read_pasted(directory, cluster=CLUSTER)
    questions = questions_of(gather_facts(snapshot, policy))
    snapshot = _without_logs(snapshot, questions)
    contents = _without_contents(snapshot) if compares else None
    audit = audit_cluster(snapshot.with_contents(contents), policy)
    also = (*_open_questions(snapshot, questions), *_not_of_now(snapshot, limit))
    unknown = tuple(sorted({*audit.unknown, *also}))
    verdict = verdict_of(findings=audit.findings, unknown=unknown)
    report = report_of(Engine.LOCAL, [replace(audit, unknown=unknown, verdict=verdict)])
    compared = {} if contents is None else {CLUSTER: contents}
    outcome = InMemory(report, (snapshot,), compared if compares else None)
    return FromPastedOutput(outcome, read_once_in(snapshot))


def _without_logs(
    snapshot: ClusterSnapshot, questions: Mapping[str, LogQuestions]
) -> ClusterSnapshot:
    """Return the snapshot with the answer that no log was read, where a live audit reads them."""
    last = tuple(
        replace(each, history_evidence=_NOT_READ) if each.name in questions else each
        for each in snapshot.last
    )
    return replace(snapshot, last=last)


def _open_questions(
    snapshot: ClusterSnapshot, questions: Mapping[str, LogQuestions]
) -> list[Unknown]:
    reason = f"{_NO_LOGS}; a live audit reads them here"
    return [Unknown(snapshot.cluster, name, "binary logs", reason) for name in questions]


def _not_of_now(snapshot: ClusterSnapshot, limit: AgeLimit) -> Iterator[Unknown]:
    """Yield the servers whose output is too old to show the present state, or is of the future."""
    for server in snapshot.first:
        age, reason = limit.now - server.read_ended, ""
        if -age > CLOCK_DIFFERENCE_MAX:
            reason = "its time is in the future: check the clocks"
        elif limit.max_age is not None and age > limit.max_age:
            reason = (
                f"it is {in_words(age)} old, and the limit is {in_words(limit.max_age)}: paste"
                " it again, or set a higher limit with --max-age"
            )
        if reason:
            yield Unknown(snapshot.cluster, server.name, "output of the present", reason)


def _without_contents(snapshot: ClusterSnapshot) -> ContentReading | None:
    """Return that contents were not compared, where a live audit would compare them."""
    moment = snapshot.read_ended
    due = {*looked_back(snapshot, None)}
    if not due and suspects_now(snapshot, None):
        due = {*snapshot.last_read}
    if not due or moment is None:
        return None
    unread = tuple(UnreadContent(name, _NO_LOGS) for name in sorted(due))
    return ContentReading(moment, 0, (), (), unread)
