"""E1 of a replica with two sources, one of which receives from it, on real servers."""

import json

import pytest

from compose.faults import commit
from compose.faults_applier import await_received
from compose.native.installation import Installation
from compose.native.shapes import Link, TopologyPlan, follow_by_name, running
from tests.gtid_audit.build import run_cli

pytestmark = pytest.mark.mysql


def test_work_on_its_way_to_one_source_is_not_errant_on_the_other(
    installation97: Installation,
) -> None:
    """The twins: c, which receives from b, is delayed; or an operator has stopped its channel."""
    links = (Link("a", "b"), Link("b", "c"))
    with running(installation97, TopologyPlan(names=("a", "b", "c"), links=links)) as three:
        a, b, c = (three[name] for name in "abc")
        follow_by_name(b, c)
        for server in (a, c):
            commit(server, f"CREATE DATABASE of_{server.name}")
        three.settle()

        def errant() -> list[str]:
            done = run_cli("audit", a.dsn, b.dsn, c.dsn, "--json")
            found = json.loads(done.stdout)["findings"]
            return [each["grade"] for each in found if each["code"] == "E1"]

        c.execute(
            "STOP REPLICA",
            "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600",
            "START REPLICA",
        )
        await_received(c, commit(b, "CREATE DATABASE of_b"))
        assert errant() == []
        c.execute("STOP REPLICA", "RESET REPLICA ALL")
        assert errant() != []
