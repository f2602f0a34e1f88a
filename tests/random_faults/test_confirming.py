"""A finding counts as confirmed only if the servers show what it states."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from compose.native.server import Server
from compose.native.shapes import Topology
from gtid import GtidSet
from tests.random_faults.confirming import is_confirmed
from tests.random_faults.expectations import Reported

UUID = "6d1f0000-0000-4000-8000-000000000001"
RUNS = {"Replica_IO_Running": "Yes", "Replica_SQL_Running": "Yes", "Auto_Position": 1}


@dataclass
class StandIn:
    """A server that computes the functions of GTID sets on sets that the test gives it."""

    executed: str = ""
    purged: str = ""
    status: dict[str, object] = field(default_factory=lambda: dict(RUNS))
    gtid_mode: str = "ON"
    running: bool = True

    def query(self, sql: str, args: list[str]) -> list[tuple[object]]:
        claimed = GtidSet.parse(args[0])
        if "gtid_purged" in sql:
            return [(claimed <= GtidSet.parse(self.purged),)]
        if sql.startswith("SELECT GTID_SUBSET"):
            return [(claimed <= GtidSet.parse(f"{self.executed},{args[1]}"),)]
        assert sql.startswith("SELECT GTID_SUBTRACT"), sql
        return [(str(claimed & GtidSet.parse(self.executed)),)]

    def value(self, expression: str) -> str:
        assert expression == "@@GLOBAL.gtid_mode"
        return self.gtid_mode

    def replica_status(self) -> dict[str, object]:
        return self.status


def confirmed(code: str, numbers: str, source: StandIn, replica: StandIn) -> bool:
    servers = {"a": cast("Server", source), "b": cast("Server", replica)}
    gtids = GtidSet.parse(f"{UUID}:{numbers}" if numbers else "")
    finding = Reported(code, "critical", "proved", "a", "b", gtids, "")
    return is_confirmed(finding, Topology(servers))


SHORT, LONG = StandIn(f"{UUID}:1-5"), StandIn(f"{UUID}:1-9")


@pytest.mark.parametrize(
    ("code", "numbers", "source", "replica", "is_there"),
    [
        ("H1", "6-9", LONG, SHORT, True),
        ("H1", "5-9", LONG, SHORT, False),  # the replica has one of them
        ("H1", "6-10", LONG, SHORT, False),  # the source does not have one
        ("H1", "", LONG, SHORT, False),
        ("E1", "6-9", SHORT, LONG, True),
        ("E1", "6-9", LONG, SHORT, False),
        ("E6", "6-9", SHORT, StandIn("", status={"Retrieved_Gtid_Set": f"{UUID}:6-9"}), True),
        ("P5", "6-9", StandIn(f"{UUID}:1-9", purged=f"{UUID}:1-9"), SHORT, True),
        ("P5", "6-9", LONG, SHORT, False),
        ("A7", "", LONG, StandIn(status={**RUNS, "Replica_SQL_Running": "No"}), True),
        ("A7", "", LONG, SHORT, False),
        ("C3", "", LONG, StandIn(status={**RUNS, "Auto_Position": 0}), True),
        ("C3", "", LONG, SHORT, False),
        ("C4", "", StandIn(gtid_mode="ON_PERMISSIVE"), SHORT, True),
        ("C4", "", LONG, SHORT, False),
        ("E4", "1-5", LONG, SHORT, False),  # SQL does not show it
        ("H1", "6-9", LONG, StandIn(f"{UUID}:1-5", running=False), False),
    ],
)
def test_a_finding_is_confirmed_if_sql_shows_it(
    code: str, numbers: str, source: StandIn, replica: StandIn, is_there: bool
) -> None:
    assert confirmed(code, numbers, source, replica) is is_there
