"""What one source would answer to one replica that connects with auto-position, and what follows.

How it works
------------
A receiver connects in this order, and the first check that fails is what SHOW REPLICA STATUS prints
(sql/rpl_replica.cc, sql/rpl_binlog_sender.cc; seen on 5.6.24 and 9.7.4):

1. The replica: it has a server_id. Servers with gtid_mode OFF or OFF_PERMISSIVE are not evaluated.
2. The replica asks the source: server_ids differ, gtid_mode is ON, server_uuids differ.
3. The source: its binary log is open, its server_id is not 0.
4. The source, about its own server_uuid only: it has executed (or owns) all that the replica sends.
   Otherwise the replica has transactions that the source lost.
5. The source: the replica sends all that it has purged.

A replica that is pointed to another source sends what it has executed: its relay log is deleted. On
its present channel it also sends what it has received. What only its relay log has counts as the
replica's: applied, it is extra; deleted, it is lost.

What the source does not check is the more dangerous part. It sends a hole of the replica after what
the replica has executed since (late_transactions.py). It accepts transactions of other UUIDs
that only the replica has, and transactions that have another content on the source (E4), and never
mentions them again: the answer is DIVERGED. What the source is about to receive does not count
(`ahead`). What it is only likely to receive leaves the answer open: UNKNOWN.

A receiver drops events with its own server_id, whatever their UUID is: INCOMPLETE, with `dropped`.
So a server never gets back what it committed itself and lost, and never gets what another server
with its server_id committed (`same_id`). What a session on another server committed with gtid_next
under the UUID of the replica has the server_id of that server: it arrives. Only a log shows which
of the two it is. Where no log was read, it counts as dropped, and is `undecided`.

The first reading of the replica is compared with the last one of the source, so that timing cannot
make a transaction extra (collect.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.facts.late_transactions import late_part, late_text
from topology.facts.missing_logs import log_doubts
from topology.facts.refusal_texts import (
    RefusalText,
    mode_text,
    more_gtids_text,
    no_log_text,
    no_server_id_text,
    purged_text,
    same_id_text,
    same_uuid_text,
)
from topology.facts.reset_signs import may_have_rows
from topology.facts.runway import LogDeadline
from topology.facts.source_limits import leaves_out, offline_text, requires_tls
from topology.readings.dialect import BINARY_LOG
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ReadServer, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion, follows, refuse_each_other

_UNKNOWN_VERSION: Final = ServerVersion(0, 0)
_OLDEST: Final = ServerVersion(5, 7, 0)


class Outcome(Enum):
    """What becomes of the connection."""

    SERVED = "served"  # accepted, and the replica gets all that it misses
    GROUP = "group"  # both are ONLINE in one replication group: the group delivers, no channel does
    DIVERGED = "diverged"  # accepted, although only the replica has some transactions
    INCOMPLETE = "incomplete"  # accepted, and the replica does not get back own ones that it lost
    REFUSED = "refused"
    UNKNOWN = "unknown"  # a fact that decides it was not read


class FailedCheck(Enum):
    """The check that fails, in the order of the checks; the last two are those of a group."""

    VERSIONS = "versions"
    NO_SERVER_ID = "no_server_id"
    SAME_SERVER_ID = "same_server_id"
    SOURCE_MODE = "gtid_mode"
    SAME_SERVER_UUID = "same_server_uuid"
    NO_BINARY_LOG = "no_binary_log"
    MORE_GTIDS = "more_gtids"
    PURGED = "purged"
    GROUP_NAME = "group_name"
    NOT_IN_GROUP = "not_in_group"


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What `source` would answer to `replica`."""

    source: str
    replica: str
    outcome: Outcome
    refusal: FailedCheck | None = None
    # The GTIDs that decide it: purged ones, lost ones, or those that only the replica has.
    gtid_set: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    unlike: GtidSet = GtidSet()  # noqa: RUF009 - immutable; both have other content under these
    fetched: GtidSet = GtidSet()  # noqa: RUF009 - immutable; what the replica would receive
    dropped: GtidSet = GtidSet()  # noqa: RUF009 - immutable; sent, and dropped by its receiver
    # Two disjoint parts of `dropped`: what carries the replica's server_id under another UUID (C2),
    # and what has its UUID and arrives if it carries another server_id.
    same_id: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    undecided: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    # The part of `gtid_set` that the source has received, and that its applier may not apply.
    received: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    ahead: GtidSet = GtidSet()  # noqa: RUF009 - immutable; the source is about to receive these
    # The part of `fetched` that the replica would execute after later transactions.
    late: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    # The part of `fetched` that only some servers should have (topology/handshake/late_extras.py).
    extra: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    text: RefusalText | None = None  # None: not refused, or by an error before replication begins
    doubts: tuple[str, ...] = ()  # why it may be otherwise
    unread: str = ""  # what was not read, if it is not known
    # The first binary log that would be sent, and when it can be deleted at the earliest. For a
    # set only; None: never, or no setting shows it.
    deadline: LogDeadline | None = None
    is_deadline_unread: bool = False  # a setting limits it, and the logs were not read
    # The replication group that answers for its servers (topology/handshake/group_answers.py); ""
    # if the source answers a channel. `joins` is the one that would have to join it, if one would.
    group: str = ""
    joins: str = ""
    # The server on the way: the primary whose channel a secondary depends on, or, of a server that
    # joins, the member from which recovery gets the most.
    through: str = ""

    @property
    def attaches(self) -> bool:
        """Return whether the replica could replicate from the source without losing anything."""
        return self.outcome in (Outcome.SERVED, Outcome.GROUP) and not self.late

    @property
    def may_be_pointed(self) -> bool:
        """Return whether a promotion may point the replica to the source, without a repair."""
        return self.attaches and not self.extra

    @property
    def out_of_order(self) -> GtidSet:
        """Return what the replica would or may execute after later transactions."""
        return self.late | self.extra

    def with_doubts(self, doubts: Iterable[str]) -> "SourceAnswer":
        """Return this with more doubts; a refusal, and what is not known, needs none."""
        if self.outcome in (Outcome.REFUSED, Outcome.UNKNOWN):
            return self
        return replace(self, doubts=(*self.doubts, *doubts))


@dataclass(frozen=True, slots=True)
class LoggedServerIds:
    """Which server_id transactions carry that a replica does not have, as far as it is known.

    The three sets are disjoint. What is in none of them is not known.
    """

    same_id: GtidSet = GtidSet()  # noqa: RUF009 - immutable; of other UUIDs, with the replica's id
    own: GtidSet = GtidSet()  # noqa: RUF009 - immutable; of its UUID, with its server_id
    by_hand: GtidSet = GtidSet()  # noqa: RUF009 - immutable; of its UUID, with another server_id


@dataclass(frozen=True, slots=True)
class Offer:
    """What connects: a server, or only a set (a consumer, a backup, a clone)."""

    name: str
    executed: GtidSet  # for a server: its first reading
    received: GtidSet  # for a server: in relay logs at its first reading, applied or not
    sent: GtidSet  # for a server: its last reading, and what its channel to this source received
    server: ReadServer | None = None
    group_uuids: frozenset[UUID] = frozenset()  # under which groups commit, and no server
    ids: LoggedServerIds = LoggedServerIds()
    waiting: GtidSet = GtidSet()  # noqa: RUF009 - immutable; its appliers execute these first


@dataclass(frozen=True, slots=True)
class AnsweringSource:
    """The source: its last reading, and what the audit knows to be on its way to it."""

    name: str
    last: ReadServer
    committing: GtidSet  # it is about to list these as executed (T4)
    arriving: GtidSet  # it is about to receive these, as the audit proved
    may_arrive: GtidSet  # it is likely to receive these

    @property
    def has(self) -> GtidSet:
        """Return what the source counts as its own transactions or as executed."""
        return self.last.gtid_executed | self.last.gtid_owned | self.committing


def source_answer(
    offer: Offer, source: AnsweringSource, *, allowed: GtidSet, unlike: GtidSet
) -> SourceAnswer:
    """Return what a source would answer.

    Args:
        offer: what connects.
        source: the source.
        allowed: what may be extra on the replica by policy.
        unlike: GTIDs under which the two are known to have different transactions.
    """
    unread = _unread(offer, source.last)
    if unread:
        return SourceAnswer(source.name, offer.name, Outcome.UNKNOWN, unread=unread)
    refused = _refused_by_settings(offer, source.last)
    if refused is not None:
        check, text = refused
        return SourceAnswer(source.name, offer.name, Outcome.REFUSED, check, text=text)
    return _refused_by_sets(offer, source) or _accepted(
        offer, source, allowed=allowed, unlike=unlike & offer.executed
    )


def _refused_by_sets(offer: Offer, source: AnsweringSource) -> SourceAnswer | None:
    last = source.last
    here, there = _versions(offer, last)
    more = offer.executed.from_uuid(last.server_uuid) - source.has
    purged = last.gtid_purged - offer.sent
    if more:
        check, text = FailedCheck.MORE_GTIDS, more_gtids_text(here, there)
    elif purged:
        check = FailedCheck.PURGED
        text = purged_text(here, there, sent=offer.sent, missing=purged)
    else:
        return None
    return SourceAnswer(
        source.name, offer.name, Outcome.REFUSED, check, gtid_set=more or purged, text=text
    )


def _accepted(
    offer: Offer, source: AnsweringSource, *, allowed: GtidSet, unlike: GtidSet
) -> SourceAnswer:
    """Return what follows once the source has accepted the connection."""
    last = source.last
    queued = last.gtid_retrieved | (last.group.received if last.group is not None else GtidSet())
    beyond = (offer.executed | offer.received) - source.has - allowed
    hidden = beyond - source.arriving - source.may_arrive
    left_open = beyond - source.arriving
    if left_open and not (hidden or unlike):
        what = f"whether {left_open.shortened()} arrives on {source.name}"
        return SourceAnswer(source.name, offer.name, Outcome.UNKNOWN, unread=what)
    if hidden and source.last.channels is None:
        what = f"the channels of {source.name}"
        return SourceAnswer(source.name, offer.name, Outcome.UNKNOWN, unread=what)
    fetched = source.last.gtid_executed - offer.sent
    own, same_id = _own_of(offer, fetched), _same_id_of(offer, source.last)
    dropped = own | same_id
    late = _late(offer, fetched - dropped)
    outcome = Outcome.INCOMPLETE if dropped else Outcome.SERVED
    return SourceAnswer(
        source.name,
        offer.name,
        Outcome.DIVERGED if hidden or unlike else outcome,
        gtid_set=hidden,
        received=hidden & queued,
        unlike=unlike,
        fetched=fetched - dropped,
        dropped=dropped,
        same_id=same_id,
        undecided=own - offer.ids.own,
        ahead=beyond & source.arriving,
        late=late,
        doubts=(*late_text(offer.name, late), *_doubts(offer, source.last, fetched)),
    )


def _late(offer: Offer, fetched: GtidSet) -> GtidSet:
    """Return what a server would execute after later ones; a set alone executes nothing."""
    if offer.server is None:
        return GtidSet()
    return late_part(offer.server, fetched - offer.waiting, offer.group_uuids)


def _own_of(offer: Offer, fetched: GtidSet) -> GtidSet:
    """Return what a source would send of the replica's own UUID, unless its receiver takes it."""
    if offer.server is None or offer.server.server_uuid in offer.group_uuids:
        return GtidSet()
    return fetched.from_uuid(offer.server.server_uuid) - offer.ids.by_hand


def _same_id_of(offer: Offer, source: ReadServer) -> GtidSet:
    """Return what a replica drops as if it were its own, although it has another UUID.

    Its receiver counts some of this as received (progress.py), so `sent` does not decide.
    """
    if offer.server is None:
        return GtidSet()
    return (source.gtid_executed - offer.server.gtid_executed) & offer.ids.same_id


def _versions(offer: Offer, source: ReadServer) -> tuple[ServerVersion, ServerVersion]:
    """Return the versions of the source and of the replica; a set has that of the source."""
    here = source.version or _UNKNOWN_VERSION
    return here, (offer.server.version if offer.server is not None else here) or here


def _unread(offer: Offer, source: ReadServer) -> str:
    servers = [source] if offer.server is None else [source, offer.server]
    names = [each.name for each in servers if each.notable_settings is None]
    return f"the settings of {' and '.join(names)}" if names else ""


def _refused_by_settings(
    offer: Offer, source: ReadServer
) -> tuple[FailedCheck, RefusalText | None] | None:
    """Return the first check about identity, settings and logs that fails, with the text."""
    replica = offer.server
    here, there = _versions(offer, source)
    if replica is not None:
        if refuse_each_other(here, there):
            return FailedCheck.VERSIONS, None
        mode = notable_values(source.notable_settings).get("gtid_mode")
        if replica.server_id == 0:
            return FailedCheck.NO_SERVER_ID, None
        if replica.server_id == source.server_id is not None:
            return FailedCheck.SAME_SERVER_ID, same_id_text(there)
        if mode is not None:
            return FailedCheck.SOURCE_MODE, mode_text(mode, there)
        if replica.server_uuid == source.server_uuid:
            return FailedCheck.SAME_SERVER_UUID, same_uuid_text(there)
    notable = notable_values(source.notable_settings)
    if "log_bin" in notable or BINARY_LOG in notable:
        return FailedCheck.NO_BINARY_LOG, no_log_text(here, there)
    if source.server_id == 0 and here >= _OLDEST:  # 5.6.24 serves with server_id 0
        return FailedCheck.NO_SERVER_ID, no_server_id_text(here, there)
    if "gtid_mode" in notable:
        return FailedCheck.SOURCE_MODE, None
    return None


def _doubts(offer: Offer, source: ReadServer, fetched: GtidSet) -> list[str]:
    doubts = list(log_doubts(source, fetched, replica=offer.name))
    if (closed := offline_text(source)) is not None:
        doubts.append(closed)
    if (had := _perhaps_had(offer, source, fetched)) is not None:
        doubts.append(had)
    if requires_tls(source) and not _is_connected(offer, source):
        doubts.append(
            f"{source.name} has require_secure_transport = ON: it refuses a channel without"
            " SOURCE_SSL = 1 (error 3159)"
        )
    received = source.gtid_retrieved - source.gtid_executed
    if received and "log_replica_updates" in notable_values(source.notable_settings):
        doubts.append(
            f"{source.name} does not log what it receives (log_replica_updates = OFF): it refuses"
            " with error 1236 as soon as it has applied what it received"
        )
    elif source.channels and "log_replica_updates" in notable_values(source.notable_settings):
        doubts.append(
            f"{source.name} does not log what it receives (log_replica_updates = OFF): it sends"
            " nothing of what its source commits from now on"
        )
    doubts.extend(leaves_out(source))
    here, replica = source.version, offer.server
    if replica is not None and here is not None and replica.version is not None:
        there = replica.version
        if not follows(there, here):
            doubts.append(
                f"{source.name} runs {here} and {replica.name} {there}: MySQL supports a replica of"
                " its source's release series or the next one"
            )
    return doubts


def _perhaps_had(offer: Offer, source: ReadServer, fetched: GtidSet) -> str | None:
    """Return that a server may have the rows of what it would fetch; None if nothing shows it.

    It has executed nothing: it is new, or it lost its history.
    """
    server = offer.server
    if server is None or server.gtid_executed or _is_connected(offer, source):
        return None
    if not may_have_rows(server, fetched):
        return None
    return (
        f"{server.name} has executed nothing: if it was reset (RESET BINARY LOGS AND GTIDS), or a"
        " dump was loaded without its GTID set, it has the rows, and would execute"
        f" {fetched.shortened()} a second time; compare the data first"
    )


def _is_connected(offer: Offer, source: ServerSnapshot) -> bool:
    """Return whether a replica is connected to a source: the channel has what it requires."""
    channels = (offer.server.channels or ()) if offer.server is not None else ()
    return any(
        each.source_uuid == source.server_uuid and each.receiver is ThreadState.RUNNING
        for each in channels
    )
