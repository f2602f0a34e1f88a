"""What a replication group answers for its servers: it links members, and accepts or refuses one.

How it works
------------
Members of a group (Group Replication) have no channel between them, so no source answers. Three
questions replace the handshake of a receiver:

* *Both are ONLINE in one part of the group* (memberships.py): the group delivers what either
  commits. Only what a member had when it joined is not delivered (E1), and what both have with
  another content (E4).
* *One is not a member* (OFFLINE, ERROR, expelled, or in another part after a partition): it would
  have to join. The group compares what the joining server has executed with what its members have
  executed and received, and refuses one that has more (3092; plugin/group_replication/src/
  gcs_event_handlers.cc, compare_member_transactions). Recovery then fetches the rest from the
  binary logs of one ONLINE member. If each has purged some of it, recovery clones a member, or ends
  with an entry in the error log (MY-013467, seen on 9.7.4).
* *No server is a member now*: the source would bootstrap the group, and the replica would join it.

Both directions have the same answer: once a server has joined, the group delivers both ways.

A secondary runs no receiver (Last_IO_Errno 13117, "Failed to run 'thread_start' hook", on 9.7.4).
What a server outside the group would send reaches it through the primary, so the answer is that of
the primary. Each member of a group with several primaries may have receivers.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.group_appliers import failed_channels
from topology.facts.group_facts import GroupLeaver, leaver_of
from topology.facts.late_transactions import late_part, late_text
from topology.facts.memberships import Membership, uuid_of_group
from topology.facts.refusal_texts import no_donor_text, not_in_group_text
from topology.facts.reset_signs import excludes_reset
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.facts.source_limits import leaves_out
from topology.readings.group_view import GROUP_APPLIER
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion

_NOTHING: Final = GtidSet()
_UNKNOWN_VERSION: Final = ServerVersion(0, 0)
PRIMARY: Final = "PRIMARY"
_ONLINE: Final = "ONLINE"


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group as a promotion sees it: who can accept writes, and who would have to join."""

    name: str
    primaries: tuple[str, ...]  # more than one if every member accepts writes
    members: tuple[str, ...]  # the largest part
    online: tuple[str, ...]  # of these
    outside: tuple[str, ...]  # configured for the group, and not a member of that part

    @property
    def servers(self) -> tuple[str, ...]:
        """Return every server of the group."""
        return (*self.members, *self.outside)


def group_of(groups: Iterable[GroupState], name: str) -> GroupState | None:
    """Return the group of a server; None if it has none, or its members are not known."""
    return next((each for each in groups if name in each.servers), None)


def group_states(facts: ClusterFacts) -> tuple[GroupState, ...]:
    """Return the groups of which the members are known."""
    return tuple(_state_of(facts, each) for each in facts.graph.memberships if not each.doubt)


def _state_of(facts: ClusterFacts, membership: Membership) -> GroupState:
    part = membership.parts[0] if membership.parts else ()
    return GroupState(
        membership.name,
        tuple(name for name in part if _role_of(facts, name) == PRIMARY),
        part,
        tuple(name for name in part if _is_online(facts, name)),
        tuple(name for name in membership.configured if name not in part),
    )


def _role_of(facts: ClusterFacts, name: str) -> str:
    group = facts.last[name].group
    return group.member_role if group is not None else ""


def _is_online(facts: ClusterFacts, name: str) -> bool:
    group = facts.last[name].group
    return group is not None and group.member_state == _ONLINE


@dataclass(frozen=True, slots=True)
class GroupAnswers:
    """The facts and findings of one cluster that decide what its groups answer.

    The servers that it is asked about are `comparable` (answering_sources.py).
    """

    facts: ClusterFacts
    findings: Collection[Finding]

    def between(self, *, replica: str, source: str, unlike: GtidSet) -> SourceAnswer | None:
        """Return what a group answers for two of its servers; None if no group has both.

        `unlike` are the GTIDs under which the two have different transactions.
        """
        membership = self._of(replica, source)
        if membership is None:
            return None
        unread = "; ".join(self._unread(membership, replica, source))
        name = membership.name
        if unread:  # such as two servers with one server_uuid: neither is in `fully_read`
            return SourceAnswer(source, replica, Outcome.UNKNOWN, unread=unread, group=name)
        found = self._answer(membership, replica=replica, source=source)
        found = replace(found, group=name)
        if found.attaches and unlike:
            found = replace(found, outcome=Outcome.DIVERGED, unlike=unlike)
        return found.with_doubts(leaves_out(self.facts.fully_read[source].last))

    def stand_in(self, replica: str) -> tuple[str | None, str]:
        """Return the primary through which a secondary receives, or why it is not known.

        (None, "") if the server has receivers of its own: it is a primary, or no member.
        """
        for membership in self.facts.graph.memberships:
            part = next((each for each in membership.parts if replica in each), None)
            if part is None:
                continue
            if _role_of(self.facts, replica) == PRIMARY:
                return None, ""
            primary = next((name for name in part if _role_of(self.facts, name) == PRIMARY), None)
            return primary, "" if primary else f"the primary of the group of {replica}"
        return None, ""

    def _of(self, replica: str, source: str) -> Membership | None:
        both = {replica, source}
        return next(
            (each for each in self.facts.graph.memberships if both <= {*each.configured}), None
        )

    def _unread(self, membership: Membership, replica: str, source: str) -> Iterator[str]:
        for name in (replica, source):
            if not any(name in part for part in (*membership.parts, membership.outside)):
                yield f"whether {name} is a member of the group"
            group = self.facts.last[name].group
            if group is not None and group.member_state == "RECOVERING":
                yield f"whether the recovery of {name} ends (it is RECOVERING)"

    def _answer(self, membership: Membership, *, replica: str, source: str) -> SourceAnswer:
        parts = {name: part for part in membership.parts for name in part}
        joining: tuple[str, ...]
        of_replica, of_source = parts.get(replica), parts.get(source)
        if of_source is not None and of_replica == of_source:
            return self._between_members(replica=replica, source=source)
        if of_source is not None:
            joining, part = (replica,), of_source
        elif of_replica is not None:
            joining, part = (source,), of_replica
        elif membership.parts:
            joining, part = (replica, source), membership.parts[0]
        else:
            joining, part = (replica,), (source,)
        answers = [self._joining(name, part, membership) for name in joining]
        decides = next((each for each in answers if not each.attaches), answers[0])
        fetched = decides.fetched if decides.joins == replica else _NOTHING
        return replace(decides, replica=replica, source=source, fetched=fetched)

    def _has_several_primaries(self, part: tuple[str, ...]) -> bool:
        return [_role_of(self.facts, name) for name in part].count(PRIMARY) > 1

    def _between_members(self, *, replica: str, source: str) -> SourceAnswer:
        """Return the answer for two ONLINE members: the group leaves out what is E1."""
        reading, other = self.facts.fully_read[replica], self.facts.fully_read[source]
        hidden = self._not_delivered(to=source) & reading.first.gtid_executed
        withheld = self._not_delivered(to=replica) & other.last.gtid_executed
        outcome = Outcome.INCOMPLETE if withheld else Outcome.GROUP
        return SourceAnswer(
            source,
            replica,
            Outcome.DIVERGED if hidden else outcome,
            gtid_set=hidden,
            fetched=other.last.gtid_executed - reading.last.gtid_executed - withheld,
            dropped=withheld,
        )

    def _not_delivered(self, *, to: str) -> GtidSet:
        """Return what other members have, and the group does not deliver to this one."""
        return GtidSet.union_of(
            each.gtid_set
            for each in self.findings
            if each.code == "E1" and each.source == to and each.severity is not Severity.INFO
        )

    def _joining(self, name: str, part: tuple[str, ...], membership: Membership) -> SourceAnswer:
        """Return whether a server could join a part of its group."""
        leaver = leaver_of(name, part, self.facts)
        server = self.facts.fully_read[name].last
        version = server.version or _UNKNOWN_VERSION
        answer = SourceAnswer(
            leaver.donor,
            name,
            Outcome.REFUSED,
            doubts=tuple(self._doubts(leaver, part, membership)),
            joins=name,
            through=leaver.donor,
        )
        if uuid_of_group(membership.name) == server.server_uuid:
            text = not_in_group_text(version)
            return replace(answer, refusal=FailedCheck.GROUP_NAME, text=text)
        if leaver.extra:
            refusal, text = FailedCheck.NOT_IN_GROUP, not_in_group_text(version)
            return replace(answer, refusal=refusal, gtid_set=leaver.extra, text=text)
        if leaver.purged:
            refusal, text = FailedCheck.PURGED, no_donor_text(version)
            return replace(answer, refusal=refusal, gtid_set=leaver.purged, text=text)
        missing = leaver.missing - server.gtid_retrieved
        late = late_part(server, missing, self.facts.graph.group_uuids)
        doubts = (*late_text(name, late), *answer.doubts)
        return replace(
            answer, outcome=Outcome.SERVED, fetched=leaver.missing, late=late, doubts=doubts
        )

    def _doubts(
        self, leaver: GroupLeaver, part: tuple[str, ...], membership: Membership
    ) -> Iterator[str]:
        server = self.facts.fully_read[leaver.server].last
        yield from _doubts_of_server(server, leaver)
        if running_channels(server) and not self._has_several_primaries(part):
            yield (
                f"channels of {server.name} run: a group with one primary refuses to let it join"
                " before they are stopped (3092)"
            )
        versions = [version for name in part if (version := self.facts.last[name].version)]
        if server.version is not None and versions and server.version < min(versions):
            yield (
                f"{server.name} runs {server.version}, and each member a later version: the group"
                " refuses it unless group_replication_allow_local_lower_version_join is ON there"
            )
        if leaver.extra and membership.parts and (leaver.unseen or membership.absent):
            others = ", ".join(leaver.unseen) or "members that were not read"
            yield f"what only {server.name} has may still arrive in the group from {others}"


def blocked_queues(
    facts: ClusterFacts, findings: Collection[Finding]
) -> Iterator[tuple[str, GtidSet]]:
    """Yield what ONLINE members have received and do not apply, because their queue is blocked.

    A member has what it received: it applies it as soon as the lock ends (A5), so it is not lost.
    After an error of a worker a member is not ONLINE. A queue that moves is no reason to wait: the
    plugin waits for it before the new primary accepts writes.
    """
    for name in (name for each in group_states(facts) for name in each.online):
        group, reading = facts.last[name].group, facts.fully_read.get(name)
        if group is None or reading is None:
            continue
        left = group.received - reading.last.gtid_executed
        if left and any(_blocks_queue(each, name) for each in findings):
            yield name, left


def _blocks_queue(found: Finding, member: str) -> bool:
    if found.replica != member or found.channel != GROUP_APPLIER:
        return False
    is_waiting = any(each.name == "wait" for each in found.strategies)
    is_idle = found.severity is not Severity.INFO or not is_waiting
    return found.code in ("A5", "A8") or (found.code == "T2" and is_idle)


def running_channels(server: ServerSnapshot) -> tuple[ChannelSnapshot, ...]:
    """Return the channels of which a thread runs."""
    both = {ThreadState.STOPPED}
    return tuple(each for each in server.channels or () if {each.receiver, each.applier} != both)


def doubts_of_states(replica: ReadServer, source: ReadServer) -> Iterator[str]:
    """Yield what state ERROR keeps from a channel; the answer holds once it is removed."""
    if _has_failed(replica):
        yield (
            f"{replica.name} is in state ERROR of its group: before STOP GROUP_REPLICATION, its"
            " receiver does not start (13117)"
        )
    if _has_failed(source):
        yield (
            f"{source.name} is in state ERROR of its group: if that put it in offline_mode, it"
            " refuses receivers (6400)"
        )


def _has_failed(server: ReadServer) -> bool:
    return server.group is not None and server.group.member_state == "ERROR"


def _doubts_of_server(server: ReadServer, leaver: GroupLeaver) -> Iterator[str]:
    for channel in failed_channels(server):
        yield (
            f"a worker of {server.name} stopped with error {channel.applier_errno}"
            f" ({channel.name}): it stops again until the cause is removed"
        )
    if leaver.extra:
        return
    if leaver.purged:
        yield (
            f"if {server.name} and a member have the clone plugin, recovery replaces the data of"
            f" {server.name} by a clone, and it joins"
        )
    elif leaver.missing and not excludes_reset(server, leaver.missing):
        yield (
            f"the binary logs of {server.name} do not exclude RESET BINARY LOGS AND GTIDS: if it"
            " was reset, it has the rows already, and recovery stops at them"
        )
