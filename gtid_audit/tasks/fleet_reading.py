"""Reads a live fleet: snapshots, compared contents, and the run in which both are stored.

1. The process that reads the servers, this one, compares contents and stores the result beside the
   snapshots. So both engines evaluate the same facts, now and after the servers are gone.
2. Runs of selected clusters are stored in a separate directory, with their own history and their
   own memory of contents. They must not appear as the state of the fleet.
3. If a defect of ours prevents the reading of a cluster, that cluster is UNKNOWN, with the reason,
   also in the stored run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gtid_audit.operands.refuse_same_server import refuse_same_servers
from gtid_audit.optional_packages import require_parquet
from gtid_audit.tasks.compared_restarts import DirectoryMemory, Memory
from gtid_audit.tasks.fleet_contents import compare_contents
from gtid_audit.tasks.fleet_definitions import Definitions, compare_definitions
from gtid_audit.tasks.written_run import PARTIAL, store
from topology.adapters.collect_fleet import Say, collect_fleet
from topology.adapters.inventory.fleet import Fleet
from topology.audit_cluster import audit_or_unknown
from topology.catalogue.findings import ClusterAudit
from topology.documents.label_records import Labels
from topology.policy import Policy
from topology.readings.contents import ContentReading
from topology.readings.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class FleetReading:
    """The readings of a fleet."""

    snapshots: tuple[ClusterSnapshot, ...]  # in order of name
    contents: Mapping[str, ContentReading] | None  # None: comparing was off
    run: Path | None  # where it is stored
    labels: Mapping[str, Labels] = field(default_factory=dict)  # of the clusters that have some
    definitions: Definitions = None

    def evaluated(self, policy: Policy) -> list[ClusterAudit]:
        """Evaluate every cluster in this process. Never raises."""
        contents, definitions = self.contents or {}, self.definitions or {}
        audits = (
            audit_or_unknown(
                each.with_contents(contents.get(each.cluster)).with_definitions(
                    definitions.get(each.cluster)
                ),
                policy,
            )
            for each in self.snapshots
        )
        return [replace(audit, labels=self.labels.get(audit.cluster, ())) for audit in audits]


def read_fleet(
    fleet: Fleet,
    *,
    for_audit: bool,
    content: bool | None,
    definitions: bool | None = None,
    store_in: Path | None = None,
    say: Say | None = None,
    memory: Memory | None = None,
) -> FleetReading:
    """Read a fleet, compare contents where that is due, and store both. Raises UsageProblem.

    Args:
        fleet: every cluster of it is read.
        for_audit: refuse one server under two names, if there is no other cluster to report.
        content: True compares the content of transactions after every restart, False compares none.
            None compares after restarts since the last audit, and within the last day
            (contents_to_compare.py).
        definitions: True compares definitions, False does not; None as the policy of the fleet.
        store_in: where runs are stored, and what the next audit must compare.
        say: shows progress.
        memory: keeps what the next audit must compare, if there is no directory for it.
    """
    if store_in is not None:
        require_parquet()
        store_in = place_of(fleet, store_in)
        memory = DirectoryMemory(store_in)
    snapshots = _snapshots_of(fleet, will_store=store_in is not None, say=say)
    if for_audit and len(fleet.clusters) == 1:
        refuse_same_servers(snapshots)
    remembered = memory.read() if memory is not None else None
    compared = compare_contents(
        {cluster.name: cluster.targets for cluster in fleet.clusters},
        snapshots,
        content,
        policy=fleet.policy,
        remembered=remembered,
        say=say,
    )
    defined = compare_definitions(fleet, snapshots, definitions, say=say)
    if not snapshots:
        return FleetReading(snapshots, compared.readings, None, fleet.labels, defined)
    run = None
    if store_in is not None:
        partial = [cluster.name for cluster in fleet.clusters] if fleet.is_partial else None
        run = store(
            store_in,
            snapshots,
            compared.readings,
            definitions=defined,
            partial=partial,
            labels=fleet.labels,
        )
    if memory is not None:
        memory.write(compared.remembered)
    return FleetReading(snapshots, compared.readings, run, fleet.labels, defined)


def _snapshots_of(
    fleet: Fleet, *, will_store: bool, say: Say | None
) -> tuple[ClusterSnapshot, ...]:
    """Read every cluster of a fleet; return them in order of name.

    Snapshots that will be stored are first converted to their stored form, so that they evaluate
    alike now and later (topology/adapters/storable.py).
    """
    found = collect_fleet(fleet, say=say)
    snapshots = tuple(sorted(found, key=lambda snapshot: snapshot.cluster))
    if not will_store:
        return snapshots
    from topology.adapters.storable import storable

    return storable(snapshots)


def place_of(fleet: Fleet, directory: Path) -> Path:
    """Return where a fleet's runs and results belong; selected clusters have their own place."""
    return directory / PARTIAL if fleet.is_partial else directory
