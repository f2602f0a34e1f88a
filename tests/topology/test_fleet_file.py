import re
from collections.abc import Callable
from pathlib import Path

import pytest

from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.accounts import AccountSource
from topology.adapters.inventory.fleet import Fleet
from topology.adapters.inventory.fleet_file import load_fleet, load_roster, parse_fleet
from topology.adapters.inventory.option_file import OptionFile, read_option_file
from topology.adapters.inventory.problem import InventoryProblem
from topology.readings.target import Secret, ServerTarget, SslMode

EXAMPLE = """
defaults:
  user: auditor
  password: {env: FLEET_PASSWORD}
  port: 3307
  ssl: required
limits:
  server_seconds_max: 2.5
  connections_max: 7
policy:
  allowed_uuids: [3e11fa47-71ca-11e1-9e33-c80aa9429562]
clusters:
  - name: orders
    servers:
      - {name: two, host: db2.example, port: 3306, user: other}
      - {name: one, dsn: "mysql://db1.example/"}
  - name: billing
    servers:
      - {name: one, host: "fd00::1", password: {env: OTHER_PASSWORD}}
"""
ENVIRONMENT = {"FLEET_PASSWORD": "of the fleet", "OTHER_PASSWORD": "other", "MYSQL_PWD": "never"}


def fleet(text: str) -> Fleet:
    return parse_fleet(text, name="f.yaml", environment=ENVIRONMENT, warn=pytest.fail)


def problems(text: str) -> list[str]:
    with pytest.raises(InventoryProblem) as refusal:
        fleet(text)
    return list(refusal.value.problems)


def test_what_may_leave_without_tls_is_said_for_one_server_or_for_all() -> None:
    read = fleet(
        "clusters: [{name: c, servers: [{name: a, host: h, user: u, get_server_public_key: true},"
        " {name: b, host: i, user: u}]}]"
    )
    [a, b] = read.clusters[0].targets
    assert (a.get_server_public_key, a.enable_cleartext_plugin) == (True, False)
    assert (b.get_server_public_key, b.enable_cleartext_plugin) == (False, False)
    read = fleet(
        "defaults: {user: u, enable_cleartext_plugin: true}\n"
        "clusters: [{name: c, servers: [{name: a, host: h}]}]"
    )
    assert read.clusters[0].targets[0].enable_cleartext_plugin
    refused = problems(
        "clusters: [{name: c, servers: [{name: a, host: h, get_server_public_key: no}]}]"
    )
    assert "get_server_public_key" in refused[0]


def test_a_fleet_is_read_in_order_of_name() -> None:
    read = fleet(EXAMPLE)
    assert [cluster.name for cluster in read.clusters] == ["billing", "orders"]
    assert read.clusters[1].targets == (
        ServerTarget(
            "one", "db1.example", 3306, "auditor", Secret("of the fleet"), ssl_mode=SslMode.REQUIRED
        ),
        ServerTarget(
            "two", "db2.example", 3306, "other", Secret("of the fleet"), ssl_mode=SslMode.REQUIRED
        ),
    )
    assert read.clusters[0].targets[0].port == 3307
    assert read.clusters[0].targets[0].password == Secret("other")
    assert read.limits.server_seconds_max == 2.5
    assert read.connections_max == 7
    assert len(read.policy.allowed_uuids) == 1


def test_the_limits_of_an_applier_are_seconds() -> None:
    line = "  allowed_uuids: [3e11fa47-71ca-11e1-9e33-c80aa9429562]\n"
    policy = fleet(EXAMPLE.replace(line, "  lock_wait_seconds_max: 30\n")).policy
    assert (policy.lock_wait_seconds_max, policy.stall_seconds_max) == (30, 60)
    policy = fleet(EXAMPLE.replace(line, "  stall_seconds_max: 600\n")).policy
    assert (policy.lock_wait_seconds_max, policy.stall_seconds_max) == (10, 600)
    (found,) = problems(EXAMPLE.replace(line, "  stall_seconds_max: -1\n"))
    assert "policy.stall_seconds_max: input should be greater than or equal to 0" in found


def test_external_sources_are_addresses() -> None:
    line = "  allowed_uuids: [3e11fa47-71ca-11e1-9e33-c80aa9429562]\n"
    given = '  external_sources: ["db9.example:3306", "[fd00::9]:3306"]\n'
    assert fleet(EXAMPLE.replace(line, given)).policy.external_sources == {
        "db9.example:3306",
        "[fd00::9]:3306",
    }
    found = problems(EXAMPLE.replace(line, "  external_sources: [db9.example]\n"))
    assert found == ["f.yaml, line 11: policy.external_sources[0]: expected host:port"]


def test_one_cluster_of_it() -> None:
    read = fleet(EXAMPLE)
    assert [cluster.name for cluster in read.only("orders").clusters] == ["orders"]
    assert read.only(None) is read
    with pytest.raises(InventoryProblem, match="did you mean orders"):
        read.only("order")


def test_a_cluster_that_is_not_in_the_file_is_answered_with_those_that_are() -> None:
    text = "defaults: {user: u}\nclusters:\n" + "".join(
        f"  - name: c{at}\n    servers:\n      - {{name: a, host: a{at}}}\n"
        f"      - {{name: b, host: b{at}}}\n"
        for at in range(10)
    )
    made = fleet(text)
    with pytest.raises(InventoryProblem, match=r"it has c0, c1, .*, c7 and 2 others"):
        made.only("another")
    with pytest.raises(InventoryProblem, match=r"did you mean c\d\?"):
        made.only("cc3")


def test_all_problems_at_once_with_line_and_path() -> None:
    text = """defaults:
  usr: auditor
limits: {looks_max: 0, server_seconds_max: fast}
policy:
  allowed_uuids: [nope]
clusters:
  - name: a
    servers:
      - {name: x, host: h, password: hunter2}
      - {name: y, hots: h}
  - {name: b, servers: []}
  - {servers: 7}
"""
    found = problems(text)
    assert [line.split(": ", 1)[0] for line in found] == [
        f"f.yaml, line {line}" for line in (2, 3, 3, 5, 9, 10, 11, 12, 12)
    ]
    said = "\n".join(found)
    for part in (
        "defaults.usr: unknown key; did you mean user?",
        "limits.looks_max: input should be greater than or equal to 1",
        "limits.server_seconds_max: input should be a valid number",
        "policy.allowed_uuids[0]: is not a UUID",
        "clusters[0].servers[0].password: this file must not contain a password",
        "clusters[0].servers[1].hots: unknown key; did you mean host?",
        "clusters[1].servers: is empty",
        "clusters[2].servers: expected a list",
        "clusters[2].name: is missing",
    ):
        assert part in said
    assert "hunter2" not in said


def test_what_takes_two_values_to_see() -> None:
    text = """
clusters:
  - name: a
    servers:
      - {name: x, dsn: "mysql://u:hunter2@h/"}
      - {name: x, dsn: "mysql://u@i/", port: 3306}
      - {name: y, host: i, user: u, password: {env: NOT_SET}}
      - {name: z, host: I, user: u, password: {env: A, option_file: B}}
  - name: a
    servers:
      - {name: p, host: j}
      - {name: q, unix_socket: /s, port: 1, user: u}
      - {name: r, host: k, unix_socket: /t, user: u}
      - {name: s, user: u}
      - {name: t, host: l, user: u, password: {group: g, env: FLEET_PASSWORD}}
      - {name: v, dsn: "mysql://u@m/?option_file=/f", password: {env: FLEET_PASSWORD}}
      - {name: w, host: n, user: u, ssl_key: /k}
"""
    said = "\n".join(problems(text))
    for part in (
        "line 5: clusters[0].servers[0].dsn: the DSN contains a password",
        "line 6: clusters[0].servers[1].name: the same server name in this cluster as on line 5",
        "line 6: clusters[0].servers[1]: has a dsn and also port",
        "line 7: clusters[0].servers[2].password: the environment variable NOT_SET is not set",
        "line 8: clusters[0].servers[3]: the same address in this file as on line 7",
        "line 8: clusters[0].servers[3].password: requires exactly one of env, option_file, login_path",
        "line 9: clusters[1].name: the same cluster name as on line 3",
        "line 11: clusters[1].servers[0]: no user",
        "line 12: clusters[1].servers[1].port: a unix socket has no port",
        "line 13: clusters[1].servers[2]: requires exactly one of dsn, host and unix_socket",
        "line 14: clusters[1].servers[3]: requires exactly one of dsn, host and unix_socket",
        "line 15: clusters[1].servers[4].password: has a group without an option_file",
        "line 16: clusters[1].servers[5].password: the dsn also has one",
        "line 17: clusters[1].servers[6]: has only one of ssl_cert and ssl_key",
    ):
        assert part in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{host: db1}", "{host: DB1.}"),
        ("{host: db1}", "{dsn: 'mysql://u@db1:3306/'}"),
        ("{host: 10.0.0.1}", "{host: '::ffff:10.0.0.1'}"),
        ("{host: '::1'}", "{dsn: 'mysql://u@[0:0:0:0:0:0:0:1]:3306/'}"),
        ("{unix_socket: /run/a.sock}", "{unix_socket: /run/../run//a.sock}"),
    ],
)
@pytest.mark.parametrize("is_one_cluster", [True, False])
def test_one_server_under_two_names_is_refused(
    one: str, other: str, *, is_one_cluster: bool
) -> None:
    between = "" if is_one_cluster else "  - name: c2\n    servers:\n"
    text = (
        "defaults: {user: u}\nclusters:\n  - name: c1\n    servers:\n"
        f"      - {{name: a, {one[1:]}\n{between}      - {{name: b, {other[1:]}\n"
    )
    assert ["the same address in this file as on line 5" in each for each in problems(text)] == [
        True
    ]


def test_addresses_that_differ_are_no_problem() -> None:
    servers = ("host: h", "host: h, port: 3307", "unix_socket: /S", "unix_socket: /s")
    lines = [f"      - {{name: n{number}, {one}}}" for number, one in enumerate(servers)]
    text = "defaults: {user: u}\nclusters:\n  - name: c\n    servers:\n" + "\n".join(lines)
    assert len(fleet(text).clusters[0].targets) == len(servers)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters: []", "clusters: is empty"),
        ("a: [1", "begun in line 1"),
        ("a: 1\na: 2", "line 2: the key appears twice"),
        ("a: &x [1]\nb: *x", "line 2: an anchor is reused"),
        ("? [1]\n: 2", "a key that is not a word"),
        ("a: \x01", "not YAML: a character"),
        ("a: 2026-13-45", "not YAML: a character or value"),
        ("!!python/object:os.system x", "not YAML"),
        ("", "clusters: is missing"),
        ("[]", "the file: expected keys and values"),
    ],
)
def test_what_is_not_a_fleet_file(text: str, said: str) -> None:
    assert said in problems(text)[0]


def test_many_problems_are_counted() -> None:
    servers = "\n".join(f"      - {{name: n{i}}}" for i in range(80))
    found = problems(f"clusters:\n  - name: a\n    servers:\n{servers}\n")
    assert len(found) == 51
    assert found[-1] == "f.yaml: … and 30 more problems"


def test_too_many_servers() -> None:
    text = EXAMPLE.replace("connections_max: 7", "servers_max: 2")
    assert problems(text) == [
        "f.yaml: line 19: more servers than limits.servers_max, 2; the rest was not read"
    ]
    # What follows is not read: a line that is not YAML is no problem of this file yet.
    assert problems(text + "]]]") == problems(text)
    below = text.replace("limits:", "policy: {}\nlimits:", 1).split("limits:")
    assert len(below) == 2
    limits, rest = below[1].split("policy:")
    [found] = problems(f"{below[0].replace('policy: {}', '')}policy:{rest}limits:{limits}")
    assert "3 servers are more than servers_max, 2" in found  # read last, checked last


def test_problems_are_sorted_by_place_and_said_once() -> None:
    servers = ", ".join(f"{{name: n{i}, hots: x, port: 0}}" for i in (1, 2))
    found = problems(f"defaults: {{user: u}}\nclusters: [{{name: c, servers: [{servers}]}}]\nx: 1")
    places = [line.split(": ")[1] for line in found]
    assert places == [
        *("clusters[0].servers[0].hots", "clusters[0].servers[0].port"),
        *("clusters[0].servers[1].hots", "clusters[0].servers[1].port", "x"),
    ]
    many = "\n".join(f"      - {{name: n{i}, host: h{i}}}" for i in range(60))
    text = "defaults: {user: u, password: {env: NOT_SET}}\nclusters:\n  - name: c\n"
    assert problems(f"{text}    servers:\n{many}\n") == [
        "f.yaml, line 1: defaults.password: the environment variable NOT_SET is not set"
    ]


def test_an_option_file_is_read_once_for_all_of_its_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=filed\npassword=hidden\n")
    path.chmod(0o600)
    calls: list[Path] = []

    def counted(file: Path, *, check: Callable[[Path], None]) -> OptionFile:
        calls.append(file)
        return read_option_file(file, check=check)

    monkeypatch.setattr("topology.adapters.inventory.account_files.read_option_file", counted)
    servers = "".join(f"\n      - {{name: n{i}, host: h{i}}}" for i in range(50))
    text = (
        f"defaults: {{password: {{option_file: {path}}}}}\nclusters:\n  - name: c\n    servers:"
        f"{servers}"
    )
    assert {target.user for target in fleet(text).clusters[0].targets} == {"filed"}
    assert calls == [path]


def test_credentials_from_an_option_file(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=filed\npassword=hidden\n")
    path.chmod(0o644)
    text = f"""
defaults: {{password: {{option_file: {path}}}}}
clusters:
  - name: a
    servers: [{{name: x, host: h}}, {{name: y, host: i}}]
"""
    (tmp_path / "fleet.yaml").write_text(text)
    said: list[str] = []
    read = load_fleet(tmp_path / "fleet.yaml", environment={}, warn=said.append)
    assert {target.user for target in read.clusters[0].targets} == {"filed"}
    assert {target.password for target in read.clusters[0].targets} == {Secret("hidden")}
    assert len(said) == 1
    assert "hidden" not in repr(read)


def test_a_password_is_in_a_file_or_the_environment_or_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("filed\n")
    (tmp_path / "secret").chmod(0o400)
    text = f"""
defaults: {{user: u}}
clusters: [{{name: c, servers: [
  {{name: a, host: h, password: {{password_file: {tmp_path}/secret}}}}, {{name: b, host: i}},
  {{name: c, dsn: "v@j?password_file={tmp_path}/secret"}}]}}]
"""
    for environment, of_b in (({"MYSQL_PWD": "of all"}, "of all"), ({}, "")):
        read = parse_fleet(text, name="f.yaml", environment=environment, warn=pytest.fail)
        found = [each.password for each in read.clusters[0].targets]
        assert found == [Secret("filed"), Secret(of_b), Secret("filed")]
    (tmp_path / "secret").unlink()
    with pytest.raises(InventoryProblem) as refusal:
        parse_fleet(text, name="f.yaml", environment={}, warn=pytest.fail)
    assert [each.replace(str(tmp_path), "") for each in refusal.value.problems] == [
        "f.yaml, line 4: clusters[0].servers[0].password: /secret: No such file or directory",
        "f.yaml, line 5: clusters[0].servers[2]: /secret: No such file or directory",
    ]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InventoryProblem, match="No such file"):
        load_fleet(tmp_path / "nowhere.yaml", environment={}, warn=pytest.fail)
    (tmp_path / "f.yaml").write_bytes(b"\xff")
    with pytest.raises(InventoryProblem, match="not UTF-8"):
        load_fleet(tmp_path / "f.yaml", environment={}, warn=pytest.fail)


def test_a_roster_says_where_the_accounts_are_and_looks_up_none(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(EXAMPLE)
    roster = load_roster(path, environment={})
    assert [cluster.name for cluster in roster.clusters] == ["billing", "orders"]
    assert [cluster.name for cluster in roster.only("orders").clusters] == ["orders"]
    assert roster.only(None) is roster
    one, two = roster.clusters[1].servers
    assert one.account == AccountSource(user_default="auditor", env="FLEET_PASSWORD")
    assert two.account == AccountSource("other", user_default="auditor", env="FLEET_PASSWORD")
    read = fleet(EXAMPLE)
    assert (roster.limits, roster.policy) == (read.limits, read.policy)
    assert roster.connections_max == read.connections_max
    for entries, cluster in zip(roster.clusters, read.clusters, strict=True):
        assert cluster.targets == tuple(
            entry.target(AccountFiles(ENVIRONMENT, pytest.fail)) for entry in entries.servers
        )
    with pytest.raises(InventoryProblem, match="FLEET_PASSWORD is not set"):
        one.target(AccountFiles({}, pytest.fail))
    assert one.target_without_account().user == ""
    path.write_text(EXAMPLE.replace("limits:", "limts:").replace("{name: two", "{nam: two"))
    with pytest.raises(InventoryProblem) as refusal:
        load_roster(path, environment={})
    assert len(refusal.value.problems) == 3


@pytest.mark.parametrize(
    "deep", ["[" * 5_000, "\n".join(["a:", *(" " * n + "a:" for n in range(5, 1_500))])]
)
def test_text_that_is_nested_without_end_is_refused_with_its_line(deep: str) -> None:
    [problem] = problems("defaults: {user: u}\nclusters:\n  - " + deep)
    # Newer versions of libyaml have a limit of their own, and notice it before the first event.
    assert re.search("nested more than 100 levels deep|exceeded maximum nesting depth", problem)
    assert problem.startswith("f.yaml: line ")


def test_a_policy_sets_the_levels_of_remarks() -> None:
    line = "  allowed_uuids: [3e11fa47-71ca-11e1-9e33-c80aa9429562]\n"
    text = "  levels: {C8: info, C5: warning}\n  outage_seconds_max: 3600\n"
    text += "  definitions: true\n  ddl_wait_seconds_max: 0\n"
    policy = fleet(EXAMPLE.replace(line, text)).policy
    assert (policy.definitions, policy.ddl_wait_seconds_max) == (True, 0)
    assert policy.levels == (("C5", "warning"), ("C8", "info"))
    assert policy.outage_seconds_max == 3600
    for wrong, word in (
        ("levels: {E1: info}", "levels"),  # a fault is no remark
        ("levels: {C99: info}", "is not one of C1, C2"),
        ("levels: {C5: loud}", "levels"),
        ("outage_seconds_max: 604801", "outage_seconds_max"),
        ("clock_seconds_max: 0", "clock_seconds_max"),
        ("intervals_max: 99", "intervals_max"),
        ("definitions: 1", "definitions"),
        ("ddl_wait_seconds_max: -1", "ddl_wait_seconds_max"),
    ):
        found = problems(EXAMPLE.replace(line, f"  {wrong}\n"))
        assert word in found[0], found
