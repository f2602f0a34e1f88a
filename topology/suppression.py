"""Suppresses symptoms: a cause is reported once, without the findings that follow from it.

1. The table lists causes, the symptoms that each explains, and how far the cause reaches.
2. A suppressed finding suppresses nothing.
3. An unread fact (U) explains only what follows from it, and is never suppressed.
4. A cause that is only one of several possible ones (`likely`) explains nothing. The exception is a
   symptom that follows from each of them: a stopped applier has a backlog, regardless of the cause.
5. A finding suppresses no more severe one, so suppression never improves the verdict.
6. An accepted finding explains only findings about its own transactions. The operator accepted
   these, and not a stopped thread or a setting that they happen to explain as well.

How it works
------------
A row of `EXPLAINS` is (causes, symptoms, reach). For every finding with a code in `causes`, the row
removes each finding with a code in `symptoms` under two conditions. The cause is at least as
severe, and `reach(cause, symptom)` is true. A `Reach` compares only data of the two findings:
source, replica, channel, the GTID sets, and single facts of the evidence. It reads no snapshot.

The order of the rows is an invariant, and it implements rule 2. A code that stands as a cause in
one row is a symptom only in earlier rows. So when a row is applied, all rows that could remove its
causes have been applied, and the causes in `standing` stay. A new row must keep this: none of its
symptoms is a cause of an earlier row, and none of its causes is a symptom of a later one. A
different order would lose information. In a pair s ⇄ r:

    findings  C2 (servers s and r have one server_id), H1 (r misses A:5), E1 (s has A:5 extra)
    in order  the C2 row removes H1, if C2 lists A:5. H1 is gone and explains nothing; E1 stays
    reversed  H1 removes E1, then C2 removes H1. No finding that is left explains E1

The reach is narrow where a code has several causes. Two examples:

* P1 (the source purged what the replica needs) explains A4 (the receiver stopped with an error)
  only for the same channel. P1 must be proved, and the error in A4 must report purged logs. A
  receiver that the source refused for another reason keeps its finding.
* H1, H3, H4, H5, H8, P1 and C11 explain E1 and E2 only in the opposite direction. Example: a is
  missing A:5 as a replica of b, and b has A:5 extra as a replica of a. The set of E1 must be a
  subset of H1's set.

Suppression by code alone would be simpler, and would hide an independent fault of the same kind on
another channel. Suppression by severity alone would hide causes behind their symptoms.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from topology.catalogue.error_texts import FOR_WANT_OF_LOGS, LOG_NOT_OPEN, row_of
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.accepted_findings import severity_before
from topology.rules.differences import MADE_BY_HAND, WAY_BACK
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
    """Reach the channel that needs the purged logs, unless its error has another cause.

    A receiver that was refused for another reason has a fault of its own. For example, a source
    that reused GTIDs reports that the replica has more GTIDs.
    """
    if not _same_edge(cause, symptom):
        return False
    kinds = [row_of(each.value) for each in symptom.evidence if each.fact == RECEIVER_ERROR]
    return all(kind is not None and kind.title in FOR_WANT_OF_LOGS for kind in kinds)


def _hangs(cause: Finding, symptom: Finding) -> bool:
    """Reach the backlog of a receiver that runs and receives nothing."""
    return bool(cause.gtid_set) and _same_edge(cause, symptom)


def _way_back(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica) == (symptom.replica, symptom.source)


def _stopped_way_back(cause: Finding, symptom: Finding) -> bool:
    """Reach the stopped channel that an errant set's evidence shows, or that cannot deliver it."""
    names_it = any(fact.fact == WAY_BACK for fact in cause.evidence)
    return _way_back(cause, symptom) and (names_it or cause.grade is Grade.PROVED)


def _if_proved(reaches: Reach) -> Reach:
    """Reach nothing from a cause that is only one of several possible ones."""
    return lambda cause, symptom: cause.grade is Grade.PROVED and reaches(cause, symptom)


def _same_transactions_back(cause: Finding, symptom: Finding) -> bool:
    """Reach the GTIDs reported as extra on a server if its own replica is merely missing them."""
    return _way_back(cause, symptom) and symptom.gtid_set <= cause.gtid_set


def _of_stopped_applier(cause: Finding, symptom: Finding) -> bool:
    """Reach its own channel, and other channels' findings about the transaction that stopped it."""
    if not symptom.code.startswith("T"):
        return _same_edge(cause, symptom)
    is_at_them = bool(symptom.gtid_set) and symptom.gtid_set <= cause.gtid_set
    return _same_edge(cause, symptom) or (cause.replica == symptom.replica and is_at_them)


def _names_the_hand(cause: Finding, symptom: Finding) -> bool:
    """Reach a GTID set with gtid_next on the server on which it is reported as extra."""
    names_it = any(fact.fact == MADE_BY_HAND for fact in cause.evidence)
    return names_it and cause.replica == symptom.replica and symptom.gtid_set <= cause.gtid_set


def _touching(cause: Finding, symptom: Finding) -> bool:
    """Reach every finding about either server, and those about the whole cluster."""
    about = {symptom.source, symptom.replica} - {None}
    return not about or bool(about & {cause.source, cause.replica})


def _from_silent_server(cause: Finding, symptom: Finding) -> bool:
    """Reach the receivers that cannot connect to a server that gtid-audit could not reach either.

    Receivers that the server refused with an error are excluded: that is another cause. A server of
    which only one fact was unread explains nothing.
    """
    return (
        symptom.source == cause.replica
        and any(fact.fact == "connection" for fact in cause.evidence)
        and ("receiver", "Connecting") in ((fact.fact, fact.value) for fact in symptom.evidence)
    )


def _between_equal_ids(cause: Finding, symptom: Finding) -> bool:
    """Reach the effects of equal server_ids: a refused connection, or dropped transactions."""
    if symptom.code == "A4":
        return {cause.source, cause.replica} == {symptom.source, symptom.replica} and any(
            EQUAL_IDS in fact.value for fact in symptom.evidence
        )
    is_dropped = bool(symptom.gtid_set) and symptom.gtid_set <= cause.gtid_set
    return symptom.replica in (cause.source, cause.replica) and is_dropped


def _purged_there_too(cause: Finding, symptom: Finding) -> bool:
    """Reach another server that has purged what a replica is missing for a known cause."""
    return cause.replica == symptom.replica and symptom.gtid_set <= cause.gtid_set


def _waits_for_the_same(cause: Finding, symptom: Finding) -> bool:
    """Reach another channel of the replica that stalls at a transaction of the blocked one."""
    is_at_it = bool(symptom.gtid_set) and symptom.gtid_set <= cause.gtid_set
    return cause.replica == symptom.replica and is_at_it


def _has_all_of_it(cause: Finding, symptom: Finding) -> bool:
    return symptom.gtid_set <= cause.gtid_set


def _keeps_too_short(cause: Finding, symptom: Finding) -> bool:
    return cause.source == symptom.replica


def _logs_nothing(cause: Finding, symptom: Finding) -> bool:
    """Reach the replicas of a server that closed its log: it sends no more transactions."""
    if symptom.source != cause.replica:
        return False
    errors = [each.value for each in symptom.evidence if each.fact == RECEIVER_ERROR]
    return all(LOG_NOT_OPEN in error for error in errors)


def _hides(cause: Finding, symptom: Finding, reaches: Reach) -> bool:
    order = tuple(Severity)
    severity = severity_before(cause)
    if severity is not cause.severity and not _about_its_transactions(cause, symptom):
        return False
    return order.index(severity) >= order.index(symptom.severity) and reaches(cause, symptom)


def _about_its_transactions(cause: Finding, symptom: Finding) -> bool:
    return bool(symptom.gtid_set) and symptom.gtid_set <= cause.gtid_set


_DIFFERENCES = (
    *("T1", "T2", "T3", "T4", "H1", "H3", "H4", "H5", "H7", "H8", "E1", "E2", "E3", "E6"),
    *("P1", "J1", "J2", "J3", "C2"),
)
_THREADS = ("A1", "A2", "A3", "A4", "A5", "A7", "A8", "C3")

# (causes, what they explain, how far); the order matters, see *How it works*
EXPLAINS: tuple[tuple[tuple[str, ...], tuple[str, ...], Reach], ...] = (
    (("C1",), (*_DIFFERENCES, *_THREADS), _touching),
    (("C2",), ("H1", "H8", "T1", "T2", "T3", "A4", "A8"), _between_equal_ids),
    (("A6",), ("A3",), _same_edge),  # its error
    (("A1", "A2", "A3", "A6"), ("T1", "T2", "A5", "A7", "A8"), _of_stopped_applier),
    (("A1", "A2", "A3", "A6"), ("H2",), _same_edge),
    (("A5",), ("A8", "T1", "T2"), _waits_for_the_same),
    (("A5", "A8"), ("T1", "T2"), _same_edge),
    (("P1",), ("A4", "A7", "C3", "T3"), _if_proved(_refused_for_purged_logs)),
    # Regardless of the cause of the gap: what a replica is missing is not errant on its source.
    (("H1", "H3", "H4", "H5", "H8", "P1", "C11"), ("E1", "E2"), _same_transactions_back),
    (("P1", "H3", "H4"), ("C6",), _same_edge),
    (("P1", "H1", "H3", "H4", "H5", "H8"), ("P5",), _purged_there_too),
    (("P3",), ("C8",), _keeps_too_short),
    (("C14",), ("A4",), _if_proved(_same_edge)),
    (("E3", "E6"), ("A4", "A7", "C3", "T3"), _same_servers),
    (("E1", "E2"), ("A7",), _stopped_way_back),
    (("E1", "E2"), ("H7",), _names_the_hand),
    (("E1", "E2", "H7", "J3"), ("E5",), _has_all_of_it),
    (("H1",), ("C3", "A7"), _if_proved(_same_edge)),
    (("H3", "H4"), ("C3",), _if_proved(_same_edge)),
    (("U1",), ("A4",), _from_silent_server),
    (("A9",), ("A4", "T3"), _logs_nothing),
    (("A4",), ("T3",), _hangs),
)


def suppress_symptoms(findings: Iterable[Finding]) -> list[Finding]:
    """Remove every finding that a remaining one explains. The order is kept."""
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
