"""The audit after a plan: what the plan did not announce decides its status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from gtid import GtidSet
from repair.applying.audit_afterwards import compare_with_plan, made_alike
from repair.applying.written_plan import WrittenPlan, read_plan
from repair.content.row_versions import RowsRead, RowVersions
from repair.model.strategy_case import LEFT_OUT
from repair.render import PLAN, render_files
from repair.repair_plan import Afterwards
from tests.repair.script_cases import finding, full_plan, steps
from topology.catalogue.findings import ClusterAudit, Severity, Unknown, Verdict, verdict_of

ABOVE_INFO = (Severity.WARNING, Severity.CRITICAL)


def plan(*announced: str, gtids: GtidSet | None = None) -> WrittenPlan:
    found = read_plan(render_files(full_plan(steps()))[PLAN])
    known = finding().gtid_set if gtids is None else gtids
    return replace(found, announced=dict.fromkeys(announced, known))


def audit(severity: Severity, *, is_unread: bool = False) -> ClusterAudit:
    findings = (replace(finding(), severity=severity),)
    unknown = (Unknown("pair", "b", "channels", "access denied"),) if is_unread else ()
    verdict = verdict_of(findings=findings, unknown=unknown)
    return ClusterAudit("pair", verdict, ("a", "b"), findings, unknown, read_at=None)


@pytest.mark.parametrize("severity", ABOVE_INFO)
def test_what_was_not_announced_counts(severity: Severity) -> None:
    verdict, text = compare_with_plan(audit(severity), plan())
    assert verdict is audit(severity).verdict
    assert "the plan did not announce: " in text
    assert finding().code in text


@pytest.mark.parametrize("severity", ABOVE_INFO)
def test_what_was_announced_does_not(severity: Severity) -> None:
    verdict, text = compare_with_plan(audit(severity), plan(finding().id))
    assert verdict is Verdict.OK
    assert text.startswith(f"the audit afterwards: {audit(severity).verdict.value}. ")
    assert text.endswith(f"the plan announced: {finding().code}")
    assert "did not announce" not in text


def test_ok_is_not_said_without_the_data_that_is_left_out() -> None:
    """An audit reports it only if it compares contents."""
    sound = replace(audit(Severity.INFO), findings=(), verdict=Verdict.OK)
    warning = f"{LEFT_OUT}what it did is left out"
    verdict, text = compare_with_plan(sound, replace(plan(), warnings=("other", warning)))
    told = "As the plan announced, what it did is left out"
    assert (verdict, text) == (Verdict.OK, f"the audit afterwards: OK. {told}")
    # What a repair left out that was not finished, the operator of this one may not know.
    verdict, text = compare_with_plan(sound, plan(), earlier=("plan x had announced: it did",))
    told = "the audit afterwards: OK. plan x had announced: it did"
    assert (verdict, text) == (Verdict.WARNING, told)


@pytest.mark.parametrize(("code", "counts"), [("E1", True), ("H1", True), ("A7", False)])
def test_one_transaction_more_is_another_fault(code: str, *, counts: bool) -> None:
    """What is errant or missing grows by faults; what a stopped channel holds back, by itself."""
    grown = replace(audit(Severity.CRITICAL).findings[0], code=code)
    assert grown.gtid_set
    found = replace(audit(Severity.CRITICAL), findings=(grown,))
    verdict, _ = compare_with_plan(found, plan(grown.id, gtids=GtidSet()))
    assert (verdict is Verdict.CRITICAL) is counts
    assert compare_with_plan(found, plan(grown.id))[0] is Verdict.OK


def differing_row() -> RowVersions:
    table = RowTable("d", "t", (RowColumn(LONG, 0, "id", is_unsigned=False),), (0,), Origin.BINLOG)
    return RowVersions(table, "`id` = 1", (1,), None, ())


@pytest.mark.parametrize(
    ("read", "is_ok", "text"),
    [
        (RowsRead(equal_count=2), True, "the rows of E4 were read again: 2 are equal"),
        (RowsRead((differing_row(),)), False, "1 row of E4 differs, among them d.t, `id` = 1"),
        (
            RowsRead(equal_count=2, unread=("d.t: timeout",)),
            False,
            "rows of E4 were not read: d.t: timeout",
        ),
        (RowsRead(), False, "rows of E4 were not read: none is left"),
        (None, False, "the plan did not announce: E4"),
    ],
)
def test_rows_that_were_made_alike_are_as_announced_only_if_they_are_equal(
    read: RowsRead | None, text: str, *, is_ok: bool
) -> None:
    """The audit compares logs, which no step changes: it reports the same again."""
    shown = replace(finding(), code="E4")
    found = replace(
        audit(Severity.CRITICAL), findings=(replace(shown, severity=Severity.CRITICAL),)
    )
    written = replace(plan(shown.id), made_alike=frozenset({shown.id}))
    assert [each.id for each in made_alike(found, written)] == [shown.id]
    rows = {} if read is None else {shown.id: read}
    verdict, said = compare_with_plan(found, written, rows)
    assert (verdict is Verdict.OK) is is_ok
    assert text in said


def test_another_gtid_with_two_contents_is_another_fault() -> None:
    shown = replace(finding(), code="E4", severity=Severity.CRITICAL)
    found = replace(audit(Severity.CRITICAL), findings=(shown,))
    before = replace(plan(shown.id, gtids=GtidSet()), made_alike=frozenset({shown.id}))
    assert made_alike(found, before) == ()
    assert compare_with_plan(found, before)[0] is Verdict.CRITICAL


def test_info_needs_no_announcement() -> None:
    assert compare_with_plan(audit(Severity.INFO), plan()) == (
        Verdict.OK,
        "the audit afterwards: OK",
    )


def test_what_could_not_be_read_is_not_ok() -> None:
    verdict, text = compare_with_plan(audit(Severity.INFO, is_unread=True), plan())
    assert verdict is Verdict.UNKNOWN
    assert "not read: b, channels" in text


def test_an_announced_other_content_is_compared_again() -> None:
    """No set shows it once the applier has passed it, so an audit alone might report OK."""
    known = finding().gtid_set
    later = Afterwards("f-8", "E4", "other", "a → b", "warning", "", is_new=False, gtids=str(known))
    whole = full_plan(steps())
    for others, expected in (((later,), known), ((), GtidSet())):
        made = replace(whole, afterwards=(*whole.afterwards, *others))
        assert read_plan(render_files(made)[PLAN]).other_contents == expected
