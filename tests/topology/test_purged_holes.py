"""P1, P2, H3, H4: what each fact changes about transactions that the source has purged.

a has purged A:1-5, and b, its replica by file position, has A:1-2. c is another replica of a.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, an_unread
from tests.topology.test_purged_logs import FIFTH, FOURTH, logs
from tests.topology.test_source_ghosts import READ_ALL
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.edge_facts import EdgeFacts
from topology.policy import Policy
from topology.readings.snapshot import BinaryLog, LogPosition, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion
from topology.rules.purged import coming_elsewhere, latent_1236, purged_on_source

UUID_D = UUID("dddddddd-0000-0000-0000-000000000000")
STOPPED = ThreadState.STOPPED
OFF = {"settings": (("log_replica_updates", "OFF"),), "notable_settings": None}

SEEN = " So the GTID sets show: look at them with binlog show first."


def own(numbers: str) -> GtidSet:
    return GtidSet.parse(numbers and f"{A}:{numbers}")


def one(name: str, executed: str, purged: str = "", **facts: Any) -> ServerSnapshot:
    """Make a replica of a; `executed` and `purged` are numbers of A."""
    uuids = {"c": C, "d": UUID_D}
    made = {"channels": (a_channel("a", A),), "gtid_purged": own(purged), **facts}
    return a_server(name, uuids[name], own(executed), **made)


def cluster(
    *others: ServerSnapshot,
    a: dict[str, Any] | None = None,
    more: tuple[Any, ...] = (),
    **channel: Any,
) -> ClusterFacts:
    """Gather the facts of a -> b and of others; `channel` is that of b, `more` its other ones."""
    kept = {"gtid_purged": own("1-5"), "binary_logs": logs(500, lowest=5), **(a or {})}
    at = {"receiver": STOPPED, "auto_position": False, "received_to": FIFTH, **channel}
    servers = (
        a_server("a", A, own("1-9"), **kept),
        a_server("b", B, own("1-2"), channels=(a_channel("a", A, **at), *more)),
        *others,
    )
    return gather_facts(a_cluster("star", *servers), Policy())


def found(*others: ServerSnapshot, **facts: Any) -> list[Finding]:
    made = purged_on_source(cluster(*others, **facts))
    return [each for each in made if each.replica == "b"]


def names(finding: Finding) -> list[str]:
    return [each.name for each in finding.strategies]


def values(finding: Finding) -> list[tuple[str, str, str]]:
    return [(each.fact, each.value, each.read_from) for each in finding.evidence]


# -- H3 and H4 ------------------------------------------------------------------------------------


def test_h3_names_the_server_that_can_send_them() -> None:
    [h3] = found(one("c", "1-9"))
    assert (h3.code, h3.gtid_set, h3.grade) == ("H3", own("3-5"), Grade.PROVED)
    assert names(h3) == ["donor_refetch", "reclone"]
    assert values(h3) == [
        ("missing and purged on the source", f"{A}:3-5", "a"),
        ("neither executed nor retrieved", f"{A}:3-5", "b"),
        ("receiver", STOPPED.value, "b"),
        ("receiver error", "(none)", "b"),
        ("accepted, by the file position", str(FIFTH), "b"),
        ("donors that still have all of it", "c", "a"),
    ]
    assert h3.explanation.startswith("b needs 3 transactions that a has purged: this channel does")
    assert h3.explanation.endswith(f" c can still send them.{SEEN}")


def test_h4_is_what_no_server_has() -> None:
    h3, h4 = found(one("c", "1-9", "1-4"))
    assert (h3.code, h3.gtid_set, names(h3)) == ("H3", own("5"), ["donor_refetch", "reclone"])
    assert (h4.code, h4.gtid_set, names(h4)) == ("H4", own("3-4"), ["reclone"])
    assert h4.grade is Grade.PROVED
    assert ("donors that still have all of it", "none", "a") in values(h4)
    assert h4.explanation.endswith(" No audited server can send them.")


def test_two_servers_may_have_a_part_each() -> None:
    [h3] = found(one("c", "1-9", "1-4"), one("d", "3-4"))
    assert (h3.code, h3.gtid_set, names(h3)) == ("H3", own("3-5"), ["reclone"])
    assert h3.explanation.endswith(f" c, d can send a part of them.{SEEN}")


def test_the_first_donor_is_named() -> None:
    [h3] = found(one("c", "3-5"), one("d", "1-9"))
    assert ("donors that still have all of it", "c, d", "a") in values(h3)
    assert h3.explanation.endswith(f" c can still send them.{SEEN}")


def test_a_server_that_was_not_read_may_have_them() -> None:
    [h4] = found(one("c", "1-2"), an_unread("x"), an_unread("y"))
    assert (h4.code, h4.grade) == ("H4", Grade.LIKELY)
    assert h4.explanation.endswith(" send them. x, y could not be read, and may have them.")


def test_a_source_outside_the_audit_may_have_them() -> None:
    outside = a_channel("z", UUID_D, name="outside")
    [h4] = found(one("c", "1-2"), more=(outside,))
    assert (h4.code, h4.grade) == ("H4", Grade.LIKELY)
    assert " z.example:3306 may have them; gtid-audit did not read that." in h4.explanation
    assert " Channel outside, whose source was not read, may deliver them" in h4.explanation


def with_another_channel(**facts: Any) -> tuple[ClusterFacts, list[EdgeFacts]]:
    """Return b with a channel from c too; a part of its edge is what a case gives."""
    channel = a_channel("c", C, name=facts.pop("name", "two"))
    made = cluster(one("c", "1-2"), more=(channel,))
    replica = facts.pop("replica", "b")
    nothing = {part: own("") for part in ("expected", "queued_below", "queued_above")}
    edges = [
        replace(each, **{**nothing, **facts}) if each.source == "c" else each for each in made.edges
    ]
    edges = [
        replace(each, edge=replace(each.edge, replica=replica)) if each.source == "c" else each
        for each in edges
    ]
    return replace(made, edges=tuple(edges)), edges


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ""),
        ({"expected": own("5")}, "Channel two from c may deliver them"),
        ({"queued_below": own("3-4")}, "Channel two from c may deliver them"),
        ({"queued_above": own("3-9")}, "Channel two from c may deliver them"),
        ({"expected": own("6-9"), "queued_above": own("1-2")}, ""),  # others
        ({"expected": own("5"), "name": ""}, "Channel (default) from c may deliver them"),
        # Its edge is another replica's, so that of b was not compared.
        ({"expected": own("5"), "replica": "c"}, "Channel two, whose source was not read, may"),
    ],
)
def test_another_channel_may_deliver_them(facts: dict[str, Any], words: str) -> None:
    made, edges = with_another_channel(**facts)
    [edge] = [each for each in edges if (each.source, each.replica) == ("a", "b")]
    text = coming_elsewhere(made, edge, own("3-5"))
    assert text.startswith(f" {words}" if words else "")
    assert bool(text) is bool(words)
    [h4] = [each for each in purged_on_source(made) if each.replica == "b"]
    assert (h4.code, h4.grade) == ("H4", Grade.LIKELY if words else Grade.PROVED)
    assert h4.explanation.endswith(text)
    if words:
        assert "audit again when b has nothing left" in text


def test_a_source_refuses_what_another_channel_may_deliver() -> None:
    made, _ = with_another_channel(expected=own("3-5"))
    edges = [
        replace(each, edge=replace(each.edge, channel=replace(each.channel, auto_position=True)))
        for each in made.edges
    ]
    [p1] = [
        each
        for each in purged_on_source(replace(made, edges=tuple(edges)))
        if (each.source, each.replica) == ("a", "b")
    ]
    assert (p1.code, p1.grade) == ("P1", Grade.PROVED)
    assert "may deliver them" not in p1.explanation


def test_a_channel_is_none_beside_itself() -> None:
    made = cluster(one("c", "1-2"))
    edges = [replace(each, expected=own("3-5")) for each in made.edges]
    assert coming_elsewhere(replace(made, edges=tuple(edges)), edges[0], own("3-5")) == ""


# -- P1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "grade"),
    [
        ({"auto_position": True}, Grade.PROVED),
        ({"auto_position": True, "received_to": None}, Grade.PROVED),
        ({"a": {"binary_logs": logs(500, lowest=6)}}, Grade.PROVED),
        ({"received_to": None}, Grade.LIKELY),
        ({"a": {"binary_logs": ()}}, Grade.LIKELY),
        ({"a": {"binary_logs": None}}, Grade.LIKELY),
        ({"a": {"binary_logs": (BinaryLog("binlog", 500),)}}, Grade.LIKELY),  # no number
        ({"a": {"binary_logs": (BinaryLog("newbin.000001", 500),)}}, Grade.PROVED),
    ],
)
def test_p1_is_what_the_source_refuses(facts: dict[str, Any], grade: Grade) -> None:
    [p1] = found(one("c", "1-9"), **facts)
    assert (p1.code, p1.gtid_set, p1.grade) == ("P1", own("3-5"), grade)
    assert names(p1) == ["donor_refetch", "reclone"]
    assert "accepted, by the file position" not in [fact for fact, _, _ in values(p1)]
    is_open = "if the file of its position is also purged" in p1.explanation
    assert is_open is (grade is Grade.LIKELY)


def test_a_log_that_was_begun_after_the_list_was_read_is_there() -> None:
    """FLUSH BINARY LOGS between the reading of the source and that of the replica."""
    [h3] = found(one("c", "1-9"), a={"binary_logs": logs(500, lowest=1)[:1]})
    assert (h3.code, h3.grade) == ("H3", Grade.PROVED)


def test_p1_that_no_server_can_send() -> None:
    [p1] = found(one("c", "1-2"), an_unread("x"), auto_position=True, receiver_error="purged")
    assert (names(p1), p1.grade) == (["reclone"], Grade.PROVED)
    assert ("receiver error", "purged", "b") in values(p1)
    assert p1.explanation.endswith("refused with error 1236.")


@pytest.mark.parametrize(
    ("version", "applied_to", "state", "purged", "grade"),
    [
        ((5, 6, 24), FOURTH, READ_ALL, "3", Grade.LIKELY),
        ((5, 6, 24), FIFTH, READ_ALL, "3", Grade.PROVED),  # the applier has nothing left to do
        ((5, 6, 24), FIFTH, "System lock", "3", Grade.LIKELY),  # an equal place in another log
        ((5, 6, 24), FOURTH, READ_ALL, "3-4", Grade.PROVED),  # one of them at least is refused
        ((5, 7, 24), FOURTH, READ_ALL, "3", Grade.PROVED),
    ],
)
def test_before_5_7_the_last_transaction_of_a_relay_log_may_not_be_counted(
    version: tuple[int, int, int], applied_to: LogPosition, state: str, purged: str, grade: Grade
) -> None:
    at = {"applied_to": applied_to, "received_to": FIFTH, "applier_state": state}
    channel = a_channel("a", A, receiver=STOPPED, **at)
    b = a_server("b", B, own("1-2"), channels=(channel,), version=ServerVersion(*version))
    a = a_server("a", A, own("1-9"), gtid_purged=own(f"1-2:{purged}"))
    [p1] = purged_on_source(gather_facts(a_cluster("pair", a, b), Policy()))
    assert (p1.code, p1.gtid_set, p1.grade) == ("P1", own(purged), grade)
    assert ("Audit again when its applier" in p1.explanation) is (grade is Grade.LIKELY)


def test_a_source_that_logs_nothing_it_receives_is_to_be_configured_first() -> None:
    """Only what another server committed is in no binary log of it."""
    received = GtidSet.parse(f"{C}:1-3")
    a = {"gtid_executed": received, "gtid_purged": received, **OFF}
    [p1] = found(one("c", "", gtid_executed=received), a=a, auto_position=True)
    assert names(p1) == ["configure", "donor_refetch", "reclone"]
    assert values(p1)[0] == ("log_replica_updates", "OFF", "a")
    assert "b needs 3 transactions that a has in no binary log" in p1.explanation
    assert "log_replica_updates is OFF on a" in p1.explanation
    [by_hand] = found(one("c", "1-9"), a=OFF, auto_position=True)
    assert names(by_hand) == ["donor_refetch", "reclone"]
    assert "that a has purged:" in by_hand.explanation


@pytest.mark.parametrize("auto_position", [True, False])
def test_without_a_hole_nothing_is_reported(*, auto_position: bool) -> None:
    a = {"gtid_purged": own("1-2")}
    assert found(one("c", "1-9"), a=a, auto_position=auto_position) == []


def test_a_source_that_logs_nothing_is_no_donor() -> None:
    """When a was read first it had just executed C:3, and had not counted it as purged yet."""
    received, before = GtidSet.parse(f"{C}:1-3"), GtidSet.parse(f"{C}:1-2")
    facts = cluster(
        a={"gtid_executed": received, "gtid_purged": received, **OFF}, auto_position=True
    )
    a, *others = facts.snapshot.first
    first = (replace(a, gtid_purged=before), *others)
    snapshot = replace(facts.snapshot, first=first)
    [p1] = purged_on_source(gather_facts(snapshot, Policy()))
    assert (p1.gtid_set, names(p1)) == (received, ["configure", "reclone"])
    assert "can send" not in p1.explanation


# -- P2 -------------------------------------------------------------------------------------------


def p2(
    more: tuple[Any, ...] = (), others: tuple[ServerSnapshot, ...] = (), **channel: Any
) -> list[Finding]:
    made = {"gtid_retrieved": own("1-9"), "applier": STOPPED, **channel}
    return list(latent_1236(cluster(*others, more=more, **made)))


def test_p2_is_what_only_the_relay_log_has() -> None:
    [found] = p2()
    assert (found.source, found.replica, found.gtid_set) == ("a", "b", own("3-5"))
    assert (found.grade, found.severity, found.strategies) == (
        Grade.PROVED,
        Severity.WARNING,
        (),
    )
    assert values(found) == [
        ("gtid_purged", f"{A}:3-5", "a"),
        ("received, not executed", f"{A}:3-5", "b"),
        ("applier", STOPPED.value, "b"),
    ]
    assert "Another source" not in found.explanation


def test_p2_of_a_running_applier_is_info() -> None:
    [found] = p2(applier=ThreadState.RUNNING, gtid_retrieved=own("1-4"))
    assert (found.severity, found.gtid_set) == (Severity.INFO, own("3-4"))


@pytest.mark.parametrize(
    ("executed", "owned", "received", "expected"),
    [
        ("1-2", "3", "1-9", "3-5"),
        ("1-2:4", "3", "1-9", "3:5"),
        ("1-2", "4", "3", "3"),  # a session of b, and not the channel
    ],
)
def test_what_is_being_applied_is_in_the_relay_log_as_well(
    executed: str, owned: str, received: str, expected: str
) -> None:
    facts = cluster(gtid_retrieved=own(received), applier=STOPPED)
    b: dict[str, Any] = {"gtid_executed": own(executed), "gtid_owned": own(owned)}
    servers = [replace(each, **b) if each.name == "b" else each for each in facts.snapshot.first]
    [found] = latent_1236(gather_facts(a_cluster("star", *servers), Policy()))
    assert found.gtid_set == own(expected)


def test_the_source_of_another_replica_sends_them_to_that_one() -> None:
    c = one("c", "1-9", channels=(a_channel("d", UUID_D),))
    [found] = p2((), (c, one("d", "1-9", channels=())))
    assert found.gtid_set == own("3-5")


@pytest.mark.parametrize(
    ("c", "received", "expected"),
    [
        ("1-9", "", ""),  # c can send all of them
        ("1-4", "", "5"),
        ("", "3", "4-5"),  # another channel has received one
        ("1-4", "5", ""),
    ],
)
def test_another_source_of_the_replica_has_them(c: str, received: str, expected: str) -> None:
    channel = a_channel("c", C, name="two", gtid_retrieved=own(received))
    found = p2((channel,), (one("c", c, channels=()),))
    assert [each.gtid_set for each in found] == ([own(expected)] if expected else [])
    assert all(each.grade is Grade.PROVED for each in found)


def test_an_unread_source_of_the_replica_may_have_them() -> None:
    [found] = p2((a_channel("z", UUID_D, name="outside"),))
    assert (found.grade, found.gtid_set) == (Grade.LIKELY, own("3-5"))
    assert "Another source of b, which was not read, may still have them." in found.explanation
