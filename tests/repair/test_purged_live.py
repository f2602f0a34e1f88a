"""A source that purges between plan and script: the check of it comes before anything is stopped."""

import pytest

from compose import faults
from compose.faults import await_status, commit, table_on
from compose.faults_applier import by_position
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, refusals, rows, wait_until

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def purge(server: Server) -> None:
    """Purge all that is executed, once no session holds the log open any more."""
    server.execute("FLUSH BINARY LOGS")
    gone = executed(server)

    def is_gone() -> bool:
        current, _ = server.binary_log_position()
        server.execute(f"PURGE BINARY LOGS TO '{current}'")
        return bool(server.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_purged)", [gone])[0][0])

    wait_until(is_gone)


def runs(server: Server) -> bool:
    status = server.replica_status()
    return (status["Replica_IO_Running"], status["Replica_SQL_Running"]) == ("Yes", "Yes")


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize("stands", [False, True])
def test_what_is_fetched_must_not_be_purged(
    shape: str, request: pytest.FixtureRequest, *, stands: bool
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    faults.position_bypass(pair)
    if stands:
        pair.b.execute(pair.b.dialect.stop_replica)
    plan = examine(pair).plan({"H1": "refetch"})
    assert [each.action for each in plan.steps] == ["AutoPositionOn"]
    assert refusals(pair, plan) == []
    purge(pair.a)
    [refused] = refusals(pair, plan)
    assert "a: it has purged since the plan was made what b may request" in refused
    assert runs(pair.b) is not stands


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_relay_log_may_hold_the_last_copy(shape: str, request: pytest.FixtureRequest) -> None:
    """A lock keeps in the relay log what the source purges: a switch would delete it for good."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    by_position(b)
    table_on(a, b, "copied")
    with b.connect() as session:
        session.cursor().execute("LOCK TABLES copied.t READ")
        held = commit(a, "INSERT INTO copied.t VALUES (1, 'one')")
        number = held.rpartition(":")[2]
        await_status(b, lambda shown: number in shown["Retrieved_Gtid_Set"])
        plan = examine(pair).plan({"C3": "auto_position_on"})
        assert [each.action for each in plan.steps] == ["AutoPositionOn"]
        assert refusals(pair, plan) == []
        purge(a)
        [refused] = refusals(pair, plan)
        assert "a: it has purged since the plan was made what b may request" in refused
        late = examine(pair).plan({"C3": "auto_position_on"})
        assert not late.steps
        [why] = [each.why for each in late.not_planned if each.code == "C3"]
        assert f"b has not applied {held} yet, and a has purged it" in why
    assert runs(b)
    wait_for(b, held)
    assert rows(b, "copied.t") == rows(a, "copied.t")


def test_the_log_with_the_event_to_pass_must_not_be_purged(pair56: Pair) -> None:
    faults.failing_create_view(pair56)
    plan = examine(pair56).plan()
    assert plan.steps[0].action == "MovePast"
    assert refusals(pair56, plan) == []
    purge(pair56.a)
    [refused] = refusals(pair56, plan)
    assert "has purged since the plan was made" in refused
    assert pair56.b.replica_status()["Replica_IO_Running"] == "Yes"
