"""E1 of a replica with several sources, and of servers beside it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.snapshot import ServerSnapshot, ThreadState, UnreadFact, UnreadReason
from topology.rules.differences import errant_available

D = UUID("dddddddd-0000-0000-0000-000000000000")
ALSO = "Its other sources do not have them either"


def errant(*servers: ServerSnapshot) -> list[Finding]:
    return list(errant_available(gather_facts(a_cluster("cluster", *servers), Policy())))


def test_an_errant_transaction_is_reported_once_and_names_the_sources_that_miss_it() -> None:
    channels = (a_channel("a", A), a_channel("c", C, name="second"))
    [found] = errant(
        a_server("a", A, f"{A}:1-9"),
        a_server("b", B, f"{A}:1-9,{C}:1-9,{B}:1", channels=channels),
        a_server("c", C, f"{C}:1-9"),
    )
    assert (found.source, found.replica, str(found.gtid_set)) == ("a", "b", f"{B}:1")
    assert f"{ALSO}: c." in found.explanation
    assert ("absent on its other sources too", "c") in {
        (each.fact, each.value) for each in found.evidence
    }


def test_the_source_of_another_replica_with_the_same_transaction_is_not_its_source() -> None:
    """a -> b and c -> d: both replicas have the same transaction of a server that was not read."""
    foreign = f"{UUID(int=9)}:1"
    found = errant(
        a_server("a", A, f"{A}:1-9"),
        a_server("b", B, f"{A}:1-9,{foreign}", channels=(a_channel("a", A),)),
        a_server("c", C, f"{C}:1-9"),
        a_server("d", D, f"{C}:1-9,{foreign}", channels=(a_channel("c", C),)),
    )
    assert [(each.source, each.replica) for each in found] == [("a", "b"), ("c", "d")]
    for each in found:
        assert ALSO not in each.explanation


@pytest.mark.parametrize("state", ["gtid_executed", "gtid_owned"])
def test_what_another_source_sent_before_its_own_commit_is_not_errant(state: str) -> None:
    """c waits for a semi-synchronous replica, and b has executed what the log of c has already.

    The relay log of b was begun again since (relay_log_recovery): only c still shows it.
    """
    sent = f"{UUID(int=9)}:1"
    channels = (a_channel("a", A), a_channel("c", C, name="second"))

    def found(facts: dict[str, GtidSet]) -> list[str]:
        c = a_server("c", C, facts.pop("gtid_executed", GtidSet()), **facts)
        servers = (a_server("a", A, ""), a_server("b", B, sent, channels=channels), c)
        return [each.source or "" for each in errant(*servers)]

    assert found({state: GtidSet.parse(sent)}) == []
    assert found({}) == ["a"]


@pytest.mark.parametrize(
    ("receiver", "c", "expected"),
    [
        (ThreadState.RUNNING, "", []),  # on its way to c
        (ThreadState.RUNNING, f",{B}:1", []),  # c has it
        (ThreadState.STOPPED, "", ["a"]),
        (None, "", ["a"]),
    ],
)
def test_what_is_on_its_way_to_one_of_two_sources_is_not_errant_on_the_other(
    receiver: ThreadState | None, c: str, expected: list[str]
) -> None:
    """b and c receive from each other, and b from a too. It was E1 until c had it."""
    channels = (a_channel("a", A), a_channel("c", C, name="second"))
    back = () if receiver is None else (a_channel("b", B, receiver=receiver),)
    found = errant(
        a_server("a", A, f"{A}:1-9"),
        a_server("b", B, f"{A}:1-9,{C}:1-9,{B}:1", channels=channels),
        a_server("c", C, f"{C}:1-9{c}", channels=back),
    )
    assert [each.source for each in found] == expected


def of_group(name: str, uuid: UUID, *members: UUID, executed: str) -> ServerSnapshot:
    """Make a server that is configured for the group D; of no members: it has left it."""
    seen = tuple(GroupMember(each, "host", 3306, "ONLINE", "") for each in members)
    view = GroupSnapshot(str(D), "ONLINE", "", GtidSet.parse(executed), seen) if members else None
    settings = (("group_replication_group_name", str(D)),)
    channels = () if members else (a_channel("a", A),)
    return replace(a_server(name, uuid, executed, channels=channels), settings=settings, group=view)


def test_no_group_takes_back_a_member_with_work_of_its_own() -> None:
    """b has left the group of a and c, and follows a by a channel: to start it delivers nothing."""
    [found] = errant(
        of_group("a", A, A, C, executed=f"{D}:1-9"),
        of_group("b", B, executed=f"{D}:1-9,{B}:1"),
        of_group("c", C, A, C, executed=f"{D}:1-9"),
    )
    assert (found.replica, found.grade, str(found.gtid_set)) == ("b", Grade.PROVED, f"{B}:1")
    assert found.strategies[0].name != "start_channel"


def test_a_group_that_was_stopped_as_a_whole_may_begin_with_another_member() -> None:
    [found] = errant(
        replace(of_group("a", A, executed=f"{D}:1-9"), channels=()),
        of_group("b", B, executed=f"{D}:1-9,{B}:1"),
    )
    assert found.grade is Grade.LIKELY
    assert found.strategies[0].name == "add_servers"


@pytest.mark.parametrize(
    ("also", "severity"), [("", Severity.WARNING), (f",{B}:1", Severity.CRITICAL)]
)
def test_an_unknown_server_uuid_may_be_that_of_a_server_that_could_not_be_read(
    also: str, severity: Severity
) -> None:
    """b may have it from x. What b committed itself is errant, whatever x is."""
    foreign = f"{UUID(int=9)}:1"
    unread = replace(
        a_server("x", C, ""),
        server_uuid=None,
        gtid_executed=None,
        gtid_purged=None,
        channels=None,
        unread=(UnreadFact("connection", UnreadReason.UNREACHABLE, "no answer"),),
    )
    [found] = errant(
        a_server("a", A, f"{A}:1-9"),
        a_server("b", B, f"{A}:1-9,{foreign}{also}", channels=(a_channel("a", A),)),
        unread,
    )
    assert (found.severity, found.grade) == (severity, Grade.LIKELY)
    assert "could not read has this server_uuid: x." in found.explanation
    assert [each.name for each in found.strategies] == ["add_servers"]
