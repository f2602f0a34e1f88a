"""What is on its way to a server, and not to those that have gone past it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.rules.build import evidence, finding
from topology.rules.bypassed_above import bypassed_on

HOLE = GtidSet.parse(f"{A}:2-5")


def bypassed(
    name: str,
    holes: Iterable[tuple[str, GtidSet]],
    sources: Mapping[str, str],
    *,
    code: str = "H1",
    grade: Grade = Grade.LIKELY,
    has: Mapping[str, str] = MappingProxyType({}),
) -> GtidSet:
    """Return what was bypassed on the way to a server; `sources` are channels by replica."""
    uuids = {"a": A, "b": B, "c": C}

    def server(one: str) -> Any:
        channels = tuple(a_channel(each, uuids[each], name=each) for each in sources.get(one, ""))
        return a_server(one, uuids[one], has.get(one, ""), channels=channels)

    facts = gather_facts(a_cluster("three", *map(server, "abc")), Policy())

    def hole(replica: str, gtids: GtidSet) -> Finding:
        return finding(
            facts,
            code,
            source="a",
            replica=replica,
            gtid_set=gtids,
            grade=grade,
            proof=(evidence("missing", gtids, facts.last[replica]),),
            explanation="",
        )

    return bypassed_on(facts, [hole(*each) for each in holes], name)


PAIR = {"a": "b", "b": "a", "c": "a"}
CHAIN = {"b": "a", "c": "b"}


@pytest.mark.parametrize(
    ("name", "holes", "sources", "found"),
    [
        ("c", ["c"], PAIR, HOLE),
        ("b", ["c"], PAIR, GtidSet()),  # c is beside it
        ("c", ["b"], CHAIN, HOLE),  # above it, on the only way
        ("b", ["c"], CHAIN, GtidSet()),
        ("c", ["b"], {"b": "a", "c": "ab"}, GtidSet()),  # it may come from a directly
        ("a", ["b"], {"a": "b", "b": "a"}, HOLE),  # a ring ends
    ],
)
def test_only_the_single_way_to_a_server_counts(
    name: str, holes: list[str], sources: dict[str, str], found: GtidSet
) -> None:
    assert bypassed(name, [(each, HOLE) for each in holes], sources) == found


def test_holes_add_up() -> None:
    two = [("c", GtidSet.parse(f"{A}:2")), ("b", GtidSet.parse(f"{A}:4"))]
    assert bypassed("c", two, CHAIN) == GtidSet.parse(f"{A}:2:4")


@pytest.mark.parametrize(
    ("code", "grade", "counts"),
    [
        *((code, grade, True) for code in ("H1", "H3", "H4", "H5") for grade in Grade),
        ("H8", Grade.PROVED, True),
        ("H8", Grade.LIKELY, False),  # it may still wait
        ("P1", Grade.PROVED, False),  # a connected receiver may fetch it
        ("E1", Grade.PROVED, False),
    ],
)
def test_what_is_gone_past_does_not_arrive(code: str, grade: Grade, *, counts: bool) -> None:
    found = bypassed("c", [("c", HOLE)], PAIR, code=code, grade=grade)
    assert found == (HOLE if counts else GtidSet())


def test_what_a_server_below_the_hole_has_comes_from_there() -> None:
    """b committed them itself, and is above c; its own source a has gone past them."""
    ring = {"a": "b", "b": "a", "c": "b"}
    assert bypassed("c", [("a", HOLE)], ring) == HOLE
    some = bypassed("c", [("a", HOLE)], ring, has={"b": f"{A}:2-4"})
    assert some == GtidSet.parse(f"{A}:5")
