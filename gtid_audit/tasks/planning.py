"""Plans the repair of a cluster that was just evaluated: reads its binary logs, plans, writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.audited_cluster import AuditedCluster
from gtid_audit.tasks.evidence_on_servers import read_transactions_behind, with_servers_queried
from gtid_audit.tasks.saved_streams import SavedStreams
from repair import LogEvidence, Plan, UnknownChoice, plan_repair
from repair.adapters.plan_files import DirectoryTaken, write_plan
from repair.adapters.read_events import read_events
from repair.content.definition_parts import DefinitionsRead
from repair.content.row_versions import RowsRead
from repair.replaced_below import with_replaced_below
from topology.catalogue.findings import ClusterAudit, Severity, Verdict
from topology.readings.target import ServerTarget

EVENT_SECONDS_MAX: Final = 30.0  # to find one event in a source's binary logs


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what could not be read for it."""

    plan: Plan
    audit: ClusterAudit
    unread_events: tuple[str, ...]
    streams: SavedStreams  # of the plan's saved content

    @property
    def status(self) -> int:
        """Return the exit status: see `repair plan --help`."""
        if self.audit.unknown:
            return exits.status_of(Verdict.UNKNOWN)
        loud = {each.id for each in self.audit.findings if each.severity is not Severity.INFO}
        left = loud & self.plan.left
        # Findings that were not selected need no steps; new findings come from the plan itself.
        answered = {each.finding_id for each in self.plan.answered}
        left |= {*self.plan.unreported}
        left |= {
            each.finding_id
            for each in self.plan.afterwards
            if each.is_new or (each.finding_id in answered and not each.is_only_in_logs)
        }
        return exits.status_of(Verdict.WARNING if left else Verdict.OK)

    def write(self, directory: Path) -> tuple[Path, ...]:
        """Write the plan's files. Raises UsageProblem."""
        try:
            return write_plan(self.plan, directory, streamed=self.streams.parts)
        except DirectoryTaken as problem:
            raise UsageProblem(str(problem)) from problem
        except OSError as error:
            raise UsageProblem(f"{directory}: {error.strerror or error}") from error


def make_plan(
    read: AuditedCluster,
    *,
    choices: Mapping[str, str],
    finding_ids: Sequence[str] | None,
    say: Callable[[str], None],
) -> Planned:
    """Plan the repair of what was read. Raises UsageProblem for a choice that fits no finding."""
    say("reading the binary logs")
    targets = {target.name: target for target in read.targets}
    events = read_events(read.snapshot, read.audit, targets, timeout_seconds_max=EVENT_SECONDS_MAX)
    found = read_transactions_behind(read, targets, seconds_max=EVENT_SECONDS_MAX)
    rows = {**found.rows, **_rows(read, targets)}
    evidence = replace(found, events=events.events, rows=rows)
    evidence = with_servers_queried(evidence, read, targets, seconds_max=EVENT_SECONDS_MAX)
    evidence = replace(evidence, definitions=_definitions(read, say=say))
    streams = SavedStreams(targets, seconds_max=EVENT_SECONDS_MAX, say=say)
    try:
        plan = _plan(read, evidence, choices=choices, finding_ids=finding_ids)
        while problems := streams.check(plan.saved):
            evidence = _without_streams(evidence, problems)
            plan = _plan(read, evidence, choices=choices, finding_ids=finding_ids)
    except UnknownChoice as problem:
        raise UsageProblem(str(problem)) from problem
    unread = tuple(f"finding {each}: {why}" for each, why in sorted(events.unread.items()))
    plan = with_replaced_below(plan, read.audit, read.snapshot)
    return Planned(plan, read.audit, unread, streams)


def _plan(
    read: AuditedCluster,
    evidence: LogEvidence,
    *,
    choices: Mapping[str, str],
    finding_ids: Sequence[str] | None,
) -> Plan:
    return plan_repair(
        read.snapshot,
        read.audit,
        choices=choices,
        finding_ids=finding_ids,
        evidence=evidence,
        policy=read.policy,
    )


def _without_streams(evidence: LogEvidence, problems: Mapping[str, str]) -> LogEvidence:
    """Return the evidence with why the content of some findings cannot be written as SQL."""
    contents = {
        finding: replace(evidence.contents[finding], unwritable=why)
        for finding, why in problems.items()
    }
    return replace(evidence, contents={**evidence.contents, **contents})


def _definitions(
    read: AuditedCluster, *, say: Callable[[str], None]
) -> Mapping[str, DefinitionsRead]:
    """Read the definitions behind S2 in full; import the module only if there are some."""
    if not any(each.code == "S2" and each.strategies for each in read.audit.findings):
        return {}
    from gtid_audit.tasks.definitions_for_plan import read_definitions

    return read_definitions(read, say=say)


def _rows(read: AuditedCluster, targets: Mapping[str, ServerTarget]) -> dict[str, RowsRead]:
    """Read the rows behind different content. The modules for it are imported only then."""
    findings = [each for each in read.audit.findings if each.code == "E4" and each.strategies]
    if not findings:
        return {}
    from repair.adapters.rows_for_plan import read_rows

    readings = {server.name: server for server in read.snapshot.last}
    return {
        each.id: read_rows(
            each, targets, read.contents, seconds_max=EVENT_SECONDS_MAX, readings=readings
        )
        for each in findings
    }
