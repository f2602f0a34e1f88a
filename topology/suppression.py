"""Which finding explains which: a cause is reported once, without its symptoms.

1. A table of causes and the symptoms each explains, with the part of the cluster it reaches.
2. Nothing is suppressed by a finding that is itself suppressed.
3. What could not be read (U) explains only what follows from it, and is never suppressed.
4. A cause that is only one of several possible ones (`likely`) explains nothing, unless what it
   explains follows from each of them: a stopped applier has a backlog whatever stopped it.
5. A finding hides none that is more severe: the verdict never becomes better by what is left out.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from topology.error_texts import FOR_WANT_OF_LOGS, LOG_NOT_OPEN, row_of
from topology.findings import Finding, Grade, Severity
from topology.rules.differences import MADE_BY_HAND, WAY_BACK
from topology.rules.purged import BY_POSITION
from topology.rules.settings import EQUAL_IDS
from topology.rules.threads import RECEIVER_ERROR

Reach: TypeAlias = Callable[[Finding, Finding], bool]


def _same_edge(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica, cause.channel) == (
        symptom.source,
        symptom.replica,
        symptom.channel,
    )


def _same_servers(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica) == (symptom.source, symptom.replica)


def _refused_for_purged_logs(cause: Finding, symptom: Finding) -> bool:
    """Reach the channel that needs what was purged, if its error says nothing else.

    A receiver that was refused for another reason has a fault of its own: a source that reused
    GTIDs, for example, says that the replica has more GTIDs.
    """
    if not _same_edge(cause, symptom) or any(fact.fact == BY_POSITION for fact in cause.evidence):
        return False
    kinds = [row_of(each.value) for each in symptom.evidence if each.fact == RECEIVER_ERROR]
    return all(kind is not None and kind.title in FOR_WANT_OF_LOGS for kind in kinds)


def _hangs(cause: Finding, symptom: Finding) -> bool:
    """Reach the backlog of a receiver that runs and brings nothing."""
    return bool(cause.gtid_set) and _same_edge(cause, symptom)


def _way_back(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica) == (symptom.replica, symptom.source)


def _stopped_way_back(cause: Finding, symptom: Finding) -> bool:
    """Reach the stopped channel that an errant set names, or that cannot bring it."""
    names_it = any(fact.fact == WAY_BACK for fact in cause.evidence)
    return _way_back(cause, symptom) and (names_it or cause.grade is Grade.PROVED)


def _if_proved(reaches: Reach) -> Reach:
    """Reach nothing from a cause that is only one of several possible ones."""
    return lambda cause, symptom: cause.grade is Grade.PROVED and reaches(cause, symptom)


def _same_transactions_back(cause: Finding, symptom: Finding) -> bool:
    """Reach what a server is said to have too much of, when its own replica merely lacks it."""
    return _way_back(cause, symptom) and symptom.gtid_set <= cause.gtid_set


def _of_stopped_applier(cause: Finding, symptom: Finding) -> bool:
    """Reach its own channel, and what other channels show of the transaction at which it stands."""
    if not symptom.code.startswith("T"):
        return _same_edge(cause, symptom)
    is_at_them = bool(symptom.gtid_set) and symptom.gtid_set <= cause.gtid_set
    return _same_edge(cause, symptom) or (cause.replica == symptom.replica and is_at_them)


def _names_the_hand(cause: Finding, symptom: Finding) -> bool:
    """Reach a GTID made by hand on the server that is said to have it beyond its source."""
    names_it = any(fact.fact == MADE_BY_HAND for fact in cause.evidence)
    return names_it and cause.replica == symptom.replica and symptom.gtid_set <= cause.gtid_set


def _touching(cause: Finding, symptom: Finding) -> bool:
    """Reach every finding about either server, and those about the whole cluster."""
    about = {symptom.source, symptom.replica} - {None}
    return not about or bool(about & {cause.source, cause.replica})


def _from_silent_server(cause: Finding, symptom: Finding) -> bool:
    """Reach the receivers that cannot connect to a server that did not answer us either.

    Not those that it refused with an error: that is another cause. And a server that only
    kept one fact from us explains nothing.
    """
    return (
        symptom.source == cause.replica
        and any(fact.fact == "connection" for fact in cause.evidence)
        and ("receiver", "Connecting") in ((fact.fact, fact.value) for fact in symptom.evidence)
    )


def _between_equal_ids(cause: Finding, symptom: Finding) -> bool:
    """Reach what equal server_ids explain: a refused connection, transactions that were dropped."""
    if symptom.code == "A4":
        return {cause.source, cause.replica} == {symptom.source, symptom.replica} and any(
            EQUAL_IDS in fact.value for fact in symptom.evidence
        )
    is_dropped = bool(symptom.gtid_set) and symptom.gtid_set <= cause.gtid_set
    return symptom.replica in (cause.source, cause.replica) and is_dropped


def _logs_nothing(cause: Finding, symptom: Finding) -> bool:
    """Reach the replicas of a server that closed its log: what is missing there does not come."""
    if symptom.source != cause.replica:
        return False
    errors = [each.value for each in symptom.evidence if each.fact == RECEIVER_ERROR]
    return all(LOG_NOT_OPEN in error for error in errors)


def _hides(cause: Finding, symptom: Finding, reaches: Reach) -> bool:
    order = tuple(Severity)
    is_as_severe = order.index(cause.severity) >= order.index(symptom.severity)
    return is_as_severe and reaches(cause, symptom)


_DIFFERENCES = (
    *("T1", "T2", "T3", "T4", "H1", "H7", "H8", "E1", "E2", "E3", "E6"),
    *("P1", "J1", "J2", "J3", "C2"),
)
_THREADS = ("A1", "A2", "A3", "A4", "A5", "A7", "A8", "C3")

# (causes, what they explain, how far)
EXPLAINS: tuple[tuple[tuple[str, ...], tuple[str, ...], Reach], ...] = (
    (("C1",), (*_DIFFERENCES, *_THREADS), _touching),
    (("C2",), ("H1", "H8", "T1", "T2", "T3", "A4", "A8"), _between_equal_ids),
    (("A1", "A2", "A3"), ("T1", "T2", "A5", "A7", "A8"), _of_stopped_applier),
    (("A5", "A8"), ("T1", "T2"), _same_edge),
    (("P1",), ("A4", "A7", "C3", "T3"), _if_proved(_refused_for_purged_logs)),
    # Whatever made the hole: what a replica does not have is not errant on its source.
    (("H1", "H8", "P1", "C11"), ("E1", "E2"), _same_transactions_back),
    (("P1",), ("C6",), _same_edge),
    (("E3", "E6"), ("A4", "A7", "C3", "T3"), _same_servers),
    (("E1", "E2"), ("A7",), _stopped_way_back),
    (("E1", "E2"), ("H7",), _names_the_hand),
    (("H1",), ("C3", "A7"), _if_proved(_same_edge)),
    (("U1",), ("A4",), _from_silent_server),
    (("A9",), ("A4", "T3"), _logs_nothing),
    (("A4",), ("T3",), _hangs),
)


def suppress_symptoms(findings: Iterable[Finding]) -> list[Finding]:
    """Drop every finding that another, standing one explains. The order is kept."""
    standing = list(findings)
    for causes, symptoms, reaches in EXPLAINS:
        present = [finding for finding in standing if finding.code in causes]
        standing = [
            finding
            for finding in standing
            if finding.code not in symptoms
            or not any(_hides(cause, finding, reaches) for cause in present)
        ]
    return standing
