"""What a plan keeps of transactions: within limits, and with the limit that was reached first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from repair.adapters import collected_transactions
from repair.adapters.collected_transactions import Collected
from repair.sql.replay import Replayed


def test_the_first_limit_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later transactions, which are not kept either, do not change it."""
    replayed = Replayed("", lines=("12345", "67890"), gtid=None)
    monkeypatch.setattr(collected_transactions, "redo", lambda *_args, **_options: replayed)
    monkeypatch.setattr(collected_transactions, "CHARACTERS_REPLAYED_MAX", 15)
    transaction = SimpleNamespace(gtid=None, tables=(), statements=())
    group: Any = SimpleNamespace(transaction=transaction, events=())
    logged: Any = SimpleNamespace(changed={})
    collected = Collected()
    for _ in range(3):
        collected.keep(group, [], logged)
    assert len(collected.redo) == 1
    assert collected.cut == "more than 15 characters of SQL"
