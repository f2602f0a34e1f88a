"""What must hold between the true world and what the product concludes of it.

1. Each oracle is a function of the true world and of an audit. It shares no code with the facts, the
   rules or the planner: it lets the world run, and looks.
2. A violation is one of two errors: OK, or "clears by itself", about a fault that stays; or a
   certainty that the world contradicts.
   What happens between the two readings is seen by the next audit, not by this one.
3. What no reading can show is exempt, and each exemption is written down here with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from gtid import GtidSet
from repair.repair_plan import Plan
from tests.simulation import replication as act
from tests.simulation.contents import compared_gtids, selected_pairs
from tests.simulation.groups import join, may_join
from tests.simulation.log_answers import with_answers
from tests.simulation.reading import Reading, gtids, members_of, moment, read
from tests.simulation.state import (
    SECOND,
    Change,
    Gtid,
    Key,
    Server,
    Transaction,
    World,
    gtid_text,
    uuid_of,
)
from tests.simulation.steps import start_threads
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.facts.content_pairs import linked_pairs
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ThreadState

COMMITS_MAX = 300
_STOP_CODES = frozenset(
    {"A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "P1", "E3", "E6", "H7", "C1", "C2", "U2"}
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One contradiction between the product and the true world."""

    oracle: str
    code: str
    text: str

    @property
    def kind(self) -> tuple[str, str]:
        return self.oracle, self.code


@dataclass
class Truth:
    """The world as it was when the reading ended, and what becomes of it."""

    world: World
    reading: Reading
    snapshot: ClusterSnapshot
    policy: Policy = field(default_factory=Policy)
    told: frozenset[Key] = frozenset()  # rows that a plan, run before, said it may leave different
    plan: Plan | None = field(default=None, init=False)  # without choices, once it was made

    @cached_property
    def rested(self) -> World:
        """Return the world after everything that happens by itself."""
        made = self.world.copy()
        act.rest(made)
        return made

    @cached_property
    def started(self) -> World:
        """Return the world after an operator has started every stopped channel, and the group."""
        made = self.world.copy()
        for server, channel in made.paths():
            if server.lock:
                server.lock = ""
            start_threads(made, server, channel)
        for name in made.group.names if made.group is not None else ():
            if may_join(made, made[name]):
                join(made, made[name])
        act.rest(made)
        return made

    @cached_property
    def probed(self) -> tuple[World, dict[str, Key]]:
        """Return the world after one more commit on every primary, and the keys written."""
        made = self.rested.copy()
        keys: dict[str, Key] = {}
        for name in sorted(made.primaries):
            key = f"{name}probe"
            if act.write(made, made[name], (Change("insert", key, made.works + 1),)):
                keys[name] = key
        act.rest(made)
        return made, keys

    @cached_property
    def next_audit(self) -> ClusterAudit:
        """Return what the same audit finds once everything has come to rest."""
        world, reading = self.rested.copy(), replace(self.reading, moving=False, between=())
        snapshot = with_answers(world, reading, read(world, reading), self.policy)
        return audit_cluster(snapshot, self.policy)

    def reported_next(self, name: str) -> GtidSet:
        """Return what the next audit reports of a replica with more than information."""
        found = (each for each in above_info(self.next_audit) if each.replica == name)
        return GtidSet.union_of(each.gtid_set for each in found)

    @cached_property
    def unread(self) -> frozenset[str]:
        """Return the servers of the audit of which nothing is known: each plan names them."""
        read = {each.name for each in self.snapshot.last if each.gtid_executed is not None}
        return frozenset({*self.reading.visible} - read)

    def fails_later(self, name: str) -> bool:
        """Return whether an applier on the way to a server meets a row that no reading shows."""
        for each in {name, *self.rested.upstream(name)}:
            for channel in self.rested[each].channels:
                if channel.applier_error[1] and (each, channel.name) not in self.errors_read:
                    return True
            if self.leaves_later(each):
                return True
        return False

    def leaves_later(self, name: str) -> bool:
        """Return whether a member leaves its group, because its applier meets such a row."""
        before, after = self.world.group, self.rested.group
        if before is None or after is None:
            return False
        return name in before.online and name in after.expelled

    @cached_property
    def read_executed(self) -> GtidSet:
        """Return what the visible servers had executed when they were read first."""
        return GtidSet.union_of(
            server.gtid_executed for server in self.snapshot.first if server.gtid_executed
        )

    def is_committed_since(self, made: Transaction) -> bool:
        """Return whether a client's transaction was not committed when its server was first read.

        Servers are looked at one after the other: a replica that is looked at later may have it
        executed already. The next audit sees it everywhere.
        """
        for server in self.snapshot.first:
            if server.name == made.origin and server.gtid_executed is not None:
                gtid = gtids([made.gtid])
                began = moment(made.at) >= server.read_started
                committing = gtid <= (server.gtid_owned or GtidSet())
                return (began or committing) and not gtid <= server.gtid_executed
        return False

    def committing_at_first(self, name: str) -> GtidSet:
        """Return what a server was committing when it was read first.

        Another server may have it executed already. That a replica of this one has not is claimed
        of what its source had executed then: of these the next audit.
        """
        read = [each for each in self.snapshot.first if each.name == name]
        owned = GtidSet.union_of(each.gtid_owned for each in read if each.gtid_owned)
        return owned - GtidSet.union_of(each.gtid_executed for each in read if each.gtid_executed)

    def under_way(self, *names: str) -> GtidSet:
        """Return what these servers were committing and had not executed when they were read.

        Another server may have it already. That it is errant where it is committed is shown by the
        next audit: this one reports that it is under way (T4).
        """
        read = [each for each in (*self.snapshot.first, *self.snapshot.last) if each.name in names]
        owned = GtidSet.union_of(each.gtid_owned for each in read if each.gtid_owned)
        return owned - GtidSet.union_of(each.gtid_executed for each in read if each.gtid_executed)

    @cached_property
    def errors_read(self) -> set[tuple[str, str]]:
        """Return the channels that had an applier error when the auditor looked, or unseen."""
        seen = {
            (server.name, channel.name)
            for server in self.snapshot.last
            for channel in server.channels or ()
            if channel.applier_errno or channel.applier_error
        }
        unseen = {
            (server.name, channel.name)
            for server, channel in self.world.paths()
            if server.name not in self.reading.visible and channel.applier_error[1]
        }
        return seen | unseen

    def is_of_unchecked_group(self, name: str) -> bool:
        """Return whether a server is below a group that was bootstrapped, and no contents compared.

        A bootstrap from a member without its last transactions uses their GTIDs again: only the
        contents show it, until a worker stops at a conflict.
        """
        group = self.world.group
        is_new = group is not None and group.bootstrapped_at >= 0
        if not is_new or group is None or self.reading.contents != "none":
            return False
        return bool({*group.names} & {name, *self.world.upstream(name)})

    def waits_within_limits(self, name: str) -> bool:
        """Return whether a lock on the way is younger than the policy's limits."""
        limit = max(self.policy.lock_wait_seconds_max, self.policy.stall_seconds_max) * SECOND
        for each in {name, *self.world.upstream(name)}:
            server = self.world[each]
            blocked = server.lock or server.session_owns is not None
            if blocked and self.world.clock - server.lock_since <= limit + SECOND:
                return True
            # The age of a stall is that of the oldest transaction that waits.
            if blocked and all(
                self.world.clock - channel.working[0].since <= limit + SECOND
                for channel in server.channels
                if channel.working
            ):
                return True
        return False


Oracle = Callable[[Truth, ClusterAudit], Iterator[Violation]]


def clears_by_itself(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """1. What a T finding names arrives without writes and operators.

    Exempt is a GTID made by hand whose origin has filled the numbers below it since, or does so
    now: sets do not show that its log has it before them. A replica that was reset had it, and its
    receiver leaves it out: the next audit sees that.
    """
    stopped = {(one.replica, one.source) for one in audit.findings if one.code in _STOP_CODES}
    stopped |= {(source, replica) for replica, source in stopped}
    for one in audit.findings:
        if one.code not in ("T1", "T2", "T3") or one.replica is None:
            continue
        if one.grade is not Grade.PROVED and "by itself" not in one.explanation:
            continue
        if "is stopped" in one.explanation:
            continue  # it says that nothing happens until the thread is started
        if (one.replica, one.source) in stopped or (one.replica, None) in stopped:
            continue
        left = one.gtid_set - gtids(truth.rested[one.replica].executed)
        if left:
            left -= made_by_hand_and_reset(truth, one.replica)
        if not left or truth.fails_later(one.replica) or truth.waits_within_limits(one.replica):
            continue
        yield Violation(
            "clears by itself", one.code, f"{one.code} {one.source}->{one.replica}: {left} stays"
        )


def made_by_hand_and_reset(truth: Truth, name: str) -> GtidSet:
    """Return the GTIDs made by hand that a RESET took from a server, as far as the next audit says."""
    lost = (
        gtid
        for (server, gtid), step in truth.rested.absence.items()
        if (server, step) == (name, "reset") and gtid in truth.world.by_hand
    )
    found = gtids(lost)
    return found & truth.reported_next(name) if found else found


def arrives(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """2a. After OK, a new commit on a primary reaches every visible server below it."""
    if audit.verdict is not Verdict.OK or truth.reading.between:
        return
    world, keys = truth.probed
    for name in truth.reading.visible:
        for primary, key in keys.items():
            if primary not in world.upstream(name) or key in world[name].rows:
                continue
            if truth.fails_later(name) or truth.waits_within_limits(name):
                continue
            if truth.is_of_unchecked_group(name):
                continue
            if _new_error(truth, world, name) or _same_gtid_hidden(truth, world, primary, name):
                continue
            if _was_connecting(truth, name) or _has_unseen_twin(truth, name):
                continue
            yield Violation("OK", "flow", f"OK, but a commit on {primary} does not reach {name}")


def _was_connecting(truth: Truth, name: str) -> bool:
    """Return whether a receiver on the way was connecting: its source had not answered it yet."""
    way = {name, *truth.world.upstream(name)}
    read = (
        each
        for server in truth.snapshot.last
        if server.name in way
        for each in server.channels or ()
    )
    if any(each.receiver is ThreadState.CONNECTING for each in read):
        return True
    return any(
        channel.receiver == "Connecting" for each in way for channel in truth.world[each].channels
    )


def _has_unseen_twin(truth: Truth, name: str) -> bool:
    """Return whether a server on the way looks like a visible one in all that a channel shows.

    A copy with the same server_uuid and server_id at another address, outside of the audit: the
    address may be another name of the server that was read. A channel shows what its source was
    when it connected last.
    """
    seen = {(truth.world[each].uuid, truth.world[each].server_id) for each in truth.reading.visible}
    return any(
        channel.source not in truth.reading.visible
        and (channel.source_uuid, channel.source_server_id) in seen
        for each in {name, *truth.world.upstream(name)}
        for channel in truth.world[each].channels
    )


def names_copy(audit: ClusterAudit) -> bool:
    """Return whether a finding reports that a copy of a server may be at a channel's address."""
    return any("same server_uuid" in one.explanation for one in audit.findings)


def _new_error(truth: Truth, world: World, name: str) -> bool:
    for each in {name, *world.upstream(name)}:
        for channel in world[each].channels:
            if channel.applier_error[1] and (each, channel.name) not in truth.errors_read:
                return True
    return False


def _same_gtid_hidden(truth: Truth, world: World, primary: str, name: str) -> bool:
    """Return whether the probe's GTID was used by hand on a server that nobody reads.

    Or whether an applier had it before it while the auditor read: 5.6 shows no worker's transaction,
    and forgets the last retrieved GTID when the receiver starts. The next audit sees it executed.
    Or whether a connection that still runs said that it has it, and a RESET removed it since: no
    set shows that, and the source does not send it before the next connection.
    """
    made = (each for each in reversed(world.acknowledged) if each.server == primary)
    last = next((each.transaction.gtid for each in made), None)
    for each in {name, *world.upstream(name)}:
        server = truth.world[each]
        if last in server.owned and server.session_owns != last:
            return True
        for path in server.channels:
            waiting = {each.transaction.gtid for each in path.relay[path.relay_at :]}
            if last in waiting - path.retrieved:
                return True
            if last in path.excluded - server.executed:
                return True
    for each in {name, *world.upstream(name)} - set(truth.reading.visible):
        if last in truth.rested[each].executed:
            return True
    return False


def _excluded_before_a_reset(truth: Truth, name: str) -> set[Gtid]:
    """Return what connections above a server leave out, and their sources do not have yet.

    The replica of such a connection had executed them when it connected, and a RESET removed them
    since. Once two readings show that the source has them too, the sets show that they are missing.
    """
    at_first = {each.name: each.gtid_executed or GtidSet() for each in truth.snapshot.first}
    return {
        gtid
        for each in {name, *truth.world.upstream(name)}
        for path in truth.world[each].channels
        if path.source in truth.world.servers
        for gtid in path.excluded - truth.world[each].executed
        if gtid not in truth.world[path.source].executed
        or not gtids([gtid]) <= at_first.get(path.source, gtids([gtid]))
    }


def same_rows(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """2. After OK, at rest, visible servers have the rows of the servers they receive from."""
    if audit.verdict is not Verdict.OK or truth.reading.between:
        return
    world = truth.rested
    for name in truth.reading.visible:
        for source in sorted(world.upstream(name) - {name}):
            if truth.fails_later(name) or truth.waits_within_limits(name):
                continue
            if truth.is_of_unchecked_group(name):
                continue
            is_read = source in truth.reading.visible
            # What a copy sends its source may also be why the source refuses a receiver that connects.
            is_open = not is_read or names_copy(audit) or _was_connecting(truth, name)
            if is_open and _has_unseen_twin(truth, name):
                continue
            for key in _differing(world, world[source], world[name]):
                if _is_exempt(truth, key, source, name):
                    continue
                works = _works_on(world[source], key) ^ _works_on(world[name], key)
                open_ = perhaps_passed(audit, name)
                for each in (source, name):
                    open_ |= _refused_when_connecting(truth, audit, each)
                if gtids(each.gtid for each in works) <= open_:
                    continue
                if {each.gtid for each in works} <= _excluded_before_a_reset(truth, name):
                    continue
                yield Violation("OK", "rows", f"OK, but {key} differs on {source} and {name}")
                break


def same_sets(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """2c. After OK, at rest, a visible replica has every GTID that its visible sources had."""
    if audit.verdict is not Verdict.OK or truth.reading.between:
        return
    for name in truth.reading.visible:
        replica = truth.rested[name]
        if truth.fails_later(name) or truth.waits_within_limits(name):
            continue
        for channel in replica.channels:
            if channel.source not in truth.reading.visible or channel.delay:
                continue
            if _was_connecting(truth, name) and _has_unseen_twin(truth, name):
                continue  # what a copy sends its source may be why the source refuses it
            left = gtids(truth.world[channel.source].executed) & truth.read_executed
            left -= truth.committing_at_first(channel.source)
            left -= gtids(replica.executed) | perhaps_passed(audit, name)
            if left:
                left -= left_open(truth, audit, name)
                left -= gtids(_excluded_before_a_reset(truth, name))
                left -= _refused_when_connecting(truth, audit, name)
            left = left.without_uuid(uuid_of(replica.uuid))
            if left:
                yield Violation("OK", "sets", f"OK, but {name} never has {left}")


def _refused_when_connecting(truth: Truth, audit: ClusterAudit, name: str) -> GtidSet:
    """Return what T3 says that a receiver shows as soon as it has connected, and then it is refused.

    A source that does not log what it receives counts that as purged. Its replica sends it some of
    that a moment before it has executed it. If it connects in that moment, it is refused (1236).
    """
    refused = {each.name for each in truth.rested[name].channels if each.receiver == "No"}
    return GtidSet.union_of(
        each.gtid_set
        for each in audit.findings
        if each.code == "T3"
        and each.replica == name
        and each.channel in refused
        and "Its receiver is connecting" in each.explanation
    )


def perhaps_passed(audit: ClusterAudit, name: str) -> GtidSet:
    """Return what T2 says that a replica may have passed: the next audit shows whether it has.

    Its workers are at later numbers, but the order of its source's log is not that of the numbers.
    """
    doubts = ("It may have passed", "Audit again when the applier has less to do")
    return GtidSet.union_of(
        one.gtid_set
        for one in audit.findings
        if one.replica == name
        and one.grade is Grade.LIKELY
        and all(text in one.explanation for text in doubts)
    )


def left_open(truth: Truth, audit: ClusterAudit, name: str) -> GtidSet:
    """Return what the threads of a channel leave out while they are read.

    The place of the first reading counts. Where a receiver or an applier goes past transactions
    between the readings, or just afterwards, they may still come: a likely T2 or T3 names the step
    that keeps them away. The next audit sees the place behind them. Only what that one reports,
    with more than information, is not shown by these readings.
    """
    words = {"reset": "RESET BINARY LOGS AND GTIDS", "skip_counter": "sql_replica_skip_counter"}
    kept_away = {step: set[Gtid]() for step in words}
    for (server, gtid), step in truth.rested.absence.items():
        if server == name and step in words:
            kept_away[step].add(gtid)
    doubted = GtidSet.union_of(
        one.gtid_set & gtids(kept_away[step])
        for one in audit.findings
        if one.code in ("T1", "T2", "T3") and one.replica == name and one.grade is Grade.LIKELY
        for step, word in words.items()
        if word in one.explanation
    )
    doubted = doubted & truth.reported_next(name) if doubted else doubted
    return doubted | made_by_hand_and_reset(truth, name)


def _members_as_read(truth: Truth, name: str) -> set[str]:
    """Return a server, and those in its group when they were read last."""
    groups = {
        each.name: each.group.group_name
        for each in truth.snapshot.last
        if each.group is not None and each.group.member_state in ("ONLINE", "RECOVERING")
    }
    return {name, *(each for each in groups if name in groups and groups[each] == groups[name])}


def linked(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """2b. OK is not said of visible servers that no channel links.

    Exempt are members of one group that left it after they were read: a worker stopped, as a likely
    T2 says. The next audit sees it. And a server with the copied server_uuid of a member that is not
    read counts as this member: the group lists members by their server_uuid.
    """
    if audit.verdict is not Verdict.OK or truth.reading.between:
        return
    world, names = truth.world, truth.reading.visible
    copies = {
        name
        for name in names
        if world.group is not None and name not in world.group.names
        if world[name].uuid in {world[each].uuid for each in world.group.names if each not in names}
    }
    for name in names:
        for other in names:
            if {name, other} & copies:
                continue
            if name < other and other not in _connected(world, name):
                peers = _members_as_read(truth, name), _members_as_read(truth, other)
                if truth.reading.moving and any(
                    there == here or there in _connected(world, here)
                    for here in peers[0]
                    for there in peers[1]
                ):
                    continue
                yield Violation("OK", "unlinked", f"OK, but nothing links {name} and {other}")


def _connected(world: World, name: str) -> set[str]:
    """Return the servers that channels connect, whatever their directions.

    A source of a multi-source replica has no server above or below it in common with a replica of
    the other source, and the topology is healthy.
    """
    found, families = {name}, [{each, *world.upstream(each)} for each in world.servers]
    while more := {each for family in families if family & found for each in family} - found:
        found |= more
    return found


def _differing(world: World, source: Server, replica: Server) -> list[Key]:
    """Return the rows that differ by what was not committed on a source of the replica alone."""
    above = {source.name, *world.upstream(source.name)}
    # In a ring that the source is not part of, the replica's own commits are expected to differ.
    elsewhere = world.upstream(replica.name) - above
    keys = sorted(source.rows.keys() | replica.rows.keys())
    different = [key for key in keys if source.rows.get(key) != replica.rows.get(key)]
    if not elsewhere:
        return different
    uuids = {world[name].uuid for name in elsewhere}
    # What another of its sources has, and none of these has executed: of another cluster.
    others = set[Gtid]().union(*(world[name].executed for name in elsewhere))
    others -= set[Gtid]().union(*(world[name].executed for name in above))
    return [
        key
        for key in different
        if not any(
            made.origin in elsewhere or made.gtid[0] in uuids or made.gtid in others
            for made in _works_on(source, key) ^ _works_on(replica, key)
        )
    ]


def _is_exempt(truth: Truth, key: Key, source: str, replica: str) -> bool:
    """Return whether no reading can show why this row differs."""
    world = truth.rested
    if key in truth.told or key in world.drifted:
        return True  # written with sql_log_bin=0: no log and no set has it
    for each in {replica, *world.upstream(replica)}:
        if any(key in channel.ignored_keys for channel in world[each].channels):
            return True  # filtered as configured
    mine, theirs = _works_on(world[source], key), _works_on(world[replica], key)
    if not mine ^ theirs and _was_applied(truth, key, source, replica):
        # The same work in another order: one channel skipped it, another brought it behind later
        # work. The sets are equal and so are the contents (docs/reliability.md): audits warn before.
        return True
    # The GTID of work that a reset forgot may belong to other work by now, which is compared.
    apart = {each for each in mine ^ theirs if not is_forgotten(world, {each})}
    different = {each.gtid for each in apart}
    old = gtids(each.gtid for each in apart if not truth.is_committed_since(each))
    if different and not (old - truth.under_way(source, replica)) & truth.read_executed:
        return True  # committed after its server was read, or under way then
    both = world[source].executed & world[replica].executed
    # A statement that both executed: its source logs it, and a replica the rows that it changed. The
    # two forms are not comparable, which a comparison reports as such.
    forms = {each for each in apart if each.has_statements and each.gtid in both}
    unlike = {each for each in forms if each.gtid not in shown(truth, source, replica)}
    hidden = different & both
    if hidden and not hidden & shown(truth, source, replica):
        return True
    return is_forgotten(world, {each for each in mine ^ theirs if each not in unlike})


def _was_applied(truth: Truth, key: Key, *names: str) -> bool:
    """Return whether all work on a row was there when the servers were read."""
    return all(
        _works_on(truth.world[name], key) == _works_on(truth.rested[name], key) for name in names
    )


def is_forgotten(world: World, works: set[Transaction]) -> bool:
    """Return whether RESET BINARY LOGS AND GTIDS removed the only record of these works.

    No log has them, and their GTIDs are free or belong to other work: neither sets nor contents
    show that they were ever done. A server that has them and purged their log still shows them.
    """
    logs = [
        each for server in world.servers.values() for log in server.files for each in log.entries
    ]
    # What an applier has passed, no audit reads.
    relays = [
        each.transaction
        for _, channel in world.paths()
        for each in channel.relay[channel.relay_at :]
    ]
    listed = {each.work for each in (*logs, *relays)}
    purged = {
        made.work
        for server in world.servers.values()
        for made, _ in server.applied
        if made.gtid in server.purged
    }
    return bool(works) and all(
        each.work not in listed and each.work not in purged for each in works
    )


def _works_on(server: Server, key: Key) -> set[Transaction]:
    return {made for made, undo in server.applied if any(each[0] == key for each in undo)}


def follows_its_source(before: World, server: Server, key: Key) -> bool:
    """Return whether a row is older than before because a source has it in this order.

    Two primaries changed it at the same time: the source applied what the server had last before
    what it has now, so every replica of it does, and ends with the source's row.
    """
    was, now = last_writer(before[server.name], key), last_writer(server, key)
    if was is None or now is None:
        return False
    had, has = was.gtid, now.gtid
    for each in server.sources:
        source = before.servers.get(each)
        if source is None or source.rows.get(key) != server.rows.get(key):
            continue
        order = [made.gtid for made, undo in source.applied if key in dict(undo)]
        if had in order and has in order and order.index(had) < order.index(has):
            return True
    return False


def last_writer(server: Server, key: Key) -> Transaction | None:
    """Return the transaction that changed a row last on a server."""
    written = (
        made for made, undo in reversed(server.applied) if any(key == each for each, _ in undo)
    )
    return next(written, None)


def is_own_row(server: Server, key: Key) -> bool:
    """Return whether a server changed a row last itself; no source sent it that version."""
    last = last_writer(server, key)
    return last is not None and last.origin == server.name


def shown(truth: Truth, left: str, right: str) -> set[Gtid]:
    """Return the GTIDs whose contents were compared on these two servers, or by a row of pairs.

    A row over the server that committed a statement says nothing of it: that server logged the
    statement, and the others the rows. The audit reports it as not comparable. What one of the two
    commits since the first reading is not looked for on other pairs: the next audit has it. Nor is
    what a server with a channel to one of them has purged: the report has it as not compared.
    """
    reading = truth.reading
    if not {left, right} <= set(reading.visible):
        return set()
    found = compared_gtids(truth.world, reading, left, right)
    if not found or (min(left, right), max(left, right)) in selected_pairs(truth.snapshot):
        return found
    logs = (log for name in reading.visible for log in truth.world[name].files)
    found -= {made.gtid for log in logs for made in log.entries if made.has_statements}
    both: list[GtidSet] = []
    for seen in (truth.snapshot.first_read, truth.snapshot.last_read):
        if not {left, right} <= seen.keys():
            return set()
        both += (seen[left].gtid_executed, seen[right].gtid_executed)
    linked = (pair for pair in linked_pairs(truth.snapshot) if {left, right} & {*pair})
    between = {name for pair in linked for name in pair} - {left, right}
    purged = {gtid for name in between for gtid in truth.world[name].purged}
    return {gtid for gtid in found - purged if all(gtids([gtid]) <= each for each in both)}


QUIET = frozenset(
    {"write", "write-tagged", "write-statement", "load", "flow", "rest", "wait", "rotate", "backup"}
)
RUNS = frozenset({"start-replica", "unlock", "release-gtid"})


def silent(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """0. A healthy topology that was read in full gives nothing above info.

    In a healthy one clients write on the primaries alone. A variation of a history may have kept a
    write, and not the failover that made its server a primary.
    """
    everyone = set(truth.reading.visible) == truth.world.servers.keys()
    if truth.reading.unread or not everyone or not {*truth.world.steps_done} <= QUIET | RUNS:
        return
    origins = {each.transaction.origin for each in truth.world.acknowledged}
    if not origins <= truth.world.primaries:
        return
    islands = any(one.code.startswith("J") for one in audit.findings)
    for one in above_info(audit):
        if one.code in ("A2", "A3") and _met_a_statement(truth.world, one):
            continue  # a statement of one primary reads a row that another changes: a true conflict
        if one.code == "E4" and _is_statement_apart(truth, one):
            continue
        if not (islands and one.code in ("J1", "J2", "J3", "A7")):
            text = f"{one.code} {one.source}->{one.replica} of a healthy topology"
            yield Violation("silent", one.code, text)


def _met_a_statement(world: World, one: Finding) -> bool:
    """Return whether a statement that two servers did on different rows can have stopped an applier.

    Only then: it read or changed a row that leads to the failed transaction's rows, and a
    transaction of another server changed one of its rows as well.
    """
    failed = (
        channel.failed
        for channel in world[one.replica or ""].channels
        if channel.name == one.channel and channel.failed is not None
    )
    keys = {key for made in failed for key in made.keys}
    made_of = [each.transaction for each in world.acknowledged]
    found: set[int] = set()
    while True:
        near = {each.work for each in made_of if each.has_statements and each.keys & keys}
        if near <= found:
            break
        found |= near
        keys |= {key for each in made_of if each.work in found for key in each.keys}
    return any(
        other.origin != statement.origin and other.keys & statement.keys
        for statement in made_of
        if statement.work in found
        for other in made_of
    )


def _is_statement_apart(truth: Truth, one: Finding) -> bool:
    """Return whether a statement found other rows on two servers, and their rows differ for it.

    Or their logs do, where later work has made the rows equal again.
    """
    if one.source is None or one.replica is None:
        return False
    source, replica = truth.rested[one.source], truth.rested[one.replica]
    statements = (
        each.transaction.gtid
        for each in truth.world.acknowledged
        if each.transaction.has_statements and gtids([each.transaction.gtid]) <= one.gtid_set
    )
    for gtid in statements:
        versions = (source.logged_version(gtid), replica.logged_version(gtid))
        if len({each.changes for each in versions if each is not None}) > 1:
            return True
    keys = {
        change.key
        for each in truth.world.acknowledged
        if each.transaction.has_statements and gtids([each.transaction.gtid]) <= one.gtid_set
        for change in each.transaction.changes
    }
    return any(source.rows.get(key) != replica.rows.get(key) for key in keys)


def errant(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """3. No running or startable path delivers what is called errant with certainty.

    Of several, one may be in a relay log of 5.6 that no set shows: a finding that says so, and has
    no strategy, promises nothing.
    """
    for one in audit.findings:
        if one.code not in ("E1", "E2") or one.source is None:
            continue
        delivered = truth.rested if one.grade is Grade.LIKELY else truth.started
        if one.grade is Grade.LIKELY and one.severity is not Severity.CRITICAL:
            continue
        if one.grade is Grade.LIKELY and one.strategies[:1] != ():
            first = one.strategies[0].name
            if first not in ("inject_empty", "gtid_purged_append", "undo_on_replica"):
                continue
        if "may be on its way" in one.explanation and not one.strategies:
            continue
        came = one.gtid_set & gtids(
            delivered[one.source].executed - truth.world[one.source].executed
        )
        if came:
            yield Violation(
                "errant",
                one.code,
                f"{one.code} {one.grade.value} {one.source}->{one.replica}: {came} arrives",
            )


def lost(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """4 and 6. What is called lost was committed on its origin, and went the way that is named."""
    allowed = {"E3": ("crash", "restore"), "E6": ("reset", "restore")}
    for one in audit.findings:
        if one.code not in allowed or one.grade is not Grade.PROVED or one.source is None:
            continue
        origin = truth.world[one.source]
        for each in sorted(members_of(one.gtid_set, truth.world)):
            if each in origin.executed:
                yield Violation("lost", one.code, f"{gtid_text(each)} is on {origin.name}")
                continue
            why = truth.world.absence.get((origin.name, each), "never there")
            if why not in allowed[one.code]:
                yield Violation(
                    "cause",
                    one.code,
                    f"{one.code} proved: {gtid_text(each)} of {origin.name}: {why}",
                )
                break


def countdown(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """5. The commits that are left until lost GTIDs are reused are as many as is said."""
    for one in audit.findings:
        if one.code not in ("E3", "E6", "H7") or one.source is None:
            continue
        said = {
            fact.fact: int(fact.value)
            for fact in one.evidence
            if fact.fact.startswith("commits until") and fact.value.isdigit()
        }
        members = members_of(one.gtid_set, truth.world)
        if not said or any(each[1] for each in members) or truth.reading.moving:
            continue
        first, last = _commits_until(truth.world, one.source, members)
        for fact, count in said.items():
            true = last if "all" in fact or "last" in fact else first
            if true is not None and true != count:
                yield Violation("countdown", one.code, f"{fact}: {count}, in truth {true}")


def _commits_until(world: World, name: str, members: set[Gtid]) -> tuple[int | None, int | None]:
    made = world.copy()
    server = made[name]
    while server.pending:
        act.finish(made, server, server.pending[0])
    waiting, first = set(members), None
    for count in range(1, COMMITS_MAX):
        gtid = act.next_gtid(server)
        server.executed.add(gtid)
        if gtid in waiting:
            first = count if first is None else first
            waiting.discard(gtid)
            if not waiting:
                return first, count
    return first, None


# Why a replica may lack what each code says it lacks: the step that made it so.
ABSENT: dict[str, tuple[str, ...]] = {
    # What a skip counter skipped first, a file position behind it keeps away as well.
    "H1": ("change-by-position", "relay-log-position", "skip_counter"),
    # Its text names a server_id that was equal before.
    "H8": (
        *("relay-log-position", "skip_counter", "skip_errors"),
        *("reset", "crash", "restore", "same_server_id"),
    ),
}


def cause(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """6. A proved code is the step that was done."""
    for one in audit.findings:
        if one.grade is not Grade.PROVED or one.replica is None:
            continue
        if one.code in ABSENT:
            for each in sorted(members_of(one.gtid_set, truth.world)):
                why = truth.world.absence.get((one.replica, each), "nothing known")
                if why not in ABSENT[one.code]:
                    text = f"{one.code} proved on {one.replica}: {gtid_text(each)}: {why}"
                    yield Violation("cause", one.code, text)
                    break
        elif one.code == "C1" and one.source is not None:
            if truth.world[one.source].uuid != truth.world[one.replica].uuid:
                yield Violation("cause", "C1", f"{one.source} and {one.replica}: different UUIDs")
        elif one.code == "A7" and one.source is None:
            continue


CONCLUSIONS: dict[str, Oracle] = {
    "silent": silent,
    "clears by itself": clears_by_itself,
    "arrives": arrives,
    "same rows": same_rows,
    "same sets": same_sets,
    "linked": linked,
    "errant": errant,
    "lost": lost,
    "countdown": countdown,
    "cause": cause,
}


def conclusions(truth: Truth, audit: ClusterAudit) -> list[Violation]:
    """Return every contradiction between an audit and the true world."""
    return [found for oracle in CONCLUSIONS.values() for found in oracle(truth, audit)]


def above_info(audit: ClusterAudit) -> list[Finding]:
    return [one for one in audit.findings if one.severity is not Severity.INFO]
