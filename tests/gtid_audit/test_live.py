"""The commands against real servers, as processes, the way a person runs them."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compose import faults, faults_applier
from compose.native.installation import Clients
from compose.native.server import Server
from compose.native.shapes import Pair
from tests.gtid_audit.build import GTID_AUDIT, run_cli

SECRET = "hunter2SECRET"
SOON = 60.0
COMPOSE = Path(__file__).parents[2] / "compose"


def as_user(server: Server, user: str) -> str:
    return f"mysql://{user}@{server.host}:{server.port}/"


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def unread(done: subprocess.CompletedProcess[str]) -> set[tuple[str, str]]:
    """(fact, reason's first word) of everything that was not read."""
    return {(each["fact"], each["reason"].partition(":")[0]) for each in document(done)["unknown"]}


def fleet_file(path: Path, *pairs: tuple[str, list[str]], user: str = "root") -> Path:
    lines = [f"defaults: {{user: {user}}}", "limits: {server_seconds_max: 2}", "clusters:"]
    for name, addresses in pairs:
        lines += [f"  - name: {name}", "    servers:"]
        for number, address in enumerate(addresses):
            host, _, port = address.rpartition(":")
            lines.append(f"      - {{name: s{number}, host: {host}, port: {port}}}")
    path.write_text("\n".join(lines) + "\n")
    return path


def address(server: Server) -> str:
    return f"{server.host}:{server.port}"


def test_a_healthy_pair(pair97: Pair, tmp_path: Path) -> None:
    dsns = (pair97.a.dsn, pair97.b.dsn)
    done = run_cli("pair", *dsns, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert document(done)["verdict"] == "OK"
    assert document(done)["unknown"] == []
    assert [each for each in document(done)["findings"] if each["severity"] != "info"] == []
    text = run_cli("pair", *dsns)
    assert text.returncode == 0
    assert text.stdout.startswith(" OK   pair · 2 servers · read ")
    assert text.stdout.count("─▶") == 2
    by_socket = f"mysql://root@/?unix_socket={pair97.a.socket_path}"
    assert run_cli("pair", by_socket, pair97.b.dsn).returncode == 0
    planned = run_cli("repair", "plan", "--pair", *dsns, "--out", str(tmp_path / "plan"), "--json")
    assert planned.returncode == 0
    assert document(planned)["steps"] == []


def test_a_hole_is_found_explained_and_planned_for(pair97: Pair, tmp_path: Path) -> None:
    fault = faults.position_bypass(pair97)
    dsns = (pair97.a.dsn, pair97.b.dsn)
    done = run_cli("pair", *dsns, "--json")
    assert done.returncode == 2
    (finding,) = [each for each in document(done)["findings"] if each["severity"] == "critical"]
    assert (finding["code"], finding["gtid_set"]) == ("H1", fault.skipped)
    text = run_cli("pair", *dsns).stdout
    assert "H1 bypassed by file position" in text
    assert "auto-position off" in text
    chosen = run_cli(
        *("repair", "plan", "--pair", *dsns, "--json", "--out", str(tmp_path / "plan")),
        *("--finding", finding["id"], "--strategy", "h1=inject_empty"),
    )
    assert chosen.returncode == 0
    plan = document(chosen)
    assert [each["strategy"] for each in plan["answered"]] == ["inject_empty"]
    assert all(Path(file).exists() for file in plan["files"])
    shown = run_cli("repair", "plan", "--pair", *dsns)
    assert shown.returncode == 0
    assert "Not written: --out DIR" in shown.stdout
    again = run_cli("repair", "plan", "--pair", *dsns, "--out", str(tmp_path / "plan"))
    assert again.returncode == 64
    assert "holds something else" in again.stderr
    wrong = run_cli("repair", "plan", "--pair", *dsns, "--strategy", "H1=pray")
    assert wrong.returncode == 64
    assert "no strategy 'pray'" in wrong.stderr


def test_a_plan_without_steps_is_no_success(pair97: Pair) -> None:
    """A reset of the replica needs a decision: exit status 0 would say that nothing is left."""
    fault = faults_applier.reset_on_replica(pair97, received_again=False)
    done = run_cli("repair", "plan", "--pair", pair97.a.dsn, pair97.b.dsn, "--json")
    plan = document(done)
    assert (done.returncode, plan["steps"], plan["answered"]) == (1, [], [])
    [left] = [each for each in plan["not_planned"] if each["code"] == "H8"]
    assert "on 127.0.0.1" in left["why"]
    assert fault.passed.partition(":")[0] in json.dumps(plan)


@pytest.mark.slow
def test_a_hung_server_is_unknown_and_spoils_no_other_cluster(
    pair97: Pair, mysql97: Server, tmp_path: Path
) -> None:
    fleet = fleet_file(
        tmp_path / "fleet.yaml",
        ("alone", [address(mysql97)]),
        ("hung", [address(pair97.a), address(pair97.b)]),
    )
    with faults.hung_server(pair97.b):
        done = run_cli("pair", pair97.a.dsn, pair97.b.dsn, "--timeout", "1", "--json")
        both = run_cli("audit", "--fleet", str(fleet), "--json")
    assert done.returncode == 3
    assert unread(done) == {("connection", "timeout")}
    assert both.returncode == 3
    verdicts = {each["cluster"]: each["verdict"] for each in document(both)["clusters"]}
    assert verdicts == {"alone": "OK", "hung": "UNKNOWN"}


def test_a_wrong_password_is_unknown_and_told_nowhere(mysql97: Server, pair97: Pair) -> None:
    dsns = (as_user(pair97.a, "nobody"), as_user(mysql97, "nobody"))
    for flag in ("--json", "--timeout=5"):
        done = run_cli("pair", *dsns, flag, environment={"GTID_AUDIT_PASSWORD": SECRET})
        assert done.returncode == 3
        assert "refused" in done.stdout
        assert SECRET not in done.stdout + done.stderr


def test_each_missing_privilege_is_named(pair97: Pair, tmp_path: Path) -> None:
    """What docs/privileges.md says, asked of a server."""
    dsns = tuple(as_user(server, "auditor") for server in (pair97.a, pair97.b))
    pair97.a.execute(f"CREATE USER auditor@'127.0.0.1' IDENTIFIED BY '{SECRET}'")
    pair97.settle()
    environment = {"GTID_AUDIT_PASSWORD": SECRET}

    def audit() -> subprocess.CompletedProcess[str]:
        pair97.settle()
        done = run_cli("pair", *dsns, "--timeout", "30", "--json", environment=environment)
        assert SECRET not in done.stdout + done.stderr
        return done

    nothing = audit()
    assert nothing.returncode == 3
    denied = {("channels", "privilege"), ("log_end", "privilege"), ("binary_logs", "privilege")}
    assert unread(nothing) == denied
    pair97.a.execute("GRANT REPLICATION CLIENT ON *.* TO auditor@'127.0.0.1'")
    client = audit()
    assert client.returncode == 3
    content = ("content of transactions", "the server refused the binlog dump")
    assert unread(client) == {("workers", "privilege"), content}
    pair97.a.execute("GRANT SELECT ON performance_schema.* TO auditor@'127.0.0.1'")
    # Events of a source's log: read after a recent start, and by a plan.
    looked = audit()
    assert looked.returncode == 3
    assert unread(looked) == {content}
    quiet = run_cli("pair", *dsns, "--timeout", "30", "--no-content", environment=environment)
    assert quiet.returncode == 0
    faults.position_bypass(pair97)
    denied_plan = run_cli("repair", "plan", "--pair", *dsns, environment=environment)
    assert "REPLICATION SLAVE" in denied_plan.stderr
    assert SECRET not in denied_plan.stdout + denied_plan.stderr
    pair97.a.execute("GRANT REPLICATION SLAVE ON *.* TO auditor@'127.0.0.1'")
    option_file = tmp_path / "my.cnf"
    option_file.write_text(f"[fleet]\nuser = auditor\npassword = '{SECRET}'\n")
    option_file.chmod(0o600)
    by_file = tuple(
        f"mysql://{server.host}:{server.port}/?option_file={option_file}&group=fleet"
        for server in (pair97.a, pair97.b)
    )
    allowed = run_cli("repair", "plan", "--pair", *by_file, "--out", str(tmp_path / "plan"))
    assert allowed.stderr == ""
    written = "".join(path.read_text() for path in (tmp_path / "plan").iterdir())
    assert SECRET not in written + allowed.stdout


def test_a_fleet_is_stored_and_evaluated_again(pair97: Pair, tmp_path: Path) -> None:
    faults.position_bypass(pair97)
    fleet = str(
        fleet_file(tmp_path / "fleet.yaml", ("pair", [address(pair97.a), address(pair97.b)]))
    )
    taken = run_cli("snapshot", "--fleet", fleet, "--out", str(tmp_path / "stored"), "--json")
    assert taken.returncode == 0
    assert document(taken)["servers"] == 2
    stored = run_cli("audit", "--snapshots", str(tmp_path / "stored"), "--json")
    assert stored.returncode == 2
    live = run_cli("audit", "--fleet", fleet, "--out", str(tmp_path / "live"), "--json")
    again = run_cli("audit", "--snapshots", str(tmp_path / "live"), "--json")
    assert (live.returncode, live.stdout) == (2, again.stdout)
    ids = [[each["id"] for each in document(one)["findings"]] for one in (stored, live)]
    assert ids[0] == ids[1]
    one = run_cli("repair", "plan", "--fleet", fleet, "--cluster", "pair", "--json")
    assert one.returncode == 0
    assert document(one)["cluster"] == "pair"


@contextmanager
def serving(fleet: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [GTID_AUDIT, "serve", "--fleet", str(fleet), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--interval", "0.2", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GTID_AUDIT_PASSWORD": ""},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:")
            yield process, line.split()[-1]
        finally:
            process.kill()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=SOON) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metric(text: str, name: str, **labels: str) -> list[float]:
    return [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def await_metric(url: str, name: str, value: float, **labels: str) -> None:
    deadline = time.monotonic() + SOON
    while metric(get(f"{url}/metrics")[1], name, **labels) != [value]:
        assert time.monotonic() < deadline, get(f"{url}/metrics")[1]
        time.sleep(0.05)


def test_the_service_sees_a_fault_come_and_ends_in_good_order(pair97: Pair, tmp_path: Path) -> None:
    servers = [address(pair97.a), address(pair97.b)]
    fleet = fleet_file(tmp_path / "fleet.yaml", ("pair", servers))
    with serving(fleet) as (process, url):
        await_metric(url, "gtid_audit_verdict", 1, cluster="pair", verdict="OK")
        assert get(f"{url}/healthz")[0] == 200
        assert get(f"{url}/readyz") == (200, "ready: 1 cluster\n")
        faults.position_bypass(pair97)
        await_metric(url, "gtid_audit_findings", 1, cluster="pair", code="H1")
        [hole] = json.loads(get(f"{url}/api/v1/findings?code=H1")[1])["findings"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr]
        # An audit may see the fault half made: then the finding changes once more.
        came, *later = [each for each in lines if each["code"] == "H1"]
        assert (came["event"], came["id"]) == ("finding_came", hole["id"])
        assert all((each["event"], each["id"]) == ("finding_changed", hole["id"]) for each in later)


def test_a_cluster_that_hangs_delays_no_other_and_the_file_is_loaded_again(
    pair97: Pair, tmp_path: Path
) -> None:
    path, pair = tmp_path / "fleet.yaml", ("pair", [address(pair97.a), address(pair97.b)])
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
        hung = ("hung", [f"127.0.0.1:{silent.getsockname()[1]}"])
        with serving(fleet_file(path, pair, hung)) as (process, url):
            while (shown := clusters_of(url))["hung"]["audits"] == 0:
                assert process.poll() is None
                time.sleep(0.05)
            # One audit of the hung cluster takes at least the time limit of two seconds.
            assert shown["hung"]["audit_milliseconds"] >= 2000
            assert shown["pair"]["audits"] >= 2
            assert [each["verdict"] for each in shown.values()] == ["UNKNOWN", "OK"]
            path.write_text("clusters: [")
            process.send_signal(signal.SIGHUP)
            await_text(url, "could not be loaded again: the fleet file: ")
            assert clusters_of(url).keys() == {"hung", "pair"}, "the fleet before it stays"
            fleet_file(path, pair)
            process.send_signal(signal.SIGHUP)
            await_text(url, "ready: 1 cluster\n")
            assert clusters_of(url).keys() == {"pair"}
            process.send_signal(signal.SIGINT)
            assert process.wait(SOON) == 0
            assert process.stderr is not None
            events = [json.loads(line)["event"] for line in process.stderr]
            assert [each for each in events if not each.startswith("finding_")] == [
                *("not_loaded", "cluster_left", "loaded")
            ]


def clusters_of(url: str) -> dict[str, Any]:
    found = json.loads(get(f"{url}/api/v1/clusters")[1])["clusters"]
    return {each["cluster"]: each for each in found}


def await_text(url: str, text: str) -> None:
    deadline = time.monotonic() + SOON
    while text not in (shown := get(f"{url}/readyz")[1]):
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


def test_the_stacks_set_up_script_makes_a_pair_the_auditor_finds_well(
    pair97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    """compose/mysql/init.sh, with the two servers standing in for db1 and db2."""
    servers = {"db1": pair97.a, "db2": pair97.b}
    for server in servers.values():
        server.execute(
            "STOP REPLICA",
            "RESET REPLICA ALL",
            "SET SESSION sql_log_bin = 0",
            "DROP USER replication@'127.0.0.1'",  # or it would be taken before replication@'%'
        )
    # Stands where the client is: sends db1 and db2 to the ports, here and in the statements.
    (tmp_path / "mysql").write_text(
        "#!/bin/sh\nhost=${1#--host=}; shift\n"
        f"case $host in db1) port={pair97.a.port};; db2) port={pair97.b.port};; esac\n"
        "sed"
        + "".join(
            f" -e \"s/SOURCE_HOST = '{name}.replication'/SOURCE_HOST='127.0.0.1',SOURCE_PORT={server.port}/\""
            f" -e \"s/WHERE HOST = '{name}.replication'/WHERE PORT = {server.port}/\""
            for name, server in servers.items()
        )
        + f" | {' '.join(mysql_clients.command('mysql'))}"
        ' --host=127.0.0.1 --protocol=TCP --port=$port "$@"\n'
    )
    (tmp_path / "mysql").chmod(0o755)
    passwords = {"root": "", "replication": "it's \\ odd", "auditor_password": SECRET}
    for name, password in passwords.items():
        (tmp_path / name).write_text(password)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SECRETS_FOLDER": str(tmp_path),
    }
    for attempt in ("once", "again"):
        done = subprocess.run(
            ["sh", str(COMPOSE / "mysql" / "init.sh"), "pair", "db1", "db2"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, (attempt, done.stderr)
        assert SECRET not in done.stdout + done.stderr
    pair97.a.execute("CREATE DATABASE written_after")
    pair97.settle()
    dsns = (as_user(pair97.a, "auditor"), as_user(pair97.b, "auditor"))
    audited = run_cli("pair", *dsns, environment={"GTID_AUDIT_PASSWORD": SECRET})
    assert audited.returncode == 0, audited.stdout


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_output_holds_a_secret_that_a_server_was_sent(pair97: Pair, form: str) -> None:
    pair97.a.execute(
        f"CREATE USER auditor@'127.0.0.1' IDENTIFIED BY '{SECRET}'",
        "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO auditor@'127.0.0.1'",
        "GRANT SELECT ON performance_schema.* TO auditor@'127.0.0.1'",
    )
    pair97.settle()
    pair97.b.execute("STOP REPLICA")
    dsns = (as_user(pair97.a, "auditor"), as_user(pair97.b, "auditor"))
    flags = ["--json"] if form == "json" else []
    for command in (("pair", *dsns), ("repair", "plan", "--pair", *dsns)):
        done = run_cli("--debug", *command, *flags, environment={"MYSQL_PWD": SECRET})
        assert done.returncode in (0, 1)
        assert SECRET not in done.stdout + done.stderr
