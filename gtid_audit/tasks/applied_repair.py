"""Applies a plan from its directory: the journal, the scripts, and the audit afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.audit_after_repair import AuditAfter
from gtid_audit.tasks.procedure_journal import operator
from gtid_audit.tasks.rows_after_repair import rows_after
from gtid_audit.tasks.unfinished_repairs import left_by_unfinished
from repair.adapters.apply_plan import PlanApplier
from repair.adapters.journal import AtWork, Journal, JournalWriter
from repair.adapters.plan_files import read_directory, record_applied
from repair.applying.audit_afterwards import compare_with_plan, made_alike
from repair.applying.procedures_applied import (
    AppliedProcedure,
    EventKind,
    ProcedureEvent,
    ProcedureState,
)
from repair.applying.written_plan import PlannedScript, UnusablePlan, WrittenPlan
from topology.adapters.sqlite_files import UnusableFile
from topology.facts.accepted import APPLIED_FILE, NotAPlan
from topology.readings.target import ServerTarget


def load_directory(directory: Path) -> tuple[WrittenPlan, Mapping[str, str]]:
    """Return the plan of a directory and its scripts. Raises UsageProblem."""
    try:
        return read_directory(directory)
    except UnusablePlan as problem:
        raise UsageProblem(str(problem)) from problem


@dataclass(frozen=True, slots=True)
class PreparedRepair:
    """A plan that was read and whose servers were found."""

    plan: WrittenPlan
    texts: Mapping[str, str]  # the scripts by file name
    targets: Mapping[str, ServerTarget]  # by the name of the server in the plan


class JournalLost(Exception):
    """The journal could not be written: the run ended, and what it had sent may be incomplete."""


@dataclass(frozen=True, slots=True)
class Application:
    """A plan to apply to its servers, in a procedure of the journal."""

    journal: Journal
    procedure: AppliedProcedure
    repair: PreparedRepair
    may_run: Callable[[PlannedScript], bool]
    is_stopping: Callable[[], bool]
    say: Callable[[ProcedureEvent], None]

    def run(self) -> AppliedProcedure:
        """Run what is not done, audit the servers, and return the procedure as it ended.

        Raises:
            UsageProblem, InventoryProblem: nothing was sent.
            JournalLost: the journal could not be written while the plan was being applied.
        """
        is_begun = False
        audit = AuditAfter.of(self.repair.plan, self.procedure, self.repair.targets)
        try:
            with self.journal.at_work(self.procedure.id) as writer:
                is_begun = True
                self._run(writer, audit)
            return self.journal.find(self.procedure.id)
        except AtWork as problem:
            raise UsageProblem(str(problem)) from problem
        except UnusableFile as problem:
            if is_begun:
                raise JournalLost(str(problem)) from problem
            raise UsageProblem(str(problem)) from problem

    def _run(self, writer: JournalWriter, audit: AuditAfter) -> None:
        plan, done = self.repair.plan, self.procedure.scripts_done
        what = f"resumed after script {done}" if done else "begun"
        self._write(writer, EventKind.BEGUN, f"plan {plan.id} {what} by {operator()}")
        applier = PlanApplier(
            plan=plan,
            texts=self.repair.texts,
            targets=self.repair.targets,
            writer=writer,
            may_run=self.may_run,
            is_stopping=self.is_stopping,
            say=self.say,
        )
        if applier.run(done=done).state is ProcedureState.DONE:
            found = audit.run()
            readings = {server.name: server for server in found.snapshot.last}
            alike = made_alike(found.audit, plan)
            rows = rows_after(alike, found.targets, found.contents, readings)
            earlier = left_by_unfinished(self.journal, self.procedure, plan)
            verdict, text = compare_with_plan(found.audit, plan, rows, earlier)
            self._write(writer, EventKind.AUDITED, text)
            done_text = f"all {len(plan.scripts)} scripts are done{self._recorded()}"
            self._write(writer, EventKind.DONE, done_text)
            writer.enter(ProcedureState.DONE, text, verdict=verdict)

    def _recorded(self) -> str:
        """Record beside the plan who applied it; return why that failed, as text."""
        directory = Path(self.procedure.directory)
        try:
            record_applied(
                directory,
                plan_id=self.repair.plan.id,
                procedure=self.procedure.id,
                operator=operator(),
                at=datetime.now(UTC),
            )
        except (OSError, NotAPlan) as error:
            why = getattr(error, "strerror", None) or error
            return f"; audits will not show who applied them: {directory / APPLIED_FILE}: {why}"
        return ""

    def _write(self, writer: JournalWriter, kind: EventKind, text: str) -> None:
        self.say(writer.write(kind, text))
