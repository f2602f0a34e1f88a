"""What an audit says of consumers (P4), compared with what each server sends to their sets.

The truth is `consumers.sent`: a server sends all that a set is missing, or refuses it, or accepts it
and cannot send all. Beside that, a set may have what a server does not have, which no server
reports: it arrives there, or it never does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from tests.simulation.consumers import Sent, sent
from tests.simulation.membership import is_member
from tests.simulation.oracles import Truth, Violation
from tests.simulation.reading import gtids
from tests.simulation.state import Consumer, Gtid, Server
from topology.catalogue.findings import ClusterAudit, Finding, Grade
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.offered_sets import answers_to_set
from topology.readings.consumers import ConsumerReading

ORACLE = "consumer"
_REFUSALS = {
    FailedCheck.NO_BINARY_LOG: "no log",
    FailedCheck.SOURCE_MODE: "gtid_mode",
    FailedCheck.MORE_GTIDS: "more",
    FailedCheck.PURGED: "purged",
}
_REFUSED = frozenset(_REFUSALS.values())
_AFTER_FAILOVER = "has to read from"


@dataclass(frozen=True, slots=True)
class _Case:
    """One consumer, what was read of it, and the true answers of the servers."""

    truth: Truth
    consumer: Consumer
    reading: ConsumerReading

    @property
    def name(self) -> str:
        return self.consumer.name

    @property
    def decisive(self) -> tuple[str, ...]:
        """Return the servers that decide whether it is served."""
        own = self.reading.server
        return (own,) if own is not None else self.truth.reading.visible

    def answer(self, server: str, offered: set[Gtid]) -> Sent:
        """Return what a server answers, as far as the audit can know.

        What the consumer has read since, a server that was looked at before need not have.
        """
        now, has = self.truth.world[server], self.had_last(server)
        return sent(now, offered, at_first=self.at_first(offered), has=has)

    def had_last(self, server: str) -> set[Gtid] | None:
        """Return what a server had when it was looked at last; None if that was not read.

        After a RESET it may use GTIDs of the set again while it is read.
        """
        now = self.truth.world[server]
        for each in self.truth.snapshot.last:
            if each.name == server and each.gtid_executed is not None:
                read = each.gtid_executed | (each.gtid_owned or GtidSet())
                return {gtid for gtid in now.executed | now.owned if gtids([gtid]) <= read}
        return None

    def to_stored(self, server: str) -> Sent:
        return self.answer(server, self.consumer.stored)

    def at_first(self, offered: set[Gtid]) -> set[Gtid]:
        assert self.reading.first.gtid_set is not None, "the simulator reads every set"
        return {each for each in offered if gtids([each]) <= self.reading.first.gtid_set}

    def never_has(self, server: str, offered: set[Gtid]) -> set[Gtid]:
        """Return what a set had at first, and a server never gets by itself."""
        now = self.truth.world[server]
        beyond = offered - now.executed - now.owned - self.truth.rested[server].executed
        return self.at_first(beyond | (offered & self.used_again(server)))

    def used_again(self, server: str) -> set[Gtid]:
        """Return what a set had at first, and a server committed itself after its last reading.

        These are other transactions under the same GTIDs, as of a group whose name is their UUID.
        """
        had = self.had_last(server)
        if had is None:
            return set()
        logs = self.truth.world[server].files
        made = {each.gtid for log in logs for each in log.entries if each.origin == server}
        return self.at_first(made - had)

    def may_come_from_unseen(self, server: str) -> bool:
        """Return whether a server that was not read, or not in full, may deliver to this one.

        What members of a group deliver to each other is not evaluated. Neither is a server that was
        restarted between its readings.
        """
        if self.truth.reading.between:
            return True
        read = {*self.truth.reading.visible} - {name for name, _ in self.truth.reading.unread}
        above, group = self.truth.world.upstream(server), self.truth.world.group
        return bool(above - read or (group is not None and above & {*group.names}))

    def may_come(self, server: str, extra: GtidSet) -> bool:
        """Return whether something that no finding reports may deliver what a set has in addition.

        A relay log lists what it has received, also what was applied before a RESET. One of 5.6 may
        hold what it does not list.
        """
        above = [self.truth.world[name] for name in {server, *self.truth.world.upstream(server)}]
        waits = {gtid for each in above for path in each.channels for gtid in path.retrieved}
        waits |= {gtid for each in above for gtid in _received_unseen(each)}
        return self.may_come_from_unseen(server) or bool(gtids(waits) & extra)

    def purges_meanwhile(self, server: str) -> bool:
        """Return whether a server purges while it is read: what it applies without logging it."""
        return self.truth.reading.moving and not self.truth.world[server].log_replica_updates

    def is_kept_back(self, server: str) -> bool:
        """Return whether what is on its way waits for a young lock, or meets what no reading shows."""
        truth = self.truth
        return truth.waits_within_limits(server) or truth.fails_later(server)

    def is_served(self, server: str, offered: set[Gtid]) -> bool:
        """Return whether a server sends all that a set is missing, and will have all that it has."""
        is_accepted = self.answer(server, offered).answer not in _REFUSED
        return is_accepted and not self.never_has(server, offered)


def consumer_conclusions(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """11. What an audit says of a consumer is what the true logs of the servers can send."""
    if any(each.code in ("C1", "C2") for each in audit.findings):
        # As they say: of one server_uuid no sets can be compared; with one server_id a server drops
        # what it would receive.
        return
    for reading in truth.snapshot.consumers:
        case = _Case(truth, truth.world.consumers[reading.name], reading)
        found = [each for each in audit.findings if (each.code, each.replica) == ("P4", case.name)]
        now = [each for each in found if _AFTER_FAILOVER not in each.explanation]
        later = [each for each in found if each not in now]
        for each in now:
            yield from _refused_now(case, each, audit)
        for each in later:
            yield from _refused_later(case, each)
        open_facts = {each.fact for each in audit.unknown if each.server == case.name}
        if not now:
            yield from _missing_now(case, audit, open_facts)
        yield from _missing_later(case, found, open_facts)
        yield from _answers(case, audit)


def _violation(text: str) -> Violation:
    return Violation(ORACLE, "P4", text)


def _new_between_readings(truth: Truth) -> GtidSet:
    before = {each.name: each.gtid_executed or GtidSet() for each in truth.snapshot.first}
    return GtidSet.union_of(
        ((each.gtid_executed or GtidSet()) | (each.gtid_owned or GtidSet()))
        - before.get(each.name, GtidSet())
        for each in truth.snapshot.last
    )


def _refused_now(case: _Case, one: Finding, audit: ClusterAudit) -> Iterator[Violation]:
    """Yield what is served, and was said not to be."""
    consumer = case.consumer
    # A program may have read on since it stored its set: what it has read is what it is served by.
    offered = consumer.read if one.grade is Grade.PROVED else consumer.stored
    for name in case.decisive:
        is_open = one.grade is Grade.LIKELY and case.may_come(name, one.gtid_set)
        if case.is_served(name, offered) and not is_open:
            yield _violation(f"{one.grade.value}: {name} serves {case.name}")
    if len(case.decisive) == 1 and not case.purges_meanwhile(case.decisive[0]):
        if one.grade is Grade.LIKELY and case.may_come(case.decisive[0], one.gtid_set):
            return
        answer = case.to_stored(case.decisive[0])
        extra = case.never_has(case.decisive[0], consumer.stored)
        true = answer.gtids if answer.answer in _REFUSED else extra
        # What was committed between the readings may still arrive, for all that they show. So may
        # what an applier only seems to have passed while its channel has other work (H8).
        left_out = gtids(true) - one.gtid_set
        is_part = bool(one.gtid_set) and one.gtid_set <= gtids(true)
        above = {case.decisive[0], *case.truth.world.upstream(case.decisive[0])}
        # And what is on its way to another server (T2, T3), although it is refused further down.
        seems_passed = GtidSet.union_of(
            each.gtid_set
            for each in audit.findings
            if each.code in ("T1", "T2", "T3")
            or ((each.code, each.grade) == ("H8", Grade.LIKELY) and each.replica in above)
        )
        if left_out and is_part and left_out <= _new_between_readings(case.truth) | seems_passed:
            return
        if one.gtid_set != gtids(true):
            yield _violation(f"{case.name}: {one.gtid_set}, in truth {gtids(true)}")


def _refused_later(case: _Case, one: Finding) -> Iterator[Violation]:
    """Yield what a server serves after a failover, and was said not to."""
    assert one.source is not None, "a failover leads to a server"
    offered = case.consumer.read if one.grade is Grade.PROVED else case.consumer.stored
    answer = case.answer(one.source, offered)
    if answer.answer != "purged":
        yield _violation(f"after a failover {one.source} answers {case.name}: {answer.answer}")
    elif case.purges_meanwhile(one.source):
        return
    elif one.gtid_set != gtids(case.to_stored(one.source).gtids):
        yield _violation(f"{one.source} has not purged {one.gtid_set} alone")


def _missing_now(case: _Case, audit: ClusterAudit, open_facts: set[str]) -> Iterator[Violation]:
    """Yield a consumer that no deciding server serves, with no word about it."""
    stored = case.consumer.stored
    if open_facts or not case.decisive:
        return
    if any(case.is_served(name, stored) or case.purges_meanwhile(name) for name in case.decisive):
        return
    if any(case.is_kept_back(name) for name in case.decisive):
        return
    for name in case.decisive:
        doubted = _likely_to_arrive(case, audit, name)
        answer = case.to_stored(name)
        extra = gtids(case.never_has(name, stored))
        if (
            answer.answer not in _REFUSED
            and extra
            and extra <= doubted | case.truth.reported_next(name)
        ):
            return
    answers = ", ".join(f"{name}: {case.to_stored(name).answer}" for name in case.decisive)
    yield _violation(f"nothing is said of {case.name}, and no server serves it ({answers})")


def _likely_to_arrive(case: _Case, audit: ClusterAudit, server: str) -> GtidSet:
    """Return what counts as arriving on a server: its finding says that it is not certain.

    So does a likely H8 of a server above: what an applier seems to have passed may still wait.
    """
    above = {server, *case.truth.world.upstream(server)}
    return GtidSet.union_of(
        one.gtid_set
        for one in audit.findings
        if one.grade is Grade.LIKELY
        and (one.code in ("T1", "T2", "T3") or (one.code == "H8" and one.replica in above))
    )


def _missing_later(case: _Case, found: list[Finding], open_facts: set[str]) -> Iterator[Violation]:
    """Yield a server that has purged what a consumer needs, which no finding says."""
    said = {each.source for each in found} | {
        name
        for name in case.truth.reading.visible
        for each in found
        if f"{name} has purged" in each.explanation
    }
    for name in case.truth.reading.visible:
        server = case.truth.world[name]
        if name in said or name == case.reading.server or is_member(case.truth.world, name):
            continue
        if not (server.log_bin and server.log_replica_updates):
            continue
        if case.to_stored(name).answer == "purged" and not any(name in each for each in open_facts):
            others = ", ".join(each.explanation for each in found)
            yield _violation(f"{name} has purged what {case.name} needs, not said ({others})")


def _answers(case: _Case, audit: ClusterAudit) -> Iterator[Violation]:
    """Yield each answer of `handshake --consumer` that is not the true one."""
    sets = case.reading.sets
    if sets is None:
        return
    truth = case.truth
    first, last = sets
    matrix = answers_to_set(truth.snapshot, audit, truth.policy, first, later=last)
    for each in matrix.answers:
        wrong = _wrong(case, each)
        if wrong:
            text = f"{each.source} to {case.name}: {each.outcome.value}, {wrong}"
            yield Violation("handshake", each.outcome.value, text)


def _received_unseen(server: Server) -> set[Gtid]:
    """Return what a server applies or will apply, and does not list as retrieved (5.6)."""
    found: set[Gtid] = set()
    for path in server.channels:
        waiting = {entry.transaction.gtid for entry in path.relay[path.relay_at :]}
        at_work = {work.transaction.gtid for work in path.working}
        found |= (waiting | at_work) - path.retrieved
    return found


def _wrong(case: _Case, answer: SourceAnswer) -> str:
    true = case.to_stored(answer.source)
    said = _REFUSALS.get(answer.refusal, "") if answer.refusal is not None else ""
    if answer.outcome is Outcome.UNKNOWN:
        return ""
    if case.purges_meanwhile(answer.source):
        return ""
    if said != (true.answer if true.answer in _REFUSED else ""):
        return f"{said or 'accepted'}, in truth {true.answer}"
    if said:
        return "" if answer.gtid_set == gtids(true.gtids) else f"{answer.gtid_set} is not the set"
    never = case.never_has(answer.source, case.consumer.stored)
    if answer.outcome is Outcome.SERVED:
        if never and not case.is_kept_back(answer.source):
            return f"in truth it never has {gtids(never)}"
        if true.answer == "lost" and not answer.doubts:
            return "and its logs do not have all of it"
        return ""
    if answer.doubts and case.may_come(answer.source, answer.gtid_set):
        return ""
    # Of what its relay log has, the answer says so: only an applier shows whether it is passed.
    known = answer.received | gtids(_received_unseen(case.truth.world[answer.source]))
    came = (answer.gtid_set - known) & gtids(case.truth.rested[answer.source].executed)
    came -= gtids(case.used_again(answer.source))
    return f"in truth {came} arrives" if came else ""
