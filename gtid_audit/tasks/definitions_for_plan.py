"""Reads the definitions behind each S2 in full, for the plan that repairs them.

1. The audit keeps only in short what differs. So the pairs are compared once more, by the same
   functions, and what is on its way now is searched now.
2. What both servers answer about the parts of an object is read after that, and then the
   definitions again. An object that changed meanwhile is not repaired by this plan.
3. The direction of a finding is that of the audit: in a dual-primary pair, the one in which rows
   stop an applier.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.audited_cluster import AuditedCluster
from gtid_audit.tasks.definition_servers import (
    DEFINITION_SECONDS_MAX,
    DefinitionServer,
    definition_servers,
)
from gtid_audit.tasks.drift_comparison import compare_pair
from repair.adapters.parts_of_definitions import read_parts, refuses_writes
from repair.content.definition_parts import DefinitionsRead, DifferingDefinition
from topology.adapters.collect import CollectLimits
from topology.adapters.ddl_reads import DdlSearchLimits
from topology.catalogue.findings import Finding
from topology.definitions.canonical import CanonicalDefinition
from topology.definitions.compared_pairs import ComparedPair, pairs_of
from topology.definitions.object_drift import ObjectDrift

_READINGS_MAX: Final = 2
_CHANGED: Final = "it was changed while this plan was made"


def read_definitions(
    read: AuditedCluster, *, say: Callable[[str], None]
) -> Mapping[str, DefinitionsRead]:
    """Return, by finding, the objects of S2 that differ now. An unread pair is left out."""
    wanted = [each for each in read.audit.findings if each.code == "S2" and each.strategies]
    cluster = ClusterToRead(read.snapshot.cluster, read.targets, CollectLimits(), read.policy)
    schemas = () if read.scope is None else (read.scope.schema,)
    found: dict[str, DefinitionsRead] = {}
    with definition_servers(
        cluster,
        schemas,
        seconds_max=DEFINITION_SECONDS_MAX,
        say=say,
        states=read.snapshot.last_read,
    ) as servers:
        ready = [each for each in servers if each.state is not None and each.objects is not None]
        pairs = pairs_of([each.connected() for each in ready]) if ready else ()
        for finding in wanted:
            pair = _pair_of(finding, pairs)
            if pair is not None:
                say(f"reading what differs on {pair.replica} and {pair.source}")
                found[finding.id] = _read_pair(pair, servers, read)
    return found


def _pair_of(finding: Finding, pairs: Sequence[ComparedPair]) -> ComparedPair | None:
    """Return the pair of a finding, in its direction."""
    for each in pairs:
        if (each.source, each.replica) == (finding.source, finding.replica):
            return each
        if each.is_mutual and (each.replica, each.source) == (finding.source, finding.replica):
            return replace(each, source=each.replica, replica=each.source)
    return None


def _read_pair(
    pair: ComparedPair, servers: Sequence[DefinitionServer], read: AuditedCluster
) -> DefinitionsRead:
    by_name = {each.name: each for each in servers}
    source, replica = by_name[pair.source], by_name[pair.replica]
    limits = DdlSearchLimits(DEFINITION_SECONDS_MAX)
    drift = compare_pair(pair, servers, limits=limits, readings_max=_READINGS_MAX)
    differences = [
        each
        for each in drift.differences
        if read.scope is None or read.scope.includes(each.key, each.source, each.replica)
    ]
    versions = [each.reader.version for each in (source, replica) if each.reader.version]
    objects = read_parts(
        differences,
        source.target,
        replica.target,
        older=min(versions),
        seconds_max=DEFINITION_SECONDS_MAX,
    )
    return DefinitionsRead(
        objects=_unchanged(objects, source, replica),
        has_channel=pair.has_channel,
        is_mutual=pair.is_mutual,
        other_sources=drift.facts.other_sources,
        refuses_writes=refuses_writes(replica.target, seconds_max=DEFINITION_SECONDS_MAX),
    )


def _unchanged(
    objects: Sequence[DifferingDefinition], source: DefinitionServer, replica: DefinitionServer
) -> tuple[DifferingDefinition, ...]:
    """Return the objects; those whose definition is another one by now have the reason."""
    ours = source.reader.read_definitions([each.drift.key for each in objects])
    theirs = replica.reader.read_definitions(
        [each.drift.replica_key or each.drift.key for each in objects]
    )
    if ours is None or theirs is None:
        return tuple(replace(each, unread="its definition was not read again") for each in objects)
    found = []
    for each in objects:
        drift = each.drift
        now = (
            ours.definitions.get(drift.key),
            theirs.definitions.get(drift.replica_key or drift.key),
        )
        found.append(each if _is_same(drift, *now) else replace(each, unread=_CHANGED))
    return tuple(found)


def _is_same(
    drift: ObjectDrift, source: CanonicalDefinition | None, replica: CanonicalDefinition | None
) -> bool:
    pairs = ((drift.source, source), (drift.replica, replica))
    return all(_digest(then) == _digest(now) for then, now in pairs)


def _digest(definition: CanonicalDefinition | None) -> str:
    return "" if definition is None else definition.digest
