"""The servers at the start of a plan: a model made of the last readings and the findings."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from gtid import GtidSet
from repair.model.channel_doubts import doubt_of, failing_receiver
from repair.model.former_history import FormerSigns, refusing_servers, signs_of
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.model.settled_model import settle
from repair.model.strategy_case import LogEvidence, WithoutGtid
from topology.catalogue.findings import ClusterAudit, Finding, Severity
from topology.facts.applier_facts import ApplierFacts, is_stopped_at_end
from topology.facts.cluster_readings import read_twice
from topology.facts.graph import Edge, build_graph
from topology.facts.memberships import group_name_of
from topology.facts.progress import appliers_of
from topology.readings.dialect import BINARY_LOG, BINARY_LOG_FILTERS, REWRITES, dialect_of
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    ReadServer,
    ServerSnapshot,
    ThreadState,
)

# The applier does not continue after these until the operator repairs it.
_STUCK_CODES = frozenset({"A1", "A2", "A3"})
# If the GTID is executed, the applier passes these without evaluating the event.
_SKIPPABLE_CODES = frozenset({"A2", "A3"})
# No set of these servers is reliable.
_DISTRUSTED_CODES = frozenset({"C1", "U2"})


def known_servers(snapshot: ClusterSnapshot, audit: ClusterAudit) -> dict[str, ReadServer]:
    """Return the last readings on which a plan may be based, by name.

    Only of servers whose sets were read twice, because the rules evaluate no others. If a plan
    stopped there, the next audit would not find what is left. A server is also excluded if its
    binary logs were emptied between the readings. RESET BINARY LOGS AND GTIDS and SET GLOBAL
    gtid_purged may have done that, and then earlier positions and sets belong to another history.
    """
    distrusted = {
        name
        for finding in audit.findings
        if finding.code in _DISTRUSTED_CODES
        for name in (finding.source, finding.replica)
    }
    return {
        name: each.last
        for name, each in read_twice(snapshot).items()
        if not (each.first.logged and each.last.gtid_executed and not each.last.logged)
        and each.last.version is not None
        and each.last.channels is not None
        and name not in distrusted
    }


def executed_by(servers: Iterable[ServerSnapshot]) -> dict[str, GtidSet]:
    """Return gtid_executed of servers by name, as it was read."""
    return {server.name: server.gtid_executed or GtidSet() for server in servers}


def start_model(snapshot: ClusterSnapshot, audit: ClusterAudit, evidence: LogEvidence) -> Model:
    """Return the servers in the state that current replication will reach without any step."""
    known = known_servers(snapshot, audit)
    refusing = refusing_servers(snapshot)
    unread = {each.name for each in snapshot.first if each.channels is None}
    owned_first = {each.name: each.gtid_owned or GtidSet() for each in snapshot.first}
    skipping = {each.name for each in (*snapshot.first, *snapshot.last) if _skips(each)}
    graph = build_graph(snapshot)
    edges = {(edge.replica, edge.channel.name): edge for edge in graph.edges}
    readings = {name: each for name, each in read_twice(snapshot).items() if name in known}
    appliers = appliers_of(snapshot, fully_read=readings)
    on_channels, on_replicas = _by_place(audit)
    torn = [each.replica for each in audit.findings if each.code == "U2" and each.replica]
    lost_logs = [each for each in audit.findings if each.code == "H5"]
    settled = settle(
        Model(
            {
                name: _server(
                    server,
                    tuple(
                        _channel(
                            channel,
                            replica=server,
                            edge=edges.get((name, channel.name)),
                            findings=on_channels.get((name, channel.name), []),
                            evidence=evidence,
                            behind=_behind(appliers.get((name, channel.name))),
                            passed_beside=_passed_beside(channel, on_replicas.get(name, [])),
                            copied=doubt_of(
                                edges.get((name, channel.name)), server, graph, known, audit
                            ),
                            former=signs_of(
                                edges.get((name, channel.name)), snapshot, known, refusing
                            ),
                        )
                        for channel in server.channels or ()
                    ),
                    skips_next=name in skipping,
                    had_unread_channels=name in unread,
                    group_name=_group_name(server, known),
                    owned_first=owned_first.get(name, GtidSet()),
                    torn_below=next((each for each in torn if name in graph.upstream_of(each)), ""),
                    lost=GtidSet.union_of(
                        each.gtid_set for each in lost_logs if each.source == name
                    ),
                )
                for name, server in known.items()
            }
        )
    )
    return Model(
        {
            name: replace(server, due=server.executed - known[name].gtid_executed)
            for name, server in settled.servers.items()
        }
    )


def _skips(server: ServerSnapshot) -> bool:
    """Return whether the applier of a server skips the next transaction.

    Both readings count. Once the counter is used up, its transaction is passed, and is a gap (H8)
    only when the applier has no work left.
    """
    return server.setting("sql_replica_skip_counter") not in (None, "0") or any(
        channel.skip_counter for channel in server.channels or ()
    )


def _server(
    server: ReadServer,
    channels: tuple[ModelChannel, ...],
    *,
    skips_next: bool,
    had_unread_channels: bool,
    group_name: UUID | None,
    owned_first: GtidSet,
    torn_below: str,
    lost: GtidSet,
) -> ModelServer:
    assert server.version is not None, "known servers have a version"
    return ModelServer(
        name=server.name,
        server_uuid=server.server_uuid,
        version=server.version,
        vendor=server.vendor,
        executed=server.gtid_executed,
        purged=server.gtid_purged,
        committing=server.gtid_owned,
        long_committing=server.gtid_owned & owned_first,
        channels=channels,
        server_id=server.server_id,
        group_name=group_name,
        torn_below=torn_below,
        without_event=lost,
        sends_by_sets=server.setting("gtid_mode") in (None, "ON"),
        are_settings_known=server.settings is not None,
        skips_next=skips_next,
        had_unread_channels=had_unread_channels,
        log_filters=tuple(
            (option, value)
            for option in BINARY_LOG_FILTERS.values()
            if (value := server.setting(option))
        ),
        logs_rows=server.setting("binlog_format") in (None, "ROW"),
        row_image=server.setting("binlog_row_image") or "FULL",
        logs_partial_json="PARTIAL_JSON" in (server.setting("binlog_row_value_options") or ""),
        has_log=server.setting("log_bin") != "OFF" and server.setting(BINARY_LOG) is None,
        logs_received=server.setting("log_replica_updates") != "OFF",
    )


def _group_name(server: ServerSnapshot, known: Mapping[str, ReadServer]) -> UUID | None:
    """Return the group of a server; that of another member if its own settings were not read."""
    name = group_name_of(server)
    if not name and server.settings is None:
        name = next(filter(None, map(group_name_of, known.values())), "")
    return UUID(name) if name else None


def _channel(
    channel: ChannelSnapshot,
    *,
    replica: ServerSnapshot,
    edge: Edge | None,
    findings: list[Finding],
    evidence: LogEvidence,
    behind: GtidSet,
    passed_beside: GtidSet,
    former: FormerSigns,
    copied: str,
) -> ModelChannel:
    source = edge.source if edge is not None else None
    events, doubt = evidence.events, _doubt(edge, replica) or copied
    without_gtid = evidence.without_gtid.get((replica.name, channel.name), WithoutGtid())
    stuck_at = GtidSet.union_of(
        evidence.contents[finding.id].wanted
        for finding in findings
        if finding.code in _SKIPPABLE_CODES and finding.id in evidence.contents
    )
    return ModelChannel(
        name=channel.name,
        source=source,
        auto_position=channel.auto_position,
        running=channel.is_on,
        is_connected=channel.receiver is ThreadState.RUNNING,
        fails=failing_receiver(channel, source, findings)
        or (doubt if edge is not None and edge.is_moved else ""),
        doubt=doubt,
        retrieved=channel.gtid_retrieved,
        bypassed=GtidSet.union_of(finding.gtid_set for finding in findings if finding.code == "H1"),
        doomed=GtidSet.of(events[finding.id].gtid for finding in findings if finding.id in events),
        passed=_passed(findings) | (behind - (replica.gtid_executed or GtidSet())),
        passed_beside=passed_beside,
        dropped=GtidSet.union_of(finding.gtid_set for finding in findings if finding.code == "C2"),
        may_be_former=former.may_be_former or _is_behind_a_former_place(findings),
        is_loss_shown=former.is_loss_shown,
        by_hand=former.by_hand,
        orphaned=former.orphaned,
        around_start=former.around_start,
        lost_place=former.lost_place,
        is_stuck=any(finding.code in _STUCK_CODES for finding in findings),
        stuck_at=stuck_at,
        until=channel.until,
        rewrites=next((each for each in channel.filters if each.startswith(REWRITES)), ""),
        without_gtid_at=without_gtid.at,
        without_gtid_maybe_at=without_gtid.maybe_at,
        without_gtid_unread=without_gtid.unread,
        held_back_seconds=channel.delay_seconds if _only_applier_is_stopped(channel) else 0,
        hides_waiting=former.hides_waiting,
    )


def _behind(applier: ApplierFacts | None) -> GtidSet:
    """Return what a running applier has passed, or one that stopped at its receiver's position.

    If it stopped between the readings, its position was read once, which is not a finding (H8) yet.
    A position before all transactions of a log does not count: a restart may have set both.
    """
    if applier is None:
        return GtidSet()
    channel = applier.channel
    if channel.applier is ThreadState.RUNNING:
        return applier.passed
    place = channel.applied_to
    is_before_all = place is not None and place == channel.received_to and place.is_before_all
    is_at_end = is_stopped_at_end(channel) or (is_before_all and not channel.has_error)
    return channel.gtid_retrieved - applier.passed if is_at_end else GtidSet()


def _by_place(
    audit: ClusterAudit,
) -> tuple[Mapping[tuple[str, str], list[Finding]], Mapping[str, list[Finding]]]:
    """Return the findings by replica and channel, and by replica."""
    on_channels: dict[tuple[str, str], list[Finding]] = {}
    on_replicas: dict[str, list[Finding]] = {}
    for finding in audit.findings:
        if finding.replica is not None:
            on_replicas.setdefault(finding.replica, []).append(finding)
            if finding.channel is not None:
                place = (finding.replica, finding.channel)
                on_channels.setdefault(place, []).append(finding)
    return on_channels, on_replicas


def _passed_beside(channel: ChannelSnapshot, findings: Iterable[Finding]) -> GtidSet:
    """Return what an applier has passed in addition, because another channel's applier has.

    `findings` are those of its replica.

    An applier that stopped before the end of its relay log may be before it, and apply it when it
    is started.
    """
    is_at_end = channel.applied_to == channel.received_to
    if channel.applier is ThreadState.STOPPED and not is_at_end:
        return GtidSet()
    return channel.gtid_retrieved & _passed(findings)


def _passed(findings: Iterable[Finding]) -> GtidSet:
    """Return what the channel will not deliver; the applier may have passed more.

    What the source does not have either is no finding of this channel. If a step adds it to the
    source, its receiver does not request it, because it received it before. A gap that is a warning
    (T1) may have been skipped: rules/out_of_order.py.
    """
    return GtidSet.union_of(
        finding.gtid_set
        for finding in findings
        if finding.code == "H8" or (finding.code == "T1" and finding.severity is Severity.WARNING)
    )


def _doubt(edge: Edge | None, replica: ServerSnapshot) -> str:
    """Return why another server may be at a channel's address, and what settles it, or "".

    CHANGE REPLICATION SOURCE TO with the same address keeps the old SOURCE_UUID (seen on 9.7.4).
    Only a connection shows which server is at the address.
    """
    if edge is None or not edge.doubt or replica.version is None:
        return ""
    dialect = dialect_of(replica.version)
    if not edge.channel.auto_position:
        return (
            f"{edge.doubt} Its file position may not belong to the log of that server. Find out"
            " from which server it must replicate, and set address and position with"
            f" {dialect.change_source}"
        )
    return (
        f"{edge.doubt} Find out from which server it must replicate. If it is another one, set the"
        f" address with {dialect.change_source}. Then start only the receiver, which applies"
        f" nothing ({dialect.start_replica} IO_THREAD), and audit and plan again"
    )


def _is_behind_a_former_place(findings: list[Finding]) -> bool:
    return any(
        fact.fact == "place in a former log" and fact.value != "not seen"
        for finding in findings
        if finding.code == "H1"
        for fact in finding.evidence
    )


def _only_applier_is_stopped(channel: ChannelSnapshot) -> bool:
    is_stopped = channel.applier is ThreadState.STOPPED and not channel.applier_errno
    return is_stopped and channel.receiver is not ThreadState.STOPPED
