"""The contents of a fleet file as a text and back, and what a stored run does not have of it."""

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from spark_audit.absent_readings import READINGS, RunReadings, not_in_run
from spark_audit.expected_fleet import (
    CLUSTER,
    FLEET,
    POLICY,
    SERVER,
    ExpectedCluster,
    ExpectedFleet,
    ExpectedServer,
)
from tests.topology.test_accepted_findings import HOLE
from topology.audit_cluster import EVERY_SERVER
from topology.catalogue.findings import Unknown, Verdict
from topology.documents.record_codec import MalformedRecord
from topology.facts.accepted import AcceptedRepair
from topology.policy import Policy
from topology.rules.consumer_sets import CONSUMER_SET
from topology.rules.schema_differences import DEFINITIONS

UUIDS = [UUID(int=number) for number in (7, 1)]
PAIR = (ExpectedServer("a", "a.example", 3306), ExpectedServer("b", "b.example", 3307))
SENT = ExpectedFleet(
    (
        ExpectedCluster("orders", PAIR, ("cdc",), (("team", "blue"),)),
        ExpectedCluster("ö", PAIR[:1]),
    ),
    Policy(
        allowed_uuids=frozenset(UUIDS),
        stall_seconds_max=90,
        definitions=True,
        levels=(("C9", "warning"),),
        external_sources=frozenset({"b:2", "a:1"}),
        accepted=(AcceptedRepair("0123456789abcdef", datetime(2026, 1, 1, tzinfo=UTC), (), ()),),
        reconcile=("start",),
        accepted_findings=(HOLE,),
    ),
)


def test_a_fleet_comes_back_as_it_went() -> None:
    text = SENT.to_text()
    assert ExpectedFleet.from_text(text) == SENT
    shuffled = dataclasses.replace(SENT.policy, allowed_uuids=frozenset(reversed(UUIDS)))
    assert dataclasses.replace(SENT, policy=shuffled).to_text() == text


def test_no_field_is_forgotten() -> None:
    for shape in (FLEET, CLUSTER, SERVER, POLICY):
        assert isinstance(shape.make, type)
        assert set(shape.fields) == {each.name for each in dataclasses.fields(shape.make)}


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda found: found.update(layout=2), "layout"),
        (lambda found: found["clusters"][1].pop("servers"), r"clusters\[1\].servers"),
        (lambda found: found["policy"].update(intervals_max=1), "policy: intervals_max must be"),
        (lambda found: found["policy"].update(password="x"), "policy.password: no such field"),
        (lambda found: found["policy"]["accepted"].append("{}"), r"policy.accepted\[1\]"),
    ],
)
def test_what_is_not_ours_is_refused_with_the_place(
    spoil: Callable[[dict[str, Any]], object], place: str
) -> None:
    found = json.loads(SENT.to_text())
    spoil(found)
    with pytest.raises(MalformedRecord, match=place):
        ExpectedFleet.from_text(json.dumps(found))


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(MalformedRecord):
        ExpectedFleet.from_text(text)


# -- what a run does not have ---------------------------------------------------------------------

READ = RunReadings(
    "run=20260102T120001.040000Z",
    {
        "orders": {"a": ("a.example", 3306), "b": ("b.example", 3307)},
        "ö": {"a": ("a.example", 3306)},
    },
    {"orders": {"cdc"}},
    {"orders", "ö"},
)


def test_a_run_that_has_all_of_the_file_lacks_nothing() -> None:
    found = not_in_run(READ, SENT)
    assert (found.clusters, found.gaps) == ((), {})
    more = dataclasses.replace(READ, addresses={**READ.addresses, "other": {}})
    assert not_in_run(more, SENT) == found


def test_a_cluster_that_the_run_does_not_have_is_unknown_with_its_labels() -> None:
    read = dataclasses.replace(READ, addresses={"ö": READ.addresses["ö"]})
    (audit,) = not_in_run(read, SENT).clusters
    reason = f"{READ.run} does not contain this cluster"
    assert (audit.cluster, audit.verdict, audit.servers) == ("orders", Verdict.UNKNOWN, ("a", "b"))
    assert audit.labels == (("team", "blue"),)
    assert audit.unknown == tuple(Unknown("orders", each, READINGS, reason) for each in "ab")
    (selected,) = not_in_run(dataclasses.replace(read, partial=["x", "y"]), SENT).clusters
    assert selected.unknown[0].reason == f"{reason}: it was taken with `--cluster x, y`"


@pytest.mark.parametrize(
    ("read", "unknown"),
    [
        (
            dataclasses.replace(READ, addresses={**READ.addresses, "ö": {}}),
            Unknown("ö", "a", READINGS, "the stored run has no reading of this server"),
        ),
        (
            dataclasses.replace(READ, addresses={**READ.addresses, "ö": {"a": ("c.example", 1)}}),
            Unknown(
                *("ö", "a", READINGS),
                "the stored run has a reading of c.example:1, but the fleet file has"
                " a.example:3306",
            ),
        ),
        (
            dataclasses.replace(READ, consumers={"ö": {"cdc"}}),
            Unknown(
                *("orders", "cdc", CONSUMER_SET), "the stored run has no reading of this consumer"
            ),
        ),
        (
            dataclasses.replace(READ, defined={"orders"}),
            Unknown(
                *("ö", EVERY_SERVER, DEFINITIONS),
                "the stored run has none, and the policy asks for them",
            ),
        ),
    ],
)
def test_what_a_cluster_of_the_run_lacks_is_unknown(read: RunReadings, unknown: Unknown) -> None:
    found = not_in_run(read, SENT)
    assert (found.clusters, found.gaps) == ((), {unknown.cluster: (unknown,)})


def test_definitions_are_missing_only_if_the_policy_asks_for_them() -> None:
    read = dataclasses.replace(READ, defined=())
    lenient = dataclasses.replace(SENT, policy=Policy())
    assert not_in_run(read, lenient).gaps == {}
    assert set(not_in_run(read, SENT).gaps) == {"orders", "ö"}
