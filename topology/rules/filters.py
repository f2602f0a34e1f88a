"""C11: filters that withhold transactions from replicas.

1. binlog_do_db and binlog_ignore_db on a server that has replicas. The server logs the GTID without
   the changes, so its replicas have the same sets but not the same rows (seen on 9.7.4: the end of
   a chain misses rows permanently). Harmless variant: the same options on a server without
   replicas.
2. A filter of a channel (replicate_*) whose replica has replicas of its own. It logs the GTID of
   what it leaves out, so these cannot receive the changes (seen on 9.7.4). For the replica itself,
   and for what is only below it, that is what the operator chose: information. In a ring each
   server is to have what the others commit: a warning. Harmless variants: a replica without
   replicas; a dual-primary pair, in which what is left out came from the other server; replicas
   with the same filter; filters of system schemas, which managed services set.
3. IGNORE_SERVER_IDS of a channel (refused with GTIDs from 8.0 on; seen on 5.6.24). The receiver
   drops the events of these servers and does not count them as received, so the GTIDs stay missing.
   Harmless variants: the option on a channel that misses nothing, and another channel that delivers
   them.
"""

from collections.abc import Iterator
from typing import Final

from topology.catalogue.findings import Finding, Grade, Severity
from topology.definitions.schema_objects import SYSTEM_SCHEMAS
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.graph import Edge
from topology.facts.ignored_servers import ignored_servers
from topology.facts.unseen import address_of, unseen_sources
from topology.readings.dialect import REWRITES
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ChannelSnapshot
from topology.rules.build import Rules, evidence, finding, many, on_edge

_LEFT_OUT = {
    "binlog_do_db": "only changes of these schemas are logged",
    "binlog_ignore_db": "changes of these schemas are not logged",
}


def binary_log_filtered(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C11: a server with replicas that does not log all of its changes."""
    for name in sorted(facts.last):
        server = facts.last[name]
        values = notable_values(server.notable_settings)
        filters = [option for option in _LEFT_OUT if option in values]
        if not filters:
            continue
        replicas = sorted({edge.replica for edge in facts.graph.out_of(name)})
        if replicas:
            effects = "; ".join(
                f"{option} is {values[option]}: {_LEFT_OUT[option]}" for option in filters
            )
            yield finding(
                facts,
                "C11",
                source=name,
                grade=Grade.PROVED,
                proof=(
                    *(evidence(option, values[option], server) for option in filters),
                    evidence("replicas", ", ".join(replicas), server),
                ),
                explanation=f"{name} does not log all of its changes."
                f" {effects[0].upper()}{effects[1:]}. {', '.join(replicas)} cannot receive the"
                " other changes: the GTIDs agree, but the rows are missing there. Remove the option"
                f" from {name}, restart it, and compare the rows.",
            )


def channel_filtered(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C11: a channel with filters, above servers that cannot receive what it leaves out."""
    graph = facts.graph
    outside = [(address_of(channel), name, channel) for name, channel in graph.outside]
    edges = [(each.source, each.replica, each.channel) for each in graph.edges]
    for source, name, channel in edges + outside:
        server, filters = facts.last[name], _withholding(channel)
        below = _without_the_changes(facts, source, name, filters) if filters else []
        if not below or "log_replica_updates" in notable_values(server.notable_settings):
            continue
        replicas = ", ".join(sorted({each.replica for each in below}))
        above = graph.upstream_of(name, stopped_too=True)
        is_ring = any(each.replica in above for each in below)
        is_only_way = all(len(graph.into(each.replica)) == 1 for each in below)
        first = "" if is_only_way else " where they arrive from here first"
        yield finding(
            facts,
            "C11",
            source=source if source in facts.last else None,
            replica=name,
            channel=channel.name,
            severity=Severity.WARNING if is_ring else Severity.INFO,
            grade=Grade.PROVED if is_only_way and server.settings is not None else Grade.LIKELY,
            proof=(
                evidence("filters of the channel", ", ".join(filters), server),
                evidence("replicas", replicas, server),
            ),
            explanation=f"{name} does not apply all that it receives from {source}"
            f" ({', '.join(filters)}), and logs the GTIDs of what it leaves out. {replicas} cannot"
            f" receive these changes{first}: the GTIDs agree, but the rows are missing there."
            + (_IN_A_RING.format(server=name) if is_ring else _AS_INTENDED),
        )


_IN_A_RING: Final = (
    " The channels form a ring, in which each server is to have them. Remove the filter from"
    " {server}, and compare the rows."
)
_AS_INTENDED: Final = " If that is intended, nothing is wrong."


def _without_the_changes(
    facts: ClusterFacts, source: str, name: str, filters: tuple[str, ...]
) -> list[Edge]:
    """Return the edges below a filter, except to its own source, to peers, and to equal filters."""
    peers = {each for group in facts.graph.peers if name in group for each in group}
    return [
        each
        for each in facts.graph.out_of(name)
        if each.replica not in {source, *peers} and _withholding(each.channel) != filters
    ]


def _withholding(channel: ChannelSnapshot) -> tuple[str, ...]:
    """Return the filters of a channel that leave out changes of the operators' own schemas."""
    return tuple(each for each in channel.filters if _leaves_out_more(each))


def _leaves_out_more(filter_: str) -> bool:
    column, _, listed = filter_.partition("=")
    if column == REWRITES:
        return False
    schemas = {item.strip().partition(".")[0] for item in listed.split(",")}
    return "_Do_" in column or not schemas <= {*SYSTEM_SCHEMAS}


def ignored_by_receiver(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C11: transactions that a receiver drops because of IGNORE_SERVER_IDS."""
    for edge in facts.edges:
        channel = edge.channel
        if not edge.ignored:
            continue
        replica = facts.last[edge.replica]
        origins = ignored_servers(channel, replica=replica, last=facts.last)
        names = ", ".join(f"{name} ({facts.last[name].server_id})" for name in origins)
        unseen = (
            *unseen_sources(replica.name, graph=facts.graph, servers=facts.last),
            *_unread_sources(facts, replica.name),
        )
        yield on_edge(
            facts,
            edge,
            "C11",
            edge.ignored,
            severity=Severity.CRITICAL,
            grade=Grade.LIKELY if unseen else Grade.PROVED,
            proof=(
                evidence("IGNORE_SERVER_IDS", _listed(channel.ignored_server_ids), replica),
                *(
                    evidence("server_id", facts.last[name].server_id, facts.last[name])
                    for name in origins
                ),
                evidence("missing and not retrieved", edge.ignored, replica),
            ),
            explanation=f"{replica.name} does not have {many(edge.ignored)} of {names}, and its"
            " channel ignores the events of these servers (IGNORE_SERVER_IDS)."
            + (
                f" They may still arrive from {', '.join(unseen)}, which gtid-audit did not read."
                if unseen
                else " They do not arrive while the option is set."
            )
            + (
                ""
                if channel.auto_position
                else " A file position may have skipped some of them before."
            )
            + " Compare the rows, then remove the option. With auto-position on, the source then"
            " sends them.",
        )


def _unread_sources(facts: ClusterFacts, replica: str) -> list[str]:
    """Return the unread sources of a replica: they may deliver any transaction."""
    sources = {edge.source for edge in facts.graph.into(replica)}
    return sorted(name for name in sources if facts.last[name].gtid_executed is None)


def _listed(server_ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, server_ids))


RULES: Rules = (
    binary_log_filtered,  # C11
    channel_filtered,  # C11
    ignored_by_receiver,  # C11
)
