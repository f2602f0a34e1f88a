"""Rows are written by column, or by a compiled program, to the same text as row by row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binlog.adapters.row_decoder import RowDecoder
from binlog.errors import CorruptBinlog
from binlog.event_types import RowKind
from binlog.rows.images import DATETIME2, NEWDECIMAL, TIMESTAMP2, VARCHAR
from binlog.rows.split_images import ImageSplitter
from binlog.rows.tables import LONG, LONGLONG, RowColumn
from binlog.rows.values import LoggedRows
from repair.adapters.compiled_rows import COMPILED_BYTES_MIN, compiled, compiler_for
from repair.sql import event_texts
from repair.sql.event_texts import Compile, EventTexts
from repair.sql.row_literals import CannotRender
from repair.sql.written_rows import INSERT_CHARACTERS_MAX, RowsWay, write_rows
from tests.repair.logged_events import (
    KINDS,
    Encode,
    decimal_of,
    integer_of,
    moment_of,
    random_event,
)

WAYS = (RowsWay(), RowsWay(keeps_form=True), RowsWay(is_undo=True))
READ = RowDecoder()


def _outcome(logged: LoggedRows, way: RowsWay, compiler: Compile | None = None) -> object:
    try:
        done = EventTexts(way, READ, compiler).write(logged)
    except (CannotRender, CorruptBinlog) as refusal:
        return str(refusal)
    return "\n".join(done.lines), done.row_count


def _definition(logged: LoggedRows, way: RowsWay) -> object:
    try:
        done = write_rows(way, logged.table, logged.read(READ).rows)
    except (CannotRender, CorruptBinlog) as refusal:
        return str(refusal)
    return "\n".join(done.lines), done.row_count


@given(seed=st.integers(0, 2**64 - 1))
def test_by_column_the_text_is_that_of_row_by_row(seed: int) -> None:
    dice = random.Random(seed)
    logged = random_event(dice, KINDS)
    for way in WAYS:
        assert _outcome(logged, way) == _definition(logged, way), (way, logged.table)


@pytest.mark.long
@example(seed=182)  # a damaged value of a generated column, which no statement has
@given(seed=st.integers(0, 2**64 - 1))
def test_a_compiled_program_writes_the_same_text(seed: int) -> None:
    dice = random.Random(seed)
    kinds = [each for each in KINDS if dice.random() < 0.5] or KINDS
    logged = random_event(dice, kinds)
    for way in WAYS:
        assert _outcome(logged, way, compiled) == _definition(logged, way), (way, logged.table)


PLAIN: Sequence[tuple[RowColumn, Encode]] = (
    (RowColumn(LONG, 0, is_unsigned=False), integer_of(RowColumn(LONG, 0))),
    (RowColumn(LONGLONG, 0, is_unsigned=True), integer_of(RowColumn(LONGLONG, 0))),
    (RowColumn(VARCHAR, 80, charset="utf8mb4"), lambda _dice: b"\x04it's"),
    (RowColumn(NEWDECIMAL, 12 << 8 | 2), decimal_of(12, 2)),
    (RowColumn(DATETIME2, 6), moment_of(DATETIME2, 6)),
    (RowColumn(TIMESTAMP2, 0), moment_of(TIMESTAMP2, 0)),
)


def _plain_event(dice: random.Random, kind: RowKind) -> LoggedRows:
    logged = random_event(dice, PLAIN)
    while logged.kind is not kind or _is_cut(logged):
        logged = random_event(dice, PLAIN)
    return logged


def _is_cut(logged: LoggedRows) -> bool:
    """Return whether images are damaged, or do not have all columns."""
    if {*logged.rows.columns_before, *logged.rows.columns_after} != {0xFF}:
        return True
    return isinstance(_definition(logged, WAYS[0]), str)


@pytest.mark.parametrize("compiler", [None, compiled])
@pytest.mark.parametrize("kind", list(RowKind))
def test_plain_rows_do_not_go_row_by_row(
    kind: RowKind, compiler: Compile | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [_plain_event(random.Random(seed), kind) for seed in range(20)]
    expected = [[_definition(each, way) for way in WAYS] for each in events]

    def row_by_row(*_arguments: object) -> None:
        raise AssertionError("row by row")

    monkeypatch.setattr(event_texts, "write_rows", row_by_row)
    assert [[_outcome(each, way, compiler) for way in WAYS] for each in events] == expected


def test_compiled_programs_are_for_many_bytes_of_log() -> None:
    assert compiler_for(COMPILED_BYTES_MIN - 1) is None
    assert compiler_for(COMPILED_BYTES_MIN) is compiled


def _inserted(texts: Sequence[bytes], *, column: RowColumn) -> tuple[str, int]:
    logged = _plain_event(random.Random(0), RowKind.WRITE)
    table = replace(logged.table, columns=(replace(column, name="c"),), key=None)
    images = b"".join(b"\0" + len(text).to_bytes(2, "little") + text for text in texts)
    rows = replace(logged.rows, column_count=1, columns_before=b"\xff", images=images)
    logged = replace(logged, table=table, rows=rows)
    expected = _definition(logged, WAYS[0])
    assert _outcome(logged, WAYS[0]) == expected
    assert _outcome(logged, WAYS[0], compiled) == expected
    assert isinstance(expected, tuple)
    return expected


LONG_TEXT = RowColumn(VARCHAR, 60_000, charset="ascii")


def test_inserted_rows_share_a_statement_up_to_a_limit() -> None:
    sql, count = _inserted([b"a", b"b"], column=LONG_TEXT)
    assert sql == (
        "INSERT INTO `d%s`.`t` (`c`) VALUES\n  ('a'),\n  ('b'); SET @rows = @rows + ROW_COUNT();"
    )
    assert count == 2
    quarter = b"x" * (INSERT_CHARACTERS_MAX // 4 - len("(''),\n  "))
    sql, count = _inserted([quarter] * 9, column=LONG_TEXT)
    assert (sql.count("INSERT"), sql.count("ROW_COUNT()"), count) == (3, 3, 9)
    sql, count = _inserted([b"x" * 50_000, b"y" * 50_000], column=LONG_TEXT)
    assert (sql.count("INSERT"), count) == (2, 2)


def test_an_error_value_of_an_enum_is_inserted_alone() -> None:
    dice = random.Random(1)
    [enum] = [kind for kind in KINDS if kind[0].members and kind[0].metadata >> 8 == 247]
    logged = random_event(dice, [(enum[0], lambda _: b"\x01")])
    while logged.kind is not RowKind.WRITE or len(logged.table.columns) > 1 or _is_cut(logged):
        logged = random_event(dice, [(enum[0], lambda _: b"\x01")])
    rows = replace(logged.rows, images=b"\0\1\0\0\0\2\0\3")
    logged = replace(logged, rows=rows)
    outcome = _outcome(logged, WAYS[0])
    assert outcome == _definition(logged, WAYS[0])
    assert isinstance(outcome, tuple)
    lines = [line for line in outcome[0].splitlines() if "sql_mode" not in line]
    assert [line.partition(" VALUES")[2] for line in lines[:2]] == [
        " (1); SET @rows = @rows + ROW_COUNT();",
        " (0); SET @rows = @rows + ROW_COUNT();",
    ]
    assert outcome[0].count("SET sql_mode") == 2
    assert outcome[0].endswith("VALUES\n  (2),\n  (3); SET @rows = @rows + ROW_COUNT();")


def test_bytes_that_are_no_whole_images_have_no_cells() -> None:
    splitter = ImageSplitter([RowColumn(LONG, 0), RowColumn(VARCHAR, 9)])
    image = b"\0\1\0\0\0\2ab"
    assert splitter.split(image * 2 + b"\3") == [[1, b"ab"], [1, b"ab"], [None, None]]
    for cut in range(1, len(image)):
        assert splitter.split(image + image[:cut]) is None
