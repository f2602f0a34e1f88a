"""Compares what an audit reported with the fault that was injected.

1. An expectation comes from the fault alone: the codes of the catalogue that describe it, its
   servers and its GTIDs. Nothing of the product's rules is used.
2. A disagreement is one line of text. No disagreement means: found, and nothing misnamed.
3. This module accesses no servers. A finding that the expectation does not list is passed on; SQL
   on the servers decides whether it is there (confirming.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from gtid import GtidSet

# Findings of a difference that clears by itself: about a fault that stays, a proved one is wrong.
_CLEARS_BY_ITSELF: Final = frozenset({"T1", "T2", "T3", "T4"})
_DIFFERENT_FORMS: Final = "logged in different forms"


class Extent(Enum):
    """Which GTIDs a finding may have besides the injected ones."""

    EXACT = "the injected GTIDs and no other"
    BACKLOG = "the injected GTIDs, and others that the source has and the replica does not"
    ANY = "not compared"


@dataclass(frozen=True, slots=True)
class Reported:
    """One finding of an audit, by the names of the topology."""

    code: str
    severity: str
    grade: str
    source: str | None
    replica: str | None
    gtids: GtidSet
    explanation: str

    @property
    def is_above_info(self) -> bool:
        """Return whether it changes the verdict."""
        return self.severity != "info"

    def __str__(self) -> str:
        return (
            f"{self.code} ({self.severity}, {self.grade}) {self.source} -> {self.replica}"
            f" {str(self.gtids)[:200]}"
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """What an audit must report about one fault, and what else it may report."""

    codes: frozenset[str]  # one of them must be reported; empty: the servers are healthy
    source: str | None = None  # None: not compared
    replica: str | None = None
    injected: GtidSet = field(default_factory=lambda: GtidSet.parse(""))
    extent: Extent = Extent.EXACT
    companions: frozenset[str] = frozenset()  # also caused by the fault: each may be reported
    is_above_info: bool = True  # False: the catalogue has it as info
    must_be_unknown: bool = False
    stays: bool = True  # False: the injected GTIDs arrive without help
    words: tuple[str, ...] = ()  # a `likely` finding must name this cause
    compares_content: bool | None = None  # as --content; None: the audit decides
    lock_seconds_max: int = 10  # of the policy
    stall_seconds_max: int = 60
    server_seconds_max: float | None = None  # as --timeout


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit reported, and what SQL showed of the servers around it."""

    verdict: str
    findings: tuple[Reported, ...]
    unknown: tuple[str, ...]
    backlog: GtidSet  # all that the source had afterwards and the replica did not have before


def not_found(expected: Expected, outcome: Outcome) -> list[str]:
    """Return why the fault does not count as found; empty if it does."""
    if expected.must_be_unknown and outcome.verdict != "UNKNOWN":
        return [f"the verdict is {outcome.verdict}, not UNKNOWN"]
    if not expected.codes:
        return []
    named = [each for each in outcome.findings if each.code in expected.codes]
    if not named:
        return [f"none of {', '.join(sorted(expected.codes))} is reported ({outcome.verdict})"]
    reasons = [_unlike(expected, each, outcome.backlog) for each in named]
    if not all(reasons):
        return []
    return [f"{each}: {', '.join(why)}" for each, why in zip(named, reasons, strict=True)]


def _unlike(expected: Expected, finding: Reported, backlog: GtidSet) -> list[str]:
    """Return in what a finding with the right code differs from the fault."""
    reasons = [
        f"the {role} is {shown}, not {wanted}"
        for role, shown, wanted in (
            ("source", finding.source, expected.source),
            ("replica", finding.replica, expected.replica),
        )
        if wanted is not None and shown != wanted
    ]
    if expected.is_above_info and not finding.is_above_info:
        reasons.append("it is only info")
    if expected.extent is not Extent.ANY:
        if missing := expected.injected - finding.gtids:
            reasons.append(f"it does not have {missing}")
        permitted = expected.injected
        if expected.extent is Extent.BACKLOG:
            permitted |= backlog
        if others := finding.gtids - permitted:
            reasons.append(f"it also has {others}")
    reasons += [
        f"likely, and does not name the cause {word!r}"
        for word in expected.words
        if finding.grade == "likely" and word not in finding.explanation
    ]
    return reasons


def clears_wrongly(expected: Expected, outcome: Outcome) -> list[str]:
    """Return the findings that prove of a fault that stays that it clears by itself."""
    if not expected.stays or not expected.codes or expected.extent is not Extent.EXACT:
        return []
    return [
        f"{each} is about a fault that stays"
        for each in outcome.findings
        if each.code in _CLEARS_BY_ITSELF - expected.codes
        and each.grade == "proved"
        and each.replica == expected.replica
        and each.gtids & expected.injected
    ]


def unexpected(expected: Sequence[Expected], findings: Iterable[Reported]) -> list[Reported]:
    """Return the findings above info that are neither one of the faults nor caused by it.

    The code of a fault at another replica is not permitted either: it needs confirmation.
    """
    return [
        each
        for each in findings
        if each.is_above_info and not any(_permits(one, each) for one in expected)
    ]


def _permits(expected: Expected, finding: Reported) -> bool:
    if finding.code in expected.companions:
        return True
    return finding.code in expected.codes and expected.replica in (None, finding.replica)


def unknown_without_cause(
    expected: Expected, outcome: Outcome, *, has_row_images: bool = False
) -> Sequence[str]:
    """Return what the audit did not read although every server could be read.

    With `has_row_images` a server logs parts of rows only, which cannot be compared with whole ones.
    """
    if expected.must_be_unknown or "U" in expected.companions:
        return ()
    if not has_row_images:
        return outcome.unknown
    return [each for each in outcome.unknown if _DIFFERENT_FORMS not in each]
