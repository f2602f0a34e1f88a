"""A replica that is connected and not named: no plan loses or overwrites rows there by default."""

from __future__ import annotations

import json
import re
import struct
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Pair, Topology, TopologyPlan, running, wait_for
from gtid_audit.cli import run
from tests.repair.live import rows, wait_until
from topology.adapters.connection import connect
from topology.adapters.neighbours import HOSTS, REPLICAS, read_connected
from topology.readings.connected_replica import ConnectedReplica
from topology.readings.dialect import dialect_of
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

READER = "audit_only"


def fleet(topology: Topology, folder: Path, *names: str, user: str = "root") -> str:
    path = folder / f"{'-'.join(names)}-{user}.yaml"
    servers = "".join(
        f"\n      - {{name: {name}, host: {each.host}, port: {each.port}}}"
        for name, each in ((name, topology[name]) for name in names)
    )
    path.write_text(
        f"defaults: {{user: {user}}}\npolicy: {{reconcile: [refetch, inject_empty, start_channel]}}\n"
        f"clusters:\n  - name: orders\n    servers:{servers}\n"
    )
    return str(path)


def planned(capsys: pytest.CaptureFixture[str], file: str, *words: str, status: int) -> Any:
    capsys.readouterr()
    words = ("repair", "plan", "--fleet", file, "--cluster", "orders", *words, "--json")
    assert run([*words]) == status
    return json.loads(capsys.readouterr().out)


def why_not(plan: Any, code: str = "H1") -> str:
    [left] = [each for each in plan["not_planned"] if each["code"] == code]
    return str(left["why"])


def connected_to(
    server: Server, user: str = "root"
) -> tuple[list[ConnectedReplica], list[tuple[str, str]]]:
    target = ServerTarget("x", server.host, server.port, user)
    dialect = dialect_of(ServerVersion(*server.version))
    found, unread = read_connected(target, dialect, seconds_max=20)
    return [*found], [(each.fact, each.reason.value) for each in unread]


def begin_to_read_log(connection: Any, number: int) -> None:
    """Send COM_BINLOG_DUMP as a client that does not register, and read nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
    place = struct.pack("<IHI", 4, 0, 900 + number)
    connection._execute_command(0x12, place + b"binlog.000001")


def test_nothing_is_fetched_or_emptied_above_a_replica_that_is_not_named(
    chain97: Topology,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    middle, last = chain97["middle"], chain97["last"]
    part = fleet(chain97, tmp_path, "first", "middle")
    reconcile = ["reconcile", "cluster", "orders", "--fleet", part, "--yes", "--json"]
    place = f"{last.host}:{last.port}, server_uuid {last.value('@@GLOBAL.server_uuid')}"
    reason = f"a replica or a consumer ({place}) is connected to middle and is not part of this"

    faults.table_on(chain97["first"], middle, "waiting")
    middle.execute(middle.dialect.stop_replica)
    faults.commit(chain97["first"], "INSERT INTO waiting.t () VALUES ()")
    assert run(reconcile) == 1
    [found] = json.loads(capsys.readouterr().out)["clusters"]
    assert found["applied"] is None
    assert found["why_kept"].startswith(f"the plan warns: {reason}")
    middle.execute(middle.dialect.start_replica)

    faults.position_bypass(chain97, source="first", replica="middle")
    wait_for(last, middle.value("@@GLOBAL.gtid_executed"))
    before = [str(each.value("@@GLOBAL.gtid_executed")) for each in (middle, last)]
    assert run(reconcile) == 1
    [found] = json.loads(capsys.readouterr().out)["clusters"]
    assert found["applied"] is None
    assert f"refetch: {reason}" in why_not(planned(capsys, part, status=1))
    whole = planned(capsys, fleet(chain97, tmp_path, "first", "middle", "last"), status=0)
    assert [each["action"] for each in whole["steps"]], "its rows were compared"

    kept = rows(chain97["first"], "bypassed.t")
    there = {row[0] for row in rows(middle, "bypassed.t")}
    missing = [row[0] for row in kept if row[0] not in there]
    lost = f"INSERT INTO bypassed.t (id) VALUES {', '.join(f'({each})' for each in missing)}"
    middle.execute("SET sql_log_bin = 0", lost)
    emptied = planned(capsys, part, status=1)
    assert f"inject_empty: {reason}" in why_not(emptied)
    page = (Path(__file__).parents[2] / "docs/repair-unseen.md").read_text()
    [shown] = re.findall(r"inject_empty: (a replica.*?)```", page, re.DOTALL)
    shown = " ".join(shown.split()).replace("10.0.0.13:3306, server_uuid 5c0f…", place)
    assert shown.replace("to db2 and", "to middle and") in why_not(emptied)
    chosen = planned(capsys, part, "--strategy", "H1=inject_empty", status=1)
    assert [each for each in chosen["warnings"] if reason in each and "no later audit" in each]
    assert [str(each.value("@@GLOBAL.gtid_executed")) for each in (middle, last)] == before


def test_every_reader_of_binary_logs_is_connected(pair97: Pair) -> None:
    """Without a privilege the reason is known; this process does not find its own reading."""
    first, replica = pair97.a, pair97.b
    uuid = str(replica.value("@@GLOBAL.server_uuid"))
    at_replica = ConnectedReplica(uuid, (f"{replica.host}:{replica.port}",))
    assert connected_to(first) == ([at_replica], [])
    first.execute(
        "SET sql_log_bin = 0",
        f"CREATE USER {READER}@'%' IDENTIFIED BY ''",
        f"GRANT REPLICATION SLAVE ON *.* TO {READER}@'%'",
    )
    assert connected_to(first, READER) == ([at_replica], [(HOSTS, "privilege")])
    first.execute(
        "SET sql_log_bin = 0",
        f"REVOKE REPLICATION SLAVE ON *.* FROM {READER}@'%'",
        f"GRANT SELECT ON performance_schema.* TO {READER}@'%'",
    )
    found, unread = connected_to(first, READER)
    assert (unread, {each.server_uuid for each in found}) == ([(REPLICAS, "privilege")], {uuid})
    ours = connect(ServerTarget("x", first.host, first.port, "root"), timeout_seconds_max=20)
    with closing(ours), first.connect() as consumer:
        for number, each in enumerate((ours, consumer)):
            begin_to_read_log(each, number)
        a_consumer = ConnectedReplica("", ("127.0.0.1",))
        wait_until(lambda: connected_to(first)[0] == [a_consumer, at_replica])


def test_5_6_lists_its_replicas_by_server_uuid(installation56: Installation) -> None:
    """Without report_host, too."""
    shape = TopologyPlan(names=("a", "b"), links=(Link(source="a", replica="b"),))
    with running(installation56, shape) as two:
        a, b = two["a"], two["b"]
        uuid = str(b.value("@@GLOBAL.server_uuid"))
        # The source lists a replica a moment after its receiver shows that it is connected.
        wait_until(lambda: [each.server_uuid for each in connected_to(a)[0]] == [uuid])
        assert connected_to(a)[1] == []
        a.execute(
            "SET sql_log_bin = 0",
            f"GRANT REPLICATION SLAVE ON *.* TO {READER}@'%' IDENTIFIED BY ''",
        )
        found, unread = connected_to(a, READER)
        assert [each.server_uuid for each in found] == [uuid]
        assert unread == [(HOSTS, "unsupported")]
        b.execute(b.dialect.stop_replica)
        a.execute("CREATE DATABASE ends_the_dump_thread")
        deadline = time.monotonic() + 20
        while connected_to(a)[0] and time.monotonic() < deadline:
            a.execute("FLUSH LOGS")
            time.sleep(0.1)
        assert connected_to(a) == ([], [])
