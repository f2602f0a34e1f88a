"""The servers as a plan begins: a model made of the last readings and of what the audit found."""

from uuid import UUID

from gtid import GtidSet
from repair.case import LogEvidence
from repair.model import Model, ModelChannel, ModelServer, settle
from topology.error_texts import row_of
from topology.findings import ClusterAudit, Finding
from topology.graph import build_graph
from topology.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot, ThreadState
from topology.unseen import group_name_of

# The applier stands still at these until the operator repairs it.
_STUCK_CODES = frozenset({"A1", "A2", "A3"})
# Of these, an executed GTID is passed by: the event is not looked at.
_SKIPPABLE_CODES = frozenset({"A2", "A3"})
# Nothing said of these servers' sets is true.
_DISTRUSTED_CODES = frozenset({"C1", "U2"})


def known_servers(snapshot: ClusterSnapshot, audit: ClusterAudit) -> dict[str, ServerSnapshot]:
    """Return the last readings a plan may rest on, by name."""
    distrusted = {
        name
        for finding in audit.findings
        if finding.code in _DISTRUSTED_CODES
        for name in (finding.source, finding.replica)
    }
    return {
        server.name: server
        for server in snapshot.last
        if server.is_judgeable
        and server.version is not None
        and server.channels is not None
        and server.name not in distrusted
    }


def start_model(snapshot: ClusterSnapshot, audit: ClusterAudit, evidence: LogEvidence) -> Model:
    """Return the servers as they will be when replication, as it is, has come to rest."""
    known = known_servers(snapshot, audit)
    refusing = _refusing(snapshot)
    source_of = {
        (edge.replica, edge.channel.name): edge.source for edge in build_graph(snapshot).edges
    }
    return settle(
        Model(
            {
                name: _server(
                    server,
                    tuple(
                        _channel(
                            channel,
                            source=source_of.get((name, channel.name)),
                            findings=[
                                finding
                                for finding in audit.findings
                                if (finding.replica, finding.channel) == (name, channel.name)
                            ],
                            evidence=evidence,
                            refusing=refusing,
                        )
                        for channel in server.channels or ()
                    ),
                )
                for name, server in known.items()
            }
        )
    )


def _server(server: ServerSnapshot, channels: tuple[ModelChannel, ...]) -> ModelServer:
    server_uuid, version = server.server_uuid, server.version
    assert isinstance(server_uuid, UUID), "known servers have a UUID"
    assert version is not None, "known servers have a version"
    return ModelServer(
        name=server.name,
        server_uuid=server_uuid,
        version=version,
        executed=server.gtid_executed or GtidSet(),
        purged=server.gtid_purged or GtidSet(),
        channels=channels,
        server_id=server.server_id,
        group_name=_group_name(server),
        sends_by_sets=server.setting("gtid_mode") in (None, "ON"),
        skips_next=(
            server.setting("sql_replica_skip_counter") not in (None, "0")
            or any(channel.skip_counter for channel in server.channels or ())
        ),
        has_log=server.setting("log_bin") != "OFF",
        logs_received=server.setting("log_replica_updates") != "OFF",
    )


def _group_name(server: ServerSnapshot) -> UUID | None:
    name = group_name_of(server)
    return UUID(name) if name else None


def _channel(
    channel: ChannelSnapshot,
    *,
    source: str | None,
    findings: list[Finding],
    evidence: LogEvidence,
    refusing: frozenset[str],
) -> ModelChannel:
    events = evidence.events
    stuck_at = GtidSet.union_of(
        evidence.contents[finding.id].wanted
        for finding in findings
        if finding.code in _SKIPPABLE_CODES and finding.id in evidence.contents
    )
    return ModelChannel(
        name=channel.name,
        source=source,
        auto_position=channel.auto_position,
        running=(
            channel.receiver is not ThreadState.STOPPED
            and channel.applier is not ThreadState.STOPPED
            and not channel.until  # it stops by itself, before what an operator wanted to look at
        ),
        is_connected=channel.receiver is ThreadState.RUNNING,
        retrieved=channel.gtid_retrieved,
        bypassed=GtidSet.union_of(finding.gtid_set for finding in findings if finding.code == "H1"),
        doomed=GtidSet.of(events[finding.id].gtid for finding in findings if finding.id in events),
        passed=GtidSet.union_of(finding.gtid_set for finding in findings if finding.code == "H8"),
        may_be_former=source in refusing or _is_behind_a_former_place(findings),
        is_stuck=any(finding.code in _STUCK_CODES for finding in findings),
        stuck_at=stuck_at,
        until=channel.until,
        held_back_seconds=channel.delay_seconds if _only_applier_is_stopped(channel) else 0,
    )


def _refusing(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the servers that refused a receiver because it had more GTIDs than they have.

    What their receivers hold may be of a history that they no longer have. Once they have used
    these GTIDs again, no set shows that they lost them, or were reset.
    """
    texts = (
        (edge.source, row_of(edge.channel.receiver_error)) for edge in build_graph(snapshot).edges
    )
    return frozenset(source for source, text in texts if text is not None and text.code == "E3")


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
