"""A reading with all facts by which servers are compared is of a type of its own."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_cluster, a_server, with_facts
from topology.facts.cluster_readings import read_twice, readings_of
from topology.policy import Policy
from topology.readings.snapshot import ReadServer, ServerSnapshot, as_read

COMPARED = ("server_uuid", "gtid_executed", "gtid_purged", "gtid_owned")


def test_a_complete_reading_keeps_every_fact() -> None:
    reading = a_server("a", A, f"{A}:1-3", gtid_purged=GtidSet.parse(f"{A}:1"))
    read = as_read(reading)
    assert type(read) is ReadServer
    for each in fields(ServerSnapshot):
        assert getattr(read, each.name) is getattr(reading, each.name)
    assert as_read(read) is read


@pytest.mark.parametrize("absent", COMPARED)
def test_a_reading_without_one_of_them_is_not_compared(absent: str) -> None:
    reading = a_server("a", A, f"{A}:1")
    nothing: dict[str, Any] = {absent: None}
    part = with_facts(reading, **nothing)
    assert as_read(part) is part
    assert type(part) is ServerSnapshot
    with pytest.raises(ValueError, match=f"a: {absent} was not read"):
        replace(as_read(reading), **nothing)


@pytest.mark.parametrize("phase", ["first", "last"])
def test_a_server_is_compared_only_if_both_readings_are_complete(phase: str) -> None:
    whole = a_cluster("c", a_server("a", A, f"{A}:1"), a_server("b", B, f"{A}:1"))
    assert [*read_twice(whole)] == ["a", "b"]
    a, b = getattr(whole, phase)
    changed: dict[str, Any] = {phase: (with_facts(a, gtid_owned=None), b)}
    part = replace(whole, **changed)
    assert [*read_twice(part)] == ["b"]
    readings = readings_of(part, Policy())
    assert ([*readings.fully_read], [*readings.last]) == (["b"], ["a", "b"])


def test_two_servers_with_one_uuid_are_read_and_not_compared() -> None:
    same = a_cluster("c", a_server("a", A, f"{A}:1"), a_server("b", A, f"{A}:2"))
    assert not readings_of(same, Policy()).fully_read
    assert readings_of(same, Policy()).twins == (("a", "b"),)
