"""Rows that differ under one GTID, after a crash and numbers given again: shown, chosen, mended."""

import json
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid_audit.cli import run
from tests.repair.live import executed

# Where text and bytes, signs, fractions, zeros and numbers behind names could go wrong.
COLUMNS = (
    "id INT PRIMARY KEY, name VARCHAR(30) CHARACTER SET latin1, note TEXT, raw VARBINARY(20),"
    " price DECIMAL(10,2), ratio FLOAT, many BIGINT UNSIGNED, flags BIT(10),"
    " kind ENUM('a','b'), marks SET('x','y'), born DATE, seen TIMESTAMP(3) NULL, made DATETIME,"
    " spent TIME, y YEAR"
)
ROW = (
    "'Ünder \\'quoted\\' \\\\', 'line\\nbreak ü', x'00ff5c27', -1.50, 1.1, 18446744073709551615,"
    " b'1000000001', 'b', 'x,y', '2020-02-29', '2021-03-04 05:06:07.890', '1999-12-31 23:59:59',"
    " '-12:34:56', 2024"
)
JSON_COLUMN = ", doc JSON"
JSON_VALUE = ', \'{"b": [1, -2.5, "x"], "aa": null}\''


def crashed(pair: Pair, *, with_json: bool) -> None:
    """The source gives the lost numbers to an update, a deletion and an insertion."""
    a, b = pair.a, pair.b
    columns = COLUMNS + (JSON_COLUMN if with_json else "")
    row = ROW + (JSON_VALUE if with_json else "")
    a.execute(
        "CREATE DATABASE wide CHARACTER SET utf8mb4",
        f"CREATE TABLE wide.w ({columns})",
        "SET NAMES utf8mb4",
        *(f"INSERT INTO wide.w VALUES ({number}, {row})" for number in (1, 2, 3)),
    )
    faults.lost_tail_crash(pair)
    a.execute(
        "SET NAMES utf8mb4",
        "UPDATE wide.w SET name = 'é', ratio = 0.1, note = NULL, seen = NULL WHERE id = 1",
        "DELETE FROM wide.w WHERE id = 2",
        f"INSERT INTO wide.w VALUES (4, {row})",
        "CREATE DATABASE later",
    )
    b.execute(b.dialect.start_replica)
    wait_for(b, executed(a))


def planned(
    pair: Pair, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = run(["repair", "plan", "--pair", pair.a.dsn, pair.b.dsn, "--json", *options])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, found


def sums(server: Server) -> list[Any]:
    return server.query("CHECKSUM TABLE wide.w, lost.t")


def scripts(plan: dict[str, Any]) -> list[str]:
    """Return the scripts that write; the checks of the source before them are left out."""
    texts = [Path(file).read_text() for file in plan["files"] if file.endswith(".sql")]
    return [text for text in texts if "sql_log_bin = 0" in text]


def _both_versions_are_shown_and_nothing_is_chosen(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    status, plan = planned(pair, capsys)
    [left] = plan["not_planned"]
    assert (status, plan["steps"], left["code"]) == (1, [], "E4")
    assert "the operator must decide which version is right" in left["why"]
    rows = {(each["table"], each["where"]): each for each in plan["rows"]}
    changed = rows["wide.w", "`id` = 1"]
    assert changed["source_row"]["name"] == "é"
    assert changed["replica_row"]["name"] == "Ünder 'quoted' \\"
    assert set(changed["source_row"]) == {"name", "ratio", "note", "seen"}
    assert rows["wide.w", "`id` = 2"]["source_row"] is None
    assert rows["wide.w", "`id` = 4"]["replica_row"] is None
    assert len(rows) == 6
    assert run(["repair", "plan", "--pair", pair.a.dsn, pair.b.dsn]) == 1
    assert "Rows that differ" in capsys.readouterr().out


def _a_row_that_has_changed_since_stops_the_script(pair: Pair, script: str) -> None:
    b, before = pair.b, sums(pair.b)
    change = "UPDATE wide.w SET price = price + {} WHERE id = 1"
    b.execute("SET SESSION sql_log_bin = 0", change.format(1))
    between = sums(b)
    done = b.client(script)
    assert done.returncode != 0
    assert "is not as the plan saw it" in done.stderr
    assert sums(b) == between
    forced = b.client(script, "--force")
    assert "NOT done" in forced.stdout
    assert sums(b) == between
    b.execute("SET SESSION sql_log_bin = 0", change.format(-1))
    assert sums(b) == before


def _triggers_stop_the_script_and_so_does_not_to_see_them(pair: Pair, script: str) -> None:
    b, before = pair.b, sums(pair.b)
    b.execute(
        "SET SESSION sql_log_bin = 0",
        "CREATE TRIGGER wide.fires BEFORE UPDATE ON wide.w FOR EACH ROW SET NEW.price = 0",
        "CREATE USER blind@'%'",
        "GRANT SELECT, INSERT, UPDATE, DELETE, SUPER ON *.* TO blind@'%'",
    )
    done = b.client(script)
    assert done.returncode != 0
    assert "wide.w has triggers" in done.stderr
    blind = b.client(script, "--user=blind")
    assert blind.returncode != 0
    assert "may not see the triggers of wide.w" in blind.stderr
    assert sums(b) == before
    b.execute("SET SESSION sql_log_bin = 0", "DROP TRIGGER wide.fires", "DROP USER blind@'%'")


def mended(pair: Pair, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    a, b = pair.a, pair.b
    _both_versions_are_shown_and_nothing_is_chosen(pair, capsys)
    choice = ("--strategy", "E4=data_repair")
    status, plan = planned(pair, capsys, *choice, "--out", str(folder))
    assert (status, [step["action"] for step in plan["steps"]]) == (0, ["MakeRowsAlike"] * 2)
    assert {step["server"] for step in plan["steps"]} == {f"{b.host}:{b.port}"}
    runbook = (folder / "RUNBOOK.md").read_text()
    assert "## Rows that differ" in runbook
    assert "there is no such row" in runbook
    other, wide = scripts(plan)
    assert "wide" in wide
    assert "wide" not in other
    gtids = [executed(server) for server in (a, b)]
    _a_row_that_has_changed_since_stops_the_script(pair, wide)
    _triggers_stop_the_script_and_so_does_not_to_see_them(pair, wide)
    lines = wide.splitlines(keepends=True)
    change = next(at for at, line in enumerate(lines) if line == "BEGIN;\n")
    for cut in range(change, len(lines), 7):  # a client that dies there
        b.client("".join(lines[:cut]))
    for script in (wide, other, wide, other):
        done = b.client(script)
        assert done.returncode == 0, done.stderr
        assert "is done" in done.stdout
    assert sums(a) == sums(b)
    assert [executed(server) for server in (a, b)] == gtids
    status, again = planned(pair, capsys, *choice)
    # The logs still show two contents: nothing is left to run, and the finding stays.
    assert (status, again["steps"], again["rows"], again["not_planned"]) == (1, [], [], [])
    assert a.client(wide).returncode != 0  # another server


def test_rows_are_made_alike_on_9_7(
    pair97: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    crashed(pair97, with_json=True)
    mended(pair97, capsys, tmp_path / "plan")


@pytest.mark.slow
def test_rows_are_made_alike_on_5_6(
    pair56: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    crashed(pair56, with_json=False)
    mended(pair56, capsys, tmp_path / "plan")


def one_gtid_twice(pair: Pair) -> None:
    """Under one GTID, the source has a row 3, and the replica a row 7."""
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.parent (id INT PRIMARY KEY, x INT)")
    pair.settle()
    for server in (a, b):
        server.execute(server.dialect.stop_replica)
    for server, number in ((a, 3), (b, 7)):
        server.execute(
            f"SET SESSION gtid_next = '{a.value('@@GLOBAL.server_uuid')}:100'",
            f"INSERT INTO d.parent VALUES ({number}, 0)",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    for server in (a, b):
        server.execute(server.dialect.start_replica)


def test_a_source_that_has_changed_is_noticed_and_a_flawless_repair_is_ok(
    pair97: Pair,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The logs keep two contents: the plan announces that, and the rows are compared again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    a, b = pair97.a, pair97.b
    one_gtid_twice(pair97)
    folder = tmp_path / "plan"
    choice = ("--strategy", "E4=data_repair")
    status, plan = planned(pair97, capsys, *choice, "--out", str(folder))
    [left] = plan["afterwards"]
    assert (status, left["code"], left["is_only_in_logs"]) == (0, "E4", True)
    assert "audits report this as long as both logs" in (folder / "RUNBOOK.md").read_text()

    not_logged = "SET SESSION sql_log_bin = 0"
    a.execute(not_logged, "UPDATE d.parent SET x = 1 WHERE id = 3")
    assert run(["repair", "apply", str(folder), "--yes"]) == 2
    assert "row of d.parent was written since the plan was made" in " ".join(
        capsys.readouterr().out.split()
    )
    assert b.query("SELECT id, x FROM d.parent") == [(7, 0)], "nothing is written"
    a.execute(not_logged, "UPDATE d.parent SET x = 0 WHERE id = 3")

    assert run(["repair", "apply", str(folder), "--yes"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the plan announced: E4. the rows of E4 were read again: 2 are equal" in shown
    assert b.query("SELECT id, x FROM d.parent") == [(3, 0)]


@pytest.mark.parametrize("shape", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def test_the_version_of_the_replica_is_written_on_the_source(
    shape: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both go on with the row: it is not logged, and what changes it later arrives on each."""
    pair: Pair = request.getfixturevalue(shape)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    a, b = pair.a, pair.b
    one_gtid_twice(pair)
    folder, choice = tmp_path / "plan", ("--strategy", "E4=data_repair_on_source")
    status, plan = planned(pair, capsys, *choice, "--out", str(folder))
    assert (status, [step["server"] for step in plan["steps"]]) == (0, [f"{a.host}:{a.port}"])
    sets, [script] = [executed(server) for server in (a, b)], scripts(plan)
    assert b.client(script).returncode != 0  # another server
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE d.parent SET x = 1 WHERE id = 7")
    assert run(["repair", "apply", str(folder), "--yes"]) == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "row of d.parent was written since the plan was made" in shown
    assert a.query("SELECT id, x FROM d.parent") == [(3, 0)], "nothing is written"
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE d.parent SET x = 0 WHERE id = 7")

    lines = script.splitlines(keepends=True)
    for cut in range(next(at for at, line in enumerate(lines) if line == "BEGIN;\n"), len(lines)):
        a.client("".join(lines[:cut]))  # a client that dies there
    assert run(["repair", "apply", str(folder), "--yes"]) == 0
    assert a.query("SELECT id, x FROM d.parent") == [(7, 0)]
    assert [executed(server) for server in (a, b)] == sets
    for server, value in ((a, 2), (b, 3)):
        server.execute(f"UPDATE d.parent SET x = {value} WHERE id = 7")
        pair.settle()
        assert [each.query("SELECT id, x FROM d.parent") for each in (a, b)] == [[(7, value)]] * 2


def test_a_row_that_the_replica_wrote_last_is_not_replaced(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """A source that lags would get the newer row after its own version has replaced it."""
    a, b = pair97.a, pair97.b
    one_gtid_twice(pair97)
    a.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600", "START REPLICA")
    b.execute("UPDATE d.parent SET x = 9 WHERE id = 7")
    _, plan = planned(pair97, capsys, "--strategy=E4=data_repair")
    assert plan["steps"] == []
    [left] = [each for each in plan["not_planned"] if each["code"] == "E4"]
    assert f"does not have {b.value('@@GLOBAL.server_uuid')}:1 of" in left["why"]
    # The benign twin: the same write, once the source has it.
    a.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0")
    a.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.parent VALUES (7, 0)", "START REPLICA")
    wait_for(a, executed(b))
    _, plan = planned(pair97, capsys, "--strategy=E4=data_repair")
    assert not [each for each in plan["not_planned"] if each["code"] == "E4"]


@pytest.mark.slow
def test_a_row_that_the_source_wrote_last_is_not_replaced(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replica that lags would get the newer row after its own version has replaced it above."""
    a, b = pair97.a, pair97.b
    one_gtid_twice(pair97)
    choice = "--strategy=E4=data_repair_on_source"
    b.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600", "START REPLICA")
    a.execute("UPDATE d.parent SET x = 9 WHERE id = 3")
    _, plan = planned(pair97, capsys, choice)
    assert plan["steps"] == []
    [left] = [each for each in plan["not_planned"] if each["code"] == "E4"]
    assert f"does not have {a.value('@@GLOBAL.server_uuid')}:" in left["why"]
    # The benign twin: the same write, once the replica has it.
    b.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0")
    b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.parent VALUES (3, 0)", "START REPLICA")
    wait_for(b, executed(a))
    _, plan = planned(pair97, capsys, choice)
    assert not [each for each in plan["not_planned"] if each["code"] == "E4"]


def test_a_parent_is_not_taken_from_its_child(
    pair97: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One GTID, two contents; the row that only the replica has got a child since."""
    a, b = pair97.a, pair97.b
    child = (
        "CREATE TABLE d.child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES d.parent (id) ON DELETE CASCADE)"
    )
    one_gtid_twice(pair97)
    choice = ("--strategy", "E4=data_repair")
    _, plan = planned(pair97, capsys, *choice, "--out", str(tmp_path / "plan"))
    [script] = scripts(plan)
    b.execute("SET SESSION sql_log_bin = 0", child, "INSERT INTO d.child VALUES (70, 7)")
    _, late = planned(pair97, capsys, *choice)
    [left] = [each for each in late["not_planned"] if each["code"] == "E4"]
    assert late["steps"] == []
    assert "foreign keys of d.parent would change rows" in left["why"]
    done = b.client(script)
    assert done.returncode != 0
    assert "foreign keys of d.parent would change other tables" in done.stderr
    assert b.query("SELECT * FROM d.parent") == [(7, 0)]
    b.execute("SET SESSION sql_log_bin = 0", "DROP TABLE d.child")
    assert b.client(script).returncode == 0
    assert b.query("SELECT * FROM d.parent") == a.query("SELECT * FROM d.parent") == [(3, 0)]
