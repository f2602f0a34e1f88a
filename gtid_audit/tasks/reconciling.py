"""Reconciles a cluster: audits it, plans its repair, and applies what the policy permits.

What is applied without an operator must pass four tests:

1. The plan takes the strategy by default. Then it has read what it needs to lose no data.
2. The policy of the fleet file lists the strategy (`policy.reconcile`).
3. Everything was read. What was not read may be what makes the repair wrong.
4. The plan warns of nothing about these servers: a warning is for an operator to read. Two kinds
   are no such warning: what holds for every plan, that servers outside the audit are not
   considered, and which definitions a plan leaves as they are.

Everything else stays a plan in its directory, for an operator to read and apply.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.plan_servers import PlanServers
from gtid_audit.operands.scope_of_definitions import flags_of
from gtid_audit.tasks.applied_repair import load_directory
from gtid_audit.tasks.audited_cluster import AuditedCluster, read_and_audit
from gtid_audit.tasks.background_repair import start_in_background
from gtid_audit.tasks.plan_again import PlanRequest, command_line, repeatable
from gtid_audit.tasks.planning import Planned, make_plan
from gtid_audit.tasks.procedure_journal import begin
from gtid_audit.views.reconciled import Reconciled, WrittenRepair
from repair.adapters.journal import Journal
from repair.plan_parts import STAYS, UNSEEN
from topology.catalogue.findings import Severity
from topology.definitions.definition_scope import DefinitionScope

_OF_DEFINITIONS: Final = ("S1", "S2")


@dataclass(frozen=True, slots=True)
class Reconciling:
    """How to reconcile the clusters of one fleet file, or two servers.

    Without a fleet file there is no policy, and nothing is applied.
    """

    servers: PlanServers  # a fleet file with an absolute path, or the DSNs of two servers
    journal: Journal
    plans: Path  # where plans are written, one directory for each
    may_apply: bool
    admin: str | None
    content: bool | None
    say: Callable[[str], None]
    scope: DefinitionScope | None = None  # only definitions, and only these

    def cluster(self, name: str, *, server: str | None = None) -> Reconciled:
        """Reconcile one cluster, or only what is about one of its servers. Raises UsageProblem."""
        read = self._read(name)
        found = tuple(
            each
            for each in read.audit.findings
            if each.severity is not Severity.INFO
            and server in (None, each.replica)
            and (self.scope is None or each.code in _OF_DEFINITIONS)
        )
        unread = tuple(f"{each.server}, {each.fact}: {each.reason}" for each in read.audit.unknown)
        compares = self.scope is not None or read.policy.definitions
        if not found:
            return Reconciled(
                name, read.audit.verdict, (), (), unread=unread, compares_definitions=compares
            )
        ids = [each.id for each in found]
        planned = self._plan(read, ids)
        why, automatic = self._automatic(read, planned)
        applied, left = None, found
        if automatic is not None:
            applied = self._apply(name, automatic, read)
            # Without steps of its own, a finding is answered by the steps of another one.
            done = {each.finding_id for each in automatic.plan.answered}
            # Of some definitions only a part is repaired: the finding stays.
            done -= {each.finding_id for each in automatic.plan.afterwards}
            left = tuple(each for each in found if each.id not in done)
            stays = (each for each in automatic.plan.warnings if each.startswith(STAYS))
            why = "; ".join((*filter(None, (why,)), *stays))
        is_applied = automatic is not None and automatic.plan.id == planned.plan.id
        keeps = bool(left and planned.plan.steps) and not is_applied
        kept = self._written(name, planned, read, ids) if keeps else None
        reasons = {each.finding_id: each.why for each in planned.plan.not_planned}
        return Reconciled(
            name, read.audit.verdict, found, left, applied, kept, why, unread, reasons, compares
        )

    def _read(self, name: str) -> AuditedCluster:
        """Read and audit a cluster, or only the definitions of the scope."""
        to_read = self.servers.to_read(name)
        # The content of transactions is another question than definitions.
        content = self.content if self.scope is None else bool(self.content)
        return read_and_audit(
            to_read,
            content=content,
            definitions=to_read.policy.definitions,
            scope=self.scope,
            say=self.say,
        )

    def _plan(self, read: AuditedCluster, finding_ids: list[str]) -> Planned:
        return make_plan(read, choices={}, finding_ids=finding_ids, say=self.say)

    def _automatic(self, read: AuditedCluster, planned: Planned) -> tuple[str, Planned | None]:
        """Return the plan of what may be applied now, and why the rest may not."""
        permitted = read.policy.reconcile
        steps = [each for each in planned.plan.answered if each.steps]
        others = sorted({each.strategy for each in steps} - {*permitted})
        why = f"policy.reconcile does not list {', '.join(others)}" if others else ""
        if not self.may_apply:
            return "without --yes nothing is applied", None
        if read.audit.unknown:
            return "some facts were not read", None
        wanted = [each.finding_id for each in steps if each.strategy in permitted]
        if not wanted:
            return why or "no step is planned by default", None
        only = self._plan(read, wanted) if others else planned
        if any(each.steps and each.strategy not in permitted for each in only.plan.answered):
            return f"{why}, and the other steps need it", None
        if warned := [each for each in only.plan.warnings if not _is_of_every_plan(each)]:
            return f"the plan warns: {warned[0]}", None
        return why, only if only.plan.steps else None

    def _written(
        self, cluster: str, planned: Planned, read: AuditedCluster, finding_ids: Iterable[str]
    ) -> WrittenRepair:
        """Write a plan under its id: a second run with the same result writes nothing new."""
        wanted = PlanRequest(only=tuple(finding_ids))
        directory = self.plans / f"{cluster.replace('/', '_')}-{planned.plan.id}"
        dsns, fleet = self.servers.dsns, self.servers.fleet
        command = command_line(
            dsns if fleet is None else (),
            None if fleet is None else Path(fleet),
            None if fleet is None else cluster,
            wanted,
            flags=self._flags(),
            out=directory,
        )
        plan = repeatable(planned.plan, wanted, command, read.targets)
        replace(planned, plan=plan).write(directory)
        names = {each.strategy for each in plan.answered if each.steps}
        return WrittenRepair(plan.id, directory, tuple(sorted(names)))

    def _flags(self) -> tuple[str, ...]:
        """Return the options of `repair plan` that read the same definitions."""
        if self.scope is None:
            return ()
        name = str(self.scope)
        table, database = (name, None) if self.scope.table else (None, self.scope.schema)
        return flags_of(None, table, database)

    def _apply(self, cluster: str, planned: Planned, read: AuditedCluster) -> WrittenRepair:
        """Write the plan, record a procedure, and start it in the background."""
        ids = (each.finding_id for each in planned.plan.answered)
        written = self._written(cluster, planned, read, ids)
        plan, _ = load_directory(written.directory)
        if plan.id != written.plan:
            raise UsageProblem(f"{written.directory}: another process wrote another plan there")
        named = replace(self.servers, cluster=cluster, admin=self.admin).from_anywhere()
        named.targets(plan)  # accounts and servers are checked before anything is recorded
        procedure = begin(self.journal, plan, written.directory, named.words)
        start_in_background(self.journal.path, procedure)
        return WrittenRepair(written.plan, written.directory, written.strategies, procedure.id)


def _is_of_every_plan(warning: str) -> bool:
    """Return whether a warning is not about what the steps of a plan do to these servers."""
    return warning == UNSEEN or warning.startswith(STAYS)
