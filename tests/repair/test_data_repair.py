"""Rows that differ under one GTID: what is shown, what must be chosen, and what cannot be written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlog.rows.images import ENUM, JSON
from binlog.rows.json_values import JsonDocument, JsonOpaque
from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from binlog.rows.values import Image
from gtid import GtidSet
from repair import LogEvidence, Plan, plan_repair
from repair.content.row_versions import RowsRead, RowVersions
from repair.model.actions import MakeRowsAlike
from repair.model.replication_model import ModelChannel
from repair.render import render_files
from repair.strategies.data_repair import data_repair, data_repair_on_source
from tests.repair.build import UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_case, a_finding, proposed, reason, rows_written_on
from topology.audit_cluster import audit_cluster
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)
from topology.readings.snapshot import ClusterSnapshot

PAIR = model(
    server("a", "a:1-9", channel("b")),
    server("b", "a:1-9", channel("a")),
)
NUMBER = RowColumn(LONG, 0, "id", is_unsigned=False)
CHOSEN = {"E4": "data_repair"}


def table(name: str = "t", column: RowColumn | None = None) -> RowTable:
    columns = (NUMBER, column or RowColumn(LONG, 0, "n", is_unsigned=False))
    return RowTable("d", name, columns, (0,), Origin.DEFINITION)


def row(source: Image | None, replica: Image | None, of: RowTable | None = None) -> RowVersions:
    held = source or replica or (0,)
    ours, theirs = (None if image is None else str(image[1]) for image in (source, replica))
    return RowVersions(
        of or table(), f"`id` = {held[0]!r}", source, replica, (("n", ours, theirs),)
    )


def planned(read: RowsRead | None, choices: dict[str, str] | None = None) -> Plan:
    return plan_of(snapshot_of(PAIR), read, choices)


def plan_of(
    snapshot: ClusterSnapshot, read: RowsRead | None, choices: dict[str, str] | None = None
) -> Plan:
    moment = snapshot.last[0].read_ended
    version = TransactionVersion("a", "binlog.000001:4", moment, moment, "something")
    [gtid] = gtids("a:7").gtids()
    difference = ContentDifference(
        gtid, Difference.CONTENT, True, "they differ", version, replace(version, server="b")
    )
    audit = audit_cluster(snapshot.with_contents(ContentReading(moment, 1, (), (difference,), ())))
    [finding] = [each for each in audit.findings if each.code == "E4"]
    rows = {} if read is None else {finding.id: read}
    evidence = LogEvidence(rows=rows)
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence)


def why(plan: Plan) -> str:
    [left] = [each for each in plan.not_planned if each.code == "E4"]
    return left.why


@pytest.mark.parametrize(
    ("read", "announced"),
    [
        (RowsRead((row((1, 5), (1, 6)),), equal_count=3), [True]),
        (RowsRead((), equal_count=3), [True]),
        (RowsRead((row((1, 5), (1, 6)),), unread=("d.u: no key",)), [False]),
        (RowsRead(), []),
    ],
)
def test_the_logs_keep_both_contents_and_the_plan_announces_it(
    read: RowsRead, announced: list[bool]
) -> None:
    """Only if all rows were read: else something may stay different."""
    plan = planned(read, CHOSEN)
    shown = [each for each in plan.afterwards if each.code == "E4"]
    assert [each.is_only_in_logs for each in shown] == announced
    for each in shown:
        only_there = "No step changes a log, so audits report this" in each.explanation
        assert only_there is each.is_only_in_logs
        assert each.gtids == str(gtids("a:7"))
    [unchosen] = [each for each in planned(read).afterwards if each.code == "E4"]
    assert not unchosen.is_only_in_logs


def test_what_was_not_read_stays_a_finding() -> None:
    plan = planned(RowsRead((row((1, 5), (1, 6)),), unread=("d.u: no key",)), CHOSEN)
    assert any("not read, and not repaired: d.u: no key" in each for each in plan.warnings)
    assert [each.code for each in plan.afterwards] == ["E4"]


@pytest.mark.parametrize("back", [channel("b"), None])
def test_a_newer_version_of_the_replica_is_not_replaced(back: ModelChannel | None) -> None:
    """b has written since, and a does not have that yet, or gets it never."""
    channels = () if back is None else (back,)
    servers = model(server("a", "a:1-9", *channels), server("b", "a:1-9 b:1", channel("a")))
    finding = a_finding("E4", "a:7")
    case = a_case(
        servers,
        finding,
        rows=RowsRead((row((1, 5), (1, 6)),)),
        first_executed={name: each.executed for name, each in servers.servers.items()},
        snapshot_executed={name: each.executed for name, each in servers.servers.items()},
    )
    assert f"a does not have {UUIDS['b']}:1 of b" in reason(data_repair(case))
    later = replace(case, first_executed={"a": gtids("a:1-9"), "b": gtids("a:1-9")})
    assert proposed(data_repair(later)).actions, "a write between the two readings is no backlog"


def test_the_replicas_version_is_written_on_the_source() -> None:
    """The two versions are exchanged: in the rows, in the steps, and in what is asked before."""
    rows = (row((1, 5), (1, 6)), row((2, 5), None), row(None, (3, 5)))
    case = a_case(PAIR, a_finding("E4", "a:7"), rows=RowsRead(rows))
    [step] = proposed(data_repair_on_source(case)).actions
    assert isinstance(step, MakeRowsAlike)
    assert (step.server, step.source) == ("a", "b")
    assert [(each.source, each.replica) for each in step.rows] == [
        (None, (2, 5)),  # deleted first
        ((1, 6), (1, 5)),
        ((3, 5), None),
    ]
    assert step.rows[1].differing == (("n", "6", "5"),)
    assert [each.reversed.reversed for each in rows] == [*rows]
    assert "an earlier step writes rows on b" in reason(
        data_repair_on_source(replace(case, rows_written=rows_written_on("b")))
    )


@pytest.mark.parametrize(("of", "why"), [("a", "b does not have"), ("b", "a has not applied")])
def test_the_replicas_version_is_written_only_where_both_have_the_same(of: str, why: str) -> None:
    """One of the two has written since, and the other one does not have that yet."""
    servers = model(server("a", "a:1-9", channel("b")), server("b", "a:1-9", channel("a")))
    executed = {name: each.executed for name, each in servers.servers.items()}
    executed[of] |= gtids(f"{of}:10")
    case = a_case(
        servers,
        a_finding("E4", "a:7"),
        rows=RowsRead((row((1, 5), (1, 6)),)),
        first_executed=executed,
        snapshot_executed=executed,
    )
    assert f"{why} {UUIDS[of]}:10" in reason(data_repair_on_source(case))


def test_a_version_that_another_step_replaces_is_not_written() -> None:
    case = a_case(PAIR, a_finding("E4", "a:7"), rows=RowsRead((row((1, 5), (1, 6)),)))
    assert proposed(data_repair(case)).actions
    assert "an earlier step writes rows on a" in reason(
        data_repair(replace(case, rows_written=rows_written_on("a")))
    )


def test_nothing_is_planned_unless_it_is_chosen_and_both_versions_are_shown() -> None:
    plan = planned(RowsRead((row((1, 5), (1, 6)), row(None, (2, 7))), equal_count=3))
    assert plan.steps == ()
    assert "rows that they changed differ now (2 in total)" in why(plan)
    assert "--strategy E4=data_repair" in why(plan)
    assert [(each.source_row, each.replica_row) for each in plan.rows] == [
        ({"n": "5"}, {"n": "6"}),
        (None, {"n": "7"}),
    ]
    runbook = render_files(plan)["RUNBOOK.md"]
    assert "d.t, `id` = 1 (finding" in runbook
    assert "on a there is no such row; on b n: 7" in runbook


def test_tables_are_steps_and_what_goes_makes_room_for_what_comes() -> None:
    other = table("s")
    rows = (row((4, 4), None), row((1, 5), (1, 6)), row(None, (2, 7)), row((9, 9), None, other))
    plan = planned(RowsRead(rows), CHOSEN)
    effects = [step.effect for step in plan.steps]
    assert all(isinstance(each, MakeRowsAlike) for each in effects)
    assert [step.server for step in plan.steps] == ["b", "b"]
    first, second = plan.steps
    assert (first.procedure.title, second.procedure.title) == (
        "make 1 row of d.s on b like those on a",
        "make 3 rows of d.t on b like those on a",
    )
    script = "\n".join(second.procedure.statements)
    assert script.index("DELETE") < script.index("UPDATE") < script.index("INSERT")
    assert "GTID" not in script.upper()
    assert plan.not_planned == ()


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (None, "were not read"),
        (RowsRead(unread=("d.t: it has no key",)), "d.t: it has no key"),
        (
            RowsRead((row((1, 0), (1, 1), table(column=RowColumn(ENUM, 0, "n"))),)),
            "an ENUM has the error value",
        ),
        (
            RowsRead(
                (
                    row(
                        (1, JsonDocument(JsonOpaque(16, b"x"))),
                        None,
                        table(column=RowColumn(JSON, 4, "n")),
                    ),
                )
            ),
            "which no SQL literal can express",
        ),
    ],
)
def test_what_cannot_be_written_is_said(read: RowsRead | None, reason: str) -> None:
    plan = planned(read, CHOSEN)
    assert plan.steps == ()
    assert reason in why(plan)


def test_rows_that_agree_need_no_step_and_what_was_not_read_is_told() -> None:
    plan = planned(RowsRead(equal_count=3), CHOSEN)
    assert (plan.steps, plan.not_planned) == ((), ())
    [answered] = plan.answered
    assert (answered.code, answered.strategy, answered.steps) == ("E4", "data_repair", ())
    plan = planned(RowsRead((row((1, 5), None),), unread=("d.u: it has no key",)), CHOSEN)
    assert any("d.u: it has no key" in each for each in plan.warnings)


def test_nothing_is_written_ahead_of_what_the_replica_has_not_applied() -> None:
    """The source's rows of now may be ahead of it: what waits then finds other rows."""
    read = RowsRead((row((1, 5), (1, 6)),))
    behind = PAIR.replace(server("b", "a:1-8", channel("a")))
    late = plan_of(snapshot_of(behind), read, CHOSEN)
    assert not late.steps
    assert f"b has not applied {UUIDS['a']}:9 of a (SOURCE_DELAY, a backlog," in why(late)
    # Committed between the readings: it may only need a moment.
    snapshot, before = snapshot_of(behind), snapshot_of(behind.replace(server("a", "a:1-8")))
    moving = plan_of(replace(snapshot, first=before.first), read, CHOSEN)
    assert moving.steps
    [told] = [each for each in moving.warnings if "had not applied" in each]
    assert f"b had not applied {UUIDS['a']}:9 of a" in told
    equal = plan_of(snapshot_of(PAIR), read, CHOSEN)
    assert equal.steps
    assert not any("had not applied" in each for each in equal.warnings)


def test_in_a_ring_the_source_of_the_rows_is_no_server_to_compare() -> None:
    """It is below the replica as well, and has the version that is written."""
    plan = planned(RowsRead((row((1, 5), (1, 6)),)), CHOSEN)
    assert [step.action for step in plan.steps] == ["MakeRowsAlike"]
    assert any("not what b has derived from them since" in text for text in plan.warnings)
    assert not [text for text in plan.warnings if "got these transactions through" in text]


def test_the_numbers_of_members_must_mean_the_same_when_the_script_runs() -> None:
    state = RowColumn(ENUM, 0, "state", members=("open", "shut"))
    [step] = planned(RowsRead((row((1, 1), (1, 2), table(column=state)),)), CHOSEN).steps
    [guard] = [each for each in step.procedure.preconditions if "members of state" in each.message]
    assert "column_type" in guard.condition
    assert "open" in guard.condition
    alike = RowColumn(ENUM, 0, "state", members=("\U0001f600", "\U0001f601"))
    plan = planned(RowsRead((row((1, 1), (1, 2), table(column=alike)),)), CHOSEN)
    assert not plan.steps
    assert "shows as equal" in why(plan)


def test_writing_rows_is_not_offered_where_they_are_equal() -> None:
    left = why(planned(RowsRead(equal_count=3)))
    assert "equal on both servers now" in left
    assert "--strategy E4" not in left


def test_a_row_that_differs_in_generated_columns_only_is_left_alone() -> None:
    generated = replace(NUMBER, name="g", is_generated=True)
    plan = planned(RowsRead((row((1, 5), (1, 6), table(column=generated)),)), CHOSEN)
    assert plan.steps == ()


def test_steps_for_other_findings_do_not_heal_it() -> None:
    errant = model(
        server("a", "a:1-9", channel("b")),
        server("b", "a:1-9 b:1", channel("a"), channel("a", name="other", runs=False)),
    )
    plan = plan_of(snapshot_of(errant), RowsRead((row((1, 5), (1, 6)),)))
    assert plan.steps != ()
    assert "E4" in {each.code for each in plan.not_planned}
    assert GtidSet.parse(f"{UUIDS['a']}:7") == gtids("a:7")


def test_rows_are_found_by_a_key() -> None:
    with pytest.raises(ValueError, match="cannot be found again"):
        row((1, 5), None, replace(table(), key=()))
    with pytest.raises(ValueError, match="neither server"):
        row(None, None)


def test_rows_that_earlier_steps_change_are_not_relied_on() -> None:
    read = RowsRead(rows=(row((1, 5), (1, 6)),), equal_count=0)
    finding = a_finding("E4", "a:7")
    for at_start, is_refused in (({"a": gtids("a:1-8")}, True), ({"b": gtids("a:1-9")}, False)):
        case = a_case(PAIR, finding, rows=read, at_start=at_start)
        if is_refused:
            assert "earlier steps of this plan change rows on a" in reason(data_repair(case))
        else:
            assert proposed(data_repair(case)).actions
