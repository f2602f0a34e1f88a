"""Applies a plan in this process, and lets a test act in the middle of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compose.native.shapes import Topology
from repair import Plan
from repair.adapters.apply_plan import PlanApplier, RunEnd
from repair.adapters.journal import Journal
from repair.adapters.plan_files import read_directory, write_plan
from repair.applying.procedures_applied import (
    AppliedProcedure,
    EventKind,
    ProcedureEvent,
    ProcedureState,
)
from repair.applying.written_plan import WrittenPlan
from tests.repair.live import targets_of
from topology.readings.target import ServerTarget


class Killed(BaseException):
    """The process that applies a plan ends here."""


@dataclass
class Applying:
    """A plan in its directory, the journal, and one procedure."""

    topology: Topology
    journal: Journal
    plan: WrittenPlan
    texts: dict[str, str]
    procedure: AppliedProcedure
    # What happens at the first event of a kind about a script, once.
    at: dict[tuple[EventKind, int | None], Callable[[], None]] = field(default_factory=dict)
    kill_after: int | None = None  # statements
    targets: Mapping[str, ServerTarget] | None = None  # None: the servers of the topology

    @classmethod
    def of(cls, topology: Topology, plan: Plan, folder: Path) -> Applying:
        write_plan(plan, folder / "plan")
        written, texts = read_directory(folder / "plan")
        journal = Journal.at(folder / "journal.sqlite")
        procedure = journal.begin(
            plan_id=written.id,
            cluster=written.cluster,
            directory=folder / "plan",
            servers=(),
            operator="test",
            scripts_total=len(written.scripts),
        )
        return cls(topology, journal, written, texts, procedure)

    def run(self) -> RunEnd:
        done = self.journal.find(self.procedure.id).scripts_done
        sent = 0

        def say(event: ProcedureEvent) -> None:
            nonlocal sent
            for key in ((event.kind, event.script), (event.kind, None)):
                if act := self.at.pop(key, None):
                    act()
            if event.kind is EventKind.SENT:
                if sent == self.kill_after:
                    raise Killed
                sent += 1

        with self.journal.at_work(self.procedure.id) as writer:
            end = PlanApplier(
                plan=self.plan,
                texts=self.texts,
                targets=self.targets or targets_of(self.topology),
                writer=writer,
                may_run=lambda _script: True,
                is_stopping=lambda: False,
                say=say,
            ).run(done=done)
            if end.state is ProcedureState.DONE:
                writer.enter(ProcedureState.DONE)
        return end

    @property
    def now(self) -> AppliedProcedure:
        return self.journal.find(self.procedure.id)

    def events(self, kind: EventKind) -> list[str]:
        return [each.text for each in self.journal.events(self.procedure.id) if each.kind is kind]
