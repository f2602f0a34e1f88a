"""Every combination of what SHOW REPLICA STATUS shows of two threads: each fact has one finding."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.readings.snapshot import ThreadState

RECEIVERS: tuple[dict[str, Any], ...] = (
    {"receiver": ThreadState.RUNNING},
    {"receiver": ThreadState.STOPPED},
    {"receiver": ThreadState.CONNECTING, "receiver_errno": 2003, "receiver_error": "no answer"},
    {
        "receiver": ThreadState.STOPPED,
        "receiver_errno": 13114,
        "receiver_error": "fatal error 1236",
    },
)
APPLIERS: tuple[dict[str, Any], ...] = (
    {"applier": ThreadState.RUNNING},
    {"applier": ThreadState.STOPPED},
    {"applier": ThreadState.STOPPED, "applier_errno": 1062, "applier_error": "Duplicate entry"},
)
CONDITIONS = ("", "SQL_BEFORE_GTIDS", "SOURCE_LOG_POS binlog.000009:4", "SQL_AFTER_MTS_GAPS")
SETS = (("1-5", "1-5", "1-5"), ("1-9", "1-5", "1-7"), ("1-9", "1-4:6", "1-6"))


@pytest.mark.parametrize("auto_position", [True, False])
@pytest.mark.parametrize("skip_counter", [0, 1])
def test_every_combination_of_states_is_evaluated(auto_position: bool, skip_counter: int) -> None:
    found_count = 0
    for receiver, applier, until, (source, here, received) in product(
        RECEIVERS, APPLIERS, CONDITIONS, SETS
    ):
        channel = a_channel(
            "a",
            A,
            **receiver,
            **applier,
            until=until,
            auto_position=auto_position,
            skip_counter=skip_counter,
            gtid_retrieved=GtidSet.parse(f"{A}:{received}"),
        )
        replica = a_server("b", B, f"{A}:{here}", channels=(channel,))
        audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:{source}"), replica))
        about = [each for each in audit.findings if each.code == "A7"]
        # No exception, and one A7 for a channel at most: it says what UNTIL will do as well.
        assert len(about) <= 1
        found_count += len(about)
        for found in about:
            shows_condition = bool(until) and applier != APPLIERS[2]
            assert ("with UNTIL" in found.explanation) is shows_condition
        # A thread that is stopped without an error of its own was stopped by an operator, whatever
        # the other one's error is. A failed applier explains its stopped receiver.
        is_by_hand = receiver == RECEIVERS[1] or applier == APPLIERS[1]
        if is_by_hand and applier != APPLIERS[2]:
            assert about
    assert found_count > 30


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("receiver", [1, 2])
def test_what_only_a_relay_log_has_is_said_if_its_source_was_not_read(
    receiver: int, *, is_read: bool
) -> None:
    """The source is dead; its receiver tries to connect, or was stopped too."""
    channel = a_channel(
        "a", A, **RECEIVERS[receiver], **APPLIERS[1], gtid_retrieved=GtidSet.parse(f"{A}:1-7")
    )
    replica = a_server("b", B, f"{A}:1-5", channels=(channel,))
    source = a_server("a", A, f"{A}:1-9")
    servers = (source, replica) if is_read else (replica, a_server("c", C, f"{A}:1-5"))
    found = [
        each
        for each in audit_cluster(a_cluster("pair", *servers)).findings
        if (each.code, each.replica) == ("A7", "b") and each.source != "c"
    ]
    [said] = [each.explanation for each in found if "replicating" in each.explanation]
    warns = "It has received 2 transactions that it has not applied, and its source was not read"
    assert (warns in said) is not is_read
