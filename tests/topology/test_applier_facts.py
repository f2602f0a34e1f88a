"""How far an applier has come, in two readings: each piece of evidence, and what takes it away.

b replicates from a. It has received A:1-9 and executed A:1-5. A case names what is otherwise in the
first reading of the channel, in the last one, and what the two readings of the server show.
"""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import HERE, A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.facts.applier_facts import ApplierFacts, gather_applier_facts
from topology.facts.applier_workers import SourceLog
from topology.facts.progress import blocked_by_lock, stalled
from topology.policy import Policy
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import LogPosition, ThreadState
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

STOPPED = ThreadState.STOPPED
SHORT = LogPosition.of(file="binlog.000003", position=1)
BEYOND = LogPosition.of(file="binlog.000003", position=9999)
READ_ALL = "Replica has read all relay log; waiting for more updates"
NO_WORK = "Waiting for an event from Coordinator"
LOCK = "Waiting for table metadata lock"
OLD = {"version": ServerVersion(5, 6, 24)}
ALL = "A:1-9"


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:").replace("C:", f"{C}:"))


def worker(
    number: int, applying: str = "", last: str = "", state: str = "", seconds: int | None = None
) -> WorkerSnapshot:
    shown = state or ("Applying batch of row changes" if applying else NO_WORK)
    return WorkerSnapshot(number, gtids(applying), 0, "", shown, seconds, gtids(last))


def look(
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    *,
    first: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    run: str = ALL,
    any_order: str = "",
    purged: str = "",
) -> ApplierFacts:
    """Return the facts; what the first reading shows, the last one shows as well."""
    channel = {"gtid_retrieved": gtids(ALL), **(before or {})}
    later = {**channel, **(after or {})}
    readings = []
    for each, facts in ((channel, first or {}), (later, {**(first or {}), **(last or {})})):
        made = {"gtid_executed": gtids("A:1-5"), **facts}
        others = made.pop("channels", ())
        server = a_server("b", B, "", **made)
        readings.append(replace(server, channels=(a_channel("a", A, **each), *others)))
    [channel_now, *_] = readings[1].channels or ()
    return gather_applier_facts(
        readings[0],
        replace(readings[1], phase=2),
        channel_now,
        SourceLog(gtids(run), gtids(any_order), gtids(purged)),
    )


IDLE = {"applier_state": READ_ALL}
AT_REST = {**IDLE, "relay_applied_to": SHORT}
IDLE_BEFORE = {**IDLE, "workers": (worker(1),), "applied_to": SHORT}
FIRST_WHOLE = {"version": ServerVersion(5, 7, 0)}  # Retrieved_Gtid_Set lists whole ones from here
BUSY = (worker(1, "A:7"), worker(2, last="A:8"))  # A:6 is behind both
DID_8 = {"gtid_executed": gtids("A:1-5:8")}
ONE = {"workers": (worker(1, "A:9"),)}
DONE_8 = {"gtid_executed": gtids("A:1-5:8")}
IN_ORDER = {"settings": (("replica_preserve_commit_order", "ON"),)}
IN_ANY_ORDER = {"settings": (("replica_preserve_commit_order", "OFF"),)}
TWO = {"channels": (a_channel("c", C, name="two", gtid_retrieved=gtids("A:8")),)}


@pytest.mark.parametrize(
    ("facts", "passed", "is_proved"),
    [
        ({}, "", False),
        # -- idle, and no worker is shown: both readings, and nothing applied between them
        ({"before": IDLE}, ALL, True),
        ({"before": IDLE, "after": {"applier_state": ""}}, "", False),
        ({"before": {"applier_state": ""}, "after": IDLE}, "", False),
        ({"before": IDLE, "last": {"gtid_executed": gtids("A:1-6")}}, "", False),
        ({"before": IDLE, "after": {"applied_to": BEYOND}}, "", False),
        # ... or only followed the receiver, which began its source's log again
        ({"before": AT_REST, "after": {**AT_REST, "applied_to": BEYOND}}, ALL, False),
        (
            {
                "before": AT_REST,
                "after": {**AT_REST, "applied_to": BEYOND},
                "last": {"gtid_executed": gtids("A:1-6")},
            },
            "",
            False,
        ),
        ({"before": AT_REST, "after": {"applied_to": BEYOND, "relay_applied_to": BEYOND}}, "", False),
        ({"before": {**IDLE, "applied_to": SHORT}}, "", True),
        ({"before": {**IDLE, "applied_to": None}}, "", True),
        ({"before": {**IDLE, "received_to": None}}, "", True),
        ({"before": {**IDLE, "applied_to": BEYOND}}, ALL, True),
        ({"before": IDLE, "after": {"gtid_retrieved": gtids("A:1-12")}}, ALL, True),
        # ... 5.6 shows its workers only with PROCESS, and counts what is half received.
        ({"before": {**IDLE, "workers": (worker(1),)}, "first": OLD}, ALL, True),
        ({"before": {**IDLE, "workers": (worker(1, "A:6"),)}, "first": OLD}, "", False),
        ({"before": IDLE_BEFORE, "after": {"applier_state": ""}, "first": OLD}, "", False),
        # -- idle with workers: the first reading is enough
        ({"before": IDLE_BEFORE, "after": {"applier_state": ""}, "first": FIRST_WHOLE}, ALL, False),
        ({"before": {**IDLE, "workers": (worker(1), worker(2))}}, ALL, True),
        ({"before": {**IDLE, "workers": (worker(1), worker(2, state=READ_ALL))}}, ALL, True),
        ({"before": {**IDLE, "workers": (worker(1), worker(2, state=LOCK))}}, "", False),
        (
            {
                "before": {**IDLE, "workers": (worker(1),), "applied_to": SHORT},
                "after": {"applier_state": ""},
            },
            ALL,
            False,
        ),
        (
            {"before": {**IDLE, "workers": (worker(1),), "applied_to": SHORT, "relay_applied_to": HERE}},
            ALL,
            True,
        ),
        (
            {
                "before": {**IDLE, "workers": (worker(1),), "applied_to": SHORT, "relay_applied_to": HERE},
                "after": {"relay_applied_to": BEYOND},
            },
            ALL,
            False,
        ),
        # -- by order: a higher number was handed out, and no worker is below
        ({"before": {"workers": BUSY}, "first": DID_8}, "A:1-6", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "run": "A:1-5"}, "", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "run": "A:6-9"}, "A:6", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "run": "A:7-9"}, "", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "run": "C:1-9"}, "", False),
        ({"before": {"workers": (worker(1, "A:7"), worker(2, "C:8"))}, "first": DID_8}, "", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "after": {"workers": (worker(1, "A:4"), BUSY[1])}}, "A:1-3", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "after": {**IDLE, "workers": (worker(1), worker(2))}}, "A:1-6", False),
        ({"before": {"workers": BUSY}, "first": {**DID_8, "gtid_owned": gtids("A:6")}, "last": {"gtid_owned": GtidSet()}}, "A:1-5", False),
        ({"before": {"workers": BUSY}, "first": DID_8, "last": {"gtid_owned": gtids("A:6")}}, "A:1-5", False),
        # -- by order of commit: one worker, or commit order
        ({"before": ONE, "last": DONE_8}, "A:1-8", False),
        ({"before": {"workers": (worker(1, last="A:8", state=LOCK),)}, "last": DONE_8}, "A:1-7", False),
        (
            {
                "last": DONE_8,
                "first": IN_ORDER,
            },
            "A:1-7",
            False,
        ),
        # What the source has purged was logged before everything that its log still has.
        ({"last": DONE_8, "first": IN_ORDER, "run": "A:7-9", "purged": "A:6"}, "A:6-7", False),
        ({"last": DONE_8, "first": IN_ORDER, "run": "A:9", "purged": "A:6-8"}, "", False),
        # ... in both readings: SET GLOBAL changes it while a server runs
        ({"first": IN_ORDER, "last": {**DONE_8, **IN_ANY_ORDER}}, "", False),
        ({"first": IN_ANY_ORDER, "last": {**DONE_8, **IN_ORDER}}, "", False),
        ({"last": DONE_8, "first": {"settings": (("replica_parallel_workers", "0"),)}}, "A:1-7", False),
        ({"last": DONE_8, "first": {"settings": (("replica_parallel_workers", "4"),)}}, "", False),
        ({"last": DONE_8}, "", False),
        # ... what it committed was received later than all that the first reading lists
        (
            {
                "before": {"workers": (worker(1),)},
                "after": {"gtid_retrieved": gtids("A:1-12")},
                "last": {"gtid_executed": gtids("A:1-5:11")},
            },
            ALL,
            False,
        ),
        # ... and was committed by something else
        ({"before": {"workers": (worker(1),)}, "first": TWO, "last": {**TWO, **DONE_8}}, "", False),
        ({"before": {"workers": (worker(1),)}, "first": {"group": GroupSnapshot("g", "ONLINE", "", GtidSet())}, "last": DONE_8}, "", False),
        # -- a worker applied it, and the server no longer has it
        ({"before": {"last_applied": gtids("A:6")}}, "A:6", False),
        ({"before": {"workers": (worker(1, "A:2", last="A:6"),)}, "run": "A:9"}, "A:6", False),
        ({"before": {"last_applied": gtids("A:12")}}, "", False),
        ({"before": {"last_applied": gtids("A:5")}}, "", False),
        # -- stopped where the receiver is, in both readings
        ({"before": {"applier": STOPPED}}, ALL, False),
        ({"before": {"applier": STOPPED}, "first": {"gtid_owned": gtids("A:6")}}, "A:1-5:7-9", False),
        ({"before": {"applier": STOPPED}, "after": {"applier": ThreadState.RUNNING}}, "", False),
        ({"before": {"applier": STOPPED, "applied_to": SHORT}}, "", False),
        ({"before": {"applier": STOPPED}, "after": {"applied_to": SHORT}}, "", False),
        ({"before": {"applier": STOPPED, "applier_errno": 1062}}, "", False),
        ({"before": {"applier": STOPPED, "applier_error": "failed"}}, "", False),
    ],
)  # fmt: skip
def test_what_an_applier_has_passed(facts: dict[str, Any], passed: str, *, is_proved: bool) -> None:
    found = look(**facts)
    assert found.passed == gtids(passed)
    assert found.passed_is_proved is is_proved
    now = found.channel.gtid_retrieved
    shown = {"gtid_executed": gtids("A:1-5"), **facts.get("first", {}), **facts.get("last", {})}
    assert found.backlog == now - shown["gtid_executed"] - found.passed


@pytest.mark.parametrize(("thread", "passed"), [("RUNNING", "A:1-6 A:8-9"), ("STOPPED", ALL)])
def test_a_worker_that_failed_is_at_no_transaction_any_more(thread: str, passed: str) -> None:
    failed = a_channel(
        "c", C, name="two", applier=ThreadState[thread], workers=(worker(1, "A:7", last="A:6"),)
    )
    found = look({**IDLE, "workers": (worker(1),)}, first={"channels": (failed,)})
    assert found.passed == gtids(",".join(passed.split()))


@pytest.mark.parametrize(
    "change",
    [
        {"source_host": "z"},
        {"source_port": 1},
        {"source_uuid": C},
        {"auto_position": False},
        {"name": "two"},
        {"gtid_retrieved": gtids("A:2-9")},  # its relay logs were removed
    ],
)
def test_a_channel_that_was_changed_shows_nothing(change: dict[str, Any]) -> None:
    found = look({**IDLE, "workers": (worker(1),)}, change, last=DONE_8)
    assert (found.passed, found.is_same, found.moved) == (GtidSet(), False, False)
    assert look(IDLE).is_same


@pytest.mark.parametrize(
    ("facts", "is_same"),
    [
        ({"last": OLD}, True),
        ({"last": OLD, "after": {"gtid_retrieved": gtids("A:1-7")}}, False),  # of two
        ({"last": OLD, "after": {"gtid_retrieved": gtids("A:1-8"), "applied_to": SHORT}}, False),
        ({}, False),
    ],
)
def test_a_receiver_of_5_6_forgets_the_last_one_until_it_comes_again(
    facts: dict[str, Any], *, is_same: bool
) -> None:
    """Where the applier stands, its channel is the same, and a lock that holds it is reported."""
    after = {"gtid_retrieved": gtids("A:1-8"), **facts.get("after", {})}
    held = {"applier_state": LOCK, "lag_seconds": 900, "relay_applied_to": BEYOND}
    shown = look(held, after, first=facts.get("last"))
    assert shown.is_same is is_same
    assert bool(blocked_by_lock(shown, Policy())) is is_same


@pytest.mark.parametrize(
    ("facts", "overtaken"),
    [
        ({}, ""),
        ({"last": DONE_8, "before": ONE}, ""),  # it was received with the others
        # What was received after the first reading is done, and these are not.
        (
            {
                "after": {"gtid_retrieved": gtids("A:1-12")},
                "last": {"gtid_executed": gtids("A:1-5:11"), "gtid_owned": gtids("A:7")},
            },
            "A:6:8-9",
        ),
        ({"before": {"last_applied": gtids("A:6")}}, "A:7-9"),
        # A skip leaves a gap: the channel may skip in either reading.
        ({"before": {"skip_counter": 1}, "after": {"skip_counter": 0}, "first": DID_8}, "A:6-7"),
        ({"after": {"skip_counter": 1}, "first": DID_8}, "A:6-7"),
        ({"first": DID_8}, ""),
    ],
)
def test_what_was_overtaken_may_be_passed(facts: dict[str, Any], overtaken: str) -> None:
    assert look(**facts).overtaken == gtids(overtaken)


@pytest.mark.parametrize(
    ("after", "overtaken"),
    [
        ({}, "A:6"),
        ({"workers": (worker(1, "A:6"), worker(2, last="A:8"))}, ""),  # it is being applied
        ({"workers": ()}, ""),  # nothing is known of the second reading
        ({"workers": (worker(1),), "applier_state": READ_ALL}, "A:6"),
    ],
)
def test_what_the_source_may_have_logged_in_any_order_is_overtaken_in_both_readings(
    after: dict[str, Any], overtaken: str
) -> None:
    found = look({"workers": BUSY}, after, first=DID_8, run="", any_order="A:6-9")
    assert (found.overtaken, found.passed) == (gtids(overtaken), GtidSet())


# -- what it waits for ----------------------------------------------------------------------------


def waits(**facts: Any) -> list[tuple[str, str, int | None, bool, bool]]:
    return [
        (
            str(each.gtids).replace(str(A), "A"),
            each.state,
            each.seconds,
            each.is_exact,
            each.is_lock,
        )
        for each in look(**facts).waits
    ]


def test_the_longest_wait_comes_first_and_idle_workers_wait_for_nothing() -> None:
    workers = (worker(1, "A:6", seconds=3), worker(2), worker(3, "A:7", state=LOCK, seconds=9))
    found = [
        ("A:7", LOCK, 9, True, True),
        ("A:6", "Applying batch of row changes", 3, True, False),
    ]
    assert waits(before={"workers": workers}) == found
    assert waits(before={"workers": workers, "applier": STOPPED}) == []
    # Before 8.0 the seconds count from the commit on the source.
    estimated = [(*each[:3], False, each[4]) for each in found]
    assert (
        waits(before={"workers": workers}, first={"version": ServerVersion(5, 7, 44)}) == estimated
    )
    assert waits(before={"workers": workers}, first={"version": None}) == estimated
    assert waits(before={"workers": workers}, first={"version": ServerVersion(8, 0, 0)}) == found


def test_a_worker_that_waits_before_it_begins_is_as_old_as_the_lag() -> None:
    waiting = (worker(1, state="Waiting for GTID to be committed"),)
    facts = {"workers": waiting, "lag_seconds": 70}
    [(_, state, seconds, is_exact, is_lock)] = waits(before=facts)
    assert (state, seconds, is_exact, is_lock) == (waiting[0].state, 70, False, True)
    # It was at something else in the first reading.
    [(_, _, seconds, is_exact, _)] = waits(before={**facts, "workers": ()}, after=facts)
    assert (seconds, is_exact) == (None, False)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (LOCK, [("", LOCK, 70, False, True)]),
        ("Reading event from the relay log", [("", "Reading event from the relay log", 70, False, False)]),
        ("waiting for a row lock", [("", "waiting for a row lock", 70, False, True)]),
        ("Waiting for commit lock", [("", "Waiting for commit lock", 70, False, True)]),
        ("Waiting for table flush", [("", "Waiting for table flush", 70, False, True)]),
        (READ_ALL, []),
        ("Waiting until SOURCE_DELAY seconds after source executed event", []),
        ("", []),
    ],
)  # fmt: skip
def test_an_applier_without_workers_shows_its_own_state(state: str, shown: list[Any]) -> None:
    assert waits(before={"applier_state": state, "lag_seconds": 70}) == shown


# -- longer than the policy allows ----------------------------------------------------------------

POLICY = Policy(lock_wait_seconds_max=10, stall_seconds_max=60)
AT_WORK = "Applying batch of row changes"
DELAYED = "Waiting until SOURCE_DELAY seconds after source executed event"


@pytest.mark.parametrize(
    ("state", "seconds", "more", "code"),
    [
        (LOCK, 11, {}, "A5"),
        (LOCK, 10, {}, ""),
        (LOCK, 11, {"first": {"gtid_executed": gtids("A:1-9")}}, ""),  # nothing waits
        (LOCK, 11, {"last": DONE_8}, "A5"),  # others go on, and this one does not
        (LOCK, 11, {"after": {"auto_position": False}}, "A5"),
        (AT_WORK, 61, {}, "A8"),
        (AT_WORK, 60, {}, ""),
        (AT_WORK, 61, {"last": DONE_8}, ""),
        (AT_WORK, 61, {"after": {"auto_position": False}}, ""),
        (AT_WORK, None, {}, ""),
        # An estimated age counts only if nothing moved.
        (LOCK, 11, {"first": OLD}, "A5"),
        (LOCK, 11, {"first": OLD, "last": DONE_8}, ""),
        (LOCK, 11, {"first": OLD, "after": {"auto_position": False}}, ""),
    ],
)
def test_what_takes_too_long(
    state: str, seconds: int | None, more: dict[str, Any], code: str
) -> None:
    found = look({"workers": (worker(1, "A:6", state=state, seconds=seconds),)}, **more)
    assert ("A5" if blocked_by_lock(found, POLICY) else "") == (code if code == "A5" else "")
    assert ("A8" if stalled(found, POLICY) else "") == (code if code == "A8" else "")


@pytest.mark.parametrize(
    ("seconds", "more", "ahead"),
    [
        (-864_000, {}, 864_000),
        (-5, {}, 0),  # clock_seconds_max: the source's clock
        (-6, {}, 6),
        (-864_000, {"after": {"workers": (worker(1, "A:6", state=AT_WORK, seconds=-9),)}}, 0),
        (-864_000, {"after": {"workers": (worker(1, "A:6", state=LOCK, seconds=0),)}}, 0),
        (-864_000, {"last": DONE_8}, 0),
        (-864_000, {"after": {"auto_position": False}}, 0),
    ],
)
def test_an_event_dated_in_the_future_has_no_age(
    seconds: int, more: dict[str, Any], ahead: int
) -> None:
    facts = {"workers": (worker(1, "A:6", state=LOCK, seconds=seconds),)}
    found = look(facts, first=OLD, **more)
    wait = blocked_by_lock(found, POLICY)
    assert (0 if wait is None else wait.ahead_seconds) == ahead
    assert wait is None or wait.seconds is None
    assert stalled(found, POLICY) is None


def test_an_applier_without_workers_at_an_event_of_the_future_has_no_age() -> None:
    facts = {"applier_state": LOCK, "lag_seconds": -70}
    wait = blocked_by_lock(look(facts, first=OLD), POLICY)
    assert wait is not None
    assert (wait.seconds, wait.ahead_seconds) == (None, 70)
    assert (
        blocked_by_lock(look({**facts, "delay_seconds": 900, "applier_state": DELAYED}), POLICY)
        is None
    )


@pytest.mark.parametrize(
    ("state", "server", "is_blocked"),
    [
        (LOCK, {}, True),  # begun, and handed to a worker, when the delay was over
        (LOCK, OLD, False),  # 5.6 shows no start: the time may be that of the delay
        (DELAYED, {}, False),  # one thread that waits and applies
    ],
)
def test_source_delay_holds_back_only_what_no_worker_has_begun(
    state: str, server: dict[str, Any], *, is_blocked: bool
) -> None:
    facts = {"workers": (worker(1, "A:6", state=state, seconds=999),), "applier_state": DELAYED}
    found = look(facts, first=server)
    assert found.is_delayed
    assert (blocked_by_lock(found, POLICY) is not None) is is_blocked
    assert stalled(found, POLICY) is None


@pytest.mark.parametrize(("above", "found"), [("A:1-3,B:1", True), ("A:1-3", False)])
def test_what_the_source_lost_and_gets_again_may_have_been_passed(
    above: str, *, found: bool
) -> None:
    """c received B:1 from a and skipped it; a lost it in a crash, and b will send it again."""
    from_b = a_channel("b", B, gtid_retrieved=GtidSet())
    from_a = a_channel("a", A, gtid_retrieved=gtids("B:1"), applier_state=READ_ALL)
    a = a_server("a", A, "", channels=(from_b,))
    b = a_server("b", B, gtids(above), channels=())
    c = a_server("c", C, "", channels=(from_a,))
    audit = audit_cluster(a_cluster("lost", a, b, c))
    codes = {(one.code, one.replica) for one in audit.findings if gtids("B:1") <= one.gtid_set}
    assert (("H8", "c") in codes) is found
