"""A4: receivers that run and receive nothing.

topology/facts/receivers.py and former_logs.py have the proof. A healthy case looks the same: a
receiver that is about to fetch what was just committed. Only two facts distinguish them: a position
that the source's log does not have, or the age of what is due.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.former_logs import waits_beyond_end
from topology.facts.graph import is_at_address
from topology.facts.receivers import Waiting, overdue
from topology.facts.unseen import address_of
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import Rules, evidence, on_edge

_NAME: Final = "receiver receives nothing"
_RESTART: Final = "(STOP REPLICA IO_THREAD; START REPLICA IO_THREAD)."


def receiver_hangs(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A4: the receiver runs, and receives nothing.

    Proved if its position is after the end of its source's log, because that log is another one. At
    another address than that of its source, it may be the log of a copy.
    """
    for edge in facts.edges:
        channel = edge.channel
        replica, source = (facts.fully_read[name].last for name in (edge.replica, edge.source))
        before = facts.fully_read[edge.replica].first
        is_former = waits_beyond_end(edge.edge, before=before, source=source) and (
            channel.auto_position or not (source.gtid_executed - replica.gtid_executed)
        )
        waiting = overdue(facts, edge)
        if not (is_former or waiting):
            continue
        shown = (
            (
                evidence("due", waiting.gtid, source),
                evidence("seconds since it was logged", waiting.seconds, source),
            )
            if waiting is not None
            else ()
        )
        hangs = on_edge(
            facts,
            edge,
            "A4",
            edge.expected,
            grade=Grade.PROVED if is_former and is_at_address(channel, source) else Grade.LIKELY,
            severity=None if is_former else Severity.WARNING,
            proof=(
                evidence("receiver has read to", channel.received_to, replica),
                evidence("source's log ends at", source.log_end, source),
                evidence("moved between the readings", "no", replica),
                *shown,
            ),
            explanation=_hanging_text(edge, source, waiting, is_former=is_former),
        )
        yield replace(hangs, name=_NAME)  # it did not stop, unlike the catalogue's A4


def _copy_text(edge: EdgeFacts, source: ServerSnapshot) -> str:
    if is_at_address(edge.channel, source):
        return ""
    return (
        "another server with the same server_uuid and server_id is at"
        f" {address_of(edge.channel)}, where {source.name} was not read"
    )


def _hanging_text(
    edge: EdgeFacts, source: ServerSnapshot, waiting: Waiting | None, *, is_former: bool
) -> str:
    name, channel = edge.replica, edge.channel
    text, copy = (
        f"The receiver of {name} runs but no longer receives anything",
        _copy_text(edge, source),
    )
    if is_former:
        text += (
            f": it waits at {channel.received_to}, but the log of {source.name} ends at"
            f" {source.log_end}. The binary logs of {source.name} were reset (RESET BINARY LOGS AND"
            f" GTIDS) while it was connected{', or ' + copy if copy else ''}."
        )
    else:
        assert waiting is not None, "a receiver hangs for one reason or the other"
        text += (
            f": {source.name} logged {waiting.gtid} {waiting.seconds:,} s ago, and the receiver did"
            " not move between the readings. Possible causes: it has only just connected, and"
            f" {source.name} still searches its binary logs for what to send (then it moves by the"
            " next audit); a dead network connection that replica_net_timeout has not ended yet;"
            f" RESET BINARY LOGS AND GTIDS on {source.name} while it was connected; a dump thread"
            f" of {source.name} that hangs; a large event on a slow connection; a full disk for the"
            f" relay log (the error log of {name} reports it, and STOP REPLICA waits until there is"
            " space)"
        )
        if not channel.auto_position:
            text += "; a file position that was set after it: then it never arrives"
        text += f"{'; ' + copy if copy else ''}."
    if is_former and not channel.auto_position:
        return (
            f"{text} By file position its next connection is refused as well (error 1236, position"
            " > file size): stop the channel, and switch it to auto-position (C3)."
        )
    if is_former:
        return f"{text} Stop and start the receiver {_RESTART}"
    return f"{text} If it is the same in a minute, stop and start the receiver {_RESTART}"


RULES: Rules = (
    receiver_hangs,  # A4
)
