"""Two logs with other rows under one GTID: what counts as another transaction, and what is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from binlog.rows.values import ABSENT
from repair.content.transaction_content import NetRow, TransactionContent
from repair.doubts.doubted_content import (
    compared_with,
    warnings_of_others,
    warnings_of_statements,
)
from repair.model.strategy_case import MAY_DIFFER
from repair.sql.replay import Replayed
from tests.repair.build import gtids
from tests.repair.cases import a_content, a_table
from tests.snapshots import NOON
from topology.readings.content_class import ContentClass

T, U = a_table("t"), a_table("u")
LATER = NOON + timedelta(microseconds=1)


def with_rows(*rows: NetRow, **facts: Any) -> TransactionContent:
    return a_content("b:1", rows=rows, **facts)


def put(after: tuple[Any, ...] | None, before: tuple[Any, ...] | None = None) -> NetRow:
    return NetRow(T, before, after)


ONE = with_rows(put((1, 7)))


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (ONE, False),
        (with_rows(put((1, 8))), True),
        (with_rows(put((2, 7))), True),
        (with_rows(put((1, 7)), put((2, 7))), True),
        (with_rows(), True),
        (with_rows(NetRow(U, None, (1, 7))), True),
        (with_rows(put((1, 7), before=(1, 6))), True),  # an UPDATE, and not an INSERT
        (with_rows(put(None, before=(1, 7))), True),  # a DELETE
        (with_rows(put((1, ABSENT))), False),  # its log omits the column
        (with_rows(put((1, 7, 9))), False),  # another number of columns is S2
        # What was not read, or has no rows by key, shows nothing.
        (a_content("b:1", ContentClass.UNREAD, rows=(put((1, 8)),)), False),
        (a_content("b:1", rows=None), False),
    ],
)
def test_other_rows_of_one_key_are_another_transaction(
    other: TransactionContent, *, differs: bool
) -> None:
    for ours, theirs in ((ONE, other), (other, ONE)):
        found = compared_with(ours, [("d", theirs)])
        assert found.other_rows_on == (("d",) if differs else ())
        assert (found is ours) is not differs


@pytest.mark.parametrize(
    ("lines", "first", "last", "differs"),
    [
        ("INSERT 2", LATER, LATER, True),
        ("INSERT 2", LATER, NOON, True),
        ("INSERT 2", NOON, NOON, False),  # one commit, logged in two forms
        ("INSERT 1", LATER, LATER, False),
    ],
)
def test_without_a_key_another_text_needs_another_commit(
    lines: str, first: Any, last: Any, *, differs: bool
) -> None:
    [gtid] = gtids("b:1").gtids()

    def content(text: str, begun: Any, ended: Any) -> TransactionContent:
        redo = (Replayed("b:1", (text,), gtid=gtid),)
        return a_content("b:1", redo=redo, committed_first=begun, committed_last=ended)

    ours, theirs = content("INSERT 1", NOON, NOON), content(lines, first, last)
    assert compared_with(ours, [("d", theirs)]).other_rows_on == (("d",) if differs else ())
    # Texts of other GTIDs are not compared.
    elsewhere = a_content(
        "b:2", redo=(Replayed("b:2", (lines,), gtid=None),), committed_first=LATER
    )
    assert compared_with(ours, [("d", elsewhere)]) is ours


def test_statements_behind_are_named_and_count() -> None:
    assert not [*warnings_of_statements(ONE)]
    met = replace(ONE, statements_since=gtids("a:7-8"))
    [warning] = warnings_of_statements(met)
    assert warning.startswith(f"{MAY_DIFFER}the log of b has statements behind {gtids('b:1')}: ")
    assert f": {gtids('a:7-8')}. A statement finds other rows" in warning
    [warning] = warnings_of_statements(replace(ONE, unread_since="too many"))
    assert f"may have statements behind {gtids('b:1')} (too many). A statement" in warning


def test_each_other_holder_is_named_and_counts() -> None:
    others = [("d", with_rows(put((1, 8)))), ("e", ONE), ("f", with_rows(put((1, 9))))]
    [warning] = warnings_of_others(compared_with(ONE, others), gtids("b:1"))
    assert warning.startswith(f"{MAY_DIFFER}the log of d and f has other rows under")
    assert "that of b, which this plan is about: what d and f wrote stays there" in warning
    assert not [*warnings_of_others(ONE, gtids("b:1"))]
