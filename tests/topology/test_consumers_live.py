"""P4 on real servers: what it says of a consumer is what happens to a real one."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent

from compose.native import load, shapes
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit.cli import run
from tests.server_pool import Stock, kept
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.adapters.consumer_source import ConsumerSource
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.policy import Policy
from topology.readings.set_in_text import set_in_text

pytestmark = [
    pytest.mark.mysql,
    # mysql-replication connects with an old name of the option.
    pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning"),
]
SECONDS = 5


@pytest.fixture(scope="module")
def pairs97(installation97: Installation) -> Iterator[Stock[Pair]]:
    """Pairs that had no tag: else mysql-replication cannot read their Previous_gtids event."""
    yield from kept(lambda: shapes.pair(installation97))


@pytest.fixture(params=["9.7", "5.6"])
def pair(request: pytest.FixtureRequest) -> Pair:
    """A pair that both wrote to."""
    made: Pair = request.getfixturevalue(f"pair{request.param.replace('.', '')}")
    made.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    made.settle()
    made.b.execute("INSERT INTO d.t VALUES (1)")
    made.settle()
    return made


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def write(pair: Pair, first: int, count: int = 3) -> None:
    for number in range(first, first + count):
        pair.a.execute(f"INSERT INTO d.t VALUES ({number})")
    pair.settle()


def purge(pair: Pair, server: Server, marker: int) -> None:
    """Delete all of a server's logs but one, which has one more transaction."""
    server.execute("FLUSH BINARY LOGS")
    write(pair, marker, 1)
    last = [str(row[0]) for row in server.query("SHOW BINARY LOGS")][-1]
    server.execute(f"PURGE BINARY LOGS TO '{last}'")


def audit_of(pair: Pair, *consumers: ConsumerSource) -> ClusterAudit:
    return audit_cluster(collect_cluster("live", targets_of(pair), consumers=consumers))


def offers(gtids: GtidSet, server: str | None = None) -> ConsumerSource:
    """Return a backup: its set does not change."""
    return ConsumerSource("cdc", server, gtid_set=gtids)


def only(audit: ClusterAudit) -> Finding:
    [found] = [each for each in audit.findings if each.severity is not Severity.INFO]
    assert found.code == "P4"
    return found


def received(server: Server, offered: GtidSet) -> GtidSet | str:
    """Return what a real consumer receives, or the error with which it is refused."""
    way: dict[str, Any] = {"host": server.host, "port": server.port, "user": "root", "password": ""}
    stream = BinLogStreamReader(
        connection_settings=way, server_id=4711, auto_position=str(offered), blocking=False
    )
    try:
        return GtidSet.union_of(
            GtidSet.parse(each.gtid) for each in stream if isinstance(each, GtidEvent)
        )
    except pymysql.MySQLError as error:
        return f"{error.args[0]}: {error.args[1]}"
    finally:
        stream.close()


def test_a_healthy_consumer_gives_no_finding_and_gets_all_it_needs(pair: Pair) -> None:
    before = executed(pair.a)
    write(pair, 10)
    for offered in (before, executed(pair.a)):
        for server in (pair.a, pair.b):
            audit = audit_of(pair, offers(offered, server.name))
            assert (audit.verdict, audit.unknown) == (Verdict.OK, ())
            assert received(server, offered) == executed(server) - offered


def test_a_purge_on_its_server_is_critical_and_on_the_other_one_a_warning(pair: Pair) -> None:
    a, b = pair.a, pair.b
    before = executed(a)
    write(pair, 10)
    needed = executed(a) - before
    purge(pair, a, 20)
    refused = received(a, before)
    assert isinstance(refused, str)
    assert refused.startswith("1236: ")
    found = only(audit_of(pair, offers(before, "a")))
    assert (found.severity, found.grade) == (Severity.CRITICAL, Grade.PROVED)
    assert (found.source, found.replica, found.gtid_set) == ("a", "cdc", needed)
    assert [each.name for each in found.strategies] == ["move_consumer", "new_snapshot"]
    # The text is the one that the consumer gets.
    [text] = [each.value for each in found.evidence if each.fact.startswith("a replica with")]
    assert refused.removeprefix("1236: ") in text
    failing_over = only(audit_of(pair, offers(before, "b")))
    assert (failing_over.severity, failing_over.source) == (Severity.WARNING, "a")
    assert received(b, before) == executed(b) - before, "as the first finding says"


def test_a_purge_on_both_leaves_no_server_for_it(pair: Pair) -> None:
    before = executed(pair.a)
    write(pair, 10)
    for number, server in enumerate((pair.a, pair.b)):
        purge(pair, server, 20 + number)
    found = only(audit_of(pair, offers(before)))
    assert (found.severity, found.source) == (Severity.CRITICAL, None)
    assert found.explanation.startswith("No server serves the set of cdc.")
    assert all(isinstance(received(each, before), str) for each in (pair.a, pair.b))
    newer = GtidSet.union_of(
        GtidSet.parse(each.value("@@GLOBAL.gtid_purged")) for each in (pair.a, pair.b)
    )
    assert audit_of(pair, offers(newer)).verdict is Verdict.OK, "a newer backup is served"
    assert received(pair.a, newer) == executed(pair.a) - newer


def test_a_consumer_that_is_ahead_is_refused_by_the_server_that_lost_it(pair: Pair) -> None:
    uuid = pair.a.value("@@GLOBAL.server_uuid")
    ahead = executed(pair.a) | GtidSet.parse(f"{uuid}:1-500")
    found = only(audit_of(pair, offers(ahead, "a")))
    assert (found.severity, found.grade) == (Severity.CRITICAL, Grade.PROVED)
    assert found.gtid_set == ahead - executed(pair.a)
    refused = received(pair.a, ahead)
    assert isinstance(refused, str)
    assert "more GTIDs" in refused
    # The other server accepts it, and no server reports what only the consumer has.
    accepted = only(audit_of(pair, offers(ahead, "b")))
    assert accepted.severity is Severity.WARNING
    assert received(pair.b, ahead) == GtidSet()


def test_a_set_of_another_cluster_is_accepted_by_both_and_reported(pair: Pair) -> None:
    foreign = GtidSet.parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100")
    found = only(audit_of(pair, offers(foreign)))
    assert (found.severity, found.gtid_set) == (Severity.WARNING, foreign)
    assert received(pair.a, foreign) == executed(pair.a), "it would read everything"
    policy = Policy(allowed_uuids=frozenset(each.uuid for each in foreign.tsids))
    snapshot = collect_cluster("live", targets_of(pair), consumers=[offers(foreign)])
    assert audit_cluster(snapshot, policy).verdict is Verdict.OK


def test_a_log_that_is_due_is_a_warning_until_it_is_gone(pair97: Pair) -> None:
    a = pair97.a
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    before = executed(a)
    write(pair97, 10)
    a.execute("FLUSH BINARY LOGS")
    for server in (a, pair97.b):
        server.execute("SET GLOBAL binlog_expire_logs_seconds = 1")
    time.sleep(1.1)
    audit = audit_of(pair97, offers(before, "a"))
    [found] = [each for each in audit.findings if each.code == "P4"]
    assert (found.severity, found.grade) == (Severity.WARNING, Grade.LIKELY)
    assert found.deadline is not None
    assert [each.name for each in found.strategies] == ["raise_retention", "new_snapshot"]
    assert received(a, before) == executed(a) - before
    needed = str(a.query("SHOW BINARY LOGS")[0][0])
    deadline = time.monotonic() + 30
    while str(a.query("SHOW BINARY LOGS")[0][0]) == needed:
        # The server keeps a log that a dump thread reads: that of the consumer ends a little later.
        assert time.monotonic() < deadline
        a.execute("FLUSH BINARY LOGS")
        time.sleep(0.1)
    gone = [each for each in audit_of(pair97, offers(before, "a")).findings if each.code == "P4"]
    assert [each.severity for each in gone] == [Severity.CRITICAL]
    assert gone[0].id == found.id, "one finding, which has become worse"
    assert isinstance(received(a, before), str)


# -- as a person uses it --------------------------------------------------------------------------


def fleet_file(path: Path, pair: Pair, *consumers: str) -> str:
    lines = ["defaults: {user: root}", "clusters:", "  - name: shop", "    servers:"]
    lines += [
        f"      - {{name: {each.name}, host: {each.host}, port: {each.port}}}"
        for each in (pair.a, pair.b)
    ]
    lines += ["    consumers:", *(f"      - {each}" for each in consumers)]
    file = path / "fleet.yaml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


Answer = tuple[int, dict[str, Any]]


@pytest.fixture
def answered(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    def audit(*arguments: str) -> Answer:
        content = ("--no-content",) if "--snapshots" not in arguments else ()
        status = run(("audit", *arguments, "--json", *content))
        return status, json.loads(capsys.readouterr().out)

    return audit


@pytest.mark.slow
def test_consumers_of_a_fleet_file_are_read_and_each_failure_is_unknown(
    pair97: Pair,
    tmp_path: Path,
    answered: Callable[..., Answer],
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair97.a.execute("CREATE DATABASE d")
    pair97.settle()
    offered = str(executed(pair97.a))
    (tmp_path / "offset.json").write_text(json.dumps({"pos": 4, "gtids": offered}))
    fleet = fleet_file(
        tmp_path,
        pair97,
        '{name: file, set: "@offset.json", server: a}',
        "{name: command, command: [cat, offset.json]}",
    )
    assert answered("--fleet", fleet)[0] == 0
    fleet = fleet_file(
        tmp_path,
        pair97,
        '{name: hangs, command: [sleep, "60"]}',
        "{name: fails, command: [sh, -c, 'echo no route >&2; exit 7']}",
        "{name: rubbish, command: [echo, hello]}",
        '{name: absent, set: "@none"}',
    )
    status, document = answered("--fleet", fleet)
    assert status == 3
    assert {each["server"]: each["reason"] for each in document["unknown"]} == {
        "absent": f"{tmp_path}/none: No such file or directory",
        "fails": "the command sh: exit status 7: no route",
        "hangs": f"the command sleep: no answer within {SECONDS} seconds",
        "rubbish": "the command echo: expected a UUID at character 0: [HERE]hello\\n",
    }
    runs = str(tmp_path / "runs")
    assert run(("snapshot", "--fleet", fleet, "--out", runs, "--no-content")) == 3
    assert "4 facts not read" in capsys.readouterr().err


def test_a_stored_run_reports_the_same(
    pair97: Pair,
    tmp_path: Path,
    answered: Callable[..., Answer],
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair97.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    (tmp_path / "offset.txt").write_text(str(executed(pair97.a)))
    write(pair97, 10)
    purge(pair97, pair97.a, 20)
    fleet = fleet_file(tmp_path, pair97, '{name: cdc, set: "@offset.txt", server: a}')
    runs = str(tmp_path / "runs")
    status, live = answered("--fleet", fleet)
    assert status == 2
    assert run(("snapshot", "--fleet", fleet, "--out", runs, "--no-content")) == 0
    capsys.readouterr()
    (tmp_path / "offset.txt").unlink()
    status, stored = answered("--snapshots", runs, "--fleet", fleet)
    assert status == 2
    shown = [
        [
            {
                **each,
                **dict.fromkeys(("first_seen", "last_seen", "evidence", "deadline"), ""),
                "explanation": re.sub(r"[0-9:-]{10} [0-9:]{8} UTC", "then", each["explanation"]),
            }
            for each in found["findings"]
            if each["code"] == "P4"
        ]
        for found in (live, stored)
    ]
    assert shown[0] == shown[1] != []


def test_a_real_dump_is_read_from_its_head(
    pair97: Pair, mysql_clients: Clients, tmp_path: Path, answered: Callable[..., Answer]
) -> None:
    a = pair97.a
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    way = ("--user=root", f"--host={a.host}", f"--port={a.port}", "--protocol=TCP")
    dump = tmp_path / "dump.sql"
    with dump.open("wb") as file:
        subprocess.run(
            [*mysql_clients.command("mysqldump"), *way, "--single-transaction", "d"],
            stdout=file,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )
    assert set_in_text(dump.read_text(), "dump") == executed(a)
    fleet = fleet_file(tmp_path, pair97, '{name: backup, set: "@dump.sql"}')
    assert answered("--fleet", fleet)[0] == 0
    write(pair97, 10)
    for number, server in enumerate((a, pair97.b)):
        purge(pair97, server, 20 + number)
    status, document = answered("--fleet", fleet)
    assert status == 2
    assert [each["code"] for each in document["findings"]] == ["P4"]


def test_handshake_shows_until_when_each_server_can_send_it(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair97.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    (tmp_path / "offset.txt").write_text(str(executed(pair97.a)))
    write(pair97, 10)
    purge(pair97, pair97.a, 20)
    fleet = fleet_file(tmp_path, pair97, '{name: cdc, set: "@offset.txt"}')
    arguments = ("--fleet", fleet, "--cluster", "shop", "--consumer", "cdc")
    assert run(("handshake", *arguments, "--json")) == 1
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert [(each["source"], each["outcome"]) for each in answers] == [
        ("a", "refused"),
        ("b", "served"),
    ]
    assert answers[1]["served_until"] is not None
    assert run(("handshake", *arguments)) == 1
    assert "1236 purged" in capsys.readouterr().out


@pytest.mark.slow
def test_a_consumer_of_busy_servers_gives_no_finding(
    pair97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    """Its set is read from a itself: it is never behind, and always ahead of what b has."""
    program = tmp_path / "set.py"
    program.write_text(
        "import pymysql\n"
        f"way = pymysql.connect(host={pair97.a.host!r}, port={pair97.a.port}, user='root')\n"
        "cursor = way.cursor()\n"
        "cursor.execute('SELECT @@GLOBAL.gtid_executed')\n"
        "print(cursor.fetchone()[0])\n"
    )
    consumers = [
        ConsumerSource(name, server, command=(sys.executable, str(program)))
        for name, server in (("any", None), ("of a", "a"), ("of b", "b"))
    ]
    with load.write_load([pair97.a, pair97.b], clients=mysql_clients, pause_seconds=0.002):
        for _ in range(4):
            audit = audit_of(pair97, *consumers)
            assert [each.code for each in audit.findings if each.code == "P4"] == []
            assert [each for each in audit.unknown if "set" in each.fact] == []
