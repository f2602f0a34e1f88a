"""No cluster with a remark on settings, clocks, versions or sets is called clean by its columns."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GNO_END, GtidSet
from spark_audit.clean_clusters import ClusterBatch, clean_clusters
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from tests.spark_audit.clean_cases import evaluated, in_columns, numbers_of
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, table_of_records
from topology.documents.records import Record, snapshot_to_record
from topology.readings.snapshot import ServerSnapshot
from topology.readings.version import ServerVersion

SET = GtidSet.parse(f"{A}:1-10,{B}:1-10")
PLAIN = (("gtid_mode", "ON"), ("read_only", "ON"))
Settings = tuple[tuple[str, str], ...]


def writable(step: int, first: int) -> Settings:
    values = {"auto_increment_increment": str(step), "auto_increment_offset": str(first)}
    return (("gtid_mode", "ON"), ("read_only", "OFF"), *values.items())


def pair(a: dict[str, Any], b: dict[str, Any], *, both_ways: bool = True) -> list[Record]:
    """Return the rows of two healthy servers, with other facts."""
    to_a = (a_channel("b", B, gtid_retrieved=SET),) if both_ways else ()
    to_b = (a_channel("a", A, gtid_retrieved=SET),)
    servers = (
        a_server("a", A, SET, channels=to_a, **{"settings": PLAIN, **a}),
        a_server("b", B, SET, channels=to_b, **{"settings": PLAIN, **b}),
    )
    return rows_of(*servers)


def rows_of(*servers: ServerSnapshot) -> list[Record]:
    cluster = a_cluster("one", *servers)
    return [snapshot_to_record(each) for each in (*cluster.first, *cluster.last)]


def is_clean(rows: list[Record]) -> bool:
    table = table_of_records(rows, SNAPSHOT_SCHEMA).combine_chunks()
    clean, _ = clean_clusters(ClusterBatch(table, numbers_of([0, len(rows)])))
    return bool(clean[0])


def codes(rows: list[Record]) -> set[str]:
    """Return the codes of the rules, which the evaluation on columns must report as well."""
    [record] = evaluated({"one": rows})
    assert in_columns(rows) == [record]
    return set(re.findall(r"'code': '(\w+)'", str(record)))


def settings(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"settings": (*PLAIN, *pairs)}


REMARKS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "sync_binlog": (settings(("sync_binlog", "0")), {}, "C5"),
    "flush": (settings(("innodb_flush_log_at_trx_commit", "2")), {}, "C5"),
    "commit order": (
        settings(("replica_parallel_workers", "4"), ("replica_preserve_commit_order", "OFF")),
        {},
        "C7",
    ),
    "retention": ({}, settings(("binlog_expire_logs_seconds", "3600")), "C8"),
    "the same keys": (
        {"settings": writable(2, 1)},
        {"settings": writable(2, 1)},
        "C12",
    ),
    "no steps": ({"settings": writable(1, 1)}, {"settings": writable(1, 1)}, "C12"),
    "an offset that is ignored": (
        {"settings": writable(2, 1)},
        {"settings": writable(2, 4)},
        "C12",
    ),
    "a clock": (
        {},
        {"server_clock": a_server("b", B, "").read_ended + timedelta(minutes=1)},
        "C13",
    ),
    "versions": ({"version": ServerVersion(8, 4, 3)}, {"version": ServerVersion(8, 0, 40)}, "C14"),
}


@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_is_left_to_the_rules(remark: str) -> None:
    a, b, code = REMARKS[remark]
    rows = pair(a, b)
    assert codes(rows) == {code}
    assert not is_clean(rows)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {}),
        ({"settings": writable(2, 1)}, {"settings": writable(2, 2)}),
        ({"settings": writable(10, 7)}, {"settings": writable(10, 1)}),
        ({"settings": writable(1, 1)}, {}),  # the other is read-only
        (settings(("binlog_expire_logs_seconds", "2592000")), {}),
        (settings(("replica_parallel_workers", "1"), ("replica_preserve_commit_order", "0")), {}),
        ({"version": ServerVersion(9, 0, 1)}, {"version": ServerVersion(9, 7, 4)}),
    ],
)
def test_what_is_configured_well_is_settled(a: dict[str, Any], b: dict[str, Any]) -> None:
    rows = pair(a, b)
    assert is_clean(rows)
    assert codes(rows) == set()


def test_what_differs_without_a_remark_may_be_left_to_the_rules() -> None:
    rows = pair({"settings": writable(4, 1)}, {"settings": writable(2, 2)})
    assert codes(rows) == set(), "no number is in both sequences"
    upgraded = pair(
        {"version": ServerVersion(8, 0, 40)}, {"version": ServerVersion(8, 4, 3)}, both_ways=False
    )
    assert codes(upgraded) == set(), "a replica of the next series is supported"


def test_a_writable_replica_is_left_to_the_rules() -> None:
    rows = pair({"settings": writable(2, 1)}, {"settings": writable(2, 2)}, both_ways=False)
    assert codes(rows) == {"C9"}
    assert not is_clean(rows)
    source = pair({"settings": writable(1, 1)}, {}, both_ways=False)
    assert is_clean(source)
    assert codes(source) == set()


def test_a_writable_third_server_is_left_to_the_rules() -> None:
    channel = a_channel("a", A, gtid_retrieved=SET)
    back = a_channel("b", B, gtid_retrieved=SET)
    rows = rows_of(
        a_server("a", A, SET, channels=(back,), settings=writable(3, 1)),
        a_server("b", B, SET, channels=(channel,), settings=writable(3, 2)),
        a_server("c", C, SET, channels=(channel,), settings=writable(3, 3)),
    )
    assert codes(rows) == {"C9"}
    assert not is_clean(rows)


def test_values_that_change_between_the_readings_are_left_to_the_rules() -> None:
    rows = pair({"settings": writable(2, 1)}, {"settings": writable(2, 2)})
    first_b = next(each for each in rows if each["name"] == "b" and each["phase"] == 1)
    first_b["notable_settings"] = "auto_increment=2/1"
    assert not is_clean(rows)


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        (f"{A}:1-4:6-10", set()),  # a gap in its own numbers, which all servers have
        (f"{A}:1-{GNO_END - 2}", {"F3"}),
        (f"{C}:1-{GNO_END - 2}", set()),
        (",".join(f"{C}:{2 * number + 1}" for number in range(1001)), {"F1"}),
    ],
)
def test_the_shape_of_sets_is_a_condition(executed: str, expected: set[str]) -> None:
    gtids = GtidSet.parse(executed)
    channel = a_channel("a", A, gtid_retrieved=gtids)
    servers = (
        a_server("a", A, gtids, settings=PLAIN),
        a_server("b", B, gtids, channels=(channel,), settings=PLAIN),
    )
    rows = rows_of(*servers)
    assert codes(rows) == expected
    if expected:
        assert not is_clean(rows)


def test_a_gap_that_all_servers_have_is_settled() -> None:
    gtids = GtidSet.parse(f"{A}:1-4:6-10")
    channel = a_channel("a", A, gtid_retrieved=gtids)
    a, b = a_server("a", A, gtids, settings=PLAIN), a_server("b", B, gtids, settings=PLAIN)
    assert is_clean(rows_of(a, replace(b, channels=(channel,))))
