"""Servers that a command of the fleet file lists: nothing is dropped, and each problem has a path."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gtid_audit.views.inventory_schema import inventory_schema, schema_text
from tests.certificates import Authority
from topology.adapters.inventory import listed_servers
from topology.adapters.inventory.fleet import Fleet
from topology.adapters.inventory.fleet_file import load_fleet, load_roster
from topology.adapters.inventory.problem import InventoryProblem

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "fleet-from-commands.md"
HEAD = "defaults: {user: auditor, port: 3310}\n"
ONE = '{"servers": [{"host": "h1"}]}'


def written(folder: Path, text: str, **outputs: str) -> Path:
    """Write a fleet file, and files with what its commands print."""
    for name, output in outputs.items():
        (folder / name).write_text(output)
    path = folder / "fleet.yaml"
    path.write_text(HEAD + text)
    path.chmod(0o600)
    return path


def load(path: Path, cluster: str | None = None, **environment: str) -> Fleet:
    return load_fleet(path, environment=environment, warn=pytest.fail, cluster=cluster)


def problems(path: Path, cluster: str | None = None, **environment: str) -> list[str]:
    with pytest.raises(InventoryProblem) as refused:
        load(path, cluster, **environment)
    assert str(path.parent) in str(refused.value)
    return [line.replace(f"{path}, ", "") for line in str(refused.value).splitlines()]


def from_command(*command: str) -> str:
    return f"clusters:\n  - {{name: orders, servers_from: {{command: {json.dumps(command)}}}}}\n"


LISTED = from_command("cat", "list.json")


def places(fleet: Fleet) -> list[tuple[str, str, str, int]]:
    return [
        (cluster.name, target.name, target.host, target.port)
        for cluster in fleet.clusters
        for target in cluster.targets
    ]


def test_a_command_lists_the_servers_of_a_cluster(tmp_path: Path) -> None:
    listed = {"servers": [{"name": "b", "host": "db2"}, {"host": "fd00::1", "port": 3307}]}
    path = written(tmp_path, LISTED, **{"list.json": json.dumps(listed)})
    fleet = load(path)
    assert places(fleet) == [
        ("orders", "[fd00::1]:3307", "fd00::1", 3307),
        ("orders", "b", "db2", 3310),
    ]
    assert {each.user for each in fleet.clusters[0].targets} == {"auditor"}
    assert (fleet.is_listed, fleet.is_partial) == (True, False)
    assert [each.name for each in load_roster(path, environment={}).clusters[0].servers] == [
        each.name for each in fleet.clusters[0].targets
    ]


def test_a_command_lists_clusters_beside_those_of_the_file(tmp_path: Path) -> None:
    listed = {"clusters": [{"name": "a", "servers": [{"name": "x", "host": "db1"}]}]}
    text = "clusters_from: {command: [cat, list.json]}\n"
    alone = load(written(tmp_path, text, **{"list.json": json.dumps(listed)}))
    assert places(alone) == [("a", "x", "db1", 3310)]
    text += "clusters:\n  - {name: own, servers: [{name: y, host: db2}]}\n"
    both = load(written(tmp_path, text))
    assert places(both) == [("a", "x", "db1", 3310), ("own", "y", "db2", 3310)]


def test_consumers_of_a_listed_cluster_may_refer_to_its_servers(tmp_path: Path) -> None:
    text = (
        "clusters:\n  - name: orders\n    servers_from: {command: [cat, list.json]}\n"
        '    consumers: [{name: cdc, command: [cat, x], server: "h1:3310"}]\n'
    )
    [cluster] = load(written(tmp_path, text, **{"list.json": ONE})).clusters
    assert cluster.consumers[0].server == "h1:3310"
    path = written(tmp_path, text.replace("h1:3310", "h2"))
    assert problems(path) == [
        "line 5: clusters[0].consumers[0].server: no server of this cluster has that name"
    ]


def test_only_the_command_of_the_needed_cluster_is_run(tmp_path: Path) -> None:
    text = LISTED + '  - {name: broken, servers_from: {command: ["false"]}}\n'
    text += "  - {name: own, servers: [{name: y, host: db2}]}\n"
    path = written(tmp_path, text, **{"list.json": ONE})
    fleet = load(path, "orders")
    assert places(fleet) == [("orders", "h1:3310", "h1", 3310)]
    assert fleet.is_partial
    assert load_roster(path, environment={}, cluster="orders").clusters[0].name == "orders"
    assert problems(path) == [
        "line 4: clusters[1].servers_from: the output of false: exit status 1"
    ]
    # A name that the file does not have may be one that a command lists.
    listed = {"clusters": [{"name": "far", "servers": [{"host": "db9"}]}]}
    text = "clusters_from: {command: [cat, all.json]}\n" + LISTED
    path = written(tmp_path, text, **{"all.json": json.dumps(listed)})
    assert places(load(path, "far")) == [("far", "db9:3310", "db9", 3310)]
    (tmp_path / "all.json").unlink()
    assert load(path, "orders").is_partial


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("", "is empty"),
        ("[1, 2", "line 1, column 6: not JSON: Expecting ',' delimiter"),
        ("[]", "expected an object with the key servers"),
        ("{}", "servers: is missing"),
        ('{"servers": []}', "servers: is empty"),
        ('{"servers": {}}', "servers: expected a list"),
        ('{"servers": [7]}', "servers[0]: expected keys and values"),
        ('{"servers": [{"name": "x"}]}', "servers[0].host: is missing"),
        ('{"servers": [{"host": "h", "port": "3306"}]}', "servers[0].port: input should be a"),
        ('{"servers": [{"host": "h", "port": 70000}]}', "servers[0].port: input should be less"),
        ('{"servers": [{"hots": "h"}]}', "servers[0].hots: unknown key; did you mean host?"),
        ('{"servers": [{"host": "h", "password": "hunter2"}]}', "servers[0].password: unknown"),
        ('{"servers": [{"host": "h", "user": "root"}]}', "known keys: host, name, port"),
        ('{"servers": [{"host": "h:3306"}]}', "servers[0].host: expected a host name or an"),
        ('{"servers": [{"host": "a b"}]}', "servers[0].host: expected a host name or an"),
        ('{"servers": [{"host": "h", "host": "i"}]}', "an object has host twice"),
        ('{"servers": [{"host": "h"}], "next": 1}', "next: unknown key"),
        ('{"servers": [{"name": "a\\u001b[31m", "host": "h"}]}', "contains a control character"),
        ('{"servers": [{"host": "h", "\\u001b[31m": 1}]}', "servers[0]. [31m: unknown key"),
        ("[" * 100_000, "nested too deep"),
        ('{"servers": [{"host": "h", "port": ' + "1" * 5000 + "}]}", "a number that is too long"),
    ],
)
def test_an_output_that_is_no_list_is_a_problem_with_its_path(
    tmp_path: Path, output: str, expected: str
) -> None:
    found = problems(written(tmp_path, LISTED, **{"list.json": output}))
    start = "line 3: clusters[0].servers_from: the output of cat: "
    assert found[0].startswith(start)
    assert any(expected in line.removeprefix(start) for line in found)
    assert "hunter2" not in "\n".join(found)
    schema = jsonschema.Draft202012Validator(inventory_schema())
    try:
        value: Any = json.loads(output)
    except (ValueError, RecursionError):
        return
    assert "twice" in expected or not schema.is_valid(value)


def test_a_label_that_the_metrics_have_already_is_a_problem(tmp_path: Path) -> None:
    output = '{"clusters": [{"name": "a", "labels": {"server": "x"}, "servers": [{"host": "h"}]}]}'
    text = "clusters_from: {command: [cat, list.json]}\n"
    [found] = problems(written(tmp_path, text, **{"list.json": output}))
    assert "clusters[0].labels.server" in found
    assert "is a label of the metrics already" in found


def test_all_problems_of_an_output_are_reported(tmp_path: Path) -> None:
    output = '{"servers": [{"host": "h", "port": 0}, {"name": ""}]}'
    found = problems(written(tmp_path, LISTED, **{"list.json": output}))
    assert [line.split("cat: ")[1].split(":")[0] for line in found] == [
        *("servers[0].port", "servers[1].host", "servers[1].name")
    ]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            '{"servers": [{"host": "h1"}, {"host": "h1"}]}',
            "clusters[0].servers_from: the output of cat: servers[1].name: the same server name",
        ),
        (
            '{"servers": [{"host": "h1"}, {"host": "h1", "name": "x"}]}',
            "clusters[0].servers_from: the output of cat: servers[1]: the same address in this",
        ),
        (
            '{"servers": [{"host": "db2", "name": "x"}]}',
            "clusters[1].servers[0]: the same address in this file as on line 3",
        ),
    ],
)
def test_a_server_that_is_listed_twice_is_a_problem(
    tmp_path: Path, output: str, expected: str
) -> None:
    text = LISTED + "  - {name: own, servers: [{name: y, host: db2}]}\n"
    found = problems(written(tmp_path, text, **{"list.json": output}))
    assert expected in found[0]


def test_a_cluster_that_is_listed_twice_is_a_problem(tmp_path: Path) -> None:
    listed = {"clusters": [{"name": "orders", "servers": [{"host": "h2"}]}]}
    text = "clusters_from: {command: [cat, all.json]}\n" + LISTED
    path = written(tmp_path, text, **{"list.json": ONE, "all.json": json.dumps(listed)})
    [found] = problems(path)
    assert found.startswith("line 2: clusters_from: the output of cat: clusters[0].name: the same")
    assert found.endswith("on line 4")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limits: {}\n", "line 1: clusters: is missing"),
        ("clusters: []\n", "line 2: clusters: is empty"),
        ("clusters: [{name: a}]\n", "line 2: clusters[0].servers: is missing"),
        ("clusters: [{name: a, servers: []}]\n", "line 2: clusters[0].servers: is empty"),
        (
            "clusters: [{name: a, servers: [{name: x, host: h}], servers_from: {command: [c]}}]\n",
            "line 2: clusters[0]: has servers and servers_from; use only one of the two",
        ),
        (
            "clusters: [{name: a, servers_from: {command: c}}]\n",
            "line 2: clusters[0].servers_from.command: expected a list",
        ),
        (
            "clusters: [{name: a, servers_from: {comand: [c]}}]\n",
            "line 2: clusters[0].servers_from.comand: unknown key; did you mean command?",
        ),
        ("clusters_from: {command: []}\n", "line 2: clusters_from.command: is empty"),
    ],
)
def test_a_fleet_file_lists_its_servers_or_has_a_command(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert expected in problems(written(tmp_path, text))


@pytest.mark.long
def test_a_command_that_fails_ends_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(*command: str, **environment: str) -> str:
        text = "limits: {command_seconds_max: 0.3}\n" + from_command(*command)
        [found] = problems(written(tmp_path, text), **environment)
        return found.removeprefix("line 4: clusters[0].servers_from: the output of ")

    assert reason("/no/such/lister") == "lister: No such file or directory"
    assert reason("sh", "-c", f"echo '{ONE}'; exit 3") == "sh: exit status 3"
    assert reason("sleep", "9") == "sleep: no answer within 0.3 seconds"
    text = "echo login failed: hunter2 >&2; exit 1"
    assert "hunter2" in reason("sh", "-c", text)
    hidden = reason("sh", "-c", text, GTID_AUDIT_PASSWORD="hunter2")
    assert "login failed" in hidden
    assert "hunter2" not in hidden
    monkeypatch.setattr(listed_servers, "LISTED_BYTES_MAX", 100)
    assert reason("yes") == "yes: more than the limit of 100 bytes"


def test_the_password_of_the_fleet_file_is_hidden_too(tmp_path: Path) -> None:
    text = from_command("sh", "-c", "echo $FLEET >&2; exit 1")
    path = written(tmp_path, text)
    path.write_text(path.read_text().replace("port: 3310", "password: {env: FLEET}"))
    [found] = problems(path, FLEET="hunter2")
    assert "exit status 1" in found
    path.write_text(path.read_text().replace("echo $FLEET", "echo hunter2"))
    [found] = problems(path, FLEET="hunter2")
    assert "hunter2" not in found


def test_a_file_that_every_user_can_change_may_not_list_by_a_command(tmp_path: Path) -> None:
    for text in (LISTED, "clusters_from: {command: [cat, list.json]}\n"):
        path = written(tmp_path, text, **{"list.json": ONE})
        path.chmod(0o602)
        with pytest.raises(InventoryProblem, match="every user of this machine can change it"):
            load(path)


@pytest.mark.long
def test_commands_run_at_the_same_time(tmp_path: Path) -> None:
    command = json.dumps(
        ["sh", "-c", 'sleep 0.3; echo "{\\"servers\\": [{\\"host\\": \\"$0\\"}]}"']
    )
    lines = "".join(
        f"  - {{name: c{number}, servers_from: {{command: {command[:-1]}, h{number}]}}}}\n"
        for number in range(12)
    )
    text = "limits: {command_seconds_max: 2}\nclusters:\n" + lines
    assert len(load(written(tmp_path, text)).clusters) == 12


def test_a_fleet_is_partial_only_if_a_command_was_not_run(tmp_path: Path) -> None:
    own = "  - {name: own, servers: [{name: y, host: db2}]}\n"
    path = written(tmp_path, LISTED, **{"list.json": ONE})
    assert not load(path, "orders").is_partial, "it is the whole fleet"
    path = written(tmp_path, "clusters:\n" + own)
    assert not load(path, "own").is_partial
    assert not load(path).is_listed
    assert load(written(tmp_path, LISTED + own), "own").is_partial
    assert not load(written(tmp_path, LISTED + own)).is_partial
    text = "clusters_from: {command: [cat, all.json]}\n"
    (tmp_path / "all.json").write_text(
        '{"clusters": [{"name": "far", "servers": [{"host": "db9"}]}]}'
    )
    assert not load(written(tmp_path, text), "far").is_partial
    assert load(written(tmp_path, text + LISTED), "far").is_partial


TOO_SMALL = "servers[0].port: input should be greater than or equal to 1"


def test_each_command_that_fails_is_reported_at_its_place(tmp_path: Path) -> None:
    text = from_command("false") + '  - {name: b, servers_from: {command: ["true"]}}\n'
    text += "  - {name: c, servers_from: {command: [cat, list.json]}}\n"
    listed = '{"servers": [{"host": "h", "port": 0}]}'
    assert problems(written(tmp_path, text, **{"list.json": listed})) == [
        "line 3: clusters[0].servers_from: the output of false: exit status 1",
        "line 4: clusters[1].servers_from: the output of true: is empty",
        f"line 5: clusters[2].servers_from: the output of cat: {TOO_SMALL}",
    ]


def test_no_command_is_run_while_a_key_is_wrong(tmp_path: Path) -> None:
    text = from_command("touch", "run") + "  - {name: b}\n"
    assert problems(written(tmp_path, text)) == ["line 4: clusters[1].servers: is missing"]
    assert not (tmp_path / "run").exists()


def test_a_defect_of_ours_is_not_a_problem_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> bytes:
        raise KeyError("boom")

    monkeypatch.setattr(listed_servers, "output_of", broken)
    with pytest.raises(KeyError, match="boom"):
        load(written(tmp_path, LISTED))


# -- the page -------------------------------------------------------------------------------------

CONSUL = [
    {"Node": "n1", "Address": "10.0.0.11", "ServiceAddress": "", "ServicePort": 3306},
    {"Node": "n2", "Address": "10.0.0.12", "ServiceAddress": "10.1.0.12", "ServicePort": 3307},
]
DNS = "10 5 3306 db1.example.\n10 5 3307 db2.example.\n"
ORCHESTRATOR = [
    {"Key": {"Hostname": "db1", "Port": 3306}, "ClusterName": "db1:3306", "IsCoMaster": False},
    {"Key": {"Hostname": "db2", "Port": 3306}, "ClusterName": "db1:3306", "IsCoMaster": False},
    {"Key": {"Hostname": "db9", "Port": 3309}, "ClusterName": "db9:3309", "IsCoMaster": False},
]
RDS = {
    "DBInstances": [
        {
            "DBInstanceIdentifier": "orders",
            "Engine": "mysql",
            "Endpoint": {"Address": "orders.x.rds.amazonaws.com", "Port": 3306},
            "ReadReplicaDBInstanceIdentifiers": ["orders-r1"],
        },
        {
            "DBInstanceIdentifier": "orders-r1",
            "Engine": "mysql",
            "Endpoint": {"Address": "orders-r1.x.rds.amazonaws.com", "Port": 3306},
            "ReadReplicaSourceDBInstanceIdentifier": "orders",
        },
        {"DBInstanceIdentifier": "new", "Engine": "mysql", "DBInstanceStatus": "creating"},
        {"DBInstanceIdentifier": "pg", "Engine": "postgres"},
    ]
}
ANSIBLE = {
    "_meta": {"hostvars": {"db1": {"ansible_host": "10.0.0.1", "mysql_port": 3307}, "db2": {}}},
    "all": {"children": ["ungrouped", "mysql_orders"]},
    "mysql_orders": {"hosts": ["db1", "db2"]},
}
# The recorded input of each recipe of the page, in its order, and (cluster, server, host, port).
RECIPES: Sequence[tuple[str, tuple[tuple[str, str, str, int], ...]]] = (
    (
        json.dumps(CONSUL),
        (("orders", "n1", "10.0.0.11", 3306), ("orders", "n2", "10.1.0.12", 3307)),
    ),
    (
        DNS,
        (
            ("orders", "db1.example:3306", "db1.example", 3306),
            ("orders", "db2.example:3307", "db2.example", 3307),
        ),
    ),
    (
        json.dumps(ORCHESTRATOR),
        (
            ("db1:3306", "db1:3306", "db1", 3306),
            ("db1:3306", "db2:3306", "db2", 3306),
            ("db9:3309", "db9:3309", "db9", 3309),
        ),
    ),
    (
        json.dumps(RDS),
        (
            ("new", "new", "new", 3310),
            ("orders", "orders", "orders.x.rds.amazonaws.com", 3306),
            ("orders", "orders-r1", "orders-r1.x.rds.amazonaws.com", 3306),
        ),
    ),
    (
        json.dumps(ANSIBLE),
        (("mysql_orders", "db1", "10.0.0.1", 3307), ("mysql_orders", "db2", "db2", 3310)),
    ),
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_has_a_recorded_input_for_each_recipe() -> None:
    assert len(blocks("jq")) == len(RECIPES)


@pytest.mark.skipif(shutil.which("jq") is None, reason="the recipes need jq")
@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_a_recipe_of_the_page_lists_the_servers(tmp_path: Path, number: int) -> None:
    (tmp_path / "recipe.jq").write_text(blocks("jq")[number])
    given, expected = RECIPES[number]
    options = ["-Rn"] if given is DNS else []
    printed = subprocess.run(
        ["jq", *options, "-f", str(tmp_path / "recipe.jq")],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert jsonschema.Draft202012Validator(inventory_schema()).is_valid(json.loads(printed))
    text = "clusters_from: {command: [cat, list.json]}\n"
    if '"clusters"' not in printed:
        text = LISTED
    assert places(load(written(tmp_path, text, **{"list.json": printed}))) == list(expected)


def test_the_examples_of_the_page_are_what_commands_print(tmp_path: Path) -> None:
    servers, clusters = blocks("json")
    listed = load(written(tmp_path, LISTED, **{"list.json": servers}))
    assert [each.name for each in listed.clusters[0].targets] == ["10.0.0.12:3310", "orders-1"]
    text = "clusters_from: {command: [cat, list.json]}\n"
    fleet = load(written(tmp_path, text, **{"list.json": clusters}))
    assert places(fleet) == [("orders", "orders-1.example:3310", "orders-1.example", 3310)]
    assert fleet.labels == {"orders": (("team", "shop"),)}


def test_the_fleet_file_and_the_problem_of_the_page(tmp_path: Path) -> None:
    [text] = blocks("yaml")
    path = tmp_path / "fleet.yaml"
    ca = Authority(tmp_path).file
    path.write_text(text.replace("/etc/ssl/mysql-ca.pem", str(ca)))
    scripts = {
        "orders-servers": '{"servers": [{"host": "a"}, {"host": "b"}, {"port": 1}]}',
        "rds-clusters": '{"clusters": [{"name": "x", "servers": [{"host": "c"}]}]}',
    }
    for name, printed in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{printed}'\n")
        (tmp_path / name).chmod(0o700)
    with pytest.raises(InventoryProblem) as refused:
        load(path, FLEET_PASSWORD="x")
    assert str(refused.value).replace(f"{tmp_path}/", "") in PAGE.read_text()
    (tmp_path / "orders-servers").write_text(f"#!/bin/sh\necho '{ONE}'\n")
    assert [each.name for each in load(path, FLEET_PASSWORD="x").clusters] == ["orders", "x"]


def test_the_reference_is_the_schema() -> None:
    assert (DOCS / "reference/inventory.schema.json").read_text() == schema_text()
