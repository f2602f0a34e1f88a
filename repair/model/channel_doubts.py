"""Why a channel may deliver something else than the sets say, as far as an audit shows it."""

from collections.abc import Iterable, Mapping

from gtid import GtidSet
from topology.catalogue.error_texts import ANOTHER_REPLICA, REFUSED_ACCOUNT, row_of
from topology.catalogue.findings import ClusterAudit, Finding
from topology.facts.graph import Edge, Graph, is_another, is_at_address
from topology.facts.memberships import group_name_of
from topology.facts.unseen import address_of
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ServerSnapshot
from topology.rules.distinct_uuids import have_distinct_uuids
from topology.rules.threads import may_connect
from topology.rules.without_content import WAITS_DECLARED


def doubt_of(
    edge: Edge | None,
    replica: ServerSnapshot,
    graph: Graph,
    known: Mapping[str, ReadServer],
    audit: ClusterAudit,
) -> str:
    """Return the first doubt about what a channel of a replica delivers, or ""."""
    return (
        _copy_of(replica, graph)
        or _another_at_address(edge, known)
        or _of_a_diverged_source(edge, replica, graph, known, audit)
        or _passes_declared(edge, audit)
    )


def _copy_of(replica: ServerSnapshot, graph: Graph) -> str:
    """Return that an unread source has the server_uuid of a replica; "" if none has.

    The replica applies what that source commits under the UUID: it drops only events with its own
    server_id.
    """
    for name, channel in graph.outside:
        if replica.server_uuid != channel.source_uuid or not is_another(channel, replica):
            continue
        return (
            f"{name} replicates from {address_of(channel)}, which was not read and has the"
            f" server_uuid of {replica.name} and another server_id ({channel.source_server_id}):"
            f" what it commits would be applied on {replica.name} under its own GTIDs. Give one of"
            " the two its own server_uuid (stop it, remove auto.cnf, start it), and compare the"
            " rows"
        )
    return ""


def _another_at_address(edge: Edge | None, known: Mapping[str, ReadServer]) -> str:
    """Return that the source's own source is at a channel's address; "" if it is not.

    No server receives from itself, so a server with a copy of the source's server_uuid is there.
    """
    source = None if edge is None else known.get(edge.source)
    if edge is None or source is None or is_at_address(edge.channel, source):
        return ""
    here = (edge.channel.source_host, edge.channel.source_port)
    if here not in {(each.source_host, each.source_port) for each in source.channels or ()}:
        return ""
    return (
        f"{source.name} replicates from {address_of(edge.channel)}, and so does {edge.replica}:"
        f" another server with the server_uuid of {source.name} is there. Give one of the two its"
        " own server_uuid (stop it, remove auto.cnf, start it), and audit again"
    )


def _of_a_diverged_source(
    edge: Edge | None,
    replica: ServerSnapshot,
    graph: Graph,
    known: Mapping[str, ReadServer],
    audit: ClusterAudit,
) -> str:
    """Return that a channel brings what the other part of the cluster does not have (J3), or "".

    A former primary that returned with a tail is above the channel. The replica would have the tail
    as well, and could not join the servers that are in use: those of the part that is larger
    without the replica. J3 reports either of the two as diverged, because each has what the other
    one does not have. Between parts of one size nothing shows which is in use.

    Of a group, what precedes the tail may differ too: it may have used these GTIDs for other
    transactions, as after a bootstrap from a member that was behind. Sets do not show that. What
    follows then does not fit the rows.
    """
    source = None if edge is None else known.get(edge.source)
    if edge is None or source is None:
        return ""
    above = {source.name, *graph.upstream_of(source.name, stopped_too=True)}
    for finding in (each for each in audit.findings if each.code == "J3"):
        if group_name_of(source) and finding.replica == source.name:
            return (
                f"{source.name} has {finding.gtid_set.shortened()}, which no member of its group"
                " has (J3), and may have other transactions under the GTIDs before them: compare"
                f" contents (`--content`), and decide whether {edge.replica} is to receive them"
            )
        for here, there in ((finding.replica, finding.source), (finding.source, finding.replica)):
            if here not in above or there is None or there not in known or here not in known:
                continue
            other = known[there].gtid_executed
            has = replica.gtid_executed or GtidSet()
            tail = known[here].gtid_executed - other - has
            parts = [_linked(name, graph, without=replica.name) for name in (here, there)]
            # With more than the other part has, it cannot join that one as it is.
            if tail and has <= other and len(parts[0]) <= len(parts[1]):
                return (
                    f"{here} has {tail.shortened()}, which {there} does not have (J3):"
                    f" {edge.replica} would fetch them, and could not join {there} afterwards."
                    " Decide first which of the two is the source"
                )
    return ""


def _linked(name: str, graph: Graph, *, without: str) -> set[str]:
    """Return the servers that channels or a group link with one, but for those of another one."""
    links = [{each.source, each.replica} for each in graph.edges]
    links = [each for each in (*links, *map(set, graph.together)) if without not in each]
    found = {name}
    while more := set().union(*(each for each in links if each & found)) - found:
        found |= more
    return found


def _passes_declared(edge: Edge | None, audit: ClusterAudit) -> str:
    """Return that an applier would pass what waits, because gtid_purged has it (E4)."""
    if edge is None:
        return ""
    for finding in audit.findings:
        if finding.code != "E4" or finding.replica != edge.replica:
            continue
        if finding.channel != edge.channel.name:
            continue
        if any(each.fact == WAITS_DECLARED for each in finding.evidence):
            return (
                f"{finding.gtid_set.shortened()} wait in the relay log of {edge.replica}, and its"
                " gtid_purged has them (E4): the applier would pass them and apply none, and no"
                f" audit would show it afterwards. Compare the rows of {edge.replica} with those"
                f" of {edge.source}"
            )
    return ""


def failing_receiver(
    channel: ChannelSnapshot, source: str | None, findings: Iterable[Finding]
) -> str:
    """Return why a start does not help a receiver that has an error; "" if it may help.

    Only the error text shows these causes; no set or setting does. The error stays until the next
    start.
    """
    text = row_of(channel.receiver_error)
    name = source or "the source"
    if text is not None and text.title == ANOTHER_REPLICA:
        if any(have_distinct_uuids(each) for each in findings):
            return ""
        return (
            f"{name} serves another replica with the same server_uuid, whose receiver would stop:"
            " give one of the two its own (stop it, remove auto.cnf, start it) and start both"
        )
    if text is not None and text.title in REFUSED_ACCOUNT and not may_connect(channel):
        return f"its receiver cannot connect to {name} (error {channel.receiver_errno}, see A4)"
    return ""
