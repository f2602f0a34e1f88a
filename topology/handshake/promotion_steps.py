"""The order of repair before a failover, as steps with the statements of each server's version.

1. The address of a source is the one that an existing channel uses for it, otherwise the one from
   which it was audited: replicas may need another.
2. Which channel is changed, and what needs no change: channel_steps.py.
3. While anything waits in a relay log, the steps are waits only (promotion_waits.py).
4. Members of a replication group are not pointed (group_steps.py), except the primary of a group
   that is to follow a server outside it.
5. What a step changes for good ends the steps: a clone, or what a candidate fetches before it
   bootstraps its group. The sets that were read do not hold after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from topology.facts.graph import Graph, build_graph
from topology.facts.memberships import uuid_of_group
from topology.facts.missing_logs import STAYS
from topology.facts.source_answer import FailedCheck
from topology.handshake.channel_steps import (
    detach_step,
    end_of_channel,
    former_channel_steps,
    has_channel_from,
    keep_steps,
    point_step,
    server_id_step,
)
from topology.handshake.group_answers import group_of
from topology.handshake.group_steps import HOLE_FIRST, group_steps, late_step, why_not_joining
from topology.handshake.late_extras import extra_text
from topology.handshake.promotion import Promotion, PromotionStep
from topology.handshake.promotion_waits import (
    delays_of,
    unread_step,
    wait_for_gtids,
    wait_steps,
)
from topology.handshake.promotion_ways import Missing, Obstacle
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot


def promotion_steps(promotion: Promotion, snapshot: ClusterSnapshot) -> tuple[PromotionStep, ...]:
    """Return the steps in order; nothing but to audit again if the candidate was not read."""
    servers = {server.name: server for server in snapshot.last}
    if promotion.candidate in promotion.unread:
        text = "It was not read, or is not evaluated: audit the servers first."
        return (PromotionStep(promotion.candidate, text),)
    addresses = {server.name: (server.host, server.port) for server in snapshot.last}
    graph = build_graph(snapshot)
    for edge in graph.edges:
        addresses[edge.source] = (edge.channel.source_host, edge.channel.source_port)
    return tuple(_Steps(promotion, servers, addresses, graph).in_order())


@dataclass(frozen=True, slots=True)
class _Steps:
    promotion: Promotion
    servers: dict[str, ServerSnapshot]
    addresses: dict[str, tuple[str, int]]
    graph: Graph

    def in_order(self) -> Iterator[PromotionStep]:
        candidate = self.servers[self.promotion.candidate]
        yield from self._before_all(candidate)
        if self.promotion.waits:
            yield from wait_steps(self.promotion, self.servers, self.graph)
            return
        if self.promotion.partial:
            yield PromotionStep("", "Run this again: the next steps follow from what was read.")
            return
        if self.promotion.before_bootstrap:
            yield from self._before_bootstrap(candidate)
            return
        is_kept_out = self.promotion.is_kept_out
        if not is_kept_out:  # a clone would replace what it fetched
            for missing in self.promotion.missing:
                if not missing.is_recovered:
                    yield self._fetch(candidate, missing)
        for obstacle in self.promotion.obstacles:
            yield from self._clear(candidate, obstacle)
        if self.promotion.is_to_be_repaired:
            yield PromotionStep("", "Run this again after the repair: no server is pointed before.")
            return
        yield from group_steps(self.promotion, self.servers)
        yield from self._for_others(candidate)
        if (candidate.channels or self._gets_channel()) and not is_kept_out:
            yield detach_step(candidate, self.graph)

    def _before_all(self, candidate: ServerSnapshot) -> Iterator[PromotionStep]:
        """Yield what the operator has to know or to do before any other step."""
        if not self._is_within_group():
            text = (
                "Stop all writes of clients, and run this again: the sets must not change any more."
                " On the present source, super_read_only = ON (before 5.7.8: read_only) ends them;"
                " what it commits later stays there alone."
            )
            yield PromotionStep("", text)
        for doubt in self.promotion.doubts:
            yield PromotionStep(candidate.name, f"{doubt[0].upper()}{doubt[1:]}.")
        for name in self.promotion.unread:
            what, way = (
                ("server", "read it")
                if name in self.servers
                else ("source", "add it to the servers")
            )
            yield PromotionStep(
                name,
                f"This {what} was not read. What only it has is lost, or hidden once it returns:"
                f" {way}, or accept that."
                + (
                    " A group that is bootstrapped without it would use its GTIDs for other"
                    " transactions (E4)."
                    if self.promotion.bootstraps
                    else ""
                ),
            )
        for each in self.promotion.partial:
            yield unread_step(each)
        in_part = {each.server for each in self.promotion.partial}
        for shared in self.promotion.shared_ids:
            if shared.server not in in_part:  # its step stops its channels
                yield server_id_step(self.servers[shared.server], shared)
        shown = {each.what for each in self.promotion.partial}
        for name, what in self.promotion.open:
            if {*what.split("; ")} <= shown:
                continue
            again = "Do not point it there." if what.endswith(STAYS) else "Run this again."
            yield PromotionStep(name, f"Not known: {what}. {again}")

    def _before_bootstrap(self, candidate: ServerSnapshot) -> Iterator[PromotionStep]:
        """Yield what the candidate must have first, and which servers wait; no bootstrap yet."""
        name = candidate.name
        for missing in self.promotion.before_bootstrap:
            extra = f"{missing.gtid_set.shortened()}, which {name} does not have"
            why = f"{_have(missing.holders)} {extra}.{self._reuse_of(missing)}"
            repair = f"plan the repair of {' and '.join(missing.holders)} (repair plan)"
            if missing.is_recovered:
                text = (
                    f"{why} Bootstrap the group from {missing.donor} instead (handshake --promote"
                    f" {missing.donor}): then {name} can join it, and become its primary. If their"
                    f" content is not needed, {repair}."
                )
                yield PromotionStep(name, text)
            elif missing.donor is None:
                way = "No server can send them to it:"
                if missing.is_open:
                    way = "Whether a server can send them to it is not known. Run this again, or"
                text = f"{why} {way} {repair} before the bootstrap."
                yield PromotionStep(name, text)
            else:
                text = (
                    f"{why} Let it replicate from {missing.donor} before the bootstrap, wait until"
                    f" it has them, and detach it again. If their content is not needed, {repair}"
                    " instead."
                )
                yield self._receive(candidate, missing, text, detached=True)
        for each in sorted({each.answer.replica for each in self.promotion.obstacles}):
            text = f"Do not let it replicate from {name}, or join its group, before that."
            yield PromotionStep(each, text)
        yield PromotionStep("", "Run this again: only then can the group be bootstrapped.")

    def _for_others(self, candidate: ServerSnapshot) -> Iterator[PromotionStep]:
        """Yield the steps of every other server: point it, or why it is not pointed."""
        group = self.promotion.group
        own = group.servers if group is not None else ()
        not_known = {*dict(self.promotion.open), *self.promotion.unread}
        for name, server in sorted(self.servers.items()):
            if name in not_known:
                continue
            if name not in own and name != candidate.name and self._is_kept_from(name):
                yield PromotionStep(
                    name,
                    f"Do not point it to {candidate.name} before the repair; then run this again.",
                )
            elif name != candidate.name and self._is_pointed(name):
                yield from self._follow(server, candidate.name)

    def _follow(self, replica: ServerSnapshot, candidate: str) -> Iterator[PromotionStep]:
        """Yield how a server gets the candidate as its source, or keeps it."""
        is_moved = any(
            each.donor and each.answer.replica == replica.name for each in self.promotion.obstacles
        )
        if is_moved or not has_channel_from(replica, candidate, self.graph):
            yield self._point(replica, candidate, f"Point it to {candidate}.")
            return
        due = dict(self.promotion.due).get(replica.name, GtidSet())
        yield from keep_steps(replica, candidate, due=due, graph=self.graph)
        unread = self.promotion.unread
        yield from former_channel_steps(replica, candidate, unread=unread, graph=self.graph)

    def _gets_channel(self) -> bool:
        """Return whether a step gives the candidate a channel that it keeps until the end."""
        candidate = self.promotion.candidate
        fetches = any(each.receiver == candidate for each in self.promotion.missing)
        return fetches and not self._is_detached(candidate)

    def _is_detached(self, receiver: str) -> bool:
        """Return whether a step that lets a server fetch also ends its channel.

        The group changes its primary, and accepts a server, only while no channel runs there.
        """
        group = self.promotion.group
        is_primary = group is not None and self.promotion.candidate in group.primaries
        return group is not None and not (is_primary and receiver == self.promotion.candidate)

    def _is_kept_from(self, name: str) -> bool:
        return name in self.promotion.blocked or self.promotion.is_kept_out

    def _is_within_group(self) -> bool:
        """Return whether every server is of the candidate's group: no channel is changed."""
        group = self.promotion.group
        return group is not None and self.servers.keys() <= {*group.servers}

    def _is_pointed(self, name: str) -> bool:
        """Return whether a server gets a channel: of a group, one primary delivers to the rest."""
        group = group_of(self.promotion.groups, name)
        if group is None or not group.members:
            return group is None or group is not self.promotion.group
        return group is not self.promotion.group and name == next(iter(group.primaries), None)

    def _fetch(self, candidate: ServerSnapshot, missing: Missing) -> PromotionStep:
        what = missing.gtid_set.shortened()
        dropped = {each.server: each.dropped for each in self.promotion.shared_ids}
        if missing.donor is None and missing.gtid_set <= dropped.get(candidate.name, GtidSet()):
            text = f"It gets {what} only with another server_id: give it that first."
            return PromotionStep(candidate.name, text)
        if missing.apart:
            text = (
                f"It misses {what}, and {' and '.join(missing.holders)} cannot send it: the content"
                f" of {missing.apart.shortened()} is not the same on all of them, or on the server"
                " that would fetch (E4). Plan that repair (repair plan), and run this again."
            )
            return PromotionStep(candidate.name, text)
        if missing.late:
            text = (
                f"It misses {what}, and would execute {missing.late.shortened()} after later"
                f" transactions that it has. {HOLE_FIRST}"
            )
            return PromotionStep(candidate.name, text)
        if missing.donor is None:
            way = (
                f"Whether {' or '.join(missing.holders)} can send it {what} is not known. Run this"
                " again. If it stays so,"
                if missing.is_open
                else f"No server can send it {what}:"
            )
            return PromotionStep(
                candidate.name,
                f"{way} plan the repair (repair plan) before the failover, or these transactions"
                f" are lost.{self._reuse_of(missing)}",
            )
        receiver = self.servers[missing.receiver]
        is_detached = self._is_detached(receiver.name)
        end = ", and wait until it has them" + (", then detach it again" if is_detached else "")
        if any(each.answer.joins == receiver.name for each in self.promotion.obstacles):
            text = (
                f"It misses {what}, and each member has purged some of it. Let it replicate from"
                f" {missing.donor} first{end}."
            )
        else:
            who = "It misses" if receiver is candidate else "Its group misses"
            text = (
                f"{who} {what}.{self._reuse_of(missing)} If their content is needed, let it"
                f" replicate from {missing.donor} first{end}; if it is not, plan the repair (repair"
                " plan), and run this again."
            )
        text += "".join(f" But {each}." for each in extra_text(receiver.name, missing.extra))
        return self._receive(receiver, missing, text, detached=is_detached)

    def _reuse_of(self, missing: Missing) -> str:
        """Return what becomes of GTIDs under the name of a group that does not have them."""
        group = self.promotion.group
        uuid = uuid_of_group(group.name) if group is not None else None
        if uuid is None or not missing.gtid_set.from_uuid(uuid):
            return ""
        return " Without them, the group would use these GTIDs for other transactions (E4)."

    def _receive(
        self, receiver: ServerSnapshot, missing: Missing, text: str, *, detached: bool
    ) -> PromotionStep:
        """Return how a server gets what is missing by a channel."""
        assert missing.donor is not None, "a server can send it"
        step = self._point(receiver, missing.donor, text)
        if not step.statements:
            return step
        # In state ERROR, no receiver starts (13117).
        has_failed = receiver.group is not None and receiver.group.member_state == "ERROR"
        statements = (
            *(("STOP GROUP_REPLICATION;",) if has_failed else ()),
            *step.statements,
            *wait_for_gtids(receiver, missing.gtid_set),
            *(end_of_channel(receiver, missing.donor, self.graph) if detached else ()),
        )
        return PromotionStep(step.server, step.what + delays_of([receiver]), statements)

    def _clear(self, candidate: ServerSnapshot, obstacle: Obstacle) -> Iterator[PromotionStep]:
        answer = obstacle.answer
        if answer.group:
            yield from self._clear_in_group(obstacle)
            return
        server, gone = self.servers[answer.replica], answer.gtid_set
        if obstacle.is_open:
            yield PromotionStep(
                server.name,
                f"{candidate.name} has purged {gone.shortened()}, and whether another server can"
                " send it is not known: run this again.",
            )
        elif answer.refusal is FailedCheck.PURGED and obstacle.donor is None:
            yield PromotionStep(
                server.name,
                f"{candidate.name} has purged {gone.shortened()}, and no server can send it without"
                f" others that {candidate.name} would not have: rebuild this server from a backup"
                " or a clone."
                + (
                    f" It has {obstacle.beyond.shortened()}, which {candidate.name} does not have:"
                    " save their content first (repair plan)."
                    if obstacle.beyond
                    else ""
                ),
            )
        elif answer.refusal is FailedCheck.PURGED and obstacle.donor is not None:
            step = self._point(
                server,
                obstacle.donor,
                f"{candidate.name} has purged {gone.shortened()}: let this server replicate from"
                f" {obstacle.donor} until it has them.",
            )
            waits = (*step.statements, *wait_for_gtids(server, gone)) if step.statements else ()
            yield PromotionStep(step.server, step.what + delays_of([server]), waits)
        elif answer.refusal not in (None, FailedCheck.MORE_GTIDS):
            yield PromotionStep(
                server.name, f"{candidate.name} would refuse it: {answer.refusal.value}."
            )
        own = answer.dropped - answer.same_id  # what has its server_id, server_id_step answers
        if lost := own - answer.undecided:
            yield PromotionStep(
                server.name,
                f"It committed {lost.shortened()} itself and lost them, and its receiver drops"
                " them: plan the repair (repair plan).",
            )
        if own & answer.undecided:
            yield PromotionStep(
                server.name,
                f"It does not have {answer.undecided.shortened()} of its own UUID. If it lost them,"
                " its receiver drops them; if a session on another server committed them (H7),"
                " they arrive. Audit the servers, and plan the repair (repair plan).",
            )
        if answer.out_of_order:
            yield late_step(answer)
        if answer.unlike:
            yield PromotionStep(
                server.name,
                f"{answer.unlike.shortened()} has another content than on {candidate.name}: plan"
                " the repair (repair plan).",
            )

    def _clear_in_group(self, obstacle: Obstacle) -> Iterator[PromotionStep]:
        """Yield what keeps a server from joining, or what the group does not deliver to it."""
        answer = obstacle.answer
        if answer.joins == self.promotion.candidate:
            return  # group_steps, and what it fetches
        name, gone = answer.replica, answer.gtid_set.shortened()
        if answer.refusal is FailedCheck.NOT_IN_GROUP and name not in self.promotion.blocked:
            return  # its group fetches that first
        if answer.refusal is FailedCheck.PURGED and obstacle.donor is not None:
            server = self.servers[name]
            text = (
                f"Each member has purged {gone}: let this server replicate from {obstacle.donor}"
                " until it has them, and detach it again."
            )
            way = Missing(answer.gtid_set, obstacle.donor, receiver=name)
            yield self._receive(server, way, text, detached=True)
        elif answer.refusal is not None:
            yield PromotionStep(name, why_not_joining(answer))
        elif answer.out_of_order:
            yield late_step(answer)
        lost = answer.dropped | answer.unlike
        if lost:
            yield PromotionStep(
                name,
                f"The group does not deliver {lost.shortened()} to it: plan the repair (repair"
                " plan).",
            )

    def _point(self, replica: ServerSnapshot, source: str, what: str) -> PromotionStep:
        return point_step(
            replica,
            self.servers[source],
            what,
            address=self.addresses[source],
            graph=self.graph,
        )


def _have(names: tuple[str, ...]) -> str:
    return f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'}"
