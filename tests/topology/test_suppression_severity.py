"""No finding hides a more severe one: every row of suppression, every severity and grade."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.catalogue.verdict_table import entry_of
from topology.rules.differences import MADE_BY_HAND
from topology.suppression import EXPLAINS, suppress_symptoms

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SET = GtidSet.parse("00000000-0000-0000-0000-000000000041:1-3")
# All that any row looks at: see suppression.py.
PROOFS = tuple(
    tuple(
        Evidence(fact, value, "a", NOON)
        for fact, value in (
            ("connection", "timeout"),
            ("receiver", "Connecting"),
            ("receiver error", error),
            (MADE_BY_HAND, str(SET)),
        )
    )
    for error in (
        "source and replica have equal MySQL server ids",
        "Cannot replicate because the source purged required binary logs.",
        "Binary log is not open",
    )
)
ORDER = tuple(Severity)


def made(code: str, severity: Severity, grade: Grade, source: str, replica: str) -> Finding:
    return Finding(
        code=code,
        name=entry_of(code).name,
        severity=severity,
        grade=grade,
        cluster="c",
        source=source,
        replica=replica,
        channel="",
        gtid_set=SET,
        first_seen=NOON,
        last_seen=NOON,
        evidence=PROOFS[0],
        explanation="",
        strategies=(),
    )


@pytest.mark.parametrize("row", range(len(EXPLAINS)))
def test_nothing_hides_what_is_more_severe(row: int) -> None:
    causes, symptoms, _ = EXPLAINS[row]
    hidden = 0
    for code, other in product(causes, symptoms):
        for severity, grade, worse in product(Severity, Grade, Severity):
            cause = made(code, severity, grade, "a", "b")
            for ends, proof in product((("a", "b"), ("b", "a")), PROOFS):
                symptom = replace(made(other, worse, Grade.PROVED, *ends), evidence=proof)
                standing = suppress_symptoms([cause, symptom])
                assert cause in standing
                if symptom not in standing:
                    hidden += 1
                    assert ORDER.index(severity) >= ORDER.index(worse), (code, other)
    assert hidden, "the row acts on these"


def test_a_receiver_that_is_refused_is_no_symptom_of_a_server_that_did_not_answer() -> None:
    """Error 1045 is critical: the receiver of b does not get in, whatever keeps the auditor out."""
    unread = made("U1", Severity.WARNING, Grade.UNKNOWN, "", "a")
    refused = made("A4", Severity.CRITICAL, Grade.PROVED, "a", "b")
    assert suppress_symptoms([replace(unread, source=None), refused]) != [unread]
    away = replace(refused, severity=Severity.WARNING)
    assert [each.code for each in suppress_symptoms([unread, away])] == ["U1"]
