"""Rows are written by column, or by generated functions, to the same text as row by row."""

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
from binlog.rows.tables import LONG, LONGLONG, TINY, RowColumn
from binlog.rows.values import LoggedRows
from repair.sql import event_texts
from repair.sql.event_texts import EventTexts
from repair.sql.row_functions import LAYOUTS_MAX, ROWS_BEFORE_FUNCTIONS, RowFunctions
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


NEVER = 1 << 60  # so many rows no event has: all of them are written by column


def _outcome(logged: LoggedRows, way: RowsWay, rows_min: int = NEVER) -> object:
    try:
        done = EventTexts(way, READ, rows_before_functions=rows_min).write(logged)
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
@example(3571)  # an update changes a generated ENUM to its error value
@example(445)  # a value of a generated column cannot be read
def test_by_column_the_text_is_that_of_row_by_row(seed: int) -> None:
    dice = random.Random(seed)
    logged = random_event(dice, KINDS)
    for way in WAYS:
        assert _outcome(logged, way) == _definition(logged, way), (way, logged.table)


@pytest.mark.long
@example(seed=182)  # a damaged value of a generated column, which no statement has
@given(seed=st.integers(0, 2**64 - 1))
def test_functions_write_the_same_text(seed: int) -> None:
    dice = random.Random(seed)
    kinds = [each for each in KINDS if dice.random() < 0.5] or KINDS
    logged = random_event(dice, kinds)
    for way in WAYS:
        assert _outcome(logged, way, 0) == _definition(logged, way), (way, logged.table)


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


@pytest.mark.long
@pytest.mark.parametrize("rows_min", [NEVER, 0])
@pytest.mark.parametrize("kind", list(RowKind))
def test_plain_rows_do_not_go_row_by_row(
    kind: RowKind, rows_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [_plain_event(random.Random(seed), kind) for seed in range(20)]
    expected = [[_definition(each, way) for way in WAYS] for each in events]

    def row_by_row(*_arguments: object) -> None:
        raise AssertionError("row by row")

    monkeypatch.setattr(event_texts, "write_rows", row_by_row)
    assert [[_outcome(each, way, rows_min) for way in WAYS] for each in events] == expected


def _inserted(texts: Sequence[bytes], *, column: RowColumn) -> tuple[str, int]:
    logged = _plain_event(random.Random(0), RowKind.WRITE)
    table = replace(logged.table, columns=(replace(column, name="c"),), key=None)
    images = b"".join(b"\0" + len(text).to_bytes(2, "little") + text for text in texts)
    rows = replace(logged.rows, column_count=1, columns_before=b"\xff", images=images)
    logged = replace(logged, table=table, rows=rows)
    expected = _definition(logged, WAYS[0])
    assert _outcome(logged, WAYS[0]) == expected
    assert _outcome(logged, WAYS[0], 0) == expected
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


TEXT = RowColumn(VARCHAR, 80, charset="utf8mb4")
OTHER_TEXT = RowColumn(VARCHAR, 80, charset="latin1")


def _events_of(
    column: RowColumn, events: Sequence[Sequence[bytes]], texts: EventTexts
) -> list[tuple[object, object]]:
    """Return what functions write, and the definition."""
    found: list[tuple[object, object]] = []
    logged = _plain_event(random.Random(0), RowKind.WRITE)
    table = replace(logged.table, columns=(replace(column, name="c"),), key=None)
    for each in events:
        images = b"".join(b"\0" + len(text).to_bytes(1, "little") + text for text in each)
        rows = replace(logged.rows, column_count=1, columns_before=b"\xff", images=images)
        logged = replace(logged, table=table, rows=rows)
        done = texts.write(logged)
        found.append((("\n".join(done.lines), done.row_count), _definition(logged, WAYS[0])))
    return found


@pytest.mark.parametrize("column", [TEXT, OTHER_TEXT])
def test_a_text_that_is_not_plain_is_quoted_and_so_are_the_next_events(column: RowColumn) -> None:
    odd = [b"it's", b"back\\slash", b"a\nb", b"a~b", "\u00e4".encode(), b"\x7f", b"\xff", b"%s{0}"]
    texts = EventTexts(WAYS[0], READ, rows_before_functions=0)
    events = [[b"plain", text, b"plain"] for text in odd] + [[b"plain"]] * 40
    for written, expected in _events_of(column, events, texts):
        assert written == expected


def _nullable(columns: int, nulls: Sequence[int]) -> LoggedRows:
    """Return an event of TINYINTs, with a row for each value of the NULL bits."""
    logged = _plain_event(random.Random(0), RowKind.WRITE)
    column = RowColumn(TINY, 0, is_unsigned=True)
    made = tuple(replace(column, name=f"c{at}") for at in range(columns))
    table = replace(logged.table, columns=made, key=None)
    images = b"".join(
        bits.to_bytes(2, "little") + bytes(range(columns - bits.bit_count())) for bits in nulls
    )
    rows = replace(logged.rows, column_count=columns, columns_before=b"\xff\xff", images=images)
    return replace(logged, table=table, rows=rows)


@pytest.mark.long
def test_layouts_above_the_limit_are_written_by_column() -> None:
    texts = EventTexts(WAYS[0], READ, rows_before_functions=0)
    for bits in range(2 * LAYOUTS_MAX):
        logged = _nullable(9, [bits, 0, bits])
        done = texts.write(logged)
        assert ("\n".join(done.lines), done.row_count) == _definition(logged, WAYS[0])


def test_functions_are_made_after_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    write = RowFunctions.write

    def noted(functions: RowFunctions, images: bytes) -> list[str] | None:
        made.append(images)
        return write(functions, images)

    monkeypatch.setattr(RowFunctions, "write", noted)
    texts = EventTexts(WAYS[0], READ)
    logged = _nullable(9, [0] * (ROWS_BEFORE_FUNCTIONS // 2))
    for _ in range(3):
        texts.write(logged)
    assert made == [logged.rows.images]


def test_names_of_a_log_are_no_source() -> None:
    logged = _nullable(9, [0, 5])
    odd = ("{at}", '"', "'", "\\", '"""', "{note(1)}", "%s", "\n", "`")
    columns = tuple(
        replace(column, name=name) for column, name in zip(logged.table.columns, odd, strict=True)
    )
    logged = replace(logged, table=replace(logged.table, columns=columns, schema='{"}"}'))
    for way in WAYS:
        assert _outcome(logged, way, 0) == _definition(logged, way)
