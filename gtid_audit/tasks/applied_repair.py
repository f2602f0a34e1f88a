"""Applies a plan from its directory: the journal, the scripts, and the audit afterwards."""

import getpass
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.audited_cluster import read_and_audit
from repair.adapters.apply_plan import PlanApplier
from repair.adapters.journal import AtWork, Journal, JournalWriter, UnknownProcedure, default_path
from repair.adapters.plan_files import read_directory
from repair.applying.audit_afterwards import compare_with_plan
from repair.applying.procedures_applied import (
    AppliedProcedure,
    EventKind,
    ProcedureEvent,
    ProcedureState,
)
from repair.applying.written_plan import PlannedScript, UnusablePlan, WrittenPlan
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.accepted_plans import read_accepted
from topology.adapters.sqlite_files import UnusableFile
from topology.catalogue.findings import ClusterAudit, Verdict
from topology.policy import Policy
from topology.readings.target import ServerTarget

_ACCEPTED: Final = "--accepted="


def load_directory(directory: Path) -> tuple[WrittenPlan, Mapping[str, str]]:
    """Return the plan of a directory and its scripts. Raises UsageProblem."""
    try:
        return read_directory(directory)
    except UnusablePlan as problem:
        raise UsageProblem(str(problem)) from problem


def journal_at(path: Path | None) -> Journal:
    """Open or create the journal. Raises UsageProblem."""
    try:
        return Journal.at(path or default_path(os.environ, Path.home()))
    except (UnusableFile, RuntimeError) as problem:  # RuntimeError: no home directory
        raise UsageProblem(str(problem)) from problem


def procedure_of(journal: Journal, beginning: str) -> AppliedProcedure:
    """Return the procedure whose id begins with a text. Raises UsageProblem."""
    try:
        return journal.find(beginning)
    except (UnknownProcedure, UnusableFile) as problem:
        raise UsageProblem(str(problem)) from problem


def procedures_of(journal: Journal) -> tuple[AppliedProcedure, ...]:
    """Return all procedures, the newest first. Raises UsageProblem."""
    try:
        return journal.procedures()
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def events_of(journal: Journal, procedure: AppliedProcedure) -> tuple[ProcedureEvent, ...]:
    """Return the events of a procedure, in order. Raises UsageProblem."""
    try:
        return journal.events(procedure.id)
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def request_stop(journal: Journal, procedure: AppliedProcedure) -> None:
    """Request that a procedure stops before its next script. Raises UsageProblem."""
    try:
        journal.request_stop(procedure.id)
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def begin(
    journal: Journal, plan: WrittenPlan, directory: Path, words: tuple[str, ...]
) -> AppliedProcedure:
    """Record a new procedure for a plan. Raises UsageProblem."""
    try:
        return journal.begin(
            plan_id=plan.id,
            cluster=plan.cluster,
            directory=directory.absolute(),
            servers=words,
            operator=operator(),
            scripts_total=len(plan.scripts),
        )
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def operator() -> str:
    """Return who runs this process, as the operating system says."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


@dataclass(frozen=True, slots=True)
class PreparedRepair:
    """A plan that was read and whose servers were found."""

    plan: WrittenPlan
    texts: Mapping[str, str]  # the scripts by file name
    targets: Mapping[str, ServerTarget]  # by the name of the server in the plan


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

        Raises UsageProblem.
        """
        try:
            with self.journal.at_work(self.procedure.id) as writer:
                self._run(writer)
            return self.journal.find(self.procedure.id)
        except (AtWork, UnusableFile) as problem:
            raise UsageProblem(str(problem)) from problem

    def _run(self, writer: JournalWriter) -> None:
        done = self.procedure.scripts_done
        what = f"resumed after script {done}" if done else "begun"
        self._write(writer, EventKind.BEGUN, f"plan {self.repair.plan.id} {what} by {operator()}")
        applier = PlanApplier(
            plan=self.repair.plan,
            texts=self.repair.texts,
            targets=self.repair.targets,
            writer=writer,
            may_run=self.may_run,
            is_stopping=self.is_stopping,
            say=self.say,
        )
        if applier.run(done=done).state is ProcedureState.DONE:
            verdict, text = compare_with_plan(self._audit(), self.repair.plan)
            self._write(writer, EventKind.AUDITED, text)
            self._write(
                writer, EventKind.DONE, f"all {len(self.repair.plan.scripts)} scripts are done"
            )
            writer.enter(ProcedureState.DONE, text, verdict=verdict)

    def _write(self, writer: JournalWriter, kind: EventKind, text: str) -> None:
        self.say(writer.write(kind, text))

    def _audit(self) -> ClusterAudit:
        """Audit the servers of the plan, as the command did that made it."""
        words = self.repair.plan.command
        content = {"--content": True, "--no-content": False}
        directories = [Path(each.removeprefix(_ACCEPTED)) for each in words if _ACCEPTED in each]
        accepted = read_accepted([*directories, Path(self.procedure.directory)])
        policy = self._policy()
        cluster = ClusterToRead(
            name=self.repair.plan.cluster,
            targets=tuple(self.repair.targets.values()),
            limits=CollectLimits(),
            policy=replace(policy, accepted=(*policy.accepted, *accepted)),
        )
        wanted = next((content[each] for each in words if each in content), None)
        return read_and_audit(cluster, content=wanted, say=lambda _text: None).audit

    def _policy(self) -> Policy:
        from gtid_audit.operands.plan_servers import PlanServers

        named = PlanServers.of_words(self.procedure.servers)
        if named.fleet is None or named.cluster is None:
            return Policy()
        from gtid_audit.operands.load_fleet import cluster_to_read

        return cluster_to_read(Path(named.fleet), named.cluster).policy


def status_of(procedure: AppliedProcedure) -> int:
    """Return the exit status of a procedure: 1 if it is not done (yet), 2 if it failed.

    If it is done: the status of what the audit found that the plan did not announce.
    """
    if procedure.verdict is not None:
        return exits.status_of(procedure.verdict)
    failed = procedure.state is ProcedureState.FAILED
    return exits.status_of(Verdict.CRITICAL if failed else Verdict.WARNING)
