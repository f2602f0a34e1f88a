"""Pasted output of real servers: the reading is the live one, and the audit finds the same faults.

The real mysql client prints the output, as docs/offline.md tells an operator to do it.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.groups import group_and_replica
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from compose.native.shapes import Pair, Topology
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.pasted import VERTICAL, answered, printed, save_round
from topology.adapters.mysql import MysqlReader
from topology.adapters.offline.pasted_files import read_pasted
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

# They are another moment's.
TIMES = {"read_started", "read_ended", "server_clock", "uptime_seconds", "host", "port"}
# A cause that one reading does not prove hides no symptom.
SYMPTOMS = {"A4", "A7", "C3", "T3"}
Found = dict[str, tuple[str, str]]


@pytest.fixture(params=["pair97", "pair56"])
def any_pair(request: pytest.FixtureRequest) -> Pair:
    pair = request.getfixturevalue(request.param)
    assert isinstance(pair, Pair)
    return pair


@pytest.fixture(params=["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def mostly_97(request: pytest.FixtureRequest) -> Pair:
    pair = request.getfixturevalue(request.param)
    assert isinstance(pair, Pair)
    return pair


def live(servers: Mapping[str, Server]) -> dict[str, Any]:
    dsns = [f"mysql://root@127.0.0.1:{server.port}/" for server in servers.values()]
    return document("audit", *dsns, "--json", "--no-content")


def document(*arguments: str) -> dict[str, Any]:
    done = run_cli(*arguments)
    assert done.returncode <= 3, done.stderr
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


def offline(folder: Path) -> dict[str, Any]:
    return document("audit", "--offline", str(folder), "--json", "--no-content")


def found_in(made: Mapping[str, Any]) -> Found:
    return {each["code"]: (each["severity"], each["grade"]) for each in made["findings"]}


def assert_same_codes(servers: Mapping[str, Server], clients: Clients, folder: Path) -> Found:
    """Audit live, with two readings in files, and with one; return what the files show."""
    expected = found_in(live(servers))
    assert expected, "there is a fault"
    save_round(servers, clients, folder / "two", "first")
    save_round(servers, clients, folder / "two", "second")
    save_round(servers, clients, folder / "one", "")
    two, one = offline(folder / "two"), offline(folder / "one")
    for made in (two, one):
        assert made["verdict"] == "CRITICAL"
        assert expected.keys() <= found_in(made).keys()
        assert found_in(made).keys() - expected.keys() <= SYMPTOMS
        for code, (severity, grade) in found_in(made).items():
            if code in expected:
                assert severity == expected[code][0]
                assert grade in (expected[code][1], "likely")
    return found_in(one)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two").mkdir()
    return tmp_path


# -- the reading ----------------------------------------------------------------------------------


def comparable(reading: ServerSnapshot) -> dict[str, Any]:
    """Return what two readings of a server at rest have in common."""
    made = {
        each.name: getattr(reading, each.name) for each in fields(reading) if each.name not in TIMES
    }
    made["channels"] = tuple(map(_at_rest, reading.channels or ()))
    return made


def _at_rest(channel: ChannelSnapshot) -> ChannelSnapshot:
    workers = tuple(replace(each, applying_seconds=None) for each in channel.workers)
    return replace(channel, workers=workers, lag_seconds=None)


@pytest.mark.parametrize("options", [VERTICAL, ("--table",), (), ("--raw",), ("-vvv",)])
def test_the_reading_is_the_live_one(
    any_pair: Pair, mysql_clients: Clients, tmp_path: Path, options: Sequence[str]
) -> None:
    for server in any_pair.servers.values():
        faults.commit(server, f"CREATE DATABASE of_{server.server_id}")
    any_pair.settle()
    save_round(any_pair.servers, mysql_clients, tmp_path / "one", "", options=options)
    pasted = read_pasted(tmp_path / "one", cluster="offline")
    for found in pasted.first:
        reading, server = found, any_pair[found.name]
        target = ServerTarget(found.name, "127.0.0.1", server.port, "root")
        reader = MysqlReader(target, cluster="offline", timeout_seconds_max=5)
        expected = reader.read(phase=1)
        reader.close()
        for _ in range(5):  # an applier's positions follow at its next checkpoint
            if comparable(reading) == comparable(expected):
                break
            save_round(any_pair.servers, mysql_clients, tmp_path / "one", "", options=options)
            again = read_pasted(tmp_path / "one", cluster="offline").first
            reading = next(each for each in again if each.name == expected.name)
        assert reading.unread == ()
        assert comparable(reading) == comparable(expected)
        assert reading.clock_ahead is not None
        assert abs(reading.clock_ahead.total_seconds()) < 2


def test_a_healthy_pair_is_ok(any_pair: Pair, mysql_clients: Clients, tmp_path: Path) -> None:
    faults.commit(any_pair.a, "CREATE DATABASE fine")
    any_pair.settle()
    for which in ("first", "second"):
        save_round(any_pair.servers, mysql_clients, tmp_path / "two", which)
    save_round(any_pair.servers, mysql_clients, tmp_path / "one", "")
    for folder in (tmp_path / "two", tmp_path / "one"):
        made = offline(folder)
        assert {each["severity"] for each in made["findings"]} <= {"info"}
        assert (made["verdict"], made["unknown"]) == ("OK", [])
    # They have just been started: a live audit would compare contents.
    made = document("audit", "--offline", str(tmp_path / "two"), "--json")
    assert made["verdict"] == "UNKNOWN"
    assert {each["fact"] for each in made["unknown"]} == {"content of transactions"}


# -- faults ---------------------------------------------------------------------------------------


def test_an_errant_transaction(mostly_97: Pair, mysql_clients: Clients, tmp_path: Path) -> None:
    faults.errant_transaction(mostly_97)
    assert "E1" in assert_same_codes(mostly_97.servers, mysql_clients, tmp_path)


def test_a_hole_that_a_file_position_left(
    mostly_97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    faults.position_bypass(mostly_97)
    assert "H1" in assert_same_codes(mostly_97.servers, mysql_clients, tmp_path)


def test_logs_purged_under_a_stopped_replica(
    mostly_97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    faults.purge_under_stopped_replica(mostly_97)
    found = assert_same_codes(mostly_97.servers, mysql_clients, tmp_path)
    assert found["P1"] == ("critical", "likely")


def test_an_applier_that_stopped_with_1062(
    mostly_97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    mostly_97.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    mostly_97.settle()
    mostly_97.b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.t VALUES (1)")
    mostly_97.a.execute("INSERT INTO d.t VALUES (1)")
    faults.await_applier_stopped(mostly_97.b)
    assert "A2" in assert_same_codes(mostly_97.servers, mysql_clients, tmp_path)


def test_a_source_that_lost_its_tail_is_unknown_until_it_is_read_again(
    pair97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    """One reading does not tell a loss from transactions that are younger than the file."""
    faults.lost_tail_crash(pair97)
    save_round(pair97.servers, mysql_clients, tmp_path / "one", "")
    save_round(pair97.servers, mysql_clients, tmp_path / "two", "first")
    save_round(pair97.servers, mysql_clients, tmp_path / "two", "second")
    one, two = offline(tmp_path / "one"), offline(tmp_path / "two")
    assert "T4" in found_in(one)
    assert not {"E3", "E6"} & found_in(one).keys()
    assert any("of its own that b has" in each["fact"] for each in one["unknown"])
    assert {"E3", "E6"} & found_in(two).keys()


# -- the page -------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs/offline.md"


def commands_of_page() -> list[str]:
    """Return the lines of the page that are commands."""
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(("gtid-audit ", "{ "))]


def test_the_commands_of_the_page_audit_a_pair(
    pair97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    """Every command, in a shell: with a `mysql` that goes to the server of its file."""
    faults.commit(pair97.a, "CREATE DATABASE fine")
    pair97.settle()
    audit, new, old, collect = commands_of_page()
    assert audit == "gtid-audit audit --offline DIR"
    bin_folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tmp_path}:{bin_folder}:{os.environ['PATH']}"}

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    (tmp_path / "DIR").mkdir()
    for line in (new, old):
        assert shell(line).stderr == ""
    assert "SHOW SLAVE STATUS;" in (tmp_path / "old.sql").read_text()
    for which in ("first", "second"):
        for name, server in pair97.servers.items():
            client = " ".join(mysql_clients.command("mysql"))
            (tmp_path / "mysql").write_text(
                f'#!/bin/sh\n{client} --user=root --host=127.0.0.1 --port={server.port} "$@"\n'
            )
            (tmp_path / "mysql").chmod(0o755)
            line = collect.replace("db1.first", f"{name}.{which}")
            assert shell(line).returncode == 0
    done = shell(f"{audit} --no-content")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Read once" not in done.stdout


# -- what people paste ----------------------------------------------------------------------------

BY_HAND = """\
SELECT @@version, @@version_comment;
SELECT @@GLOBAL.gtid_executed, @@server_uuid, @@server_id;
{channels};
{log_end};
SHOW BINARY LOGS;
"""


def test_a_few_statements_of_a_person(
    any_pair: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    """A stopped applier is found; each fact that is missing has its statement."""
    any_pair.b.execute(f"{_dialect(any_pair).stop_replica} SQL_THREAD")
    dialect = _dialect(any_pair)
    text = BY_HAND.format(
        channels=dialect.show_replica_status, log_end=dialect.show_binary_log_status
    )
    (tmp_path / "one").mkdir()
    for name, server in any_pair.servers.items():
        output = printed(server, mysql_clients, text, options=("--table", "-vvv"))
        (tmp_path / "one" / f"{name}.log").write_text(output.replace("\n", "\r\n"), newline="")
    made = offline(tmp_path / "one")
    assert made["verdict"] == "UNKNOWN"
    assert "A7" in found_in(made)
    reasons = {(each["server"], each["fact"]): each["reason"] for each in made["unknown"]}
    assert reasons["a", "gtid_purged"] == "not in the file: run SELECT @@GLOBAL.gtid_purged"
    assert all(
        "run S" in reason or "run the" in reason or "date -u" in reason
        for (_, fact), reason in reasons.items()
        if fact != "binary logs"
    )


def _dialect(pair: Pair) -> Any:
    return dialect_of(ServerVersion.parse(pair.a.value("@@GLOBAL.version")))


def test_without_privileges_each_refusal_is_shown(
    pair97: Pair, mysql_clients: Clients, tmp_path: Path
) -> None:
    """The client goes on after an error, and the marker shows which statement it is of."""
    pair97.a.execute("CREATE USER nobody@'%' IDENTIFIED BY ''")
    pair97.settle()
    (tmp_path / "one").mkdir()
    for name, server in pair97.servers.items():
        output = answered(server, mysql_clients, options=(*VERTICAL, "--user=nobody"))
        (tmp_path / "one" / f"{name}.txt").write_text(output)
    made = offline(tmp_path / "one")
    reasons = {each["fact"]: each["reason"] for each in made["unknown"] if each["server"] == "b"}
    assert reasons["channels"].startswith("privilege: 1227: Access denied; you need")
    assert reasons["log_end"].startswith("privilege: 1227: Access denied; you need")


@pytest.mark.slow  # a group takes some ten seconds to start, and as long to end
def test_a_group_is_compared_only_with_two_readings(
    installation97: Installation, mysql_clients: Clients, tmp_path: Path
) -> None:
    members = ("m1", "m2", "m3")
    with group_and_replica(installation97, members=members, named_as_replica=False) as group:
        for which in ("first", "second"):
            save_round(group.servers, mysql_clients, tmp_path / "two", which)
        save_round(group.servers, mysql_clients, tmp_path / "one", "")
    two, one = offline(tmp_path / "two"), offline(tmp_path / "one")
    assert (two["verdict"], two["unknown"]) == ("OK", [])
    assert {each["severity"] for each in (*two["findings"], *one["findings"])} <= {"info"}
    assert [each["server"] for each in one["unknown"]] == [*members]
    assert all("differences within the group" in each["fact"] for each in one["unknown"])


def test_channels_of_several_sources(
    star97: Topology, mysql_clients: Clients, tmp_path: Path
) -> None:
    star97.settle()
    save_round(star97.servers, mysql_clients, tmp_path / "one", "")
    made = offline(tmp_path / "one")
    assert (made["verdict"], made["unknown"]) == ("OK", [])
