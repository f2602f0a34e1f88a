"""A4 of a receiver that a copy of its server disconnected: whether the copy is still one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.catalogue.findings import Finding
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot, ThreadState
from topology.rules.distinct_uuids import UUIDS_NOW, have_distinct_uuids
from topology.rules.threads import receiver_error

COPY = (
    "Got fatal error 1236 from source when reading data from binary log: 'A replica with the same"
    " server_uuid/server_id as this replica has connected to the source'"
)
OF_56 = "A slave with the same server_uuid/server_id as this slave has connected to the master"


def a4(*others: ServerSnapshot, error: str = COPY, channels: int = 1, **source: Any) -> Finding:
    """Return A4 of b, whose receiver from a stopped."""
    stopped = a_channel(
        "a", A, receiver=ThreadState.STOPPED, receiver_errno=13114, receiver_error=error
    )
    more = [replace(a_channel("a", A), name=f"more{at}") for at in range(1, channels)]
    b = a_server("b", B, f"{A}:1-3", channels=(stopped, *more))
    a = a_server("a", A, f"{A}:1-3", **source)
    facts = gather_facts(a_cluster("servers", a, b, *others), Policy())
    [found] = receiver_error(facts)
    return found


@pytest.mark.parametrize("error", [COPY, OF_56])
def test_servers_that_differ_show_that_the_copy_was_repaired(error: str) -> None:
    found = a4(a_server("c", C, f"{A}:1-3"), error=error)
    assert have_distinct_uuids(found)
    [fact] = [each.value for each in found.evidence if each.fact == UUIDS_NOW]
    assert fact == "3, all different"
    assert "and b only needs a start. If a server that this audit did not read" in found.explanation


@pytest.mark.parametrize(
    "found",
    [
        a4(a_server("c", B, f"{A}:1-3")),  # the copy is still one
        a4(an_unread("c")),
        a4(error="Binary log is not open"),
        a4(channels=2),  # they disconnect each other
    ],
)
def test_nothing_is_concluded_where_another_cause_is_left(found: Finding) -> None:
    assert not have_distinct_uuids(found)
    assert "different server_uuids" not in found.explanation


def test_another_code_is_never_this_one() -> None:
    assert not have_distinct_uuids(replace(a4(), code="A7"))
