"""Every action on servers of every kind, as a step: what its script is held to.

`python -m tests.repair.script_cases` prints what tests/repair/scripts.txt has: read the difference
before you keep it.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from binlog.quoting import quote_string
from gtid import Gtid, GtidSet
from repair import FailingEvent, Plan
from repair.content.definition_parts import DefinitionPart, columns_of, view_of
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow
from repair.model.action_content import action_content
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
    simulate,
)
from repair.model.replication_model import Model
from repair.model.strategy_case import SavedContent
from repair.render import render_files
from repair.repair_plan import (
    Afterwards,
    Answered,
    AssumedState,
    ContentShown,
    DifferingRow,
    NotChosen,
    NotPlanned,
)
from repair.scripts.procedure import Setting
from repair.scripts.procedures import make_step
from repair.scripts.steps import Step
from repair.sql.channel_queries import ChannelQuestions
from repair.sql.guard import Guard
from repair.sql.replay import Replayed
from repair.sql.touched_tables import TouchedTable
from tests.digests import digest
from tests.repair.build import NEW, OLD, UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.test_data_repair import row
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.definitions.schema_objects import ObjectKey, ObjectKind
from topology.readings.snapshot import LogPosition
from topology.readings.version import ServerVersion

_ACCOUNT = (
    "CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())"
    " - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''',"
    " SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"
)
_QUESTIONS = {
    f"{name}({each.name.upper()})": getattr(ChannelQuestions.of(version, asked), each.name)
    for name, version, asked in (("9.7", NEW, ""), ("5.6", OLD, ""))
    for each in fields(ChannelQuestions)
}
_NAMES = {_ACCOUNT: "ACCOUNT"} | {
    sql: name for name, sql in _QUESTIONS.items() if sql.startswith(("(", "COALESCE"))
}
MIDDLE = ServerVersion(8, 0, 20)  # channels, and the words of before 8.0.22
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_START = LogPosition.of(file="binlog.000002", position=700)
_END = LogPosition.of(file="binlog.000002", position=900)


def pair(version: ServerVersion, *, auto: bool = True, runs: bool = True, name: str = "") -> Model:
    """b lacks a:4-6, and a has no channel from b, which committed b:1 by itself."""
    return model(
        server("a", "a:1-9", version=version),
        server(
            "b",
            "a:1-3 a:7-9 b:1",
            channel("a", auto=auto, runs=runs, bypassed="" if auto else "a:4-6", name=name),
            version=version,
        ),
    )


def _event(servers: Model) -> FailingEvent:
    assert _START is not None
    assert _END is not None
    return FailingEvent(
        source="a",
        source_uuid=servers["a"].server_uuid,
        gtid=Gtid.parse(f"{UUIDS['a']}:4"),
        start=_START,
        end=_END,
        error_code=1050,
        schema="",
        statement="CREATE VIEW v AS SELECT 1",
        before=GtidSet(),
    )


def _reset(servers: Model, restart: tuple[str, ...]) -> ResetAndPurge:
    return ResetAndPurge("b", gtids("a:4-6"), servers["b"].executed, restart=restart)


def _exchanging() -> tuple[RowVersions, ...]:
    """Return rows of which two change a unique key, and one changes another column."""
    found = (row((1, 5), (1, 6)), row((2, 6), (2, 5)), row((3, 8), None))
    unique = replace(found[0].table, unique_keys=((1,),))
    return tuple(replace(each, table=unique) for each in found)


def _replayed(number: int = 1) -> Replayed:
    lines = ("BEGIN;", "INSERT INTO `d`.`t` VALUES (1);", "COMMIT;")
    [gtid] = gtids(f"b:{number}").gtids()
    return Replayed(str(gtid), lines, frozenset({TouchedTable("d", "t")}), gtid=gtid)


def _created() -> Replayed:
    lines = (
        "SET sql_require_primary_key = 0 /*!80030 , sql_generate_invisible_primary_key = 0 */;",
        "DELIMITER /*!*/;",
        "CREATE TABLE `d`.`t` (id INT)\n/*!*/;",
        "DELIMITER ;",
    )
    [gtid] = gtids("b:1").gtids()
    return Replayed(str(gtid), lines, frozenset(), gtid=gtid, sets_restricted=True)


def cases() -> Iterator[tuple[str, Model, Action]]:
    """Yield each case a name that says what is special about it."""
    tagged = GtidSet.parse(f"{UUIDS['b']}:dba:1")
    for version in (OLD, NEW):
        yield f"empty transactions, {version}", pair(version), InjectEmpty("b", gtids("a:4-5"))
    yield "an errant transaction, 9.7.4", pair(NEW), InjectEmpty("a", gtids("b:1"))
    yield "a tagged transaction, 9.7.4", pair(NEW), InjectEmpty("a", tagged)
    yield "gtid_purged, 9.7.4", pair(NEW), AppendPurged("b", gtids("a:4-6"))
    yield "gtid_purged with tags, 9.7.4", pair(NEW), AppendPurged("a", tagged)
    old = pair(OLD)
    yield "a reset, 5.6.24", old, _reset(old, ("",))
    named = pair(ServerVersion(5, 7, 44), runs=False, name="north")
    yield "a reset of a server with a stopped channel, 5.7.44", named, _reset(named, ())
    stuck = model(server("a", "a:1-6"), server("b", "a:1-3", channel("a", stuck=True)))
    yield "past an event, 9.7.4", stuck, MovePast("b", "", _event(stuck))
    old = pair(OLD, runs=False)
    yield "past an event, 5.6.24", old, MovePast("b", "", _event(old))
    for version in (OLD, MIDDLE, NEW):
        yield (
            f"auto-position with a hole to fetch, {version}",
            pair(version, auto=False),
            AutoPositionOn("b", "", filled=GtidSet()),
        )
    filled = model(server("a", "a:1-9"), server("b", "a:1-9", channel("a", auto=False)))
    yield "auto-position, filled", filled, AutoPositionOn("b", "", filled=gtids("a:4"))
    seen = pair(NEW, auto=False)
    compared = AutoPositionOn("b", "", filled=GtidSet(), compared_at=seen["b"].executed)
    yield "auto-position, rows compared", seen, compared
    yield "start, nothing to fetch", _stopped("a:1-9"), StartChannel("b", "")
    yield "start, much to fetch", _stopped("a:1-3"), StartChannel("b", "")
    yield "start an empty server", _stopped(""), StartChannel("b", "")
    yield "start an odd channel", pair(NEW, runs=False, name="n\\'é"), StartChannel("b", "n\\'é")
    by_position = model(
        server("a", "a:1-9"), server("b", "a:1-3", channel("a", auto=False, runs=False))
    )
    yield "start by file position", by_position, StartChannel("b", "")
    outside = model(server("b", "a:1", channel("a", runs=False, name="out")))
    yield "start a channel from outside", _outside(outside), StartChannel("b", "out")
    for version in (OLD, NEW):
        yield f"stop, {version}", pair(version), StopChannel("b", "")
    rows = (row((1, 5), (1, 6)), row(None, (2, 7)), row((3, 8), None))
    yield "rows made alike", pair(NEW), MakeRowsAlike("b", "a", rows)
    yield "rows undone", pair(NEW), UndoRows("b", gtids("b:1"), rows[:1])
    for version in (OLD, NEW):
        yield f"a column is added, {version}", pair(version), _added(version)
    yield "a view is created", pair(NEW), _view()
    yield "rows that exchange values", pair(NEW), MakeRowsAlike("b", "a", _exchanging())
    yield "redone", pair(NEW), RedoTransactions("a", (_replayed(),))
    mixed = pair(ServerVersion(5, 6, 24))
    mixed = mixed.replace(replace(mixed["a"], logs_rows=False))
    yield "redone beside statements, 5.6.24", mixed, RedoTransactions("a", (_replayed(),))
    yield "redone, a table made", pair(NEW), RedoTransactions("a", (_created(), _replayed(2)))
    one = NetRow(row((1, 5), None).table, (1, 5), (1, 6))
    waiting = gtids("a:4-9")
    for name, facts in (("rows compared", {"rows": (one,)}), ("in order", {"in_order": True})):
        yield f"start, {name}", _waiting_above(), StartChannel("b", "", waiting=waiting, **facts)
    yield "redone, rows compared", _redone_above(), RedoTransactions("a", (_replayed(),), (one,))
    yield "redone, rows unread", _redone_above(), RedoTransactions("a", (_replayed(),), None)


def _added(version: ServerVersion) -> ChangeDefinition:
    """The table is locked: its rows were read when the source had executed this set."""
    key = ObjectKey(ObjectKind.TABLE, "d", "t")
    return ChangeDefinition(
        server="b",
        source="a",
        schema="d",
        name="t",
        title="change table d.t (column fewer `c`)",
        statement="ALTER TABLE `d`.`t` ADD COLUMN `c` int DEFAULT NULL, ALGORITHM=INPLACE",
        parts=(DefinitionPart("the columns", columns_of(key, version), "seen", "goal"),),
        undo="ALTER TABLE `d`.`t` DROP COLUMN `c`",
        rows_at=gtids("a:1-9"),
        data_bytes=100 << 20,
    )


def _view() -> ChangeDefinition:
    key = ObjectKey(ObjectKind.VIEW, "d", "v")
    return ChangeDefinition(
        server="b",
        source="a",
        schema="d",
        name="v",
        title="create view d.v",
        statement="CREATE VIEW `d`.`v` AS select 'a;b' AS `c`",
        parts=(DefinitionPart("the view", view_of(key), "seen", "goal"),),
        undo="DROP VIEW `d`.`v`",
        session=("SET SESSION collation_connection = utf8mb4_general_ci;",),
    )


def _redone_above() -> Model:
    return pair(NEW).replace(server("c", "a:1-9", channel("a")))


def _stopped(executed: str) -> Model:
    return model(server("a", "a:1-9"), server("b", executed, channel("a", runs=False)))


def _waiting_above() -> Model:
    """Return a -> b -> c: what b receives goes on to c."""
    return _stopped("a:1-3").replace(server("c", "a:1-3", channel("b")))


def _outside(servers: Model) -> Model:
    """Let the channel's source be no server of the snapshot."""
    return servers.replace(servers["b"].with_channel("out", source=None))


def finding() -> Finding:
    """Return the finding that all these steps answer."""
    return Finding(
        code="H1",
        name="bypassed by file position",
        severity=Severity.WARNING,
        grade=Grade.PROVED,
        cluster="cluster",
        source="a",
        replica="b",
        channel="",
        gtid_set=gtids("a:4-6"),
        first_seen=_NOON,
        last_seen=_NOON,
        explanation="an explanation",
        evidence=(Evidence("fact", "value", "b", _NOON),),
        strategies=(),
    )


def steps() -> Mapping[str, Step]:
    """Return the step of each case."""
    found = {}
    for name, servers, action in cases():
        setting = Setting(
            servers[action.server],
            before=servers,
            after=simulate(servers, action),
            seen=snapshot_of(servers).last_read,
        )
        assert name not in found, "each case once"
        found[name] = make_step(action, setting, after=0, finding=finding())
    return found


def numbered(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return steps in an order, each behind the scripts of its checks."""
    done: list[Step] = []
    for step in steps:
        after = done[-1].number if done else 0
        done.append(replace(step, number=after + len(step.checks) + 1))
    return tuple(done)


def plan_of(*steps: Step) -> Plan:
    return Plan(
        cluster="cluster",
        snapshot_read_at=_NOON,
        answered=(),
        steps=steps,
        assumed=(),
        not_chosen=(),
        not_planned=(),
        warnings=(),
    )


def full_plan(found: Mapping[str, Step]) -> Plan:
    """Return a plan that has something of everything a runbook shows."""
    names = ("an errant transaction, 9.7.4", "start, much to fetch", "rows made alike")
    chosen = numbered(found[name] for name in names)
    row_of_b = {"n": "6", "m": None}
    return replace(
        plan_of(*chosen),
        answered=(
            Answered("f-1", "E1", "errant", "a → b", "inject_empty", (1, 2)),
            Answered("f-2", "C3", "auto-position off", "a → b", "auto_position_on", ()),
        ),
        not_planned=(
            NotPlanned("f-3", "A3", "applier stopped", "a → b", "it has no script", ("explain",)),
            NotPlanned("f-4", "U1", "unread", "", "there is nothing to run", ()),
        ),
        not_chosen=(NotChosen("f-1", "redo_on_source", "it was not selected"),),
        warnings=("compare the tables", "a name with\na line"),
        rows=(
            DifferingRow("f-5", "d.t", "`id` = 1", "a", None, "b", row_of_b),
            DifferingRow("f-5", "d.t", "`id` = 2", "a", {"n": "5"}, "b", None),
        ),
        choices={"E1": "inject_empty"},
        command="gtid-audit repair plan --pair a b --again plan-1",
        contents=(
            ContentShown("f-1", "b", "1 transaction with data", {"data": "set"}, ("d.t",)),
            ContentShown("f-9", None, "1 not read", {}, ()),
        ),
        saved=(SavedContent("content-f-1.sql", "-- the content\n"),),
        afterwards=(
            Afterwards("f-6", "C3", "auto-position off", "a → b", "warning", "why", is_new=True),
            Afterwards("f-7", "U1", "unread", "", "critical", "why not", is_new=False),
        ),
        assumed=(
            AssumedState("a", "h", 3306, "uuid-a", "9.7.4", "set", "", ("'' from h:3307",)),
            AssumedState("b", "localhost", 3306, "uuid-b", "9.7.4", "", "", (), "/run/b.sock"),
        ),
    ).reached_by({"b": "/run/b.sock"})


def transcript() -> str:
    """Return every step in short, and scripts, a check and runbooks as they are written.

    plan.json is too long to be read here: its digest changes with any value of it.
    """
    found = steps()
    lines = ["== names for expressions", *(f"{name}: {sql}" for sql, name in _NAMES.items())]
    for name, step in found.items():
        lines += ["", f"== {name}", *in_short(step)]
    plan = full_plan(found)
    for file, text in render_files(plan).items():
        if file.endswith(".json"):
            lines += ["", f"{file}: {hashlib.sha256(text.encode()).hexdigest()}"]
        elif not file.startswith("03"):
            lines += ["", f"==== the file {file}", *text.replace(plan.id, "PLAN-ID").splitlines()]
    lines += ["", "==== digests of all files of other plans"]
    lines += [f"{name}: {digest(render_files(each))}" for name, each in _other_plans(found, plan)]
    alone = replace(plan_of(), snapshot_read_at=None)
    lines += ["", "==== a runbook without steps"]
    lines += render_files(alone)["RUNBOOK.md"].replace(alone.id, "PLAN-ID").splitlines()
    return "\n".join(lines).strip() + "\n"


def _with(plan: Plan, name: str, value: object) -> Plan:
    made: dict[str, Any] = {name: value}
    return replace(plan, **made)


def _other_plans(found: Mapping[str, Step], full: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield a plan of each step alone, and the full plan with one part of it changed."""
    for name, step in found.items():
        yield name, plan_of(*numbered((step,)))
    for each in fields(full):
        value = getattr(full, each.name)
        if not each.init or each.name == "cluster":
            continue
        if value and each.name != "answered":  # what was not chosen belongs to what is answered
            empty = type(value)() if isinstance(value, tuple | dict | str) else None
            yield f"no {each.name}", _with(full, each.name, empty)
        if each.name == "steps":
            continue
        if isinstance(value, tuple) and len(value) > 1:
            yield f"{each.name}, reversed", _with(full, each.name, value[::-1])
    unprivileged = tuple(replace(each, privileges=()) for each in full.steps)
    yield "steps without privileges", replace(full, steps=unprivileged)
    yield "a name with a bell", replace(full, cluster="north\x07 and\x1b[0m south")
    yield "one finding only", replace(full, only_findings=("f-1",))
    second = replace(full.not_chosen[0], finding_id="f-2")
    yield "not chosen for another finding", replace(full, not_chosen=(second,))


def in_short(step: Step) -> Iterator[str]:
    """Return a step as lines, with names for expressions that come again and again."""
    yield from map(_named, _short(step))


def _named(line: str) -> str:
    """Write the expressions that come again and again by their names."""
    for sql, name in _NAMES.items():
        line = line.replace(sql, name).replace(quote_string(sql)[1:-1], f"quoted {name}")
    return line


def _short(step: Step) -> Iterator[str]:
    yield f"on {step.server}: {step.procedure.title}"
    for name in ("risk", "undo", "check", "if_stopped", "estimate_assumes"):
        yield f"{name}: {getattr(step.procedure, name)}"
    yield f"does {json.dumps(action_content(step.effect), ensure_ascii=False)}"
    yield f"takes {step.procedure.estimated_seconds} s; needs {'; '.join(step.privileges)}"
    yield from (f"warning: {warning}" for warning in step.procedure.warnings)
    for check in step.checks:
        yield f"first, on {check.server} by {step.check_name(check)}: {check.why}"
        yield from _guards("require", check.guards)
    yield from step.procedure.session
    yield from _guards("require", step.procedure.preconditions)
    for statement, group in groupby(step.procedure.statements):
        count = len(list(group))
        yield statement + (f" x{count}" if count > 1 else "")
    yield from _guards("goal", step.procedure.verifications)


def _guards(word: str, guards: tuple[Guard, ...]) -> Iterator[str]:
    for guard in guards:
        yield from guard.tries
        yield f"{word} {guard.condition}"
        yield f"    else {guard.message}" + (f" + {guard.detail}" if guard.detail else "")


if __name__ == "__main__":
    sys.stdout.write(transcript())
