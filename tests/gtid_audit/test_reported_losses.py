"""What an audit reported as lost is not forgotten because no log shows it any more (E3, then OK)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gtid import Gtid, GtidSet
from gtid_audit.tasks import fleet_contents
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, with_facts
from tests.topology.test_group_handshake import G, member
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Severity, Verdict
from topology.facts.accepted import AcceptedRepair
from topology.facts.accepted_findings import ANY_SERVER, AcceptedFinding
from topology.policy import Policy
from topology.questions.contents_to_compare import Looked, Remembered
from topology.questions.reported_losses import (
    not_compared,
    reported_by,
    reported_here,
    still_open,
)
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)
from topology.readings.snapshot import ClusterSnapshot

LOST = GtidSet.parse(f"{A}:7-8")
LONG_UP = {"uptime_seconds": 10**6}
BEFORE = {B: LOST}


def pair(source: str, *others: Any, replica: str = f"{A}:1-8") -> ClusterSnapshot:
    """Return a source, and a replica that has received A:1-8 from it."""
    channel = a_channel("a", A, gtid_retrieved=GtidSet.parse(f"{A}:1-8"))
    b = a_server("b", B, replica, channels=(channel,), **LONG_UP)
    return a_cluster("pair", a_server("a", A, source, **LONG_UP), b, *others)


def version(name: str) -> TransactionVersion:
    return TransactionVersion(name, "", None, NOON, "")


def difference(number: int, names: Sequence[str]) -> ContentDifference:
    one, other = map(version, names)
    return ContentDifference(Gtid.parse(f"{A}:{number}"), Difference.DRIFT, True, "", one, other)


def looked(
    snapshot: ClusterSnapshot,
    monkeypatch: pytest.MonkeyPatch,
    reported: dict[Any, GtidSet],
    *,
    answered: dict[tuple[str, str], GtidSet] | None = None,
    policy: Policy | None = None,
    unlike: str = "",
) -> tuple[Sequence[str], Remembered, list[GtidSet]]:
    """Return what was not compared, what is remembered, and what was to be compared.

    `unlike`: two servers that have other transactions under the lost GTIDs.
    """
    asked: list[GtidSet] = []
    differences = tuple(difference(number, unlike) for number in ((7, 8) if unlike else ()))

    def read(*_args: object, suspects: GtidSet, **_named: object) -> Looked:
        asked.append(suspects)
        return Looked(ContentReading(NOON, 0, (), differences, ()), answered=answered or {})

    monkeypatch.setattr("topology.adapters.compare_contents.read_contents", read)
    found = fleet_contents.compare_contents(
        *({}, [snapshot], None),
        policy=policy or Policy(),
        remembered=Remembered(reported=reported),
    )
    assert found.readings is not None
    readings = found.readings.get("pair")
    return [each.reason for each in readings.unread] if readings else [], found.remembered, asked


def test_what_a_source_lost_is_kept_by_its_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = pair(f"{A}:1-6")
    findings = audit_cluster(lost).findings
    assert {each.code for each in findings} >= {"E3"}
    assert reported_by(lost, findings) == BEFORE
    assert reported_by(lost, [replace(each, severity=Severity.INFO) for each in findings]) == {}
    # What was accepted is the loss.
    fleet = accepted(str(LOST), code="E3", source="a")
    found = audit_cluster(lost, fleet).findings
    assert [each.severity for each in found if each.code == "E3"] == [Severity.INFO]
    assert reported_by(lost, found) == BEFORE
    unread, remembered, asked = looked(lost, monkeypatch, {})
    assert (unread, remembered.reported, asked) == ([], BEFORE, [])
    # Each server that has them is a holder, also one that the finding does not name.
    below = a_server("c", C, f"{A}:1-7", channels=(a_channel("b", B),), **LONG_UP)
    chain = pair(f"{A}:1-6", below)
    assert reported_by(chain, findings) == {B: LOST, C: GtidSet.parse(f"{A}:7")}
    # A second audit of the same state reports E3, and not that it could not be compared.
    unread, remembered, _ = looked(lost, monkeypatch, BEFORE)
    assert (unread, remembered.reported) == ([], BEFORE)


@pytest.mark.parametrize(
    ("code", "is_kept"), [*((code, True) for code in ("E3", "E6", "H7", "J3")), ("E1", False)]
)
def test_what_its_origin_assigns_again_is_kept_of_each_holder(code: str, *, is_kept: bool) -> None:
    lost = pair(f"{A}:1-6", a_server("c", C, f"{A}:1-7"), a_server("d", None, f"{A}:1-8"))
    [e3] = [each for each in audit_cluster(pair(f"{A}:1-6")).findings if each.code == "E3"]
    found = reported_by(lost, [replace(e3, code=code)])
    assert found == ({B: LOST, C: GtidSet.parse(f"{A}:7")} if is_kept else {})


@pytest.mark.parametrize(
    ("b", "c", "reported", "compared"),
    [
        ("1-8", "1-8", {B: "7-8"}, "7-8"),
        ("1-8", "1-8", {B: "7-8", C: "7-8"}, ""),  # both are holders
        ("1-8", "1-8", {B: "7-8", C: "8"}, "7"),
        ("1-8", "1-7", {B: "7-8"}, "7"),
        ("1-7", "1-8", {B: "7-8"}, "7"),
        ("1-8", "1-6", {B: "7-8"}, ""),
        ("", "1-8", {B: "7-8"}, ""),  # b was reset
        ("1-8", "1-8", {A: "7-8"}, ""),  # a is not in the audit
    ],
)
def test_a_holder_is_compared_with_servers_that_are_none(
    b: str, c: str, reported: dict[UUID, str], compared: str
) -> None:
    def own(numbers: str) -> GtidSet:
        return GtidSet.parse(numbers and f"{A}:{numbers}")

    two = a_cluster("pair", a_server("b", B, own(b)), a_server("c", C, own(c)))
    known = {uuid: own(numbers) for uuid, numbers in reported.items()}
    assert reported_here(two, known) == own(compared)
    unread = not_compared(two, Looked(None), known, present=(), policy=Policy())
    assert len(unread) == bool(compared)
    assert all(f"{A}:{compared} as lost" in each.reason for each in unread)


def test_a_finding_of_now_says_it_better() -> None:
    two = a_cluster("pair", a_server("b", B, f"{A}:1-8"), a_server("c", C, f"{A}:1-8"))
    [e3] = [each for each in audit_cluster(pair(f"{A}:1-6")).findings if each.code == "E3"]
    for present, count in (([e3], 0), ([replace(e3, severity=Severity.INFO)], 1), ([], 1)):
        unread = not_compared(two, Looked(None), BEFORE, present=present, policy=Policy())
        assert len(unread) == count
    unread_b = with_facts(two.last[0], server_uuid=None)
    assert reported_here(replace(two, last=(unread_b, two.last[1])), BEFORE) == GtidSet()


def test_equal_sets_afterwards_are_unknown_until_a_comparison_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reused = pair(f"{A}:1-9")
    assert not [each for each in audit_cluster(reused).findings if each.code == "E3"]
    for _ in range(2):
        [why], remembered, [asked] = looked(reused, monkeypatch, BEFORE)
        assert asked == LOST
        assert "an earlier audit reported" in why
        assert "gtid-audit repair check-data" in why
        assert remembered.reported == BEFORE
    # A part was compared; then the rest.
    part = {("a", "b"): GtidSet.parse(f"{A}:7")}
    [why], remembered, _ = looked(reused, monkeypatch, BEFORE, answered=part)
    assert remembered.reported == {B: GtidSet.parse(f"{A}:8")}
    assert f"{A}:8 as lost" in why
    unread, remembered, _ = looked(reused, monkeypatch, BEFORE, answered={("a", "b"): LOST})
    assert (unread, remembered.reported) == ([], {})
    # What another holder has is the same content: equal, it says nothing of that of a.
    holder = a_server("c", C, f"{A}:1-9", channels=(a_channel("a", A),), **LONG_UP)
    both = {B: LOST, C: LOST}
    unread, remembered, _ = looked(
        pair(f"{A}:1-9", holder), monkeypatch, both, answered={("b", "c"): LOST}
    )
    assert (len(unread), remembered.reported) == (2, both)
    # While the origin is not there, two holders are not compared, and nothing is forgotten.
    for away in (pair(f"{A}:1-6", holder), pair("", holder)):
        unread, remembered, none = looked(away, monkeypatch, both)
        assert (unread, none) == ([], [])
        assert all(kept >= LOST for kept in remembered.reported.values())
        assert remembered.reported.keys() == both.keys()
    # A comparison of two others is not about what b has.
    other = a_server("c", C, f"{A}:1-9", channels=(a_channel("a", A),), **LONG_UP)
    three = pair(f"{A}:1-9", other)
    assert len(looked(three, monkeypatch, BEFORE, answered={("a", "c"): LOST})[0]) == 1


def test_the_verdict_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    reused = pair(f"{A}:1-8")
    monkeypatch.setattr(
        "topology.adapters.compare_contents.read_contents",
        lambda *_args, **_named: Looked(ContentReading(NOON, 0, (), (), ())),
    )
    found = fleet_contents.compare_contents(
        {}, [reused], None, policy=Policy(), remembered=Remembered(reported=BEFORE)
    )
    assert found.readings is not None
    audit = audit_cluster(reused.with_contents(found.readings["pair"]))
    assert audit.verdict is Verdict.UNKNOWN
    assert any("earlier audit" in each.reason for each in audit.unknown)


@pytest.mark.parametrize(
    ("snapshot", "kept"),
    [
        (pair(f"{A}:1-9", replica=f"{A}:1-6"), BEFORE),  # b was reset: it may get its set back
        (a_cluster("pair", a_server("a", A, f"{A}:1-9", **LONG_UP)), BEFORE),  # b is away
    ],
)
def test_a_server_without_them_is_not_asked(
    snapshot: ClusterSnapshot, kept: dict[Any, GtidSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    unread, remembered, _ = looked(snapshot, monkeypatch, BEFORE)
    assert (unread, remembered.reported) == ([], kept)


def accepted(gtids: str, **facts: Any) -> Policy:
    made: dict[str, Any] = {
        "code": "E4",
        "severity": Severity.CRITICAL,
        "reason": "rows were compared",
        "expires": NOON.date(),
        "replica": "b",
        "gtid_set": GtidSet.parse(gtids),
    }
    return Policy(accepted_findings=(AcceptedFinding(**{**made, **facts}),))


def by_plan(*seen: UUID, **sets: GtidSet) -> Policy:
    emptied, undone = (((A, sets[name]),) if name in sets else () for name in ("emptied", "undone"))
    plan = AcceptedRepair("p", datetime(2026, 1, 1, tzinfo=UTC), seen, emptied, undone)
    return Policy(accepted=(plan,))


@pytest.mark.parametrize(
    ("policy", "is_said"),
    [
        (accepted(f"{A}:7-8"), False),
        (accepted(f"{A}:7-8", cluster="pair"), False),
        (accepted(f"{A}:7-8", cluster="another"), True),
        (accepted(f"{A}:7"), True),
        (accepted(f"{A}:7-8", code="E1"), True),
        (accepted(f"{A}:7-8", severity=Severity.WARNING), True),  # two contents are critical
        # Until its last day, and of this server.
        (accepted(f"{A}:7-8", expires=NOON.date() - timedelta(days=1)), True),
        (accepted(f"{A}:7-8", replica="c"), True),
        (accepted(f"{A}:7-8", replica=None, source="b"), False),
        (accepted(f"{A}:7-8", replica=None, source=ANY_SERVER), False),
        # A plan is listed, and may never have run.
        (by_plan(A, B, emptied=LOST), True),
        (by_plan(A, B, undone=LOST), True),
    ],
)
def test_what_was_accepted_is_settled(
    policy: Policy, *, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread, remembered, _ = looked(pair(f"{A}:1-9"), monkeypatch, BEFORE, policy=policy)
    assert (bool(unread), remembered.reported) == (is_said, BEFORE)


def test_a_server_that_agrees_with_a_holder_is_one_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """c has read them from b: what a, their origin, has since under these GTIDs is not compared."""
    c = a_server("c", C, f"{A}:1-9", channels=(a_channel("b", B),), **LONG_UP)
    three = pair(f"{A}:1-9", c)
    without_a = replace(three, first=three.first[1:], last=three.last[1:])
    for each in (without_a, three):
        _, remembered, _ = looked(each, monkeypatch, BEFORE, answered={("b", "c"): LOST})
        assert remembered.reported == {B: LOST, C: LOST}
    # They differ: c has what a has, and E4 reports it.
    _, remembered, _ = looked(three, monkeypatch, BEFORE, answered={("b", "c"): LOST}, unlike="bc")
    assert remembered.reported == {}


def test_what_is_settled_of_one_holder_is_not_of_those_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain: a and b were compared, b and c agree. So c has what a lost, and it was not compared."""
    c = a_server("c", C, f"{A}:1-9", channels=(a_channel("b", B),), **LONG_UP)
    chain, known = pair(f"{A}:1-9", c), {B: LOST, C: LOST}
    for _ in range(3):
        answered = {("a", "b"): LOST, ("b", "c"): LOST}
        [why], remembered, _ = looked(chain, monkeypatch, known, answered=answered, unlike="ab")
        assert "what c has was not compared with that of their origin" in why
        assert remembered.reported == {C: LOST}
        known = dict(remembered.reported)


def test_a_holder_that_is_the_origin_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """J3: b fetches what a committed itself."""
    two = pair(f"{A}:1-9")
    found = looked(two, monkeypatch, {A: LOST}, answered={("a", "b"): LOST})
    assert (found[0], found[1].reported) == ([], {})


@pytest.mark.parametrize(
    ("reported", "answered", "unlike", "kept"),
    [
        # With the origin, whatever it shows.
        ({B: "7-8"}, {("a", "b"): "1-8"}, {}, {B: ""}),
        ({B: "7-8"}, {("a", "b"): "1-7"}, {}, {B: "8"}),
        # Two holders, also if they differ: what the origin has is not known.
        ({B: "7-8", C: "7-8"}, {("b", "c"): "7-8"}, {("b", "c"): (7,)}, {B: "7-8", C: "7-8"}),
        # What agrees with a holder is a holder; where they differ, the later content was seen.
        ({B: "7-8"}, {("b", "c"): "1-8"}, {}, {B: "7-8", C: "7-8"}),
        ({B: "7-8"}, {("b", "c"): "1-8"}, {("b", "c"): (7,)}, {B: "8", C: "8"}),
        ({B: "7"}, {("b", "c"): "7-8"}, {}, {B: "7", C: "7"}),
        # b was compared with the origin: that it agrees with c makes it no holder again.
        ({C: "7-8"}, {("a", "b"): "7-8", ("b", "c"): "7-8"}, {("a", "b"): (7, 8)}, {C: "7-8"}),
        ({B: "7-8", C: "7-8"}, {("a", "b"): "7-8", ("b", "c"): "7-8"}, {}, {B: "", C: "7-8"}),
        # The holder is the origin (J3).
        ({A: "7-8"}, {("a", "b"): "7-8"}, {}, {A: ""}),
        ({A: "7-8"}, {("b", "c"): "7-8"}, {}, {A: "7-8"}),
    ],
)
def test_what_a_comparison_settles(
    reported: dict[UUID, str],
    answered: dict[tuple[str, str], str],
    unlike: dict[tuple[str, str], tuple[int, ...]],
    kept: dict[UUID, str],
) -> None:
    def own(numbers: str) -> GtidSet:
        return GtidSet.parse(numbers and f"{A}:{numbers}")

    servers = (
        a_server(name, uuid, own("1-9")) for name, uuid in zip("abc", (A, B, C), strict=True)
    )
    differences = tuple(
        difference(number, pair) for pair, numbers in unlike.items() for number in numbers
    )
    looked_at = Looked(
        ContentReading(NOON, 0, (), differences, ()),
        answered={pair: own(numbers) for pair, numbers in answered.items()},
    )
    known = {uuid: own(numbers) for uuid, numbers in reported.items()}
    found = still_open(a_cluster("three", *servers), looked_at, known)
    assert found == {uuid: own(numbers) for uuid, numbers in kept.items()}


def test_each_member_assigns_what_its_group_does() -> None:
    group = a_cluster("group", member("a", "g:1-9", sees="ab"), member("b", "g:1-9", sees="ab"))
    lost = GtidSet.parse(f"{G}:7-8")
    looked_at = Looked(ContentReading(NOON, 0, (), (), ()), answered={("a", "b"): lost})
    assert still_open(group, looked_at, {A: lost}) == {A: GtidSet()}
