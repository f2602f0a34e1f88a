"""Which finding explains which: the cause is told once, its symptoms are not told again.

1. A table of causes and the symptoms each explains, with the part of the cluster it reaches.
2. Nothing is suppressed by a finding that is itself suppressed.
3. What could not be read (U) explains only what follows from it, and is never suppressed.
"""

from collections.abc import Callable, Iterable

from topology.findings import Finding

Reach = Callable[[Finding, Finding], bool]


def _same_edge(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica, cause.channel) == (
        symptom.source,
        symptom.replica,
        symptom.channel,
    )


def _same_servers(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica) == (symptom.source, symptom.replica)


def _way_back(cause: Finding, symptom: Finding) -> bool:
    return (cause.source, cause.replica) == (symptom.replica, symptom.source)


def _same_transactions_back(cause: Finding, symptom: Finding) -> bool:
    """Reach what a server is said to have too much of, when its own replica merely lacks it."""
    return _way_back(cause, symptom) and symptom.gtid_set <= cause.gtid_set


def _touching(cause: Finding, symptom: Finding) -> bool:
    """Reach every finding about either server, and those about the whole cluster."""
    about = {symptom.source, symptom.replica} - {None}
    return not about or bool(about & {cause.source, cause.replica})


def _from_silent_server(cause: Finding, symptom: Finding) -> bool:
    """Reach the receivers that cannot connect to a server that did not answer us either.

    Not those that it sent away with an error: that is a story of its own. And a server that only
    kept one fact from us explains nothing.
    """
    return (
        symptom.source == cause.replica
        and any(fact.fact == "connection" for fact in cause.evidence)
        and ("receiver", "Connecting") in ((fact.fact, fact.value) for fact in symptom.evidence)
    )


_DIFFERENCES = ("T1", "T2", "T3", "T4", "H1", "E1", "E2", "E3", "P1")
_THREADS = ("A1", "A2", "A3", "A4", "A7", "C3")

# (causes, what they explain, how far)
EXPLAINS: tuple[tuple[tuple[str, ...], tuple[str, ...], Reach], ...] = (
    (("C1",), (*_DIFFERENCES, *_THREADS), _touching),
    (("A1", "A2", "A3"), ("T1", "T2", "A7"), _same_edge),
    (("P1",), ("A4", "A7", "C3", "T3"), _same_edge),
    (("H1", "P1"), ("E1", "E2"), _same_transactions_back),
    (("E3",), ("A4", "A7", "C3", "T3"), _same_servers),
    (("E1", "E2"), ("A7",), _way_back),
    (("H1",), ("C3", "A7"), _same_edge),
    (("U1",), ("A4",), _from_silent_server),
)


def suppress_symptoms(findings: Iterable[Finding]) -> list[Finding]:
    """Drop every finding that another, standing one explains. The order is kept."""
    standing = list(findings)
    for causes, symptoms, reaches in EXPLAINS:
        present = [finding for finding in standing if finding.code in causes]
        standing = [
            finding
            for finding in standing
            if finding.code not in symptoms or not any(reaches(cause, finding) for cause in present)
        ]
    return standing
