"""C11: filters that withhold transactions from replicas.

1. binlog_do_db and binlog_ignore_db on a server that has replicas. The server logs the GTID without
   the changes, so its replicas have the same sets but not the same rows (seen on 9.7.4: the end of
   a chain misses rows permanently). Harmless variant: the same options on a server without
   replicas. A filter of the replica itself (replicate_*) is the operator's choice for that replica,
   and no finding.
2. IGNORE_SERVER_IDS of a channel (refused with GTIDs from 8.0 on; seen on 5.6.24). The receiver
   drops the events of these servers and does not count them as received, so the GTIDs stay missing.
   Harmless variants: the option on a channel that misses nothing, and another channel that delivers
   them.
"""

from collections.abc import Iterator

from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.ignored_servers import ignored_servers
from topology.facts.unseen import unseen_sources
from topology.readings.notable_settings import notable_values
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
    ignored_by_receiver,  # C11
)
