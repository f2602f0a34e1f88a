"""P1, P2, H3, H4: what a replica is missing, and its source has purged.

A source refuses a receiver with auto-position (1236): P1. A receiver with a file position requests
a file. The source refuses it only if that file is purged as well (P1), and does not send the
transactions before the position. If it is not refused, nothing shows the hole while replication
runs. H3 has what another audited server can send of it, H4 the rest.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.donors import DOUBTFUL_DONORS, Donor, donors_of
from topology.facts.edge_facts import EdgeFacts
from topology.facts.unlogged import received_unlogged
from topology.facts.unseen import unseen_sources
from topology.readings.snapshot import LogPosition, ServerSnapshot, ThreadState
from topology.rules.build import Rules, evidence, many, on_edge
from topology.rules.hidden_received import may_be_received, received_text

_COPY: Final = " Compare the rows: a copy that was loaded without its gtid_purged has them."
_REFUSED: Final = "its next connection is refused with error 1236."
_MAYBE_REFUSED: Final = (
    "its next connection is refused with error 1236, if the file of its position is also purged."
    f" Otherwise they do not arrive.{_COPY}"
)
_MAY_BE_THERE: Final = (
    " If {replica} lost them only from gtid_executed (see H8), their rows are there: compare the"
    " rows before you rebuild it."
)
_NOT_REFUSED: Final = (
    "this channel does not deliver them. It runs by file position, so its next connection is"
    " accepted."
    f" With auto-position it would be refused with error 1236.{_COPY}"
)
_OTHER_SOURCE: Final = " Another source of {name}, which was not read, may still have them."
_NOT_LOGGED: Final = "in no binary log"
_UNLOGGED: Final = (
    " log_replica_updates is OFF on {name}: it does not log what it receives, and counts that as"
    " purged ({what} of these). Set it to ON and restart {name} first. Otherwise the next"
    " transaction that {name} receives will also be missing."
)


def purged_on_source(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield P1, H3 and H4: the source can no longer send what is missing on the replica."""
    for edge in facts.edges:
        if not edge.purged:
            continue
        has_its_file = _has_its_file(facts.first[edge.source], edge)
        if edge.channel.auto_position or has_its_file is False:
            is_open = edge.purged.gtid_count == 1 and may_be_received(facts, edge)
            received = ", and nothing is refused"
            yield _missing(
                facts,
                edge,
                "P1",
                edge.purged,
                _REFUSED + (received_text(edge.replica, edge.purged, received) if is_open else ""),
                grade=Grade.LIKELY if is_open else Grade.PROVED,
            )
        elif has_its_file is None:
            yield _missing(facts, edge, "P1", edge.purged, _MAYBE_REFUSED, grade=Grade.LIKELY)
        else:
            donors = _donors(facts, edge, edge.purged)
            held = GtidSet.union_of(each.held for each in donors)
            certain = GtidSet.union_of(each.held for each in donors if not each.doubt)
            if held:
                grade = Grade.PROVED if held <= certain else Grade.LIKELY
                yield _missing(facts, edge, "H3", held, _NOT_REFUSED, grade=grade)
            if rest := edge.purged - held:
                others = unseen_sources(edge.replica, graph=facts.graph, servers=facts.last)
                is_whole = not others and facts.fully_read.keys() == facts.last.keys()
                grade = Grade.PROVED if is_whole else Grade.LIKELY
                yield _missing(facts, edge, "H4", rest, _NOT_REFUSED, grade=grade)


def _missing(
    facts: ClusterFacts,
    edge: EdgeFacts,
    code: str,
    gtids: GtidSet,
    connection: str,
    *,
    grade: Grade = Grade.PROVED,
) -> Finding:
    """Return a finding about missing transactions; `connection` says how they are noticed."""
    source, replica = facts.first[edge.source], facts.last[edge.replica]
    others = unseen_sources(edge.replica, graph=facts.graph, servers=facts.last)
    parts = _donors(facts, edge, gtids)
    donors = [each for each in parts if gtids <= each.held]
    unlogged = received_unlogged(source, gtids)
    ways = ("donor_refetch", "reclone") if donors else ("reclone",)
    proof = [
        evidence("missing and purged on the source", gtids, source),
        evidence("neither executed nor retrieved", gtids, replica),
        evidence("receiver", edge.channel.receiver.value, replica),
        evidence("receiver error", edge.channel.receiver_error or "(none)", replica),
    ]
    if unlogged:
        proof.insert(0, evidence("log_replica_updates", "OFF", source))
    if code != "P1":
        place = edge.channel.received_to
        proof.append(evidence("accepted, by the file position", place, replica))
    certain = ", ".join(each.name for each in donors if not each.doubt)
    proof.append(evidence("donors that still have all of it", certain or "none", source))
    if doubtful := ", ".join(each.name for each in donors if each.doubt):
        proof.append(evidence(DOUBTFUL_DONORS, doubtful, source))
    text = (
        f"{edge.replica} needs {many(gtids)} that {edge.source} has"
        f" {_NOT_LOGGED if unlogged else 'purged'}: {connection}"
    )
    if unlogged:
        text += _UNLOGGED.format(name=edge.source, what=many(unlogged))
    text += _sent_by(donors, parts)
    if code != "P1" and parts:
        text += " So the GTID sets show: look at them with binlog show first."
    elif code == "H4":
        text += " No audited server can send them."
        unread = sorted(facts.last.keys() - facts.fully_read.keys())
        text += f" {', '.join(unread)} could not be read, and may have them." if unread else ""
    if code == "P1" and edge.passed:
        text += _MAY_BE_THERE.format(replica=edge.replica)
    if others:
        text += f" {', '.join(others)} may have them; gtid-audit did not read that."
    elsewhere = "" if code == "P1" else coming_elsewhere(facts, edge, gtids)
    return on_edge(
        facts,
        edge,
        code,
        gtids,
        grade=Grade.LIKELY if elsewhere else grade,
        strategies=("configure", *ways) if unlogged else ways,
        proof=tuple(proof),
        explanation=text + elsewhere,
    )


def coming_elsewhere(facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet) -> str:
    """Return which other channels of a replica may deliver transactions, as text; "" if none."""
    names = [
        f"{other.channel.name or '(default)'} from {other.source}"
        for other in facts.edges_into(edge.replica)
        if other is not edge
        and gtids
        & (
            other.expected
            | other.queued_below
            | other.queued_above
            | _still_coming_to(facts, other.source, apart_from=edge.source)
        )
    ]
    compared = {each.channel.name for each in facts.edges_into(edge.replica)}
    names += [
        f"{channel.name or '(default)'}, whose source was not read,"
        for channel in facts.last[edge.replica].channels or ()
        if channel.name not in compared
    ]
    if not names:
        return ""
    return (
        f" Channel {', '.join(names)} may deliver them: audit again when {edge.replica} has nothing"
        " left to receive and to apply."
    )


def _still_coming_to(facts: ClusterFacts, name: str, *, apart_from: str) -> GtidSet:
    """Return what a server has received and not executed, or receives next from servers above.

    `apart_from` cannot send it. What a server above has, and this server has passed, does not come.
    """
    server, above = facts.last[name], facts.graph.upstream_of(name, not_through=apart_from)
    sent = GtidSet.union_of(
        (each.gtid_executed or GtidSet()) | (each.gtid_owned or GtidSet())
        for each in (facts.last[source] for source in above - {apart_from})
    )
    executed = server.gtid_executed or GtidSet()
    return (sent - executed.filled()) | (server.gtid_retrieved - executed)


def _donors(facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet) -> tuple[Donor, ...]:
    """Return the other servers that have any of these in their binary logs."""
    ends = {edge.source, edge.replica}
    return donors_of(facts, gtids, replica=edge.replica, apart_from=ends)


def _sent_by(donors: Sequence[Donor], parts: Sequence[Donor]) -> str:
    """Return who can send the transactions, or a part of them, as text; "" if no server."""
    if donors:
        first = donors[0]
        if not first.doubt:
            return f" {first.name} can still send them."
        return (
            f" By its GTID sets {first.name} has them in its binary logs, but whether it can send"
            f" them is not certain: {first.doubt}."
        )
    certain = ", ".join(each.name for each in parts if not each.doubt)
    texts = [f" {certain} can send a part of them." if certain else ""]
    texts += [
        f" By its GTID sets {each.name} has a part of them in its binary logs, but whether it can"
        f" send that is not certain: {each.doubt}."
        for each in parts
        if each.doubt
    ]
    return "".join(texts)


def latent_1236(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield P2: only the relay log has what the source has purged.

    While the applier runs, a source that purges its logs early looks like that for a moment: info.
    """
    for edge in facts.edges:
        waiting = edge.queued_below | edge.queued_above | edge.applying_below | edge.applying_above
        saved = waiting & (facts.first[edge.source].gtid_purged or GtidSet())
        saved &= edge.channel.gtid_retrieved
        saved -= GtidSet.union_of(  # another channel has received these, or would deliver them
            facts.last[other.source].logged | other.channel.gtid_retrieved
            for other in facts.edges_into(edge.replica)
            if other.source != edge.source
        )
        if not saved:
            continue
        runs = edge.channel.applier is ThreadState.RUNNING
        replica = facts.last[edge.replica]
        others = len(replica.channels or ()) - len(facts.edges_into(edge.replica))
        yield on_edge(
            facts,
            edge,
            "P2",
            saved,
            strategies=(),  # the findings about its applier have them
            grade=Grade.LIKELY if others else Grade.PROVED,
            severity=Severity.INFO if runs else Severity.WARNING,
            proof=(
                evidence("gtid_purged", saved, facts.first[edge.source]),
                evidence("received, not executed", saved, replica),
                evidence("applier", edge.channel.applier.value, replica),
            ),
            explanation=f"{edge.source} has purged {many(saved)} that {edge.replica} has received"
            " and not executed: only its relay log still has them. Let it apply them before a"
            " restart with relay_log_recovery, RESET REPLICA or CHANGE REPLICATION SOURCE: these"
            " delete the relay log, and the next connection is refused with error 1236."
            + (_OTHER_SOURCE.format(name=edge.replica) if others else ""),
        )


def _has_its_file(source: ServerSnapshot, edge: EdgeFacts) -> bool | None:
    """Return whether a source still has the file that a channel reads; None if not known.

    The channel is read after the logs are listed, so it may be at a log that was begun since.
    """
    place = edge.channel.received_to
    if place is None or not place.file or not source.binary_logs:
        return None
    names = [log.name for log in source.binary_logs]
    newest = LogPosition.of(file=names[-1], position=0)
    if newest is None:
        return None
    is_newer = place.file.rpartition(".")[0] == newest.file.rpartition(".")[0]
    return place.file in names or (is_newer and place.sequence > newest.sequence)


RULES: Rules = (
    purged_on_source,  # P1, H3, H4
    latent_1236,  # P2
)
