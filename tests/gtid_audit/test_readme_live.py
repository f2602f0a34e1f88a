"""The first minutes of README.md, on real servers: its account, its command, its output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
PRIVILEGES = (Path(__file__).resolve().parents[2] / "docs/privileges.md").read_text()
PASSWORD = "of the reader's account"


def account() -> list[str]:
    [block] = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    assert block in PRIVILEGES, "the page on privileges has the same account"
    statements: list[str] = block.strip().splitlines()
    assert len(statements) == 3
    return [
        line.rstrip(";").replace("10.0.0.%", "%").replace("…", PASSWORD.replace("'", "''"))
        for line in statements
    ]


def shape_of(line: str) -> str:
    """Return a line without what differs between two pairs: addresses, numbers, UUIDs, bars."""
    line = re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{8}\b", "UUID", line)
    return " ".join(re.sub(r"[█░▒·]{2,}", "BAR", re.sub(r"\d+", "N", line)).split())


def test_the_account_and_the_command_of_the_readme(
    pair97: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair97.a.execute(*account())
    pair97.settle()
    faults.position_bypass(pair97)
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", PASSWORD)
    monkeypatch.setenv("COLUMNS", "100")
    [block] = re.findall(r"^```\n(\$ read -rs .*?)```", README, re.DOTALL | re.MULTILINE)
    [typed] = re.findall(r"^\$ gtid-audit (.*)$", block, re.MULTILINE)
    words = [word.strip('"') for word in typed.split()]
    for place, server in ((1, pair97.a), (2, pair97.b)):
        words[place] = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{server.port}", words[place])
    assert run(words) == 2
    printed = shape_of(capsys.readouterr().out)  # as one text: an address may wrap a line elsewhere
    shown = [line for line in block.splitlines() if line and line[0] != "$" and "[…]" not in line]
    # Without the scale below the picture and the tree: their order depends on numbers and ports.
    shown = [line for line in shown if re.search(r"[A-Za-z█]", line) and "└─▶" not in line]
    assert len(shown) >= 18
    assert [line for line in shown if shape_of(line) not in printed] == []
