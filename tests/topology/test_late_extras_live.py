"""An errant transaction that a promotion would bring to others after later ones, on real servers."""

import json

import pytest

from compose.faults import commit
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for
from gtid import GtidSet
from tests.gtid_audit.build import run_cli
from tests.topology.test_handshake_live import matrix_of, point, read
from topology.catalogue.findings import Verdict
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps

pytestmark = pytest.mark.mysql


def value_on(server: Server) -> int:
    return int(server.query("SELECT v FROM extra.t")[0][0])


@pytest.mark.parametrize("image", ["FULL", pytest.param("MINIMAL", marks=pytest.mark.slow)])
def test_a_promotion_does_not_bring_an_errant_row_over_a_newer_one(
    star97: Topology, image: str
) -> None:
    """As it did: OK, the older row came, and every set was equal afterwards."""
    logging = f"SET SESSION binlog_row_image = '{image}'"
    source, first, second = (star97[name] for name in ("source", "replica1", "replica2"))
    commit(
        source,
        "CREATE DATABASE extra",
        "CREATE TABLE extra.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO extra.t VALUES (1, 1)",
    )
    star97.settle()
    errant = GtidSet.parse(commit(first, logging, "UPDATE extra.t SET v = 7"))
    later = commit(source, logging, "UPDATE extra.t SET v = 9")
    for each in (first, second):
        wait_for(each, later)
    snapshot = read(star97)
    matrix = matrix_of(snapshot)
    answers = [matrix.answer(replica=each, source="replica1") for each in ("replica2", "source")]
    assert [(each.extra, each.may_be_pointed) for each in answers] == [(errant, False)] * 2
    found = promotion_of(matrix, "replica1")
    steps = promotion_steps(found, snapshot)
    assert found.verdict is Verdict.WARNING
    assert {each.server for each in steps if each.statements} <= {"replica1"}, steps
    assert any("Plan the repair of these transactions" in each.what for each in steps), steps
    # What they say happens: an older row comes, and nothing shows it.
    point(second, first)
    second.execute("START REPLICA")
    wait_for(second, str(errant))
    assert (value_on(first), value_on(second), value_on(source)) == (9, 7, 9)
    assert promotion_of(matrix_of(read(star97)), "replica1").verdict is not Verdict.OK


def test_an_errant_transaction_without_rows_is_no_reason_to_wait(star97: Topology) -> None:
    """The twin: its content is read from the log."""
    first = star97["replica1"]
    star97.settle()
    commit(star97["source"], "CREATE DATABASE before_it")
    star97.settle()
    uuid = first.value("@@GLOBAL.server_uuid")
    first.execute(f"SET gtid_next = '{uuid}:1'", "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")
    servers = [each.dsn for each in star97.servers.values()]
    candidate = f"127.0.0.1:{first.port}"
    done = run_cli("handshake", *servers, "--promote", candidate, "--json")
    found = json.loads(done.stdout)["promotion"]
    assert (done.returncode, found["breaks"]) == (0, []), found
    pointed = {each["server"] for each in found["steps"] if each["sql"]}
    assert pointed == {f"127.0.0.1:{each.port}" for each in star97.servers.values()}
