"""`gtid-audit trace` on real servers: each kind of error, each cause, and what cannot be read."""

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from binlog.schema.table_history import TableKey
from compose.faults import (
    await_applier_stopped,
    commit,
    failing_create_view,
    hung_server,
    purge_under_stopped_replica,
    purge_until_gone,
)
from compose.faults_configuration import workers_out_of_order
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from gtid_audit.document_types.command_documents import schema_of
from tests.gtid_audit.build import run_cli
from topology.adapters.change_searches import SearchLimits, changes_on
from topology.adapters.mysql import MysqlReader
from topology.adapters.traced_facts import error_log, table_now
from topology.adapters.traced_reads import TracedReads
from topology.readings.target import ServerTarget

PAGE = Path(__file__).parents[2] / "docs/trace.md"
VALIDATOR = jsonschema.Draft202012Validator(schema_of("trace", is_closed=True))
EVERY = ("pair97", "pair56")
# The reading of 5.6 has tests of its own here. The rest of these runs on 5.6 every night.
MOSTLY_97 = ("pair97", pytest.param("pair56", marks=pytest.mark.slow))
TABLE = "CREATE TABLE shop.t (id INT PRIMARY KEY, x INT, c VARCHAR(20))"
ROW = "INSERT INTO shop.t VALUES (2, 1, 'a')"


def traced(*operands: str, status: int, **environment: str) -> dict[str, Any]:
    """Return the document of a trace, after comparing it with its schema."""
    done = run_cli("trace", *operands, "--json", environment=environment)
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    VALIDATOR.validate(document)
    return document


def page(*operands: str, status: int) -> str:
    done = run_cli("trace", *operands, environment={"COLUMNS": "1000"})
    assert (done.returncode, done.stderr) == (status, ""), done.stdout + done.stderr
    return done.stdout


def pair_of(request: pytest.FixtureRequest, name: str) -> Pair:
    pair: Pair = request.getfixturevalue(name)
    return pair


def shop(servers: Topology, *, source: str = "a", replica: str = "b") -> tuple[Server, Server]:
    """Create a table on both servers; the source then receives nothing from its replica."""
    here, there = servers[source], servers[replica]
    made = commit(here, "CREATE DATABASE shop", TABLE, "INSERT INTO shop.t VALUES (1, 1, 'a')")
    wait_for(there, made)
    if here.replica_status():
        here.execute(here.dialect.stop_replica)
    return here, there


def unlogged(server: Server, *statements: str) -> None:
    server.execute("SET sql_log_bin = 0", *statements)


OWN_DDL = {
    1146: ("DROP TABLE shop.t", ROW),
    1051: ("DROP TABLE shop.t", "DROP TABLE shop.t"),
    1054: ("ALTER TABLE shop.t DROP COLUMN x", "ALTER TABLE shop.t MODIFY x BIGINT"),
    1091: ("ALTER TABLE shop.t DROP COLUMN x", "ALTER TABLE shop.t DROP COLUMN x"),
    1050: ("CREATE TABLE shop.u (id INT)", "CREATE TABLE shop.u (id INT)"),
    1060: ("ALTER TABLE shop.t ADD y INT", "ALTER TABLE shop.t ADD y INT"),
    1061: ("ALTER TABLE shop.t ADD KEY k (x)", "ALTER TABLE shop.t ADD KEY k (x)"),
}


# One error of a table, of a column and of something that exists; the others every night.
EVERY_DAY = (1146, 1054, 1050)


@pytest.mark.parametrize("name", MOSTLY_97)
@pytest.mark.parametrize(
    "errno",
    [pytest.param(each, marks=[pytest.mark.slow] * (each not in EVERY_DAY)) for each in OWN_DDL],
)
def test_ddl_of_the_replica_explains_the_error(
    request: pytest.FixtureRequest, name: str, errno: int
) -> None:
    source, replica = shop(pair_of(request, name))
    own, failing = OWN_DDL[errno]
    changed = commit(replica, own)
    failed = commit(source, failing)
    await_applier_stopped(replica)
    found = traced(replica.dsn, status=2)
    assert found["verdict"] == "CRITICAL"
    [error] = found["errors"]
    assert (error["errno"], error["thread"], error["state"]) == (errno, "applier", "No")
    assert error["gtid_set"] == failed
    [transaction] = error["transactions"]
    assert (transaction["gtid"], transaction["server"]) == (failed, found["servers"][1]["server"])
    [cause] = error["causes"]
    assert (cause["cause"], cause["grade"]) == ("own_change", "proved")
    assert cause["transaction"]["gtid"] == changed
    assert error["remaining_causes"] == []
    places = {each["server"]: each for each in error["places"]}
    on_source = places[f"127.0.0.1:{source.port}"]
    span = f"{transaction['file']}:{transaction['start']}-{transaction['end']}"
    assert (on_source["is_executed"], on_source["place"]) == (True, span)
    on_replica = places[f"127.0.0.1:{replica.port}"]
    assert (on_replica["is_executed"], on_replica["received_on"]) == (False, [""])
    assert on_replica["failed_on"] == [""]
    assert found["next"][0].endswith(f"binlog show {failed} {source.dsn}")
    shows_difference = errno not in (1051, 1050, 1091, 1060, 1061)
    assert bool(error["differences_now"]) == shows_difference


@pytest.mark.parametrize("name", EVERY)
def test_the_page_has_each_part(request: pytest.FixtureRequest, name: str) -> None:
    source, replica = shop(pair_of(request, name))
    changed = commit(replica, "DROP TABLE shop.t")
    failed = commit(source, ROW)
    await_applier_stopped(replica)
    text = page(replica.dsn, status=2)
    assert "Table 'shop.t' doesn't exist" in text
    assert f"{failed} · 127.0.0.1:{source.port} binlog.000001:" in text
    assert "shop.t: inserted (2, 1, 'a')" in text
    assert f"proved: 127.0.0.1:{replica.port} executed {changed}, and" in text
    assert f"shop.t exists on 127.0.0.1:{source.port} and not on" in text
    assert f"gtid-audit repair plan --pair {source.dsn} {replica.dsn} --out plan" in text
    if name == "pair97":
        assert " Error MY-010584: Replica SQL for channel '': Worker 1 failed" in text
        assert "worker 1: error 1146 on " in text
    else:
        assert text.count("performance_schema.error_log exists since 8.0.22") == 2
        assert "read what mysqld writes to its standard error" in text


@pytest.mark.parametrize("name", EVERY)
def test_a_statement_that_did_nothing_is_not_proved(
    request: pytest.FixtureRequest, name: str
) -> None:
    source, replica = shop(pair_of(request, name))
    unlogged(replica, "CREATE TABLE shop.u (id INT)")
    changed = commit(replica, "CREATE TABLE IF NOT EXISTS shop.u (id INT)")
    commit(source, "CREATE TABLE shop.u (id INT)")
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    [cause] = error["causes"]
    assert (cause["grade"], cause["transaction"]["gtid"]) == ("likely", changed)
    assert "logged even if it did nothing" in cause["text"]
    assert any("sql_log_bin = 0: no log has it" in each for each in error["remaining_causes"])


def test_a_view_of_the_replica_is_a_cause(pair97: Pair) -> None:
    source, replica = shop(pair97)
    changed = commit(replica, "CREATE VIEW shop.u AS SELECT * FROM shop.t")
    commit(source, "CREATE TABLE shop.u (id INT)")
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    [cause] = error["causes"]
    assert (error["errno"], cause["cause"], cause["grade"]) == (1050, "own_change", "proved")
    assert cause["transaction"]["gtid"] == changed


@pytest.mark.parametrize("name", MOSTLY_97)
def test_what_no_log_has_is_never_proved(request: pytest.FixtureRequest, name: str) -> None:
    source, replica = shop(pair_of(request, name))
    unlogged(replica, "DROP TABLE shop.t")
    commit(source, ROW)
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert error["causes"] == []
    assert any("sql_log_bin = 0: no log has it" in each for each in error["remaining_causes"])
    assert [each["is_complete"] for each in error["changes"]] == [True, True]
    assert error["differences_now"]
    assert "no transaction that was read explains it" in page(replica.dsn, status=2)


@pytest.mark.parametrize("name", MOSTLY_97)
def test_rows_of_the_replica_are_likely(request: pytest.FixtureRequest, name: str) -> None:
    source, replica = shop(pair_of(request, name))
    errant = commit(replica, "INSERT INTO shop.t VALUES (2, 2, 'b')")
    commit(replica, "CREATE TABLE shop.unrelated (id INT)")
    commit(source, ROW)
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert (error["errno"], error["class"]) == (1062, "rows")
    [cause] = error["causes"]
    assert (cause["cause"], cause["grade"]) == ("own_rows", "likely")
    assert cause["transaction"]["gtid"] == errant
    assert cause["transaction"]["rows"] == ["shop.t: inserted (2, 2, 'b')"]
    assert error["remaining_causes"]
    assert error["changes"] == [], "no DDL explains rows"


def test_columns_that_differ(pair97: Pair) -> None:
    source, replica = shop(pair97)
    changed = commit(replica, "ALTER TABLE shop.t MODIFY x VARCHAR(5)")
    commit(source, ROW)
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert (error["errno"], error["class"]) == (13146, "columns")
    [cause] = error["causes"]
    assert (cause["grade"], cause["transaction"]["gtid"]) == ("likely", changed)
    [difference] = error["differences_now"]
    assert difference.startswith("shop.t: x is int on ")


@pytest.mark.parametrize("name", MOSTLY_97)
def test_a_change_that_was_left_empty(request: pytest.FixtureRequest, name: str) -> None:
    source, replica = shop(pair_of(request, name))
    replica.execute(replica.dialect.stop_replica)
    created = commit(source, "CREATE TABLE shop.u (id INT PRIMARY KEY)")
    replica.execute(f"SET gtid_next = '{created}'", "BEGIN", "COMMIT", "SET gtid_next = AUTOMATIC")
    failed = commit(source, "INSERT INTO shop.u VALUES (1)")
    replica.execute(replica.dialect.start_replica)
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert (error["errno"], error["gtid_set"]) == (1146, failed)
    [cause] = error["causes"]
    assert (cause["cause"], cause["grade"]) == ("emptied_change", "likely")
    assert cause["transaction"]["gtid"] == created


@pytest.mark.parametrize("name", MOSTLY_97)
def test_a_change_that_was_passed_by(request: pytest.FixtureRequest, name: str) -> None:
    source, replica = shop(pair_of(request, name))
    replica.execute(replica.dialect.stop_replica)
    created = commit(source, "CREATE TABLE shop.u (id INT PRIMARY KEY)")
    log_file, log_pos = source.binary_log_position()
    commit(source, "INSERT INTO shop.u VALUES (1)")
    replica.execute(
        replica.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        replica.dialect.start_replica,
    )
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    [cause] = error["causes"]
    assert (cause["cause"], cause["grade"]) == ("missing_change", "proved")
    assert cause["transaction"]["gtid"] == created
    [error] = traced(replica.dsn, "--search", "0", status=2)["errors"]
    assert error["causes"] == []
    assert any("not requested (--search 0)" in each for each in error["remaining_causes"])


@pytest.mark.parametrize("name", EVERY)
def test_the_relay_log_has_what_the_source_purged(
    request: pytest.FixtureRequest, name: str
) -> None:
    source, replica = shop(pair_of(request, name))
    unlogged(replica, "INSERT INTO shop.t VALUES (2, 2, 'b')")
    failed = commit(source, ROW)
    await_applier_stopped(replica)
    source.execute("FLUSH BINARY LOGS")
    purge_until_gone(source, failed)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert error["gtid_set"] == failed
    [transaction] = error["transactions"]
    assert (transaction["is_relay_log"], transaction["rows"]) == (True, ["rows of shop.t"])
    on_source = next(each for each in error["places"] if each["is_executed"])
    assert on_source["is_purged"]
    text = page(replica.dsn, status=2)
    assert "executed, and purged from its binary logs" in text
    assert "binlog show" not in text, "no server has it"


def test_another_server_has_what_the_source_purged(star97: Topology) -> None:
    source, replica = shop(star97, source="source", replica="replica1")
    other = star97["replica2"]
    unlogged(replica, "DROP TABLE shop.t")
    failed = commit(source, ROW)
    wait_for(other, failed)
    await_applier_stopped(replica)
    source.execute("FLUSH BINARY LOGS")
    purge_until_gone(source, failed)
    found = traced(replica.dsn, source.dsn, other.dsn, status=2)
    [error] = found["errors"]
    [transaction] = error["transactions"]
    assert (transaction["server"], transaction["is_relay_log"]) == (
        f"127.0.0.1:{other.port}",
        False,
    )
    assert not any(each["found_as_source"] for each in found["servers"])
    searched = {each["server"]: each["not_read"] for each in error["changes"]}
    assert searched[f"127.0.0.1:{source.port}"] is not None, "what is left follows the failure"
    assert any("binlog show" in each and other.dsn in each for each in found["next"])


def test_a_source_that_hangs_costs_its_time_limit(pair97: Pair) -> None:
    source, replica = shop(pair97)
    unlogged(replica, "DROP TABLE shop.t")
    failed = commit(source, ROW)
    await_applier_stopped(replica)
    with hung_server(source):
        found = traced(replica.dsn, "--timeout", "1", status=2)
    [error] = found["errors"]
    assert error["gtid_set"] == failed
    assert error["transactions"][0]["is_relay_log"]
    facts = {each["server"]: each["fact"] for each in found["unknown"]}
    assert facts == {f"127.0.0.1:{source.port}": "connection"}
    assert error["remaining_causes"]


@pytest.mark.slow
def test_a_source_that_is_down(pair97: Pair) -> None:
    source, replica = shop(pair97)
    unlogged(replica, "DROP TABLE shop.t")
    commit(source, ROW)
    await_applier_stopped(replica)
    source.stop()
    try:
        text = page(replica.dsn, status=2)
    finally:
        source.start()
    assert f"127.0.0.1:{source.port}: connection: unreachable: " in text
    assert "Not read, so this part of the page is not known:" in text
    assert "rows of shop.t" in text


def test_without_performance_schema_the_gtid_is_in_the_text(pair97: Pair) -> None:
    source, replica = shop(pair97)
    changed = commit(replica, "DROP TABLE shop.t")
    failed = commit(source, ROW)
    await_applier_stopped(replica)
    for server in (source, replica):
        unlogged(
            server,
            "CREATE USER reader@'%' IDENTIFIED BY 'se cret'",
            "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO reader@'%'",
        )
    dsn = replica.dsn.replace("root@", "reader@") + "?get_server_public_key=1"
    found = traced(dsn, status=2, GTID_AUDIT_PASSWORD="se cret")
    [error] = found["errors"]
    assert (error["errno"], error["gtid_set"]) == (1146, failed)
    assert error["causes"][0]["transaction"]["gtid"] == changed
    facts = {(each["server"], each["fact"]) for each in found["unknown"]}
    for server in (source, replica):
        assert (f"127.0.0.1:{server.port}", "error log") in facts
    assert (f"127.0.0.1:{replica.port}", "workers") in facts
    assert all(each["lines"] == [] for each in error["error_logs"])
    assert all(each["not_read"].startswith("privilege: ") for each in error["error_logs"])
    assert "se cret" not in json.dumps(found)
    assert found["next"][0].endswith(
        f"mysql://reader@127.0.0.1:{source.port}/?get_server_public_key=1'"
    )


def test_without_any_privilege_it_is_unknown(pair97: Pair) -> None:
    unlogged(pair97.b, "CREATE USER nothing@'%' IDENTIFIED BY ''")
    found = traced(pair97.b.dsn.replace("root@", "nothing@"), status=3)
    assert (found["verdict"], found["errors"]) == ("UNKNOWN", [])
    assert "channels" in {each["fact"] for each in found["unknown"]}
    text = page(pair97.b.dsn.replace("root@", "nothing@"), status=3)
    assert "no error was found, and not everything could be read" in text


@pytest.mark.parametrize("name", MOSTLY_97)
def test_nothing_is_stopped(request: pytest.FixtureRequest, name: str) -> None:
    _, replica = shop(pair_of(request, name))
    found = traced(replica.dsn, status=0)
    assert (found["verdict"], found["errors"], found["unknown"]) == ("OK", [], [])
    assert len(found["servers"]) == 1, "its source is not needed"
    replica.execute(replica.dialect.stop_replica)
    text = page(replica.dsn, status=0)
    assert f"nothing is stopped with an error on 127.0.0.1:{replica.port}" in text
    assert "the applier is stopped, without an error" in text


@pytest.mark.parametrize("name", MOSTLY_97)
def test_a_gtid_is_found_on_every_server(request: pytest.FixtureRequest, name: str) -> None:
    source, replica = shop(pair_of(request, name))
    written = commit(source, "UPDATE shop.t SET x = 7")
    wait_for(replica, written)
    unlogged(replica, "INSERT INTO shop.t VALUES (2, 2, 'b')")
    failed = commit(source, ROW)
    await_applier_stopped(replica)
    found = traced(written, source.dsn, replica.dsn, status=2)
    assert (found["gtid"], found["errors"]) == (written, [])
    assert [each["errno"] for each in found["other_errors"]] == [1062]
    assert [each["is_executed"] for each in found["places"]] == [True, True]
    assert all(each["place"].startswith("binlog.000001:") for each in found["places"])
    assert found["transaction"]["tables"][0]["rows_updated"] == 1
    found = traced(failed, source.dsn, replica.dsn, status=2)
    [error] = found["errors"]
    assert (error["errno"], found["other_errors"]) == (1062, [])
    assert [each["failed_on"] for each in found["places"]] == [[], [""]]
    assert found["transaction"]["gtid"] == failed
    unknown = failed.rpartition(":")[0] + ":999"
    found = traced(unknown, source.dsn, status=0)
    assert (found["transaction"], found["places"][0]["is_executed"]) == (None, False)


def test_workers_that_failed_each_on_its_own(pair97: Pair) -> None:
    source, replica = shop(pair97)
    workers_out_of_order(replica)
    commit(source, "CREATE DATABASE other", "CREATE TABLE other.t (id INT PRIMARY KEY)")
    wait_for(replica, source.value("@@GLOBAL.gtid_executed"))
    replica.execute(f"{replica.dialect.stop_replica} SQL_THREAD")
    unlogged(replica, "INSERT INTO shop.t VALUES (2, 2, 'b')", "INSERT INTO other.t VALUES (1)")
    first = commit(source, ROW)
    second = commit(source, "INSERT INTO other.t VALUES (1)")
    replica.execute(f"{replica.dialect.start_replica} SQL_THREAD")
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    failed = {each["gtid"] for each in error["workers"]}
    assert failed
    assert failed <= {first, second}
    assert {each["errno"] for each in error["workers"]} == {1062}
    assert {each["gtid"] for each in error["transactions"]} == failed


@pytest.mark.slow
@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_parallel_applier_of_5_6(pair56: Pair, is_quiet: bool) -> None:
    """A worker reports its own error, except for the one that the applier expected (A1)."""
    source, replica = shop(pair56)
    replica.execute(
        replica.dialect.stop_replica,
        *replica.dialect.parallel_applier,
        replica.dialect.start_replica,
    )
    if is_quiet:
        view = "CREATE VIEW shop.v AS SELECT * FROM shop.t"
        wait_for(replica, commit(source, view))
        unlogged(replica, "DROP VIEW shop.v")
        failed = commit(source, view, expected_error=1050)
        await_applier_stopped(replica)
    else:
        unlogged(replica, "INSERT INTO shop.t VALUES (2, 2, 'b')")
        failed = commit(source, ROW)
        await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    if not is_quiet:
        assert (error["errno"], error["gtid_set"]) == (1062, failed)
        return
    assert (error["errno"], error["gtid_set"], error["causes"]) == (1756, "", [])
    assert GtidSet.parse(failed) <= GtidSet.parse(error["gtid_set_may_be"])
    assert "the position of a parallel applier is a low-water mark" in page(replica.dsn, status=2)


def test_a_statement_that_failed_half_way_on_its_source(pair56: Pair) -> None:
    """The seed's case: the error has no number, and the replica has executed the GTID."""
    fault = failing_create_view(pair56)
    [error] = traced(fault.replica.dsn, status=2)["errors"]
    assert (error["errno"], error["code"], error["gtid_set"]) == (0, "A1", fault.failed)
    [transaction] = error["transactions"]
    assert transaction["error_code"] == 1050
    assert "logged with error 1050" in page(fault.replica.dsn, status=2)
    assert "stopped with an error without a number" in page(fault.replica.dsn, status=2)


@pytest.mark.parametrize("name", EVERY)
def test_a_receiver_is_explained(request: pytest.FixtureRequest, name: str) -> None:
    fault = purge_under_stopped_replica(pair_of(request, name))
    found = traced(fault.replica.dsn, status=2)
    [error] = found["errors"]
    assert (error["thread"], error["code"]) == ("receiver", "P1")
    assert (error["transactions"], error["causes"], error["tables"]) == ([], [], [])
    assert error["failed_at"] is not None
    assert any(each.startswith("gtid-audit handshake ") for each in found["next"])


def test_no_secret_of_a_statement_is_shown(pair97: Pair) -> None:
    source, replica = shop(pair97)
    unlogged(replica, "CREATE USER app@'%' IDENTIFIED BY 'known only here'")
    commit(source, "CREATE USER app@'%' IDENTIFIED BY 'known only here'")
    await_applier_stopped(replica)
    found = traced(replica.dsn, status=2)
    [error] = found["errors"]
    assert error["errno"] == 1396
    whole = json.dumps(found) + page(replica.dsn, status=2)
    assert "known only here" not in whole
    assert "caching_sha2_password" not in whole
    assert "IDENTIFIED (hidden)" in whole


def test_lines_before_the_window_are_left_out(pair97: Pair) -> None:
    source, replica = shop(pair97)
    unlogged(replica, "DROP TABLE shop.t")
    commit(source, ROW)
    await_applier_stopped(replica)
    [wide] = traced(replica.dsn, status=2)["errors"]
    [narrow] = traced(replica.dsn, "--window", "0", status=2)["errors"]
    lines = [each["error_logs"][0] for each in (wide, narrow)]
    assert lines[0]["count"] > lines[1]["count"]
    assert any("Table 'shop.t' doesn't exist" in each["text"] for each in lines[0]["lines"])


def test_the_commands_of_the_page(pair97: Pair) -> None:
    """What docs/trace.md shows runs as it is written, with the addresses of these servers."""
    source, replica = shop(pair97)
    changed = commit(replica, "DROP TABLE shop.t")
    failed = commit(source, ROW)
    await_applier_stopped(replica)
    addresses = {
        "mysql://audit@db1:3306/?ssl=required": source.dsn,
        "mysql://audit@db2:3306/?ssl=required": replica.dsn,
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:23": failed,
    }
    commands = re.findall(r"^gtid-audit (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        words = [addresses.get(word, word) for word in shlex.split(command)]
        known = [word for word in words if "@db3" not in word]
        assert known[0] == "trace"
        text = page(*known[1:], status=2)
        assert f"proved: 127.0.0.1:{replica.port} executed {changed}, and" in text


@pytest.mark.slow
def test_the_next_commands_run(pair97: Pair, tmp_path: Path) -> None:
    source, replica = shop(pair97)
    commit(replica, "INSERT INTO shop.t VALUES (2, 2, 'b')")
    commit(source, ROW)
    await_applier_stopped(replica)
    shown = traced(replica.dsn, status=2)["next"]
    assert [each.split()[1] for each in shown] == ["binlog", "binlog", "pair", "repair"]
    for command in shown:
        words = [
            str(tmp_path / "plan") if each == "plan" else each for each in shlex.split(command)
        ]
        if words[1] == "repair":
            words[2] = "plan"
        done = run_cli(*words[1:])
        assert done.returncode in (0, 1, 2), (command, done.stdout, done.stderr)


def test_a_server_that_stops_answering_is_asked_no_more(pair97: Pair) -> None:
    """It costs one time limit, not one for each question."""
    source, replica = shop(pair97)
    commit(source, "UPDATE shop.t SET x = 2")
    target = ServerTarget("a", source.host, source.port, "root")
    reader = MysqlReader(target, cluster="", timeout_seconds_max=1.0)
    reading = reader.read(phase=1)
    reader.close()
    reads = TracedReads(target, reading, 1.0)
    began = time.monotonic()
    with hung_server(source):
        assert reading.gtid_executed is not None
        gtid = reading.gtid_executed.first(1)
        assert reads.gtid_state(gtid).why.startswith("unreachable: ")
        assert reads.is_lost
        assert reads.transaction(gtid) is None
        assert table_now(reads, TableKey("shop", "t")).why == "the server was not read"
        assert error_log(reads, (), window_seconds=1).why == "the server was not read"
        assert changes_on(reads, (), SearchLimits(1, 1.0)).why
    assert time.monotonic() - began < 5
    assert [each.fact for each in reads.unread] == ["the place of the GTID"]
    assert replica.running


def test_a_tagged_gtid_and_a_named_channel(pair97: Pair) -> None:
    source, replica = shop(pair97)
    replica.execute("STOP REPLICA", "RESET REPLICA ALL")
    follow_by(replica, source, "east")
    unlogged(replica, "DROP TABLE shop.t")
    source.execute("SET gtid_next = 'AUTOMATIC:billing'", ROW)
    failed = f"{source.value('@@GLOBAL.server_uuid')}:billing:1"
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert (error["channel"], error["gtid_set"]) == ("east", failed)
    assert error["transactions"][0]["gtid"] == failed
    source.execute("FLUSH BINARY LOGS")
    purge_until_gone(source, failed)
    [error] = traced(replica.dsn, status=2)["errors"]
    assert error["transactions"][0]["is_relay_log"]
    assert error["transactions"][0]["gtid"] == failed
    replica.execute("STOP REPLICA", "RESET REPLICA ALL")


def follow_by(replica: Server, source: Server, channel: str) -> None:
    statement = replica.dialect.change_source_to(
        host=source.host, port=source.port, user="replication", auto_position=1
    )
    replica.execute(
        f"{statement} FOR CHANNEL '{channel}'", f"START REPLICA FOR CHANNEL '{channel}'"
    )


def test_a_search_that_runs_out_of_time_proves_nothing(pair97: Pair) -> None:
    source, _ = shop(pair97)
    target = ServerTarget("a", source.host, source.port, "root")
    reader = MysqlReader(target, cluster="", timeout_seconds_max=5.0)
    reading = reader.read(phase=1)
    reader.close()
    reads = TracedReads(target, reading, 5.0)
    table = (TableKey("shop", "t"),)
    late = changes_on(reads, table, SearchLimits(1 << 30, 0.0))
    assert late.why == "timeout: the search was not complete after 0 s"
    assert not late.is_complete
    assert reads.is_read, "the server answers"
    whole = changes_on(reads, table, SearchLimits(1 << 30, 30.0))
    assert [each.statements for each in whole.changes] == [(TABLE,)]
    assert (whole.count, whole.why, whole.is_complete) == (1, "", True)
    source.execute("FLUSH BINARY LOGS")
    reader = MysqlReader(target, cluster="", timeout_seconds_max=5.0)
    reading = reader.read(phase=1)
    reader.close()
    part = changes_on(TracedReads(target, reading, 5.0), table, SearchLimits(1, 30.0))
    assert (part.changes, part.first_file, part.is_complete) == ((), "binlog.000002", False)


@pytest.mark.slow
def test_the_source_is_shown_around_the_commit_too(pair97: Pair) -> None:
    source, replica = shop(pair97)
    replica.execute("STOP REPLICA SQL_THREAD")
    unlogged(replica, "DROP TABLE shop.t")
    commit(source, ROW)
    time.sleep(3)
    replica.execute("START REPLICA SQL_THREAD")
    await_applier_stopped(replica)
    [error] = traced(replica.dsn, "--window", "1", status=2)["errors"]
    of_replica, of_source = error["error_logs"]
    assert of_replica["around"] == [error["failed_at"]]
    committed_at = error["transactions"][0]["logged_at"]
    assert of_source["around"] == [committed_at, error["failed_at"]]
