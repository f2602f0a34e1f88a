"""Which finding explains which: for each row where it must act, and where it must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.rules.differences import MADE_BY_HAND, WAY_BACK
from topology.rules.settings import EQUAL_IDS
from topology.rules.threads import RECEIVER_ERROR
from topology.suppression import EXPLAINS, suppress_symptoms

SET = GtidSet.parse(f"{A}:1-5")
MORE = GtidSet.parse(f"{A}:1-6")


def finding(code: str, source: str | None, replica: str | None, **facts: Any) -> Finding:
    made: dict[str, Any] = {
        "channel": "",
        "severity": Severity.CRITICAL,
        "grade": Grade.PROVED,
        "gtid_set": SET,
        "evidence": (Evidence("gtid_executed", "", "a", NOON),),
        **facts,
    }
    return Finding(
        code=code,
        name="as in the catalogue",
        cluster="cluster",
        source=source,
        replica=replica,
        first_seen=NOON,
        last_seen=NOON,
        explanation="as the rule explains it",
        strategies=(),
        **made,
    )


def fact(name: str, value: str = "") -> dict[str, Any]:
    return {"evidence": (Evidence(name, value, "a", NOON),)}


# Where a symptom is, seen from a cause on the channel "" of a -> b.
PLACES: dict[str, dict[str, Any]] = {
    "edge": {"source": "a", "replica": "b", "channel": ""},
    "other channel": {"source": "a", "replica": "b", "channel": "other"},
    "way back": {"source": "b", "replica": "a", "channel": ""},
    "behind": {"source": "b", "replica": "c", "channel": ""},
    "beside": {"source": "a", "replica": "c", "channel": ""},
    "above": {"source": "c", "replica": "a", "channel": ""},
    "into": {"source": "c", "replica": "b", "channel": ""},
    "elsewhere": {"source": "c", "replica": "d", "channel": ""},
    "cluster": {"source": None, "replica": None, "channel": None},
}
_THREADS = {f"A{number}" for number in range(1, 9)}  # A9 is about a server
EVERYWHERE = set(PLACES) - {"elsewhere"}
# For one cause of each row and one of its symptoms: the places that it reaches.
REACHES: list[tuple[str, str, set[str]]] = [
    ("C1", "E1", EVERYWHERE),
    ("C2", "H1", {"edge", "other channel", "way back", "above", "into"}),
    ("A6", "A3", {"edge"}),
    ("A2", "T2", {"edge", "other channel", "into"}),
    ("A3", "H2", {"edge"}),
    ("A8", "T1", {"edge"}),
    ("A5", "A8", {"edge", "other channel", "into"}),
    ("P1", "A4", {"edge"}),
    ("H1", "E1", {"way back"}),
    ("P1", "C6", {"edge"}),
    ("H1", "P5", {"edge", "other channel", "into"}),
    ("P3", "C8", {"way back", "above"}),
    ("C14", "A4", {"edge"}),
    ("E3", "A4", {"edge", "other channel"}),
    ("E1", "A7", {"way back"}),
    ("E1", "H7", set()),
    ("E1", "E5", EVERYWHERE | {"elsewhere"}),
    ("H1", "C3", {"edge"}),
    ("H3", "C3", {"edge"}),
    ("U1", "A4", set()),
    ("A4", "T3", {"edge"}),
    ("A9", "T3", {"way back", "behind"}),
]


def is_explained(cause: Finding, symptom: Finding) -> bool:
    assert suppress_symptoms([symptom]) == [symptom]
    left = suppress_symptoms([symptom, cause])
    assert cause in left
    return symptom not in left


def row_of(cause: str, symptom: str) -> int:
    """Return the row of the table for a cause and a symptom."""
    [row] = [
        at for at, (ours, theirs, _) in enumerate(EXPLAINS) if cause in ours and symptom in theirs
    ]
    return row


def test_each_row_has_its_places() -> None:
    """Add a line to REACHES for a new row of EXPLAINS."""
    found = [row_of(cause, symptom) for cause, symptom, _ in REACHES]
    assert sorted(found) == list(range(len(EXPLAINS)))


@pytest.mark.parametrize(
    ("cause_in_row", "symptom_in_row", "places"), REACHES, ids=lambda each: str(each)[:2]
)
@pytest.mark.parametrize("place", PLACES)
def test_a_row_reaches_these_places_and_no_other(
    cause_in_row: str, symptom_in_row: str, places: set[str], place: str
) -> None:
    row = row_of(cause_in_row, symptom_in_row)
    causes, symptoms, _ = EXPLAINS[row]
    for cause_code in causes:
        cause = finding(cause_code, "a", "b")
        for code in symptoms:
            if (cause_code, code) == ("C2", "A4"):
                continue  # equal server_ids and a refused receiver: see below
            if any(
                cause_code in others and code in explained
                for at, (others, explained, _) in enumerate(EXPLAINS)
                if at != row
            ):
                continue  # another row explains it as well
            symptom = finding(code, **PLACES[place])
            # The backlog of another channel may be the same transaction; its threads never are,
            # unless they wait for it as well.
            is_thread = cause_code in _THREADS and code in _THREADS
            is_thread = is_thread and (cause_code, code) != ("A5", "A8")
            reached = {"edge"} if is_thread else places
            assert is_explained(cause, symptom) is (place in reached), (cause_code, code)


LIKELY = {"grade": Grade.LIKELY}


@pytest.mark.parametrize(
    ("cause", "symptom", "is_one"),
    [
        # A cause that is only one of several possible ones explains nothing.
        (finding("P1", "a", "b", **LIKELY), finding("A4", "a", "b"), False),
        (finding("H1", "a", "b", **LIKELY), finding("C3", "a", "b"), False),
        # A refusal that is not about purged logs is a fault of its own.
        (
            finding("P1", "a", "b"),
            finding("A4", "a", "b", **fact(RECEIVER_ERROR, "Replica has more GTIDs than the")),
            False,
        ),
        # What is missing on b is not errant on a, but what is extra beyond it is.
        (finding("H1", "b", "a"), finding("E1", "a", "b", gtid_set=MORE), False),
        (finding("H1", "b", "a", gtid_set=MORE), finding("E1", "a", "b"), True),
        (finding("H1", "b", "a"), finding("E1", "a", "b"), True),
        # An errant set names the stopped channel, or proves that it cannot bring it.
        (finding("E1", "a", "b", **LIKELY), finding("A7", "b", "a"), False),
        (finding("E1", "a", "b", **LIKELY, **fact(WAY_BACK)), finding("A7", "b", "a"), True),
        (finding("E1", "a", "b", **LIKELY, **fact(WAY_BACK)), finding("A7", "a", "b"), False),
        # A receiver that brings nothing has a backlog; a refusal without a set shows none.
        (finding("A4", "a", "b", gtid_set=GtidSet()), finding("T3", "a", "b"), False),
        # Another channel may bring what is behind the transaction of a stopped applier.
        (finding("A2", "a", "b"), finding("T2", "c", "b", gtid_set=MORE), False),
        (finding("A2", "a", "b"), finding("T2", "c", "b", gtid_set=GtidSet()), False),
        (finding("A2", "a", "b"), finding("T2", "a", "b", gtid_set=MORE), True),
        # A server that did not answer explains who cannot connect to it, and nobody else.
        (
            finding("U1", None, "a", **fact("connection")),
            finding("A4", "a", "b", **fact("receiver", "Connecting")),
            True,
        ),
        (
            finding("U1", None, "c", **fact("connection")),
            finding("A4", "a", "b", **fact("receiver", "Connecting")),
            False,
        ),
        (
            finding("U1", None, "a", **fact("gtid_owned")),
            finding("A4", "a", "b", **fact("receiver", "Connecting")),
            False,
        ),
        (
            finding("U1", None, "a", **fact("connection")),
            finding("A4", "a", "b", **fact("receiver", "No")),
            False,
        ),
        # Equal server_ids explain the refusal that names them, between these two servers.
        *(
            (finding("C2", "a", "b"), finding("A4", *edge, **fact("error", EQUAL_IDS)), is_one)
            for edge, is_one in (
                (("a", "b"), True),
                (("b", "a"), True),
                (("a", "c"), False),
                (("c", "b"), False),
            )
        ),
        (finding("C2", "a", "b"), finding("A4", "a", "b", **fact("error", "refused")), False),
        # And transactions that either dropped, if they are among those that carry its id.
        (finding("C2", "a", "b"), finding("H8", "c", "b", gtid_set=MORE), False),
        (finding("C2", "a", "b"), finding("A8", "c", "b", gtid_set=GtidSet()), False),
    ],
)
def test_what_decides_besides_the_place(cause: Finding, symptom: Finding, *, is_one: bool) -> None:
    assert is_explained(cause, symptom) is is_one


def test_a_finding_hides_none_that_is_more_severe() -> None:
    order = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
    cause, symptom = finding("A2", "a", "b"), finding("T2", "a", "b")
    for at, weaker in enumerate(order):
        for other, stronger in enumerate(order):
            explained = is_explained(
                replace(cause, severity=weaker), replace(symptom, severity=stronger)
            )
            assert explained is (at >= other)


def test_what_is_explained_explains_nothing() -> None:
    equal_ids = finding("C2", "a", "b")
    refused = finding("A4", "a", "b", **fact("error", EQUAL_IDS))
    backlog = finding("T3", "a", "b", gtid_set=MORE)
    assert suppress_symptoms([backlog, refused]) == [refused]
    assert suppress_symptoms([backlog, refused, equal_ids]) == [backlog, equal_ids]


def test_the_order_is_kept() -> None:
    found = [finding("T2", "c", "d"), finding("A2", "a", "b"), finding("T3", "a", "b")]
    assert suppress_symptoms(found) == found


def test_an_errant_gtid_made_by_hand_is_reported_once_if_the_text_names_the_hand() -> None:
    by_hand = finding("H7", "c", "b", severity=Severity.WARNING)
    for code in ("E1", "E2"):
        assert is_explained(finding(code, "a", "b", **fact(MADE_BY_HAND)), by_hand)
        assert not is_explained(finding(code, "a", "b"), by_hand)
        assert not is_explained(finding(code, "a", "d", **fact(MADE_BY_HAND)), by_hand)
        more = finding("H7", "c", "b", severity=Severity.WARNING, gtid_set=MORE)
        assert not is_explained(finding(code, "a", "b", **fact(MADE_BY_HAND)), more)


def test_no_row_removes_a_cause_of_an_earlier_row() -> None:
    """A suppressed finding suppresses nothing: the order of the rows is what holds that."""
    for at, (causes, _, _) in enumerate(EXPLAINS):
        later = {code for _, symptoms, _ in EXPLAINS[at:] for code in symptoms}
        assert not later & set(causes), f"row {at}"
