"""C1, J4, U1, U2, U3, U4: which servers answered, and what the audit does not cover.

1. J4 and U4 make the verdict UNKNOWN. `not_compared` lists the reasons, one entry for each finding.
2. An external source that the policy declares is not reported, unless its replica does not have
   what another server of the audit has, or has work of its own that is missing there
   (facts/below_external.py): then J4 is a warning, which can be accepted.
"""

from collections.abc import Iterator

from topology.catalogue.findings import Finding, Grade, Severity, Unknown
from topology.facts.below_external import BelowExternal, Sign, missing_below_external
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.graph import Edge, is_another
from topology.facts.memberships import is_galera
from topology.facts.unseen import (
    address_of,
    is_aurora_reader,
    undeclared_channels,
    unevaluated_kind,
)
from topology.readings.snapshot import (
    ChannelSnapshot,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.rules.build import Rules, evidence, finding, many
from topology.rules.group_members import groups_not_compared


def duplicate_server_uuid(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C1: two servers with one UUID, one finding per server after the first of the group."""
    for first, *others in facts.twins:
        for other in others:
            if (first, other) in facts.same:
                continue  # one server under two names: see not_compared
            pair = (facts.last[first], facts.last[other])
            yield finding(
                facts,
                "C1",
                source=first,
                replica=other,
                grade=Grade.PROVED,
                proof=(
                    *(evidence("server_uuid", server.server_uuid, server) for server in pair),
                    *(
                        evidence(name, server.setting(name), server)
                        for name in ("hostname", "port", "datadir")
                        for server in pair
                    ),
                ),
                explanation=f"{first} and {other} have the same server_uuid. Their transactions"
                " cannot be distinguished, and no comparison of their sets is valid.",
            )


def unparseable_facts(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U3: one finding for each server with an answer that cannot be parsed."""
    for name in sorted(facts.last):
        texts = _unread(facts, name, unparseable=True)
        if texts:
            listed = ", ".join(sorted({fact.fact for fact in texts}))
            yield finding(
                facts,
                "U3",
                replica=name,
                grade=Grade.UNKNOWN,
                strategies=("read_again",),
                proof=tuple(
                    evidence(fact.fact, fact.detail, server)
                    for fact, server in sorted(texts.items(), key=lambda item: item[0])
                ),
                explanation=f"{name} answered, but gtid-audit cannot parse: {listed}. It does not"
                " evaluate what depends on it.",
            )


def _unread(
    facts: ClusterFacts, name: str, *, unparseable: bool
) -> dict[UnreadFact, ServerSnapshot]:
    """Return what was not read in either reading, with one kind of reason."""
    return {
        fact: server
        for server in (facts.first[name], facts.last[name])
        for fact in server.unread
        if (fact.reason is UnreadReason.UNPARSEABLE) is unparseable
    }


def unreadable_facts(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U1: one finding for each server that did not answer everything."""
    for name in sorted(facts.last):
        unread = _unread(facts, name, unparseable=False)
        if unread and not _is_of_a_kind_not_evaluated(facts.last[name]):
            unsupported = all(fact.reason is UnreadReason.UNSUPPORTED for fact in unread)
            listed = ", ".join(sorted({fact.fact for fact in unread}))
            yield finding(
                facts,
                "U1",
                replica=name,
                grade=Grade.UNKNOWN,
                strategies=("configure",) if unsupported else None,
                proof=tuple(
                    evidence(fact.fact, f"{fact.reason.value}: {fact.detail}", server)
                    for fact, server in sorted(unread.items(), key=lambda item: item[0])
                ),
                explanation=f"gtid-audit could not read from {name}: {listed}. It does not"
                " evaluate what depends on it.",
            )


def _is_of_a_kind_not_evaluated(server: ServerSnapshot) -> bool:
    """Return whether U4 reports the server: MariaDB, for one, has no MySQL GTIDs to read."""
    return server.gtid_executed is None and unevaluated_kind(server) is not None


def torn_reading(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U2: the server was reset, restarted or replaced between the two readings."""
    for name, sign in facts.torn:
        yield finding(
            facts,
            "U2",
            replica=name,
            grade=Grade.UNKNOWN,
            proof=(evidence("what shows it", sign, facts.last[name]),),
            explanation=f"{name} was restarted or reset while gtid-audit read it. Its sets are not"
            " evaluated.",
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
    for found in missing_below_external(facts.graph, facts.policy, facts.fully_read):
        yield _below_external(facts, found)
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
    """Yield U4: a Galera node, an Aurora reader, or a server without MySQL's GTIDs."""
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
                explanation=f"{name} is {kind}. {_not_evaluated_of(server)}",
            )


def _not_evaluated_of(server: ServerSnapshot) -> str:
    if is_aurora_reader(server):
        return (
            "It reads the storage volume of its writer and has no binary log, so its sets are not"
            " compared. Audit the writer of its Aurora cluster."
        )
    among = (
        "This version does not evaluate how such servers replicate among themselves, and does not"
        " report a difference between them."
    )
    if not is_galera(server):
        return f"{among} gtid-audit evaluates channels between servers."
    return (
        f"{among}"
        " gtid-audit evaluates channels between servers, and assumes that each node still receives"
        " what any other node has. If a node has left the cluster, the others may be missing its"
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
    yield from groups_not_compared(facts)


def _below_external(facts: ClusterFacts, found: BelowExternal) -> Finding:
    replica, address = facts.last[found.server], address_of(found.channel)
    what, holder = many(found.gtids), found.holder
    text = (
        f"{found.server} replicates from {address}, which the policy declares external, and"
        + {
            Sign.PASSED: f" does not have {what} that {holder} has. It has later ones of the same"
            f" origin: unless {address} applies them out of order, it does not have them either,"
            " and they never arrive.",
            Sign.STANDS: f" does not have {what} that {holder} has. Nothing of the same origin"
            f" arrived between the readings. {address} may apply late (SOURCE_DELAY, a backlog),"
            f" may have stopped, or may never receive what was committed on {holder}.",
            Sign.OWN: f" has committed {what} itself. {holder}, whose transactions it has, receives"
            f" from no server and has none of these: they are errant, unless {holder} was detached"
            " after a failover.",
        }[found.sign]
    )
    has = found.server if found.sign is Sign.OWN else holder
    return finding(
        facts,
        "J4",
        replica=found.server,
        channel=found.channel.name,
        gtid_set=found.gtids,
        grade=Grade.LIKELY,
        severity=Severity.WARNING,
        proof=(
            evidence("source", address, replica),
            evidence(found.sign.value, found.gtids, replica),
            evidence("executed", found.gtids, facts.last[has]),
        ),
        explanation=f"{text} Audit {address} together with these servers.",
    )


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
    duplicate_server_uuid,  # C1
    unreadable_facts,  # U1
    unparseable_facts,  # U3
    torn_reading,  # U2
    source_outside,  # J4
    kind_not_evaluated,  # U4
)
