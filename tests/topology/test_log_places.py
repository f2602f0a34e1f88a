"""What the places of a channel in its source's log show, and what excludes a reset or a crash.

Each table begins with a case that shows something; every other case changes one fact of it.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_server, read_server
from topology.facts.channel_places import bypassed_by, searched
from topology.facts.former_ids import (
    maybe_by_hand,
    maybe_own_server_id,
    of_unknown_uuids,
    with_own_server_id,
)
from topology.facts.former_logs import (
    sign_of_former_log,
    sign_of_reset_source,
    waits_beyond_end,
    waits_in_former_log,
)
from topology.facts.graph import Edge, Graph
from topology.facts.reset_signs import (
    excludes_reset,
    has_earlier,
    keeps_gtids,
    runs_since_before,
    was_not_reset,
)
from topology.readings.group_view import GroupSnapshot
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogSearch, LogStart
from topology.readings.snapshot import (
    ChannelSnapshot,
    LogPosition,
    ReadServer,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.version import ServerVersion

STOPPED, CONNECTING = ThreadState.STOPPED, ThreadState.CONNECTING
END = LogPosition.of(file="binlog.000003", position=4711)  # of every server's log
SHORT = LogPosition.of(file="binlog.000003", position=4710)
BEYOND = LogPosition.of(file="binlog.000003", position=4712)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:").replace("C:", f"{C}:"))


def edge(**facts: Any) -> Edge:
    return Edge("a", "b", a_channel("a", A, **facts))


# -- what a place shows ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        # A running receiver has read to the end of the log and does not have them.
        ({}, ("A:4-5:8,C:1-9", True)),
        ({"received_to": BEYOND}, ("A:4-5:8,C:1-9", True)),
        # It has not read so far: with auto-position only what the log shows before its place is.
        ({"received_to": SHORT}, ("C:1-3", False)),
        ({"received_to": None}, ("C:1-3", False)),
        # By file position also what the source committed before something that was received.
        ({"received_to": SHORT, "auto_position": False}, ("A:4-5,C:1-3", False)),
        ({"received_to": SHORT, "auto_position": False, "gtid_retrieved": gtids("A:1-3")}, ("C:1-3", True)),
        ({"auto_position": False, "receiver": STOPPED}, ("A:4-5:8,C:1-9", True)),
        # One that will connect again asks for them, unless its applier has been at the end.
        ({"receiver": STOPPED}, ("A:4-5:8,C:1-9", False)),
        ({"receiver": CONNECTING}, ("A:4-5:8,C:1-9", False)),
        ({"receiver": STOPPED, "applied_to": BEYOND}, ("A:4-5:8,C:1-9", False)),
        ({"receiver": STOPPED, "applied_to": SHORT}, ("C:1-3", False)),
        ({"receiver": STOPPED, "applied_to": None}, ("C:1-3", False)),
        ({"receiver": STOPPED, "applier_errno": 1062}, ("C:1-3", False)),
        ({"receiver": STOPPED, "applier_error": "failed"}, ("C:1-3", False)),
    ],
)  # fmt: skip
def test_what_a_receiver_has_gone_past(facts: dict[str, Any], expected: tuple[str, bool]) -> None:
    channel = {"gtid_retrieved": gtids("A:1-3:6-7,C:20"), **facts}
    found, is_proved = bypassed_by(
        gtids("A:4-5:8,C:1-9"),
        edge=edge(**channel),
        source=read_server("a", A, gtids("A:1-9,C:1-9")),
        before=gtids("C:1-3"),
        ahead=GtidSet(),
        is_former=False,
    )
    assert (found, is_proved) == (gtids(expected[0]), expected[1])


def test_below_what_was_received_only_a_run_of_the_source_and_its_log_show_a_place() -> None:
    for executed, ahead, expected in (
        ("A:1-9", "", "A:4-5"),
        ("A:1-9", "A:5", "A:4"),  # the log has it beyond the place: A:7 was made by hand
        ("A:1-5:7-9", "", ""),  # A:7 is of another run: it shows nothing of the numbers below
    ):
        found, _ = bypassed_by(
            gtids("A:4-5"),
            edge=edge(
                received_to=SHORT,
                auto_position=False,
                gtid_retrieved=gtids("A:7"),
            ),
            source=read_server("a", A, gtids(executed)),
            before=GtidSet(),
            ahead=gtids(ahead),
            is_former=False,
        )
        assert found == gtids(expected), (executed, ahead)


def test_without_an_end_of_the_log_nothing_was_passed() -> None:
    for facts in ({}, {"receiver": STOPPED}):
        found, _ = bypassed_by(
            gtids("A:4-5"),
            edge=edge(**facts),
            source=read_server("a", A, gtids("A:1-9"), log_end=None),
            before=gtids("A:4"),
            ahead=GtidSet(),
            is_former=False,
        )
        assert found == gtids("A:4")


def test_the_place_of_a_refused_receiver_in_a_former_log_shows_nothing() -> None:
    """Its source was reset, and has less in its log than the applier has read of the former one."""
    for is_former, passed in ((True, ""), (False, "A:4-5")):
        found, _ = bypassed_by(
            gtids("A:4-5"),
            edge=edge(receiver=STOPPED, applied_to=BEYOND),
            source=read_server("a", A, gtids("A:1-9")),
            before=GtidSet(),
            ahead=GtidSet(),
            is_former=is_former,
        )
        assert found == gtids(passed)


def test_a_search_counts_for_the_channel_that_it_was_made_for() -> None:
    def search(replica: str, channel: str, before: str) -> LogSearch:
        return LogSearch(replica, channel, str(END), gtids("A:1-9"), gtids(before))

    found = (search("b", "", "A:1"), search("c", "", "A:2"), search("b", "two", "A:3"))
    evidence = HistoryEvidence(None, (), searches=found)
    a = read_server("a", A, gtids("A:1-9"), history_evidence=evidence)
    b = read_server("b", B, "", channels=(a_channel("a", A),))
    assert searched(edge(), source=a, replica=b) == (gtids("A:1"), gtids("A:2-9"))
    unread = replace(a, history_evidence=None)
    assert searched(edge(), source=unread, replica=b) == (GtidSet(), GtidSet())
    # What was applied last is in no log of the source: the place is one before it was cloned.
    committing = replace(a, gtid_owned=gtids("A:20"))
    for there, last, now in (
        ("A:1", "", True),
        ("", "A:1", True),
        ("C:1", "", False),
        ("", "C:1", True),  # it may be younger than the last reading of the source
        ("A:20", "", True),  # it is committing that
    ):
        then = replace(b, channels=(a_channel("a", A, last_applied=gtids(there)),))
        found_now = searched(edge(last_applied=gtids(last)), source=committing, replica=then)
        assert bool(found_now[0]) is now, (there, last)
    purged, applied = replace(a, gtid_purged=gtids("A:1-2")), edge(last_applied=gtids("A:2"))
    assert searched(applied, source=purged, replica=b)[0] == GtidSet()
    # The place is one of a former log.
    reset = replace(a, log_end=SHORT)
    assert searched(edge(), source=reset, replica=b) == (GtidSet(), GtidSet())


# -- a former log ---------------------------------------------------------------------------------

BY_PLACE: dict[str, Any] = {"auto_position": False, "received_to": END}


def pair(
    channel: ChannelSnapshot, source: dict[str, Any], executed: str = "A:1-5"
) -> tuple[ReadServer, ReadServer]:
    facts = {"gtid_executed": gtids("A:1-5"), **source}
    return read_server("a", A, "", **facts), read_server(
        "b", B, gtids(executed), channels=(channel,)
    )


ENDS, NOT_OWN = f"the source's log ends at {SHORT}", "the source does not have all of its own"
REFUSED = "Replica has more GTIDs than the source has, using the source's SERVER_UUID."
HAD_LESS = "the source had fewer of its own transactions than the replica"


@pytest.mark.parametrize(
    ("channel", "source", "sign"),
    [
        ({}, {}, ""),
        ({}, {"log_end": SHORT}, ENDS),
        ({"received_to": SHORT, "applied_to": END}, {"log_end": SHORT}, ENDS),
        ({"received_to": SHORT, "applied_to": SHORT}, {"log_end": SHORT}, ""),
        ({"received_to": SHORT, "applied_to": None}, {"log_end": SHORT}, ""),
        ({}, {"log_end": None}, ""),
        # One that runs is connected to the present log, whatever its source has lost.
        ({}, {"gtid_executed": gtids("A:1-4")}, ""),
        ({"receiver": STOPPED}, {"gtid_executed": gtids("A:1-4")}, NOT_OWN),
        ({"receiver": CONNECTING}, {"gtid_executed": gtids("A:1-4")}, NOT_OWN),
        ({"receiver": STOPPED}, {}, ""),
        ({"receiver": STOPPED}, {"log_end": SHORT}, ENDS),
        # What it is committing is not lost; what it only received is no sign.
        ({"receiver": STOPPED}, {"gtid_executed": gtids("A:1-4"), "gtid_owned": gtids("A:5")}, ""),
        ({"receiver": STOPPED, "gtid_retrieved": gtids("A:6")}, {}, NOT_OWN),
        ({"receiver": STOPPED, "gtid_retrieved": gtids("C:6")}, {}, ""),
        # It has given its GTIDs again since it refused the receiver.
        ({"receiver": STOPPED, "receiver_error": REFUSED}, {}, HAD_LESS),
        ({"receiver": STOPPED, "receiver_error": "error connecting to source"}, {}, ""),
    ],
)
def test_a_source_that_was_reset_is_seen(
    channel: dict[str, Any], source: dict[str, Any], sign: str
) -> None:
    made = edge(**{**BY_PLACE, **channel})
    a, b = pair(made.channel, source)
    found = sign_of_reset_source(made, before=b, source=a)
    assert found.startswith(sign)
    assert bool(found) is bool(sign)
    assert sign_of_former_log(made, before=b, source=a) == found


@pytest.mark.parametrize(
    ("channel", "source", "sign"),
    [
        ({"receiver": STOPPED, "receiver_errno": 1236}, {}, "the receiver stopped with error 1236"),
        ({"receiver": STOPPED, "receiver_errno": 1236}, {"log_end": SHORT}, ENDS),
        ({"receiver": CONNECTING, "receiver_errno": 2003}, {}, ""),
        ({"auto_position": True}, {"log_end": SHORT}, ""),
        ({"received_to": None}, {"log_end": SHORT}, ""),
    ],
)
def test_a_place_may_be_one_of_a_former_log(
    channel: dict[str, Any], source: dict[str, Any], sign: str
) -> None:
    made = edge(**{**BY_PLACE, **channel})
    a, b = pair(made.channel, source)
    assert sign_of_former_log(made, before=b, source=a) == sign


def test_a_place_in_the_log_of_a_former_source_shows_nothing() -> None:
    made = replace(edge(**BY_PLACE, receiver=STOPPED), doubt="its address is another server's")
    a, b = pair(made.channel, {})
    sign = "the channel may have received from another server"
    assert sign_of_reset_source(made, before=b, source=a) == sign
    assert sign_of_former_log(made, before=b, source=a) == sign


def test_a_place_of_another_channel_or_of_another_source_shows_nothing() -> None:
    made = edge(**BY_PLACE, receiver=STOPPED)
    for other in (replace(made.channel, name="two"), replace(made.channel, source_uuid=C)):
        a, b = pair(other, {"log_end": SHORT})
        assert sign_of_reset_source(made, before=b, source=a) == ""
        assert not waits_in_former_log(made, before=b, source=a)


@pytest.mark.parametrize(
    ("channel", "before", "source", "waits"),
    [
        ({}, {}, {}, True),
        ({"receiver": STOPPED}, {}, {}, False),
        ({"receiver": CONNECTING}, {}, {}, False),
        ({"auto_position": False}, {}, {}, False),
        ({}, {}, {"log_end": None}, False),
        ({}, {}, {"log_end": END}, False),
        ({}, {}, {"version": ServerVersion(5, 6, 24)}, True),
        ({}, {"received_to": SHORT}, {}, False),  # it moved
        ({"received_to": None}, {"received_to": None}, {}, False),
    ],
)
def test_a_connected_receiver_waits_behind_the_end(
    channel: dict[str, Any], before: dict[str, Any], source: dict[str, Any], *, waits: bool
) -> None:
    made = edge(**channel)
    a, b = pair(replace(made.channel, **before), {"log_end": SHORT, **source})
    assert waits_in_former_log(made, before=b, source=a) is waits
    by_place = replace(made, channel=replace(made.channel, auto_position=False))
    places = pair(replace(by_place.channel, **before), {"log_end": SHORT, **source})
    is_waiting = waits or channel.get("auto_position") is False
    assert waits_beyond_end(by_place, before=places[1], source=places[0]) is is_waiting
    another = replace(a_channel("c", C), name="two")
    of_two = replace(b, channels=(*(b.channels or ()), another))
    assert waits_in_former_log(made, before=of_two, source=a) is waits


# -- no reset, no crash ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("executed", "hole", "is_excluded"),
    [
        ("A:1-3", "A:4-5", True),
        ("A:2", "A:4-5", True),
        ("A:6-9", "A:4-5", False),  # a reset, and these were committed since
        ("", "A:4-5", False),
        ("B:1-3", "A:4-5", False),
        ("A:1-3", "A:4,B:4", False),
        ("A:1-3,B:1", "A:4,B:4", True),
        ("A:1-3,B:5", "A:4,B:4", False),
        ("A:5", "A:4:6", False),  # below the second part of the hole, and above its first
        ("A:1,A:5", "A:4:6", True),
        ("A:1", "A:tag:4", False),  # every tag has numbers of its own
    ],
)
def test_an_earlier_transaction_excludes_a_reset(
    executed: str, hole: str, *, is_excluded: bool
) -> None:
    assert has_earlier(gtids(executed), gtids(hole)) is is_excluded
    if not executed:
        assert has_earlier(None, gtids(hole)) is is_excluded


@pytest.mark.parametrize(
    ("server_uuid", "settings", "expected"),
    [
        (B, (("gtid_mode", "ON"),), True),
        (A, (("gtid_mode", "ON"),), False),  # after a reset it assigns its own numbers again
        (None, (("gtid_mode", "ON"),), False),
        (B, None, False),  # settings that were not read may ignore errors
        (B, (("replica_skip_errors", "all"),), False),
        (B, (("log_replica_updates", "OFF"),), False),  # it logs what its own sessions commit
        (B, (("replica_exec_mode", "IDEMPOTENT"),), False),
    ],
)
def test_the_numbers_in_a_log_are_evidence_against_a_reset(
    server_uuid: UUID | None, settings: tuple[tuple[str, str], ...] | None, *, expected: bool
) -> None:
    server = a_server("b", server_uuid, gtids("A:1-3"))
    server = replace(server, settings=settings, notable_settings=None)
    assert excludes_reset(server, gtids("A:4-5")) is expected
    assert not excludes_reset(server, gtids("C:4-5"))


def not_reset(
    *,
    executed: str = "A:1-3",
    purged: str = "",
    received: str = "A:1-9",
    server_ids: tuple[int, int] = (1, 1),
    committed: tuple[int, int] = (10, 20),
    logged_at: tuple[int, int] | None = (11, 21),
    begun: int | None = None,
    settings: tuple[tuple[str, str], ...] = (),
    of_source: tuple[tuple[str, str], ...] | None = (),
    in_order: bool = True,
    applied_at: int | None = None,
    ahead: int | None = 0,
    is_read: bool = True,
) -> bool:
    """Return whether a reset of b is excluded, that does not have A:4; all times in seconds.

    `ahead`: the difference between b's clock and that of the auditor; None: it was not read.
    """
    moments = logged_at or (None, None)
    records = tuple(
        CommitRecord(
            gtids(f"A:{number}"),
            server_id,
            NOON + at(made),
            is_exact=moment is not None,
            logged_at=None if moment is None else NOON + at(moment),
        )
        for number, server_id, made, moment in zip(
            (1, 4), server_ids, committed, moments, strict=True
        )
    )
    source = read_server(
        "a",
        A,
        gtids("A:1-9"),
        gtid_purged=gtids(purged),
        server_id=1,
        settings=of_source,
        notable_settings=None,
        history_evidence=HistoryEvidence(None, records),
    )
    start = None if begun is None else LogStart("binlog.000001", NOON + at(begun), GtidSet())
    order = () if in_order else (("replica_parallel_workers", "4"),)
    applied = () if applied_at is None else (replace(records[0], logged_at=NOON + at(applied_at)),)
    replica = read_server(
        "b",
        B,
        gtids(executed),
        settings=(*settings, *order),
        history_evidence=HistoryEvidence(start, applied) if is_read else None,
    )
    source = replace(source, server_clock=source.read_ended)
    clock = None if ahead is None else replica.read_ended + at(ahead)
    replica = replace(replica, server_clock=clock)
    return was_not_reset(replica, gtids("A:4"), source=source, received=gtids(received))


@pytest.mark.parametrize(
    ("facts", "excludes"),
    [
        ({}, True),  # a logged A:1 before A:4, and b has it in its log
        ({"executed": ""}, False),
        ({"received": "A:2-9"}, False),  # another channel may have brought A:1
        ({"logged_at": (21, 11)}, False),  # A:4 was made by hand before
        ({"logged_at": (21, 21)}, False),
        # Before 8.0.1 the log has whole seconds, and its own in the order of their numbers.
        ({"logged_at": None}, True),
        ({"logged_at": None, "committed": (20, 20)}, True),
        ({"logged_at": None, "committed": (21, 20)}, False),
        ({"logged_at": None, "committed": (20, 20), "server_ids": (1, 3)}, False),
        ({"logged_at": None, "committed": (20, 20), "server_ids": (3, 3)}, False),
        ({"logged_at": None, "committed": (10, 20), "server_ids": (3, 3)}, True),
        # What the source has purged is older than what its log has, if it logs what it receives.
        ({"purged": "A:1-2", "logged_at": (21, 11)}, True),
        ({"purged": "A:1-2", "of_source": (("log_replica_updates", "OFF"),)}, False),
        ({"purged": "A:1-2", "of_source": None}, False),  # its settings were not read
        # An applier that ignores errors takes the earlier ones again.
        ({"settings": (("replica_skip_errors", "all"),)}, False),
        ({"settings": (("replica_exec_mode", "IDEMPOTENT"),)}, False),
        # b may have applied A:4 before A:1, was then reset, and A:1 came again.
        ({"in_order": False}, False),
        ({"in_order": False, "applied_at": 19}, False),
        ({"in_order": False, "applied_at": 18}, True),  # it had it when A:4 was committed
        # The clock of b is 10 s ahead, or behind: its times count by ours.
        ({"in_order": False, "applied_at": 28, "ahead": 10}, True),
        ({"in_order": False, "applied_at": 29, "ahead": 10}, False),
        ({"in_order": False, "applied_at": 8, "ahead": -10}, True),
        ({"in_order": False, "applied_at": 9, "ahead": -10}, False),
        ({"in_order": False, "is_read": False}, False),  # its log was not read
        ({"in_order": False, "executed": "A:2-3", "applied_at": 18}, False),
        # The oldest log of b is older than A:4, or it is not.
        ({"executed": "", "begun": 18}, True),
        ({"executed": "", "begun": 19}, False),
        ({"executed": "", "begun": 28, "ahead": 10}, True),
        ({"executed": "", "begun": 9, "ahead": -10}, False),
        ({"executed": "", "begun": 9, "ahead": None}, False),
        ({"settings": (("replica_skip_errors", "all"),), "begun": 18}, True),
    ],
)
def test_a_reset_is_excluded_only_where_that_is_certain(
    facts: dict[str, Any], *, excludes: bool
) -> None:
    assert not_reset(**facts) is excludes


def test_what_is_purged_is_not_logged() -> None:
    server = read_server("b", B, gtids("A:1-9"), gtid_purged=gtids("A:1-3"))
    assert server.logged == gtids("A:4-9")
    unread = a_server("b", B, "", gtid_executed=None, gtid_purged=None)
    assert unread.logged == GtidSet()


@pytest.mark.parametrize(
    ("version", "keeps"),
    [
        (None, False),
        (ServerVersion(5, 6, 24), False),
        (ServerVersion(8, 0, 16), False),
        (ServerVersion(8, 0, 17), True),
    ],
)
def test_gtids_survive_a_crash_with_their_rows(
    version: ServerVersion | None, *, keeps: bool
) -> None:
    assert keeps_gtids(read_server("b", B, "", version=version)) is keeps


def at(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("facts", "runs_since"),
    [
        ({}, True),  # up for 100 s, committed 98 s ago
        ({"uptime": 99}, False),  # the start may be a second later
        ({"uptime": None}, False),
        ({"clock": None}, False),
        ({"commits": None}, False),
        ({"commits": ()}, False),
        ({"commits": (4,)}, False),  # the other end was not read
        ({"commits": (4, 5), "seconds": 100}, False),
        # The source's clock is 10 s ahead, or behind: its times count by ours.
        ({"clock": at(10), "seconds": 88}, True),
        ({"clock": at(10), "seconds": 90}, False),
        ({"clock": at(-10), "seconds": 108}, True),
    ],
)
def test_a_server_that_ran_before_the_commit_did_not_crash_since(
    facts: dict[str, Any], *, runs_since: bool
) -> None:
    uptime: int | None = facts.get("uptime", 100)
    clock: timedelta | None = facts.get("clock", at(0))
    commits: tuple[int, ...] | None = facts.get("commits", (4, 5))
    committed = NOON - at(facts.get("seconds", 98))
    evidence = None
    if commits is not None:
        later = {4: committed + at(0), 5: committed + at(30)}
        records = (CommitRecord(gtids(f"A:{each}"), 1, later[each], True) for each in commits)
        evidence = HistoryEvidence(None, tuple(records))
    source = read_server("a", A, "", history_evidence=evidence)
    source = replace(source, server_clock=None if clock is None else source.read_ended + clock)
    replica = read_server("b", B, "", uptime_seconds=uptime)
    replica = replace(replica, read_ended=NOON, read_started=NOON)
    assert runs_since_before(replica, gtids("A:4-5"), source) is runs_since


# -- a former server_id ---------------------------------------------------------------------------


def three(**facts: Any) -> tuple[Graph, dict[str, ServerSnapshot]]:
    """Return a -> b -> c; a and b have C:1-9 of a UUID that no server has."""
    a = a_server("a", A, gtids("C:1-9"), server_id=1)
    b = a_server("b", B, gtids("C:1-9"), server_id=2, channels=(a_channel("a", A),))
    c = a_server("c", None, gtids("C:1-3"), server_id=3, channels=(a_channel("b", B),))
    servers = {each.name: replace(each, **facts.get(each.name, {})) for each in (a, b, c)}
    edges = (Edge("a", "b", a_channel("a", A)), Edge("b", "c", a_channel("b", B)))
    return Graph(edges, ()), servers


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, {"b": "C:4-9"}),  # the source comes first: it sends what it has logged
        ({"c": {"gtid_owned": gtids("C:4")}}, {"b": "C:5-9"}),
        ({"b": {"gtid_purged": gtids("C:1-5")}}, {"a": "C:4-5", "b": "C:6-9"}),
        ({"b": {"gtid_executed": None}}, {"a": "C:4-9"}),
        # What a server upstream is committing may be in its log already.
        ({"b": {"gtid_owned": gtids("C:10")}}, {"b": "C:4-10"}),
        ({"c": {"server_uuid": C}}, {}),
        ({"a": {"server_uuid": C}}, {}),
        ({"c": {"gtid_executed": gtids("C:1-9")}}, {}),
    ],
)
def test_what_no_present_server_committed(facts: dict[str, Any], expected: dict[str, str]) -> None:
    graph, servers = three(**facts)
    found = of_unknown_uuids(graph.edges[1], graph=graph, servers=servers)
    assert found == {name: gtids(text) for name, text in expected.items()}


FROM_C = a_channel("c", C)  # the replica is the source of its source's source: a ring
FROM_C_OWN = replace(FROM_C, gtid_retrieved=gtids("B:7"))


@pytest.mark.parametrize(
    ("channel", "received", "of_b", "expected"),
    [
        # The server with the UUID received it: another server committed it.
        (a_channel("x", UUID(int=9)), "A:7", {}, {"a": "A:7"}),
        # The replica sent it, and does not have it.
        (FROM_C, "B:7", {}, {"a": "B:7"}),
        # Its own UUID: topology/facts/lost.py.
        (FROM_C, "C:7", {}, {}),
        # Another server sent it, and neither of both has its UUID.
        (a_channel("x", UUID(int=9)), "B:7", {}, {}),
        # The source logs it and commits it: its log may have it already.
        (
            a_channel("a", A),
            "",
            {"gtid_owned": gtids("B:7"), "channels": (FROM_C_OWN,)},
            {"b": "B:7"},
        ),
        # The UUID of a group: any member may have committed it.
        (FROM_C, "A:7", {"settings": (("group_replication_group_name", str(A)),)}, {}),
    ],
)
def test_what_a_session_of_the_replica_may_have_committed(
    channel: ChannelSnapshot, received: str, of_b: dict[str, Any], expected: dict[str, str]
) -> None:
    """Upstream of the source of c: a has A:7, B:7 and C:7, and c lacks them."""
    channels = (replace(channel, gtid_retrieved=gtids(received)),)
    graph, servers = three(
        a={"gtid_executed": gtids("A:7, B:7, C:7"), "channels": channels},
        b={"gtid_executed": GtidSet(), **of_b},
        c={"server_uuid": C, "gtid_executed": GtidSet()},
    )
    found = maybe_by_hand(graph.edges[1], graph=graph, servers=servers)
    assert found == {name: gtids(text) for name, text in expected.items()}


def test_what_a_worker_executes_upstream_is_shown_by_the_log_of_another_server() -> None:
    """The log of b does not have it yet, and no set of its receiver: d, beside it, has logged it."""
    graph, servers = three(
        a={"gtid_executed": GtidSet()},
        b={"gtid_executed": GtidSet(), "gtid_owned": gtids("A:9, B:9, C:4")},
        c={"gtid_executed": GtidSet()},
    )
    servers["d"] = replace(servers["a"], name="d", gtid_executed=gtids("A:1-9, B:1-9, C:1-4"))
    found = of_unknown_uuids(graph.edges[1], graph=graph, servers=servers)
    assert found == {"b": gtids("C:4"), "d": gtids("C:4")}


def test_what_was_received_was_not_dropped() -> None:
    """Its server_id was another one; what follows may carry the replica's, and is looked at."""
    graph, servers = three()
    received = Edge("b", "c", a_channel("b", B, gtid_retrieved=gtids("C:1-5")))
    assert of_unknown_uuids(received, graph=graph, servers=servers) == {"b": gtids("C:6-9")}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({4: 3, 9: 3}, "C:4-9"),
        ({4: 3, 9: 2}, ""),
        ({4: 2, 9: 3}, ""),
        ({4: 3}, ""),
        ({}, ""),
    ],
)
def test_what_carries_the_replicas_own_server_id_is_dropped(
    ids: dict[int, int], expected: str
) -> None:
    records = tuple(CommitRecord(gtids(f"C:{gno}"), each, NOON, True) for gno, each in ids.items())
    graph, servers = three(b={"history_evidence": HistoryEvidence(None, records)})
    found = with_own_server_id(graph.edges[1], GtidSet(), graph=graph, servers=servers)
    assert found == (gtids(expected) if expected else GtidSet())


@pytest.mark.parametrize(
    ("server_id", "missing", "expected"),
    [(3, "", "A:7"), (1, "", ""), (3, "A:7", "")],  # what is missing has a finding of its own
)
def test_what_a_session_of_the_replica_committed_is_dropped(
    server_id: int, missing: str, expected: str
) -> None:
    made = CommitRecord(gtids("A:7"), server_id, NOON, True)
    a = {"gtid_executed": gtids("A:7"), "history_evidence": HistoryEvidence(None, (made,))}
    graph, servers = three(
        a={**a, "channels": (replace(FROM_C, gtid_retrieved=gtids("A:7")),)},
        b={"gtid_executed": GtidSet()},
        c={"server_uuid": C, "gtid_executed": GtidSet()},
    )
    found = with_own_server_id(graph.edges[1], gtids(missing), graph=graph, servers=servers)
    assert found == gtids(expected)


@pytest.mark.parametrize(
    ("ids", "expected"), [({4: 3, 9: 2}, "C:4"), ({4: 3, 9: 3}, "C:4 C:9"), ({1: 3, 5: 2}, "")]
)
def test_a_member_that_was_not_read_may_have_the_replicas_server_id(
    ids: dict[int, int], expected: str
) -> None:
    """b is a member of the group C, and c its replica: each transaction counts for itself."""
    records = tuple(CommitRecord(gtids(f"C:{gno}"), each, NOON, True) for gno, each in ids.items())
    b = {"group": GroupSnapshot(str(C), "ONLINE", "", GtidSet())}
    graph, servers = three(b={**b, "history_evidence": HistoryEvidence(None, records)})
    found = with_own_server_id(graph.edges[1], GtidSet(), graph=graph, servers=servers)
    assert found == GtidSet.union_of(map(gtids, expected.split()))


MEMBER_OF_C = {"group": GroupSnapshot(str(C), "OFFLINE", "", GtidSet())}


@pytest.mark.parametrize(
    ("replica", "ids", "expected"),
    [
        ({}, {4: 3, 9: 3}, "C:4-9"),
        ({}, {4: 2, 9: 3}, "C:4-9"),
        ({}, {4: 2}, "C:4-9"),
        ({}, {4: 2, 9: 2}, ""),
        # Members of a group commit in turn: both ends do not stand for the whole.
        (MEMBER_OF_C, {4: 2, 9: 2}, "C:4-9"),
        (MEMBER_OF_C, {4: 3, 9: 3}, "C:4-9"),
        ({**MEMBER_OF_C, "gtid_executed": gtids("C:1-7")}, {8: 2, 9: 2}, ""),
    ],
)
def test_what_may_carry_the_replicas_own_server_id(
    replica: dict[str, Any], ids: dict[int, int], expected: str
) -> None:
    records = tuple(CommitRecord(gtids(f"C:{gno}"), each, NOON, True) for gno, each in ids.items())
    graph, servers = three(b={"history_evidence": HistoryEvidence(None, records)}, c=replica)
    found = maybe_own_server_id(graph.edges[1], graph=graph, servers=servers)
    assert found == (gtids(expected) if expected else GtidSet())
