"""Small clusters written down as models, and the snapshots their servers would give."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from gtid import GtidSet
from repair import LogEvidence
from repair.content.transaction_content import TransactionContent, nothing_read
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.model.settled_model import delivery
from tests.snapshots import a_channel, a_server, an_unread, commits_of
from topology.catalogue.findings import ClusterAudit
from topology.readings.content_class import ContentClass
from topology.readings.history_evidence import HistoryEvidence, ends_of
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion

UUIDS = {letter: UUID(letter * 8 + "-0000-0000-0000-000000000000") for letter in "abcdef"}
NEW = ServerVersion(9, 7, 4)
OLD = ServerVersion(5, 6, 24)
STUCK_TEXT = (
    "Query caused different errors on master and slave.     Error on master: message (format)="
    "'Table '%-.192s' already exists' error code=1050 ; Error on slave: actual message='no error',"
    " error code=0. Default database: ''. Query: 'CREATE VIEW v AS SELECT 1'"
)
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERYTHING = GtidSet.parse(",".join(f"{uuid}:1-99" for uuid in UUIDS.values()))
_END = LogPosition.of(file="binlog.000002", position=5000)
_MIDDLE = LogPosition.of(file="binlog.000002", position=700)
_ELSEWHERE_ID = 99  # the server_id of a server that is not in the model


def gtids(text: str) -> GtidSet:
    """Read `a:1-3 b:2`: a letter stands for the server's UUID."""
    entries = []
    for item in text.split():
        letter, _, numbers = item.partition(":")
        entries.append(f"{UUIDS[letter]}:{numbers}")
    return GtidSet.parse(",".join(entries))


def channel(
    source: str,
    *,
    auto: bool = True,
    runs: bool = True,
    bypassed: str = "",
    stuck: bool = False,
    name: str = "",
) -> ModelChannel:
    return ModelChannel(
        name=name,
        source=source,
        auto_position=auto,
        running=runs,
        bypassed=gtids(bypassed),
        is_stuck=stuck,
    )


def server(
    name: str,
    executed: str,
    *channels: ModelChannel,
    purged: str = "",
    version: ServerVersion = NEW,
) -> ModelServer:
    return ModelServer(
        name=name,
        server_uuid=UUIDS[name],
        version=version,
        executed=gtids(executed),
        purged=gtids(purged),
        channels=channels,
    )


def model(*servers: ModelServer) -> Model:
    return Model({each.name: each for each in servers})


def snapshot_of(servers: Model, *, silent: Iterable[str] = ()) -> ClusterSnapshot:
    """Return what an audit would read: twice the same, for nothing moves."""
    quiet = frozenset(silent)
    return ClusterSnapshot(
        "cluster",
        tuple(_reading(servers, each, 1, quiet) for each in servers.servers.values()),
        tuple(_reading(servers, each, 2, quiet) for each in servers.servers.values()),
    )


def _reading(
    servers: Model, each: ModelServer, phase: int, quiet: frozenset[str]
) -> ServerSnapshot:
    at = _NOON + timedelta(seconds=phase)
    number = sorted(servers.servers).index(each.name)
    asked = {
        "cluster": "cluster",
        "host": "127.0.0.1",
        "port": 3306 + number,
        "phase": phase,
        "read_started": at,
        "read_ended": at,
    }
    if each.name in quiet:
        return an_unread(each.name, **asked)
    return a_server(
        each.name,
        each.server_uuid,
        each.executed,
        server_clock=at,
        server_id=1 + number,
        version=each.version,
        gtid_purged=each.purged,
        log_end=_END,
        channels=tuple(_channel(servers, each, one) for one in each.channels),
        uptime_seconds=1000 + phase,
        vendor=each.vendor or Vendor.MYSQL,
        history_evidence=_commits(servers, each) if phase > 1 else None,
        **asked,
    )


def _commits(servers: Model, each: ModelServer) -> HistoryEvidence | None:
    """Return the commits of what another server does not have, and of what both had before."""
    dated: set[str] = set()
    for other in servers.servers.values():
        missing = (each.executed - other.executed).without_uuid(other.server_uuid)
        for tsid in missing.tsids:
            dated.add(str((each.executed & other.executed).from_tsid(tsid).first(1)))
        dated.update(map(str, ends_of(missing)))
    if not dated:
        return None
    found = commits_of(*sorted(dated - {""}))
    ids = {
        str(servers[name].server_uuid): 1 + at for at, name in enumerate(sorted(servers.servers))
    }
    by_owner = (
        replace(each, server_id=ids.get(str(next(iter(each.gtid.uuids))), _ELSEWHERE_ID))
        for each in found.commits
    )
    return replace(found, commits=tuple(by_owner))


def _channel(servers: Model, each: ModelServer, one: ModelChannel) -> ChannelSnapshot:
    source = servers[one.source] if one.source is not None else None
    names = sorted(servers.servers)
    stuck = one.is_stuck and one.running
    received_to = _END if one.running and not delivery(servers, each, one) else _MIDDLE
    waits = stuck or bool(one.retrieved - each.executed)
    return a_channel(
        "elsewhere",
        source.server_uuid if source else None,
        name=one.name,
        source_host="127.0.0.1" if source else "elsewhere",
        source_port=3306 + names.index(source.name) if source else 3306,
        auto_position=one.auto_position,
        gtid_retrieved=one.retrieved
        | (source.executed if stuck and source else GtidSet())
        | (_behind(one.bypassed) & each.executed),
        receiver=ThreadState.RUNNING if one.running else ThreadState.STOPPED,
        applier=ThreadState.RUNNING if one.running and not stuck else ThreadState.STOPPED,
        applier_error=STUCK_TEXT if stuck else "",
        received_to=received_to,
        applied_to=_MIDDLE if waits else received_to,
    )


def evidence_of(
    audit: ClusterAudit, kind: ContentClass = ContentClass.EMPTY, **read: Any
) -> LogEvidence:
    """Return what a reading of the logs would show: every transaction of one class."""
    contents = {
        finding.id: nothing_read(finding.gtid_set, "purged")
        if finding.code == "E2"
        else TransactionContent("a", {kind: finding.gtid_set or EVERYTHING}, **read)
        for finding in audit.findings
    }
    of_channel = TransactionContent("a", {kind: EVERYTHING}, **read)
    return LogEvidence(
        contents=contents,
        arrivals={
            (replica, finding.channel or ""): of_channel
            for finding in audit.findings
            for replica in (finding.replica, finding.source)
            if replica is not None
        },
    )


def show(servers: Model) -> str:
    """Write a model on a few lines, for a failure message."""
    letters = {str(uuid): letter for letter, uuid in UUIDS.items()}
    lines = []
    for each in servers.servers.values():
        text = f"{each.name}: executed {each.executed} purged {each.purged}"
        for one in each.channels:
            text += (
                f" | from {one.source} auto={one.auto_position:d} runs={one.running:d}"
                f" bypassed={one.bypassed} stuck={one.is_stuck:d}"
            )
        for uuid, letter in letters.items():
            text = text.replace(uuid, letter)
        lines.append(text)
    return "\n".join(lines)


def _behind(gtid_set: GtidSet) -> GtidSet:
    """Return what a channel received first behind each interval that its position bypassed."""
    return GtidSet.from_intervals((tsid, end, end + 1) for tsid, _, end in gtid_set.intervals())
