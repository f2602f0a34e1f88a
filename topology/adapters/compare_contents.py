"""Compares the content of transactions for an audit: at low cost, and only where it is needed.

1. A GTID is reused after a server lost the end of its log, and that happens when it stops without
   warning. So the own transactions around a restart decide (binlog/content/reuse.py). No others are
   read.
2. contents_to_compare.py decides which restarts are due. This module imports the binlog reader.
3. With --content, a restart of the last day whose logs are purged is UNKNOWN if the server has own
   transactions. Without --content, and for older restarts, it is reported as info.
4. Servers are compared along the channels between them, in either direction. Members of a group are
   compared with the next member. content_pairs.py adds pairs where channels do not show a
   difference. What could not be read is UNKNOWN, with the reason; what can never be compared (no
   binary log, purged) is reported as info.
5. A restart is due on every channel whose two servers hold transactions of the restarted server,
   not only on its own channels. Example: first → middle → last. `first` lost :5-6 in a crash and
   reused them, and `middle` was then rebuilt from `first`. `first` and `middle` agree, and `last`
   has the old :5-6. Only `middle` and `last` differ, in GTIDs that neither of them committed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

from binlog.adapters.compare_server import (
    LATEST_START_PURGED,
    ComparedServer,
    ServerCompared,
    Since,
    Starts,
    own_gtids,
    uuid_or_none,
)
from binlog.content.compare import Agreement
from binlog.content.reuse import Compared, compare_after_starts, gtids_in_words
from gtid import GtidSet
from topology.adapters.connection import Way, way_to
from topology.adapters.content_facts import Comparing, reading_of
from topology.adapters.content_filters import filters_of
from topology.adapters.newest_contents import compare_newest_contents
from topology.facts.content_pairs import linked_pairs, only_source, other_pairs
from topology.facts.siblings import held_by_siblings
from topology.questions.contents_to_compare import QUERY_SECONDS_MAX, RECENT, Looked
from topology.readings.contents import ContentReading, UnreadContent
from topology.readings.dialect import BINARY_LOG, LOG_CLOSED
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ReadServer, ServerSnapshot
from topology.readings.target import ServerTarget

# The most suspects that one audit compares.
SUSPECTS_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to compare: see read_contents."""

    back: Mapping[str, timedelta | None]
    newest: bool
    seconds_max: float


def read_contents(
    snapshot: ClusterSnapshot,
    targets: Iterable[ServerTarget],
    *,
    back: Mapping[str, timedelta | None],
    suspects: GtidSet | None = None,
    newest: bool = False,
    seconds_max: float = QUERY_SECONDS_MAX,
) -> Looked:
    """Compare what the servers of a cluster committed around their restarts.

    Args:
        snapshot: the cluster as it was just read; it shows the channels.
        targets: how to reach the servers. The account needs the privilege to
            read binary logs, as a replica has it.
        back: which servers' restarts, and how far back; see contents_to_compare.py.
        suspects: GTIDs that are compared wherever two servers have them.
        newest: also compare the newest transactions of every UUID.
        seconds_max: for one query to one server.
    """
    wanted = _Wanted(back, newest=newest, seconds_max=seconds_max)
    servers = snapshot.last_read
    ways = {target.name: way_to(target, seconds_max=seconds_max) for target in targets}
    opened: dict[_Key, ServerCompared] = {}
    readings = []
    look_again: set[str] = set()
    answered: dict[tuple[str, str], GtidSet] = {}
    suspects = suspects or GtidSet()
    settled = suspects & _held_by_all(snapshot)
    siblings = held_by_siblings(snapshot)
    whole = {**dict.fromkeys(linked_pairs(snapshot)), **other_pairs(snapshot)}
    for names in dict.fromkeys((*whole, *siblings)):
        pair = [servers[name] for name in names if name in servers]
        is_whole = names in whole
        also = suspects & (_held_by_all(snapshot, names) if is_whole else siblings[names])
        # Two siblings are compared in that only: each is also compared with its source.
        want = wanted if is_whole else replace(wanted, back={}, newest=False)
        others = [
            server
            for name, server in servers.items()
            if name in want.back and name not in names and _is_held(server, snapshot, names)
        ]
        if not want.back.keys() & set(names) and not others and not also:
            continue
        # If facts were not read: the audit reports that.
        look = Looked(None, frozenset((*names, *(server.name for server in others))))
        if len(pair) == len(names):
            joins = whole.get(names)
            channel = _Channel(pair[0], pair[1], others, only_source(snapshot, names), joins)
            look = _compared(channel, _Logs(ways, want, opened), also)
        if look.reading is not None:
            readings.append(look.reading)
        look_again |= look.look_again
        for between, gtids in look.answered.items():
            answered[between] = answered.get(between, GtidSet()) | gtids
        settled -= also - look.settled
    reading = _merged(readings) if readings else None
    return Looked(reading, frozenset(look_again), settled, answered)


def _is_held(server: ReadServer, snapshot: ClusterSnapshot, names: Sequence[str]) -> bool:
    """Return whether these servers have transactions that another server committed first.

    A server whose set was not read may have them.
    """
    sets = [each.gtid_executed for each in snapshot.last if each.name in names]
    return all(held is None or _own(server, held) for held in sets)


def _own(server: ReadServer, gtids: GtidSet) -> GtidSet:
    """Return which of these GTIDs the server, or its group, committed first."""
    return own_gtids(gtids, server.server_uuid, _group_of(server))


def _held_by_all(snapshot: ClusterSnapshot, names: Sequence[str] | None = None) -> GtidSet:
    """Return the GTIDs that all servers, or all of these names, have executed."""
    found = [
        server.gtid_executed or GtidSet()
        for server in snapshot.last
        if names is None or server.name in names
    ]
    held = found[0] if found else GtidSet()
    for each in found[1:]:
        held &= each
    return held


def _group_of(server: ServerSnapshot) -> UUID | None:
    """Return the UUID of the server's group, under which its members commit."""
    return uuid_or_none(server.setting("group_replication_group_name"))


def _starts_of(server: ServerSnapshot, back: Mapping[str, timedelta | None]) -> Starts | Since:
    if server.name not in back:
        return Starts.NONE
    far = back[server.name]
    if far is None:
        return Starts.EVERY
    return Since(int(((server.server_clock or server.read_ended) - far).timestamp()))


# A server, and how far back its restarts are compared.
_Key: TypeAlias = tuple[str, Starts | Since]


@dataclass(frozen=True, slots=True)
class _Channel:
    """Two servers to compare."""

    left: ReadServer
    right: ReadServer
    others: Sequence[ReadServer]  # restarted servers whose transactions both hold
    source: str | None  # of the other server; None if unknown, or if each is
    joins: str | None  # the one of the two that would join the other: no channel links them

    @property
    def names(self) -> tuple[str, str]:
        return self.left.name, self.right.name


@dataclass(slots=True)
class _Logs:
    """Opens the logs of servers, and keeps the reasons why some cannot be compared.

    `opened`: a server's files are read once for all of its channels.
    """

    ways: Mapping[str, Way]
    wanted: _Wanted
    opened: dict[_Key, ServerCompared]
    unread: list[UnreadContent] = field(default_factory=list)
    remarks: list[UnreadContent] = field(default_factory=list)

    def of(self, servers: Iterable[ReadServer]) -> list[ServerCompared]:
        """Return the logs of those servers that have logs and can be reached."""
        return [logs for server in servers if (logs := self._of(server)) is not None]

    def _of(self, server: ReadServer) -> ServerCompared | None:
        if server.binary_logs is None:
            return None  # the audit reports it
        if not server.binary_logs:
            is_closed = server.setting(BINARY_LOG) == LOG_CLOSED
            how = "its binary log is closed" if is_closed else "log_bin is off"
            reason = f"it has no binary logs ({how})"
            self.remarks.append(UnreadContent(server.name, reason))
            return None
        if (mode := server.setting("gtid_mode")) not in (None, "ON"):
            reason = f"it cannot send transactions by GTID (gtid_mode is {mode})"
            self.remarks.append(UnreadContent(server.name, reason))
            return None
        if server.name not in self.ways:
            self.unread.append(UnreadContent(server.name, "no connection to it is configured"))
            return None
        starts = _starts_of(server, self.wanted.back)
        if (server.name, starts) not in self.opened:
            state = state_of(server, server.binary_logs)
            self.opened[server.name, starts] = ServerCompared(
                state, self.ways[server.name], self.wanted.seconds_max, starts
            )
        return self.opened[server.name, starts]


def _compared(channel: _Channel, logs: _Logs, also: GtidSet) -> Looked:
    pair, names = (channel.left, channel.right), channel.names
    all_names = frozenset((*names, *(server.name for server in channel.others)))
    if any(server.binary_logs is None for server in pair):
        return Looked(None, all_names)  # the audit reports it
    both = logs.of(pair)
    moment = max(server.read_ended for server in pair)
    if len(both) < len(pair):
        nothing = ContentReading(
            moment, 0, (), (), tuple(logs.unread), pairs=(names,), remarks=tuple(logs.remarks)
        )
        return Looked(nothing)
    others = logs.of(channel.others)
    beyond = also - also.first(SUSPECTS_MAX)
    counts: list[int] = []
    one, other = both
    newest = logs.wanted.newest
    more = partial(compare_newest_contents, one, other, counts) if newest else None
    compared = compare_after_starts(one, other, others=others, also=also - beyond, more=more)
    comparing = Comparing(
        names=names,
        origins={server.server_uuid: server.name for server in pair},
        filters={server.name: partial(filters_of, logs.ways[server.name]) for server in pair},
        is_asked_for=False,
        source=channel.source,
        joins=channel.joins,
    )
    reading = reading_of(compared, comparing, read_at=moment)
    reading = replace(
        reading,
        suspect_count=(also & compared.gtids).gtid_count,
        newest_count=sum(counts),
        unread=tuple(sorted({*reading.unread, *logs.unread})),
        remarks=tuple(sorted({*reading.remarks, *logs.remarks})),
    )
    if newest:
        restarted = [each for each in (*pair, *channel.others) if _restarted_lately(each)]
        reading = _due(reading, restarted)
    if beyond:
        text = f"more than {SUSPECTS_MAX:,} to compare: {gtids_in_words(beyond)}"
        reading = replace(reading, unread=(*reading.unread, UnreadContent(names[1], text)))
    is_over = all(each.is_lasting for each in compared.unread)
    look_again = frozenset() if is_over else all_names
    unopened = {each.name for each in channel.others if each.binary_logs is None}
    settled = _settled(compared, also - beyond) if is_over else GtidSet()
    answered = {_in_order(*names): _answered(compared)}
    return Looked(reading, look_again | unopened, settled, answered)


def _due(reading: ContentReading, restarted: Sequence[ServerSnapshot]) -> ContentReading:
    """Count purged logs around the latest restart of these servers as unread, not as info."""
    due = {UnreadContent(server.name, LATEST_START_PURGED) for server in restarted}
    unread = {*reading.unread, *(due & set(reading.remarks))}
    remarks = tuple(each for each in reading.remarks if each not in due)
    return replace(reading, unread=tuple(sorted(unread)), remarks=remarks)


def _restarted_lately(server: ReadServer) -> bool:
    """Return whether a server that has own transactions restarted within the last day."""
    is_recent = server.uptime_seconds is not None and (
        timedelta(seconds=server.uptime_seconds) < RECENT
    )
    return is_recent and bool(_own(server, server.gtid_executed))


def _settled(compared: Compared, also: GtidSet) -> GtidSet:
    """Return the suspects on which two servers agree, or that can never be compared."""
    return also - GtidSet.of(each.gtid for each in compared.comparisons)


def _answered(compared: Compared) -> GtidSet:
    """Return the compared GTIDs, without those that are not comparable."""
    undecided = [each for each in compared.comparisons if each.agreement is Agreement.UNKNOWN]
    return compared.gtids - GtidSet.of(each.gtid for each in undecided)


def _in_order(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)


def state_of(server: ReadServer, logs: Sequence[BinaryLog]) -> ComparedServer:
    """Return what is known of a server and of its binary logs."""
    folds = server.setting("lower_case_table_names")
    up_since = None
    if server.server_clock is not None and server.uptime_seconds is not None:
        up_since = int(server.server_clock.timestamp()) - server.uptime_seconds
    return ComparedServer(
        name=server.name,
        server_uuid=server.server_uuid,
        executed=server.gtid_executed,
        purged=server.gtid_purged,
        log_names=tuple(log.name for log in logs),
        full_logs=frozenset(log.name for log in logs if _is_full(server, log)),
        up_since_seconds=up_since,
        group_name=_group_of(server),
        lower_case_table_names=int(folds) if folds is not None else None,
    )


def _is_full(server: ServerSnapshot, log: BinaryLog) -> bool:
    limit = server.setting("max_binlog_size")
    return limit is not None and log.size_bytes >= int(limit)


def _merged(readings: Sequence[ContentReading]) -> ContentReading:
    return ContentReading(
        read_at=max(each.read_at for each in readings),
        compared_count=sum(each.compared_count for each in readings),
        starts=tuple(dict.fromkeys(start for each in readings for start in each.starts)),
        differences=tuple(found for each in readings for found in each.differences),
        unread=tuple(sorted({found for each in readings for found in each.unread})),
        is_cut=any(each.is_cut for each in readings),
        newest_count=sum(each.newest_count for each in readings),
        suspect_count=sum(each.suspect_count for each in readings),
        undecided_count=sum(each.undecided_count for each in readings),
        remarks=tuple(sorted({found for each in readings for found in each.remarks})),
        pairs=tuple(pair for each in readings for pair in each.pairs),
    )
