"""A script of very many transactions: each is asked for a few times, whatever its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import pytest

from repair.sql.acts_by_itself import acting
from repair.sql.replay import Replayed
from repair.sql.replay_script import Direction, script_lines
from repair.sql.touched_tables import TouchedTable

TABLES = frozenset({TouchedTable("d", "t")})


class Counted(Sequence[Replayed]):
    """Transactions that count how often one of them is asked for."""

    def __init__(self, transactions: Sequence[Replayed]) -> None:
        self.transactions = transactions
        self.asked_count = 0

    def __len__(self) -> int:
        return len(self.transactions)

    @overload
    def __getitem__(self, at: int) -> Replayed: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Replayed]: ...
    def __getitem__(self, at: int | slice) -> Replayed | Sequence[Replayed]:
        found = self.transactions[at]
        self.asked_count += 1 if isinstance(found, Replayed) else len(found)
        return found


@pytest.mark.parametrize("direction", list(Direction))
def test_each_transaction_is_asked_for_twice(direction: Direction) -> None:
    counted = Counted([Replayed(f"t{number}", ("-- x",), TABLES) for number in range(500)])
    lines = list(script_lines(direction, counted))
    assert sum(line == "-- x" for line in lines) == 500
    assert counted.asked_count <= 2 * (500 + 1)


def test_what_makes_a_trigger_is_remembered() -> None:
    sql = b"CREATE TRIGGER d.r BEFORE INSERT ON d.t FOR EACH ROW SET @a = 1"
    created = acting("d", sql, "CREATE TRIGGER")
    assert created is not None
    rows = Replayed("rows", (), TABLES)
    trigger = Replayed("trigger", (), has_statements=True, creates=(created,))
    guard = "d.t now has a trigger"
    for transactions, guarded in (
        ([rows, trigger, rows, rows], 2),
        ([rows, rows, trigger], 0),
        ([trigger, rows], 1),
    ):
        text = "\n".join(script_lines(Direction.REDO, transactions))
        assert text.count(guard) == guarded
