"""Reads the schema versions of a cluster: definitions, and DDL in the logs.

1. What not all servers have executed is searched completely, each transaction on one server whose
   log has it. So the number of DDL transactions that servers are apart by is exact.
2. Of what all have executed, only the newest logs of one server are searched.
3. Definitions whose digests differ are read in full on every server: servers of different versions
   write the same definition differently.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

from gtid import GtidSet
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.definition_servers import DefinitionServer, definition_servers
from topology.adapters.ddl_reads import DdlSearchLimits, ddl_of, newest_ddl
from topology.definitions.ddl_searches import DdlSearch, NewestDdl
from topology.definitions.pair_drift import differing
from topology.definitions.schema_objects import ObjectKey
from topology.definitions.schema_versions import ClusterVersions, VersionFacts, apart, versions_of

# Above this, definitions are not read in full: the servers have little in common.
RESOLVED_MAX: Final = 20_000


def read_versions(
    cluster: ClusterToRead,
    schemas: Sequence[str],
    *,
    seconds_max: float,
    say: Callable[[str], None],
) -> ClusterVersions:
    """Read the versions of all servers of a cluster. `schemas`: definitions of these only."""
    limits = DdlSearchLimits(seconds_max)
    with definition_servers(cluster, schemas, seconds_max=seconds_max, say=say) as servers:
        resolved = _resolved(servers, say)
    facts = [_facts(each, resolved.get(each.name, {})) for each in servers]
    known = [each for each in servers if each.state is not None]
    known_facts = [each for each in facts if any(each.server == one.name for one in known)]
    say("searching the binary logs for DDL")
    wanted, common = apart(known_facts)
    searches = _searches(known, wanted, limits)
    return versions_of(
        facts,
        searches,
        _newest(known, common, limits),
        unknown=[(each.name, fact) for each in servers for fact in each.unread],
        read_at=datetime.now(UTC),
    )


def _facts(server: DefinitionServer, resolved: dict[ObjectKey, str]) -> VersionFacts:
    state, objects = server.state, server.objects
    executed = state.gtid_executed if state is not None else GtidSet()
    channels = (state.channels or ()) if state is not None else ()
    return VersionFacts(
        server.name,
        executed,
        GtidSet.union_of(each.gtid_retrieved for each in channels),
        objects,
        # A digest of what the account sees is no digest of all definitions.
        objects.digest(resolved) if objects is not None and not objects.unread else "",
    )


def _resolved(
    servers: Sequence[DefinitionServer], say: Callable[[str], None]
) -> dict[str, dict[ObjectKey, str]]:
    """Return, by server, the digests of the canonical form of definitions that differ."""
    read = [each for each in servers if each.objects is not None]
    keys: dict[ObjectKey, None] = {}
    for one in read[1:]:
        first = read[0].objects
        assert first is not None
        assert one.objects is not None
        keys |= dict.fromkeys(
            key for pair in differing(first, one.objects) for key in (pair.source, pair.replica)
        )
    if not keys or len(keys) > RESOLVED_MAX:
        return {}
    say(f"reading {len(keys):,} definitions in full")

    def digests_of(server: DefinitionServer) -> dict[ObjectKey, str]:
        assert server.objects is not None
        own = [key for key in keys if key in server.objects.objects]
        found = server.reader.read_definitions(own)
        server.unread += found.unread if found is not None else server.reader.unread
        definitions = found.definitions if found is not None else {}
        return {
            key: definition.digest
            for key, definition in definitions.items()
            if definition is not None
        }

    with ThreadPoolExecutor(len(read)) as pool:
        return dict(zip([each.name for each in read], pool.map(digests_of, read), strict=True))


def _searches(
    servers: Sequence[DefinitionServer], wanted: GtidSet, limits: DdlSearchLimits
) -> list[DdlSearch]:
    """Search each wanted transaction on the first server whose logs have it."""
    found, left = [], wanted
    for server in servers:
        here = left & server.held
        if here:
            found.append(ddl_of(server.target, here, held=server.held, limits=limits))
            left -= here
    if left:
        why = "the logs of these servers do not have all of them"
        found.append(DdlSearch("", GtidSet(), why_unread=why))
    return found


def _newest(
    servers: Sequence[DefinitionServer], common: GtidSet, limits: DdlSearchLimits
) -> NewestDdl:
    """Search the logs of the server that has most of what all have executed."""
    with_logs = [each for each in servers if each.state is not None and each.state.binary_logs]
    if not with_logs:
        return NewestDdl("", (), "")
    best = max(with_logs, key=lambda each: (each.held & common).gtid_count)
    assert best.state is not None
    return newest_ddl(best.target, best.state.binary_logs or (), within=common, limits=limits)
