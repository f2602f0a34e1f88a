"""A server without a source, beside a part whose source was not read: linked, or left behind."""

from dataclasses import replace
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, with_facts
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Severity, Verdict
from topology.policy import Policy
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import ClusterSnapshot

ADDRESS = "unread.example:3306"
DECLARED = Policy(external_sources=frozenset({ADDRESS}))


def seen_in_part(*, s: str, r: str, purged: str = "", unread: UUID = C) -> ClusterSnapshot:
    """Read s (UUID A), whose source (UUID C) is not read, and r (UUID B), which has no channel."""
    channel = a_channel(
        "unread", unread, source_host="unread.example", source_port=3306, source_server_id=9
    )
    return a_cluster(
        "pair",
        a_server("r", B, r, server_id=2, channels=()),
        a_server("s", A, s, server_id=1, gtid_purged=GtidSet.parse(purged), channels=(channel,)),
    )


@pytest.mark.parametrize(
    ("snapshot", "policy", "expected"),
    [
        # A chain r -> unread -> s: s never committed, and r has nothing of the unread server.
        (seen_in_part(s=f"{B}:1-9", r=f"{B}:1-9"), DECLARED, None),
        (seen_in_part(s=f"{B}:1-7", r=f"{B}:1-9"), DECLARED, None),
        (seen_in_part(s=f"{B}:1-9,{A}:1", r=f"{B}:1-9"), DECLARED, None),
        (seen_in_part(s=f"{C}:1-9,{B}:1-9", r=f"{B}:1-9"), DECLARED, None),
        # The unread source is a copy of r: it has its UUID, and r is not its replica.
        (seen_in_part(s=f"{B}:1-8", r=f"{B}:1-9", unread=B), DECLARED, None),
        # r was fed by s before a failover, and now feeds it.
        (seen_in_part(s=f"{A}:1-9,{B}:1-5", r=f"{A}:1-9,{B}:1-5"), DECLARED, None),
        (seen_in_part(s=f"{A}:1-10,{B}:1-5", r=f"{A}:1-9,{B}:1-5"), DECLARED, ("J1", f"{A}:10")),
        # r was fed by s, or by the source of s, and has no channel any more.
        (seen_in_part(s=f"{A}:1-9", r=f"{A}:1-9"), DECLARED, ("J1", "")),
        (seen_in_part(s=f"{A}:1-9", r=f"{A}:1-8"), DECLARED, ("J1", f"{A}:9")),
        (seen_in_part(s=f"{C}:1-9", r=f"{C}:1-8"), DECLARED, ("J1", f"{C}:9")),
        (seen_in_part(s=f"{A}:1-9", r=f"{A}:1-8", purged=f"{A}:1-9"), DECLARED, ("J2", f"{A}:9")),
        (seen_in_part(s=f"{A}:1-9", r=f"{A}:1-8,{B}:1"), DECLARED, ("J3", f"{B}:1")),
        # It forgot everything, or is new.
        (seen_in_part(s=f"{C}:1-9", r=""), DECLARED, ("J1", f"{C}:1-9")),
        (seen_in_part(s=f"{A}:1-9", r=""), Policy(), ("J1", f"{A}:1-9")),
        (seen_in_part(s="", r=""), DECLARED, None),
        # Undeclared, the verdict is UNKNOWN anyway: only what will not come is reported.
        (seen_in_part(s=f"{A}:1-9", r=f"{A}:1-9"), Policy(), None),
        (seen_in_part(s=f"{A}:1-9", r=f"{A}:1-8"), Policy(), ("J1", f"{A}:9")),
    ],
)
def test_what_an_open_part_left_behind(
    snapshot: ClusterSnapshot, policy: Policy, expected: tuple[str, str] | None
) -> None:
    audit = audit_cluster(snapshot, policy)
    found = [each for each in audit.findings if each.code.startswith("J") and each.code != "J4"]
    assert [(each.code, str(each.gtid_set)) for each in found] == ([expected] if expected else [])
    for each in found:
        assert (each.source, each.replica) == ("s", "r")
        assert (each.grade, each.severity) == (Grade.LIKELY, Severity.WARNING)
        assert ADDRESS in each.explanation
        assert each.strategies[0].name == "add_servers"
        assert not {"redo_on_source", "undo_on_replica"} & {way.name for way in each.strategies}
    if policy is DECLARED:
        apart = [each for each in audit.findings if each.code == "J4"]  # below_external.py
        assert audit.verdict is (Verdict.WARNING if expected or apart else Verdict.OK)


@pytest.mark.parametrize(
    ("before", "now", "severity"),
    [
        ("1-5", "1-6", Severity.INFO),  # 7-9 are on their way, as 6 was
        ("1-6", "1-6", Severity.WARNING),  # nothing arrives
        ("1-5", "1-6:8", Severity.WARNING),  # 7 was passed over
    ],
)
def test_what_arrives_through_an_unseen_server_is_a_backlog(
    before: str, now: str, severity: Severity
) -> None:
    """A ring a -> b -> c -> a without c: what b committed comes back to a through c."""
    from_c, from_a = a_channel("c", C), a_channel("a", A)
    a = a_server("a", A, f"{B}:{now}", channels=(from_c,))
    b = a_server("b", B, f"{B}:1-9", channels=(from_a,))
    snapshot = a_cluster("ring", a, b)
    first = tuple(
        replace(each, gtid_executed=GtidSet.parse(f"{B}:{before}")) if each.name == "a" else each
        for each in snapshot.first
    )
    found = audit_cluster(replace(snapshot, first=first)).findings
    [errant] = [one for one in found if one.code == "E1"]
    assert (errant.grade, errant.severity) == (Grade.LIKELY, severity)
    assert "servers that are not part of this audit: c.example:3306." in errant.explanation
    assert "Add these servers and audit again." in errant.explanation
    arrives = "Earlier ones arrived between the readings, in order." in errant.explanation
    assert arrives is (severity is Severity.INFO)
    values = {each.fact: each.value for each in errant.evidence}
    assert values["earlier ones arrived between the readings"] == ("yes" if arrives else "no")


def test_an_audited_server_on_the_way_that_could_not_be_read_is_to_be_read() -> None:
    """c is in the audit, and its gtid_executed could not be read: it may have B:7-9."""
    a = a_server("a", A, f"{B}:1-6", channels=(a_channel("c", C),))
    b = a_server("b", B, f"{B}:1-9", channels=(a_channel("a", A),))
    c = with_facts(a_server("c", C, ""), gtid_executed=None)
    found = audit_cluster(a_cluster("ring", a, b, c)).findings
    [errant] = [one for one in found if one.code == "E1"]
    assert (errant.grade, errant.severity) == (Grade.LIKELY, Severity.WARNING)
    assert "through servers that gtid-audit did not read: c" in errant.explanation
    assert "Let gtid-audit read these servers and audit again." in errant.explanation


@pytest.mark.parametrize(("members", "is_reported"), [("mn", True), ("ms", False)])
def test_only_a_group_in_the_part_itself_may_link_it(members: str, *, is_reported: bool) -> None:
    """r was fed by s, whose source was not read; two servers of the audit are a group."""
    group = GroupSnapshot(str(UUID(int=5)), "ONLINE", "PRIMARY", GtidSet())
    apart = tuple(
        a_server(name, UUID(int=number), f"{A}:1-9,{UUID(int=5)}:1", server_id=number)
        for number, name in enumerate("mn", start=10)
    )
    servers = sorted(
        (*seen_in_part(s=f"{A}:1-9", r=f"{A}:1-8").first, *apart), key=lambda each: each.name
    )
    made = [replace(each, group=group) if each.name in members else each for each in servers]
    audit = audit_cluster(a_cluster("pair", *made), Policy())
    found = [(each.source, each.replica) for each in audit.findings if each.code == "J1"]
    assert (("s", "r") in found) is is_reported
