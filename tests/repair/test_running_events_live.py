"""A plan that writes rows reports the events that run on that server, on each version."""

from __future__ import annotations

import json

import pytest

from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.repair.live import executed, wait_until

GRANT = "GRANT SELECT, PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO auditor@'127.0.0.1'"
EVENT = "CREATE EVENT shop.tidy ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO SET @tidied = 1"


def warnings(
    pair: Pair, strategy: str, capsys: pytest.CaptureFixture[str], *, user: str = "root"
) -> str:
    capsys.readouterr()
    dsns = ("--pair", *(each.dsn.replace("root@", f"{user}@") for each in (pair.a, pair.b)))
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
    assert "There may be more" not in redo
    for server in (a, b):
        server.execute("SET SESSION sql_log_bin = 0", "CREATE USER auditor@'127.0.0.1'", GRANT)
    unseen = warnings(pair, "redo_on_source", capsys, user="auditor")
    assert "it is not known whether events are enabled there: the account of the audit" in unseen
    assert "shop.tidy" not in unseen
    a.execute("SET SESSION sql_log_bin = 0", "GRANT EVENT ON shop.* TO auditor@'127.0.0.1'")
    seen = warnings(pair, "redo_on_source", capsys, user="auditor")
    assert "shop.tidy. There may be more: the account of the audit has no EVENT ON *.*" in seen
    a.execute("SET SESSION sql_log_bin = 0", "GRANT EVENT ON *.* TO auditor@'127.0.0.1'")
    assert warnings(pair, "redo_on_source", capsys, user="auditor") == redo
    a.execute("SET GLOBAL event_scheduler = OFF")
    assert "event_scheduler" not in warnings(pair, "redo_on_source", capsys)


def test_events_of_the_server_are_reported(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    holds(pair97, capsys)


@pytest.mark.slow
def test_events_of_5_6_are_reported(pair56: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    holds(pair56, capsys)
