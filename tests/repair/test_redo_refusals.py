"""Why transactions are not done again: what each fact of rows, tables and servers decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlog.rows.json_values import JsonDocument
from binlog.rows.values import ABSENT, Image, RowChange
from repair.content.transaction_content import RowsOn, RowState, _completed, _continues
from repair.content.waiting_ddl import Ddl
from repair.doubts.acting_again import acts_again, unguarded_statements
from repair.doubts.logged_form import is_cut, is_loose, is_rewritten, logged_otherwise, would_be_cut
from repair.doubts.redo_rows import (
    changed_since,
    may_be_there,
    redone_rows_may_come_back,
)
from repair.model.missing_on import came_from_source
from repair.model.strategy_case import Refusal
from repair.sql.acts_by_itself import Acting
from repair.sql.replay import Replayed
from repair.sql.touched_tables import TouchedTable
from repair.strategies.redo_on_source import redo_on_source
from repair.strategies.undo_on_replica import undo_on_replica
from tests.repair.build import OLD, channel, gtids, model, server
from tests.repair.cases import (
    a_case,
    a_content,
    a_finding,
    a_net_row,
    a_table,
    proposed,
    reason,
    redone,
)
from topology.catalogue.findings import Grade
from topology.readings.content_class import ContentClass

LOST = a_finding("E3", "a:4")
SERVERS = model(server("a", "a:1-3"), server("b", "a:1-4", channel("a")))
UNREAD = RowsOn(RowState.UNREAD, "a statement")
AFTER, BEFORE = RowsOn(RowState.AS_AFTER), RowsOn(RowState.AS_BEFORE)
CONFLICT = RowsOn(RowState.CONFLICT, "row t `id` = 1")
IN_PART = replace(CONFLICT, is_in_part=True, has_some=True)


@pytest.mark.parametrize(
    ("code", "grade", "state", "is_old", "words"),
    [
        ("E3", Grade.PROVED, UNREAD, False, ""),
        ("E3", Grade.PROVED, UNREAD, True, "may still be on a, and were not compared"),
        ("E3", Grade.LIKELY, UNREAD, False, "may still be on a, and were not compared"),
        ("E6", Grade.LIKELY, UNREAD, False, "may still be on a, and were not compared"),
        ("E1", Grade.LIKELY, UNREAD, False, ""),  # a never lost them
        ("E3", Grade.LIKELY, BEFORE, False, ""),
        ("E3", Grade.LIKELY, AFTER, False, "the rows are already on a"),
        ("E1", Grade.PROVED, AFTER, False, "the rows are already on a"),
        ("E1", Grade.PROVED, CONFLICT, False, ""),  # they were changed since
        # Only other rows with their unique keys are there, as where values were exchanged.
        ("E1", Grade.PROVED, replace(CONFLICT, is_in_part=True), False, ""),
        (
            "E1",
            Grade.PROVED,
            IN_PART,
            False,
            "some of the rows are already",
        ),
        ("E1", Grade.PROVED, replace(UNREAD, is_missing=True), False, "all of their tables"),
    ],
)
def test_rows_that_may_be_there_are_not_done_again(
    code: str, grade: Grade, state: RowsOn, words: str, *, is_old: bool
) -> None:
    servers = SERVERS.replace(replace(SERVERS["a"], version=OLD)) if is_old else SERVERS
    case = a_case(servers, replace(LOST, code=code, grade=grade))
    why = may_be_there(case, a_content("a:4", rows_on={"a": state}), servers["a"])
    assert words in why
    assert bool(why) is bool(words)
    empty = a_content("a:4", ContentClass.DDL, rows_on={"a": state})
    assert may_be_there(case, empty, servers["a"]) == "", "it has no rows"


@pytest.mark.parametrize(
    ("code", "grade", "is_told"),
    [
        ("E3", Grade.LIKELY, True),
        ("E6", Grade.LIKELY, True),
        ("E6", Grade.PROVED, True),  # it had them, and forgot them
        ("E1", Grade.PROVED, True),  # it may have had them
        ("J3", Grade.PROVED, True),
        ("E3", Grade.PROVED, False),  # a crash took the rows with the GTIDs
    ],
)
def test_a_row_may_have_been_deleted_since_where_its_gtid_was_forgotten(
    code: str, grade: Grade, *, is_told: bool
) -> None:
    case = a_case(SERVERS, replace(LOST, code=code, grade=grade))
    content = a_content("a:4", rows_on={"a": BEFORE})
    told = [*redone_rows_may_come_back(case, content, SERVERS["a"])]
    assert bool(told) is is_told
    assert all("if a had" in each and "they come back" in each for each in told)
    empty = a_content("a:4", ContentClass.DDL, rows_on={"a": BEFORE})
    assert not [*redone_rows_may_come_back(case, empty, SERVERS["a"])], "it has no rows"


@pytest.mark.parametrize(
    ("state", "executed", "is_changed"),
    [
        (CONFLICT, "a:1-4", True),
        (BEFORE, "a:1-4", True),
        (AFTER, "a:1-4", False),
        (UNREAD, "a:1-4", False),
        (CONFLICT, "a:1-3", False),  # it does not have them
        (replace(CONFLICT, is_created=True), "a:1-4", False),  # its new tables have no rows yet
    ],
)
def test_rows_that_changed_where_the_transactions_are_forbid_a_redo(
    state: RowsOn, executed: str, *, is_changed: bool
) -> None:
    servers = SERVERS.replace(server("b", executed, channel("a")))
    content = a_content("a:4", rows_on={"a": CONFLICT, "b": state})
    why = changed_since(a_case(servers, LOST), content, servers["a"])
    assert bool(why) is is_changed
    assert "a: " not in why, "where they are done again, rows are compared by the script"
    in_part = a_case(servers, a_finding("E3", "a:3-4"))  # a has a:3
    assert "a: " not in changed_since(in_part, content, servers["a"])
    shown = {CONFLICT: "b: row t `id` = 1", BEFORE: f"b: {RowState.AS_BEFORE.value}"}
    assert not why or shown[state] in why


def test_statements_that_no_script_can_check_are_named_once_and_counted() -> None:
    plain = redone("a:4-6")
    assert unguarded_statements(plain, "a") == ""
    one = (plain[0], replace(plain[1], unguarded="DROP TABLE t"), plain[2])
    assert f"{gtids('a:5')} has the statement `DROP TABLE t`: no script" in unguarded_statements(
        one, "a"
    )
    three = tuple(replace(each, unguarded="DROP TABLE t") for each in plain)
    assert "`DROP TABLE t`, and 2 more: no script" in unguarded_statements(three, "a")
    assert "`DROP TABLE t`, and 1 more: no script" in unguarded_statements(three[:2], "a")


@pytest.mark.parametrize(
    ("left", "found", "expected"),
    [
        (None, None, True),
        ((1, 2), None, False),
        (None, (1, 2), False),
        ((1, 2), (1, 2), True),
        ((1, 2), (1, 3), False),
        ((1, ABSENT), (1, 3), True),
        ((1, 2), (1, ABSENT), True),
        ((ABSENT, 2), (1, 3), False),
    ],
)
def test_a_change_continues_the_one_before(
    left: tuple[Any, ...] | None, found: tuple[Any, ...] | None, *, expected: bool
) -> None:
    assert _continues(left, found) is expected


@pytest.mark.parametrize(
    ("image", "facts", "is_refused"),
    [
        ("FULL", {"has_whole_rows": True}, False),
        ("FULL", {"has_cut_rows": True}, True),
        ("full", {"has_cut_rows": True}, True),
        ("MINIMAL", {"has_cut_rows": True}, False),
        ("MINIMAL", {"has_whole_rows": True}, True),
        ("NOBLOB", {"has_whole_rows": True}, False),
    ],
)
def test_rows_are_logged_in_the_form_that_they_had(
    image: str, facts: dict[str, Any], *, is_refused: bool
) -> None:
    why = logged_otherwise(a_content("a:4", **facts), replace(SERVERS["a"], row_image=image))
    assert bool(why) is is_refused
    assert not why or f"a would log them with {image.upper()}" in why


@pytest.mark.parametrize(
    ("is_partial_here", "facts", "wanted"),
    [
        (True, {"has_partial_updates": True}, None),
        (True, {"has_plain_updates": True}, ""),
        (True, {"has_plain_updates": True, "has_partial_updates": True}, ""),
        (False, {"has_plain_updates": True}, None),
        (False, {"has_partial_updates": True}, "PARTIAL_JSON"),
        (False, {}, None),
        (True, {}, None),
    ],
)
def test_updates_are_logged_with_the_option_that_they_had(
    facts: dict[str, Any], wanted: str | None, *, is_partial_here: bool
) -> None:
    where = replace(SERVERS["a"], logs_partial_json=is_partial_here)
    why = logged_otherwise(a_content("a:4", **facts), where)
    assert bool(why) is (wanted is not None)
    assert not why or f"`SET GLOBAL binlog_row_value_options = '{wanted}'` on a" in why


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (id INT PRIMARY KEY, w INT /* note */)", True),
        ("CREATE TABLE t (id INT /* key */, w INT)", True),
        ("CREATE TABLE t (\n  id INT,\n  delimiter INT,\n `go` INT)", True),
        ("CREATE TABLE t (id INT /* key */ , w INT) /* end */", False),
        ("CREATE TABLE t (id INT) /* kept */\nCOMMENT = 'x'", False),
        ("CREATE TABLE t (delimiter INT)", False),
    ],
)
def test_a_statement_that_the_client_changes_is_not_redone(sql: str, *, expected: bool) -> None:
    """Each text as the client 9.7.4 sends it, or not."""
    assert is_rewritten(sql) is expected
    why = logged_otherwise(a_content("a:4", has_rewritten_statements=expected), SERVERS["a"])
    assert ("the mysql client would send another text" in why) is expected


@pytest.mark.parametrize(
    ("server_id", "gtid", "state", "expected"),
    [
        (1, "b:4", UNREAD, True),
        (1, "b:4", AFTER, True),
        (1, "b:4", BEFORE, False),  # the source certainly lacks the rows
        (2, "b:4", UNREAD, False),  # a client wrote on the replica
        (1, "a:4", UNREAD, False),  # E3: the source lost its own
    ],
)
def test_what_may_be_the_sources_own_is_not_done_again(
    server_id: int, gtid: str, state: RowsOn, *, expected: bool
) -> None:
    servers = SERVERS.replace(replace(SERVERS["a"], server_id=1))
    content = a_content(gtid, rows_on={"a": state}, server_ids={server_id: gtids(gtid)})
    case = replace(a_case(servers, a_finding("E1", gtid)), content=content)
    assert bool(came_from_source(case)) is expected
    rows = replace(content, redo=redone(gtid), rows=(a_net_row((1, 5), (1, 6)),))
    for strategy in (redo_on_source, undo_on_replica):
        outcome = strategy(replace(case, content=rows))
        told = isinstance(outcome, Refusal) and "carries the server_id of a" in outcome.reason
        assert told is expected


LOOSE, COMPACT = JsonDocument(1, is_reproducible=False), JsonDocument(2)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1, COMPACT), (1, LOOSE), True),
        (None, (1, LOOSE), True),
        ((1, ABSENT), (1, LOOSE), True),
        ((1, LOOSE), (2, LOOSE), False),  # it was there before
        ((1, LOOSE), (1, COMPACT), False),
        ((1, LOOSE), None, False),
        ((1, COMPACT), (1, ABSENT), False),
    ],
)
def test_a_document_with_unused_bytes_is_not_redone(
    before: Image | None, after: Image | None, *, expected: bool
) -> None:
    assert is_loose(RowChange(before, after)) is expected
    why = logged_otherwise(a_content("a:4", has_loose_documents=expected), SERVERS["a"])
    assert ("a would log equal values with other bytes" in why) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1, 5), (1, 6), (False, True)),
        ((1, 5), None, (False, True)),
        (None, (1, 6), (False, False)),  # an INSERT that names all columns is whole in any form
        ((1, ABSENT), (ABSENT, 6), (True, False)),
        (None, (1, ABSENT), (True, False)),
    ],
)
def test_the_form_of_a_row_is_seen(
    before: tuple[Any, ...] | None, after: tuple[Any, ...] | None, expected: tuple[bool, bool]
) -> None:
    table, change = a_net_row((1, 5), None).table, RowChange(before, after)
    assert (is_cut(table, change), would_be_cut(table, change)) == expected


def test_a_row_that_is_only_key_is_whole_in_any_form() -> None:
    """MINIMAL omits what is not in the key: there is nothing."""
    change = RowChange((1, 5), (1, 6))
    keyed = replace(a_table(), key=(0, 1))
    assert not would_be_cut(keyed, change)
    assert would_be_cut(a_table(), change)
    unkeyed = replace(a_table(), key=None)
    assert would_be_cut(unkeyed, change)
    assert not would_be_cut(unkeyed, RowChange((1, 5), None)), "it needs the whole row"


def test_a_row_without_a_generated_column_is_whole() -> None:
    """The server computes it, whatever the log has."""
    generated = a_table(value=replace(a_table().columns[1], is_generated=True))
    for table, expected in ((generated, False), (a_table(), True)):
        assert is_cut(table, RowChange(None, (1, ABSENT))) is expected


def test_images_have_one_width() -> None:
    assert _completed((1, 2), (ABSENT, 3)) == (1, 3)
    with pytest.raises(ValueError, match="shorter"):
        _completed((1, 2), (1,))
    with pytest.raises(ValueError, match="shorter"):
        _continues((1, 2), (1,))


TRIGGER = Acting("CREATE TRIGGER x", is_event=False, schema="d", table="t")
EVENT = Acting("CREATE EVENT e", is_event=True)


def creating(which: Acting, *tables: str) -> tuple[Replayed, Replayed]:
    """Return a transaction that creates an object, and a later one that writes rows."""
    first, last = redone("a:4-5")
    touched = frozenset(TouchedTable("d", each) for each in tables)
    return replace(first, creates=(which,)), replace(last, tables=touched)


def test_a_trigger_is_not_created_before_rows_that_would_fire_it() -> None:
    """The log has what the trigger wrote: fired by the redo, it would write it once more."""
    created, written = creating(TRIGGER, "s", "t")
    why = acts_again((created, written))
    assert f"{gtids('a:4')} has the statement `CREATE TRIGGER x`, and {gtids('a:5')} writes" in why
    assert "it would be written twice" in why
    assert acts_again((written, created)) == "", "the rows come before the trigger"
    assert acts_again(creating(TRIGGER, "s")) == "", "rows of another table do not fire it"
    assert acts_again(creating(TRIGGER)) == "", "there are no rows"
    between = redone("a:6")
    assert acts_again((created, *between, written)) == why


def test_an_event_is_created_by_hand_even_without_rows_behind_it() -> None:
    created, _ = creating(EVENT)
    assert f"{gtids('a:4')} has the statement `CREATE EVENT e`: an event runs" in acts_again(
        (created,)
    )
    assert acts_again(redone("a:4-5")) == ""


PLAIN = redone("a:4")
WRITING = tuple(replace(each, tables=frozenset({TouchedTable("d", "t")})) for each in PLAIN)
NO_ROLLBACK = {"a": (("d", "t", "MyISAM"),)}


@pytest.mark.parametrize(
    ("facts", "source", "words"),
    [
        ({}, {}, ""),
        ({"unlike_on": {"a": "`n` is SMALLINT"}}, {}, "may not fit: `n` is SMALLINT"),
        ({"otherwise_on": {"a": "one column more"}}, {}, "may not fit: one column more"),
        ({"unlike_on": {"b": "`n` is SMALLINT"}}, {}, ""),  # a redo runs on a alone
        (
            {"row_tables": (a_table(),)},
            {"log_filters": (("binlog_ignore_db", "d"),)},
            "not log d.t",
        ),
        ({"row_tables": (a_table(),)}, {"log_filters": (("binlog_ignore_db", "e"),)}, ""),
        (
            {"statements": ("CREATE TABLE x (id INT)",)},
            {"log_filters": (("binlog_do_db", "e"),)},
            "not log the schema of its statements, perhaps (binlog_do_db = e)",
        ),
        ({"statements": ("CREATE TABLE x (id INT)",)}, {}, ""),
        ({"has_cut_rows": True}, {}, "without all columns"),
        ({"redo": WRITING, "no_rollback_on": NO_ROLLBACK}, {}, "d.t (MyISAM) on a has an engine"),
        ({"redo": WRITING, "no_rollback_on": {"b": NO_ROLLBACK["a"]}}, {}, ""),
        ({"redo": (replace(PLAIN[0], creates=(EVENT,)),)}, {}, "an event runs on each server"),
        ({"redo": (replace(PLAIN[0], unguarded="CALL p()"),)}, {}, "the statement `CALL p()`"),
        ({"rows_on": {"a": AFTER}}, {}, "the rows are already on a"),
        ({"rows_on": {"b": BEFORE}}, {}, "rows were changed since on servers that have"),
    ],
)
def test_a_redo_is_refused_for_each_of_these_alone(
    facts: dict[str, Any], source: dict[str, Any], words: str
) -> None:
    """Its rows would differ, not be logged, be lost in part, or come a second time."""
    servers = SERVERS.replace(replace(SERVERS["a"], **source))
    content = a_content("a:4", **{"redo": PLAIN, **facts})
    outcome = redo_on_source(a_case(servers, LOST, content=content))
    if words:
        assert words in reason(outcome)
    else:
        assert proposed(outcome).actions


@pytest.mark.parametrize("kind", [ContentClass.EMPTY, ContentClass.HARMLESS, ContentClass.DATA])
def test_what_is_empty_or_harmless_is_not_redone_but_used_up(kind: ContentClass) -> None:
    content = replace(a_content("a:4", kind), redo=())
    why = reason(redo_on_source(a_case(SERVERS, LOST, content=content)))
    if kind is ContentClass.DATA:
        assert f"{gtids('a:4')} was not read as SQL" in why
    else:
        assert f"{gtids('a:4')} is empty or harmless" in why


def test_a_redo_warns_of_columns_that_its_own_transactions_alter() -> None:
    """Definitions were compared as they are now: not as they are between the transactions."""
    [gtid] = gtids("a:4").gtids()
    ddl = tuple(
        Ddl(gtid, f"ALTER TABLE {name}", is_other=True, alters=("d", name)) for name in "ut"
    )
    both = a_content("a:4", redo=PLAIN, ddl=ddl, row_tables=(a_table("t"), a_table("u")))
    for content, names in (
        (both, "d.t, d.u"),
        (replace(both, row_tables=(a_table("t"), a_table("s"))), "d.t"),
        (replace(both, row_tables=(a_table("s"),)), ""),
        (replace(both, ddl=()), ""),
    ):
        warnings = proposed(redo_on_source(a_case(SERVERS, LOST, content=content))).warnings
        found = [each for each in warnings if "so the types of the columns were not" in each]
        assert len(found) == bool(names)
        assert all(f"the transactions alter {names}, so" in each for each in found)


@pytest.mark.parametrize(
    ("has_later_work", "words"), [(True, "b would get the newer one"), (False, "")]
)
def test_nothing_is_redone_behind_later_changes_of_the_same_rows(
    words: str, *, has_later_work: bool
) -> None:
    """The replica would get these afterwards, and end with the newer version."""
    met = RowsOn(RowState.CONFLICT, "a:5 changed them")
    later = {"a": "a:5 changed them"} if has_later_work else {}
    content = a_content("a:4", rows_on={"a": met}, redo=redone("a:4"), later_work=later)
    case = replace(a_case(SERVERS, LOST, content=content), is_chosen=True)
    outcome = redo_on_source(case)
    assert isinstance(outcome, Refusal) is has_later_work
    assert words in str(outcome)
