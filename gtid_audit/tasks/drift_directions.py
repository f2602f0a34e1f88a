"""Compares the definitions of a cluster, and selects the direction of each pair that is reported.

In a dual-primary pair the rows of each server arrive on the other one. A column that only one of
them has harms in one direction only: there its values are lost, or the applier stops. That one is
reported, whatever the order of the servers is.
"""

from collections.abc import Callable, Sequence

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.definition_servers import DefinitionServer, definition_servers
from gtid_audit.tasks.drift_comparison import compare_servers
from topology.adapters.ddl_reads import DdlSearchLimits
from topology.definitions.compared_pairs import ComparedPair
from topology.definitions.object_drift import ClusterDrift, PairDrift
from topology.rules.definition_causes import applier_errors, error_of


def compare_cluster(
    cluster: ClusterToRead,
    schemas: Sequence[str],
    *,
    seconds_max: float,
    say: Callable[[str], None],
) -> ClusterDrift:
    """Read a cluster and compare every replica with its source. `schemas`: only these."""
    with definition_servers(cluster, schemas, seconds_max=seconds_max, say=say) as servers:
        unknown = [(each.name, fact) for each in servers for fact in each.unread]
        pairs = []
        for looked in compare_servers(servers, limits=DdlSearchLimits(seconds_max), say=say):
            pairs.append(worse_direction(looked, servers)[1])
            for _, drift in looked:
                unknown += [each for each in drift.unknown if each not in unknown]
    return ClusterDrift(
        cluster.name,
        tuple(each.name for each in servers),
        tuple(pairs),
        tuple(unknown),
    )


def worse_direction(
    looked: Sequence[tuple[ComparedPair, PairDrift]], servers: Sequence[DefinitionServer]
) -> tuple[ComparedPair, PairDrift]:
    """Return the direction in which a difference stopped an applier, or can; else the first."""
    return max(looked, key=lambda each: _weight(each[0], each[1], servers))


def _weight(
    pair: ComparedPair, drift: PairDrift, servers: Sequence[DefinitionServer]
) -> tuple[bool, bool]:
    """Return whether a difference stopped an applier in this direction, and whether it can.

    The rows of a read-only source are those of the other server: they do not come back.
    """
    states = {each.name: each.state for each in servers}
    source, replica = states[pair.source], states[pair.replica]
    assert source is not None, "the pair was compared"
    assert replica is not None, "the pair was compared"
    errors, found = applier_errors(replica), drift.differences
    has_stopped = any(
        error_of(each.key.name or each.key.schema, each.errors, errors) for each in found
    )
    is_written = source.setting("read_only") != "ON"
    return has_stopped, is_written and any(each.rows.is_severe for each in found)
