"""What a plan takes from the readings and findings: one fact at a time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from gtid import GtidSet
from repair.model.initial_model import known_servers, start_model
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.model.strategy_case import LogEvidence
from tests.repair.build import gtids
from tests.repair.cases import a_content, a_finding
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, commits_of, with_facts
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Evidence, Finding, Severity
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, LogPosition, ThreadState

EXECUTED = f"{A}:1-3"


def pair(*, channel: dict[str, Any] | None = None, **source: Any) -> ClusterSnapshot:
    """Return a -> b, with other facts of the source or of the channel."""
    b = a_server("b", B, EXECUTED, channels=(a_channel("a", A, **(channel or {})),))
    return a_cluster("cluster", a_server("a", A, EXECUTED, **source), b)


def audit_of(snapshot: ClusterSnapshot, *findings: Finding) -> ClusterAudit:
    return replace(audit_cluster(snapshot), findings=findings)


def begun(
    snapshot: ClusterSnapshot, *findings: Finding, evidence: LogEvidence | None = None
) -> Model:
    return start_model(snapshot, audit_of(snapshot, *findings), evidence or LogEvidence())


def source_of(snapshot: ClusterSnapshot) -> ModelServer:
    return begun(snapshot)["a"]


def channel_of(*findings: Finding, evidence: LogEvidence | None = None, **facts: Any) -> Any:
    found = begun(pair(channel=facts), *findings, evidence=evidence)["b"].channel("")
    assert isinstance(found, ModelChannel)
    return found


@pytest.mark.parametrize(
    "absent", ["server_uuid", "gtid_executed", "gtid_purged", "gtid_owned", "version", "channels"]
)
def test_a_server_without_one_of_these_facts_is_not_known(absent: str) -> None:
    snapshot = pair(**{absent: None})
    assert set(known_servers(snapshot, audit_of(snapshot))) == {"b"}


@pytest.mark.parametrize("absent", ["server_uuid", "gtid_executed", "gtid_purged", "gtid_owned"])
def test_a_server_whose_sets_were_read_once_is_not_known(absent: str) -> None:
    """The rules evaluate no pair with it: what is left to do there is found by no later audit."""
    snapshot, unread = pair(), cast("dict[str, Any]", {absent: None})
    first = tuple(
        with_facts(each, **unread) if each.name == "a" else each for each in snapshot.first
    )
    snapshot = replace(snapshot, first=first)
    assert set(known_servers(snapshot, audit_of(snapshot))) == {"b"}


@pytest.mark.parametrize(
    ("before", "now", "known"),
    [
        ("", EXECUTED, {"b"}),  # RESET BINARY LOGS AND GTIDS and SET GLOBAL gtid_purged, perhaps
        ("", f"{A}:1-2", {"a", "b"}),
        (EXECUTED, EXECUTED, {"a", "b"}),
    ],
)
def test_a_server_whose_logs_were_emptied_meanwhile_is_not_known(
    before: str, now: str, known: set[str]
) -> None:
    first, last = (pair(gtid_purged=GtidSet.parse(each)) for each in (before, now))
    snapshot = replace(last, first=first.first)
    assert set(known_servers(snapshot, audit_of(snapshot))) == known


@pytest.mark.parametrize(
    ("code", "known"), [("C1", set()), ("U2", set()), ("E1", {"a", "b"}), ("C2", {"a", "b"})]
)
def test_servers_whose_sets_may_be_wrong_are_not_known(code: str, known: set[str]) -> None:
    snapshot = pair()
    assert set(known_servers(snapshot, audit_of(snapshot, a_finding(code, "a:1")))) == known


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((), (True, False, True, True)),
        ((("gtid_mode", "ON"),), (True, False, True, True)),
        ((("gtid_mode", "ON_PERMISSIVE"),), (False, False, True, True)),
        ((("gtid_mode", "OFF"),), (False, False, True, True)),
        ((("sql_replica_skip_counter", "0"),), (True, False, True, True)),
        ((("sql_replica_skip_counter", "2"),), (True, True, True, True)),
        ((("log_bin", "OFF"),), (True, False, False, True)),
        ((("log_replica_updates", "OFF"),), (True, False, True, False)),
    ],
)
def test_settings_decide_what_a_server_can_send(
    settings: tuple[tuple[str, str], ...], expected: tuple[bool, ...]
) -> None:
    found = source_of(pair(settings=settings))
    assert (found.sends_by_sets, found.skips_next, found.has_log, found.logs_received) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((), ()),
        ((("binlog_do_db", ""), ("binlog_ignore_db", "")), ()),
        ((("binlog_ignore_db", "mysql"),), (("binlog_ignore_db", "mysql"),)),
        (
            (("binlog_ignore_db", "mysql"), ("binlog_do_db", "shop,stock")),
            (("binlog_do_db", "shop,stock"), ("binlog_ignore_db", "mysql")),
        ),
    ],
)
def test_filters_of_a_binary_log_are_kept_with_their_databases(
    settings: tuple[tuple[str, str], ...], expected: tuple[tuple[str, str], ...]
) -> None:
    assert source_of(pair(settings=settings)).log_filters == expected


@pytest.mark.parametrize(
    ("settings", "rows", "image", "partial"),
    [
        ((), True, "FULL", False),
        ((("binlog_format", "ROW"), ("binlog_row_image", "MINIMAL")), True, "MINIMAL", False),
        ((("binlog_format", "MIXED"),), False, "FULL", False),
        ((("binlog_row_value_options", "PARTIAL_JSON"),), True, "FULL", True),
        ((("binlog_row_value_options", ""),), True, "FULL", False),
    ],
)
def test_settings_decide_in_which_form_a_server_logs_rows(
    settings: tuple[tuple[str, str], ...], image: str, *, rows: bool, partial: bool
) -> None:
    found = source_of(pair(settings=settings))
    assert (found.logs_rows, found.row_image, found.logs_partial_json) == (rows, image, partial)


Settings = tuple[tuple[str, str], ...] | None
GROUP, OTHER_GROUP = (
    (("group_replication_group_name", f"{each * 8}-0000-0000-0000-000000000000"),) for each in "de"
)


@pytest.mark.parametrize(
    ("settings", "member", "other", "expected"),
    [
        ((), (), GROUP, None),  # its settings were read: it is in no group
        (None, None, GROUP, GROUP),
        (None, None, (), None),
        (None, OTHER_GROUP, GROUP, OTHER_GROUP),
        (OTHER_GROUP, None, GROUP, OTHER_GROUP),
        (GROUP, None, (), GROUP),
    ],
)
def test_a_server_without_settings_may_be_a_member_of_a_group_that_is_known(
    settings: Settings, member: Settings, other: Settings, expected: Settings
) -> None:
    a = a_server("a", A, EXECUTED, settings=settings)
    if member:
        a = replace(a, group=GroupSnapshot(member[0][1], "ONLINE", "PRIMARY", GtidSet()))
    snapshot = a_cluster("cluster", a, a_server("b", B, EXECUTED, settings=other))
    found = begun(snapshot)["a"].group_name
    assert found == (None if expected is None else UUID(expected[0][1]))


@pytest.mark.parametrize("is_same", [True, False])
def test_a_stopped_replica_with_another_commit_of_the_source_has_a_former_history(
    *, is_same: bool
) -> None:
    """The sets agree: only the times of the commits show that the source gave a:3 again."""
    evidence = commits_of(f"{A}:1", f"{A}:3")
    times = [
        replace(each, committed_at=each.committed_at - timedelta(hours=1))
        for each in evidence.commits
    ]
    theirs = evidence if is_same else replace(evidence, commits=(evidence.commits[0], times[1]))
    stopped = a_channel("a", A, receiver=STOPPED)
    snapshot = a_cluster(
        "cluster",
        a_server("a", A, EXECUTED, history_evidence=evidence),
        a_server("b", B, EXECUTED, channels=(stopped,), history_evidence=theirs),
    )
    found = begun(snapshot)["b"].channel("")
    assert isinstance(found, ModelChannel)
    assert found.may_be_former is not is_same


def test_a_channel_with_a_skip_counter_skips_the_next() -> None:
    assert begun(pair(channel={"skip_counter": 1}))["b"].skips_next
    assert not begun(pair())["b"].skips_next
    since = replace(pair(), last=pair(channel={"skip_counter": 1}).last)
    assert begun(since)["b"].skips_next
    used_up = replace(pair(), first=pair(channel={"skip_counter": 1}).first)
    assert begun(used_up)["b"].skips_next, "between the readings: it has just skipped one"


STOPPED, CONNECTING = ThreadState.STOPPED, ThreadState.CONNECTING


@pytest.mark.parametrize(
    ("facts", "runs", "is_connected"),
    [
        ({}, True, True),
        ({"receiver": CONNECTING}, True, False),
        ({"receiver": STOPPED}, False, False),
        ({"applier": STOPPED}, False, True),
        ({"until": "SQL_BEFORE_GTIDS"}, False, True),
    ],
)
def test_a_channel_runs_if_both_threads_do_and_nothing_ends_it(
    facts: dict[str, Any], *, runs: bool, is_connected: bool
) -> None:
    found = channel_of(**facts)
    assert (found.running, found.is_connected) == (runs, is_connected)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"applier": STOPPED}, 60),
        ({"applier": STOPPED, "applier_errno": 1062}, 0),
        ({"applier": STOPPED, "receiver": STOPPED}, 0),
        ({}, 0),
    ],
)
def test_only_an_applier_that_was_stopped_alone_is_held_back(
    facts: dict[str, Any], expected: int
) -> None:
    assert channel_of(delay_seconds=60, **facts).held_back_seconds == expected


@pytest.mark.parametrize(
    ("code", "is_stuck", "stuck_at"),
    [
        ("A1", True, ""),
        ("A2", True, "a:4"),
        ("A3", True, "a:4"),
        ("A4", False, ""),
        ("H1", False, ""),
    ],
)
def test_an_applier_stands_at_the_transaction_that_was_read(
    code: str, stuck_at: str, *, is_stuck: bool
) -> None:
    finding = a_finding(code, "a:4")
    evidence = LogEvidence(contents={finding.id: a_content("a:4")})
    found = channel_of(finding, evidence=evidence)
    assert (found.is_stuck, found.stuck_at) == (is_stuck, gtids(stuck_at))
    assert channel_of(finding).stuck_at == GtidSet(), "nothing was read"
    elsewhere = replace(finding, channel="other")
    assert not channel_of(elsewhere, evidence=evidence).is_stuck


@pytest.mark.parametrize(
    ("code", "value", "is_former"),
    [
        ("H1", "binlog.000002:4", True),
        ("H1", "not seen", False),
        ("H8", "binlog.000002:4", False),
    ],
)
def test_a_place_in_a_former_log_makes_the_channel_doubtful(
    code: str, value: str, *, is_former: bool
) -> None:
    finding = a_finding(code, "a:4")
    fact = Evidence("place in a former log", value, "b", finding.last_seen)
    assert channel_of(replace(finding, evidence=(fact,))).may_be_former is is_former
    assert not channel_of(finding).may_be_former


def test_holes_of_a_channel_are_bypassed_or_passed() -> None:
    found = channel_of(a_finding("H1", "a:4"), a_finding("H8", "a:5"), a_finding("E1", "a:6"))
    assert (found.bypassed, found.passed) == (gtids("a:4"), gtids("a:5"))


@pytest.mark.parametrize(("severity", "passed"), [(Severity.WARNING, "a:4"), (Severity.INFO, "")])
def test_a_gap_that_may_have_been_skipped_counts_as_passed(severity: Severity, passed: str) -> None:
    found = channel_of(replace(a_finding("T1", "a:4"), severity=severity))
    assert found.passed == gtids(passed)


@pytest.mark.parametrize(
    ("applier", "applied", "passed"),
    [
        (STOPPED, 700, "a:4"),  # at the receiver's place
        (STOPPED, 600, ""),
        (ThreadState.RUNNING, 700, ""),  # its workers show more
    ],
)
def test_an_applier_that_stopped_at_its_end_may_have_passed_what_is_missing(
    applier: ThreadState, applied: int, passed: str
) -> None:
    place, received = (
        LogPosition.of(file="binlog.000002", position=each) for each in (applied, 700)
    )
    facts = {"gtid_retrieved": gtids("a:1-4"), "applied_to": place, "received_to": received}
    ran, snapshot = pair(channel=facts), pair(channel={**facts, "applier": applier})
    found = begun(replace(snapshot, first=ran.first))["b"].channel("")
    assert found is not None
    assert found.passed == gtids(passed)


@pytest.mark.parametrize(
    ("errno", "text", "receiver", "why"),
    [
        (0, "", ThreadState.STOPPED, ""),
        (13114, "Binary log is not open", ThreadState.STOPPED, ""),
        (13114, "A replica with the same server_uuid/server_id as this replica has connected",
         ThreadState.STOPPED, "a serves another replica"),
        (1045, "Error connecting to source 'r@a:3306'. Message: Access denied", "Connecting",
         "cannot connect to a (error 1045, see A4)"),
        (2003, "Error connecting to source 'r@a:3306'. Message: Can't connect", "Connecting", ""),
        (2003, "error connecting to master 'r@a:3306' - retry-time: 60", ThreadState.STOPPED,
         "cannot connect to a (error 2003, see A4)"),
        (2061, "Message: Authentication requires secure connection.", "Connecting",
         "cannot connect to a (error 2061, see A4)"),
    ],
)  # fmt: skip
def test_the_error_of_a_receiver_may_outlast_a_start(
    errno: int, text: str, receiver: ThreadState | str, why: str
) -> None:
    state = ThreadState(receiver) if isinstance(receiver, str) else receiver
    made = channel_of(receiver=state, receiver_errno=errno, receiver_error=text)
    assert why in made.fails
    assert bool(made.fails) == bool(why)


def test_a_copy_with_its_own_server_uuid_no_longer_forbids_the_start() -> None:
    """The audit of the same snapshot shows that all servers that were read differ."""
    text = "A replica with the same server_uuid/server_id as this replica has connected"
    stopped: dict[str, Any] = {
        "receiver": ThreadState.STOPPED,
        "receiver_errno": 13114,
        "receiver_error": text,
    }
    snapshot = pair(channel=stopped)
    [made] = start_model(snapshot, audit_cluster(snapshot), LogEvidence())["b"].channels
    assert made.fails == ""
    assert channel_of(**stopped).fails


@pytest.mark.parametrize(
    ("place", "is_former"),
    [
        ("binlog.000001:801", True),  # the source has less of that log than was read of it
        ("binlog.000001:800", False),
        ("binlog.000002:4", False),
        ("binlog.000002:999", False),  # the newest log may have grown between two questions
        ("binlog.000007:999", False),
        ("", False),
    ],
)
def test_a_source_that_has_less_of_a_log_than_was_read_of_it_lost_transactions(
    place: str, *, is_former: bool
) -> None:
    file, _, position = place.partition(":")
    read = LogPosition.of(file=file, position=int(position or 0))
    logs = BinaryLog("binlog.000001", 800), BinaryLog("binlog.000002", 300)
    for binary_logs, expected in ((logs, is_former), (None, False), ((), False)):
        started = begun(pair(channel={"received_to": read}, binary_logs=binary_logs))
        [found] = started["b"].channels
        assert found.may_be_former is expected


def moved(*, port: int = 3306, **channel: Any) -> ModelChannel:
    """Return c's channel: it received from a, and a server read at b's address has it now."""
    facts = {"receiver": ThreadState.STOPPED, "source_port": port, **channel}
    servers = (
        a_server("a", A, EXECUTED),
        a_server("b", B, EXECUTED),
        a_server("c", C, EXECUTED, channels=(replace(a_channel("b", A), **facts),)),
    )
    found = begun(a_cluster("cluster", *servers))["c"].channel("")
    assert isinstance(found, ModelChannel)
    return found


def test_a_channel_whose_address_is_another_servers_is_not_started() -> None:
    made = moved()
    assert made.source == "b"
    assert made.fails == made.doubt
    assert "START REPLICA IO_THREAD" in made.fails
    assert "set address and position" in moved(auto_position=False).fails
    connected = moved(receiver=ThreadState.RUNNING)
    assert (connected.source, connected.fails, connected.doubt) == ("a", "", "")
    other = moved(port=3307)  # where no server was read
    assert (other.source, other.fails) == ("a", "")
    assert "another server may be there" in other.doubt


@pytest.mark.parametrize(
    ("channel", "source", "orphaned"),
    [
        ({"gtid_retrieved": GtidSet.parse(f"{A}:2-3,{C}:1-2")}, {}, f"{C}:1-2"),
        ({"gtid_retrieved": GtidSet.parse(f"{A}:2-3")}, {}, ""),
        ({"gtid_retrieved": GtidSet.parse(f"{A}:4")}, {}, f"{A}:4"),
        # The source has it, or is committing it.
        (
            {"gtid_retrieved": GtidSet.parse(f"{C}:1-2")},
            {"gtid_executed": GtidSet.parse(f"{C}:1")},
            f"{C}:2",
        ),
        (
            {"gtid_retrieved": GtidSet.parse(f"{A}:4")},
            {"gtid_owned": GtidSet.parse(f"{A}:4")},
            "",
        ),
    ],
)
def test_what_waits_and_is_not_on_the_source_is_orphaned(
    channel: dict[str, Any], source: dict[str, Any], orphaned: str
) -> None:
    snapshot = pair(channel=channel)
    readings = (
        tuple(replace(each, **source) if each.name == "a" else each for each in reading)
        for reading in (snapshot.first, snapshot.last)
    )
    first, last = readings
    made = begun(ClusterSnapshot("cluster", first, last))["b"].channel("")
    assert isinstance(made, ModelChannel)
    assert made.orphaned == GtidSet.parse(orphaned)
    assert made.may_be_former is bool(orphaned)


def test_what_was_received_since_the_first_reading_is_not_orphaned() -> None:
    snapshot = pair(channel={"gtid_retrieved": GtidSet.parse(f"{A}:4")})
    first = tuple(
        replace(
            server,
            channels=tuple(
                replace(each, gtid_retrieved=GtidSet()) for each in server.channels or ()
            ),
        )
        for server in snapshot.first
    )
    gone = replace(pair(), first=snapshot.first, last=pair().last)
    for readings in (replace(snapshot, first=first), gone):
        made = begun(readings)["b"].channel("")
        assert isinstance(made, ModelChannel)
        assert made.orphaned == GtidSet()


@pytest.mark.parametrize(
    ("facts", "size", "is_lost"),
    [
        ({}, 700, False),
        ({}, 699, True),
        ({"auto_position": True}, 699, False),
        ({"receiver": ThreadState.RUNNING}, 699, False),
        ({"received_to": None}, 699, False),
        ({}, None, False),  # the logs were not read
        ({"received_to": LogPosition.of(file="binlog.000001", position=4)}, 700, True),
    ],
)
def test_a_stopped_receiver_asks_for_a_place_that_the_source_must_have(
    facts: dict[str, Any], size: int | None, *, is_lost: bool
) -> None:
    made = {
        "auto_position": False,
        "receiver": ThreadState.STOPPED,
        "received_to": LogPosition.of(file="binlog.000002", position=700),
        **facts,
    }
    logs = None if size is None else (BinaryLog("binlog.000002", size, encrypted=False),)
    read = pair(channel=made, binary_logs=logs)
    found = begun(read)["b"].channel("")
    assert isinstance(found, ModelChannel)
    assert bool(found.lost_place) is is_lost
    ends = "ends at 699" if size == 699 else "no longer exists"
    assert not is_lost or f" of a {ends}: a would refuse it" in found.lost_place
    # What another replica's channel of that name asks for is its own place.
    other = a_cluster("cluster", a_server("c", C, EXECUTED, channels=(a_channel("a", A),)))
    read = replace(read, first=(*read.first, *other.first), last=(*read.last, *other.last))
    assert begun(read)["b"].channel("") == found


def test_a_receiver_that_was_still_moving_has_lost_no_place() -> None:
    """The source was asked for its logs between the readings: the place may be newer."""
    at = {"auto_position": False, "receiver": ThreadState.STOPPED}
    earlier_place, place = (
        LogPosition.of(file="binlog.000002", position=each) for each in (600, 700)
    )
    logs = (BinaryLog("binlog.000002", 600, encrypted=False),)
    last = pair(channel={**at, "received_to": place}, binary_logs=logs)
    earlier = pair(channel={**at, "received_to": earlier_place}, binary_logs=logs)
    found = begun(replace(last, first=earlier.first))["b"].channel("")
    assert isinstance(found, ModelChannel)
    assert not found.lost_place


def test_a_replica_of_a_source_that_was_not_read_has_no_other_version() -> None:
    snapshot = pair(server_uuid=None)
    found = begun(snapshot)["b"].channel("")
    assert isinstance(found, ModelChannel)
    assert not found.may_be_former


def test_what_another_channel_had_received_is_not_orphaned_on_this_one() -> None:
    """The channel o had a:4 at the first reading; this one received it from the source since."""
    received = GtidSet.parse(f"{A}:4")
    one = a_channel("a", A)
    readings = [
        (a_server("a", A, EXECUTED), a_server("b", B, EXECUTED, channels=(here, other)))
        for here, other in (
            (one, a_channel("c", C, name="o", gtid_retrieved=received)),
            (replace(one, gtid_retrieved=received), a_channel("c", C, name="o")),
        )
    ]
    first, last = (a_cluster("cluster", *servers) for servers in readings)
    made = begun(replace(first, last=last.last))["b"].channel("")
    assert isinstance(made, ModelChannel)
    assert made.orphaned == GtidSet()


@pytest.mark.parametrize(
    ("uuid", "server_id", "host", "is_copy"),
    [
        (B, 7, "x", True),
        (B, 7, "b.example", False),  # it is b itself
        (B, 2, "x", False),  # b under another name
        (C, 7, "x", False),
    ],
)
def test_an_unread_source_with_the_uuid_of_a_replica_makes_its_channel_doubtful(
    uuid: UUID, server_id: int, host: str, is_copy: bool
) -> None:
    above = a_channel("x", uuid, source_host=host, source_server_id=server_id)
    snapshot = a_cluster(
        "cluster",
        a_server("a", A, EXECUTED, channels=(above,)),
        a_server("b", B, EXECUTED, channels=(a_channel("a", A),), server_id=2),
    )
    found = begun(snapshot)["b"].channel("")
    assert found is not None
    assert ("has the server_uuid of b" in found.doubt) is is_copy
    assert not found.fails


def test_a_server_that_was_torn_is_named_above_it() -> None:
    snapshot = a_cluster(
        "cluster",
        a_server("a", A, EXECUTED),
        a_server("b", B, EXECUTED, channels=(a_channel("a", A),)),
        a_server("c", C, EXECUTED, channels=(a_channel("b", B),)),
    )
    torn = replace(a_finding("U2", ""), source=None, replica="c")
    found = begun(snapshot, torn)
    assert {name: each.torn_below for name, each in found.servers.items()} == {"a": "c", "b": "c"}
    assert not any(each.torn_below for each in begun(snapshot).servers.values())


@pytest.mark.parametrize(("port", "is_doubted"), [(3306, True), (3307, False)])
def test_a_channel_at_the_address_of_its_sources_source_is_doubtful(
    port: int, *, is_doubted: bool
) -> None:
    above = a_channel("x", C, source_host="x", source_port=port)
    here = a_channel("x", A, source_host="x", source_port=3306)
    snapshot = a_cluster(
        "cluster",
        a_server("a", A, EXECUTED, channels=(above,)),
        a_server("b", B, EXECUTED, channels=(here,)),
    )
    found = begun(snapshot)["b"].channel("")
    assert found is not None
    assert ("another server with the server_uuid of a" in found.doubt) is is_doubted
