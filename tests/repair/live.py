"""Audits, plans and runs scripts on real servers, as a person would."""

import re
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Topology
from repair import LogEvidence, Plan, plan_repair
from repair.adapters.read_events import EventsRead, read_events
from repair.adapters.side_effects_there import read_side_effects
from repair.adapters.transactions_for_plan import read_transactions
from repair.adapters.transactions_without_gtid import read_without_gtid
from repair.content.side_effects import SideEffects
from repair.model.strategy_case import WithoutGtid
from repair.render import render_files
from repair.repair_plan import NotPlanned
from repair.scripts.steps import Step
from topology.adapters.collect import CollectLimits, collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

_CLEAN_SECONDS_MAX = 30.0
REMARKS = frozenset({"C5", "C7", "C9", "C10", "C12"})
_LIMITS = CollectLimits(server_seconds_max=20.0, looks_max=3)


@dataclass(frozen=True)
class Examination:
    snapshot: ClusterSnapshot
    audit: ClusterAudit
    read: EventsRead
    transactions: LogEvidence
    side_effects: Mapping[str, tuple[SideEffects, ...]]
    without_gtid: Mapping[tuple[str, str], WithoutGtid]

    @property
    def codes(self) -> list[str]:
        """Return the codes without remarks on settings, which no repair here is about."""
        return [each.code for each in self.audit.findings if each.code not in REMARKS]

    def plan(self, choices: Mapping[str, str] | None = None) -> Plan:
        evidence = replace(
            self.transactions,
            events=self.read.events,
            without_gtid=self.without_gtid,
            side_effects=self.side_effects,
        )
        return plan_repair(self.snapshot, self.audit, choices=choices, evidence=evidence)


def targets_of(topology: Topology) -> dict[str, ServerTarget]:
    return {
        name: ServerTarget(name, server.host, server.port, "root")
        for name, server in topology.servers.items()
    }


def examine(topology: Topology) -> Examination:
    targets = targets_of(topology)
    snapshot = collect_cluster("cluster", list(targets.values()), limits=_LIMITS)
    return read_logs(topology, snapshot, audit_cluster(snapshot))


def read_logs(topology: Topology, snapshot: ClusterSnapshot, audit: ClusterAudit) -> Examination:
    """Read logs and rows as they are now for an audit that may be older."""
    targets = targets_of(topology)
    found = read_transactions(snapshot, audit, targets, seconds_max=20.0)
    return Examination(
        snapshot,
        audit,
        read_events(snapshot, audit, targets, timeout_seconds_max=20.0),
        found,
        read_side_effects(found, snapshot, targets, seconds_max=20.0),
        read_without_gtid(snapshot, targets, seconds_max=20.0),
    )


def left_by(plan: Plan) -> list[NotPlanned]:
    """Return what a plan leaves to the operator, without remarks on settings."""
    return [each for each in plan.not_planned if each.code not in REMARKS]


def run_step(topology: Topology, plan: Plan, step: Step) -> subprocess.CompletedProcess[str]:
    return topology[step.server].client(render_files(plan)[step.file_name])


def refusals(topology: Topology, plan: Plan, before: Step | None = None) -> list[str]:
    """Run the checks before a step (the first) on their servers; return what they refuse."""
    files = render_files(plan)
    refused = []
    step = before or plan.steps[0]
    for check in step.checks:
        done = topology[check.server].client(files[step.check_name(check)])
        refused += [done.stderr] if done.returncode else []
    return refused


def run_plan(topology: Topology, plan: Plan) -> None:
    for step in plan.steps:
        done = run_step(topology, plan, step)
        assert done.returncode == 0, f"{step.file_name}: {done.stderr}\n{done.stdout}"
        assert f"step {step.number} is done" in done.stdout


def await_clean(topology: Topology, *, announced: Collection[str] = ()) -> None:
    """Audit until no finding but what clears by itself is left: a started channel needs a moment.

    Codes that a plan has announced may be left as well.
    """
    deadline = time.monotonic() + _CLEAN_SECONDS_MAX
    while True:
        examination = examine(topology)
        left = [
            code for code in examination.codes if not code.startswith("T") and code not in announced
        ]
        if not left:
            return
        assert time.monotonic() < deadline, [
            (finding.code, finding.explanation) for finding in examination.audit.findings
        ]
        time.sleep(0.2)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _CLEAN_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)


def executed(server: Server) -> str:
    return str(server.value("@@GLOBAL.gtid_executed"))


def rows(server: Server, table: str) -> list[tuple[object, ...]]:
    """Return a table's rows with all that is in gtid_executed.

    Before 5.7 a GTID is there as soon as its transaction is in the binary log: of 1,500 readings
    of a 5.6.24 that took one write after another, 120 were ahead of the rows. The lock waits for
    commits that have begun.
    """
    if server.version < (5, 7):
        server.execute("FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES")
    return sorted(server.query(f"SELECT * FROM {table}"))


def statements_of(topology: Topology, text: str, **filled: object) -> list[str]:
    """Return the statements of a part of an instruction, filled in as an operator does."""

    def value(match: re.Match[str]) -> str:
        what, _, name = match[1].partition(" of ")
        if what in ("host", "port"):
            return str(getattr(topology[name], what))
        if what == "account":
            return REPLICATION_USER
        if what == "@@GLOBAL.gtid_executed":
            return executed(topology[name])
        return str(filled[what.partition(" ")[0]])

    found = [each for each in re.findall("`([^`]+)`", text) if not each.startswith("gtid-audit")]
    return [
        re.sub(
            r"\(((?:host|port|account|@@|id|a number|the GTID|user|password|each)[^)]*)\)",
            value,
            each,
        )
        for each in found
    ]
