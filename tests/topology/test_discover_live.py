"""Real topologies that are found from any one of their servers."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from compose.native.command import Settings
from compose.native.groups import group_and_replica
from compose.native.installation import Installation
from compose.native.shapes import Link, Topology, TopologyPlan, running
from tests.gtid_audit.build import run_cli

# A ring of two, a chain behind it, and no server that reports its own host.
_NAMES = ("a", "b", "c", "d")
_SHAPE = TopologyPlan(
    names=_NAMES,
    links=(
        Link(source="a", replica="b"),
        Link(source="b", replica="a"),
        Link(source="b", replica="c"),
        Link(source="c", replica="d"),
    ),
    settings={name: Settings(extra=("--report-host=",)) for name in ("b", "d")},
)


@pytest.fixture(
    scope="module",
    params=["installation97", pytest.param("installation56", marks=pytest.mark.slow)],
)
def topology(request: pytest.FixtureRequest) -> Iterator[Topology]:
    with running(request.getfixturevalue(request.param), _SHAPE) as four:
        yield four


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def endpoints(topology: Topology) -> list[str]:
    return sorted(f"{each.host}:{each.port}" for each in topology.servers.values())


@pytest.mark.parametrize(
    "start",
    # The ends of the topology, and every night the servers between them.
    [name if name in "ad" else pytest.param(name, marks=pytest.mark.slow) for name in _NAMES],
)
def test_every_server_leads_to_all_others(topology: Topology, start: str) -> None:
    done = run_cli("audit", "--discover", topology.servers[start].dsn, "--json")
    assert done.returncode == 0, done.stderr
    found = document(done)
    [cluster] = found["clusters"]
    assert (found["verdict"], cluster["servers"]) == ("OK", endpoints(topology))
    assert done.stderr.count("found 127.0.0.1:") == 3
    named = run_cli("audit", *(each.dsn for each in topology.servers.values()), "--json")
    assert document(named)["clusters"][0]["servers"] == endpoints(topology)


def test_without_the_privilege_to_list_replicas_the_rest_is_unknown(topology: Topology) -> None:
    a = topology.servers["a"]
    a.execute(
        "SET sql_log_bin = 0",
        "CREATE USER audit_only@'%' IDENTIFIED BY ''",
        "GRANT REPLICATION CLIENT, PROCESS ON *.* TO audit_only@'%'",
        *(["GRANT SELECT ON performance_schema.* TO audit_only@'%'"] if a.version > (5, 7) else []),
        "SET sql_log_bin = 1",
    )
    dsn = a.dsn.replace("root@", "audit_only@")
    done = run_cli("audit", "--discover", dsn, "--no-content", "--json")
    found = document(done)
    unread = {(each["server"], each["fact"]) for each in found["unknown"]}
    assert (f"{a.host}:{a.port}", "replicas") in unread
    assert done.returncode == 3


@pytest.mark.parametrize("topology", ["installation97"], indirect=True)
def test_without_the_hosts_of_receivers_named_replicas_are_found(topology: Topology) -> None:
    """c reports its host, a does not; the account may not read performance_schema."""
    b, c = topology.servers["b"], topology.servers["c"]
    b.execute(
        "SET sql_log_bin = 0",
        "CREATE USER no_schema@'%' IDENTIFIED BY ''",
        "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO no_schema@'%'",
        "SET sql_log_bin = 1",
    )
    dsn = b.dsn.replace("root@", "no_schema@")
    found = document(run_cli("audit", "--discover", dsn, "--no-content", "--json"))
    assert f"{c.host}:{c.port}" in found["clusters"][0]["servers"]
    unread = {(each["server"], each["fact"]) for each in found["unknown"]}
    assert (f"{b.host}:{b.port}", "hosts of replicas") in unread


@pytest.mark.parametrize("topology", ["installation97"], indirect=True)
def test_a_source_that_is_down_is_a_server_that_was_not_read(topology: Topology) -> None:
    c, d = topology.servers["c"], topology.servers["d"]
    c.stop()
    try:
        done = run_cli("audit", "--discover", d.dsn, "--json")
    finally:
        c.start()
    found = document(done)
    assert done.returncode == 3
    assert found["clusters"][0]["servers"] == sorted(f"{each.host}:{each.port}" for each in (c, d))
    assert {each["server"] for each in found["unknown"]} >= {f"{c.host}:{c.port}"}


@pytest.mark.slow
def test_members_of_a_group_lead_to_each_other(installation97: Installation) -> None:
    with group_and_replica(installation97) as group:
        for name in ("m2", "r"):
            done = run_cli("audit", "--discover", group.servers[name].dsn, "--json")
            assert document(done)["clusters"][0]["servers"] == endpoints(group)


def test_options_of_fleets_are_refused(tmp_path: Any) -> None:
    for option in (
        ["--cluster", "x"],
        ["--engine", "spark"],
        ["--out", str(tmp_path)],
        ["--max-age", "2h"],
    ):
        done = run_cli("audit", "root@127.0.0.1:1", *option)
        assert (done.returncode, option[0] in done.stderr) == (64, True)
    done = run_cli("audit", "--fleet", "x.yaml", "--timeout", "3")
    assert (done.returncode, "DSNs" in done.stderr) == (64, True)
