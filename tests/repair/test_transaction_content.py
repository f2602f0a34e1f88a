"""Classes of transactions, and the net change of their rows: by example, and against a replay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlog.event_types import RowKind
from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from binlog.rows.values import ABSENT, Image, RowChange, RowChanges
from binlog.transactions import Statement, TableChange, Transaction, TransactionKind
from gtid import GtidSet
from repair.content.transaction_content import (
    CannotFold,
    TransactionContent,
    described,
    key_condition,
    net_rows,
    rows_that_fold,
)
from tests.repair.build import gtids
from topology.readings.content_class import ContentClass
from topology.readings.transaction_parts import class_of

NUMBER = RowColumn(LONG, 0, "id", is_unsigned=False)
VALUE = RowColumn(LONG, 0, "n", is_unsigned=False)
TABLE = RowTable("d", "t", (NUMBER, VALUE), (0,), Origin.DEFINITION)


def transaction(
    kind: TransactionKind, *, tables: tuple[str, ...] = (), sql: str = "", is_cut: bool = False
) -> Transaction:
    names = [name.partition(".") for name in tables]
    return Transaction(
        gtid=next(iter(gtids("a:1").gtids())),
        file="binlog.000001",
        start=4,
        end=100,
        server_id=1,
        kind=kind,
        timestamp_seconds=0,
        original_commit_timestamp=None,
        immediate_commit_timestamp=None,
        logical_last_committed=None,
        logical_sequence_number=None,
        original_server_version=None,
        statements=(Statement("d", sql, 0),) if sql else (),
        tables=tuple(TableChange(schema, table, 1) for schema, _, table in names),
        error_code=0,
        is_cut=is_cut,
    )


def test_rows_of_columns_without_names_are_not_folded() -> None:
    """No statement can compare them, even if it is known which columns are the key."""
    nameless = tuple(RowColumn(LONG, 0, None, is_unsigned=False) for _ in range(2))
    for table, words in (
        (RowTable("d", "t", nameless, (0,), Origin.NOWHERE), "its key is not known"),
        (RowTable("d", "t", (NUMBER, VALUE), (), Origin.DEFINITION), "it has no key"),
        (RowTable("d", "t", (NUMBER, VALUE), None, Origin.DEFINITION), "its key is not known"),
    ):
        with pytest.raises(CannotFold, match=words):
            net_rows([changes((None, (1, 5)), table=table)])


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (transaction(TransactionKind.EMPTY), ContentClass.EMPTY),
        (transaction(TransactionKind.DDL, sql="CREATE TABLE t (i INT)"), ContentClass.DDL),
        (transaction(TransactionKind.DDL, sql="GRANT ALL ON *.* TO u"), ContentClass.DDL),
        (transaction(TransactionKind.DDL, sql=" flush privileges"), ContentClass.HARMLESS),
        (transaction(TransactionKind.DDL, sql="FLUSHED"), ContentClass.DDL),
        (transaction(TransactionKind.DDL), ContentClass.DDL),
        (transaction(TransactionKind.DML, tables=("shop.t",)), ContentClass.DATA),
        (transaction(TransactionKind.DML, tables=("mysql.rds_x",)), ContentClass.HARMLESS),
        (transaction(TransactionKind.DML, tables=("mysql.slow_log",)), ContentClass.HARMLESS),
        (transaction(TransactionKind.DML, tables=("mysql.user",)), ContentClass.DATA),
        (transaction(TransactionKind.DML, tables=("mysql.time_zone",)), ContentClass.DATA),
        (transaction(TransactionKind.DML, tables=("mysql.of_an_operator",)), ContentClass.DATA),
        (transaction(TransactionKind.DML, tables=("percona.heartbeat",)), ContentClass.HARMLESS),
        (transaction(TransactionKind.DML, tables=("shop.heartbeat",)), ContentClass.DATA),
        (
            transaction(TransactionKind.DML, tables=("mysql.rds_x", "shop.t")),
            ContentClass.DATA,
        ),
        (
            transaction(TransactionKind.DML, tables=("mysql.rds_x",), sql="UPDATE t SET i = 1"),
            ContentClass.DATA,
        ),
        (transaction(TransactionKind.DML, sql="UPDATE t SET i = 1"), ContentClass.DATA),
        (transaction(TransactionKind.DML), ContentClass.DATA),
        (transaction(TransactionKind.XA, tables=("mysql.rds_x",)), ContentClass.DATA),
        (transaction(TransactionKind.INCIDENT), ContentClass.UNREAD),
        (transaction(TransactionKind.OTHER), ContentClass.UNREAD),
        (transaction(TransactionKind.EMPTY, is_cut=True), ContentClass.UNREAD),
    ],
)
def test_classes(made: Transaction, kind: ContentClass) -> None:
    assert class_of(made) is kind


def test_only_what_is_empty_or_harmless_needs_no_decision() -> None:
    content = TransactionContent(
        "a",
        {
            ContentClass.EMPTY: gtids("a:1"),
            ContentClass.HARMLESS: gtids("a:2"),
            ContentClass.DDL: gtids("a:3"),
            ContentClass.DATA: gtids("a:4"),
            ContentClass.UNREAD: gtids("a:5"),
        },
        unread="purged",
    )
    assert content.needing_decision(gtids("a:1-9")) == gtids("a:3-9")
    assert not content.needing_decision(gtids("a:1-2"))
    assert "(purged)" in described(content, content.wanted)


def test_a_transaction_has_one_class() -> None:
    with pytest.raises(AssertionError, match="one class"):
        TransactionContent(
            "a", {ContentClass.EMPTY: gtids("a:1"), ContentClass.DATA: gtids("a:1-2")}
        )


def changes(*rows: tuple[Image | None, Image | None], table: RowTable = TABLE) -> RowChanges:
    return RowChanges(
        table=table,
        kind=RowKind.UPDATE,
        rows=tuple(RowChange(*each) for each in rows),
        file="binlog.000001",
        position=4,
        foreign_key_checks=True,
        unique_checks=True,
        logs_cascades=True,
    )


def test_a_row_that_came_and_went_is_no_change() -> None:
    [row] = net_rows([changes((None, (1, 1))), changes(((1, 1), None))])
    assert (row.before, row.after, row.key_image) == (None, None, (1, 1))
    [row] = net_rows([changes((None, (1, 1))), changes(((1, 1), None), (None, (1, 2)))])
    assert (row.before, row.after, row.between) == (None, (1, 2), ((1, 1),))


def test_an_update_keeps_what_an_earlier_transaction_wrote_and_it_did_not_log() -> None:
    third = RowColumn(LONG, 0, "m", is_unsigned=False)
    table = RowTable("d", "t", (NUMBER, VALUE, third), (0,), Origin.DEFINITION)
    written, minimal = (None, (1, 5, 7)), ((1, ABSENT, ABSENT), (ABSENT, 6, ABSENT))
    [row] = net_rows([changes(written, minimal, table=table)])
    assert (row.before, row.after, row.between) == (None, (1, 6, 7), ((1, 5, 7),))


def test_a_row_that_was_there_before_is_a_deleted_row() -> None:
    [row] = net_rows([changes(((1, 1), (1, 2))), changes(((1, 2), None))])
    assert (row.before, row.after, row.between) == ((1, 1), None, ((1, 2),))


def test_a_changed_key_is_a_row_gone_and_a_row_come() -> None:
    found = {
        each.key_image[0]: (each.before, each.after)
        for each in net_rows([changes(((1, 5), (2, 5)))])
    }
    assert found == {1: ((1, 5), None), 2: (None, (2, 5))}


def test_what_an_update_did_not_log_is_as_it_was() -> None:
    [row] = net_rows([changes(((1, 5), (ABSENT, 6))), changes(((1, ABSENT), (ABSENT, 7)))])
    assert (row.before, row.after) == ((1, 5), (1, 7))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            changes((None, (1, 1)), table=RowTable("d", "t", TABLE.columns, (), Origin.DEFINITION)),
            "no key",
        ),
        (
            changes(
                (None, (1, 1)), table=RowTable("d", "t", TABLE.columns, None, Origin.DEFINITION)
            ),
            "not known",
        ),
        (changes(((ABSENT, 1), None)), "key of every row"),
        (changes((None, (1, 1)), (None, (1, 2))), "do not follow from each other"),
        (changes(((1, 1), (1, 2)), ((1, 5), (1, 6))), "do not follow from each other"),
    ],
)
def test_what_cannot_be_folded_has_a_reason(made: RowChanges, why: str) -> None:
    with pytest.raises(CannotFold, match=why):
        net_rows([made])


def test_tables_that_cannot_be_folded_are_left_out_alone() -> None:
    keyless = RowTable("d", "n", TABLE.columns, (), Origin.DEFINITION)
    disorder = RowTable("d", "o", TABLE.columns, TABLE.key, Origin.DEFINITION)
    made = [
        changes((None, (1, 1))),
        changes((None, (7, 7)), table=keyless),
        changes((None, (1, 1)), (None, (1, 2)), table=disorder),
        changes(((1, 1), (1, 5))),
    ]
    [row] = rows_that_fold(made)
    assert (row.table, row.before, row.after) == (TABLE, None, (1, 5))
    assert rows_that_fold([]) == ()


def test_a_key_finds_its_row() -> None:
    both = RowTable("d", "t", TABLE.columns, (0, 1), Origin.DEFINITION)
    assert key_condition(both, (1, 2)) == "`id` = 1 AND `n` = 2"


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["put", "drop", "move"]), st.integers(1, 3))
    )
)
def test_the_net_change_is_the_difference_of_the_tables(wishes: list[tuple[int, str, int]]) -> None:
    before = {1: 0, 2: 0}
    table, made = dict(before), []
    for key, what, value in wishes:
        if what == "put":
            old = (key, table[key]) if key in table else None
            table[key] = value
            made.append(changes((old, (key, value))))
        elif what == "drop" and key in table:
            made.append(changes(((key, table.pop(key)), None)))
        elif what == "move" and key in table and value not in table:
            held = table.pop(key)
            table[value] = held
            made.append(changes(((key, held), (value, held))))
    net = {each.key_image[0]: (each.before, each.after) for each in net_rows(made)}
    for key in (1, 2, 3):
        old = (key, before[key]) if key in before else None
        new = (key, table[key]) if key in table else None
        if key in net:
            assert net[key] == (old, new)
        else:
            assert old == new


def test_nothing_is_wanted_of_nothing() -> None:
    assert TransactionContent("a", {}).wanted == GtidSet()
