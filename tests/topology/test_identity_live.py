"""Identity and place on real servers: causes that look alike, and refusals that no set shows."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compose import faults_identity as faults
from compose.faults import await_status, commit
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.shapes import Link, Pair, Topology, TopologyPlan, running, wait_for
from gtid import GtidSet
from tests.topology.test_logs_live import above_info, audited
from topology.catalogue.findings import Grade, Severity, Verdict

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow


@contextmanager
def unlinked(installation: Installation, **settings: Settings) -> Iterator[Topology]:
    plan = TopologyPlan(names=("a", "b"), links=(), settings=settings)
    with running(installation, plan) as two:
        two["a"].execute("CREATE DATABASE joined", "CREATE TABLE joined.t (id INT PRIMARY KEY)")
        yield two


# -- C2, H1 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_server_id_that_was_equal_for_a_while_is_among_the_causes(
    shape: str, request: pytest.FixtureRequest
) -> None:
    fault = faults.equal_server_id_for_a_while(request.getfixturevalue(shape))
    found = above_info(audited(request.getfixturevalue(shape)))
    assert found.keys() == {"H1", "C3"}
    assert (found["H1"].grade, found["H1"].gtid_set) == (Grade.LIKELY, GtidSet.parse(fault.dropped))
    assert "a server_id that b then shared with the server" in found["H1"].explanation
    assert "a file position that was set after them" in found["H1"].explanation


def test_a_replica_that_accepts_its_own_server_id_is_healthy(installation97: Installation) -> None:
    accepts = ("--replicate-same-server-id=1", "--log-replica-updates=OFF", "--server-id=4711")
    plan = TopologyPlan(
        names=("a", "b"),
        links=(Link("a", "b"),),
        settings={"a": Settings(extra=("--server-id=4711",)), "b": Settings(extra=accepts)},
    )
    with running(installation97, plan) as two:
        a, b = two["a"], two["b"]
        a.execute("CREATE DATABASE own", "CREATE TABLE own.t (id INT PRIMARY KEY)", "DO SLEEP(3)")
        wait_for(b, commit(a, "INSERT INTO own.t VALUES (1)"))
        assert a.value("@@GLOBAL.server_id") == b.value("@@GLOBAL.server_id")
        audit = audited(two)
        assert (audit.verdict, above_info(audit)) == (Verdict.OK, {})
        # The same ids, and a replica whose receiver has brought nothing since it started.
        b.restart()
        found = above_info(audited(two))
        assert found.keys() == {"C2"}
        assert (found["C2"].grade, found["C2"].severity) == (Grade.LIKELY, Severity.WARNING)
        assert "replicate-same-server-id" in found["C2"].explanation
        # Really dropped: the ids became equal while it replicated, and it does not accept them.
        b.settings = Settings(extra=("--log-replica-updates=OFF",))
        b.restart()
        wait_for(b, commit(a, "INSERT INTO own.t VALUES (2)"))
        b.execute("SET GLOBAL server_id = 4711")
        commit(a, "INSERT INTO own.t VALUES (3)")
        found = above_info(audited(two))
        assert found.keys() == {"C2"}
        assert (found["C2"].grade, found["C2"].severity) == (Grade.LIKELY, Severity.CRITICAL)
        assert found["C2"].gtid_set


# -- J1 -------------------------------------------------------------------------------------------


def test_a_server_without_a_server_id_cannot_join(installation97: Installation) -> None:
    with unlinked(installation97) as two:
        assert above_info(audited(two))["J1"].grade is Grade.PROVED
        two["b"].execute("SET GLOBAL server_id = 0")
        found = above_info(audited(two))["J1"]
        assert found.grade is Grade.LIKELY
        assert "server_id is 0 on b" in found.explanation
        with pytest.raises(Exception, match="1200"):
            two["b"].execute(
                two["b"].dialect.change_source_to(host="127.0.0.1", port=1), "START REPLICA"
            )


def test_a_set_that_was_declared_shows_no_rows(installation97: Installation) -> None:
    """An older backup that was given the whole set has the sets of a clone, and fewer rows."""
    with unlinked(installation97) as two:
        a, b = two["a"], two["b"]
        b.execute(
            "CREATE DATABASE joined",
            "CREATE TABLE joined.t (id INT PRIMARY KEY)",
            "RESET BINARY LOGS AND GTIDS",
        )
        a.execute("INSERT INTO joined.t VALUES (1)")
        b.execute(f"SET GLOBAL gtid_purged = '{a.value('@@GLOBAL.gtid_executed')}'")
        found = above_info(audited(two))
        assert found.keys() == {"J1"}
        assert found["J1"].grade is Grade.LIKELY
        assert "have set the gtid_purged of b, and no log" in found["J1"].explanation
        assert (a.value("COUNT(*) FROM joined.t"), b.value("COUNT(*) FROM joined.t")) == (1, 0)


def test_versions_that_refuse_each_other(
    installation97: Installation, installation56: Installation
) -> None:
    one = TopologyPlan(names=("a",), links=())
    other = TopologyPlan(names=("b",), links=())
    with running(installation97, one) as new, running(installation56, other) as old:
        new["a"].execute("CREATE DATABASE joined")
        found = above_info(audited(Topology({**new.servers, **old.servers})))["J1"]
        assert found.grade is Grade.LIKELY
        assert "These two refuse each other (errors 2026 and 2059)." in found.explanation
        b = old["b"]
        b.execute(b.dialect.change_source_to(host="127.0.0.1", port=new["a"].port, user="root"))
        b.execute(b.dialect.start_replica)
        await_status(b, lambda status: bool(status["Last_IO_Errno"]))
        assert b.replica_status()["Last_IO_Errno"] in (2026, 2059)


# -- P1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_what_is_purged_before_a_file_position_is_not_refused(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    fault = faults.purged_before_position(pair)
    found = above_info(audited(pair))
    assert found.keys() == {"H4"}
    assert (found["H4"].grade, found["H4"].gtid_set) == (Grade.PROVED, GtidSet.parse(fault.missing))
    assert "so its next connection is accepted" in found["H4"].explanation
    # As it says.
    pair.b.execute(pair.b.dialect.stop_replica, pair.b.dialect.start_replica)
    wait_for(pair.b, commit(pair.a, "CREATE DATABASE still_arrives"))
    assert above_info(audited(pair)).keys() == {"H4"}


# -- T4 -------------------------------------------------------------------------------------------


def test_a_session_that_owns_a_gtid_is_no_commit_under_way(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE owned")
    pair97.settle()
    gtid = f"{a.value('@@GLOBAL.server_uuid')}:900"
    with a.connect() as session, session.cursor() as cursor:
        cursor.execute(f"SET gtid_next = '{gtid}'")
        a.execute("STOP REPLICA")
        b.execute(
            f"SET gtid_next = '{gtid}'", "CREATE DATABASE by_hand", "SET gtid_next = AUTOMATIC"
        )
        [found] = [each for each in audited(pair97).findings if each.code == "T4"]
        cursor.execute("ROLLBACK")
    assert (found.grade, found.gtid_set) == (Grade.LIKELY, GtidSet.parse(gtid))
    assert "a session of a may own the GTID" in found.explanation
