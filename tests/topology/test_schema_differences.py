"""S1 and S2: when a difference is a finding, how severe it is, and what is unknown.

The usual cases are stories of scenarios.txt.
"""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from gtid import GtidSet
from tests.definitions import READ_AT, a_compared_pair, a_ddl, a_reading, an_object
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.definition_reading import ComparedDefinitions
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.version import ServerVersion
from topology.rules.schema_differences import DRIFT_COMMAND, schema_findings

ALL = f"{A}:1-9"
PENDING = GtidSet.parse(f"{A}:7")
OLD = READ_AT - timedelta(hours=1)


def pair(executed: str = ALL, **channel: Any) -> ClusterSnapshot:
    """Return a source a and its replica b, which has executed this."""
    received = {"gtid_retrieved": GtidSet.parse(ALL), **channel}
    return a_cluster(
        "pair",
        a_server("a", A, ALL),
        a_server("b", B, executed, channels=(a_channel("a", A, **received),)),
    )


def audited(
    compared: ComparedDefinitions, *, snapshot: ClusterSnapshot | None = None
) -> ClusterAudit:
    whole = (snapshot or pair()).with_definitions(a_reading(compared))
    return audit_cluster(whole)


def of_code(audit: ClusterAudit, code: str) -> list[Finding]:
    return [each for each in audit.findings if each.code == code]


def test_without_definitions_nothing_is_reported_or_unknown() -> None:
    audit = audit_cluster(pair())
    assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


@pytest.mark.parametrize(
    ("version", "state", "was", "is_proved"),
    [
        ((5, 6, 24), "System lock", ALL, False),  # at what no set lists: it may be this DDL
        ((5, 6, 24), "System lock", f"{A}:1-8", True),  # it moves, and shows what it applies
        ((5, 6, 24), "Slave has read all relay log; waiting for the slave I/O thread", ALL, True),
        ((9, 7, 4), "Waiting for table metadata lock", ALL, True),  # every transaction is in a set
    ],
)
def test_an_applier_of_5_6_may_be_at_ddl_that_no_set_lists(
    version: tuple[int, int, int], state: str, was: str, *, is_proved: bool
) -> None:
    whole = pair(applier_state=state)
    a, b = (replace(each, version=ServerVersion(*version)) for each in whole.last)
    first = (whole.first[0], replace(whole.first[1], gtid_executed=GtidSet.parse(was)))
    compared = a_compared_pair(differing=(an_object(is_severe=True),))
    [found] = of_code(audited(compared, snapshot=replace(whole, first=first, last=(a, b))), "S2")
    assert (found.grade is Grade.PROVED) is is_proved
    assert found.severity is (Severity.CRITICAL if is_proved else Severity.WARNING)
    text = "the applier of b is busy, and 5.6 does not list the last transaction that it had"
    assert (text in found.explanation) is not is_proved


def test_definitions_that_are_alike_are_silent() -> None:
    audit = audited(a_compared_pair())
    assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


@pytest.mark.parametrize(
    ("changes", "severity", "grade"),
    [
        ({}, Severity.WARNING, Grade.PROVED),
        ({"is_severe": True}, Severity.CRITICAL, Grade.PROVED),
        ({"is_severe": True, "is_proved": False}, Severity.WARNING, Grade.LIKELY),
        ({"is_proved": False, "is_filtered": True}, Severity.INFO, Grade.LIKELY),
        ({"is_proved": False, "may_be_of_another_source": True}, Severity.INFO, Grade.LIKELY),
    ],
)
def test_the_severity_of_one_object(
    changes: dict[str, Any], severity: Severity, grade: Grade
) -> None:
    [found] = of_code(audited(a_compared_pair(differing=(an_object(**changes),))), "S2")
    assert (found.severity, found.grade) == (severity, grade)
    assert (found.source, found.replica, found.channel) == ("a", "b", "")


def test_an_info_beside_a_fault_does_not_lower_its_grade() -> None:
    filtered = an_object("u", is_proved=False, is_filtered=True)
    [found] = of_code(audited(a_compared_pair(differing=(filtered, an_object()))), "S2")
    assert (found.severity, found.grade) == (Severity.WARNING, Grade.PROVED)
    severe = an_object("w", is_severe=True, is_proved=False, causes=("a filter was not read",))
    both = a_compared_pair(differing=(an_object(is_severe=True), severe))
    [found] = of_code(audited(both), "S2")
    assert (found.severity, found.grade) == (Severity.CRITICAL, Grade.PROVED)
    assert "table app.w may be harmless: a filter was not read" in found.explanation.replace(
        " it is", ""
    )


def test_no_combination_of_facts_is_silent_about_a_difference() -> None:
    """Each object that differs is S2, UNKNOWN, or listed by S1, whatever else is known of it."""
    behind = pair(f"{A}:1-6")
    for proved, filtered, elsewhere, severe, pending, searched in product((False, True), repeat=6):
        waits = PENDING if pending else GtidSet()
        one = an_object(
            is_proved=proved and searched and not (pending or filtered or elsewhere),
            is_filtered=filtered,
            may_be_of_another_source=elsewhere,
            is_severe=severe,
            pending=waits,
            is_searched=searched,
        )
        ddl = (a_ddl(f"{A}:7"),) if pending else ()
        audit = audited(a_compared_pair(differing=(one,), behind=ddl), snapshot=behind)
        shown = [
            each for each in audit.findings if one.label in f"{each.explanation}{each.evidence}"
        ]
        open_ = [each for each in audit.unknown if one.label in each.reason]
        assert shown or open_, one
        if not one.is_proved:
            assert Severity.CRITICAL not in {each.severity for each in shown}


def test_the_command_compares_the_two_servers_again() -> None:
    [found] = of_code(audited(a_compared_pair(differing=(an_object(),))), "S2")
    places = '"mysql://u@a.example:3306/" "mysql://u@b.example:3306/?ssl=required"'
    shown = [each.value for each in found.evidence if each.fact == DRIFT_COMMAND]
    assert shown == [f"gtid-audit schema drift {places} --schema app"]
    two = a_compared_pair(differing=(an_object(), an_object(schema="other")))
    [found] = of_code(audited(two), "S2")
    assert found.evidence[-1].value == f"gtid-audit schema drift {places}"


def test_an_error_of_the_applier_is_connected_with_the_difference() -> None:
    stopped = pair(
        f"{A}:1-6", applier_errno=1054, applier_error="Unknown column 'c' … 'ALTER TABLE t …'"
    )
    audit = audited(a_compared_pair(differing=(an_object(),)), snapshot=stopped)
    [found] = of_code(audit, "S2")
    assert "The applier of b stopped with error 1054" in found.explanation
    [error] = of_code(audit, "A3")
    assert "table app.t differs from a in a way that leads to this error" in error.explanation
    for errno, text in ((1062, "table app.t"), (1054, "Unknown column 'c' … 'ALTER TABLE t2 …'")):
        other = pair(f"{A}:1-6", applier_errno=errno, applier_error=text)
        audit = audited(a_compared_pair(differing=(an_object(),)), snapshot=other)
        [found] = of_code(audit, "S2")
        assert "stopped" not in found.explanation
        assert not any("S2" in each.explanation for each in audit.findings)


def test_ddl_that_waits_is_s1_until_the_limit_of_the_policy() -> None:
    waiting = a_compared_pair(behind=(a_ddl(f"{A}:7", at=OLD), a_ddl(f"{A}:8", at=None)))
    whole = pair(f"{A}:1-6").with_definitions(a_reading(waiting))
    for limit, severity in ((3000, Severity.WARNING), (3700, Severity.INFO)):
        audit = audit_cluster(whole, Policy(ddl_wait_seconds_max=limit))
        [found] = of_code(audit, "S1")
        assert (found.severity, found.grade) == (severity, Grade.PROVED)
        assert found.gtid_set == GtidSet.parse(f"{A}:7-8")


def test_source_delay_is_added_to_the_limit() -> None:
    waiting = a_compared_pair(behind=(a_ddl(f"{A}:7", at=OLD),))
    for seconds, severity in ((0, Severity.WARNING), (3600, Severity.INFO)):
        delayed = pair(f"{A}:1-6", delay_seconds=seconds)
        [found] = of_code(audited(waiting, snapshot=delayed), "S1")
        assert found.severity is severity


def test_more_than_one_apart_without_a_way_is_a_warning() -> None:
    one, two = a_ddl(f"{A}:7"), a_ddl(f"{A}:8")
    for ddl, severity in (((one,), Severity.INFO), ((one, two), Severity.WARNING)):
        whole = pair(f"{A}:1-6").with_definitions(a_reading(a_compared_pair(behind=ddl)))
        [found] = schema_findings(gather_facts(whole, Policy()), ())
        assert (found.code, found.severity) == ("S1", severity)
        assert "No finding of this audit shows how it will arrive" in found.explanation


def test_a_finding_that_keeps_ddl_back_is_not_told_twice() -> None:
    whole = pair(f"{A}:1-6").with_definitions(
        a_reading(a_compared_pair(behind=(a_ddl(f"{A}:7", at=OLD), a_ddl(f"{A}:8", at=OLD))))
    )
    facts = gather_facts(whole, Policy())
    [s1] = schema_findings(facts, ())
    for code, channel in (("H1", ""), ("P1", ""), ("H8", "")):
        hole = replace(s1, code=code, gtid_set=GtidSet.parse(f"{A}:7"), channel=channel)
        [left] = schema_findings(facts, (hole,))
        assert left.gtid_set == GtidSet.parse(f"{A}:8")
        elsewhere = replace(hole, replica="c")
        assert schema_findings(facts, (elsewhere,)) == (s1,)
        quiet = replace(hole, severity=Severity.INFO)
        assert schema_findings(facts, (quiet,)) == (s1,)
    stopped = replace(s1, code="A3", severity=Severity.CRITICAL, gtid_set=GtidSet())
    assert schema_findings(facts, (stopped,)) == ()
    assert schema_findings(facts, (replace(stopped, source="c"),)) == (s1,)
    errant = replace(s1, code="E1", source="b", replica="a", gtid_set=GtidSet.parse(f"{A}:7-8"))
    assert schema_findings(facts, (errant,)) == ()


def test_of_a_one_way_channel_only_the_replica_can_be_behind() -> None:
    ahead = a_compared_pair(ahead=(a_ddl(f"{B}:1"),))
    assert of_code(audited(ahead), "S1") == []
    [found] = of_code(audited(replace(ahead, is_mutual=True)), "S1")
    assert (found.source, found.replica) == ("b", "a")


def test_a_pair_of_which_a_server_is_gone_is_left_out() -> None:
    gone = a_compared_pair(replica="c", differing=(an_object(),))
    assert audited(gone).findings == ()


# -- the words ------------------------------------------------------------------------------------


def explained(compared: ComparedDefinitions, code: str, **channel: Any) -> str:
    snapshot = pair(f"{A}:1-6", **channel) if compared.behind else pair(**channel)
    [found] = of_code(audited(compared, snapshot=snapshot), code)
    return found.explanation


def test_the_words_of_s1() -> None:
    one, two = a_ddl(f"{A}:7"), a_ddl(f"{A}:8")
    waiting = an_object(pending=PENDING, is_proved=False)
    other = an_object("u", pending=GtidSet.parse(f"{B}:1"), is_proved=False)
    assert explained(a_compared_pair(behind=(one,), differing=(waiting, other)), "S1") == (
        "b has not applied 1 DDL transaction of a. It is on its way (T2, likely). Until then, table app.t may"
        " differ."
    )
    assert explained(a_compared_pair(behind=(one, two)), "S1") == (
        "b has not applied 2 DDL transactions of a. It is on its way (T2, likely)."
    )
    late = replace(one, committed_at=OLD)
    assert explained(a_compared_pair(behind=(late,)), "S1", delay_seconds=60) == (
        "b has not applied 1 DDL transaction of a. 1 DDL transaction waits for more than 6 minutes."
    )
    assert "2 DDL transactions wait for more than 5 minutes." in explained(
        a_compared_pair(behind=(late, replace(two, committed_at=OLD))), "S1"
    )


def test_the_words_of_s2() -> None:
    assert explained(a_compared_pair(differing=(an_object(),)), "S2") == (
        "1 object is not defined on b as on a: table app.t (column fewer)."
    )
    severe = an_object(is_severe=True, rows="the applier stops with 1677")
    assert explained(a_compared_pair(differing=(an_object("u"), severe)), "S2") == (
        "2 objects are not defined on b as on a: table app.u (column fewer), table app.t (column"
        " fewer). Rows of the source: table app.t: the applier stops with 1677."
    )
    likely = an_object(is_proved=False, causes=("x", "y", "x", "z", "not shown"))
    assert explained(a_compared_pair(differing=(likely,)), "S2").endswith(
        " It may be harmless: x; or y; or z."
    )
    both = a_compared_pair(differing=(replace(likely, name="u"), an_object()))
    assert explained(both, "S2").endswith(" table app.u may be harmless: x; or y; or z.")
    unlinked = a_compared_pair(has_channel=False, differing=(severe,))
    assert " No channel connects the two servers." in explained(unlinked, "S2")
    schema = an_object("", kind="schema", schema="gone", classes=("schema fewer",))
    assert ": schema gone (schema fewer)." in explained(a_compared_pair(differing=(schema,)), "S2")


def test_long_lists_are_counted() -> None:
    many = tuple(an_object(f"t{number:02}") for number in range(12))
    [found] = of_code(audited(a_compared_pair(differing=many)), "S2")
    assert ", table app.t04 (column fewer), 7 more." in found.explanation
    assert [each.fact for each in found.evidence][-3:] == [
        "table app.t09",
        "more objects that differ",
        DRIFT_COMMAND,
    ]
    assert found.evidence[-2].value == "2"
    ddl = tuple(a_ddl(f"{A}:{number}") for number in range(2, 9))
    snapshot = pair(f"{A}:1")
    [found] = of_code(audited(a_compared_pair(behind=ddl), snapshot=snapshot), "S1")
    assert [each.fact for each in found.evidence] == [
        *["DDL not applied"] * 5,
        "DDL not applied, more",
    ]
    assert found.evidence[-1].value == "2"
    ten = of_code(audited(a_compared_pair(differing=many[:10])), "S2")
    assert "more objects that differ" not in {each.fact for each in ten[0].evidence}


def test_the_evidence_has_the_event_and_the_statement() -> None:
    made = a_ddl(f"{B}:1", text="ALTER  TABLE\n t DROP c" + " " * 10 + "/* " + "x" * 300)
    unread = a_ddl(f"{B}:2", at=None, text="")
    one = an_object(made_by=(made, unread), changes=("- `c` int", "+ `c` bigint"))
    [found] = of_code(audited(a_compared_pair(differing=(one,))), "S2")
    first, event, other, _ = found.evidence
    assert first.value == (
        "column fewer; warning, proved; errors 1054, 1091 may follow; - `c` int | + `c` bigint"
    )
    assert (first.read_from, event.fact) == ("b", "table app.t made by")
    assert event.value.startswith(f"{B}:1, 2026-01-02 12:00:09 UTC: ALTER TABLE t DROP c /* x")
    assert event.value.endswith("x…")
    assert other.value == f"{B}:2: its content could not be read"
    plain = an_object(errors=(), changes=(), is_proved=False, is_filtered=True)
    [found] = of_code(audited(a_compared_pair(differing=(plain,))), "S2")
    assert found.evidence[0].value == "column fewer; info, likely"


def test_what_is_unknown_and_why() -> None:
    unsearched = an_object(is_searched=False, is_proved=False)
    pairs = a_compared_pair(unsearched="purged", differing=(unsearched, an_object("u")))
    found = audited(pairs)
    assert [(each.server, each.fact) for each in found.unknown] == [
        ("b", "definitions"),
        ("b", "schema version"),
    ]
    assert found.unknown[0].reason.startswith("table app.t differs from a, and not all")
    two = replace(pairs, unsearched="", differing=(unsearched, replace(unsearched, name="w")))
    [only] = audited(two).unknown
    assert only.reason.startswith("table app.t, table app.w differ from a, and")
    stopped = pair(f"{A}:1-6", applier_errno=1054, applier_error="Unknown column 'c' … app.t")
    audit = audited(replace(pairs, unsearched=""), snapshot=stopped)
    assert audit.unknown == ()
    assert len(of_code(audit, "S2")) == 1
