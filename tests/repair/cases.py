"""One finding before hand-made servers, as a strategy is asked about it."""

from __future__ import annotations

from typing import Any

from binlog.rows.images import ENUM
from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from binlog.rows.values import Image
from gtid import GtidSet
from gtid_audit.tasks.saved_streams import SavedStreams
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow, TransactionContent
from repair.model.actions import Action, InjectEmpty, MakeRowsAlike, RedoTransactions, UndoRows
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.sql.replay import Replayed
from tests.repair.build import gtids
from tests.snapshots import NOON
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.readings.content_class import ContentClass

NUMBER = RowColumn(LONG, 0, "id", is_unsigned=False)
VALUE = RowColumn(LONG, 0, "n", is_unsigned=False)


NOTHING_STREAMED = SavedStreams({}, seconds_max=1.0, say=print)


def a_table(name: str = "t", value: RowColumn = VALUE) -> RowTable:
    return RowTable("d", name, (NUMBER, value), (0,), Origin.DEFINITION)


ENUMS = a_table("enums", RowColumn(ENUM, 0, "n"))


def a_net_row(before: Image | None, after: Image | None, table: RowTable | None = None) -> NetRow:
    return NetRow(table or a_table(), before, after)


def a_finding(
    code: str,
    wanted: str,
    *,
    source: str = "a",
    replica: str = "b",
    channel: str | None = "",
    grade: Grade = Grade.PROVED,
) -> Finding:
    return Finding(
        code=code,
        name="as in the catalogue",
        severity=Severity.CRITICAL,
        grade=grade,
        cluster="cluster",
        source=source,
        replica=replica,
        channel=channel,
        gtid_set=gtids(wanted),
        first_seen=NOON,
        last_seen=NOON,
        evidence=(Evidence("gtid_executed", replica, "", NOON),),
        explanation="as the rule explains it",
        strategies=(),
    )


def a_content(
    wanted: str, kind: ContentClass = ContentClass.DATA, **facts: Any
) -> TransactionContent:
    read_from = facts.pop("read_from", "b")
    return TransactionContent(read_from, {kind: gtids(wanted)}, **facts)


def redone(text: str, problem: str | None = None) -> tuple[Replayed, ...]:
    """Return transactions as SQL, in the order in which they are named."""
    found: list[Replayed] = []
    for item in text.split():
        for gtid in gtids(item).gtids():
            lines = () if problem else (f"INSERT INTO d.t VALUES ({gtid.gno}, 1);",)
            found.append(Replayed(str(gtid), lines, problem=problem, gtid=gtid))
    return tuple(found)


def rows_written_on(server: str, source: str = "elsewhere") -> tuple[MakeRowsAlike, ...]:
    """Return an earlier step that writes a row of no interest on a server."""
    row = RowVersions(a_table("written"), "`id` = 1", source=(1, 1), replica=None, differing=())
    return (MakeRowsAlike(server, source, (row,)),)


def a_case(servers: Model, finding: Finding, **facts: Any) -> Case:
    """Make the case of a chosen strategy; a test says only what is otherwise."""
    made: dict[str, Any] = {
        "event": None,
        "is_chosen": True,
        "unread": {},
        "meant_to_arrive": (),
        "snapshot_executed": {each.name: each.executed for each in servers.servers.values()},
    }
    return Case(finding=finding, model=servers, **{**made, **facts})


def reason(outcome: Outcome) -> str:
    """Return why it is refused."""
    assert isinstance(outcome, Refusal), outcome
    return outcome.reason


def proposed(outcome: Outcome) -> Proposal:
    assert isinstance(outcome, Proposal), outcome
    return outcome


def shown(actions: tuple[Action, ...]) -> list[str]:
    """Return each action as its server, its name and what tells it from its like."""
    lines = []
    for each in actions:
        text = f"{each.server} {type(each).__name__}"
        if isinstance(each, InjectEmpty | RedoTransactions):
            text += f" {_short(each.gtids)}"
        elif isinstance(each, UndoRows):
            text += f" {each.rows[0].table.table} " + ",".join(row.where for row in each.rows)
        lines.append(text)
    return lines


def _short(wanted: GtidSet) -> str:
    text = str(wanted)
    return f"{text[0]}{text[text.index(':') :]}"
