"""What the policy of a fleet file accepts: plans that were run, and findings.

No message repeats a value. Nothing is read here but plans (accepted_plans.py).
"""

from collections.abc import Iterator
from pathlib import Path

from gtid import GtidError, GtidSet
from topology.adapters.inventory.accepted_plans import read_accepted_plan
from topology.adapters.inventory.fleet_consumers import Note
from topology.adapters.inventory.fleet_model import AcceptedSection, FleetSection
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.yaml_places import Path as Place
from topology.catalogue.findings import Severity
from topology.facts.accepted import AcceptedRepair
from topology.facts.accepted_findings import AcceptedFinding


def accepted_repairs(
    section: FleetSection, directory: Path, note: Note
) -> tuple[AcceptedRepair, ...]:
    """Return the accepted plans; note each problem. Relative paths start at the fleet file."""
    found = []
    for number, text in enumerate(section.policy.accepted):
        try:
            found.append(read_accepted_plan(directory / text))
        except InventoryProblem as problem:
            note(("policy", "accepted", number), str(problem))
    return tuple(found)


def accepted_findings(section: FleetSection, note: Note) -> tuple[AcceptedFinding, ...]:
    """Return the accepted findings of the fleet and of its clusters, in one order.

    Note each problem at its place.
    """
    found = []
    for cluster, entry, place in _entries(section):
        made = _finding(cluster, entry, place, note)
        if made is not None:
            found.append(made)
    return tuple(sorted(found, key=AcceptedFinding.to_text))


def _entries(section: FleetSection) -> Iterator[tuple[str | None, AcceptedSection, Place]]:
    for number, entry in enumerate(section.policy.accepted_findings):
        yield None, entry, ("policy", "accepted_findings", number)
    for i, cluster in enumerate(section.clusters):
        for number, entry in enumerate(cluster.accepted_findings):
            yield cluster.name, entry, ("clusters", i, "accepted_findings", number)


def _finding(
    cluster: str | None, entry: AcceptedSection, place: Place, note: Note
) -> AcceptedFinding | None:
    if entry.server is not None and (entry.source is not None or entry.replica is not None):
        note(place, "has a server and also a source or a replica; use only one of the two")
        return None
    try:
        gtid_set = GtidSet.parse(entry.set)
    except GtidError:  # its message shows the text
        note((*place, "set"), "is not a GTID set")
        return None
    return AcceptedFinding(
        code=entry.code,
        severity=Severity(entry.severity),
        reason=entry.reason,
        expires=entry.expires,
        cluster=cluster,
        source=entry.source,
        replica=entry.server if entry.server is not None else entry.replica,
        channel=entry.channel,
        gtid_set=gtid_set,
        shows=" ".join(entry.shows.split()),
        ticket=entry.ticket,
        by=entry.by,
    )
