"""What a server skipped, left out, or committed empty: equal sets and other rows, on real servers."""

import json
import time
from typing import Any
from uuid import UUID

import pytest

from compose import faults_content as faults
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Pair, TopologyPlan, running
from gtid import GtidSet
from gtid_audit.cli import run
from tests.server_pool import all_connected


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = run([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def compared(
    capsys: pytest.CaptureFixture[str], pair: Pair, *options: str
) -> tuple[int, dict[str, Any]]:
    return answer(capsys, "binlog", "compare", pair.a.dsn, pair.b.dsn, *options)


def rows(server: Server, table: str) -> list[Any]:
    return server.query(f"SELECT * FROM {table} ORDER BY id")


def purge(server: Server) -> None:
    """Purge all binary logs but a new one: not at once while a dump reads the last of them."""
    server.execute("FLUSH BINARY LOGS")
    current, _ = server.binary_log_position()
    deadline = time.monotonic() + 10
    while len(server.query("SHOW BINARY LOGS")) > 1:
        assert time.monotonic() < deadline, "the logs are still being read"
        server.execute(f"PURGE BINARY LOGS TO '{current}'")


def skipped(found: dict[str, Any]) -> dict[str, Any]:
    """Return the one finding, which is of the kind that a skipping server leads to."""
    [finding] = found["findings"]
    assert (finding["code"], finding["severity"], finding["grade"]) == ("E4", "warning", "likely")
    result: dict[str, Any] = finding
    return result


@pytest.mark.parametrize("mode", ["skip_errors", "idempotent"])
def test_work_that_a_replica_skipped_is_reported(
    pair97: Pair, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = faults.skipped_errors(pair97, mode=mode)
    assert rows(pair97.a, "skipped.t") != rows(pair97.b, "skipped.t")
    status, found = compared(capsys, pair97, "--everywhere")
    finding = skipped(found)
    assert (status, found["unknown"]) == (1, [])
    assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.skipped)
    replica = f"{pair97.b.host}:{pair97.b.port}"
    assert finding["explanation"].startswith(f"{replica} logged less of ")
    assert "replica_skip_errors" in finding["explanation"]
    status, agreed = compared(capsys, pair97, "--only", finding["gtid_set"])
    assert (status, skipped(agreed)["gtid_set"]) == (1, finding["gtid_set"])


def test_work_that_a_replica_skipped_is_reported_before_commit_times(
    pair56: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = faults.skipped_errors(pair56)
    status, found = compared(capsys, pair56, "--everywhere")
    assert (status, found["unknown"]) == (1, [])
    assert GtidSet.parse(skipped(found)["gtid_set"]) == GtidSet.parse(fault.skipped)


def test_a_filter_explains_an_empty_transaction_and_nothing_else(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT)", "CREATE TABLE d.u (id INT)")
    pair97.settle()
    stop, start = b.dialect.stop_replica, b.dialect.start_replica
    ignore = "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = ({})"
    b.execute(stop, ignore.format("d.u"), start)
    a.execute("INSERT INTO d.u VALUES (1)", "ALTER TABLE d.u ADD n INT")
    a.execute("BEGIN", "INSERT INTO d.t VALUES (1)", "INSERT INTO d.u VALUES (2, 2)", "COMMIT")
    pair97.settle()
    status, found = compared(capsys, pair97, "--everywhere")
    [finding] = found["findings"]
    assert (status, finding["severity"], finding["gtid_count"]) == (0, "info", 3)
    assert "The filters of" in finding["explanation"]
    b.execute(stop, ignore.format("d.other"), start)
    status, found = compared(capsys, pair97, "--everywhere")
    assert (status, skipped(found)["gtid_count"]) == (1, 3)
    b.execute(
        f"{b.dialect.change_source_to(host='another.example')} FOR CHANNEL 'of_another'",
        f"{ignore.format('d.u')} FOR CHANNEL 'of_another'",
    )
    status, found = compared(capsys, pair97, "--everywhere")
    assert (status, skipped(found)["gtid_count"]) == (1, 3), "another channel's filter"


def test_values_that_a_replica_converted_are_not_called_the_same(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id BIGINT)")
    pair97.settle()
    b.execute(
        b.dialect.stop_replica,
        "SET GLOBAL replica_type_conversions = 'ALL_LOSSY'",
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE d.t MODIFY id SMALLINT",
        b.dialect.start_replica,
    )
    for value in (7, 1_000_000):  # one that both types hold, and one that the replica cuts off
        a.execute(f"INSERT INTO d.t VALUES ({value})")
    pair97.settle()
    assert a.query("SELECT * FROM d.t")[0] == b.query("SELECT * FROM d.t")[0] == (7,)
    assert a.query("SELECT * FROM d.t")[1] != b.query("SELECT * FROM d.t")[1]
    status, found = compared(capsys, pair97, "--everywhere")
    assert (status, found["verdict"], found["findings"]) == (3, "UNKNOWN", [])
    [unknown] = found["unknown"]
    assert ": 2 GTIDs, " in unknown["reason"]
    assert "different forms" in unknown["reason"]
    assert (found["compared"]["compared_count"], found["compared"]["undecided_count"]) == (2, 2)
    capsys.readouterr()
    run(["binlog", "compare", a.dsn, b.dsn, "--everywhere"])
    text = capsys.readouterr().out
    assert "2 GTIDs compared, these are the same, 2 GTIDs not comparable" in text


def test_where_nothing_was_compared_nothing_is_the_same(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a = pair97.a
    status, found = compared(capsys, pair97, "--everywhere")
    assert (status, found["verdict"], found["gtid_count"]) == (3, "UNKNOWN", 0)
    assert "no GTID was compared" in found["unknown"][0]["reason"]
    a.execute("CREATE DATABASE d")
    pair97.settle()
    assert compared(capsys, pair97, "--everywhere")[0] == 0
    before = str(a.value("@@GLOBAL.gtid_executed"))
    purge(a)
    for options in (("--everywhere",), ("--only", before), ()):
        status, found = compared(capsys, pair97, *options)
        assert (status, found["findings"]) == (3, []), options
        reasons = [each["reason"] for each in found["unknown"]]
        assert any("purged" in each for each in reasons)
        assert any("no GTID was compared" in each for each in reasons)
    a.execute("CREATE DATABASE e")
    pair97.settle()
    status, found = compared(capsys, pair97, "--everywhere")
    assert (status, found["gtid_count"]) == (0, 1)
    [remark] = found["compared"]["remarks"]
    assert remark["server"] == f"{a.host}:{a.port}"
    assert remark["reason"] == f"purged, or never in these logs: 1 GTID, {before}"
    status, found = compared(capsys, pair97, "--only", str(a.value("@@GLOBAL.gtid_executed")))
    assert (status, found["gtid_count"]) == (3, 1)


def test_names_in_another_letter_case_are_the_same_names(
    pair56: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair56.a, pair56.b
    faults.restart_with(b, "--lower-case-table-names=1")
    a.execute(
        "CREATE DATABASE Shop",
        "CREATE TABLE Shop.Article (id INT PRIMARY KEY)",
        "SET SESSION binlog_format = 'ROW'",
        "INSERT INTO Shop.Article VALUES (1)",
        "UPDATE Shop.Article SET id = 2",
        "DROP TABLE Shop.Article",
    )
    b.execute(b.dialect.stop_replica, "SET GLOBAL binlog_format = 'ROW'", b.dialect.start_replica)
    pair56.settle()
    status, found = compared(capsys, pair56, "--everywhere")
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    assert found["compared"]["compared_count"] == 5


def test_an_old_primary_whose_tail_was_declared_empty_elsewhere_is_reported(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = faults.returned_primary(pair97)
    assert rows(fault.old, "returned.t") != rows(fault.new, "returned.t")
    status, found = answer(capsys, "pair", fault.old.dsn, fault.new.dsn)
    [finding] = found["findings"]
    assert (status, finding["code"], finding["severity"]) == (1, "E4", "warning")
    assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.tail)
    new = f"{fault.new.host}:{fault.new.port}"
    assert f"committed an empty transaction under the GTID on {new}" in finding["explanation"]


def test_healthy_servers_whose_contents_can_never_be_compared_are_ok(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    faults.restart_with(b, "--log-replica-updates=OFF")
    a.execute("CREATE DATABASE d")
    pair97.settle()
    assert all_connected(pair97)  # the receiver of a comes back a second later
    status, found = answer(capsys, "pair", a.dsn, b.dsn)
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    [remark] = found["contents"][0]["remarks"]
    assert remark["server"] == f"{b.host}:{b.port}"
    assert "never in these logs: 1 GTID, " in remark["reason"]
    for server in (a, b):
        server.execute(
            server.dialect.stop_replica, "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0"
        )
    for server in (a, b):
        server.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", server.dialect.start_replica)
    a.execute("CREATE DATABASE e")
    pair97.settle()
    status, found = answer(capsys, "pair", a.dsn, b.dsn)
    assert (status, found["unknown"]) == (1, [])  # C3: it replicates by file position
    assert {each["code"] for each in found["findings"]} == {"C3", "C10"}
    reasons = {each["reason"] for each in found["contents"][0]["remarks"]}
    assert reasons == {"it cannot send transactions by GTID (gtid_mode is ON_PERMISSIVE)"}


def test_content_finds_a_gtid_made_by_hand_without_a_memory(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    made = faults.hand_made_gtid(pair97, distance=20)
    faults.reach(made, distance=20)
    status, found = answer(capsys, "pair", pair97.a.dsn, pair97.b.dsn, "--content")
    [finding] = found["findings"]
    assert (status, finding["code"], finding["severity"], finding["grade"]) == (
        *(2, "E4", "critical"),
        "proved",
    )
    assert finding["gtid_set"] == made.gtid
    [contents] = found["contents"]
    held = GtidSet.parse(str(pair97.b.value("@@GLOBAL.gtid_executed")))
    assert contents["newest_count"] == contents["compared_count"] == held.gtid_count
    _equal_text_with_two_results(pair97, capsys)


def _equal_text_with_two_results(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Commit two statements by hand on b, and the same on a: later, and in another time zone."""
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE clock", "CREATE TABLE clock.t (id INT PRIMARY KEY, at TIMESTAMP)")
    pair.settle()
    a.execute(a.dialect.stop_replica)
    uuid, format_ = a.value("@@GLOBAL.server_uuid"), "SET SESSION binlog_format = 'STATEMENT'"
    own = GtidSet.parse(str(a.value("@@GLOBAL.gtid_executed"))).from_uuid(UUID(uuid))
    statements = ["INSERT INTO clock.t VALUES (1, NOW())"]
    statements.append("INSERT INTO clock.t VALUES (2, '2026-01-01 00:00:00')")
    at_one_time = "SET TIMESTAMP = 1700000000"
    wanted = []
    for number, sql in enumerate(statements, own.gtid_count + 1):
        wanted.append(f"{uuid}:{number}")
        b.execute(format_, at_one_time, f"SET gtid_next = '{wanted[-1]}'", sql)
    a.execute(format_, statements[0])
    a.execute(format_, at_one_time, "SET time_zone = '+05:00'", statements[1])
    a.execute(a.dialect.start_replica)
    pair.settle()
    rows = [server.query("SELECT UNIX_TIMESTAMP(at) FROM clock.t") for server in (a, b)]
    assert all(one != other for one, other in zip(*rows, strict=True))
    for gtid in wanted:
        status, found = answer(capsys, "binlog", "compare", a.dsn, b.dsn, "--only", gtid)
        [finding] = found["findings"]
        assert (status, finding["code"], finding["severity"]) == (2, "E4", "critical")
        assert (finding["grade"], finding["gtid_set"]) == ("likely", gtid)
        assert "compare the rows" in finding["explanation"]
        assert "commit times are not known" not in finding["explanation"]


def cascade(source: Server, *, by: str) -> None:
    source.execute(
        "CREATE DATABASE fk",
        "CREATE TABLE fk.p (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE fk.c (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES fk.p (id) ON DELETE CASCADE)",
        "INSERT INTO fk.p VALUES (1, 1)",
        "INSERT INTO fk.c VALUES (1, 1), (2, 1)",
        by,
    )


def test_rows_that_only_a_replica_cascades_to_are_reported(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """REPLACE deletes a parent: 9.7.4 cascades to its children where rows are applied, only there."""
    a, b = pair97.a, pair97.b
    cascade(a, by="REPLACE INTO fk.p VALUES (1, 2)")
    pair97.settle()
    assert (rows(a, "fk.c"), rows(b, "fk.c")) == ([(1, 1), (2, 1)], [])
    status, found = answer(capsys, "pair", a.dsn, b.dsn, "--content")
    finding = skipped(found)
    assert (status, found["unknown"]) == (1, [])
    assert "logged more rows of 1 transaction than" in finding["explanation"]
    assert finding["strategies"] == []
    status, found = compared(capsys, pair97, "--everywhere")
    assert (status, skipped(found)["gtid_set"]) == (1, finding["gtid_set"])


def test_rows_that_innodb_cascades_to_are_in_neither_log(
    installation97: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benign twin: an event says that InnoDB cascades, and the replica logs nothing of it."""
    in_innodb = Settings(extra=("--innodb-native-foreign-keys=ON",))
    plan = TopologyPlan(("a", "b"), (Link("a", "b"),), {"a": in_innodb})
    with running(installation97, plan) as topology:
        a, b = topology["a"], topology["b"]
        cascade(a, by="REPLACE INTO fk.p VALUES (1, 2)")
        topology.settle()
        assert rows(a, "fk.c") == rows(b, "fk.c") == []
        status, found = answer(capsys, "pair", a.dsn, b.dsn, "--content")
        assert (status, found["findings"], found["unknown"]) == (0, [], [])
