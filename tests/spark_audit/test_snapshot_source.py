"""The data source without servers and without Spark: options, dealing, carrying, rows of failure."""

import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from spark_audit.adapters import snapshot_source
from spark_audit.adapters.option_texts import Credentials
from spark_audit.adapters.snapshot_source import (
    PARTITIONS_DEFAULT,
    MysqlSnapshotSource,
    SnapshotPartition,
    SnapshotReader,
    batch_of,
    dealt,
)
from spark_audit.adapters.source_options import SourceOptions
from spark_audit.evaluate_cluster import evaluate_records
from spark_audit.schema import SNAPSHOTS
from tests.snapshots import A, a_cluster, a_server
from tests.spark_audit.sparks_schema import sparks_arrow_schema
from topology.adapters.collect import CollectLimits
from topology.adapters.collect_fleet import unread_by_defect
from topology.adapters.inventory.accounts import AccountSource, ServerEntry
from topology.adapters.inventory.dsn import Dsn
from topology.adapters.inventory.fleet import Cluster, ClusterEntry, Fleet, Roster
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table
from topology.catalogue.findings import Verdict
from topology.policy import Policy
from topology.readings.target import Secret, ServerTarget

PASSWORD = "k3lvin-hunter2"
ANY = Path("fleet.yaml")
LIMITS = CollectLimits(server_seconds_max=2)


def pickled(thing: object) -> bytes:
    """Pickle as Spark does."""
    made: bytes = cloudpickle.dumps(thing)  # type: ignore[no-untyped-call]
    return made


def a_fleet(*sizes: int, connections_max: int = 64) -> Fleet:
    clusters = tuple(
        Cluster(
            f"c{number:03}",
            tuple(
                ServerTarget(f"s{each}", f"h{number}x{each}", 3306, "u", Secret(PASSWORD))
                for each in range(size)
            ),
        )
        for number, size in enumerate(sizes)
    )
    return Fleet(clusters, LIMITS, connections_max, Policy())


def a_roster(*accounts: AccountSource) -> Roster:
    servers = tuple(
        ServerEntry(f"s{number}", Dsn("127.0.0.1", number + 1, None), account)
        for number, account in enumerate(accounts)
    )
    return Roster((ClusterEntry("c", servers),), LIMITS, 64, Policy())


# -- options --------------------------------------------------------------------------------------


def test_options_in_any_case_and_their_defaults() -> None:
    assert SourceOptions.of({"FLEET": "f"}) == SourceOptions(Path("f"))
    given = {"fleet": "f", "Cluster": "c", "PARTITIONS": "3", "connections": "4"}
    assert SourceOptions.of({**given, "credentials": "Executor"}) == SourceOptions(
        Path("f"), "c", 3, 4, Credentials.EXECUTOR
    )


def test_all_problems_of_options_at_once_and_no_value() -> None:
    with pytest.raises(InventoryProblem) as refusal:
        SourceOptions.of(
            {
                "fleat": PASSWORD,
                "db_password": PASSWORD,
                "partitions": PASSWORD,
                "connections": "0",
                "credentials": PASSWORD,
                "cluster": "",
                "path": "f.yaml",
            }
        )
    said = list(refusal.value.problems)
    assert said[0].startswith("option db_password: a password must not be an option")
    assert said[1:] == [
        "option fleat: unknown; did you mean fleet?",
        "option path: unknown; the options are fleet, cluster, partitions, connections, credentials",
        "option cluster: is empty",
        "option connections: expected a number from 1 to 10,000",
        "option credentials: expected driver or executor",
        "option partitions: expected a number from 1 to 10,000",
        "option fleet: is missing; set it to the path of a fleet file",
    ]
    assert PASSWORD not in str(refusal.value)


@given(st.text(max_size=8))
def test_a_count_is_a_number_within_its_limits(text: str) -> None:
    try:
        count = SourceOptions.of({"fleet": "f", "partitions": text}).partitions
    except InventoryProblem:
        assert not (
            text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000 and len(text) < 6
        )
    else:
        assert count == int(text)
        assert 1 <= count <= 10_000


# -- dealing --------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=40),
    partitions=st.integers(1, 12),
    connections_max=st.integers(12, 200),
)
def test_every_cluster_is_dealt_once_evenly_and_within_the_connections(
    sizes: list[int], partitions: int, connections_max: int
) -> None:
    fleet = a_fleet(*sizes, connections_max=connections_max)
    parts = dealt(fleet, SourceOptions(ANY, partitions=partitions))
    assert len(parts) == min(partitions, len(sizes))
    dealt_out = [cluster for part in parts for cluster in part.clusters]
    assert sorted(dealt_out, key=lambda cluster: cluster.name) == list(fleet.clusters)
    for part in parts:
        assert part.clusters, "no task without work"
        assert [each.name for each in part.clusters] == sorted(each.name for each in part.clusters)
        assert (part.limits, part.policy) == (fleet.limits, fleet.policy)
    assert sum(part.connections_max for part in parts) <= connections_max
    loads = [sum(cluster.server_count for cluster in part.clusters) for part in parts]
    assert max(loads) - min(loads) <= max(sizes)
    assert parts == dealt(fleet, SourceOptions(ANY, partitions=partitions))


@pytest.mark.parametrize(
    ("clusters", "size", "connections_max", "partitions"),
    [
        (3, 2, 64, 3),  # no more than clusters
        (100, 2, 64, PARTITIONS_DEFAULT),
        (100, 2, 6, 3),  # each must be able to read a whole cluster at once
        (100, 9, 6, 1),
    ],
)
def test_how_many_tasks_there_are_unless_somebody_says(
    clusters: int, size: int, connections_max: int, partitions: int
) -> None:
    fleet = a_fleet(*[size] * clusters, connections_max=connections_max)
    assert len(dealt(fleet, SourceOptions(ANY))) == partitions


def test_more_tasks_than_connections_are_refused_unless_each_is_given_some() -> None:
    fleet = a_fleet(*[2] * 20, connections_max=4)
    with pytest.raises(InventoryProblem, match="5 tasks would share 4 connections"):
        dealt(fleet, SourceOptions(ANY, partitions=5))
    parts = dealt(fleet, SourceOptions(ANY, partitions=5, connections=3))
    assert [part.connections_max for part in parts] == [3] * 5


# -- carrying -------------------------------------------------------------------------------------


def test_a_secret_is_pickled_by_its_carrier_and_by_nobody_else() -> None:
    fleet = a_fleet(2)
    for dumps in (pickle.dumps, pickled):
        for thing in (Secret(PASSWORD), fleet.clusters[0].targets[0], fleet):
            with pytest.raises(TypeError, match="not pickled"):
                dumps(thing)
        carried = dumps(SnapshotPartition(fleet))
        assert PASSWORD.encode() in carried
        back = pickle.loads(carried)
        assert isinstance(back, SnapshotPartition)
        assert back.part == fleet
    assert repr(back) == "SnapshotPartition(1 clusters)"


def test_what_is_not_a_partition_carries_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_PASSWORD", PASSWORD)
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", PASSWORD)
    file = tmp_path / "fleet.yaml"
    file.write_text(
        "defaults: {user: u, password: {env: FLEET_PASSWORD}}\n"
        "clusters: [{name: c, servers: [{name: s, host: h}]}]\n"
    )
    source = MysqlSnapshotSource({"fleet": str(file)})
    assert source.schema() == SNAPSHOTS
    reader = source.reader(SNAPSHOTS)
    (partition,) = reader.partitions()
    assert PASSWORD.encode() in pickled(partition)
    things: tuple[object, ...] = (source, reader, MysqlSnapshotSource, reader.read)
    for thing in things:
        assert PASSWORD.encode() not in pickled(thing)
    by_executor = MysqlSnapshotSource({"fleet": str(file), "credentials": "executor"})
    (partition,) = by_executor.reader(SNAPSHOTS).partitions()
    assert PASSWORD.encode() not in pickled(partition)
    for thing in (reader, partition):
        assert PASSWORD not in repr(thing)


def test_problems_of_the_file_are_all_said_when_it_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(
        "defaults: {user: u, password: {env: NOT_SET_ANYWHERE}}\n"
        "clusters:\n"
        "  - name: c\n"
        "    servers: [{name: s, host: h}, {name: s, unix_socket: /x}]\n"
    )
    with pytest.raises(InventoryProblem) as refusal:
        MysqlSnapshotSource({"fleet": str(file)}).schema()
    said = "\n".join(refusal.value.problems)
    assert "NOT_SET_ANYWHERE is not set" in said
    assert "the same server name" in said
    with pytest.raises(InventoryProblem) as refusal:
        MysqlSnapshotSource({"fleet": str(file), "credentials": "executor"}).schema()
    assert "NOT_SET_ANYWHERE" not in str(refusal.value), "that is the executor's to find out"
    assert "the same server name" in str(refusal.value)
    with pytest.raises(InventoryProblem, match="its own schema"):
        MysqlSnapshotSource({"fleet": str(file)}).reader(type(SNAPSHOTS)(SNAPSHOTS.fields[:3]))


# -- rows -----------------------------------------------------------------------------------------


def test_the_rows_are_as_spark_expects_them() -> None:
    # Spark compares the schema of the first batch with its own and takes nothing but equality.
    assert sparks_arrow_schema(SNAPSHOTS) == SNAPSHOT_SCHEMA
    snapshot = a_cluster("c", a_server("s0", A, f"{A}:1-5"))
    batch = batch_of(snapshot)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.schema == SNAPSHOT_SCHEMA
    assert batch.num_rows == 2


def test_a_defect_in_reading_is_unknown_rows_without_the_password() -> None:
    (cluster,) = a_fleet(2).clusters
    boom = RuntimeError(f"boom: {PASSWORD}")
    batch = batch_of(unread_by_defect(cluster, boom, at=datetime.now(UTC)))
    assert batch.schema == SNAPSHOT_SCHEMA
    assert [(row["name"], row["phase"]) for row in batch.to_pylist()] == [
        ("s0", 1), ("s1", 1), ("s0", 2), ("s1", 2),
    ]  # fmt: skip
    audit = evaluate_records("c000", records_of_table(batch), policy=Policy())
    assert audit.verdict is Verdict.UNKNOWN
    assert {(one.server, one.fact, one.reason) for one in audit.unknown} == {
        (server, "reading", "error: defect of the auditor: RuntimeError: boom: …")
        for server in ("s0", "s1")
    }


def test_a_snapshot_that_cannot_be_typed_is_unknown_rows() -> None:
    # A lone surrogate is no text for Arrow: a defect in one cluster, of whatever kind.
    snapshot = a_cluster("c000", a_server("s0", A, f"{A}:1-5", version_text="\ud800"))
    batch = batch_of(snapshot)
    audit = evaluate_records("c000", records_of_table(batch), policy=Policy())
    assert audit.verdict is Verdict.UNKNOWN
    assert "the server's answer cannot be stored: " in audit.unknown[0].reason


def test_an_account_the_executor_lacks_is_an_unread_server_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONE_PASSWORD", PASSWORD)
    monkeypatch.delenv("OTHER_PASSWORD", raising=False)
    roster = a_roster(
        AccountSource(user="u", env="ONE_PASSWORD"),
        AccountSource(user="u", env="OTHER_PASSWORD"),
        AccountSource(env="ONE_PASSWORD"),
        AccountSource(user="u", option_file=str(tmp_path / "nowhere.cnf")),
    )
    reader = SnapshotReader(SourceOptions(ANY, credentials=Credentials.EXECUTOR))
    (batch,) = reader.read(SnapshotPartition(roster))
    rows = batch.to_pylist()
    assert len(rows) == 8
    said = {row["name"]: row["unread"][0]["detail"] for row in rows}
    assert said["s0"].startswith("Can't connect to MySQL server on '127.0.0.1'")
    assert said["s1"] == (
        "no account on the executor: the environment variable OTHER_PASSWORD is not set"
    )
    assert said["s2"].startswith("no account on the executor: no user")
    assert said["s3"].endswith("nowhere.cnf: No such file or directory")
    audit = evaluate_records("c", records_of_table(batch), policy=Policy())
    assert audit.verdict is Verdict.UNKNOWN
    assert PASSWORD not in str(audit)


def test_each_task_reads_within_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.Lock()
    now = most = 0

    class Slow:
        def __init__(self, name: str) -> None:
            self._name = name

        def read(self, *, phase: int) -> object:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            threading.Event().wait(0.005)
            with lock:
                now -= 1
            moment = datetime.now(UTC)
            server = a_server(self._name, A, f"{A}:1", phase=phase, cluster="x")
            return type(server)("x", self._name, "h", 1, phase, moment, moment)

        def close(self) -> None:
            pass

    def slow_readers(_cluster: str, _limits: object) -> Callable[[ServerTarget], Slow]:
        return lambda target: Slow(target.name)

    monkeypatch.setattr(snapshot_source, "live_readers", slow_readers)
    (part,) = dealt(a_fleet(*[2] * 10), SourceOptions(ANY, partitions=1, connections=4))
    reader = SnapshotReader(SourceOptions(ANY))
    assert len(list(reader.read(SnapshotPartition(part)))) == 10
    assert 2 <= most <= 4
