"""What the operator accepts: bounded by place, severity, set and day, and never what is unread."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gtid import GtidSet
from spark_audit.evaluate_batch import evaluate_rows
from tests.gtid_audit.build import half_read, holed
from tests.snapshots import A, an_unread
from topology.adapters.inventory.fleet import Roster
from topology.adapters.inventory.fleet_file import load_roster
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Severity, Verdict
from topology.documents.records import (
    audit_from_record,
    finding_from_record,
    finding_to_record,
    snapshot_to_record,
)
from topology.facts.accepted_findings import (
    AcceptedFinding,
    NotAnEntry,
    accepted_finding_from_text,
    is_accepted,
    may_be_accepted,
    with_acceptance,
)
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ThreadState

HOLE = AcceptedFinding(
    code="H1",
    severity=Severity.CRITICAL,
    reason="Left out on purpose.",
    expires=date(2026, 1, 2),  # the day of the reading
    cluster="pair",
    source="a",
    replica="b",
    gtid_set=GtidSet.parse(f"{A}:51-53"),
    ticket="OPS-12",
)

# What H1 explains as long as it is not accepted: the channel of the hole replicates by position.
POSITION = replace(
    HOLE,
    code="C3",
    severity=Severity.WARNING,
    gtid_set=GtidSet(),
    shows="auto_position = 0",
    reason="Planned for May.",
)


def accepting(*entries: AcceptedFinding, snapshot: ClusterSnapshot | None = None) -> Any:
    return audit_cluster(snapshot or holed(), Policy(accepted_findings=entries))


def test_an_accepted_finding_is_info_and_says_why() -> None:
    audit = accepting(HOLE, POSITION)
    [_, finding] = audit.findings
    assert (audit.verdict, finding.severity, finding.code) == (Verdict.OK, Severity.INFO, "H1")
    assert finding.explanation.startswith("Accepted until 2026-01-02, OPS-12: Left out on purpose.")
    assert {each.fact: each.value for each in finding.evidence if "file" in each.read_from} == {
        "accepted because": "Left out on purpose.",
        "accepted in ticket": "OPS-12",
        "accepted until": "2026-01-02",
        "severity if it were not accepted": "critical",
    }
    [plain] = accepting().findings
    assert (finding.id, finding.gtid_set) == (plain.id, plain.gtid_set)
    assert finding.evidence[: len(plain.evidence)] == plain.evidence != ()
    assert finding_from_record(finding_to_record(finding)) == finding


ALARMS: dict[str, tuple[dict[str, Any], str]] = {
    "one transaction more": (
        {"gtid_set": GtidSet.parse(f"{A}:51-52")},
        f"{A}:53 is not in the accepted set",
    ),
    "no set": ({"gtid_set": GtidSet()}, "the finding has a GTID set"),
    "the day after": ({"expires": date(2026, 1, 1)}, "the acceptance ended on 2026-01-01"),
    "more severe": ({"severity": Severity.WARNING}, "only severity warning is accepted"),
    "another code": ({"code": "E1"}, ""),
    "another cluster": ({"cluster": "orders"}, ""),
    "another source": ({"source": "c"}, ""),
    "another replica": ({"replica": "c"}, ""),
    "no replica": ({"replica": None}, ""),
    "another channel": ({"channel": "east"}, ""),
}


@pytest.mark.parametrize("changed", ALARMS)
def test_whatever_an_entry_does_not_cover_alarms(changed: str) -> None:
    fields, why = ALARMS[changed]
    audit = accepting(replace(HOLE, **fields))
    [finding] = [each for each in audit.findings if each.code == "H1"]
    [plain] = accepting().findings
    assert (audit.verdict, finding.severity) == (Verdict.CRITICAL, Severity.CRITICAL)
    assert not is_accepted(finding)
    assert finding.explanation.startswith(plain.explanation)
    assert why in finding.explanation
    assert bool(why) == (finding != plain)


@pytest.mark.parametrize(
    "fields",
    [
        {"cluster": None},
        {"source": "*", "replica": "*"},
        {"gtid_set": GtidSet.parse(f"{A}:1-99")},
        {"expires": date(2030, 1, 1)},
    ],
)
def test_a_wider_entry_covers_it_too(fields: dict[str, Any]) -> None:
    assert accepting(replace(HOLE, **fields), POSITION).verdict is Verdict.OK


def test_one_covering_entry_is_enough_and_the_longest_is_shown() -> None:
    entries = [
        replace(HOLE, expires=date(2026, 1, 1)),
        HOLE,
        replace(HOLE, expires=date(2026, 2, 1), ticket="OPS-13"),
    ]
    for order in (entries, entries[::-1]):
        audit = accepting(*order, POSITION)
        assert audit.verdict is Verdict.OK
        [_, finding] = audit.findings
        assert finding.explanation.startswith("Accepted until 2026-02-01, OPS-13")


def test_the_longest_entry_is_shown_whatever_its_text_and_equal_ones_by_their_text() -> None:
    long = replace(HOLE, expires=date(2026, 2, 1), reason="About it.")
    short = replace(HOLE, reason="Zero rows.")  # behind it by text
    other = replace(long, reason="Bounded.")
    for entries, reason in (((long, short), "About it."), ((long, other, short), "Bounded.")):
        for order in (entries, entries[::-1]):
            [finding] = [each for each in accepting(*order).findings if each.code == "H1"]
            assert reason in finding.explanation


def test_an_entry_covers_the_channel_that_it_names() -> None:
    [plain] = accepting().findings
    east = replace(plain, channel="east")
    [covered] = with_acceptance([east], [replace(HOLE, channel="east")])
    assert is_accepted(covered)
    assert [*with_acceptance([east], [HOLE])] == [east]


def test_an_entry_says_by_whom_it_was_accepted() -> None:
    entry = replace(HOLE, by="Anna, DBA")
    assert accepted_finding_from_text(entry.to_text()) == entry
    [finding] = with_acceptance(accepting().findings, [entry])
    assert finding.explanation.startswith("Accepted by Anna, DBA until 2026-01-02, OPS-12: Left")
    assert {each.fact: each.value for each in finding.evidence}["accepted by"] == "Anna, DBA"
    [finding] = with_acceptance(accepting().findings, [HOLE])
    assert "accepted by" not in {each.fact for each in finding.evidence}


def test_the_fleet_file_says_by_whom(tmp_path: Path) -> None:
    policy = roster(tmp_path, FLEET.replace("ticket: OPS-12", 'by: "Anna, DBA"')).policy
    assert policy.accepted_findings[-1] == replace(HOLE, ticket="", by="Anna, DBA")


def test_an_entry_without_a_ticket_shows_none() -> None:
    [finding] = with_acceptance(accepting().findings, [replace(HOLE, ticket="")])
    assert "accepted in ticket" not in {each.fact for each in finding.evidence}
    assert finding.explanation.startswith("Accepted until 2026-01-02: Left out on purpose.")


def test_an_entry_with_a_set_does_not_cover_a_finding_without_one() -> None:
    audit = accepting(HOLE, replace(POSITION, gtid_set=HOLE.gtid_set, shows=""))
    [finding] = [each for each in audit.findings if each.code == "C3"]
    assert finding.severity is Severity.WARNING
    assert "the finding has no set, unlike the accepted one" in finding.explanation


def test_unread_facts_are_never_accepted() -> None:
    """Neither by an entry for them, nor by one for a finding beside them."""
    with pytest.raises(ValueError, match="U1: facts that were not read"):
        replace(HOLE, code="U1")
    with pytest.raises(ValueError, match="S2: an entry cannot limit how far it grows"):
        replace(HOLE, code="S2")
    both = holed()
    half = replace(both, first=(*both.first, an_unread("c")), last=(*both.last, an_unread("c")))
    [entry] = [replace(HOLE, source="*", replica="*")]
    audit = accepting(entry, snapshot=half)
    assert audit.verdict is Verdict.UNKNOWN
    assert audit.unknown == accepting(snapshot=half).unknown != ()
    [plain] = accepting().findings
    doubtful = replace(plain, grade=Grade.UNKNOWN)
    assert [*with_acceptance([doubtful], [HOLE])] == [doubtful]
    assert accepting(HOLE, snapshot=half_read()).verdict is Verdict.UNKNOWN


def stopped_too() -> ClusterSnapshot:
    """The hole, and the same channel's threads stopped by hand: H1 explains A7."""
    plain = holed()

    def stop(server: Any) -> Any:
        if server.name != "b":
            return server
        [channel] = server.channels
        stopped = replace(channel, receiver=ThreadState.STOPPED, applier=ThreadState.STOPPED)
        return replace(server, channels=(stopped,))

    return replace(plain, first=tuple(map(stop, plain.first)), last=tuple(map(stop, plain.last)))


def test_an_accepted_hole_does_not_become_an_errant_transaction() -> None:
    """a has A:51-53 extra, seen as a replica of b: the same transactions, which are accepted."""
    assert [finding.code for finding in accepting(HOLE).findings] == ["C3", "H1"]


def test_an_accepted_cause_does_not_hide_its_symptom() -> None:
    plain = accepting(snapshot=stopped_too())
    assert "A7" not in {finding.code for finding in plain.findings}
    [hole] = [finding for finding in plain.findings if finding.code == "H1"]
    assert hole.gtid_set == HOLE.gtid_set
    audit = accepting(HOLE, POSITION, snapshot=stopped_too())
    severities = {finding.code: finding.severity for finding in audit.findings}
    assert severities["H1"] is Severity.INFO
    assert severities["A7"] is not Severity.INFO
    assert audit.verdict is not Verdict.OK


def test_a_fleet_in_columns_gives_the_same_result() -> None:
    clusters = [holed("pair"), holed("other"), stopped_too()]
    clusters[2] = _renamed(clusters[2], "stopped")
    rows = [snapshot_to_record(each) for one in clusters for each in (*one.first, *one.last)]
    entries = (HOLE, POSITION, replace(HOLE, cluster="stopped"))
    policy = Policy(accepted_findings=entries)
    table = evaluate_rows(table_of_records(rows, SNAPSHOT_SCHEMA), policy=policy)
    found = {audit.cluster: audit for audit in map(audit_from_record, records_of_table(table))}
    assert found == {one.cluster: audit_cluster(one, policy) for one in clusters}
    assert {name: audit.verdict for name, audit in found.items()}["pair"] is Verdict.OK
    assert found["other"].verdict is Verdict.CRITICAL


def _renamed(snapshot: ClusterSnapshot, name: str) -> ClusterSnapshot:
    return ClusterSnapshot(
        name,
        first=tuple(replace(each, cluster=name) for each in snapshot.first),
        last=tuple(replace(each, cluster=name) for each in snapshot.last),
    )


def test_a_finding_without_a_set_is_accepted_as_it_was_shown() -> None:
    """One more setting, filter or value is another fault under the same code."""
    for shows in ("", "auto_position = 1", "auto_position = 0; and more"):
        audit = accepting(HOLE, replace(POSITION, shows=shows))
        [finding] = [each for each in audit.findings if each.code == "C3"]
        assert finding.severity is Severity.WARNING
        assert "its evidence is not the accepted one, but: auto_position = 0" in finding.explanation


def test_only_what_alarms_and_has_a_limit_may_be_accepted() -> None:
    [plain] = accepting().findings
    assert may_be_accepted(plain)
    unfits = ({"severity": Severity.INFO}, {"code": "A2"}, {"code": "U3"}, {"grade": Grade.UNKNOWN})
    for unfit in unfits:
        assert not may_be_accepted(replace(plain, **unfit)), unfit
    remark = replace(plain, severity=Severity.INFO)
    assert [*with_acceptance([remark], [HOLE])] == [remark]


@pytest.mark.parametrize("code", ["S2", "A1", "A2", "A3", "A4", "A5", "A6", "A8", "A9"])
def test_what_grows_without_a_limit_cannot_be_accepted(code: str) -> None:
    """More and more transactions wait behind an applier that an error stopped."""
    with pytest.raises(ValueError, match=f"{code}: an entry cannot limit"):
        replace(HOLE, code=code)


def test_an_entry_travels_as_text() -> None:
    assert accepted_finding_from_text(HOLE.to_text()) == HOLE
    assert accepted_finding_from_text(POSITION.to_text()) == POSITION
    least = AcceptedFinding("C5", Severity.WARNING, "x", date(2026, 1, 1))
    assert accepted_finding_from_text(least.to_text()) == least
    for wrong in ("", "[]", "{}", HOLE.to_text().replace("H1", "U1"), '{"code": "H1"}'):
        with pytest.raises(NotAnEntry):
            accepted_finding_from_text(wrong)


def test_an_entry_needs_a_reason_and_a_severity() -> None:
    for wrong in ({"reason": " "}, {"severity": Severity.INFO}):
        with pytest.raises(ValueError, match="H1: "):
            replace(HOLE, **wrong)


# -- the fleet file -------------------------------------------------------------------------------

FLEET = f"""\
defaults: {{user: auditor}}
policy:
  accepted_findings:
    - code: C5
      server: "*"
      severity: warning
      reason: Relaxed in the whole fleet.
      expires: 2026-06-30
    - code: C3
      source: a
      replica: b
      shows: auto_position = 0
      severity: warning
      reason: Planned for May.
      expires: 2026-06-30
clusters:
  - name: pair
    servers: [{{name: a, host: 10.0.0.1}}, {{name: b, host: 10.0.0.2}}]
    accepted_findings:
      - code: H1
        source: a
        replica: b
        set: "{A}:51-53"
        severity: critical
        reason: Left out on purpose.
        ticket: OPS-12
        expires: 2026-01-02
"""


def roster(tmp_path: Path, text: str) -> Roster:
    (tmp_path / "fleet.yaml").write_text(text)
    return load_roster(tmp_path / "fleet.yaml", environment={})


def test_the_fleet_file_has_entries_of_the_fleet_and_of_clusters(tmp_path: Path) -> None:
    policy = roster(tmp_path, FLEET).policy
    everywhere = AcceptedFinding(
        "C5", Severity.WARNING, "Relaxed in the whole fleet.", date(2026, 6, 30), replica="*"
    )
    position = replace(POSITION, cluster=None, ticket="", expires=date(2026, 6, 30))
    assert policy.accepted_findings == (position, everywhere, HOLE)
    assert audit_cluster(holed(), policy).verdict is Verdict.OK
    assert audit_cluster(_renamed(holed(), "other"), policy).verdict is Verdict.CRITICAL


WRONG = {
    "an unread fact": ("code: H1", "code: U1", "20: .*facts that were not read cannot"),
    "no limit": ("code: H1", "code: S2", "20: .*an entry cannot limit how far this fault grows"),
    "no code": ("code: H1", "code: H99", "20: .*is not the code of a finding"),
    "no reason": ("reason: Left out on purpose.", "reason: ' '", "25: .*reason: is empty"),
    "an absent reason": ("        reason: Left out on purpose.\n", "", "20: .*reason: is missing"),
    "no day": ("expires: 2026-01-02", 'expires: ""', "27: .*expires: "),
    "an absent day": ("        expires: 2026-01-02\n", "", "20: .*expires: is missing"),
    "not a day": ("expires: 2026-01-02", "expires: soon", "27: .*expires: "),
    "no set": (f"{A}:51-53", "51-53", "23: .*set: is not a GTID set"),
    "info": ("severity: critical", "severity: info", "24: .*severity: "),
    "two places": ("source: a", "server: a", "20: .*has a server and also"),
    "a typo": ("ticket:", "tiket:", "26: .*unknown key; did you mean ticket"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_entry_is_reported_with_its_place(kind: str, tmp_path: Path) -> None:
    before, after, said = WRONG[kind]
    assert FLEET.count(before) >= 1
    with pytest.raises(InventoryProblem) as refused:
        roster(tmp_path, FLEET.replace(before, after))
    assert re.search(rf"line {said}", str(refused.value)), str(refused.value)
