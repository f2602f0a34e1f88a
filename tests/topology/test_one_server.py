"""When two names are one server, and when they are two with one UUID."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.readings.one_server import same_servers

SETTINGS = (("datadir", "/d"), ("hostname", "h"), ("pid_file", "/p"), ("port", "3306"))


def test_one_server_is_unknown_and_not_c1() -> None:
    one = a_server("db1", A, f"{A}:1-9", settings=SETTINGS)
    other = replace(one, name="db2", host="10.0.0.1")
    third = a_server("db3", B, f"{A}:1-9", channels=(a_channel("db1", A),))
    snapshot = a_cluster("pair", one, other, third)
    assert same_servers(snapshot) == (("db1", "db2"),)
    audit = audit_cluster(snapshot)
    assert audit.verdict is Verdict.UNKNOWN
    assert audit.findings == ()
    assert [each.reason for each in audit.unknown] == [
        "db1 and db2 are the same server: list it once"
    ]


@pytest.mark.parametrize(
    "facts",
    [
        {"settings": (*SETTINGS[:1], ("hostname", "other"), *SETTINGS[2:])},
        {"settings": (("datadir", "/e"), *SETTINGS[1:])},
        {"settings": None},
        {"server_id": 99},
        {"uptime_seconds": 5},
        {"server_clock": None},
        {"gtid_executed": a_server("x", A, f"{A}:1-8").gtid_executed},
    ],
)
def test_a_copied_data_directory_is_two_servers(facts: dict[str, Any]) -> None:
    one = a_server("db1", A, f"{A}:1-9", settings=SETTINGS)
    other = replace(one, name="db2", **facts)
    snapshot = a_cluster("pair", one, other)
    assert same_servers(snapshot) == ()
    assert [finding.code for finding in audit_cluster(snapshot).findings] == ["C1"]


def test_a_set_that_grows_while_it_is_read_is_of_one_server() -> None:
    one = a_server("db1", A, f"{A}:1-9", settings=SETTINGS)
    other = replace(one, name="db2", gtid_executed=a_server("x", A, f"{A}:1-12").gtid_executed)
    snapshot = a_cluster("pair", one, other)
    grown = a_server("x", A, f"{A}:1-20").gtid_executed
    later = tuple(
        replace(each, gtid_executed=grown, read_ended=each.read_ended + timedelta(seconds=1))
        for each in snapshot.last
    )
    assert same_servers(replace(snapshot, last=later)) == (("db1", "db2"),)


def test_servers_of_unknown_identity_are_not_one() -> None:
    one = a_server("db1", None, f"{A}:1-9", settings=SETTINGS)
    assert same_servers(a_cluster("pair", one, replace(one, name="db2"))) == ()


@pytest.mark.parametrize(("seconds", "is_one"), [(0, True), (2, True), (3, False)])
def test_both_names_show_the_same_start(seconds: int, *, is_one: bool) -> None:
    """A later clock and a longer uptime are the same start; whole seconds leave two of doubt."""
    one = a_server("db1", A, f"{A}:1-9", settings=SETTINGS)
    later = timedelta(seconds=10)
    assert one.server_clock is not None
    assert one.uptime_seconds is not None
    other = replace(
        one,
        name="db2",
        server_clock=one.server_clock + later,
        uptime_seconds=one.uptime_seconds + 10 - seconds,
    )
    assert bool(same_servers(a_cluster("pair", one, other))) is is_one
