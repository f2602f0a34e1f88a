"""S1 and S2 of audits on real servers: what is reported, and what looks like it and is not."""

import json
import shlex
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compose.native import load
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, TopologyPlan, follow_by_name, running, wait_for
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.cluster_definitions import look_at_definitions
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.test_schema_drift_live import (
    differences,
    executed,
    name_of,
    not_logged,
)
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import CollectLimits, collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.policy import Policy
from topology.readings.dialect import dialect_of
from topology.readings.version import ServerVersion

pytestmark = pytest.mark.mysql
BOTH = pytest.mark.parametrize("version", ["9.7", "5.6"])
MOSTLY_97 = pytest.mark.parametrize("version", ["9.7", pytest.param("5.6", marks=pytest.mark.slow)])


@pytest.fixture
def pair(version: str, request: pytest.FixtureRequest) -> Pair:
    """A dual-primary pair with a table."""
    made: Pair = request.getfixturevalue("pair97" if version == "9.7" else "pair56")
    made.a.execute(
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE app.u (id INT PRIMARY KEY, a INT)",
    )
    wait_for(made.b, executed(made.a))
    return made


def audit(*servers: Server, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """Audit with definitions; return the document."""
    command = "pair" if len(servers) == len(("a", "b")) else "audit"
    names = (each.dsn for each in servers)
    done = run_cli(command, *names, "--definitions", "--no-content", "--json", *options)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_code(found: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [each for each in found["findings"] if each["code"] == code]


def schema_codes(found: dict[str, Any]) -> list[str]:
    return sorted(each["code"] for each in found["findings"] if each["code"][0] == "S")


def stop_applier(server: Server) -> None:
    server.execute(f"{_words(server).stop_replica} SQL_THREAD")


def _words(server: Server) -> Any:
    return dialect_of(ServerVersion.parse(str(server.value("VERSION()"))))


@BOTH
def test_drift_is_s2_until_it_is_repaired(pair: Pair) -> None:
    assert audit(pair.a, pair.b)["findings"] == []
    not_logged(pair.b, "DROP TABLE app.t", "ALTER TABLE app.u DROP COLUMN a")
    found = audit(pair.a, pair.b)
    [s2] = found["findings"]
    assert (s2["code"], s2["severity"], s2["grade"]) == ("S2", "critical", "proved")
    assert (s2["source"], s2["replica"]) == (name_of(pair.a), name_of(pair.b))
    assert [each["name"] for each in s2["strategies"]] == ["repair_definition"]
    classes = {each["fact"]: each["value"].split(";")[0] for each in s2["evidence"]}
    assert classes["table app.t"] == "table fewer"
    assert classes["table app.u"] == "column fewer"
    # The command of the finding shows the same objects, and the SQL that repairs them.
    [command] = [each["value"] for each in s2["evidence"] if each["fact"] == "definitions and SQL"]
    assert command.startswith("gtid-audit schema drift ")
    assert command.endswith(" --schema app")
    done = run_cli(*shlex.split(command)[1:], "--json")
    by_name = differences(json.loads(done.stdout))
    assert by_name.keys() == {"table app.t", "table app.u"}
    repair_all(pair.b, by_name)
    assert audit(pair.a, pair.b)["findings"] == []


def repair_all(replica: Server, by_name: dict[str, dict[str, Any]]) -> None:
    """Run the SQL of `schema drift` as its instruction says."""
    lines = [line for each in by_name.values() for line in each["statements"]]
    done = replica.client("\n".join(["SET sql_log_bin = 0;", *lines]))
    assert done.returncode == 0, done.stderr


@BOTH
def test_without_the_option_nothing_is_read_or_reported(pair: Pair) -> None:
    not_logged(pair.b, "DROP TABLE app.t")
    done = run_cli("pair", pair.a.dsn, pair.b.dsn, "--no-content", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["findings"], found["definitions"]) == (0, [], None)


@pytest.mark.slow
@MOSTLY_97
def test_ddl_in_the_relay_log_of_a_delayed_replica_is_s1_and_no_alarm(pair: Pair) -> None:
    words = _words(pair.b)
    pair.b.execute(
        words.stop_replica,
        f"{words.change_source} {words.option_prefix}DELAY = 3600",
        words.start_replica,
    )
    pair.a.execute("ALTER TABLE app.t ADD COLUMN c INT", "ALTER TABLE app.u ADD COLUMN c INT")
    received(pair)
    found = audit(pair.a, pair.b)
    assert (found["verdict"], found["unknown"]) == ("OK", [])
    assert schema_codes(found) == ["S1"]
    [s1] = of_code(found, "S1")
    assert (s1["source"], s1["replica"]) == (name_of(pair.a), name_of(pair.b))
    assert (s1["severity"], s1["grade"], s1["gtid_count"]) == ("info", "proved", 2)
    statements = [each["value"] for each in s1["evidence"]]
    assert ["ADD COLUMN c" in each for each in statements] == [True, True]
    assert "table app.t, table app.u may differ" in s1["explanation"]


def received(pair: Pair) -> None:
    """Wait until b has received what a has executed."""
    wanted = executed(pair.a)
    for _ in range(100):
        status = pair.b.replica_status()
        retrieved = str(status["Retrieved_Gtid_Set"])
        subset = f"GTID_SUBSET('{wanted}', CONCAT('{retrieved},', @@GLOBAL.gtid_executed))"
        if int(pair.b.value(subset.replace("\n", ""))):
            return
        time.sleep(0.1)
    raise AssertionError("b did not receive it")


@pytest.mark.slow
@MOSTLY_97
def test_ddl_behind_a_stopped_applier_is_a7_and_not_s1(pair: Pair) -> None:
    stop_applier(pair.b)
    pair.a.execute("ALTER TABLE app.t ADD COLUMN c INT")
    received(pair)
    found = audit(pair.a, pair.b)
    assert schema_codes(found) == []
    assert len(of_code(found, "A7")) == 1


@pytest.mark.slow
@MOSTLY_97
def test_an_error_that_drift_causes_is_reported_with_it(pair: Pair) -> None:
    not_logged(pair.b, "DROP TABLE app.t")
    pair.a.execute("INSERT INTO app.t VALUES (1, 1)")
    stopped_with(pair.b, 1146)
    found = audit(pair.a, pair.b)
    [a3] = of_code(found, "A3")
    [s2] = of_code(found, "S2")
    assert (a3["severity"], s2["severity"], s2["grade"]) == ("critical", "critical", "proved")
    assert (a3["source"], a3["replica"]) == (s2["source"], s2["replica"])
    assert "stopped with error 1146" in s2["explanation"]
    assert "table app.t differs" in a3["explanation"]
    assert "see S2 of this audit" in a3["explanation"]


def stopped_with(server: Server, errno: int) -> None:
    for _ in range(100):
        if int(server.replica_status()["Last_SQL_Errno"]) == errno:
            return
        time.sleep(0.1)
    raise AssertionError(f"the applier did not stop with {errno}")


@BOTH
def test_what_the_account_may_not_see_is_unknown(pair: Pair) -> None:
    pair.a.execute(
        "CREATE USER audit@'%' IDENTIFIED BY 'audit-pw'",
        "GRANT REPLICATION CLIENT, REPLICATION SLAVE, SELECT ON *.* TO audit@'%'",
    )
    wait_for(pair.b, executed(pair.a))
    not_logged(pair.b, "CREATE TRIGGER app.x BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 1")
    names = (each.dsn.replace("root@", "audit@") for each in (pair.a, pair.b))
    done = run_cli(
        *("pair", *names, "--definitions", "--no-content", "--json"),
        environment={"MYSQL_PWD": "audit-pw"},
    )
    found = json.loads(done.stdout)
    assert found["verdict"] == "UNKNOWN", found
    assert schema_codes(found) == []
    assert "definitions: triggers" in {each["fact"] for each in found["unknown"]}


def test_a_filter_makes_it_info(pair97: Pair) -> None:
    pair97.a.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    wait_for(pair97.b, executed(pair97.a))
    pair97.b.execute(
        "STOP REPLICA SQL_THREAD",
        "CHANGE REPLICATION FILTER REPLICATE_WILD_IGNORE_TABLE = ('app.%')",
        "START REPLICA SQL_THREAD",
    )
    pair97.a.execute("ALTER TABLE app.t ADD COLUMN c INT")
    wait_for(pair97.b, executed(pair97.a))
    found = audit(pair97.a, pair97.b)
    [s2] = of_code(found, "S2")
    assert (s2["source"], s2["replica"]) == (name_of(pair97.a), name_of(pair97.b))
    assert (s2["severity"], s2["grade"]) == ("info", "likely")
    assert "a replication filter leaves out changes of this object" in s2["explanation"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local"])
def test_a_stored_run_reports_the_same(pair97: Pair, tmp_path: Path, engine: str) -> None:
    pair97.a.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, a INT)")
    wait_for(pair97.b, executed(pair97.a))
    not_logged(pair97.b, "ALTER TABLE app.t DROP COLUMN a")
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "policy: {definitions: true}\nclusters:\n  - name: shop\n    servers:\n"
        f"      - {{name: a, dsn: '{pair97.a.dsn}'}}\n      - {{name: b, dsn: '{pair97.b.dsn}'}}\n"
    )
    runs = str(tmp_path / "runs")
    live = run_cli("audit", "--fleet", str(fleet), "--out", runs, "--json")
    found = json.loads(live.stdout)
    assert (live.returncode, schema_codes(found)) == (2, ["S2"]), live.stdout
    again = run_cli("audit", "--snapshots", runs, "--engine", engine, "--json")
    stored = json.loads(again.stdout)
    assert stored["findings"] == found["findings"]
    assert stored["definitions"] == found["definitions"]
    without = run_cli("audit", "--fleet", str(fleet), "--no-definitions", "--json")
    assert (without.returncode, json.loads(without.stdout)["findings"]) == (0, [])


@pytest.mark.slow
@BOTH
def test_a_healthy_pair_under_ddl_gives_no_alarm(pair: Pair) -> None:
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            pair.a.execute(
                f"ALTER TABLE app.t ADD COLUMN c{number} INT",
                f"CREATE TABLE app.n{number} (id INT)",
                f"INSERT INTO app.t (id) VALUES ({number})",
                f"ALTER TABLE app.t DROP COLUMN c{number}",
                f"DROP TABLE app.n{number}",
            )

    worker = threading.Thread(target=change)
    worker.start()
    try:
        found = [audit(pair.a, pair.b) for _ in range(6)]
    finally:
        stop.set()
        worker.join()
    for each in found:
        assert each["verdict"] == "OK", each
        assert {one["severity"] for one in each["findings"]} <= {"info"}
        assert "S2" not in schema_codes(each), each


@pytest.mark.slow
def test_two_sources_of_one_replica_are_no_drift(installation97: Installation) -> None:
    """Each source has a schema of its own, and the replica has both."""
    plan = TopologyPlan(names=("a", "b", "r"), links=())
    with running(installation97, plan) as topology:
        a, b, r = (topology[name] for name in plan.names)
        for source in (a, b):
            follow_by_name(r, source)
        a.execute("CREATE DATABASE of_a", "CREATE TABLE of_a.t (i INT)")
        b.execute("CREATE DATABASE of_b", "CREATE TABLE of_b.t (i INT)")
        for source in (a, b):
            wait_for(r, executed(source))
        found = audit(a, b, r)
        assert schema_codes(found) == [], found
        not_logged(r, "CREATE TABLE of_a.by_hand (i INT)")
        found = audit(a, b, r)
        objects = [each["fact"] for one in of_code(found, "S2") for each in one["evidence"]]
        assert "table of_a.by_hand" in objects
        assert "schema of_b" not in objects


def test_another_server_at_the_address_is_unknown(pair97: Pair) -> None:
    """A failover between the readings and the definitions: they are of two servers."""
    targets = targets_of(pair97)
    snapshot = collect_cluster("live", targets)
    swapped = tuple(
        replace(each, host=other.host, port=other.port)
        for each, other in zip(targets, reversed(targets), strict=True)
    )
    to_read = ClusterToRead("live", swapped, CollectLimits(), Policy())
    reading = look_at_definitions(snapshot, to_read, say=lambda _: None)
    assert reading.pairs == ()
    assert [(each.server, each.fact) for each in reading.unread] == [
        ("a", "server_uuid"),
        ("b", "server_uuid"),
    ]
    assert "another server answers" in reading.unread[0].reason
    assert audit_cluster(snapshot.with_definitions(reading)).verdict is Verdict.UNKNOWN


def test_a_server_that_does_not_answer_is_unknown_once(pair97: Pair) -> None:
    not_logged(pair97.a, "CREATE DATABASE own")
    pair97.b.stop()
    found = audit(pair97.a, pair97.b)
    assert found["verdict"] == "UNKNOWN"
    assert {each["server"] for each in found["unknown"]} == {name_of(pair97.b)}
    assert not any(each["fact"].startswith("definitions") for each in found["unknown"])
    assert schema_codes(found) == []


@pytest.mark.slow
@BOTH
def test_a_pair_under_full_load_gives_no_alarm(pair: Pair, mysql_clients: Clients) -> None:
    with load.write_load(list(pair.servers.values()), clients=mysql_clients):
        found = [audit(pair.a, pair.b) for _ in range(3)]
    for each in found:
        assert (each["verdict"], each["unknown"]) == ("OK", []), each
        assert "S2" not in schema_codes(each)


@pytest.mark.slow
def test_ddl_on_its_way_from_a_third_server_leaves_s2_likely(chain97: Topology) -> None:
    """c was changed by hand before the DDL arrives, and b waits for the DDL of a."""
    a, b, c = (chain97[name] for name in ("first", "middle", "last"))
    a.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(9))")
    for server in (b, c):
        wait_for(server, executed(a))
    b.execute("STOP REPLICA SQL_THREAD")
    change = "ALTER TABLE app.t MODIFY v VARCHAR(20)"
    not_logged(c, change)
    [found] = of_code(audit(a, b, c), "S2")
    assert (found["source"], found["replica"]) == (name_of(b), name_of(c))
    assert found["grade"] == "proved"
    a.execute(change)
    [found] = of_code(audit(a, b, c), "S2")
    assert found["grade"] == "likely"
    gtid = f"{a.value('@@server_uuid')}:3"
    assert (
        f"transaction {gtid} may change it, and is on its way from {name_of(a)}"
        in (found["explanation"])
    )
    [found] = of_code(audit(b, c), "S2")
    assert (
        f"did not compare {a.host}:{a.port}, from which transactions can reach"
        in (found["explanation"])
    )
    b.execute("START REPLICA")
    wait_for(c, executed(a))
    assert of_code(audit(a, b, c), "S2") == []
