"""Which causes are left of what a channel has gone past: each row of the table, and what excludes it."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, a_channel, a_server
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogStart
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion
from topology.rules.absent_causes import causes_left, causes_text
from topology.rules.passed_by import PassedBy

STOPPED = ThreadState.STOPPED
POSITION, RESET, SKIPPED, CRASH = "file position", "reset", "skipped", "crash or copy"
OLD_LOG, UNLOGGED, SAME_ID, IGNORED = "source reset", "not logged", "same server_id", "ignored"
FORMER_ID, FORMER, IGNORED_THEN = "former server_id", "former history", "ignored then"


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:"))


@dataclass(frozen=True, kw_only=True)
class Case:
    """b does not have A:4-5 of a; what was read of both, and of the log of a."""

    received: str = ""
    channel: tuple[tuple[str, Any], ...] = ()
    uptime: int = 1000
    version: ServerVersion | None = None
    server_id: int = 2
    server_id_source: str | None = "EXPLICIT"
    gtid_mode: tuple[str, str] = ("ON", "EXPLICIT")  # and where b has it from
    committed_by: tuple[int, int] | None = (1, 1)  # of A:4 and A:5; None: they were not read
    earlier: bool = True  # A:1 was read as well
    is_place_proved: bool = True
    recovery: str = "OFF"  # relay_log_recovery of b
    workers: str = ""  # replica_parallel_workers of b
    log_begun: int | None = None  # seconds before noon: the first log of a
    source: tuple[tuple[str, str], ...] = ()  # settings
    committing: str = ""  # what sessions of a own


def _records(case: Case) -> tuple[CommitRecord, ...]:
    found = [(1, 1, 0)] if case.earlier else []
    if case.committed_by is not None:
        found += [(4, case.committed_by[0], 10), (5, case.committed_by[1], 20)]
    return tuple(
        CommitRecord(gtids(f"A:{number}"), by, at, is_exact=True, logged_at=at)
        for number, by, seconds in found
        for at in (NOON - timedelta(seconds=60 - seconds),)
    )


def _first_log(case: Case) -> LogStart | None:
    if case.log_begun is None:
        return None
    return LogStart("binlog.000001", NOON - timedelta(seconds=case.log_begun), GtidSet())


def absence(case: Case) -> PassedBy:
    a = a_server(
        "a",
        A,
        gtids("A:1-9"),
        server_id=1,
        settings=case.source,
        gtid_owned=gtids(case.committing),
        history_evidence=HistoryEvidence(_first_log(case), _records(case)),
    )
    channel = a_channel(
        "a",
        A,
        **{"auto_position": False, "gtid_retrieved": gtids("A:6-9"), **dict(case.channel)},
    )
    b = a_server(
        "b",
        B,
        gtids("A:1-3:6-9"),
        server_id=case.server_id,
        settings=(
            ("gtid_mode", case.gtid_mode[0]),
            ("gtid_mode_source", case.gtid_mode[1]),
            ("relay_log_recovery", case.recovery),
            *((("replica_parallel_workers", case.workers),) if case.workers else ()),
            *((("server_id_source", case.server_id_source),) if case.server_id_source else ()),
        ),
        uptime_seconds=case.uptime,
        channels=(channel,),
        **({} if case.version is None else {"version": case.version}),
    )
    facts = gather_facts(ClusterSnapshot("pair", (a, b), (later(a), later(b))), Policy())
    missing, received = gtids("A:4-5"), gtids(case.received)
    return PassedBy(
        facts,
        facts.edges[0],
        received=received,
        unsent=missing - received,
        is_place_proved=case.is_place_proved,
    )


def later(server: ServerSnapshot) -> ServerSnapshot:
    at = NOON + timedelta(seconds=1)
    return replace(server, phase=2, read_started=at, read_ended=at, server_clock=at)


KILLED = "killed workers"
OLD = ServerVersion(5, 6, 24)


@pytest.mark.parametrize(
    ("case", "is_left"),
    [
        (Case(recovery="ON", uptime=10, version=OLD), True),
        (Case(recovery="ON", uptime=10, version=OLD, workers="2"), True),
        (Case(recovery="ON", uptime=10, version=ServerVersion(9, 7, 4)), False),  # it fills them
        (Case(recovery="ON", version=OLD), False),  # it has been running since before them
        (Case(uptime=10, version=OLD), False),  # the relay log stays, and is applied
        (Case(recovery="ON", uptime=10, version=OLD, workers="1"), False),
        (Case(recovery="ON", uptime=10, version=OLD, channel=(("auto_position", True),)), False),
    ],
)
def test_workers_that_were_killed_are_a_cause_only_by_position_since_a_start(
    case: Case, *, is_left: bool
) -> None:
    assert (KILLED in causes_left(absence(case))) is is_left
    assert ("was killed while its workers had gaps" in causes_text(absence(case))) is is_left


BY_SET = ("auto_position", True)
HALTED = ("receiver", STOPPED)
IDS = ("ignored_server_ids", (1, 7))
# A:5, which a has committed 40 s before noon.
LAST = (
    ("last_queued", gtids("A:5")),
    ("last_queued_committed_at", NOON - timedelta(seconds=40)),
)


@pytest.mark.parametrize(
    ("case", "left"),
    [
        # By file position, and never received: H1, proved.
        (Case(), {POSITION}),
        # Its server_id was set since, or may have been (5.6 and 5.7 do not show it).
        (Case(server_id_source="DYNAMIC"), {POSITION, FORMER_ID}),
        (Case(server_id_source=None), {POSITION, FORMER_ID}),
        (Case(earlier=False), {RESET, POSITION}),
        (Case(uptime=30), {POSITION, SKIPPED, CRASH, IGNORED_THEN}),
        (Case(channel=(("gtid_retrieved", gtids("A:7-9")),)), {POSITION, SKIPPED}),
        (
            Case(committed_by=None),
            {RESET, POSITION, SKIPPED, CRASH, UNLOGGED, SAME_ID, IGNORED_THEN},
        ),
        # 8.0 and later refuse IGNORE_SERVER_IDS while gtid_mode is ON.
        (Case(gtid_mode=("ON", "DYNAMIC")), {POSITION, IGNORED_THEN}),
        (Case(gtid_mode=("ON_PERMISSIVE", "EXPLICIT")), {POSITION, IGNORED_THEN}),
        (Case(version=ServerVersion(5, 7, 44)), {POSITION, IGNORED_THEN}),
        # Behind a reset the earlier ones come again, and what carries its server_id does not.
        (Case(committed_by=(1, 2)), {RESET, POSITION, SAME_ID}),
        (Case(server_id=1), {RESET, POSITION, SAME_ID}),
        (Case(channel=(IDS,)), {IGNORED, POSITION}),
        (Case(channel=(("ignored_server_ids", (7,)),)), {POSITION}),
        # By auto-position, and the receiver has read past them: H8.
        (Case(channel=(BY_SET,)), set()),
        (Case(channel=(BY_SET,), uptime=30), {CRASH, FORMER_ID, IGNORED_THEN}),
        (Case(channel=(BY_SET,), server_id_source=None), {FORMER_ID}),
        (Case(channel=(BY_SET,), committed_by=(2, 2)), {RESET, SAME_ID}),
        # Its next connection asks for them again: the applier has been behind them.
        (Case(channel=(BY_SET, HALTED)), {POSITION, SKIPPED, OLD_LOG}),
        # Received, and behind the applier.
        (Case(received="A:4-5", channel=(BY_SET,)), {SKIPPED, FORMER}),
        (Case(received="A:4-5"), {POSITION, SKIPPED, FORMER}),
        (Case(received="A:4-5", channel=(BY_SET,), uptime=30), {SKIPPED, FORMER}),
        (
            Case(received="A:4-5", channel=(BY_SET,), uptime=30, is_place_proved=False),
            {SKIPPED, CRASH, FORMER},
        ),
        (
            Case(received="A:4-5", channel=(BY_SET,), uptime=30, version=ServerVersion(8, 0, 16)),
            {SKIPPED, CRASH, FORMER},
        ),
        (
            Case(received="A:4-5", channel=(BY_SET, ("applier", STOPPED))),
            {SKIPPED, OLD_LOG, FORMER},
        ),
        # What was received was logged, whatever its log shows now.
        (
            Case(received="A:4-5", channel=(BY_SET,), committed_by=None),
            {RESET, SKIPPED, FORMER},
        ),
        # A part of them was received.
        (
            Case(received="A:4", channel=(BY_SET,), uptime=30),
            {SKIPPED, CRASH, FORMER, IGNORED_THEN},
        ),
        # It is the one that was queued last, and the source has that commit now.
        (Case(received="A:4-5", channel=(BY_SET, *LAST), earlier=False), {RESET, SKIPPED, FORMER}),
        (Case(received="A:5", channel=(BY_SET, *LAST)), {SKIPPED}),
        (Case(received="A:5", channel=(BY_SET, LAST[0])), {SKIPPED, FORMER}),
        # Its relay logs began anew after the log of the source had begun.
        (Case(received="A:4-5", channel=(BY_SET,), recovery="ON", log_begun=2000), {SKIPPED}),
        (
            Case(received="A:4-5", channel=(BY_SET,), recovery="ON", log_begun=1002),
            {SKIPPED, FORMER},
        ),
        (
            Case(received="A:4-5", channel=(BY_SET,), recovery="OFF", log_begun=2000),
            {SKIPPED, FORMER},
        ),
    ],
)
def test_each_cause_is_left_unless_it_is_excluded(case: Case, left: set[str]) -> None:
    assert {*causes_left(absence(case))} == left


def test_the_text_says_what_each_cause_means_for_the_rows() -> None:
    case = Case(channel=(IDS,), uptime=30, committed_by=(7, 2), earlier=False)
    text = causes_text(absence(case))
    assert text.startswith(
        " Possible causes: IGNORE_SERVER_IDS (1, 7) of its channel (the rows are"
    )
    assert "; RESET BINARY LOGS AND GTIDS on b after them (the rows are there);" in text
    assert "; a file position that was set after them (the rows are missing, unless a dump" in text
    assert "; a crash of b that lost the end of its binary log, or an older copy" in text
    assert "; a server with the server_id of b, 2, committed them (the rows are missing)." in text
    assert text.endswith(
        " Compare the rows before any repair: if the rows are there, a second"
        " execution fails or doubles data."
    )


def test_what_no_cause_explains_was_there_before_the_receiver_connected() -> None:
    """A source does not send what a session of its replica has executed."""
    assert causes_text(absence(Case(channel=(BY_SET,)))).startswith(
        " Possible causes: RESET BINARY LOGS AND GTIDS on b after them (the rows are there), if"
        " they were executed there before they were sent (gtid_next). Compare the rows"
    )


@pytest.mark.parametrize(
    ("channel", "is_named"),
    [
        ({}, False),
        ({"gtid_retrieved": gtids("A:6-10")}, False),  # at the address of a: a has lost A:10
        ({"gtid_retrieved": gtids("A:6-10"), "source_host": "c.example"}, True),
        ({"gtid_retrieved": gtids("A:6-10"), "source_port": 3307}, True),
        ({"source_host": "c.example"}, True),  # a name of a, or a copy: it received none of these
    ],
)
def test_another_server_with_the_uuid_is_named(channel: dict[str, Any], *, is_named: bool) -> None:
    case = Case(channel=tuple(channel.items()))
    assert ("another source" in causes_left(absence(case))) is is_named
    assert ("another server with the same server_uuid at" in causes_text(absence(case))) is is_named


@pytest.mark.parametrize(
    ("received", "committing", "is_named"),
    [
        ("A:4-9", "", False),
        ("A:4-10", "", True),  # the source never had A:10, or has lost it
        ("A:4-10", "A:10", False),  # the source is still committing it
        ("A:4-11", "A:10", True),
    ],
)
def test_a_copy_of_the_source_is_named_if_the_channel_has_received_what_the_source_has_not(
    received: str, committing: str, *, is_named: bool
) -> None:
    channel = (("gtid_retrieved", gtids(received)), ("source_host", "c.example"), BY_SET)
    case = Case(received="A:4-5", channel=channel, committing=committing)
    assert ("another source" in causes_left(absence(case))) is is_named


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ((), "; no event for them in the binary logs of a"),
        ((("log_replica_updates", "OFF"),), "; log_replica_updates = OFF on a: no event for them"),
    ],
)
def test_a_source_without_an_event_is_named(settings: Any, said: str) -> None:
    assert said in causes_text(absence(Case(committed_by=None, source=settings)))


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (ServerVersion(8, 0, 16), "its data (the rows are probably there)"),
        (ServerVersion(8, 0, 17), "its data (compare the rows)"),
    ],
)
def test_a_crash_leaves_rows_where_gtids_are_in_the_log_alone(
    version: ServerVersion, said: str
) -> None:
    case = Case(received="A:4-5", uptime=30, version=version, is_place_proved=False)
    assert said in causes_text(absence(case))
