"""The case nobody detects, on real servers: numbers lost in a crash and given again."""

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit.cli import run
from tests.gtid_audit.build import run_cli


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 2, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def audited(pair: Pair, *options: str) -> tuple[int, dict[str, Any]]:
    done = run_cli("pair", pair.a.dsn, pair.b.dsn, "--json", *options)
    return done.returncode, document(done)


def is_green(replica: Server) -> bool:
    status = replica.replica_status()
    threads = (status["Replica_IO_Running"], status["Replica_SQL_Running"])
    errors = (status["Last_IO_Errno"], status["Last_SQL_Errno"])
    return threads == ("Yes", "Yes") and errors == (0, 0)


def rows(server: Server) -> list[Any]:
    return server.query("SELECT id, note FROM lost.t ORDER BY id")


def crash_without_loss(pair: Pair) -> None:
    pair.a.execute("CREATE DATABASE before_crash")
    pair.settle()
    pair.a.kill()
    pair.a.start()
    pair.a.execute("CREATE DATABASE after_crash")
    pair.settle()


@pytest.mark.slow
def test_only_reuse_is_found_and_it_is_found_with_both_contents(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    b.restart()
    b.execute("CREATE DATABASE after_restart")
    crash_without_loss(pair97)
    for options in ((), ("--content",)):
        status, healthy = audited(pair97, *options)
        assert (status, healthy["findings"], healthy["unknown"]) == (0, [], [])
        [compared] = healthy["contents"]
        assert compared["cluster"] == "pair"
        assert compared["differing_count"] == 0
        assert compared["compared_count"] >= 2
        assert {start["server"] for start in compared["starts"]} == {
            f"{server.host}:{server.port}" for server in (a, b)
        }

    fault = faults.reused_numbers(pair97)
    assert is_green(a)
    assert is_green(b)
    assert a.value("@@GLOBAL.gtid_executed") == b.value("@@GLOBAL.gtid_executed")
    assert rows(a) != rows(b)

    status, blind = audited(pair97, "--no-content")
    assert (status, blind["findings"]) == (0, [])
    assert blind["contents"] is None
    for options in ((), ("--content",)):
        status, found = audited(pair97, *options)
        [finding] = found["findings"]
        assert (status, found["unknown"]) == (2, [])
        assert (finding["code"], finding["severity"], finding["grade"]) == (
            "E4",
            "critical",
            "proved",
        )
        assert finding["source"] == f"{a.host}:{a.port}"
        assert finding["replica"] == f"{b.host}:{b.port}"
        assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.reused)
        names = [each["name"] for each in finding["strategies"]]
        assert names == ["data_repair", "data_repair_on_source", "reclone"]
        quoted = finding["evidence"][1:]
        assert len(quoted) == 6
        for each in quoted:
            note = "'after the crash'" if each["read_from"] == finding["source"] else "NULL"
            [moment] = re.findall(r"committed (\S+ \S+)", each["value"])
            ago = datetime.now(UTC) - datetime.fromisoformat(moment).replace(tzinfo=UTC)
            assert timedelta() < ago < timedelta(minutes=10)
            assert re.search(rf"lost\.t: inserted \([0-9]+, {note}\)", each["value"])

    text = run_cli("pair", a.dsn, b.dsn).stdout
    assert "E4 same GTID, different content" in text
    assert "Content compared:" in text
    _live_logs_and_files_show_the_same(pair97, fault, capsys)


def _live_logs_and_files_show_the_same(
    pair: Pair, fault: faults.ReusedNumbers, capsys: pytest.CaptureFixture[str]
) -> None:
    def compare(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        status = run(["binlog", "compare", *arguments, "--json"])
        return status, json.loads(capsys.readouterr().out)

    a, b = pair.a, pair.b
    reused = [str(gtid) for gtid in GtidSet.parse(fault.reused).gtids()]
    indexes = [str(server.datadir / "binlog.index") for server in (a, b)]
    for operands in ((a.dsn, b.dsn), indexes, (indexes[0], b.dsn)):
        for options in ((), ("--everywhere",)):
            status, found = compare(*operands, *options)
            assert (status, found["unknown"]) == (2, [])
            assert [each["gtid"] for each in found["differences"]] == reused
            assert all(each["proved"] for each in found["differences"])
            assert [each["code"] for each in found["findings"]] == ["E4"]
    _, live = compare(a.dsn, b.dsn)
    assert [(row["left"]["note"], row["right"]["note"]) for row in live["rows"]["rows"]] == [
        ("after the crash", None)
    ] * len(reused)
    assert [row["left"]["id"] for row in live["rows"]["rows"]] == [
        str(each[0]) for each in rows(b) if each[1] is None
    ]
    status, agreed = compare(*indexes, "--only", fault.later)
    assert (status, agreed["gtid_count"]) == (0, 2)
    shown = run_cli("binlog", "compare", a.dsn, b.dsn).stdout
    assert "Changed rows, as they are now: 3 rows not the same" in shown


@pytest.mark.slow
def test_before_commit_times_content_alone_tells(pair56: Pair) -> None:
    crash_without_loss(pair56)
    status, healthy = audited(pair56)
    assert (status, healthy["findings"], healthy["unknown"]) == (0, [], [])
    fault = faults.reused_numbers(pair56)
    status, found = audited(pair56)
    [finding] = found["findings"]
    assert (status, finding["code"], finding["grade"]) == (2, "E4", "likely")
    assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.reused)


@pytest.mark.slow
@pytest.mark.parametrize(("binlog_format", "repeated"), [("ROW", 6), ("STATEMENT", 12)])
def test_before_commit_times_the_clock_shows_a_job_that_started_again(
    pair56: Pair, binlog_format: str, repeated: int
) -> None:
    """The first reused GTIDs have the rows, or the words, that were lost; later ones have not."""
    a, b = pair56.a, pair56.b
    use = f"SET GLOBAL binlog_format = '{binlog_format}'"
    a.execute(use)
    b.execute(b.dialect.stop_replica, use, b.dialect.start_replica)
    lost = faults.lost_tail_crash(pair56, lost_count=12)
    a.execute(use)
    again = ["INSERT INTO lost.t () VALUES ()"] * repeated
    again += ["INSERT INTO lost.t (note) VALUES ('new')"] * (12 - repeated)
    assert faults.commit(a, *again) == lost.lost
    faults.commit(a, "CREATE DATABASE later")
    b.execute(b.dialect.start_replica)
    pair56.settle()
    status, found = audited(pair56)
    [finding] = found["findings"]
    assert (status, finding["code"], finding["severity"]) == (2, "E4", "critical")
    reused = GtidSet.parse(lost.lost)
    expected = reused if binlog_format == "STATEMENT" else reused - reused.first(repeated)
    assert GtidSet.parse(finding["gtid_set"]) == expected


def test_what_may_not_be_read_is_unknown(pair97: Pair) -> None:
    for server in pair97.servers.values():
        server.execute("SET SESSION sql_log_bin = 0", "CREATE USER looker@'%'")
        server.execute(
            "SET SESSION sql_log_bin = 0",
            "GRANT REPLICATION CLIENT, SELECT ON *.* TO looker@'%'",
        )
    for server, name in ((pair97.a, "something"), (pair97.b, "other")):
        server.execute(f"CREATE DATABASE {name}")
    pair97.settle()
    dsns = [f"mysql://looker@{server.host}:{server.port}/" for server in pair97.servers.values()]
    done = run_cli("pair", *dsns, "--json")
    found = document(done)
    assert (done.returncode, found["verdict"]) == (3, "UNKNOWN")
    unknown = [each for each in found["unknown"] if each["fact"] == "content of transactions"]
    assert len(unknown) == 2
    assert all("REPLICATION SLAVE" in each["reason"] for each in unknown)


@pytest.mark.slow
def test_what_is_purged_can_never_be_compared_and_is_a_remark(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE first")
    pair97.settle()
    b.execute("FLUSH BINARY LOGS")
    current, _ = b.binary_log_position()
    b.execute(f"PURGE BINARY LOGS TO '{current}'")
    status, found = audited(pair97)
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    remarks = [each for contents in found["contents"] for each in contents["remarks"]]
    [remark] = [each for each in remarks if "never in these logs" in each["reason"]]
    assert remark["server"] == f"{b.host}:{b.port}"
    assert f"1 GTID, {a.value('@@GLOBAL.server_uuid')}:1" in remark["reason"]
    text = run_cli("pair", a.dsn, b.dsn).stdout
    assert f"Not compared: {b.host}:{b.port}: purged, or never in these logs: 1 GTID" in text
    assert "all the same" not in text

    a.execute("FLUSH BINARY LOGS", "DO SLEEP(4)", "FLUSH BINARY LOGS", "DO SLEEP(1)")
    current, _ = a.binary_log_position()
    a.execute(f"PURGE BINARY LOGS TO '{current}'")
    status, found = audited(pair97)
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    [contents] = found["contents"]
    # The other server has committed nothing: around its restart, there is nothing to compare.
    assert {each["server"] for each in contents["remarks"]} == {f"{a.host}:{a.port}"}
    assert all("is purged" in each["reason"] for each in contents["remarks"])

    status, found = audited(pair97, "--content")
    assert (status, found["findings"]) == (3, []), "asked for, and cannot be answered"
    reason = "the log that began at its latest restart is purged"
    unknown = [(each["server"], each["reason"]) for each in found["unknown"]]
    assert unknown == [(f"{a.host}:{a.port}", reason)], "b has no transactions of its own"


@pytest.mark.parametrize(
    ("shape", "binlog_format"),
    [
        pytest.param("pair56", "MIXED", marks=pytest.mark.slow),
        ("pair56", "STATEMENT"),
        ("pair97", "STATEMENT"),
    ],
)
def test_a_temporary_table_of_which_a_replica_logs_less_is_no_difference(
    shape: str, binlog_format: str, request: pytest.FixtureRequest
) -> None:
    """A replica that logs rows leaves it out, or adds IF EXISTS and the schema."""
    pair: Pair = request.getfixturevalue(shape)
    a = pair.a
    a.execute("CREATE DATABASE z")
    a.execute(
        f"SET SESSION binlog_format = '{binlog_format}'",
        "USE z",
        "CREATE TEMPORARY TABLE tmp (id INT)",
        "DROP TEMPORARY TABLE tmp",
    )
    pair.settle()
    status, found = audited(pair, "--content")
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
