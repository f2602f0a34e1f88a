"""docs/data-check.md on real servers: its commands, with an account that has SELECT alone."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compose.native.shapes import Pair
from gtid_audit.cli import run

PAGE = (Path(__file__).parents[2] / "docs/data-check.md").read_text()


def commands() -> list[list[str]]:
    text = "\n".join(re.findall(r"```\n(.*?)```", PAGE, re.DOTALL))
    lines = [line for line in text.splitlines() if line.startswith("gtid-audit ")]
    return [shlex.split(line)[1:] for line in lines]


def test_the_commands_of_the_page(
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each is run as written, with these servers' addresses: once alike, once with a fault."""
    monkeypatch.chdir(tmp_path)
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE USER audit@'%'",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT)",
        "GRANT SELECT ON shop.* TO audit@'%'",
        "INSERT INTO shop.orders VALUES (1, 1), (77, 1)",
    )
    pair97.settle()
    places = {
        f"mysql://audit@db{number}/?ssl=required": f"mysql://audit@{each.host}:{each.port}/?ssl=required"
        for number, each in enumerate((a, b), start=1)
    }
    typed = [[places.get(word, word) for word in words] for words in commands()]
    assert len(typed) == 2
    for words in typed:
        assert run(words) == 0, words
        assert "1 table · 2 rows compared" in capsys.readouterr().out
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE shop.orders SET v = 2 WHERE id = 77")
    everything, recorded = typed
    assert run(everything) == 2
    shown = capsys.readouterr().out
    assert "shop.orders: 1 row of 2 differ" in shown
    assert "  PRIMARY 77: other values" in shown
    assert run(recorded) == 0
    assert "1 part as recorded by an earlier run" in capsys.readouterr().out
