"""Until when a server keeps what another server needs: settings, times of logs, and findings."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, a_channel, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.facts.runway import Retention, deadline_of, retention_of
from topology.policy import Policy
from topology.readings.history_evidence import HistoryEvidence, LogReach
from topology.readings.snapshot import (
    BinaryLog,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.vendors import Vendor

DAY = timedelta(days=1)
WEEK = (("binlog_expire_logs_seconds", "604800"),)
CLOSED = NOON - timedelta(days=6, hours=12)
LATER = NOON + timedelta(seconds=1)  # of the second readings
STOPPED = ThreadState.STOPPED
BEFORE = LogPosition.of(file="binlog.000003", position=100)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:"))


def logs(wanted: str, closed_at: datetime | None) -> HistoryEvidence:
    return HistoryEvidence(None, (), reaches=(LogReach(gtids(wanted), "binlog.000002", closed_at),))


def audited(*servers: ServerSnapshot, policy: Policy | None = None) -> dict[str, Finding]:
    """Return the findings about servers that did not change between the readings, by code."""
    at: dict[str, Any] = dict.fromkeys(("read_started", "read_ended", "server_clock"), LATER)
    last = tuple(replace(each, phase=2, **at) for each in servers)
    findings = audit_cluster(ClusterSnapshot("c", servers, last), policy or Policy()).findings
    found = {each.code: each for each in findings}
    assert len(found) == len(findings)
    return found


@pytest.mark.parametrize(
    ("settings", "vendor", "kept"),
    [
        (WEEK, Vendor.MYSQL, Retention("binlog_expire_logs_seconds", 604_800, 7 * DAY)),
        ((("expire_logs_days", "3"),), Vendor.MYSQL, Retention("expire_logs_days", 3, 3 * DAY)),
        # 8.0 has both: the days only count if the seconds are 0.
        (
            (("binlog_expire_logs_seconds", "60"), ("expire_logs_days", "3")),
            Vendor.PERCONA,
            Retention("binlog_expire_logs_seconds", 60, timedelta(minutes=1)),
        ),
        (
            (("binlog_expire_logs_seconds", "0"), ("expire_logs_days", "3")),
            Vendor.MYSQL,
            Retention("expire_logs_days", 3, 3 * DAY),
        ),
        ((("binlog_expire_logs_auto_purge", "ON"), *WEEK), Vendor.MYSQL, 7 * DAY),
        # It keeps them for ever, by any of three settings.
        ((("binlog_expire_logs_auto_purge", "OFF"), *WEEK), Vendor.MYSQL, None),
        ((("binlog_expire_logs_seconds", "0"),), Vendor.MYSQL, None),
        ((("expire_logs_days", "0"),), Vendor.MYSQL, None),
        # The service deletes logs by its own rule; and what was not read shows nothing.
        (WEEK, Vendor.AURORA, None),
        (None, Vendor.MYSQL, None),
    ],
)
def test_the_settings_show_for_how_long_logs_are_kept(
    settings: tuple[tuple[str, str], ...] | None,
    vendor: Vendor,
    kept: Retention | timedelta | None,
) -> None:
    found = retention_of(a_server("a", A, "", settings=settings, vendor=vendor))
    assert (found.period if found and isinstance(kept, timedelta) else found) == kept


def source(closed_at: datetime | None = CLOSED, **facts: Any) -> ServerSnapshot:
    """Return a, which keeps its logs for a week."""
    shown: dict[str, Any] = {
        "settings": WEEK,
        "history_evidence": logs("A:4-9", closed_at),
        **facts,
    }
    return a_server("a", A, gtids("A:1-9"), **shown)


def stopped(**channel: Any) -> ServerSnapshot:
    """Return b, which replicates from a and was stopped."""
    places = {"received_to": BEFORE, "applied_to": BEFORE, "gtid_retrieved": gtids("A:1-3")}
    facts = {**places, "receiver": STOPPED, "applier": STOPPED, **channel}
    return a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, **facts),))


def until(server: ServerSnapshot, wanted: str) -> datetime:
    found = deadline_of(server, gtids(wanted))
    assert found is not None
    return found.until


def test_a_log_goes_when_it_was_last_written_to_so_long_ago() -> None:
    assert until(source(), "A:4-9") == CLOSED + 7 * DAY
    # By the auditor's clock: that of the server is an hour ahead.
    ahead = source(server_clock=NOON + timedelta(hours=1, milliseconds=40))
    assert until(ahead, "A:5") == CLOSED + 7 * DAY - timedelta(hours=1)


def test_the_log_in_use_stays_for_the_whole_time_from_now_on() -> None:
    read = NOON.replace(microsecond=0)
    assert until(source(None), "A:4-9") == read + 7 * DAY
    listed = source(binary_logs=(BinaryLog("binlog.000007", 157),))
    nothing = deadline_of(listed, GtidSet())
    assert nothing is not None
    assert (nothing.reach.file, nothing.until) == ("binlog.000007", read + 7 * DAY)
    assert deadline_of(source(), GtidSet()) is None, "no logs were read"


def test_what_was_not_looked_up_has_no_deadline() -> None:
    assert deadline_of(source(), gtids("A:3-9")) is None
    assert deadline_of(source(history_evidence=None), gtids("A:4-9")) is None
    assert deadline_of(source(settings=()), gtids("A:4-9")) is None


def test_a_stopped_replica_has_until_then() -> None:
    found = audited(source(), stopped())
    assert found.keys() == {"A7", "P3"}
    assert found["A7"].deadline == found["P3"].deadline == CLOSED + 7 * DAY
    runway = found["P3"]
    assert (runway.source, runway.replica, runway.channel) == ("a", "b", "")
    assert runway.gtid_set == gtids("A:4-9")
    assert {each.fact: each.value for each in runway.evidence} == {
        "needed, in its binary logs": str(gtids("A:4-9")),
        "first binary log with any of them": "binlog.000002",
        "last written to": "2025-12-27 00:00:00 UTC",
        "binlog_expire_logs_seconds": "604800",
    }
    assert "a keeps logs for 7 days" in runway.explanation
    assert "the first rotation after 2026-01-03 00:00:00 UTC deletes it." in runway.explanation


def test_a_log_past_its_time_goes_with_the_next_rotation() -> None:
    runway = audited(source(NOON - 8 * DAY), stopped())["P3"]
    assert runway.deadline == NOON - DAY
    assert "the next rotation (FLUSH LOGS, a restart, max_binlog_size)" in runway.explanation


def test_the_log_in_use_is_deleted_later_than_the_retention() -> None:
    hour = (("binlog_expire_logs_seconds", "3600"),)
    runway = audited(source(None, settings=hour), stopped())["P3"]
    assert "it is the log in use, so it is deleted at 2026-01-02 13:00:01" in runway.explanation
    assert "a keeps logs for 1 hour" in runway.explanation


@pytest.mark.parametrize(("seconds", "is_short"), [(43_199, False), (43_200, True), (0, False)])
def test_the_policy_has_the_time_that_is_enough(seconds: int, *, is_short: bool) -> None:
    found = audited(source(), stopped(), policy=Policy(runway_seconds_min=seconds))
    assert ("P3" in found) is is_short
    assert found["A7"].deadline == CLOSED + 7 * DAY, "it is shown in any case"


def test_a_receiver_that_runs_needs_nothing_more() -> None:
    running = {"receiver": ThreadState.RUNNING, "applier": ThreadState.RUNNING}
    found = audited(source(), stopped(**running))
    assert found.keys() == {"T3"}
    assert found["T3"].deadline is None


def test_what_is_errant_is_read_from_the_log_of_its_holder() -> None:
    holder = replace(
        stopped(receiver=ThreadState.RUNNING, applier=ThreadState.RUNNING),
        gtid_executed=gtids("A:1-9,B:1"),
        settings=WEEK,
        history_evidence=logs("B:1", CLOSED),
    )
    found = audited(source(), holder)
    assert found["E1"].deadline == CLOSED + 7 * DAY
    assert (found["P3"].source, found["P3"].replica, found["P3"].channel) == ("b", "a", None)
    assert [each.name for each in found["P3"].strategies] == ["raise_retention"]


def test_a_server_that_would_join_has_until_then() -> None:
    found = audited(source(), a_server("b", B, gtids("A:1-3")))
    assert found["J1"].deadline == CLOSED + 7 * DAY
    extra = a_server(
        "b", B, gtids("A:1-3,B:1"), settings=WEEK, history_evidence=logs("B:1", NOON - 2 * DAY)
    )
    found = audited(source(), extra)
    assert found["J3"].deadline == NOON + 5 * DAY, "its own logs have what only it has"


def test_logs_that_could_not_be_read_leave_it_unknown() -> None:
    refused = HistoryEvidence(None, (), "the times of binary logs: access denied")
    servers = (source(history_evidence=refused), stopped())
    at: dict[str, Any] = dict.fromkeys(("read_started", "read_ended", "server_clock"), LATER)
    last = tuple(replace(each, phase=2, **at) for each in servers)
    audit = audit_cluster(ClusterSnapshot("c", servers, last))
    [unknown] = audit.unknown
    assert (unknown.server, unknown.reason) == ("a", "the times of binary logs: access denied")
    assert unknown.fact == "until when it keeps 6 transactions that b needs"
    assert {each.code for each in audit.findings} == {"A7"}
    for_ever = tuple(replace(each, settings=()) for each in last)
    assert audit_cluster(ClusterSnapshot("c", servers, for_ever)).unknown == ()


def test_a_log_that_is_gone_has_no_deadline() -> None:
    listed = (BinaryLog("binlog.000002", 0), BinaryLog("binlog.000003", 4711))
    assert deadline_of(source(binary_logs=listed), gtids("A:4-9")) is None
    found = audited(source(binary_logs=listed), stopped())
    assert found.keys() == {"A7"}
    assert "a cannot open binlog.000002" in found["A7"].explanation
