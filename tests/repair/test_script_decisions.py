"""What scripts check and show: decisions that one fact turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlog.rows.values import ABSENT, Image
from gtid import GtidSet
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow, TransactionContent
from repair.model.actions import (
    AutoPositionOn,
    InjectEmpty,
    MakeRowsAlike,
    RedoTransactions,
    StartChannel,
    simulate,
)
from repair.model.replication_model import Model, ModelServer
from repair.repair_plan import content_shown
from repair.scripts.channel_procedures import auto_position_on
from repair.scripts.other_servers import checks_before
from repair.scripts.procedure import Setting
from repair.scripts.procedures import make_step
from repair.scripts.replay_procedures import redo_transactions
from repair.scripts.row_procedures import exchanging, make_rows_alike
from repair.scripts.server_checks import check_of, joined, tables_there
from repair.scripts.start_guards import refuses_nothing
from repair.sql.channel_queries import ChannelQuestions
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind, _admin
from repair.sql.touched_tables import TouchedTable
from tests.repair.build import NEW, OLD, UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_finding, a_net_row, a_table, redone
from topology.readings.content_class import ContentClass
from topology.readings.version import ServerVersion

STOPPED = model(server("a", "a:1-3"), server("b", "a:1", channel("a", runs=False)))


def setting_of(servers: Model, action: Any, *, seen: Model | None = None) -> Setting:
    readings = snapshot_of(seen or servers).last_read
    after = simulate(servers, action)
    return Setting(servers[action.server], before=servers, after=after, seen=readings)


def test_only_classes_with_transactions_are_shown() -> None:
    content = TransactionContent(
        "b", {ContentClass.EMPTY: GtidSet(), ContentClass.DATA: gtids("a:2")}
    )
    shown = content_shown(a_finding("H1", "a:2"), content)
    assert shown.classes == {ContentClass.DATA.value: str(gtids("a:2"))}


def test_super_is_an_alternative_where_privileges_are_dynamic() -> None:
    assert [each.one_of for each in _admin("X_ADMIN")(NEW)] == [("X_ADMIN", "SUPER")]
    assert [each.one_of for each in _admin("X_ADMIN")(OLD)] == [("SUPER",)]


def test_a_step_shows_each_server_that_it_changes_once() -> None:
    below = STOPPED.replace(server("c", "a:1", channel("b")))
    for action, names in (
        (StartChannel("b", ""), ["b", "c"]),
        (InjectEmpty("b", gtids("a:2")), ["b", "c"]),
        (InjectEmpty("c", gtids("a:2")), ["c"]),
    ):
        step = make_step(action, setting_of(below, action), after=0, finding=a_finding("H1", "a:2"))
        assert [each.server for each in step.before] == names
        assert [each.server for each in step.after] == names


WAITING = StartChannel("b", "", waiting=gtids("a:2-3"))


@pytest.mark.parametrize(
    ("servers", "action", "asked"),
    [
        (STOPPED, WAITING, ["a"]),
        (STOPPED, replace(WAITING, waiting=GtidSet()), []),
        (STOPPED, replace(WAITING, in_order=True), []),
        (STOPPED.replace(server("b", "a:1", channel("x", runs=False))), WAITING, []),
    ],
)
def test_the_source_of_what_was_compared_has_nothing_more(
    servers: Model, action: StartChannel, asked: list[str]
) -> None:
    setting = setting_of(servers, action, seen=STOPPED)
    assert [each.server for each in checks_before(action, setting)] == asked


@pytest.mark.parametrize(
    ("version", "executed", "facts", "asked"),
    [
        (NEW, "a:1", {}, True),
        (NEW, "a:1-3", {}, False),  # nothing arrives
        (NEW, "a:1", {"by_choice": True}, False),
        (OLD, "a:1", {}, False),  # its channels have no such settings
    ],
)
def test_settings_of_a_channel_that_may_refuse_what_arrives_are_asked(
    version: ServerVersion, executed: str, facts: dict[str, Any], *, asked: bool
) -> None:
    stopped = channel("a", runs=False)
    servers = model(server("a", "a:1-3"), server("b", executed, stopped, version=version))
    action = StartChannel("b", "", **facts)
    asks = ChannelQuestions.of(version, "")
    assert bool([*refuses_nothing(action, setting_of(servers, action), asks)]) is asked


def test_a_source_may_have_what_was_read_of_it_what_steps_bring_and_what_its_replica_has() -> None:
    """Anything else that it executes would be fetched, and its rows were not compared."""
    servers = STOPPED.replace(server("a", "a:1-2 c:1"))
    servers = servers.replace(server("b", "a:1 d:1", channel("a", runs=False)))
    setting = setting_of(servers, WAITING, seen=STOPPED)
    [check] = [each for each in checks_before(WAITING, setting) if each.server == "a"]
    [guard] = [each for each in check.guards if "rows were not compared" in each.message]
    for known in ("a:1-3", "c:1", "d:1"):
        assert str(gtids(known)) in guard.condition


def test_checks_of_one_server_are_one_script_with_all_that_each_needs() -> None:
    """An account that has only what the first check needs would stop in the second."""
    setting = setting_of(STOPPED, WAITING)
    one, two = Guard("1 = 1", "a: one"), Guard("2 = 2", "a: two")
    channels, rows = "SELECT on performance_schema.*", "SELECT on the tables of the rows"
    checks = (
        check_of(setting, "a", (one,), why="first", kinds=(StatementKind.READ_CHANNELS,)),
        check_of(setting, "b", (one,), why="elsewhere"),
        check_of(setting, "a", (two, one), why="second", reads_rows=True),
        check_of(setting, "a", (), why="third"),
    )
    a, b = joined(checks)
    assert (a.server, a.why, a.privileges) == ("a", "first; second; third", (channels, rows))
    [is_the_server, *others] = a.guards
    assert "server_uuid" in is_the_server.condition
    assert others == [one, two], "each is asked once"
    assert (b.server, b.why, b.privileges) == ("b", "elsewhere", ())


@pytest.mark.parametrize(
    ("action", "is_compared"),
    [
        (StartChannel("b", "", in_order=True), True),
        (StartChannel("b", ""), False),
        (AutoPositionOn("b", "", filled=GtidSet()), False),
        (AutoPositionOn("b", "", filled=GtidSet(), rows=(a_net_row((1, 5), (1, 6)),)), True),
    ],
)
def test_a_server_below_must_be_quiet(
    action: StartChannel | AutoPositionOn, *, is_compared: bool
) -> None:
    """c receives from b what the channel of b receives from a.

    What it commits itself is errant. In a ring it is not, and matters only for compared rows.
    """

    def asked_of_c(servers: Model) -> bool:
        checks = checks_before(action, setting_of(servers, action))
        [below] = [each for each in checks if each.server == "c"]
        return any(f"'{UUIDS['c']}:1-" in each.condition for each in below.guards)

    servers = STOPPED.replace(server("c", "a:1", channel("b")))
    assert asked_of_c(servers)
    ring = servers.replace(server("a", "a:1-3", channel("c")))
    assert asked_of_c(ring) is is_compared
    back = [each for each in checks_before(action, setting_of(ring, action)) if each.server == "a"]
    assert not [
        each
        for check in back
        for each in check.guards
        if "'" + str(UUIDS["a"]) + ":1-9223" in each.condition and "compared" not in each.message
    ], "nothing arrives at the source, and it may go on"


@pytest.mark.parametrize(("tag", "needs_tags"), [("", False), ("dba:", True)])
def test_a_redo_under_tags_needs_the_privilege_for_tags(tag: str, *, needs_tags: bool) -> None:
    action = RedoTransactions("a", redone(f"b:{tag}1 b:2"))
    needs = redo_transactions(action, setting_of(STOPPED, action)).needs
    assert (StatementKind.SET_TAGGED_GTID_NEXT in needs) is needs_tags
    assert (StatementKind.SET_GTID_NEXT in needs) is not needs_tags
    assert {StatementKind.READ_CHANNELS, StatementKind.WRITE_ROWS} <= {*needs}


C = server("c", "a:1-3", channel("a"))
STOPPED_BELOW = server("d", "a:1-3", channel("c", runs=False))


@pytest.mark.parametrize(
    ("others", "names"),
    [
        ((C,), []),
        ((C, server("d", "a:1-3", channel("a", runs=False))), ["d"]),
        ((C, STOPPED_BELOW), ["d"]),  # c receives it, and would send it on
        ((C, server("d", "a:1-3", channel("c", stuck=True))), ["d"]),
        ((C, replace(STOPPED_BELOW, executed=gtids("a:1-3 b:1"))), []),  # d has it
        ((server("d", "a:1-3", channel("e", runs=False)), server("e", "a:1-3")), []),
        ((replace(C, channels=(*C.channels, channel("a", name="x", runs=False))),), []),
    ],
)
def test_a_redo_needs_channels_that_were_stopped_to_be_stopped_still(
    others: tuple[ModelServer, ...], names: list[str]
) -> None:
    """Behind them no rows were compared."""
    servers = model(server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")), *others)
    action = RedoTransactions("a", redone("b:1"), rows=())
    checks = checks_before(action, setting_of(servers, action))
    found = [
        check.server
        for check in checks
        for guard in check.guards
        if "its replication runs now, but was stopped" in guard.message
    ]
    assert found == names
    done = servers.replace(server("a", "a:1-3 b:1"))
    again = checks_before(action, setting_of(done, action))
    assert "a" not in [each.server for each in again], "the script itself reads its own server"


@pytest.mark.parametrize(("last", "takes_longer"), [(3, False), (900_000, True)])
def test_a_switch_takes_longer_with_what_it_fetches(last: int, *, takes_longer: bool) -> None:
    servers = model(server("a", f"a:1-{last}"), server("b", "a:1", channel("a", auto=False)))
    action = AutoPositionOn("b", "", filled=GtidSet())
    whole = servers.replace(server("b", f"a:1-{last}", channel("a", auto=False)))
    found, least = (
        auto_position_on(action, setting_of(each, action)).estimated_seconds
        for each in (servers, whole)
    )
    assert (found > least) is takes_longer
    assert found >= least


@pytest.mark.parametrize("has_log", [True, False])
def test_a_redo_needs_the_binary_log_that_the_plan_read(*, has_log: bool) -> None:
    """Without it no other server gets the changes; a server that had none needs none."""
    servers = STOPPED.replace(replace(STOPPED["a"], has_log=has_log))
    action = RedoTransactions("a", redone("b:1"))
    asked = [
        each.condition
        for each in redo_transactions(action, setting_of(servers, action)).preconditions
    ]
    assert ("@@GLOBAL.log_bin = 1" in asked) is has_log
    assert "@@SESSION.sql_log_bin = 1" in asked


@pytest.mark.parametrize(("gtids_redone", "is_asked"), [("a:4", True), ("b:1", False)])
def test_a_redo_of_the_servers_own_gtids_needs_that_none_was_used_since(
    gtids_redone: str, *, is_asked: bool
) -> None:
    action = RedoTransactions("a", redone(gtids_redone))
    made = redo_transactions(action, setting_of(STOPPED, action))
    untaken = [each for each in made.preconditions if "may use these GTIDs" in each.message]
    assert bool(untaken) is is_asked
    assert ("audit and plan again" in made.if_stopped) is is_asked


UNIQUE = replace(a_table(), unique_keys=((1,),))


def version(number: int, source: Image | None, replica: Image | None) -> RowVersions:
    return RowVersions(UNIQUE, f"`id` = {number}", source, replica, ())


@pytest.mark.parametrize(
    ("source", "replica"),
    [
        ((2, 5), (2, 6)),
        ((2, ABSENT), (2, 6)),  # it could not be inserted again as it was, or as it must be
        ((2, 5), (2, ABSENT)),
        (None, (2, 6)),  # it goes, and makes room
        ((2, 5), None),
        ((2, 5), (2, 5)),
    ],
)
def test_only_whole_rows_are_deleted_to_be_inserted_again(
    source: Image | None, replica: Image | None
) -> None:
    """Two rows that exchange values of a unique key cannot be updated one after the other."""
    other, row = version(1, (1, 6), (1, 5)), version(2, source, replica)
    is_exchanged = (source, replica) == ((2, 5), (2, 6))
    assert exchanging((other, row)) == ((other, row) if is_exchanged else ())
    assert exchanging((other,)) == (), "nothing else changes that key"
    plain = tuple(replace(each, table=a_table()) for each in (other, row))
    assert exchanging(plain) == ()


@pytest.mark.parametrize("has_statements", [True, False])
def test_columns_are_checked_at_the_start_unless_a_statement_may_alter_them(
    *, has_statements: bool
) -> None:
    touched = frozenset({TouchedTable("d", "t", columns=("id", "n"))})
    rows = tuple(replace(each, tables=touched) for each in redone("b:1"))
    first = tuple(replace(each, has_statements=has_statements) for each in redone("b:2"))
    action = RedoTransactions("a", (*first, *rows))
    made = redo_transactions(action, setting_of(STOPPED, action))
    asked = [each for each in made.preconditions if "d.t has other columns" in each.message]
    assert bool(asked) is not has_statements
    assert any("d.t has other columns" in line for line in made.statements) is has_statements


def test_tables_of_one_name_in_two_databases_are_both_looked_at() -> None:
    rows = [
        NetRow(table, (1, 5), (1, 6))
        for table in (a_table(), replace(a_table(), schema="e"), a_table("u"), a_table())
    ]
    asked = [each.message for each in tables_there("c", rows)]
    assert len(asked) == 3
    for name in ("d.t", "e.t", "d.u"):
        assert any(name in each for each in asked)


def test_a_switch_below_a_source_that_was_not_read_asks_no_other_server() -> None:
    outside = replace(channel("a", auto=False), source=None)
    servers = model(server("b", "a:1", outside))
    action = AutoPositionOn("b", "", filled=GtidSet())
    assert checks_before(action, setting_of(servers, action)) == ()


def test_many_rows_take_longer_than_one() -> None:
    rows = tuple(
        RowVersions(a_table(), f"`id` = {number}", (number, 1), None, ()) for number in range(1_000)
    )
    one, many = (
        make_rows_alike(action, setting_of(STOPPED, action)).estimated_seconds
        for action in (MakeRowsAlike("b", "a", rows[:1]), MakeRowsAlike("b", "a", rows))
    )
    assert 0 < one < many
