"""The order of repair before a failover, as steps with the statements of each server's version.

1. The address of a source is the one that an existing channel uses for it, otherwise the one from
   which it was audited: replicas may need another.
2. A channel keeps the account and password that it has. A server without a channel needs both.
3. While anything waits in a relay log, the steps are waits only.
4. Members of a replication group are not pointed (group_steps.py), except the primary of a group
   that is to follow a server outside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from binlog.quoting import quote_number, quote_string
from topology.facts.graph import build_graph
from topology.facts.source_answer import FailedCheck
from topology.handshake.group_answers import group_of
from topology.handshake.group_steps import for_channel, group_steps, why_not_joining
from topology.handshake.promotion import Missing, Obstacle, Promotion, PromotionStep
from topology.readings.dialect import Dialect, dialect_of
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

_NO_VERSION = "Its version was not read, so no statement is shown: audit the servers again."


def promotion_steps(promotion: Promotion, snapshot: ClusterSnapshot) -> tuple[PromotionStep, ...]:
    """Return the steps in order; nothing but to audit again if the candidate was not read."""
    servers = {server.name: server for server in snapshot.last}
    if promotion.candidate in promotion.unread:
        text = "It was not read, or is not evaluated: audit the servers first."
        return (PromotionStep(promotion.candidate, text),)
    addresses = {server.name: (server.host, server.port) for server in snapshot.last}
    for edge in build_graph(snapshot).edges:
        addresses[edge.source] = (edge.channel.source_host, edge.channel.source_port)
    return tuple(_Steps(promotion, servers, addresses).in_order())


@dataclass(frozen=True, slots=True)
class _Steps:
    promotion: Promotion
    servers: dict[str, ServerSnapshot]
    addresses: dict[str, tuple[str, int]]

    def in_order(self) -> Iterator[PromotionStep]:
        candidate = self.servers[self.promotion.candidate]
        if not self._is_within_group():
            text = (
                "Stop all writes of clients, and run this again: the sets must not change any more."
            )
            yield PromotionStep("", text)
        for doubt in self.promotion.doubts:
            yield PromotionStep(candidate.name, f"{doubt[0].upper()}{doubt[1:]}.")
        for name in self.promotion.unread:
            if name not in self.servers:
                yield PromotionStep(
                    name,
                    "This source was not read. What only it has is lost, or hidden once it returns:"
                    " add it to the servers, or accept that.",
                )
        if self.promotion.waits:
            yield from self._waits(candidate)
            return
        for missing in (each for each in self.promotion.missing if not each.is_recovered):
            yield self._fetch(candidate, missing)
        for obstacle in self.promotion.obstacles:
            yield from self._clear(candidate, obstacle)
        yield from group_steps(self.promotion, self.servers)
        open_, group = dict(self.promotion.open), self.promotion.group
        own = group.servers if group is not None else ()
        for name, server in sorted(self.servers.items()):
            if name in open_:
                yield PromotionStep(name, f"Not known: {open_[name]}. Run this again.")
            elif name in self.promotion.unread:
                yield PromotionStep(
                    name,
                    "It was not read. What only it has is lost, or hidden once it returns: read it,"
                    " or accept that.",
                )
            elif name not in own and name != candidate.name and self._is_kept_from(name):
                yield PromotionStep(
                    name,
                    f"Do not point it to {candidate.name} before the repair; then run this again.",
                )
            elif name != candidate.name and self._is_pointed(name):
                yield self._point(server, candidate.name, f"Point it to {candidate.name}.")
        if candidate.channels:
            yield _detach(candidate)

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

    def _waits(self, candidate: ServerSnapshot) -> Iterator[PromotionStep]:
        """Yield the waits: CHANGE REPLICATION SOURCE deletes what is not applied."""
        if self.promotion.arrives:
            yield PromotionStep(
                candidate.name,
                "Wait until it has applied what is on its way.",
                _wait(candidate, str(self.promotion.arrives)),
            )
        for name, left in self.promotion.unapplied:
            yield PromotionStep(
                name,
                f"It has received {left.shortened()} and not applied it. A change of its source"
                " would delete its relay log, which may be the last copy. Wait until it has applied"
                " it; if an audit reports A1, A2, A3, A7 or H8, answer that first.",
                _wait(self.servers[name], str(left)),
            )
        yield PromotionStep("", "Run this again: the next steps follow from what was applied.")

    def _fetch(self, candidate: ServerSnapshot, missing: Missing) -> PromotionStep:
        what = missing.gtid_set.shortened()
        if missing.donor is None:
            return PromotionStep(
                candidate.name,
                f"No server can send it {what}: plan the repair (repair plan) before the failover,"
                " or these transactions are lost.",
            )
        step = self._point(
            candidate,
            missing.donor,
            f"It misses {what}. If their content is needed, let it replicate from {missing.donor}"
            " first, and wait until it has them; if it is not, plan the repair (repair plan).",
        )
        waits = _wait(candidate, str(missing.gtid_set)) if step.statements else ()
        return PromotionStep(step.server, step.what, (*step.statements, *waits))

    def _clear(self, candidate: ServerSnapshot, obstacle: Obstacle) -> Iterator[PromotionStep]:
        answer = obstacle.answer
        if answer.group:
            yield from self._clear_in_group(obstacle)
            return
        server, gone = self.servers[answer.replica], answer.gtid_set
        if answer.refusal is FailedCheck.PURGED and obstacle.donor is None:
            yield PromotionStep(
                server.name,
                f"{candidate.name} has purged {gone.shortened()}, and no server can send it:"
                " rebuild this server from a backup or a clone.",
            )
        elif answer.refusal is FailedCheck.PURGED and obstacle.donor is not None:
            step = self._point(
                server,
                obstacle.donor,
                f"{candidate.name} has purged {gone.shortened()}: let this server replicate from"
                f" {obstacle.donor} until it has them.",
            )
            waits = (*step.statements, *_wait(server, str(gone))) if step.statements else ()
            yield PromotionStep(step.server, step.what, waits)
        elif answer.refusal not in (None, FailedCheck.MORE_GTIDS):
            yield PromotionStep(
                server.name, f"{candidate.name} would refuse it: {answer.refusal.value}."
            )
        if answer.dropped:
            yield PromotionStep(
                server.name,
                f"It committed {answer.dropped.shortened()} itself and lost them, and its receiver"
                " drops them: plan the repair (repair plan).",
            )
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
            return  # group_steps
        name, gone = answer.replica, answer.gtid_set.shortened()
        if answer.refusal is FailedCheck.PURGED and obstacle.donor is not None:
            step = self._point(
                self.servers[name],
                obstacle.donor,
                f"Each member has purged {gone}: let this server replicate from {obstacle.donor}"
                " until it has them, and detach it again.",
            )
            waits = (*step.statements, *_wait(self.servers[name], str(answer.gtid_set)))
            yield PromotionStep(step.server, step.what, waits)
        elif answer.refusal is not None:
            yield PromotionStep(name, why_not_joining(answer))
        lost = answer.dropped | answer.unlike
        if lost:
            yield PromotionStep(
                name,
                f"The group does not deliver {lost.shortened()} to it: plan the repair (repair"
                " plan).",
            )

    def _point(self, replica: ServerSnapshot, source: str, what: str) -> PromotionStep:
        channels = replica.channels or ()
        if len(channels) > 1:
            return PromotionStep(
                replica.name, f"{what} It has {len(channels)} channels: choose the one to change."
            )
        words = _dialect(replica)
        if words is None:
            return PromotionStep(replica.name, f"{what} {_NO_VERSION}")
        account, prefix = "", words.option_prefix
        if not channels:
            what += " It has no channel: put in the account for replication and its password."
            account = f" {prefix}USER = '(account)', {prefix}PASSWORD = '(password)',"
        host, port = self.addresses[source]
        channel = for_channel(replica, channels[0].name if channels else "")
        change = (
            f"{words.change_source} {prefix}HOST = {quote_string(host)},"
            f" {prefix}PORT = {quote_number(port)},{account} {prefix}AUTO_POSITION = 1{channel};"
        )
        statements = (f"{words.stop_replica}{channel};", change, f"{words.start_replica}{channel};")
        return PromotionStep(replica.name, what, statements)


def _detach(candidate: ServerSnapshot) -> PromotionStep:
    """Return how the candidate stops being a replica, and accepts writes."""
    what = (
        "Detach it from its former source, which may return with transactions of its own, and let"
        " clients write. In a pair that replicates in both directions, keep the channel."
    )
    words, settings = _dialect(candidate), dict(candidate.settings or ())
    if words is None:
        return PromotionStep(candidate.name, f"{what} {_NO_VERSION}")
    statements = []
    for each in candidate.channels or ():
        channel = for_channel(candidate, each.name)
        statements += [f"{words.stop_replica}{channel};", f"{words.reset_replica} ALL{channel};"]
    statements += [
        f"SET GLOBAL {name} = OFF;"
        for name in ("super_read_only", "read_only")
        if settings.get(name) in ("ON", "1")
    ]
    return PromotionStep(candidate.name, what, tuple(statements))


def _wait(server: ServerSnapshot, gtid_text: str) -> tuple[str, ...]:
    """Return the statement that waits for GTIDs; none if its words are unknown."""
    words = _dialect(server)
    if words is None:
        return ()
    return (f"SELECT {words.wait_for_gtids}({quote_string(gtid_text)});",)


def _dialect(server: ServerSnapshot) -> Dialect | None:
    return None if server.version is None else dialect_of(server.version)
