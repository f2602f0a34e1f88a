"""Facts that an answer needs and that were not read of a server whose sets were read.

How it works
------------
A server of which nothing was read is reported as unread (answering_sources.py, `not_comparable`).
The account may also lack a privilege on one server only. Then its sets are there, and other facts
are not: no channel, no filter and no setting would mean what "none" means. This module is the one
place that decides what such a reading leaves of an answer; matrix.py applies it to every cell and
to every answer to a set, promotion.py to the verdict and the steps.

    channels    what the server has received and not applied, its sources, its filters
    settings    whether it accepts the connection, and its group
    log_end     of a source: whether its binary log is open, and which schemas are not logged
    group       whether it is a member: a group answers for members, and their queue may have more
    server_id   what a receiver drops (C2)
    relay_log   what it has received without a GTID (unlisted_events.py): no question shows it

Without its version, nothing else is read of a server (topology/adapters/mysql.py). A binary log of
the source that is gone leaves an answer open in the same way (`with_logs`).

1. "yes" needs all of these facts of both servers.
2. A refusal, and what is only on the replica, follow from the sets, so they hold. Two of them need
   the channels as well. `1236 purged` does not hold if the relay log of the replica may have what
   the source has purged. What is extra may still arrive on the source, from any server above it
   whose channels were not read.
3. No step of a promotion changes anything while a fact is unread. CHANGE REPLICATION SOURCE deletes
   the relay log, and the relay log that was not read may have the last copy of a transaction.

Example: a → m and a → c, and a has crashed. m has received a:7 and not applied it. If the channels
of m were not read, m and c have equal sets. The answers would be "yes", and the steps would point m
to c: a:7 would be lost.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from topology.facts.cluster_facts import ClusterFacts
from topology.facts.missing_logs import unsent_reason
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.facts.unlisted_events import unlisted_events
from topology.readings.snapshot import ReadServer, ServerSnapshot
from topology.rules.answering_sources import comparable

RELAY_LOG: Final = "relay_log"
# The facts in the order in which they are listed, with their words.
_DECISIVE: Final = {
    "channels": "the channels",
    "settings": "the settings",
    "log_end": "the end of the binary log",
    "group": "the group",
    "server_id": "the server_id",
}
_OF_SOURCES_ONLY: Final = frozenset({"log_end"})
# What a server has received, and receives.
_OF_ARRIVALS: Final = frozenset({"channels", "group", RELAY_LOG})


@dataclass(frozen=True, slots=True)
class PartialReading:
    """A server whose sets were read, and the facts that an answer needs and that were not read."""

    server: str
    facts: tuple[str, ...]  # at least one, in the order of the table
    detail: str  # the messages of the server

    @property
    def what(self) -> str:
        """Return the unread facts in words."""
        words = _DECISIVE | {RELAY_LOG: "the relay log"}
        return f"{' and '.join(words[each] for each in self.facts)} of {self.server}"


def partial_readings(facts: ClusterFacts) -> tuple[PartialReading, ...]:
    """Return the servers of which an answer needs more than was read, in order of name."""
    found = []
    for name, reading in sorted(comparable(facts).items()):
        both = (reading.first, reading.last)
        unread = tuple(fact for fact in _DECISIVE if any(_is_unread(each, fact) for each in both))
        unlisted = tuple(_unlisted(facts, reading.last))
        details = (*_messages(both, unread), *unlisted)
        unread += (RELAY_LOG,) if unlisted else ()
        if unread:
            found.append(PartialReading(name, unread, "; ".join(details) or ", ".join(unread)))
    return tuple(found)


def _unlisted(facts: ClusterFacts, reading: ReadServer) -> Iterator[str]:
    """Yield what may be nowhere but in a relay log. A source that was read has it as well."""
    read = {edge.channel.name for edge in facts.edges_into(reading.name)}
    for channel in reading.channels or ():
        if channel.name not in read and (places := unlisted_events(reading, channel)):
            yield f"received and not applied, and in no GTID set, from {places}"


def _messages(readings: Iterable[ReadServer], unread: tuple[str, ...]) -> tuple[str, ...]:
    """Return why facts were not read: each message of the server once, after its facts."""
    facts_of: dict[str, dict[str, None]] = {}
    for reading in readings:
        for each in reading.unread:
            if each.fact in unread:
                facts_of.setdefault(each.detail, {})[each.fact] = None
    return tuple(f"{', '.join(names)}: {detail}" for detail, names in facts_of.items())


def _is_unread(reading: ReadServer, fact: str) -> bool:
    """Return whether a fact is missing. A server without a log or a group has None, and no entry.

    Every other fact is there, or the reading has an entry for it; a stored one may have neither.
    """
    if any(each.fact == fact for each in reading.unread):
        return True
    if fact == "log_end":  # a log is closed only if the list of logs, too, is empty
        return reading.log_end is None and reading.binary_logs is None
    values = {
        "channels": reading.channels,
        "settings": reading.notable_settings,
        "server_id": reading.server_id,
    }
    return fact in values and values[fact] is None


def with_logs(answer: SourceAnswer, source: ServerSnapshot) -> SourceAnswer:
    """Return an answer; UNKNOWN if a log of the source is missing and may be needed."""
    if answer.outcome is not Outcome.SERVED or answer.group:
        return answer
    unread = unsent_reason(source, answer.fetched, replica=answer.replica)
    if not unread:
        return answer
    return SourceAnswer(answer.source, answer.replica, Outcome.UNKNOWN, unread=unread)


def settled(
    answer: SourceAnswer, partial: Collection[PartialReading], facts: ClusterFacts
) -> SourceAnswer:
    """Return an answer; UNKNOWN if a fact that decides it was not read."""
    if answer.outcome is Outcome.UNKNOWN:
        return answer
    unread = "; ".join(each.what for each in _deciding(answer, partial, facts))
    if not unread:
        return answer
    return SourceAnswer(
        answer.source,
        answer.replica,
        Outcome.UNKNOWN,
        unread=unread,
        group=answer.group,
        through=answer.through,
    )


def _deciding(
    answer: SourceAnswer, partial: Collection[PartialReading], facts: ClusterFacts
) -> Iterator[PartialReading]:
    """Yield the servers whose unread facts leave an answer open (rules 1 and 2)."""
    ends = {answer.source, answer.replica}
    above = {answer.source} if not answer.group else ends
    for name in tuple(above):
        above |= facts.graph.upstream_of(name, stopped_too=True)
    for each in partial:
        arrivals = _OF_ARRIVALS & {*each.facts}
        if answer.refusal is FailedCheck.PURGED:
            is_open = bool(arrivals) and each.server == answer.replica
        elif answer.outcome is Outcome.DIVERGED or answer.refusal is FailedCheck.NOT_IN_GROUP:
            is_open = bool(arrivals and answer.gtid_set) and each.server in above
        elif answer.refusal is not None:
            is_open = False
        else:
            needed = {*each.facts} - (_OF_SOURCES_ONLY if each.server != answer.source else set())
            is_open = bool(needed) and each.server in ends
        if is_open:
            yield each
