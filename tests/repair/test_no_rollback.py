"""Rows of tables without transactions are not redone under their GTIDs."""

from dataclasses import replace

import pytest

from repair.doubts.no_rollback import takes_gtid_with_first_row
from repair.sql.replay import Replayed
from repair.sql.replay_script import engine_guards
from repair.sql.touched_tables import TouchedTable
from repair.strategies.redo_on_source import redo_on_source
from tests.repair.build import channel, model, server
from tests.repair.cases import a_case, a_content, a_finding, proposed, reason, redone, shown

_MYISAM = ("d", "t", "MyISAM")


def _of_tables(*names: str) -> tuple[Replayed, ...]:
    tables = frozenset(TouchedTable("d", name) for name in names)
    return tuple(replace(each, tables=tables) for each in redone("a:4"))


@pytest.mark.parametrize(
    ("engines", "created", "touched", "is_refused"),
    [
        ({}, (), ("t",), False),
        ({"a": (_MYISAM,)}, (), ("t",), True),
        ({"a": (_MYISAM,)}, (), ("t", "u"), True),  # one of two tables is enough
        ({"a": (_MYISAM,)}, (), ("u",), False),
        ({"b": (_MYISAM,)}, (), ("t",), False),  # another engine where they are done again
        ({"b": (_MYISAM,)}, (("d", "t"),), ("t",), True),  # which they create
        ({"b": (_MYISAM,)}, (("d", ""),), ("t",), True),
        ({"b": (_MYISAM,)}, (("d", "u"),), ("t",), False),
    ],
)
def test_the_engine_where_they_are_done_again_decides(
    engines: dict[str, tuple[tuple[str, str, str], ...]],
    created: tuple[tuple[str, str], ...],
    touched: tuple[str, ...],
    *,
    is_refused: bool,
) -> None:
    content = replace(a_content("a:4"), read_from="b", no_rollback_on=engines, created=created)
    why = takes_gtid_with_first_row(content, "a", _of_tables(*touched))
    assert bool(why) is is_refused
    if is_refused:
        assert why.startswith("d.t (MyISAM) on a has an engine without transactions")


def test_rows_of_a_table_without_transactions_are_not_redone() -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")))
    [made] = redone("b:1")
    content = a_content("b:1", redo=(replace(made, tables=frozenset({TouchedTable("d", "t")})),))
    case = a_case(servers, a_finding("E1", "b:1"), content=content)
    assert shown(proposed(redo_on_source(case)).actions) == ["a RedoTransactions b:1"]
    without = replace(case, content=replace(content, no_rollback_on={"a": (_MYISAM,)}))
    assert "d.t (MyISAM) on a" in reason(redo_on_source(without))


def test_only_transactions_under_their_gtids_ask_for_the_engine() -> None:
    [guard] = engine_guards(_of_tables("t"))
    assert "d.t has an engine without transactions" in guard.message
    assert not list(engine_guards(replace(each, gtid=None) for each in _of_tables("t")))
