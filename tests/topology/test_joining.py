"""Parts of a cluster that no channel links: which is the main one, who would join, and where."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade
from topology.facts.cluster_facts import gather_facts
from topology.facts.joining import Joining, Parts, evaluate_parts
from topology.policy import Policy
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.snapshot import (
    BinaryLog,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.version import ServerVersion
from topology.rules.could_join import can_join

D = UUID("dddddddd-0000-0000-0000-000000000000")
OF = {"a": A, "b": B, "c": C, "d": D}


def gtids(text: str) -> GtidSet:
    for letter, uuid in OF.items():
        text = text.replace(f"{letter.upper()}:", f"{uuid}:")
    return GtidSet.parse(text)


def one(name: str, executed: str, *sources: str, **facts: Any) -> ServerSnapshot:
    channels = tuple(a_channel(each, OF.get(each), name=each) for each in sources)
    return a_server(name, OF[name], gtids(executed), channels=channels, **facts)


def parts(*servers: ServerSnapshot, allowed: Iterable[str] = ()) -> Parts:
    ordered = sorted(servers, key=lambda server: server.name)
    policy = Policy(allowed_uuids=frozenset(OF[each] for each in allowed))
    return evaluate_parts(gather_facts(a_cluster("cluster", *ordered), policy))


def ways(found: Parts) -> list[str]:
    return [f"{each.server} to {each.candidate}: {each.state}" for each in found.joinings]


UNREAD = {
    "gtid_executed": None,
    "unread": (UnreadFact("gtid_executed", UnreadReason.TIMEOUT, "no answer"),),
}
MEMBER = {"group": GroupSnapshot(str(D), "ONLINE", "PRIMARY", GtidSet())}


@pytest.mark.parametrize(
    ("servers", "found", "unevaluated"),
    [
        # One part is the whole.
        ((one("a", "A:1-9"), one("b", "A:1-9", "a")), [], ()),
        ((one("a", "A:1-9"), one("b", "A:1-5")), ["b to a: recoverable"], ()),
        ((one("a", "A:1-9"), one("b", "A:1-9")), ["a to b: identical"], ()),
        ((one("a", "A:1-9"), one("b", "A:1-9,B:1")), ["a to b: recoverable"], ()),
        ((one("a", "A:1-9"), one("b", "B:1")), ["b to a: diverged"], ()),
        # The main part: most servers, then most transactions.
        ((one("a", "A:1"), one("b", "A:1", "a"), one("c", "C:1-9")), ["c to a: diverged"], ()),
        # Of the other part those without a source would join; of a ring the one that has most.
        (
            (one("a", "A:1-9"), one("b", "", "c"), one("c", "")),
            ["a to c: diverged"],
            (),
        ),
        (
            (one("a", "A:1-3"), one("b", "A:1-3", "a"), one("c", "A:1-8", "d"), one("d", "A:1-9", "c")),
            ["a to d: recoverable"],
            (),
        ),
        (
            (one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "A:1", "d"), one("d", "A:1-2", "c")),
            ["d to a: recoverable"],
            (),
        ),
        # A source outside of the audit, or a group, may link a part with the others.
        ((one("a", "A:1-9"), one("b", "A:1-5", "z")), [], ()),
        (
            (one("a", "A:1-9"), one("b", "A:1-5"), one("c", "A:1-5", "z")),
            ["b to a: recoverable"],
            (),
        ),
        ((one("a", "A:1-9"), one("b", "A:1-5", **MEMBER)), [], ()),
        # What was not read is not evaluated.
        ((one("a", "A:1-9"), one("b", "", **UNREAD)), [], (("a",), ("b",))),
        (
            (one("a", "A:1-9"), one("b", "A:1-5"), one("c", "", **UNREAD)),
            ["b to a: recoverable"],
            (("a",), ("c",)),
        ),
        # Stopped channels link as well.
        ((one("a", "A:1-9"), replace(one("b", "A:1-5", "a"), channels=(a_channel("a", A, receiver=ThreadState.STOPPED),))), [], ()),
    ],
)  # fmt: skip
def test_who_would_join_whom(
    servers: tuple[ServerSnapshot, ...], found: list[str], unevaluated: tuple[tuple[str, ...], ...]
) -> None:
    result = parts(*servers)
    assert ways(result) == found
    assert result.unevaluated == unevaluated


@pytest.mark.parametrize(
    ("main", "candidate"),
    [
        ((one("a", "A:1-9"), one("b", "A:1-9", "a")), "a"),
        # ... that has not purged what is missing
        ((one("a", "A:1-9", gtid_purged=gtids("A:1-6")), one("b", "A:1-9", "a")), "b"),
        ((one("a", "A:1-9", gtid_purged=gtids("A:1-5")), one("b", "A:1-9", "a")), "a"),
        # ... that has most of what the server has
        ((one("a", "A:1-3", "b"), one("b", "A:1-9", "a")), "b"),
    ],
)
def test_the_best_candidate_is_reported(main: tuple[ServerSnapshot, ...], candidate: str) -> None:
    [joining] = parts(*main, one("c", "A:1-5")).joinings
    assert joining.candidate == candidate


def joining_of(**sets: str) -> Joining:
    found = {name: gtids(text) for name, text in sets.items()}
    nothing: dict[str, Any] = dict.fromkeys(
        ("missing", "own", "purged", "extra", "elsewhere", "lost", "ahead"), GtidSet()
    )
    return Joining("a", "c", is_purged_now=bool(found.get("purged")), **{**nothing, **found})


@pytest.mark.parametrize(
    ("main", "server", "expected"),
    [
        ("A:1-9", one("c", "A:1-5"), joining_of(missing="A:6-9")),
        ("A:1-9", one("c", "A:1-5,C:1"), joining_of(missing="A:6-9", extra="C:1")),
        ("A:1-9", one("c", "A:1-5", gtid_owned=gtids("C:1")), joining_of(missing="A:6-9", extra="C:1")),
        ("A:1-9,C:1", one("c", "A:1-9"), joining_of(own="C:1")),  # its own never come back to it
        ("A:1-9", one("c", "A:1-10"), joining_of(lost="A:10")),
        ("A:1-9", one("c", "A:1-9,D:1"), joining_of(extra="D:1")),
    ],
)  # fmt: skip
def test_the_sets_of_a_server_that_would_join(
    main: str, server: ServerSnapshot, expected: Joining
) -> None:
    [found] = parts(one("a", main), one("b", main, "a"), server).joinings
    assert replace(found, has_all=False) == expected
    assert found.has_all is (gtids(main) <= (server.gtid_executed or GtidSet()))
    if expected.extra == gtids("D:1"):
        [found] = parts(one("a", main), one("b", main, "a"), server, allowed="d").joinings
        assert replace(found, has_all=False) == joining_of()


def test_what_it_needs_and_the_candidate_purged() -> None:
    a = one("a", "A:1-9", gtid_purged=gtids("A:1-7"))
    [found] = parts(
        a, one("b", "A:1-9", "a", gtid_purged=gtids("A:1-7")), one("c", "A:1-5")
    ).joinings
    assert (found.purged, found.state) == (gtids("A:6-7"), "irrecoverable")


def test_what_it_lost_of_its_own_and_the_candidate_purged() -> None:
    """The candidate compares all that it has purged, and refuses the connection."""
    a = one("a", "A:1-9,C:1-2", gtid_purged=gtids("C:1"))
    snapshot = a_cluster("cluster", a, one("b", "A:1-9", "a"), one("c", "A:1-9"))
    facts = gather_facts(snapshot, Policy())
    [found] = evaluate_parts(facts).joinings
    assert (found.candidate, found.own) == ("b", GtidSet())  # b does not have them
    [alone] = parts(a, one("c", "A:1-9")).joinings
    assert (alone.own, alone.purged, alone.state) == (gtids("C:1-2"), gtids("C:1"), "irrecoverable")


def test_a_server_joins_and_does_not_get_its_own_back() -> None:
    cluster = a_cluster("two", one("a", "A:1-9,C:1"), one("c", "A:1-9"))
    [found] = can_join(gather_facts(cluster, Policy()))
    assert found.grade is Grade.LIKELY
    assert "a also has 1 transaction of c's own that c does not have" in found.explanation
    assert "already has everything else that a has" in found.explanation


def test_both_readings_of_the_server_count() -> None:
    first = [one("a", "A:1-9"), one("b", "A:1-9", "a"), one("c", "A:1-5")]
    snapshot = a_cluster("cluster", *first)
    later = {"a": gtids("A:1-12"), "c": gtids("A:1-5,C:1")}
    last = tuple(
        replace(each, gtid_executed=later.get(each.name, each.gtid_executed))
        for each in snapshot.last
    )
    [found] = evaluate_parts(gather_facts(replace(snapshot, last=last), Policy())).joinings
    assert (found.missing, found.extra) == (gtids("A:6-9"), gtids("C:1"))


@pytest.mark.parametrize(
    ("settings", "grade"),
    [
        ((), Grade.PROVED),
        ((("replica_skip_errors", "1062"),), Grade.LIKELY),
        ((("replica_exec_mode", "IDEMPOTENT"),), Grade.LIKELY),
    ],
)
def test_a_server_that_ignores_errors_may_have_been_reset_behind_its_rows(
    settings: tuple[tuple[str, str], ...], grade: Grade
) -> None:
    """It may have taken A:1 again, with its GTID and an error that it ignored."""
    c = one("c", "A:1", settings=(("gtid_mode", "ON"), *settings))
    servers = one("a", "A:1-3"), one("b", "A:1-3", "a"), c
    [found] = can_join(gather_facts(a_cluster("cluster", *servers), Policy()))
    assert (found.code, found.replica, found.grade) == ("J1", "c", grade)
    assert ("has the rows already" in found.explanation) is (grade is Grade.LIKELY)


@pytest.mark.parametrize(
    ("purged", "logs", "grade"),
    [
        ("A:1-3", ("log.000001",), Grade.LIKELY),
        ("A:1-2", ("log.000001", "log.000002"), Grade.LIKELY),
        ("A:1-3", (), Grade.LIKELY),  # log_bin = OFF: there is no log that shows it
        ("A:1-3", None, Grade.LIKELY),  # not read
        ("A:1-3", ("log.000007",), Grade.PROVED),  # it had the logs, and purged them
        ("", ("log.000001",), Grade.PROVED),
    ],
)
def test_rows_below_a_gtid_purged_that_was_set_are_not_known(
    purged: str, logs: tuple[str, ...] | None, grade: Grade
) -> None:
    """A backup that is older than the set that it was given looks the same as a clone."""
    listed = None if logs is None else tuple(BinaryLog(each, 100) for each in logs)
    c = one("c", "A:1-3", gtid_purged=gtids(purged), binary_logs=listed)
    servers = one("a", "A:1-3"), one("b", "A:1-3", "a"), c
    [found] = can_join(gather_facts(a_cluster("cluster", *servers), Policy()))
    assert (found.replica, found.grade) == ("c", grade)
    count = gtids(purged).gtid_count
    said = f"the rows of {count} transactions. Compare the data before the two are linked"
    assert (said in found.explanation) is (grade is Grade.LIKELY)
    assert ("gtid_purged of c" in found.explanation) is (grade is Grade.LIKELY)


def test_a_server_that_does_not_log_what_it_receives_shows_no_rows() -> None:
    settings = (("gtid_mode", "ON"), ("log_replica_updates", "OFF"))
    logs = (BinaryLog("log.000007", 100),)
    facts = {"gtid_purged": gtids("A:1-3"), "binary_logs": logs, "settings": settings}
    servers = one("a", "A:1-3"), one("b", "A:1-3", "a"), one("c", "A:1-3", **facts)
    [found] = can_join(gather_facts(a_cluster("cluster", *servers), Policy()))
    assert (found.replica, found.grade) == ("c", Grade.LIKELY)
    assert (
        "c does not log what it receives (log_replica_updates = OFF), and no" in found.explanation
    )


def test_rows_below_a_gtid_purged_of_the_candidate_are_not_known_either() -> None:
    a = one("a", "A:1-3", gtid_purged=gtids("A:1-2"), binary_logs=(BinaryLog("log.000001", 100),))
    servers = a, one("c", "A:1-2")
    [found] = can_join(gather_facts(a_cluster("cluster", *servers), Policy()))
    assert (found.replica, found.source, found.grade) == ("c", "a", Grade.LIKELY)
    assert "gtid_purged of a, and no log shows whether it has the rows of 2" in found.explanation


@pytest.mark.parametrize(
    ("source", "replica", "is_doubted"),
    [
        ((5, 6, 24), (5, 7, 44), False),
        ((5, 7, 44), (8, 0, 36), False),
        ((8, 0, 36), (8, 4, 3), False),
        ((8, 4, 3), (9, 7, 4), False),
        ((9, 7, 4), (9, 7, 4), False),
        ((9, 7, 4), (26, 7, 0), False),
        ((5, 6, 24), (8, 0, 36), True),
        ((8, 0, 36), (9, 7, 4), True),
        ((8, 0, 36), (5, 7, 44), True),
        ((9, 7, 4), (8, 4, 3), True),
    ],
)
def test_a_pair_of_versions_that_mysql_does_not_support_is_likely_at_most(
    source: tuple[int, int, int], replica: tuple[int, int, int], *, is_doubted: bool
) -> None:
    versions = [ServerVersion(*each) for each in (source, replica)]
    cluster = a_cluster(
        "two",
        a_server("a", A, f"{A}:1-3", version=versions[0]),
        a_server(
            "b",
            B,
            "",
            version=versions[1],
            history_evidence=HistoryEvidence(None, (), schemas_count=0),
        ),
    )
    [found] = [each for each in audit_cluster(cluster).findings if each.code == "J1"]
    assert found.grade is (Grade.LIKELY if is_doubted else Grade.PROVED)
    assert ("it can replicate from" in found.explanation) is not is_doubted
    assert ("its sets allow it to replicate from" in found.explanation) is is_doubted
    assert ("release series" in found.explanation) is is_doubted
    assert "refuse each other" not in found.explanation


@pytest.mark.parametrize(
    ("old", "new", "is_refused"),
    [
        ((5, 6, 24), (9, 7, 0), True),
        ((5, 6, 51), (9, 7, 4), True),
        ((5, 7, 0), (9, 7, 0), False),
        ((5, 6, 24), (9, 6, 0), False),
        ((8, 0, 36), (9, 7, 4), False),
    ],
)
def test_only_the_oldest_and_the_newest_versions_refuse_each_other(
    old: tuple[int, int, int], new: tuple[int, int, int], *, is_refused: bool
) -> None:
    for versions in ((old, new), (new, old)):
        source, replica = (ServerVersion(*each) for each in versions)
        cluster = a_cluster(
            "two", one("a", "A:1-3", version=source), one("b", "A:1", version=replica)
        )
        [found] = can_join(gather_facts(cluster, Policy()))
        assert found.source == "a"
        assert "release series" in found.explanation
        assert ("These two refuse each other" in found.explanation) is is_refused


ON = (("gtid_mode", "ON"), ("server_id_source", "EXPLICIT"))
UNREAD_SETTINGS = {"settings": None, "notable_settings": None}


@pytest.mark.parametrize(
    ("candidate", "server", "words"),
    [
        ({}, {}, ""),
        ({"server_id": 0}, {}, "server_id is 0 on a: a server without a server_id neither"),
        ({}, {"server_id": 0}, "server_id is 0 on b: a server without a server_id neither"),
        ({"server_id": 0}, {"server_id": 0}, "server_id is 0 on b and a:"),
        ({"server_id": 7}, {"server_id": 7}, "b and a have the same server_id, 7:"),
        ({"server_id": None}, {"server_id": None}, ""),
        (UNREAD_SETTINGS, {}, "did not read the settings of a: with no binary log"),
        # Its own settings, if unread, may ignore errors: then it may have been reset.
        ({}, UNREAD_SETTINGS, "If it was reset, it has the rows already"),
        ({"settings": (*ON, ("log_bin", "OFF"))}, {}, "a has no binary log (log_bin = OFF)"),
        ({}, {"settings": (*ON, ("log_bin", "OFF"))}, ""),
        ({"settings": (("gtid_mode", "OFF"),)}, {}, "a has gtid_mode = OFF: it refuses"),
        ({"settings": (*ON, ("offline_mode", "ON"))}, {}, "offline_mode is ON on a: it refuses"),
        ({"settings": (*ON, ("offline_mode", "OFF"))}, {}, ""),
        ({"settings": (*ON, ("log_replica_updates", "OFF"))}, {}, ""),  # it receives nothing
    ],
)
def test_what_keeps_a_connection_from_being_accepted(
    candidate: dict[str, Any], server: dict[str, Any], words: str
) -> None:
    """b has less than a: only identity and settings are against a channel from a to b."""
    schemas = {"history_evidence": HistoryEvidence(None, (), schemas_count=0)}
    a, b = one("a", "A:1-9", **candidate), one("b", "A:1-5", **{**schemas, **server})
    [found] = can_join(gather_facts(a_cluster("two", a, b), Policy()))
    assert (found.source, found.replica) == ("a", "b")
    assert words in found.explanation
    assert found.grade is (Grade.LIKELY if words else Grade.PROVED)


@pytest.mark.parametrize("value", ["ON", "OFF"])
def test_what_a_new_channel_needs_is_named_and_is_no_doubt(value: str) -> None:
    schemas = {"history_evidence": HistoryEvidence(None, (), schemas_count=0)}
    a = one("a", "A:1-9", settings=(*ON, ("require_secure_transport", value)))
    servers = (a, one("b", "A:1-5", **schemas))
    [found] = can_join(gather_facts(a_cluster("two", *servers), Policy()))
    assert found.grade is Grade.PROVED
    needs = "a has require_secure_transport = ON: a channel from it needs SOURCE_SSL = 1"
    assert (needs in found.explanation) is (value == "ON")


@pytest.mark.parametrize(("logged", "is_refused"), [("ON", False), ("OFF", True)])
def test_a_candidate_that_does_not_log_what_it_receives_refuses_the_server_later(
    logged: str, *, is_refused: bool
) -> None:
    a = one("a", "A:1-9,D:1-9", "d", settings=(*ON, ("log_replica_updates", logged)))
    servers = (a, one("b", "A:1-5,D:1-5"), one("d", "D:1-9", gtid_purged=gtids("D:1-9")))
    [found] = can_join(gather_facts(a_cluster("three", *servers), Policy()))
    assert (found.source, found.replica) == ("a", "b")
    assert ("a does not log what it receives" in found.explanation) is is_refused


def test_what_a_candidate_applies_now_and_will_not_log_is_purged_there() -> None:
    """Only gtid_owned shows it: the relay log began anew."""
    settings = (*ON, ("log_replica_updates", "OFF"))
    a = one("a", "A:1-9", settings=settings, gtid_owned=gtids("D:7"))
    found = parts(a, one("b", "A:1-9"))
    [joining] = found.joinings
    assert joining.purged == gtids("D:7")


@pytest.mark.parametrize(("name", "grade"), [(D, Grade.LIKELY), (C, Grade.PROVED)])
def test_a_group_may_assign_what_a_server_of_its_name_has(name: UUID, grade: Grade) -> None:
    """d has the name of the group as its server_uuid: both commit under one UUID."""
    view = tuple(
        GroupMember(OF[each], f"{each}.example", 3306, "ONLINE", "PRIMARY") for each in "ab"
    )
    group = GroupSnapshot(str(name), "ONLINE", "PRIMARY", gtids("D:1-5"), view)
    members = [one(each, "B:1,D:1-5", group=group) for each in "ab"]
    audit = audit_cluster(a_cluster("cluster", *members, one("d", "D:1-9")))
    [found] = [each for each in audit.findings if each.code == "J3"]
    assert (found.grade, found.replica, found.gtid_set) == (grade, "d", gtids("D:6-9"))
    is_shared = grade is Grade.LIKELY
    assert ("may assign the same GTIDs to other transactions" in found.explanation) is is_shared
    assert ("d committed them itself" in found.explanation) is not is_shared


def test_what_has_the_uuid_of_a_group_is_of_no_server() -> None:
    """The group's name is the server_uuid of a: d has D of its own, and A of the group."""
    view = tuple(
        GroupMember(OF[each], f"{each}.example", 3306, "ONLINE", "PRIMARY") for each in "ab"
    )
    group = GroupSnapshot(str(A), "ONLINE", "PRIMARY", gtids("A:1-5"), view)
    members = [one(each, "A:1-5", group=group) for each in "ab"]
    [ahead] = parts(*members, one("d", "A:1-6")).joinings
    assert (ahead.extra, ahead.lost, ahead.state) == (gtids("A:6"), GtidSet(), "diverged")
    named = replace(group, group_name=str(D))
    members = [one(each, "D:1-5", group=named) for each in "ab"]
    [behind] = parts(*members, one("d", "D:1-4")).joinings
    assert (behind.own, behind.missing) == (GtidSet(), gtids("D:5"))


@pytest.mark.parametrize(("allowed", "is_named"), [({D}, True), (set[UUID](), False)])
def test_allowed_transactions_that_only_one_has_are_named(
    allowed: set[UUID], *, is_named: bool
) -> None:
    cluster = a_cluster("two", one("a", "A:1-20"), one("c", "A:1-8,D:1-2"))
    found = list(can_join(gather_facts(cluster, Policy(allowed_uuids=frozenset(allowed)))))
    words = "c also has 2 transactions that a does not have, with UUIDs that the policy allows"
    assert [words in each.explanation for each in found] == ([True] if is_named else [])


@pytest.mark.parametrize(("purged", "is_named"), [("B:1", True), ("", False)])
def test_allowed_transactions_that_are_purged_break_a_failover(
    purged: str, *, is_named: bool
) -> None:
    replica = one("b", "A:1-9,B:1-2", "a", gtid_purged=gtids(purged))
    policy = Policy(allowed_uuids=frozenset({B}))
    audit = audit_cluster(a_cluster("two", one("a", "A:1-9"), replica), policy)
    [found] = [each for each in audit.findings if each.code == "T6"]
    assert ("no longer have 1 transaction of these" in found.explanation) is is_named
    assert ("handshake --promote b" in found.explanation) is is_named
