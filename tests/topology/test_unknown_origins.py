"""E5, F2: what each fact changes about UUIDs that belong to no audited server."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import gather_facts
from topology.facts.unknown_origins import UnknownOrigins, unknown_origins
from topology.policy import Policy
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState
from topology.readings.vendors import Vendor
from topology.rules.origins import dead_uuids, unknown_origin

X = UUID("77777777-0000-0000-0000-000000000000")
Y = UUID("88888888-0000-0000-0000-000000000000")


GROUP_OF_X = GroupSnapshot(str(X), "OFFLINE", "", GtidSet())
FORMERLY_X = a_channel("a", X, receiver=ThreadState.STOPPED)
SIX = "A:1-9,X:1-5," + ",".join(f"{UUID(int=number)}:1" for number in range(1, 6))


def gtids(text: str) -> GtidSet:
    for letter, uuid in (("A", A), ("B", B), ("C", C), ("X", X), ("Y", Y)):
        text = text.replace(f"{letter}:", f"{uuid}:")
    return GtidSet.parse(text)


def pair(*, a: str = "A:1-9,X:1-5", b: str = "A:1-9,X:1-5", **facts: Any) -> ClusterSnapshot:
    """Make a -> b with a UUID of no server; `facts` change b."""
    made = {"channels": (a_channel("a", A),), **facts}
    return a_cluster("pair", a_server("a", A, gtids(a)), a_server("b", B, gtids(b), **made))


def reading(snapshot: ClusterSnapshot, which: str, name: str, **facts: Any) -> ClusterSnapshot:
    """Change one reading of one server."""
    servers: tuple[ServerSnapshot, ...] = getattr(snapshot, which)
    made: dict[str, Any] = {
        which: tuple(replace(each, **facts) if each.name == name else each for each in servers)
    }
    return replace(snapshot, **made)


def found(snapshot: ClusterSnapshot, policy: Policy | None = None) -> UnknownOrigins | None:
    return unknown_origins(gather_facts(snapshot, policy or Policy()))


def of(alike: str = "", **missing: str) -> UnknownOrigins:
    return UnknownOrigins(
        gtids(alike), tuple((name, gtids(text)) for name, text in missing.items())
    )


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (pair(), of("X:1-5")),
        (pair(a="X:1-5", b="X:1-5"), of("X:1-5")),
        (pair(a="A:1-9", b="A:1-9"), of()),
        (pair(a="A:1-9,X:1-5,Y:1", b="A:1-9,X:1-5"), of("X:1-5", b="Y:1")),
        (pair(a="A:1-9,X:1-3,Y:1", b="A:1-9,X:2-5,Y:1"), of("Y:1", a="X:4-5", b="X:1")),
        (pair(server_uuid=X), of()),
        (pair(group=GROUP_OF_X), of()),
        (reading(pair(), "first", "b", group=GROUP_OF_X), of()),
        # b was connected to another server at the address of a.
        (pair(channels=(FORMERLY_X,)), of()),
        (reading(pair(), "first", "b", channels=(FORMERLY_X,)), of()),
        (reading(pair(), "last", "b", channels=(FORMERLY_X,)), of()),
        # What is at work has not ended.
        (pair(gtid_owned=gtids("X:6")), of()),
        (pair(gtid_owned=gtids("Y:6")), of("X:1-5")),
        (reading(pair(), "first", "b", gtid_owned=gtids("X:6")), of()),
        (reading(pair(), "last", "b", gtid_owned=gtids("X:6")), of()),
        # Time explains these: b had executed X:5 when it was read again.
        (reading(pair(), "first", "b", gtid_executed=gtids("A:1-9,X:1-4")), of()),
        (reading(pair(), "last", "a", gtid_executed=gtids("A:1-9,X:1-6")), of()),
        # Nobody but the UUID's owner knows what else there is.
        (a_cluster("three", *pair().first, an_unread("c")), None),
        (pair(channels=(a_channel("y", Y),)), None),
        (pair(vendor=Vendor.MARIADB), None),
    ],
)  # fmt: skip
def test_each_fact_decides(snapshot: ClusterSnapshot, expected: UnknownOrigins | None) -> None:
    assert found(snapshot) == expected


@pytest.mark.parametrize(
    ("allowed", "expected"), [({X}, of()), ({Y}, of("X:1-5"))], ids=["it", "another"]
)
def test_what_the_policy_allows_is_known(allowed: set[UUID], expected: UnknownOrigins) -> None:
    assert found(pair(), Policy(allowed_uuids=frozenset(allowed))) == expected


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (("A:1-9,X:1-5", "A:1-9,X:1-5"), of("X:1-5")),
        (("A:1-9,X:1-4", "A:1-9,X:1-5"), of("X:1-5")),
        (("A:1-9,X:1-4", "A:1-9,X:1-4"), of()),
        ((None, None), of("X:1-5")),
    ],
)
def test_each_consumer_counts_that_was_read(
    sets: tuple[str | None, str | None], expected: UnknownOrigins
) -> None:
    first, last = (
        OfferedReading(at, None if each is None else gtids(each), "" if each else "no answer")
        for at, each in zip((NOON, NOON + timedelta(minutes=1)), sets, strict=True)
    )
    consumer = ConsumerReading(
        "backup", server=None, place="a file", is_fixed=False, first=first, last=last
    )
    assert found(replace(pair(), consumers=(consumer,))) == expected


# -- what the rules report ------------------------------------------------------------------------


def e5(snapshot: ClusterSnapshot) -> Finding:
    [finding] = unknown_origin(gather_facts(snapshot, Policy()))
    return finding


def test_e5_reports_who_has_and_who_has_not() -> None:
    finding = e5(pair(a="A:1-9,X:1-5", b="A:1-9,X:1-3"))
    assert (finding.grade, finding.strategies, finding.gtid_set) == (
        Grade.LIKELY,
        (),
        gtids("X:4-5"),
    )
    assert [(each.read_from, each.value) for each in finding.evidence] == [
        ("a", f"{X}:4-5"),
        ("b", f"{X}:4-5"),
    ]
    assert finding.explanation.startswith("a executed 2 transactions with the UUID")
    assert "b does not have all of them" in finding.explanation


def test_e5_of_two_servers_names_both() -> None:
    explanation = e5(pair(a="A:1-9,X:1-3", b="A:1-9,X:2-5")).explanation
    assert explanation.startswith("a, b executed 3 transactions")
    assert "a, b do not have all of them" in explanation


def test_e5_names_a_group_whose_settings_were_not_read() -> None:
    servers = pair(a="A:1-9,X:1-5", b="A:1-9,X:1-3")
    unread = reading(servers, "first", "b", settings=None)
    assert e5(unread).explanation.endswith(
        "a server that no longer exists; a replication group of b, whose settings were not read."
    )
    assert e5(servers).explanation.endswith("a server that no longer exists.")


def test_without_a_difference_there_is_no_e5() -> None:
    assert not list(unknown_origin(gather_facts(pair(), Policy())))
    assert not list(unknown_origin(gather_facts(pair(vendor=Vendor.MARIADB), Policy())))


@pytest.mark.parametrize(("limit", "is_reported"), [(5, True), (6, False)])
def test_f2_begins_above_the_limit(limit: int, *, is_reported: bool) -> None:
    reported = list(dead_uuids(gather_facts(pair(a=SIX, b=SIX), Policy(dead_uuids_max=limit))))
    assert bool(reported) is is_reported
    for each in reported:
        assert (each.grade, each.strategies) == (Grade.LIKELY, ())
        assert each.gtid_set == gtids(SIX.removeprefix("A:1-9,"))
        assert [one.read_from for one in each.evidence] == ["a", "b"]
        assert "6 UUIDs of no audited server, and a, b agree on them." in each.explanation


def test_f2_of_one_server_compares_its_readings() -> None:
    alone = a_cluster("one", a_server("a", A, gtids(SIX)))
    [reported] = dead_uuids(gather_facts(alone, Policy()))
    assert "and a has the same of them in both readings." in reported.explanation
    of_mariadb = pair(a=SIX, b=SIX, vendor=Vendor.MARIADB)
    assert not list(dead_uuids(gather_facts(of_mariadb, Policy())))
