"""Compares the content of transactions as an audit does: cheaply, and where it is needed.

1. Reused numbers follow a lost tail, and a tail is lost when a server stops without warning. So the
   first own transactions after a start decide (binlog/content/reuse.py); nothing else is read.
2. After which starts is decided in content_due.py: this file brings in the binlog reader.
3. Servers are compared along the channels between them, in either direction. What was not read is
   UNKNOWN, with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from binlog.adapters.compare_server import ServerCompared, ServerState, Since, Starts
from binlog.adapters.stream_session import Connect
from binlog.content.compare import Agreement, Comparison, Version
from binlog.content.reuse import Compared, compare_after_starts
from gtid import Gtid, GtidSet
from gtid_audit.content_due import Looked
from gtid_audit.content_short import in_short
from topology.adapters.mysql import connect
from topology.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    StartLookedAt,
    TransactionVersion,
    UnreadContent,
)
from topology.graph import build_graph
from topology.snapshot import BinaryLog, ClusterSnapshot, ServerSnapshot
from topology.target import ServerTarget

# For one question to one server, connecting included.
SECONDS_MAX: Final = 10.0
_DIFFERENCES: Final = {
    Agreement.TWICE: Difference.COMMIT,
    Agreement.DIFFERENT: Difference.CONTENT,
    Agreement.DRIFTED: Difference.DRIFT,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_contents(
    snapshot: ClusterSnapshot,
    targets: Iterable[ServerTarget],
    *,
    back: Mapping[str, timedelta | None],
    seconds_max: float = SECONDS_MAX,
) -> Looked:
    """Compare what the servers of a cluster committed after their starts.

    Args:
        snapshot: the cluster as it was just read: it says who receives from whom.
        targets: how to reach the servers. The account needs the privilege to
            read binary logs, as a replica has it.
        back: of which servers starts are looked at, and how far back; see content_due.py.
        seconds_max: for one question to one server.
    """
    servers = {server.name: server for server in snapshot.last if server.is_judgeable}
    ways = {target.name: _way_to(target, seconds_max) for target in targets}
    readings = []
    look_again: set[str] = set()
    for names in _neighbours(snapshot):
        pair = [servers[name] for name in names if name in servers]
        if not back.keys() & set(names):
            continue
        look = Looked(None, frozenset(names))  # where facts were not read, which the audit says
        if len(pair) == len(names):
            look = _compared(pair, back, ways, seconds_max)
        if look.reading is not None:
            readings.append(look.reading)
        look_again |= look.look_again
    return Looked(_merged(readings) if readings else None, frozenset(look_again))


def reading_of(
    compared: Compared, names: tuple[str, str], *, read_at: datetime, origins: Mapping[UUID, str]
) -> ContentReading:
    """Turn one comparison into the facts that the rule judges.

    `names` are those of the left and the right server; `origins` names the server of a UUID.
    """
    return ContentReading(
        read_at=read_at,
        compared_count=compared.gtids.gtid_count,
        starts=tuple(
            StartLookedAt(log, datetime.fromtimestamp(start.started_at_seconds, UTC), start.file)
            for log, start in compared.starts
        ),
        differences=tuple(
            _difference(each, names, origins)
            for each in compared.comparisons
            if each.agreement is not Agreement.UNKNOWN
        ),
        unread=tuple(sorted({*_unread(compared), *_untold(compared, names)})),
        is_cut=compared.is_cut,
        pairs=(names,),
    )


def _neighbours(snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    """Return the servers that a channel links, each two once; of two servers, these two."""
    names = tuple(server.name for server in snapshot.last)
    if len(names) == 2:  # noqa: PLR2004
        return [(names[0], names[1])]
    edges = build_graph(snapshot).edges
    return sorted({(min(e.source, e.replica), max(e.source, e.replica)) for e in edges})


def _starts_of(server: ServerSnapshot, back: Mapping[str, timedelta | None]) -> Starts | Since:
    if server.name not in back:
        return Starts.NONE
    far = back[server.name]
    if far is None:
        return Starts.EVERY
    return Since(int(((server.server_clock or server.read_ended) - far).timestamp()))


def _compared(
    pair: Sequence[ServerSnapshot],
    back: Mapping[str, timedelta | None],
    ways: Mapping[str, Connect],
    seconds_max: float,
) -> Looked:
    left, right = pair
    names = (left.name, right.name)
    logs = []
    unread = []
    for server in pair:
        if server.binary_logs is None:
            return Looked(None, frozenset(names))  # which the audit says
        if not server.binary_logs:
            unread.append(UnreadContent(server.name, "it has no binary logs (log_bin is off)"))
        elif server.name not in ways:
            unread.append(UnreadContent(server.name, "no way to it is known"))
        else:
            state = _state(server, server.binary_logs)
            starts = _starts_of(server, back)
            logs.append(ServerCompared(state, ways[server.name], seconds_max, starts))
    if unread:
        nothing = ContentReading(right.read_ended, 0, (), (), tuple(unread), pairs=(names,))
        return Looked(nothing)
    origins = {server.server_uuid: server.name for server in pair if server.server_uuid}
    compared = compare_after_starts(*logs)
    moment = max(server.read_ended for server in pair)
    reading = reading_of(compared, names, read_at=moment, origins=origins)
    is_over = all(each.is_lasting for each in compared.unread)
    return Looked(reading, frozenset() if is_over else frozenset(names))


def _state(server: ServerSnapshot, logs: Sequence[BinaryLog]) -> ServerState:
    assert server.server_uuid is not None, "only judgeable servers are compared"
    assert server.gtid_executed is not None, "only judgeable servers are compared"
    assert server.gtid_purged is not None, "only judgeable servers are compared"
    up_since = None
    if server.server_clock is not None and server.uptime_seconds is not None:
        up_since = int(server.server_clock.timestamp()) - server.uptime_seconds
    return ServerState(
        name=server.name,
        server_uuid=server.server_uuid,
        executed=server.gtid_executed,
        purged=server.gtid_purged,
        log_names=tuple(log.name for log in logs),
        full_logs=frozenset(log.name for log in logs if _is_full(server, log)),
        up_since_seconds=up_since,
    )


def _is_full(server: ServerSnapshot, log: BinaryLog) -> bool:
    limit = server.setting("max_binlog_size")
    return limit is not None and log.size_bytes >= int(limit)


def _unread(compared: Compared) -> Iterator[UnreadContent]:
    return (UnreadContent(each.log, each.reason) for each in compared.unread)


def _untold(compared: Compared, names: tuple[str, str]) -> Iterator[UnreadContent]:
    """Say of which transactions both versions were read and nothing follows."""
    gtids: dict[str, list[Gtid]] = {}
    for each in compared.comparisons:
        if each.agreement is Agreement.UNKNOWN:
            gtids.setdefault(each.reason, []).append(each.gtid)
    for reason, of_reason in gtids.items():
        told = GtidSet.of(of_reason).shortened()
        yield UnreadContent(names[1], f"not to be compared with {names[0]}: {told}: {reason}")


def _merged(readings: Sequence[ContentReading]) -> ContentReading:
    return ContentReading(
        read_at=max(each.read_at for each in readings),
        compared_count=sum(each.compared_count for each in readings),
        starts=tuple(dict.fromkeys(start for each in readings for start in each.starts)),
        differences=tuple(found for each in readings for found in each.differences),
        unread=tuple(sorted({found for each in readings for found in each.unread})),
        is_cut=any(each.is_cut for each in readings),
        pairs=tuple(pair for each in readings for pair in each.pairs),
    )


def _difference(
    comparison: Comparison, names: tuple[str, str], origins: Mapping[UUID, str]
) -> ContentDifference:
    versions = [
        _version(version, name)
        for version, name in zip((comparison.left, comparison.right), names, strict=True)
    ]
    if origins.get(comparison.gtid.tsid.uuid) == names[1]:
        versions.reverse()
    difference = _DIFFERENCES[comparison.agreement]
    if difference is Difference.CONTENT and comparison.has_one_empty:
        difference = Difference.EMPTY
    return ContentDifference(
        gtid=comparison.gtid,
        difference=difference,
        is_proved=comparison.is_proved,
        reason=comparison.reason,
        source=versions[0],
        replica=versions[1],
    )


def _version(version: Version, server: str) -> TransactionVersion:
    transaction, moment = version.transaction, version.committed_at
    return TransactionVersion(
        server=server,
        place=f"{transaction.file}:{transaction.start}",
        committed_at=None if moment is None else _EPOCH + timedelta(microseconds=moment),
        logged_at=_EPOCH + timedelta(seconds=transaction.timestamp_seconds),
        content=in_short(version),
        is_empty=version.content.is_empty,
    )


def _way_to(target: ServerTarget, seconds_max: float) -> Connect:
    return lambda: connect(target, timeout_seconds_max=seconds_max)
