"""Which transaction explains an error, how certainly, and which causes remain."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from binlog.schema.table_history import TableKey
from gtid import GtidSet
from gtid_audit.views.trace_words import cause_words
from tests.snapshots import NOON, A, B, C
from tests.topology.traces import (
    DUPLICATE,
    FAILED,
    MISSING_TABLE,
    TABLE,
    TABLE_EXISTS,
    a_failure,
    a_search,
    a_trace,
    a_transaction,
    own,
)
from topology.catalogue.findings import Grade
from topology.readings.snapshot import ThreadState
from topology.tracing.causes import (
    CauseKind,
    causes_of,
    differences_now,
    remaining_causes,
)
from topology.tracing.error_classes import ErrorClass, class_of, meaning_of
from topology.tracing.stopped_threads import ReplicationThread
from topology.tracing.trace_values import TableNow, TracedFailure

EXECUTED = GtidSet.parse(f"{A}:1-8,{B}:1-5")


def causes(traced: TracedFailure) -> list[tuple[CauseKind, Grade, str]]:
    found = causes_of(traced, executed=EXECUTED)
    return [(each.kind, each.grade, str(each.transaction.gtid)) for each in found]


DROP = a_transaction("b", f"{B}:5", "DROP TABLE t", start=500)


def dropped(**facts: Any) -> TracedFailure:
    """b dropped the table itself."""
    return a_trace(
        **{"extra": own(DROP), "searches": (a_search("a"), a_search("b", DROP)), **facts}
    )


def test_a_drop_of_the_replica_is_proved() -> None:
    assert causes(dropped()) == [(CauseKind.OWN_CHANGE, Grade.PROVED, f"{B}:5")]
    assert remaining_causes(dropped(), causes_of(dropped(), executed=EXECUTED)) == ()


@pytest.mark.parametrize(
    "facts",
    [
        {"failed_at": None},
        {"extra": own(replace(DROP, logged_at=None, committed_at=None))},
        {"searches": (a_search("a"), a_search("b", DROP, why="timeout"))},
        {"searches": (a_search("a"),)},
        {
            "searches": (
                a_search("a"),
                a_search(
                    "b", DROP, a_transaction("b", f"{A}:6", "CREATE TABLE t (id INT)", start=600)
                ),
            )
        },
        {"extra": own(a_transaction("b", f"{B}:5", "ALTER TABLE t ADD y INT", start=500))},
        {"extra": own(a_transaction("b", f"{B}:5", "CREATE TABLE t (id INT)", start=500))},
    ],
)
def test_without_each_condition_it_is_likely(facts: dict[str, object]) -> None:
    traced = dropped(**facts)
    assert causes(traced) == [(CauseKind.OWN_CHANGE, Grade.LIKELY, f"{B}:5")]
    remaining = remaining_causes(traced, causes_of(traced, executed=EXECUTED))
    assert remaining[0] == "a session on b changed a table with sql_log_bin = 0: no log has it"


def test_what_the_replica_did_after_the_failure_explains_nothing() -> None:
    for seconds, count in ((1, 1), (2, 0)):
        late = replace(DROP, logged_at=NOON + timedelta(seconds=seconds))
        assert len(causes(dropped(extra=own(late)))) == count


@pytest.mark.parametrize(
    ("sql", "error", "errno", "grade"),
    [
        ("CREATE TABLE t (id INT)", TABLE_EXISTS, 1050, Grade.PROVED),
        ("RENAME TABLE s TO t", TABLE_EXISTS, 1050, Grade.PROVED),
        ("ALTER TABLE t ADD y INT", TABLE_EXISTS, 1050, Grade.LIKELY),
        ("RENAME TABLE t TO s", MISSING_TABLE, 1146, Grade.PROVED),
        ("ALTER TABLE t RENAME TO s", MISSING_TABLE, 1146, Grade.PROVED),
        ("RENAME TABLE t TO old, s TO t", MISSING_TABLE, 1146, Grade.LIKELY),
        ("RENAME TABLE t TO old, s TO t", TABLE_EXISTS, 1050, Grade.PROVED),
        ("DROP TABLE T", MISSING_TABLE, 1146, Grade.LIKELY),
        ("DROP DATABASE shop", MISSING_TABLE, 1146, Grade.PROVED),
        ("ALTER TABLE t DROP x", "Error 'Unknown column 'x' in 't'' on query.", 1054, Grade.PROVED),
        ("ALTER TABLE t DROP y", "Error 'Unknown column 'x' in 't'' on query.", 1054, Grade.LIKELY),
        (
            "ALTER TABLE t RENAME COLUMN x TO y",
            "Unknown column 't.x' in 'where'",
            1054,
            Grade.PROVED,
        ),
        ("ALTER TABLE t CHANGE x y INT", "Unknown column 'x' in 't'", 1054, Grade.PROVED),
        ("ALTER TABLE t CHANGE x X INT", "Unknown column 'x' in 't'", 1054, Grade.LIKELY),
        ("DROP TABLE t", "Unknown column 'x' in 't'", 1054, Grade.LIKELY),
        (
            "ALTER TABLE t ADD KEY k (x)",
            "Error 'Duplicate key name 'k'' on query.",
            1061,
            Grade.PROVED,
        ),
        (
            "ALTER TABLE t ADD y INT",
            "Error 'Duplicate column name 'y'' on query",
            1060,
            Grade.PROVED,
        ),
        (
            "ALTER TABLE t MODIFY x INT",
            "Column 1 of table 'shop.t' cannot be converted from type 'int'",
            1677,
            Grade.LIKELY,
        ),
    ],
)
def test_the_effect_must_be_that_of_the_error(
    sql: str, error: str, errno: int, grade: Grade
) -> None:
    change = a_transaction("b", f"{B}:5", sql, start=500)
    traced = dropped(
        failure=a_failure(error, errno),
        extra=own(change),
        searches=(a_search("a"), a_search("b", change)),
    )
    assert causes(traced) == [(CauseKind.OWN_CHANGE, grade, f"{B}:5")]


CREATE = a_transaction("a", f"{A}:9", "CREATE TABLE t (id INT)", start=300)


def test_a_change_that_the_replica_has_not_executed() -> None:
    missing = replace(CREATE, gtid=GtidSet.parse(f"{C}:1"))
    traced = a_trace(searches=(a_search("a", missing), a_search("b")))
    assert causes(traced) == [(CauseKind.MISSING_CHANGE, Grade.PROVED, f"{C}:1")]
    later = a_transaction("a", f"{A}:3", "ALTER TABLE t ADD y INT", start=400)
    traced = a_trace(searches=(a_search("a", missing, later), a_search("b")))
    assert causes(traced) == [(CauseKind.MISSING_CHANGE, Grade.LIKELY, f"{C}:1")]
    traced = a_trace(searches=(a_search("a", missing, why="timeout"), a_search("b")))
    assert causes(traced) == [(CauseKind.MISSING_CHANGE, Grade.LIKELY, f"{C}:1")]
    traced = a_trace(TABLE_EXISTS, 1050, searches=(a_search("a", missing), a_search("b")))
    assert causes(traced) == [(CauseKind.MISSING_CHANGE, Grade.LIKELY, f"{C}:1")]


def test_neither_the_failing_transaction_nor_an_executed_one_is_missing() -> None:
    executed = a_transaction("a", f"{A}:2", "CREATE TABLE t (id INT)")
    assert CREATE.gtid == FAILED
    assert causes(a_trace(searches=(a_search("a", CREATE, executed), a_search("b")))) == []


def test_a_change_that_was_replaced_by_an_empty_transaction() -> None:
    change = a_transaction("a", f"{A}:2", "CREATE TABLE t (id INT)")
    empty = a_transaction("b", f"{A}:2", kind="empty")
    searches = (a_search("a", change), a_search("b"))
    assert causes(a_trace(searches=searches, replaced=(empty,))) == [
        (CauseKind.EMPTIED_CHANGE, Grade.LIKELY, f"{A}:2")
    ]
    as_it_was = replace(empty, kind="ddl")
    assert causes(a_trace(searches=searches, replaced=(as_it_was,))) == []


def test_rows_explain_errors_of_rows_only() -> None:
    rows = a_transaction("b", f"{B}:5", rows=("shop.t: inserted (2)",))
    assert causes(a_trace(DUPLICATE, 1062, extra=own(rows))) == [
        (CauseKind.OWN_ROWS, Grade.LIKELY, f"{B}:5")
    ]
    assert causes(a_trace(extra=own(rows))) == []


def test_the_proved_cause_comes_first() -> None:
    older = a_transaction("b", f"{B}:4", "ALTER TABLE t ADD y INT", start=100)
    found = causes(dropped(extra=own(older, DROP)))
    assert [grade for _, grade, _ in found] == [Grade.PROVED, Grade.LIKELY]


def test_nothing_is_concluded_without_facts() -> None:
    assert causes_of(dropped(), executed=None) == ()
    assert causes(dropped(tables=())) == []
    assert causes(dropped(extra=None)) == []
    waited = a_failure("Lock wait timeout exceeded; try restarting transaction", 1205)
    assert causes(dropped(failure=waited)) == []
    assert remaining_causes(dropped(failure=waited), ()) == ()


def test_remaining_causes_name_what_was_not_searched() -> None:
    searches = (
        a_search("a", is_from_first_log=False, first_file="binlog.000007"),
        a_search("b", has_purged=True),
    )
    purged = GtidSet.parse(f"{B}:1")
    filtered = replace(a_failure(MISSING_TABLE, 1146))
    channel = replace(filtered.channel, filters=("Replicate_Do_DB=shop",))
    traced = a_trace(
        failure=replace(filtered, channel=channel),
        searches=searches,
        extra=own(purged=purged, why="too many"),
    )
    assert remaining_causes(traced, ()) == (
        "a session on b changed a table with sql_log_bin = 0: no log has it",
        "a session on a changed a table with sql_log_bin = 0",
        "a statement in a log of a before binlog.000007: not searched (--search)",
        "a statement in a log that b has purged",
        "a transaction that only b executed: not read: too many",
        f"a transaction that only b executed and has purged: {B}:1",
        "a filter of the channel on b: Replicate_Do_DB=shop",
        "a backup or a dump was restored on b incompletely",
    )
    alone = a_trace(extra=None)
    text = "a transaction that only b executed: the sets of its source were not read"
    assert text in remaining_causes(alone, ())
    unread = a_trace(searches=(a_search("a", why="privilege: denied"), a_search("b")), source="")
    assert remaining_causes(unread, ())[1:3] == (
        "a session on the source changed a table with sql_log_bin = 0",
        "a statement in the logs of a: not read: privilege: denied",
    )
    assert remaining_causes(a_trace(DUPLICATE, 1062), ()) == (
        "a session on b changed rows with sql_log_bin = 0: no log has it",
        "b skipped an earlier transaction, or errors of one (gtid-audit pair)",
        "a backup or a dump was restored on b incompletely",
    )


@pytest.mark.parametrize(
    ("error", "errno", "is_named"),
    [
        ("Cannot add or update a child row: a foreign key constraint fails", 1452, True),
        ("Cannot delete or update a parent row: a foreign key constraint fails", 0, True),
        ("Error_code: 1451", 1451, True),
        ("Check constraint 'c' is violated.", 3819, False),
        (DUPLICATE, 1062, False),
    ],
)
def test_a_foreign_key_has_another_table(error: str, errno: int, *, is_named: bool) -> None:
    remaining = "; ".join(remaining_causes(a_trace(error, errno), ()))
    assert ("b changed the other table of the foreign key itself" in remaining) is is_named


def test_definitions_that_differ_now() -> None:
    here = TableNow("a", TABLE, (("id", "int"),))
    gone = TableNow("b", TABLE)
    assert differences_now(a_trace(tables_now=(here, gone))) == ((here, gone),)
    assert differences_now(a_trace(tables_now=(here, replace(here, server="b")))) == ()
    for unread in (replace(gone, why="denied"), replace(gone, table=TableKey("shop", "u"))):
        assert differences_now(a_trace(tables_now=(here, unread))) == ()
    assert differences_now(a_trace(tables_now=(replace(here, why="denied"), gone))) == ()


@pytest.mark.parametrize(
    ("error", "errno", "expected"),
    [
        (MISSING_TABLE, 1146, ErrorClass.ABSENT),
        (TABLE_EXISTS, 1050, ErrorClass.PRESENT),
        (DUPLICATE, 1062, ErrorClass.ROWS),
        ("Can't find record in 't'", 1032, ErrorClass.ROWS),
        ("Cannot add or update a child row: a foreign key constraint fails", 1452, ErrorClass.ROWS),
        ("Data too long for column 'c' at row 1", 1406, ErrorClass.COLUMNS),
        (
            "Column 1 of table 'shop.t' cannot be converted from type 'int'",
            13146,
            ErrorClass.COLUMNS,
        ),
        ("Lock wait timeout exceeded", 1205, ErrorClass.OTHER),
        ("a text of the next version", 1146, ErrorClass.ABSENT),
        ("a text of the next version", 65_000, ErrorClass.OTHER),
        (
            "Coordinator stopped because there were error(s) in the worker(s).",
            1062,
            ErrorClass.ROWS,
        ),
        (
            "Coordinator stopped because there were error(s) in the worker(s).",
            1756,
            ErrorClass.OTHER,
        ),
    ],
)
def test_the_class_of_an_error(error: str, errno: int, expected: ErrorClass) -> None:
    assert class_of(a_failure(error, errno)) is expected


def test_a_receiver_is_about_no_table() -> None:
    failure = a_failure(MISSING_TABLE, 1146, receiver=ThreadState.STOPPED)
    assert class_of(replace(failure, thread=ReplicationThread.RECEIVER)) is ErrorClass.OTHER


def test_the_meaning_does_not_repeat_what_the_trace_has_read() -> None:
    text = f"Worker 1 failed executing transaction '{FAILED}' at source log x; {DUPLICATE}"
    meaning = meaning_of(a_failure(text, 1062))
    assert meaning is not None
    assert meaning.title == "duplicate key on the replica"
    assert not any("binlog show" in each for each in meaning.advice)
    assert meaning_of(a_failure("a text of the next version", 65_000)) is None


def test_the_text_decides_and_a_wrapper_gives_way() -> None:
    wrapper = "Coordinator stopped because there were error(s) in the worker(s)."
    titles = {
        (DUPLICATE, 1205): "duplicate key on the replica",
        (wrapper, 1062): "duplicate key on the replica",
        (wrapper, 0): "the workers of a parallel applier have stopped",
        (wrapper, 65_000): "the workers of a parallel applier have stopped",
    }
    for (text, errno), title in titles.items():
        meaning = meaning_of(a_failure(text, errno))
        assert meaning is not None
        assert meaning.title == title


def test_the_order_of_changes_is_that_of_the_files() -> None:
    """A later file has smaller positions."""
    later = a_transaction("b", f"{A}:6", "CREATE TABLE t (id INT)", start=4, file="binlog.000010")
    traced = dropped(searches=(a_search("a"), a_search("b", DROP, later)))
    assert causes(traced) == [(CauseKind.OWN_CHANGE, Grade.LIKELY, f"{B}:5")]
    earlier = replace(later, file="binlog.000000", start=9_000)
    traced = dropped(searches=(a_search("a"), a_search("b", earlier, DROP)))
    assert causes(traced) == [(CauseKind.OWN_CHANGE, Grade.PROVED, f"{B}:5")]


def test_changes_of_one_server_say_nothing_about_another() -> None:
    create = a_transaction("a", f"{A}:6", "CREATE TABLE t (id INT)", start=5_000)
    traced = dropped(searches=(a_search("a", create), a_search("b", DROP)))
    assert causes(traced) == [(CauseKind.OWN_CHANGE, Grade.PROVED, f"{B}:5")]
    missing = replace(create, gtid=GtidSet.parse(f"{C}:1"), server="b")
    assert causes(a_trace(searches=(a_search("a"), a_search("b", missing)))) == []


def test_every_class_of_definitions_may_be_unlogged_on_the_source() -> None:
    converted = "Column 1 of table 'shop.t' cannot be converted from type 'int'"
    text = "a session on a changed a table with sql_log_bin = 0"
    for error, errno in ((MISSING_TABLE, 1146), (TABLE_EXISTS, 1050), (converted, 1677)):
        assert text in remaining_causes(a_trace(error, errno), ())


def test_definitions_are_compared_between_the_source_and_the_replica_only() -> None:
    here, there = TableNow("a", TABLE, (("id", "int"),)), TableNow("b", TABLE)
    third = TableNow("c", TABLE, (("other", "int"),))
    for tables_now in ((here, there, third), (third, here, there)):
        assert differences_now(a_trace(tables_now=tables_now)) == ((here, there),)


@pytest.mark.parametrize(
    ("sql", "error", "errno"),
    [
        ("CREATE TABLE IF NOT EXISTS t (id INT)", TABLE_EXISTS, 1050),
        ("CREATE OR REPLACE VIEW t AS SELECT 1", TABLE_EXISTS, 1050),
        ("DROP TABLE IF EXISTS t", MISSING_TABLE, 1146),
        ("DROP DATABASE IF EXISTS shop", MISSING_TABLE, 1146),
        ("DROP VIEW IF EXISTS t", MISSING_TABLE, 1146),
    ],
)
def test_a_statement_that_may_have_done_nothing_proves_nothing(
    sql: str, error: str, errno: int
) -> None:
    """The attack: a session made the table with sql_log_bin = 0, and then IF NOT EXISTS."""
    change = a_transaction("b", f"{B}:5", sql, start=500)
    traced = a_trace(
        error, errno, extra=own(change), searches=(a_search("a"), a_search("b", change))
    )
    [cause] = causes_of(traced, executed=EXECUTED)
    assert (cause.kind, cause.grade, cause.is_conditional) == (
        CauseKind.OWN_CHANGE,
        Grade.LIKELY,
        True,
    )
    assert "even if it did nothing" in cause_words(cause, traced)
    assert remaining_causes(traced, (cause,)) != ()
    [certain] = causes_of(dropped(), executed=EXECUTED)
    assert (certain.is_conditional, "did nothing" in cause_words(certain, traced)) == (False, False)


@pytest.mark.parametrize("kind", [CauseKind.MISSING_CHANGE, CauseKind.EMPTIED_CHANGE])
def test_a_change_of_the_source_may_have_done_nothing(kind: CauseKind) -> None:
    sql = "CREATE TABLE IF NOT EXISTS t (id INT)"
    gtid = f"{A}:20" if kind is CauseKind.MISSING_CHANGE else f"{A}:6"
    create = a_transaction("a", gtid, sql, start=500)
    empty = a_transaction("b", gtid, kind="empty")
    searches = (a_search("a", create), a_search("b"))
    replaced = (empty,) if kind is CauseKind.EMPTIED_CHANGE else ()
    [cause] = causes_of(a_trace(searches=searches, replaced=replaced), executed=EXECUTED)
    assert (cause.kind, cause.grade, cause.is_conditional) == (kind, Grade.LIKELY, True)


def test_a_view_of_the_same_name_is_a_cause() -> None:
    view = a_transaction("b", f"{B}:5", "CREATE VIEW t AS SELECT 1", start=500)
    searches = (a_search("a"), a_search("b", view))
    traced = a_trace(TABLE_EXISTS, 1050, extra=own(view), searches=searches)
    assert causes(traced) == [(CauseKind.OWN_CHANGE, Grade.PROVED, f"{B}:5")]
