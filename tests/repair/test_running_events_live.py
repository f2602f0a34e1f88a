"""A plan that writes rows reports the events that run on that server, on each version."""

from __future__ import annotations

import json

import pytest

from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.repair.live import executed, wait_until

EVENT = "CREATE EVENT shop.tidy ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO SET @tidied = 1"


def warnings(pair: Pair, strategy: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    dsns = ("--pair", pair.a.dsn, pair.b.dsn)
    run(["repair", "plan", *dsns, "--strategy", f"E1={strategy}", "--json"])
    return "\n".join(json.loads(capsys.readouterr().out)["warnings"])


def holds(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Redo rows on a, whose event runs; the copy of the event that b received does not."""
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE shop")
    pair.settle()
    for server in (a, b):  # ON since 8.0
        server.execute("SET GLOBAL event_scheduler = ON")
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, EVENT)
    wait_until(lambda: executed(a) == executed(b))
    b.execute("CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)")
    redo = warnings(pair, "redo_on_source", capsys)
    assert "event_scheduler is ON on" in redo, "the event is enabled on a"
    assert "shop.tidy" in redo
    assert redo.count("event_scheduler is ON on") == 1
    a.execute("SET GLOBAL event_scheduler = OFF")
    assert "event_scheduler" not in warnings(pair, "redo_on_source", capsys)


def test_events_of_the_server_are_reported(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    holds(pair97, capsys)


@pytest.mark.slow
def test_events_of_5_6_are_reported(pair56: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    holds(pair56, capsys)
