"""Scripts that look at rows once more before transactions arrive, and what their account needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.model.actions import Action, AutoPositionOn, ResetAndPurge, StartChannel, simulate
from repair.model.replication_model import Model
from repair.scripts.channel_procedures import auto_position_on, start_channel
from repair.scripts.procedure import Procedure, Setting
from repair.scripts.set_procedures import reset_and_purge
from repair.sql.privileges import StatementKind
from tests.repair.build import NEW, OLD, UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_net_row, a_table
from tests.repair.script_cases import pair
from topology.readings.snapshot import ThreadState
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

ROWS = (a_net_row((1, 5), (1, 6)), a_net_row((2, 5), (2, 6)), a_net_row((1, 5), None, a_table("u")))
RUNNING, STOPPED = ThreadState.RUNNING, ThreadState.STOPPED
SEEN = r"(SELECT COUNT(*) FROM (SELECT 1 FROM `d`.`"


def setting(servers: Model, action: Action) -> Setting:
    seen = snapshot_of(servers).last_read
    after = simulate(servers, action)
    return Setting(servers[action.server], before=servers, after=after, seen=seen)


def started(**facts: Any) -> Procedure:
    servers = pair(NEW, runs=False)
    action = StartChannel("b", "", **facts)
    return start_channel(action, setting(servers, action))


def switched(**facts: Any) -> Procedure:
    servers = pair(NEW, auto=False)
    action = AutoPositionOn("b", "", filled=GtidSet(), **facts)
    return auto_position_on(action, setting(servers, action))


COMPARED: dict[str, Any] = {"rows": ROWS, "waiting": gtids("a:4-6")}
FETCHED = {"rows": ROWS, "compared_at": gtids("a:1-3 a:7-9 b:1")}


@pytest.mark.parametrize(
    ("compared", "without"), [(started(**COMPARED), started()), (switched(**FETCHED), switched())]
)
def test_tables_are_read_before_anything_is_changed(
    compared: Procedure, without: Procedure
) -> None:
    tables = [
        each.condition[len(SEEN)] for each in compared.preconditions if SEEN in each.condition
    ]
    assert tables == ["t", "u"]
    assert not [each for each in without.preconditions if SEEN in each.condition]
    assert StatementKind.READ_ROWS in compared.needs
    assert StatementKind.READ_ROWS not in without.needs
    for each in (compared, without):
        assert {StatementKind.STEER_CHANNEL, StatementKind.READ_CHANNELS} <= set(each.needs)


def test_rows_of_what_waits_are_compared_before_the_channel_starts() -> None:
    text = "\n".join(started(**COMPARED).statements)
    looks, guard, start = (text.index(each) for each in ("@fit", "is not started", "START REPLICA"))
    assert looks < guard < start
    assert text.count("SELECT 1 FROM `d`.`t`") >= 2
    assert f"{UUIDS['a']}:4-6" in text
    assert "@fit" not in "\n".join(started().statements)


def test_rows_to_fetch_are_compared_between_stop_and_change() -> None:
    text = "\n".join(switched(**FETCHED).statements)
    stop, guard, change = (
        text.index(each) for each in ("STOP REPLICA", "nothing is fetched", "CHANGE REPLICATION")
    )
    assert stop < guard < change
    assert "@fit" not in "\n".join(switched().statements)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_server_that_must_not_commit_is_asked_for_its_own_transactions(*, in_order: bool) -> None:
    own = [
        each.condition
        for each in started(in_order=in_order).preconditions
        if str(UUIDS["b"]) in each.condition and "GTID_SUBSET" in each.condition
    ]
    plain = [
        each.condition
        for each in started().preconditions
        if str(UUIDS["b"]) in each.condition and "GTID_SUBSET" in each.condition
    ]
    assert (len(own) > len(plain)) is in_order


@pytest.mark.parametrize("source_uuid", [UUIDS["f"], None])
def test_what_another_channel_brings_is_no_work_of_the_server(source_uuid: Any) -> None:
    """Nothing is known to come by a channel that has never seen the UUID of its source."""
    other = replace(channel("a", name="other"), source=None)
    servers = model(server("a", "a:1-6"), server("b", "a:1-3", channel("a", runs=False), other))
    action = StartChannel("b", "", **COMPARED)
    made = setting(servers, action)
    here = tuple(
        replace(each, source_uuid=source_uuid) if each.name == "other" else each
        for each in made.channels("b")
    )
    made = replace(made, seen={**made.seen, "b": replace(made.seen["b"], channels=here)})
    [asked] = [
        each.condition
        for each in start_channel(action, made).preconditions
        if "that the plan did not see" in each.message
    ]
    assert (f"{UUIDS['f']}:1-" in asked) is (source_uuid is not None)


def test_the_source_is_the_one_of_this_channel() -> None:
    """Of two channels each script asks for its own source, by the UUID that was read of it."""
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1-3", channel("c", name="one"), channel("a", name="two", runs=False)),
        server("c", "a:1-3"),
    )
    for name, source in (("one", "c"), ("two", "a")):
        action = StartChannel("b", name)
        made = start_channel(action, setting(servers, action))
        asked = "\n".join(each.condition for each in made.preconditions)
        assert f"= '{UUIDS[source]}'" in asked
        others = UUIDS.keys() - {source}
        assert not [each for each in others if f"= '{UUIDS[each]}'" in asked]


@pytest.mark.parametrize("source_uuid", [UUIDS["f"], None])
def test_a_source_outside_is_the_one_that_the_channel_reported(source_uuid: Any) -> None:
    outside = replace(channel("a", runs=False), source=None)
    servers = model(server("b", "a:1-3", outside))
    action = StartChannel("b", "")
    made = setting(servers, action)
    reading = made.seen["b"]
    [one] = reading.channels or ()
    seen = {"b": replace(reading, channels=(replace(one, source_uuid=source_uuid),))}
    asked = "\n".join(
        each.condition for each in start_channel(action, replace(made, seen=seen)).preconditions
    )
    assert (f"= '{UUIDS['f']}'" in asked) is (source_uuid is not None)


def test_the_source_of_the_model_outweighs_what_the_channel_reported() -> None:
    """The UUID that the source itself reports is the newer one."""
    servers = pair(NEW, runs=False)
    action = StartChannel("b", "")
    made = setting(servers, action)
    reading = made.seen["b"]
    [one] = reading.channels or ()
    seen = {**made.seen, "b": replace(reading, channels=(replace(one, source_uuid=UUIDS["f"]),))}
    asked = "\n".join(
        each.condition for each in start_channel(action, replace(made, seen=seen)).preconditions
    )
    assert f"= '{UUIDS['a']}'" in asked


@pytest.mark.parametrize("source", ["a", None])
def test_a_reset_names_a_source_that_was_not_read_and_may_refuse(source: str | None) -> None:
    [one] = pair(OLD)["b"].channels
    servers = pair(OLD).replace(replace(pair(OLD)["b"], channels=(replace(one, source=source),)))
    action = ResetAndPurge("b", gtids("a:4-6"), servers["b"].executed, restart=("",))
    found = reset_and_purge(action, setting(servers, action)).warnings
    assert any("was not read and may refuse it" in each for each in found) is (source is None)


def test_what_the_account_of_a_reset_needs() -> None:
    servers = pair(OLD)
    action = ResetAndPurge("b", gtids("a:4-6"), servers["b"].executed, restart=("",))
    assert set(reset_and_purge(action, setting(servers, action)).needs) == {
        StatementKind.RESET_LOGS,
        StatementKind.SET_GTID_PURGED,
        StatementKind.STEER_CHANNEL,
        StatementKind.READ_CHANNELS,
    }


@pytest.mark.parametrize(
    ("receiver", "applier", "channels", "asked"),
    [
        (STOPPED, STOPPED, 1, ["receiver", "begun"]),
        (RUNNING, STOPPED, 1, ["begun"]),
        (STOPPED, STOPPED, 2, ["receiver"]),
        (STOPPED, RUNNING, 1, []),
    ],
)
def test_a_channel_that_was_started_and_stands_again_is_not_started(
    receiver: ThreadState, applier: ThreadState, channels: int, asked: list[str]
) -> None:
    """What its receiver had before, and what other channels bring, is no sign of a start."""
    servers = pair(NEW, runs=False)
    action = StartChannel("b", "")
    made = setting(servers, action)
    read = made.seen["b"]
    [one] = read.channels or ()
    one = replace(one, receiver=receiver, applier=applier)
    other = replace(one, name="other")
    seen = {**made.seen, "b": replace(read, channels=(one, other)[:channels])}
    conditions = [
        each.condition for each in start_channel(action, replace(made, seen=seen)).preconditions
    ]
    [halted] = [each for each in conditions if " OR NOT (" in each] or [""]
    assert ("applier.SERVICE_STATE = 'OFF'" in halted) is ("receiver" in asked)
    assert (f"GTID_SUBTRACT('{gtids('a:4-6')}'" in halted) is ("begun" in asked)


@pytest.mark.parametrize(
    ("errno", "workers", "passed", "version", "known"),
    [
        (1062, (), "a:4", NEW, "IN (1062)"),
        (1756, (1062, 0, 1032), "a:4", NEW, "IN (1032, 1062, 1756)"),
        (0, (1062,), "a:4", NEW, "IN (1062)"),
        (0, (0,), "a:4", NEW, None),  # nothing stopped it
        (1062, (), "", NEW, None),  # it continues where it stopped, and has passed nothing
        (1062, (), "a:4", OLD, None),  # 5.6 has no table that shows the error
    ],
)
def test_an_applier_that_has_passed_transactions_still_stands_at_its_error(
    errno: int, workers: tuple[int, ...], passed: str, version: ServerVersion, known: str | None
) -> None:
    """What deletes its relay log clears the error as well, and lets the source send them again."""
    servers = pair(version, runs=False)
    servers = servers.replace(servers["b"].with_channel("", passed=gtids(passed)))
    action = StartChannel("b", "")
    made = setting(servers, action)
    read = made.seen["b"]
    [one] = read.channels or ()
    of_workers = tuple(
        WorkerSnapshot(number, GtidSet(), each, "") for number, each in enumerate(workers)
    )
    one = replace(one, applier_errno=errno, workers=of_workers)
    made = replace(made, seen={**made.seen, "b": replace(read, channels=(one,))})
    found = [
        each.condition
        for each in start_channel(action, made).preconditions
        if "the applier's error was cleared" in each.message
    ]
    assert len(found) == (known is not None)
    assert all(each.endswith(str(known)) for each in found)


def test_what_was_read_what_steps_bring_and_what_waits_is_no_other_work() -> None:
    """Anything else that the server executes may have changed the rows, and changed them back."""
    servers = model(server("a", "a:1-6"), server("b", "a:1-3 c:1", channel("a", runs=False)))
    read = servers.replace(replace(servers["b"], executed=gtids("a:1-3 d:1")))
    action = StartChannel("b", "", **COMPARED)
    made = replace(setting(servers, action), seen=snapshot_of(read).last_read)
    [guard] = [
        each
        for each in start_channel(action, made).preconditions
        if "that the plan did not see" in each.message
    ]
    known, _, _ = guard.condition.partition(" OR ")
    for each in ("a:1-6", "c:1", "d:1"):
        assert str(gtids(each)) in known


@pytest.mark.parametrize("by_sets", [True, False])
def test_a_start_warns_of_what_filters_leave_out_of_what_arrives(*, by_sets: bool) -> None:
    """Rows that a binary log leaves out never reach its replicas, and their GTIDs count there."""

    def warnings(servers: Model) -> str:
        if by_sets:
            action = AutoPositionOn("b", "", filled=GtidSet())
            return " ".join(auto_position_on(action, setting(servers, action)).warnings)
        start = StartChannel("b", "")
        return " ".join(start_channel(start, setting(servers, start)).warnings)

    plain = model(
        server("a", "a:1-6"), server("b", "a:1-3", channel("a", runs=False, auto=not by_sets))
    )
    options = ("binlog_do_db", "shop"), ("binlog_ignore_db", "mysql")
    filtered = plain.replace(replace(plain["b"], log_filters=options))
    told = warnings(filtered)
    assert "b does not log all that it applies (binlog_do_db = shop, binlog_ignore_db" in told
    assert f"its replicas get {gtids('a:4-6').shortened()} without the rows" in told
    assert "does not log all" not in warnings(plain)
    there = filtered.replace(replace(filtered["b"], executed=gtids("a:1-6")))
    assert "does not log all" not in warnings(there), "nothing arrives"


@pytest.mark.parametrize(
    ("auto", "uptime", "is_asked"),
    [(False, 1000, True), (False, None, False), (True, 1000, False)],
)
def test_a_server_must_not_have_been_restarted_before_its_channel_leaves_its_file_position(
    uptime: int | None, *, auto: bool, is_asked: bool
) -> None:
    """A crash may have lost the newest transactions, which would be fetched after later ones."""
    servers = pair(NEW, auto=auto)
    action = AutoPositionOn("b", "", filled=GtidSet())
    made = setting(servers, action)
    made = replace(made, seen={**made.seen, "b": replace(made.seen["b"], uptime_seconds=uptime)})
    found = [
        each
        for each in auto_position_on(action, made).preconditions
        if "it was restarted since the plan was made" in each.message
    ]
    assert bool(found) is is_asked


@pytest.mark.parametrize(
    ("filters", "warned"),
    [
        ((), ""),
        (("Replicate_Rewrite_DB=(d,e)",), ""),  # it leaves nothing out
        (("Replicate_Ignore_DB=tmp",), "the filters of b (Replicate_Ignore_DB=tmp) stay"),
        (
            ("Replicate_Rewrite_DB=(d,e)", "Replicate_Do_DB=shop"),
            "the filters of b (Replicate_Do_DB=shop) stay",
        ),
    ],
)
def test_filters_that_were_read_are_named_and_others_must_not_be_new(
    filters: tuple[str, ...], warned: str
) -> None:
    servers = pair(NEW, runs=False)
    action = StartChannel("b", "")
    made = setting(servers, action)
    [one] = made.seen["b"].channels or ()
    read = replace(made.seen["b"], channels=(replace(one, filters=filters),))
    found = start_channel(action, replace(made, seen={**made.seen, "b": read}))
    told = [each for each in found.warnings if "the filters of b" in each]
    assert len(told) == bool(warned)
    assert all(warned in each for each in told)
    asked = [each for each in found.preconditions if "has new filters" in each.message]
    assert bool(asked) is not bool(warned)


@pytest.mark.parametrize(
    ("errno", "workers", "known"),
    [(1032, (), (1032,)), (1756, (1062,), (1756, 1062)), (0, (1062,), (1062,))],
)
def test_a_channel_that_stopped_since_with_another_error_is_left_alone(
    errno: int, workers: tuple[int, ...], known: tuple[int, ...]
) -> None:
    """The coordinator may show 1756 only: what stopped its workers counts as well."""
    servers = pair(NEW, runs=False)
    action = StartChannel("b", "")
    made = setting(servers, action)
    [one] = made.seen["b"].channels or ()
    of_workers = tuple(
        WorkerSnapshot(number, GtidSet(), each, "") for number, each in enumerate(workers)
    )
    one = replace(one, applier_errno=errno, workers=of_workers)
    read = replace(made.seen["b"], channels=(one,))
    found = start_channel(action, replace(made, seen={**made.seen, "b": read}))
    [asked] = [each for each in found.preconditions if "LAST_ERROR_NUMBER" in each.condition]
    allowed = asked.condition.rpartition(" IN (")[2]
    assert all(str(each) in allowed for each in known)
    assert "1205" not in allowed
