"""Which guards each action's script must carry: remove one, and a test here fails.

A guard is known by what it asks, not by its words: a fragment of its condition.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    ChangeDefinition,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    StopChannel,
    UndoRows,
)
from repair.scripts.other_servers import checks_before
from repair.scripts.procedure import Setting
from repair.scripts.procedures import make_step
from repair.scripts.steps import Step
from repair.sql.channel_queries import waits_here
from repair.sql.table_questions import is_shown, met_if_there, would_be_shown
from tests.repair.build import NEW, OLD, UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_finding
from tests.repair.script_cases import pair, steps

STEPS = steps()

SERVER = r"^@@GLOBAL\.server_uuid = '"
# Not the one that asks whether the account may write on a read-only server.
PRIVILEGE = r"^(?!@@GLOBAL\.read_only).*user_privileges WHERE grantee = .* AND privilege_type IN"
CHANNELS = r"replication_connection_configuration WHERE HOST <> ''|master_info_repository"
NOT_OWNED = r"REPLACE\(@@GLOBAL\.gtid_owned"
SOURCE = r"SOURCE_UUID.*= '|Uuid, ''\).*= '"
ERROR = r"LAST_ERROR_NUMBER.* IN \(0|IFNULL\(NULL, 0\) IN"
NO_WAIT = r"NOT EXISTS .*Rpl_semi_sync_source_status.* >= IFNULL"
BY_SETS = r"AUTO_POSITION = '1'\).*, 1\) = 1|Enabled_auto_position.*, 1\) = 1"
BY_POSITION = r"AUTO_POSITION = '1'\).*, 0\) = 0|Enabled_auto_position.*, 0\) = 0"
HISTORY = r"^@@GLOBAL\.gtid_executed <> ''"
RESTRICTED = r"PRIVILEGE_CHECKS_USER.*REQUIRE_ROW_FORMAT.*REQUIRE_TABLE_PRIMARY_KEY_CHECK"
ACCOUNT = r"GTID_SUBTRACT\(.*PRIVILEGE_CHECKS_USER.* IS NULL$"
ASSIGNS_NONE = r"ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE\), 'OFF'\).* IS NULL$"
FILLED = r"^GTID_SUBSET\('[^']*', @@GLOBAL\.gtid_executed\)$"
KEEPS = FILLED  # all that the plan saw executed is still executed
FILLED_FIRST = r"^GTID_SUBSET\('[^']*:4', @@GLOBAL\.gtid_executed\)$"
SOUND = r"^GTID_SUBSET\(@@GLOBAL\.gtid_purged, @@GLOBAL\.gtid_executed\)$"
NONE_WAITS = r"^NOT EXISTS .*replication_connection_status.*RECEIVED_TRANSACTION_SET"
QUIET = r"^@@GLOBAL\.gtid_owned = '' OR"
EXACT = r"OR @@GLOBAL\.gtid_executed = '' OR \(GTID_SUBSET"
UNLOGGED = r"^@@SESSION\.sql_log_bin = 0$"
LOGGED = r"^@@SESSION\.sql_log_bin = 1$"
HAS_LOG = r"^@@GLOBAL\.log_bin = 1$"
SEES_TRIGGERS = r"schema_privileges|table_privileges|TRIGGER"
NO_TRIGGERS = r"NOT EXISTS .*\btriggers\b|information_schema\.triggers"
THERE = r"^EXISTS \(SELECT 1 FROM information_schema\.tables WHERE table_schema = 'd'"
DEFINED = r"information_schema\.(?:columns|views) WHERE .* <=> 'seen' OR .* <=> 'goal'"
AS_GOAL = r"^\(SELECT .*information_schema\.(?:columns|views) WHERE .* <=> 'goal'$"
WRITABLE = r"^@@GLOBAL\.super_read_only = 0$"
ROW = r"EXISTS \(SELECT 1 FROM `d`\.`t`"

EVERY = (SERVER, PRIVILEGE)
SETS = (*EVERY, CHANNELS, NOT_OWNED)
CHANNEL = (*EVERY, CHANNELS, SOURCE, ERROR)
ROWS = (*EVERY, UNLOGGED, THERE, SEES_TRIGGERS, NO_TRIGGERS, ROW)

# In the order in which a script asks: which server, which account, what it holds.
MUST_CARRY: Mapping[type[Action], tuple[str, ...]] = {
    InjectEmpty: (*SETS, NONE_WAITS, HAS_LOG, NO_WAIT),
    AppendPurged: (*SETS, NONE_WAITS),
    ResetAndPurge: (*EVERY, CHANNELS, SOUND, QUIET, EXACT),
    MovePast: (*CHANNEL, HISTORY, KEEPS),
    AutoPositionOn: (*CHANNEL, HISTORY, KEEPS),
    StartChannel: CHANNEL,
    StopChannel: (*CHANNEL, BY_SETS, HISTORY, KEEPS),
    MakeRowsAlike: ROWS,
    UndoRows: ROWS,
    ChangeDefinition: (*EVERY, CHANNELS, UNLOGGED, WRITABLE, DEFINED),
    RedoTransactions: (
        *(*EVERY, CHANNELS, NOT_OWNED, NO_WAIT, LOGGED, HAS_LOG),
        *(SEES_TRIGGERS, NO_TRIGGERS),
    ),
}
GOALS: Mapping[type[Action], tuple[str, ...]] = {
    InjectEmpty: (FILLED,),
    AppendPurged: (FILLED,),
    ResetAndPurge: (FILLED,),
    MovePast: (r"POS_WAIT\(.* IS NOT NULL",),
    AutoPositionOn: (r" IS NULL$", r"SERVICE_STATE|SLAVE_RUNNING", r"auto_position|AUTO_POSITION"),
    StartChannel: (r" IS NULL$", r"SERVICE_STATE|SLAVE_RUNNING"),
    StopChannel: (r"^NOT IFNULL",),
    MakeRowsAlike: (ROW,),
    UndoRows: (ROW,),
    RedoTransactions: (FILLED,),
    ChangeDefinition: (AS_GOAL,),
}
# Guards that depend on what the plan saw: the case, and what it must carry besides.
SPECIAL: Mapping[str, tuple[str, ...]] = {
    "auto-position, filled": (FILLED_FIRST, ASSIGNS_NONE),
    "auto-position with a hole to fetch, 9.7.4": (ASSIGNS_NONE, ACCOUNT),
    "start, nothing to fetch": (BY_SETS, HISTORY, KEEPS),
    "start, much to fetch": (BY_SETS, HISTORY, KEEPS, RESTRICTED),
    "start an odd channel": (BY_SETS, HISTORY, KEEPS),
    "start by file position": (BY_POSITION, HISTORY, KEEPS),
}
WITHOUT: Mapping[str, tuple[str, ...]] = {
    "a column is added, 5.6.24": (WRITABLE,),  # super_read_only exists since 5.7.8
    "empty transactions, 5.6.24": (NONE_WAITS,),  # no table of 5.6 shows what was received
    "start an empty server": (HISTORY, KEEPS),  # it was empty when it was planned
    "start a channel from outside": (SOURCE,),
    "past an event, 9.7.4": (BY_SETS,),  # interrupted, the script itself has switched it off
    "auto-position with a hole to fetch, 9.7.4": (BY_SETS,),  # it was off
}


def asked(step: Step) -> list[str]:
    return [guard.condition for guard in step.procedure.preconditions]


def has(conditions: list[str], fragment: str) -> bool:
    return any(re.search(fragment, each, re.DOTALL) for each in conditions)


def test_every_action_has_its_row() -> None:
    assert set(MUST_CARRY) == set(GOALS) == set(Action.__args__)
    assert set(SPECIAL) | set(WITHOUT) <= set(STEPS)


@pytest.mark.parametrize(("name", "step"), STEPS.items(), ids=list(STEPS))
def test_a_script_carries_its_guards(name: str, step: Step) -> None:
    left_out = WITHOUT.get(name, ())
    wanted = [*MUST_CARRY[type(step.effect)], *SPECIAL.get(name, ())]
    for fragment in wanted:
        assert has(asked(step), fragment) != (fragment in left_out), fragment
    for fragment in left_out:
        assert not has(asked(step), fragment), fragment
    goals = [guard.condition for guard in step.procedure.verifications]
    for fragment in GOALS[type(step.effect)]:
        assert has(goals, fragment), fragment


@pytest.mark.parametrize(("name", "step"), STEPS.items(), ids=list(STEPS))
def test_what_writes_rows_tries_each_privilege_on_each_table(name: str, step: Step) -> None:
    """A statement of each kind is prepared before the first change, and never executed."""
    writes = isinstance(step.effect, MakeRowsAlike | UndoRows | RedoTransactions)
    tried = [guard.tries[0] for guard in step.procedure.preconditions if guard.tries]
    verbs = ("SELECT 1 FROM", "INSERT INTO", "UPDATE", "DELETE FROM")
    for verb in verbs:
        assert any(f"{verb} `d`.`t`" in each for each in tried) is writes, name
    assert len(tried) % len(verbs) == 0
    for guard in step.procedure.preconditions:
        if guard.tries:
            assert guard.condition == "@@SESSION.error_count = 0"
            assert guard.statements()[: len(guard.tries)] == guard.tries, "nothing in between"
            assert not any("EXECUTE" in each for each in guard.tries)


@pytest.mark.parametrize(("name", "step"), STEPS.items(), ids=list(STEPS))
def test_the_server_and_the_account_are_asked_first(name: str, step: Step) -> None:
    kinds = [
        next(i for i, f in enumerate((SERVER, PRIVILEGE, ".")) if has([c], f)) for c in asked(step)
    ]
    assert kinds == sorted(kinds)
    assert kinds.count(0) == 1
    globally = [each for each in step.privileges if " on " not in each]
    assert kinds.count(1) == len(globally)


@pytest.mark.parametrize(("name", "step"), STEPS.items(), ids=list(STEPS))
def test_every_message_names_the_server_and_what_to_do(name: str, step: Step) -> None:
    for guard in (*step.procedure.preconditions, *step.procedure.verifications):
        # `binlog show --redo` asks the same of a table, on a server that it does not know.
        assert guard.message.startswith(f"{step.server}: ") or name.startswith("redone")
        assert not guard.message.endswith("..."), "cut"


FETCH = ("past an event", "auto-position")


def test_what_another_server_holds_alone_is_looked_at_there() -> None:
    """Only where the server does not receive from the holder, for declaring and for undoing."""
    checked = {name: [each.server for each in step.checks] for name, step in STEPS.items()}
    assert {name for name, servers in checked.items() if servers} == {
        "an errant transaction, 9.7.4",
        "rows undone",
        "redone",
        "redone, rows compared",
        "redone, a table made",
        "redone beside statements, 5.6.24",
        "redone, rows unread",
        "start, rows compared",
        "start, in order",
        # The source still has the version that its replica gets.
        *("rows made alike", "rows that exchange values"),
        # The source still has the definition that its replica gets.
        *("a column is added, 5.6.24", "a column is added, 9.7.4", "a view is created"),
        # The source must still have what is fetched, and what a deleted relay log held.
        *(name for name in checked if name.startswith(FETCH)),
    }
    [check] = STEPS["an errant transaction, 9.7.4"].checks
    server, more = (guard.condition for guard in check.guards)
    assert re.search(SERVER, server)
    allowed = gtids("a:1-9223372036854775806 b:1")
    assert more == f"GTID_SUBSET(@@GLOBAL.gtid_executed, '{allowed}')"


def test_rows_are_made_like_those_that_the_source_still_has() -> None:
    [check] = STEPS["rows made alike"].checks
    _, there, *rows = (guard.condition for guard in check.guards)
    assert (check.server, len(rows)) == ("a", 3)
    assert "information_schema.tables" in there
    assert rows[0].startswith("EXISTS (SELECT 1 FROM `d`.`t` WHERE `id` = 1")


def test_what_is_undone_must_not_have_arrived_elsewhere() -> None:
    [check] = STEPS["rows undone"].checks
    server, sees_it, row, channels, waits, commits = check.guards
    assert check.server == "a"
    assert "replication_connection_configuration WHERE HOST <> ''" in channels.condition
    assert "its channels changed since the plan was made" in channels.message
    assert re.search(SERVER, server.condition)
    assert re.search(NO_WAIT, commits.condition)  # its own step comes next
    assert sees_it.condition == would_be_shown("d", "t")
    undone = gtids("b:1")
    quoted = f"'{undone}'"
    assert waits.condition == f"NOT {waits_here(NEW, quoted)}"
    # Whatever its GTIDs: a client may have written the same.
    assert row.condition == "NOT @met"
    # The table need not be there.
    assert row.tries == met_if_there(
        "d", "t", "EXISTS (SELECT 1 FROM `d`.`t` WHERE `id` = 1 AND `n` = 6)"
    )


OWN = r"^GTID_SUBSET\('[^']*:1-9223372036854775806', GTID_SUBTRACT\("  # it has committed nothing
# None of what arrives is executed; on the started server, unless the channel runs.
BY_HAND = r"^GTID_SUBTRACT\('[^']*:4-9', [^=]* = GTID_SUBTRACT\('[^']*:4-9', ''\)$"
BY_HAND_THERE = BY_HAND.removesuffix("$") + r" OR IFNULL\(.*SERVICE_STATE"


@pytest.mark.parametrize(
    ("name", "on_source", "below"),
    [
        ("start, rows compared", True, (SERVER, KEEPS, OWN, BY_HAND, THERE, ROW)),
        ("start, in order", False, (SERVER, KEEPS, OWN, BY_HAND)),
    ],
)
def test_what_a_start_brings_must_fit_wherever_it_goes_on(
    name: str, below: tuple[str, ...], *, on_source: bool
) -> None:
    """Rows that were compared count while the source executes no more; both while b writes not."""
    step = STEPS[name]
    *sources, receiver = step.checks
    assert [each.server for each in sources] == (["a"] if on_source else [])
    assert receiver.server == "c"
    conditions = [each.condition for each in receiver.guards]
    for shape, condition in zip(below, conditions, strict=True):
        assert re.search(shape, condition), condition
    assert any(re.search(OWN, each) for each in asked(step))
    assert any(re.search(BY_HAND_THERE, each) for each in asked(step))
    assert not any(re.search(OWN, each) for each in asked(STEPS["start, much to fetch"]))
    assert (
        any("@begun" in line for line in step.procedure.statements + step.procedure.session)
        is on_source
    )


def test_what_is_done_again_must_fit_where_it_arrives_and_where_it_is() -> None:
    done, row = gtids("b:1"), "EXISTS (SELECT 1 FROM `d`.`t` WHERE `id` = 1 AND `n` = {})"
    holder, receiver = STEPS["redone, rows compared"].checks
    assert (holder.server, receiver.server) == ("b", "c")
    assert all(re.search(SERVER, each.guards[0].condition) for each in (holder, receiver))
    there = f"GTID_SUBSET('{done}', @@GLOBAL.gtid_executed)"
    shown = is_shown("d", "t")
    assert [each.condition for each in holder.guards[1:]] == [there, shown, row.format(6)]
    [table, before] = [each.condition for each in receiver.guards[1:]]
    assert table == shown
    assert before == (
        f"{row.format(5)} OR NOT (GTID_SUBTRACT('{done}', @@GLOBAL.gtid_executed) ="
        f" GTID_SUBTRACT('{done}', ''))"
    )
    # Rows that were not compared: the receiving server must have committed nothing.
    holder, unread = STEPS["redone, rows unread"].checks
    assert [each.condition for each in holder.guards[1:]] == [there]
    assert unread.server == "c"
    assert f"'{UUIDS['c']}:1-" in unread.guards[1].condition
    # There are no rows, but a server that has the transactions must not receive them again.
    [holder] = STEPS["redone"].checks
    assert [each.condition for each in holder.guards[1:]] == [there]


def test_the_rows_are_looked_at_behind_a_redo() -> None:
    """A GTID that was met may be an empty one, and a column may have stored another value."""
    step = STEPS["redone, rows compared"]
    _, row = step.procedure.verifications
    assert row.condition == "EXISTS (SELECT 1 FROM `d`.`t` WHERE `id` = 1 AND `n` = 6)"
    assert row.message.startswith("a: ")
    assert len(STEPS["redone, rows unread"].procedure.verifications) == 1


@pytest.mark.parametrize(("name", "step"), STEPS.items(), ids=list(STEPS))
def test_a_check_that_reads_tables_says_which_privilege_it_needs(name: str, step: Step) -> None:
    for check in step.checks:
        asked = [line for each in check.guards for line in (each.condition, *each.tries)]
        reads = any("FROM `" in line for line in asked)
        channels = any(".replication_" in line for line in asked)
        expected = (
            *(("SELECT on performance_schema.*",) if channels else ()),
            *(("SELECT on the tables of the rows",) if reads else ()),
        )
        assert check.privileges == expected, name


def test_whatever_declares_looks_at_the_holder_and_lets_it_receive() -> None:
    """A source outside the snapshot goes on sending to the holder: that means nothing."""
    outside = UUIDS["f"]
    servers = pair(NEW)
    seen = snapshot_of(servers).last_read
    channels = tuple(replace(each, source_uuid=outside) for each in seen["b"].channels or ())
    seen["b"] = replace(seen["b"], channels=channels)
    setting = Setting(servers["a"], before=servers, after=servers, seen=seen)
    wanted, executed = gtids("b:1"), servers["a"].executed
    for action in (
        InjectEmpty("a", wanted),
        AppendPurged("a", wanted),
        ResetAndPurge("a", wanted, executed, restart=()),
    ):
        [check] = checks_before(action, setting)
        assert check.server == "b"
        assert f"{outside}:1-9223372036854775806" in check.guards[1].condition
    assert checks_before(StartChannel("b", ""), setting) == ()


@pytest.mark.parametrize(("retrieved", "asks"), [("a:1-3", True), ("a:1-4", False)])
def test_what_waited_when_the_plan_was_made_may_be_left_out(retrieved: str, *, asks: bool) -> None:
    """The plan is about it then (A2, H8); received since, it is to come with its content."""
    servers = model(server("a", "a:1-4"), server("b", "a:1-3", channel("a")))
    seen = snapshot_of(servers).last_read
    channels = tuple(
        replace(each, gtid_retrieved=gtids(retrieved)) for each in seen["b"].channels or ()
    )
    seen["b"] = replace(seen["b"], channels=channels)
    setting = Setting(servers["b"], before=servers, after=servers, seen=seen)
    step = make_step(
        InjectEmpty("b", gtids("a:4")), setting, after=0, finding=a_finding("H1", "a:4")
    )
    assert has(asked(step), NONE_WAITS) is asks


def test_what_the_holder_commits_behind_its_reading_is_more_though_others_show_it() -> None:
    """c receives from b and was read after it: the finding is not about the second transaction."""
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1-3 b:1", channel("a")),
        server("c", "a:1-3 b:1-2", channel("b")),
    )
    seen = snapshot_of(servers).last_read
    setting = Setting(servers["a"], before=servers, after=servers, seen=seen)
    checks = {each.server: each for each in checks_before(InjectEmpty("a", gtids("b:1")), setting)}
    assert f"'{gtids('a:1-9223372036854775806 b:1')}'" in checks["b"].guards[1].condition


def test_what_becomes_empty_above_a_server_must_still_be_there() -> None:
    """Only where the rows are on the server already: their content matters to those below it."""
    servers = model(server("a", "a:1-3"), server("b", "a:1", channel("a")))
    servers = servers.replace(server("c", "a:1-2", channel("b")))
    seen = snapshot_of(servers).last_read
    setting = Setting(servers["b"], before=servers, after=servers, seen=seen)
    for there in (True, False):
        action = InjectEmpty("b", gtids("a:2-3"), rows_are_there=there)
        [check] = [each for each in checks_before(action, setting) if each.server == "c"]
        kept = f"GTID_SUBSET('{gtids('a:2')}', @@GLOBAL.gtid_executed)"
        assert (kept in [guard.condition for guard in check.guards]) is there


def test_a_server_that_gets_it_elsewhere_must_still_do_so() -> None:
    """Pointed to b since, it would get empty transactions instead of the rows."""
    servers = model(server("a", "a:1-3"), server("b", "a:1", channel("a")))
    servers = servers.replace(server("c", "a:1-2", channel("a")))
    servers = servers.replace(server("d", "a:1-3", channel("a")))
    seen = snapshot_of(servers).last_read
    setting = Setting(servers["b"], before=servers, after=servers, seen=seen)
    for there in (True, False):
        action = InjectEmpty("b", gtids("a:2-3"), rows_are_there=there)
        asked_of = {each.server: each.guards for each in checks_before(action, setting)}
        kept = {
            name
            for name, guards in asked_of.items()
            if any("its channels changed" in guard.message for guard in guards)
        }
        assert kept == ({"c"} if there else set())


def test_versions_are_both_there() -> None:
    assert any(str(OLD) in name for name in STEPS)
    assert any(str(NEW) in name for name in STEPS)
