from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from gtid import GtidSet
from gtid_audit.service.finding_changes import (
    ChangeKind,
    ComparedAudit,
    OpenFinding,
    compared_with,
)
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import NOON, A
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Severity, Unknown
from topology.readings.snapshot import ClusterSnapshot


def audit_of(snapshot: ClusterSnapshot, minutes: int = 0) -> ClusterAudit:
    """Return the audit as if it had been made some minutes after noon."""
    audit = audit_cluster(snapshot)
    assert audit.read_at is not None
    moment = audit.read_at + timedelta(minutes=minutes)
    findings = tuple(replace(each, first_seen=moment, last_seen=moment) for each in audit.findings)
    return replace(audit, read_at=moment, findings=findings)


def kinds(compared: ComparedAudit) -> list[tuple[str, str]]:
    return sorted((each.kind.value, each.finding.code) for each in compared.changes)


def codes(audit: ClusterAudit) -> list[str]:
    return sorted(each.code for each in audit.findings)


def test_a_finding_comes_stays_and_goes() -> None:
    first = compared_with(audit_of(holed()), ())
    assert [each for _, each in kinds(first)] == codes(first.audit) != []
    assert {each for each, _ in kinds(first)} == {"came"}
    second = compared_with(audit_of(holed(), 1), first.open)
    assert second.changes == ()
    assert {each.first_seen for each in second.audit.findings} == {
        each.first_seen for each in first.audit.findings
    }
    third = compared_with(audit_of(healthy(), 2), second.open)
    assert kinds(third) == [("gone", each) for each in codes(second.audit)]
    assert third.open == ()
    fourth = compared_with(audit_of(holed(), 3), third.open)
    assert {each for each, _ in kinds(fourth)} == {"came"}
    assert all(each.first_seen >= NOON + timedelta(minutes=3) for each in fourth.audit.findings)


def test_an_audit_that_could_not_read_all_ends_nothing() -> None:
    first = compared_with(audit_of(holed()), ())
    unread = compared_with(audit_of(half_read(), 1), first.open)
    assert "gone" not in {each for each, _ in kinds(unread)}
    after = compared_with(audit_of(holed(), 2), unread.open)
    assert ("came", "H1") not in kinds(after)
    [hole] = [each for each in after.audit.findings if each.code == "H1"]
    assert hole.first_seen == next(
        each.first_seen for each in first.audit.findings if each.code == "H1"
    )


def test_an_audit_of_which_nothing_was_read_changes_nothing() -> None:
    first = compared_with(audit_of(holed()), ())
    nothing = replace(audit_of(healthy()), read_at=None)
    after = compared_with(nothing, first.open)
    assert (after.open, after.changes) == (first.open, ())


def names(found: Iterable[OpenFinding]) -> list[str]:
    return sorted(each.code for each in found)


def test_a_finding_lasts_while_a_server_hangs() -> None:
    """An alert on it must not end because nothing can be read."""
    first = compared_with(audit_of(holed()), ())
    assert first.lasting == ()
    [hole] = [each for each in first.audit.findings if each.code == "H1"]
    found = first
    for minutes in (1, 2):
        found = compared_with(audit_of(half_read(), minutes), found.open, found.seen_without)
        assert "H1" not in codes(found.audit)
        assert hole in found.lasting, "as it was last seen"
    back = compared_with(audit_of(holed(), 3), found.open, found.seen_without)
    assert ("H1" in codes(back.audit), back.lasting) == (True, ())
    gone = compared_with(audit_of(healthy(), 4), found.open, found.seen_without)
    assert (gone.lasting, "H1" in {code for _, code in kinds(gone)}) == ((), True)
    nothing = replace(audit_of(half_read()), read_at=None, findings=())
    assert hole in compared_with(nothing, first.open, first.seen_without).lasting


def test_what_is_never_read_keeps_no_finding() -> None:
    """It was not read when the finding was seen either: the audit could have found it again."""
    unread = audit_of(half_read()).unknown
    found = compared_with(replace(audit_of(holed()), unknown=unread), ())
    repaired = replace(audit_of(healthy(), 1), unknown=unread)
    assert compared_with(repaired, found.open, found.seen_without).lasting == ()
    more = (*unread, Unknown("pair", "a", "channels", "timeout"))
    hanging = replace(repaired, unknown=more)
    assert names(compared_with(hanging, found.open, found.seen_without).lasting) == ["H1"]


def test_what_another_process_showed_lasts_for_a_day() -> None:
    known = compared_with(audit_of(holed()), ()).open
    [hole] = [each for each in known if each.code == "H1"]
    assert isinstance(hole, Finding)
    contents = replace(hole, code="E4")
    unread = replace(hole, code="U1")
    for minutes, expected in ((60, ["H1"]), (25 * 60, [])):
        audit = replace(audit_of(half_read(), minutes), findings=())
        assert names(compared_with(audit, (hole, contents, unread)).lasting) == expected
    shown = {each.id: frozenset[tuple[str, str]]() for each in (hole, contents, unread)}
    later = replace(audit_of(half_read(), 1), findings=())
    assert names(compared_with(later, (hole, contents, unread), shown).lasting) == ["E4", "H1"]
    assert names(compared_with(later, (hole, contents), {}).lasting) == [], "not shown before"


def one(**changes: object) -> ClusterAudit:
    audit = audit_of(holed())
    [hole] = [each for each in audit.findings if each.code == "H1"]
    return replace(audit, findings=(replace(hole, **changes),))  # type: ignore[arg-type]


def test_what_is_a_change() -> None:
    more = GtidSet.parse(f"{A}:50-53")
    for changes, fields in (
        ({}, ()),
        ({"severity": Severity.WARNING}, ("severity",)),
        ({"gtid_set": more}, ("gtid_set",)),
        ({"deadline": NOON}, ("deadline",)),
        ({"severity": Severity.INFO, "gtid_set": more, "deadline": NOON}, ("severity",)),
    ):
        compared = compared_with(one(**changes), one().findings)
        assert [each.fields for each in compared.changes] == ([fields] if fields else [])
        assert {each.kind for each in compared.changes} <= {ChangeKind.CHANGED}
    moved = compared_with(one(deadline=NOON), one(deadline=NOON + timedelta(1)).findings)
    assert moved.changes == (), "logs are written to: a deadline moves with every audit"


def test_the_set_of_a_backlog_is_no_event() -> None:
    known = one(severity=Severity.INFO).findings
    more = one(severity=Severity.INFO, gtid_set=GtidSet.parse(f"{A}:50-53"))
    assert compared_with(more, known).changes == ()
    assert isinstance(known[0], Finding)
