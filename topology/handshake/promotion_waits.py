"""The waits of a promotion: for what arrives, for what was received and not applied, and how long.

1. CHANGE REPLICATION SOURCE deletes the relay log, so nothing is pointed before it is applied.
2. The queue of a group is no relay log of a source: a lock keeps it, and no statement deletes it.
3. A channel with SOURCE_DELAY makes each wait behind it as long as the delay. With both threads
   stopped, CHANGE REPLICATION SOURCE TO SOURCE_DELAY deletes the relay log like any other change
   (seen on 5.6.24 and 9.7.4). While the receiver runs, 9.7.4 keeps it, and 5.6.24 refuses the
   change (1198).
4. Behind a stopped applier no wait ends. It is not started here: an operator may have stopped it,
   and what waits may not fit (A7).
"""

from collections.abc import Iterable, Iterator, Mapping

from binlog.quoting import quote_string
from gtid import GtidSet
from topology.facts.graph import Graph
from topology.handshake.group_steps import for_channel
from topology.handshake.partial_readings import RELAY_LOG, PartialReading
from topology.handshake.promotion import Promotion, PromotionStep
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import ServerSnapshot, ThreadState


def wait_steps(
    promotion: Promotion, servers: Mapping[str, ServerSnapshot], graph: Graph
) -> Iterator[PromotionStep]:
    """Yield the waits, and nothing after them: the next steps follow from what was applied."""
    if promotion.arrives:
        candidate = servers[promotion.candidate]
        on_the_way = sorted({candidate.name, *graph.upstream_of(candidate.name)})
        yield PromotionStep(
            candidate.name,
            "Wait until it has applied what is on its way."
            + delays_of(servers[name] for name in on_the_way),
            wait_for_gtids(candidate, promotion.arrives),
        )
    for name, left in promotion.unapplied:
        server = servers[name]
        what = _RECEIVED if left <= server.gtid_retrieved else _QUEUED
        text = what.format(gtids=left.shortened())
        if stopped := _stopped_appliers(server, left):
            yield PromotionStep(name, text + stopped)
        else:
            yield PromotionStep(name, text + delays_of([server]), wait_for_gtids(server, left))
    yield PromotionStep("", "Run this again: the next steps follow from what was applied.")


def _stopped_appliers(server: ServerSnapshot, gtids: GtidSet) -> str:
    """Return which stopped appliers these transactions wait for, as text; "" if none."""
    stopped = [
        channel
        for channel in server.channels or ()
        if channel.gtid_retrieved & gtids and channel.applier is ThreadState.STOPPED
    ]
    if not stopped or server.version is None:
        return ""
    words = dialect_of(server.version)
    starts = (
        f"{words.start_replica} SQL_THREAD{for_channel(server, each.name)}" for each in stopped
    )
    return (
        " Its applier is stopped, so a wait would not end. If no error stopped it, find out who"
        f" stopped it, and why; then start it on {server.name}: {'; '.join(starts)}."
    )


def unread_step(reading: PartialReading) -> PromotionStep:
    """Return what to do about facts that were not read: no statement, because none is safe."""
    if reading.facts == (RELAY_LOG,):
        return PromotionStep(reading.server, _UNLISTED.format(detail=reading.detail))
    why = ""
    if "channels" in reading.facts:
        why = (
            " It may have received transactions that it has not applied. A change of its source"
            " would delete its relay log, which may be the last copy."
        )
    return PromotionStep(
        reading.server,
        f"Not known: {reading.what}.{why} Change no channel and no group before they are read"
        " (gtid-audit explain U1).",
    )


_UNLISTED = (
    "Its relay log may be the last copy of transactions without a GTID ({detail}), and a change of"
    " its source, RESET REPLICA ALL or a clone deletes it. Its applier is stopped, or waits for"
    " SOURCE_DELAY: let it apply what there is, and run this again. If it has read all, and the"
    " place stays, the rest is a part of a transaction, or was dropped."
)
_RECEIVED = (
    "It has received {gtids} and not applied it. A change of its source would delete its relay log,"
    " which may be the last copy. Wait until it has applied it; if an audit reports A1, A2, A3, A7"
    " or H8, answer that first."
)
_QUEUED = (
    "It has received {gtids} from its group and does not apply it. Nothing is lost, but a change of"
    " the primary does not end before that. End what its queue waits for (A5, A8; gtid-audit locks"
    " shows the holder of a lock), and wait until it has applied it."
)


def delays_of(servers: Iterable[ServerSnapshot]) -> str:
    """Return which channels of these servers delay what they apply, as a sentence; "" if none."""
    found = [
        f"{_delay_option(server)} delays {server.name} by {channel.delay_seconds:,} s"
        for server in servers
        for channel in server.channels or ()
        if channel.delay_seconds
    ]
    return f" {'; '.join(found)}: the wait takes as long. {_END_OF_DELAY}" if found else ""


_END_OF_DELAY = (
    "Set it to 0 only while the receiver runs and the applier is stopped (not before 5.7). With"
    " both threads stopped, the change deletes the relay log."
)


def _delay_option(server: ServerSnapshot) -> str:
    prefix = "SOURCE_" if server.version is None else dialect_of(server.version).option_prefix
    return f"{prefix}DELAY"


def wait_for_gtids(server: ServerSnapshot, gtids: GtidSet) -> tuple[str, ...]:
    """Return the statement that waits for GTIDs; none if the version was not read."""
    if server.version is None:
        return ()
    words = dialect_of(server.version)
    return (f"SELECT {words.wait_for_gtids}({quote_string(str(gtids))});",)
