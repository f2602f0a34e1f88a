"""What arrives behind later transactions of the same source, and what only seems to."""

from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_server
from tests.topology.test_log_questions import BEFORE, twice
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Grade, Severity
from topology.questions.log_questions import LogQuestions, questions_of
from topology.readings.group_view import GroupSnapshot
from topology.readings.history_evidence import HistoryEvidence

IN_ORDER = (("replica_preserve_commit_order", "ON"), ("replica_parallel_workers", "4"))
SINGLE = (("replica_preserve_commit_order", "OFF"), ("replica_parallel_workers", "1"))
PARALLEL = (("replica_preserve_commit_order", "OFF"), ("replica_parallel_workers", "4"))


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("C:", f"{C}:"))


def found(
    *,
    source: str = "A:1-9",
    replica: str = "A:1-5:7-9",
    retrieved: str = "",
    settings: tuple[tuple[str, str], ...] = IN_ORDER,
    schemas: int | None = None,
    **of_source: Any,
) -> dict[str, Finding]:
    facts = {"gtid_retrieved": gtids(retrieved), "received_to": BEFORE, "applied_to": BEFORE}
    channel = a_channel("a", A, applier_state="Applying", **facts)
    a = a_server("a", A, gtids(source), **of_source)
    b = a_server("b", B, gtids(replica), channels=(channel,), settings=settings)
    evidence = HistoryEvidence(None, (), schemas_count=schemas)
    later = {} if schemas is None else {"b": {"history_evidence": evidence}}
    return {one.code: one for one in audit_cluster(twice(a, b, later=later).snapshot).findings}


@pytest.mark.parametrize("settings", [IN_ORDER, SINGLE])
@pytest.mark.parametrize(("code", "retrieved"), [("T3", ""), ("T1", "A:6")])
def test_a_gap_that_no_applier_in_order_leaves_is_a_warning(
    settings: tuple[tuple[str, str], ...], code: str, retrieved: str
) -> None:
    one = found(settings=settings, retrieved=retrieved)[code]
    assert (one.severity, one.grade, one.gtid_set) == (
        Severity.WARNING,
        Grade.LIKELY,
        gtids("A:6"),
    )
    assert one.strategies == ()
    assert "replace newer rows with older ones" in one.explanation


def test_what_the_source_left_out_between_others_was_there_when_it_connected() -> None:
    one = found(settings=PARALLEL, replica="C:1", retrieved="A:7-8")["T3"]
    assert (one.severity, one.grade) == (Severity.WARNING, Grade.LIKELY)
    assert one.gtid_set == gtids("A:1-6:9")
    assert "skipped 6 transactions before" in one.explanation


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ({"settings": PARALLEL}, "a parallel applier leaves gaps"),
        ({"settings": ()}, "the settings were not read"),
        ({"replica": "A:1-5"}, "nothing later was executed"),
        ({"source": "A:1-6:8-9", "replica": "A:1-5:8-9"}, "another run: made by hand"),
        ({"source": "A:1-9,C:1-9", "replica": "A:1-9,C:1-5:7-9"}, "of another origin"),
        (
            {"group": GroupSnapshot(str(A), "ONLINE", "PRIMARY", GtidSet())},
            "a group has blocks of numbers",
        ),
    ],
)
def test_what_may_come_in_order_is_none(case: dict[str, Any], why: str) -> None:
    one = found(**case)["T3"]
    assert one.severity is Severity.INFO, why
    assert "with older ones" not in one.explanation


@pytest.mark.parametrize(
    ("replica", "retrieved", "schemas", "is_doubted"),
    [
        ("", "", 2, True),
        ("", "", 0, False),
        ("", "", None, False),
        ("C:1", "", 2, False),
        ("", "A:1", 2, False),  # the first one is about to be applied
    ],
)
def test_a_replica_without_history_that_has_data_is_a_warning(
    replica: str, retrieved: str, schemas: int | None, *, is_doubted: bool
) -> None:
    one = found(replica=replica, retrieved=retrieved, schemas=schemas)["T3"]
    assert (one.severity is Severity.WARNING) is is_doubted
    assert ("2 schemas besides MySQL's own" in one.explanation) is is_doubted


@pytest.mark.parametrize(("earlier", "is_doubted"), [("200-203:205", False), ("", True)])
def test_a_backlog_in_the_last_run_of_a_source_with_many_holes_excludes_a_reset(
    earlier: str, *, is_doubted: bool
) -> None:
    """The source has 70 isolated transactions, and 200-209 without a hole."""
    holes = ":".join(str(2 * number) for number in range(1, 71))
    one = found(
        source=f"A:{holes}:200-209",
        replica=f"A:{holes}" + (f":{earlier}" if earlier else ""),
        retrieved="A:206-207",
        settings=PARALLEL,
    )["T2"]
    assert one.gtid_set == gtids("A:206-207")
    assert ("do not show that it executed an earlier transaction" in one.explanation) is is_doubted


def test_only_a_replica_without_history_is_asked_for_its_schemas() -> None:
    channel = a_channel("a", A, received_to=BEFORE, applied_to=BEFORE)
    a, b = a_server("a", A, gtids("A:1-9")), a_server("b", B, "", channels=(channel,))
    assert questions_of(twice(a, b))["b"] == LogQuestions(schemas=True)
    some = a_server("b", B, gtids("C:1"), channels=(channel,))
    extra = gtids("C:1")
    errant = LogQuestions(commits=(extra,), reaches=(extra,), extras=extra)
    assert questions_of(twice(a, some))["b"] == errant
    same = a_server("a", A, "")
    assert questions_of(twice(same, b)) == {}
