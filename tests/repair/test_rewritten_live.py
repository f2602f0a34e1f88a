"""Statements that a redo would execute otherwise: another text, or another default engine."""

import re

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair
from repair.adapters import collected_transactions
from repair.doubts.logged_form import is_rewritten
from tests.repair.live import examine, run_plan, run_step

DEFINITIONS = (
    "CREATE TABLE d.t1 (id INT PRIMARY KEY, w INT /* '; */)",
    "CREATE TABLE d.t2 (id INT /* a */, x INT)",
    "CREATE TABLE d.t3 (id INT /* a */ /* b */ , x INT)",
    "CREATE TABLE d.t4 (id INT, /* m\n\n n */\n y INT) /* end */",
    "CREATE TABLE d.t5 (id INT PRIMARY KEY, -- it's; fun\n v INT)",
    "CREATE TABLE d.t6 (id INT)\n\n\n-- a\n\nCOMMENT = 'x\n  y' # z",
    "CREATE TABLE d.t7 (\nid INT PRIMARY KEY,\nuse_ INT,\ndelimiter INT,\n`go` INT)",
    "CREATE TABLE d.t8 (id INT,\n`a` INT,\ngo INT,\nhelp INT, source INT,\nstatus INT)",
    "CREATE TABLE d.t9 (\n\n\n  id INT)   ",
)


def test_a_table_without_an_engine_is_made_where_the_default_is_innodb(pair97: Pair) -> None:
    pair97.a.execute("STOP REPLICA", "RESET REPLICA ALL", "CREATE DATABASE d")
    pair97.settle()
    pair97.b.execute("CREATE TABLE d.t (id INT PRIMARY KEY)")
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    pair97.a.execute("SET GLOBAL default_storage_engine = MyISAM")
    refused = run_step(pair97, plan, plan.steps[0])
    assert "would get another engine than on its server; nothing was changed" in refused.stderr
    assert pair97.a.query("SHOW TABLES IN d") == []
    pair97.a.execute("SET GLOBAL default_storage_engine = InnoDB")
    run_plan(pair97, plan)
    assert "E1" not in examine(pair97).codes


def statements(server: Server) -> list[str]:
    files = [row[0] for row in server.query("SHOW BINARY LOGS")]
    events = [each for file in files for each in server.query(f"SHOW BINLOG EVENTS IN '{file}'")]
    texts = [re.sub(r" /\* xid=\d+ \*/$", "", str(each[5])) for each in events]
    return [text for text in texts if text.startswith("CREATE TABLE d.")]


def test_each_text_that_the_client_changes_is_known(
    pair97: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair97.a.execute("STOP REPLICA", "RESET REPLICA ALL", "CREATE DATABASE d")
    pair97.settle()
    pair97.b.execute(*DEFINITIONS)
    refused = examine(pair97).plan({"E1": "redo_on_source"})
    assert "the mysql client would send another text" in refused.not_planned[0].why
    monkeypatch.setattr(collected_transactions, "is_rewritten", lambda _sql: False)
    run_plan(pair97, examine(pair97).plan({"E1": "redo_on_source"}))
    pairs = list(zip(DEFINITIONS, statements(pair97.b), statements(pair97.a), strict=True))
    changed = [sql for sql, here, there in pairs if here != there]
    assert changed == [sql for sql in DEFINITIONS if is_rewritten(sql)]
    assert changed
