"""When real servers delete binary logs, next to what gtid-audit said before."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Topology, TopologyPlan
from gtid_audit.cli import run
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.policy import Policy

pytestmark = pytest.mark.mysql
KEPT_SECONDS = 4


@pytest.fixture
def stopped97(installation97: Installation) -> Iterator[Topology]:
    """a and its replica b, which is stopped; a keeps its logs for a few seconds."""
    settings = Settings(extra=(f"--binlog-expire-logs-seconds={KEPT_SECONDS}",))
    plan = TopologyPlan(
        names=("a", "b"), links=(Link(source="a", replica="b"),), settings={"a": settings}
    )
    with shapes.running(installation97, plan) as topology:
        yield topology


def audited(topology: Topology) -> dict[str, Finding]:
    audit = audit_cluster(collect_cluster("live", targets_of(topology)), Policy())
    return {each.code: each for each in audit.findings}


def logs_of(server: Server) -> list[str]:
    return [str(row[0]) for row in server.query("SHOW BINARY LOGS")]


def stop_with_work_waiting(topology: Topology) -> None:
    """Let b need the log of a that was in use, which a has closed since."""
    a, b = topology["a"], topology["b"]
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    topology.settle()
    b.execute(b.dialect.stop_replica)
    a.execute("INSERT INTO d.t VALUES (1)", "FLUSH BINARY LOGS")


def test_a_rotation_deletes_the_log_after_the_deadline_and_not_before(stopped97: Topology) -> None:
    a = stopped97["a"]
    stop_with_work_waiting(stopped97)
    needed = logs_of(a)[0]
    found = audited(stopped97)
    assert found.keys() == {"A7", "P3"}
    deadline = found["P3"].deadline
    assert deadline is not None
    assert deadline == found["A7"].deadline
    a.execute("FLUSH BINARY LOGS")
    assert needed in logs_of(a), "before the deadline no rotation deletes it"
    time.sleep(KEPT_SECONDS + 1)
    assert needed in logs_of(a), "it goes with a rotation, not by itself"
    again = audited(stopped97)
    assert again["P3"].deadline == deadline
    assert "the next rotation (FLUSH LOGS, a restart, max_binlog_size)" in again["P3"].explanation
    a.execute("FLUSH BINARY LOGS")
    assert needed not in logs_of(a)
    assert "P1" in audited(stopped97)


@contextmanager
def with_stopped_replica(request: pytest.FixtureRequest, family: str) -> Iterator[Topology]:
    """Run a and its replica b, which is stopped, so that it needs what a logs from now on."""
    installation = request.getfixturevalue(f"installation{family.replace('.', '')}")
    plan = TopologyPlan(names=("a", "b"), links=(Link(source="a", replica="b"),))
    with shapes.running(installation, plan) as topology:
        topology["b"].execute(topology["b"].dialect.stop_replica)
        yield topology


def seconds_early(topology: Topology, file: str) -> float:
    """Return how long before the file of a log changed last gtid-audit says that it was closed."""
    read = collect_cluster("live", targets_of(topology)).last[0].history_evidence
    assert read is not None
    assert read.unread == ""
    [reach] = read.reaches
    assert reach.file == file
    assert reach.closed_at is not None
    changed_at = (Path(topology["a"].datadir) / file).stat().st_mtime
    return changed_at - reach.closed_at.timestamp()


@pytest.mark.parametrize(
    "closing", ["rotation", "shutdown", pytest.param("crash", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("family", ["9.7", pytest.param("5.6", marks=pytest.mark.slow)])
def test_the_time_of_a_closed_log_is_that_of_its_file(
    family: str, closing: str, request: pytest.FixtureRequest
) -> None:
    """A server deletes by the time of the file: each way in which a log can end is tried."""
    with with_stopped_replica(request, family) as topology:
        a = topology["a"]
        a.execute("CREATE DATABASE d")
        time.sleep(1.1)
        if closing == "rotation":
            a.execute("FLUSH BINARY LOGS")
        else:
            a.stop() if closing == "shutdown" else a.kill()
            time.sleep(2.1)  # a shutdown closes the log, a restart writes to it after a crash
            a.start()
        assert abs(seconds_early(topology, logs_of(a)[-2])) <= 1.0


@pytest.mark.parametrize("days", [10, -10])
@pytest.mark.parametrize("family", ["9.7", pytest.param("5.6", marks=pytest.mark.slow)])
def test_a_session_cannot_move_the_time_of_a_log(
    family: str, days: int, request: pytest.FixtureRequest
) -> None:
    """The events of a rotation have the time of its session: no deadline is later than the file."""
    with with_stopped_replica(request, family) as topology:
        a = topology["a"]
        a.execute("SET GLOBAL max_binlog_size = 4096", "CREATE DATABASE d")
        a.execute("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(2000))")
        a.execute(
            f"SET timestamp = UNIX_TIMESTAMP() + {days * 86_400}",
            *["INSERT INTO d.t (t) VALUES (REPEAT('x', 1500))"] * 8,
        )
        assert len(logs_of(a)) > 1
        early = seconds_early(topology, logs_of(a)[0])
        assert early >= -1.0, "never later than the server counts"
        if family == "9.7":
            assert early <= 2.0, "the server's own time of the last transaction is known"


def test_logs_that_were_not_read_are_not_kept_for_ever(
    stopped97: Topology, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = stopped97["a"], stopped97["b"]
    stop_with_work_waiting(stopped97)
    a.execute("CREATE USER half@'127.0.0.1'", "GRANT REPLICATION CLIENT ON *.* TO half@'127.0.0.1'")
    offered = str(b.value("@@GLOBAL.gtid_executed"))
    capsys.readouterr()
    run(["handshake", "--offered", offered, a.dsn.replace("root@", "half@"), "--json"])
    [answer] = json.loads(capsys.readouterr().out)["answers"]
    assert answer["served_until"] is None
    assert "until when" in " ".join(answer["doubts"])
    run(["handshake", "--offered", offered, a.dsn.replace("root@", "half@")])
    shown = capsys.readouterr().out
    assert "no setting limits it" not in shown
    assert "was not read" in shown


def _of(answers: list[dict[str, str]], server: Server) -> dict[str, str]:
    [found] = [each for each in answers if each["source"].endswith(f":{server.port}")]
    return found


def test_a_set_is_served_until_then(
    stopped97: Topology, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = stopped97["a"], stopped97["b"]
    stop_with_work_waiting(stopped97)
    offered = str(b.value("@@GLOBAL.gtid_executed"))
    capsys.readouterr()
    assert run(["handshake", "--offered", offered, a.dsn, b.dsn, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    of_a, of_b = (_of(answers, server) for server in (a, b))
    assert of_a["served_from"] == logs_of(a)[0]
    found = audited(stopped97)["P3"].deadline
    assert found is not None
    assert of_a["served_until"] == found.isoformat(timespec="microseconds").replace("+00:00", "Z")
    # b would send nothing now, and its next transactions for 30 days.
    assert of_b["fetched"] == ""
    assert of_b["served_from"] == logs_of(b)[-1]
    assert run(["handshake", "--offered", offered, a.dsn, b.dsn]) == 0
    text = capsys.readouterr().out
    assert f"({logs_of(a)[0]})" in text
    b.execute("SET GLOBAL binlog_expire_logs_seconds = 0")
    assert run(["handshake", "--offered", offered, b.dsn]) == 0
    assert "no setting limits it" in capsys.readouterr().out
