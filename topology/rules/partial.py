"""J4, U4: sources outside the audit, and servers of kinds that are not evaluated.

1. Both make the verdict UNKNOWN. `not_compared` lists the reasons, one entry for each finding.
2. An external source that the policy declares is not reported.
"""

from collections.abc import Iterator

from topology.facts import ClusterFacts
from topology.findings import Finding, Grade, Unknown
from topology.graph import Edge, is_another
from topology.rules.build import Rules, evidence, finding
from topology.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.unseen import (
    address_of,
    group_name_of,
    is_galera,
    undeclared_channels,
    unevaluated_kind,
)


def source_outside(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield J4: a channel from a server that is not part of this audit."""
    for name, channel in _undeclared(facts):
        replica, address = facts.last[name], address_of(channel)
        copies = _same_uuid(facts, name, channel)
        yield finding(
            facts,
            "J4",
            replica=name,
            channel=channel.name,
            grade=Grade.UNKNOWN,
            proof=(
                evidence("source", address, replica),
                evidence("source's server_uuid", channel.source_uuid or "unknown", replica),
                evidence("source's server_id", channel.source_server_id or "unknown", replica),
                *(evidence("server_uuid", copy.server_uuid, copy) for copy in copies),
                *(evidence("server_id", copy.server_id, copy) for copy in copies),
            ),
            explanation=f"{name} replicates from {address}, which is not a server of this audit."
            " gtid-audit did not compare the two. Add that server to the audit, or list it under"
            " `policy.external_sources` in the fleet file." + _copied(channel, copies),
        )
    for edge in _replaced(facts):
        replica = facts.last[edge.replica]
        yield finding(
            facts,
            "J4",
            replica=edge.replica,
            channel=edge.channel.name,
            grade=Grade.UNKNOWN,
            proof=(
                evidence("source", address_of(edge.channel), replica),
                evidence("source's server_uuid", edge.channel.source_uuid, replica),
                evidence(
                    "server_uuid", facts.last[edge.source].server_uuid, facts.last[edge.source]
                ),
            ),
            explanation=f"The source of {edge.replica} was replaced. {edge.doubt} It tries to"
            f" connect now, and what {edge.source} sends is not known yet. Audit again when the"
            " receiver is connected.",
        )


def kind_not_evaluated(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U4: a group member, a Galera node, or a MariaDB server."""
    for name in sorted(facts.last):
        server = facts.last[name]
        kind = unevaluated_kind(server)
        if kind is not None:
            yield finding(
                facts,
                "U4",
                replica=name,
                grade=Grade.UNKNOWN,
                proof=(
                    evidence("version", server.version_text, server),
                    evidence("kind", kind, server),
                ),
                explanation=f"{name} is {kind}. This version does not evaluate how such servers"
                " replicate among themselves, and does not report a difference between them."
                f" {_evaluated_of_channels(server)}",
            )


def _evaluated_of_channels(server: ServerSnapshot) -> str:
    if not (group_name_of(server) or is_galera(server)):
        return "gtid-audit evaluates channels between servers."
    return (
        "gtid-audit evaluates channels between servers, and assumes that each member still receives"
        " what any other member has. If a member has left the group, the others may be missing its"
        " transactions, and gtid-audit may not report them as errant on an async replica."
    )


def not_compared(facts: ClusterFacts) -> Iterator[Unknown]:
    """Yield what the verdict does not cover."""
    cluster = facts.snapshot.cluster
    for name, channel in _undeclared(facts):
        fact = f"source of channel {channel.name!r}" if channel.name else "source"
        yield Unknown(cluster, name, fact, f"{address_of(channel)} is not part of this audit")
    for edge in _replaced(facts):
        fact = f"source of channel {edge.channel.name!r}" if edge.channel.name else "source"
        reason = f"{edge.source} has another server_uuid than the source had"
        yield Unknown(cluster, edge.replica, fact, reason)
    for left, right in facts.same:
        reason = f"{left} and {right} are the same server: list it once"
        yield Unknown(cluster, right, "identity", reason)
    for name in sorted(facts.last):
        kind = unevaluated_kind(facts.last[name])
        if kind is not None:
            yield Unknown(cluster, name, "replication within its group", f"{name} is {kind}")


def _replaced(facts: ClusterFacts) -> Iterator[Edge]:
    """Yield the channels that connect to another server than before, as after a clone.

    A stopped receiver is not among them: A4 and A7 report it, and nothing arrives until it starts.
    """
    others = {name for name, _ in facts.torn} | {name for group in facts.twins for name in group}
    for edge in facts.graph.edges:
        connects = edge.channel.receiver is ThreadState.CONNECTING
        if edge.is_moved and connects and not others & {edge.source, edge.replica}:
            yield edge


def _same_uuid(
    facts: ClusterFacts, replica: str, channel: ChannelSnapshot
) -> tuple[ServerSnapshot, ...]:
    """Return the servers that have the source's server_uuid and are another server."""
    return tuple(
        server
        for name, server in sorted(facts.last.items())
        if name != replica
        and server.server_uuid is not None
        and server.server_uuid == channel.source_uuid
        and is_another(channel, server)
    )


def _copied(channel: ChannelSnapshot, copies: tuple[ServerSnapshot, ...]) -> str:
    if not copies:
        return ""
    copy = copies[0]
    return (
        f" {copy.name} has the server_uuid of that source and another server_id ({copy.server_id};"
        f" the source has {channel.source_server_id}): one of the two probably has a copy of the"
        " other's auto.cnf. If the server_id was changed while the replica was connected, restart"
        " the receiver and audit again."
    )


def _undeclared(facts: ClusterFacts) -> Iterator[tuple[str, ChannelSnapshot]]:
    others = {name for name, _ in facts.torn} | {name for group in facts.twins for name in group}
    read = {f"{facts.last[name].host}:{facts.last[name].port}" for name in others}
    yield from undeclared_channels(facts.graph, facts.policy, read=read)


RULES: Rules = (
    source_outside,  # J4
    kind_not_evaluated,  # U4
)
