"""C4, A4: sources that refuse the next connection: another gtid_mode than ON, or no binary log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.catalogue.findings import Grade
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.snapshot import ThreadState
from topology.rules.passing_on import source_refuses_sets, source_without_log

STOPPED, CONNECTING = ThreadState.STOPPED, ThreadState.CONNECTING


@pytest.mark.parametrize(
    ("mode", "channel", "words"),
    [
        ("ON", {}, ""),
        ("ON_PERMISSIVE", {}, "The receiver is connected, and continues"),
        ("ON_PERMISSIVE", {"auto_position": False}, ""),  # a file position needs no gtid_mode
        ("OFF_PERMISSIVE", {"receiver": STOPPED}, "The receiver is not connected."),
        # A4 reports the error of a receiver that was refused, or failed for another reason.
        ("OFF", {"receiver": STOPPED, "receiver_errno": 13117}, ""),
        ("OFF", {"receiver": STOPPED, "receiver_error": "refused"}, ""),
        ("OFF", {"receiver": CONNECTING, "receiver_errno": 1045, "receiver_error": "denied"}, ""),
        # A source that is away may be back soon, and refuses then.
        (
            "OFF",
            {"receiver": CONNECTING, "receiver_errno": 2003, "receiver_error": "lost"},
            "The receiver is not connected.",
        ),
    ],
)
def test_a_source_with_another_gtid_mode_refuses_the_next_connection(
    mode: str, channel: dict[str, Any], words: str
) -> None:
    a = a_server("a", A, f"{A}:1-9", settings=(("gtid_mode", mode),))
    b = a_server("b", B, f"{A}:1-9", channels=(a_channel("a", A, **channel),))
    found = list(source_refuses_sets(gather_facts(a_cluster("pair", a, b), Policy())))
    assert [(each.code, each.grade) for each in found] == [("C4", Grade.PROVED)] * bool(words)
    for each in found:
        assert f"gtid_mode is {mode} on a" in each.explanation
        assert words in each.explanation


@pytest.mark.parametrize(
    ("log_bin", "channel", "is_reported"),
    [
        ("ON", {}, False),
        ("OFF", {}, True),
        ("OFF", {"receiver": STOPPED}, True),
        # The error of the receiver is reported instead, unless the source is only away.
        ("OFF", {"receiver": STOPPED, "receiver_errno": 1236}, False),
        ("OFF", {"receiver": STOPPED, "receiver_error": "refused"}, False),
        ("OFF", {"receiver": CONNECTING, "receiver_errno": 2003}, True),
    ],
)
def test_a_source_without_a_binary_log_refuses_every_receiver(
    log_bin: str, channel: dict[str, Any], *, is_reported: bool
) -> None:
    a = a_server("a", A, f"{A}:1-9", settings=(("gtid_mode", "ON"), ("log_bin", log_bin)))
    b = a_server("b", B, f"{A}:1-9", channels=(a_channel("a", A, **channel),))
    found = list(source_without_log(gather_facts(a_cluster("pair", a, b), Policy())))
    assert [(each.code, each.grade) for each in found] == [("A4", Grade.PROVED)] * is_reported
