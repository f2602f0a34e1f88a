"""A4, A9, C4, C6: servers that do not forward all transactions to their replicas.

1. C6: log_replica_updates = OFF on an intermediate server. Its binary logs do not have what it
   receives, so its replicas get only its own commits, without an error while they are connected
   (seen on 9.7.4). Harmless variants: a pair in which each commits for the other, a server without
   replicas, and a replica that receives the same transactions from another server.
2. A4: a source without a binary log (log_bin = OFF). It refuses every receiver. Until a receiver
   has tried to connect, no thread shows it.
3. C4: a source with gtid_mode other than ON. A receiver with auto-position compares the source's
   mode with ON when it connects (sql/rpl_replica.cc, get_master_version_and_clock), and stops with
   13117 (seen on 9.7.4). A connected receiver continues, so nothing shows the fault until it
   reconnects.
4. A9: a server that closed its binary log after an error, with binlog_error_action = IGNORE_ERROR
   (the default before 5.7.7). It continues to run: log_bin is ON, connected receivers stay
   connected, and transactions of clients get no GTID, so that all sets stay equal (seen on 9.7.4).
   There is no harmless variant: a log that is rotated or reset is always shown.
"""

from collections.abc import Iterator

from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.graph import Graph, is_at_address
from topology.facts.unseen import address_of, outside_channels
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.rules.build import Rules, evidence, finding
from topology.rules.threads import has_closed_log, has_no_log, may_connect


def updates_not_logged(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C6: transactions do not reach a replica, because an upstream server does not log."""
    passing = frozenset(name for name, server in facts.last.items() if _logs_updates(server))
    for edge in facts.graph.edges:
        if edge.source in passing:
            continue
        arriving = _arriving(facts.graph, edge.replica, passing)
        # What the source gets only by way of the replica, the replica has.
        upstream = facts.graph.upstream_of(edge.source, stopped_too=True, not_through=edge.replica)
        cut = sorted(upstream - {edge.source, edge.replica} - arriving)
        direct = {
            address_of(each) for name, each in outside_channels(facts.graph) if name == edge.replica
        }
        cut += sorted(
            {
                address_of(each)
                for name, each in outside_channels(facts.graph)
                if name == edge.source
            }
            - direct
        )
        if cut:
            server = facts.last[edge.source]
            yield finding(
                facts,
                "C6",
                source=edge.source,
                replica=edge.replica,
                channel=edge.channel.name,
                grade=Grade.PROVED,
                proof=(
                    evidence("log_replica_updates", "OFF", server),
                    evidence("receives from", ", ".join(cut), server),
                ),
                explanation=f"{edge.source} does not log what it receives (log_replica_updates ="
                f" OFF): the transactions of {', '.join(cut)} do not reach {edge.replica} through"
                f" it. Set log_replica_updates = ON and restart {edge.source}, or let"
                f" {edge.replica} replicate from their source.",
            )


def source_without_log(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A4: a channel's source has no binary log, and the receiver has not detected it yet."""
    for edge in facts.graph.edges:
        channel, source = edge.channel, facts.last[edge.source]
        noticed = channel.receiver_errno or channel.receiver_error
        copy = _copy_text(channel, source)
        if has_no_log(source) and (not noticed or may_connect(channel)):
            yield finding(
                facts,
                "A4",
                source=edge.source,
                replica=edge.replica,
                channel=channel.name,
                grade=Grade.LIKELY if copy else Grade.PROVED,
                strategies=("configure",),
                proof=(
                    evidence("log_bin", "OFF", source),
                    evidence("receiver", channel.receiver.value, facts.last[edge.replica]),
                ),
                explanation=f"{edge.source} has no binary log (log_bin = OFF): it refuses the"
                f" receiver of {edge.replica}, and its transactions have no GTID. Restart"
                f" {edge.source} with its binary log.{copy}",
            )


def _copy_text(channel: ChannelSnapshot, source: ServerSnapshot) -> str:
    """Explain that another server may be at the channel's address; "" if the source was read there.

    A channel shows the server_uuid and server_id that its source last reported. A copy may have the
    same ones: the receiver is connected to it, or its next connection will be.
    """
    if is_at_address(channel, source):
        return ""
    connected = channel.receiver is ThreadState.RUNNING
    return (
        f" The receiver {'is connected' if connected else 'connects'} to {address_of(channel)},"
        f" where {source.name} was not read: another server with the same server_uuid and server_id"
        " may be there."
    )


def log_closed(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A9: a server closed its binary log and continues without it."""
    for name in sorted(facts.last):
        server = facts.last[name]
        if not has_closed_log(server):
            continue
        below = sorted({edge.replica for edge in facts.graph.out_of(name)})
        receives = " It applies what it receives, but does not log it." if server.channels else ""
        yield finding(
            facts,
            "A9",
            replica=name,
            grade=Grade.PROVED,
            proof=(
                evidence("log_bin", "ON", server),
                evidence("binary log", "closed", server),
            ),
            explanation=f"{name} closed its binary log after an error, and continues without it"
            " (binlog_error_action = IGNORE_ERROR; the error log has the error). What clients"
            " commit on it gets no GTID, and reaches no other server"
            + (f", not even {', '.join(below)}" if below else "")
            + f": the sets stay equal, but the rows differ.{receives} Stop the writes, remove the"
            f" cause (often a full disk) and restart {name}. No log has what was committed since"
            " the log was closed. Compare the rows afterwards, or rebuild the other servers.",
        )


def source_refuses_sets(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C4: the next connection of a channel with auto-position will stop with an error."""
    for edge in facts.graph.edges:
        channel, source, replica = edge.channel, facts.last[edge.source], facts.last[edge.replica]
        mode = mode_not_on(source)
        noticed = channel.receiver_errno or channel.receiver_error
        if mode is None or not channel.auto_position or (noticed and not may_connect(channel)):
            continue
        connected = channel.receiver is ThreadState.RUNNING
        copy = _copy_text(channel, source)
        yield finding(
            facts,
            "C4",
            source=edge.source,
            replica=edge.replica,
            channel=channel.name,
            grade=Grade.LIKELY if copy else Grade.PROVED,
            proof=(
                evidence("gtid_mode", mode, source),
                evidence("auto_position", 1, replica),
                evidence("receiver", channel.receiver.value, replica),
            ),
            explanation=f"gtid_mode is {mode} on {edge.source}, and the channel of {edge.replica}"
            " uses auto-position. "
            + (
                "The receiver is connected, and continues until its connection ends."
                if connected
                else "The receiver is not connected."
            )
            + " Its next connection stops with error 13117 (GTID_MODE of the source is not ON)."
            f" SET GLOBAL gtid_mode = ON on {edge.source}.{copy}",
        )


def mode_not_on(server: ServerSnapshot) -> str | None:
    """Return the gtid_mode with which a source refuses auto-position; None if it does not."""
    return notable_values(server.notable_settings).get("gtid_mode")


def _logs_updates(server: ServerSnapshot) -> bool:
    """Return whether a server logs what it receives, or the setting is unknown."""
    notable = notable_values(server.notable_settings).keys()
    return not {"log_replica_updates", "log_bin"} & notable


def _arriving(graph: Graph, replica: str, passing: frozenset[str]) -> frozenset[str]:
    """Return the servers whose transactions reach a replica through servers that forward them."""
    found: set[str] = set()
    frontier = {replica}
    while frontier:
        sources = {edge.source for edge in graph.edges if edge.replica in frontier}
        members = {name for peers in graph.peers if frontier & {*peers} for name in peers}
        sources = (sources | members) - found
        found |= sources
        frontier = sources & passing
    return frozenset(found)


RULES: Rules = (
    source_without_log,  # A4
    log_closed,  # A9
    source_refuses_sets,  # C4
    updates_not_logged,  # C6
)
