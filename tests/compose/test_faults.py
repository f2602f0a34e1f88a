"""Every fault shows its signature on real servers: error numbers, texts, sets."""

from contextlib import ExitStack
from typing import Any

import pymysql
import pytest

from compose import faults, faults_identity
from compose.native.server import Server
from compose.native.shapes import Pair, Topology


def _executed(server: Server, gtids: str) -> bool:
    return bool(server.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", [gtids])[0][0])


def _none_executed(server: Server, gtids: str) -> bool:
    lacking = server.query("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", [gtids])[0][0]
    return str(lacking).replace("\n", "") == gtids


def _threads(status: dict[str, Any]) -> tuple[str, str]:
    return status["Replica_IO_Running"], status["Replica_SQL_Running"]


def _check_position_bypass(pair: Pair) -> None:
    fault = faults.position_bypass(pair)
    assert _none_executed(pair.b, fault.skipped)
    assert _executed(pair.b, fault.applied)
    assert _executed(pair.a, fault.skipped)
    status = pair.b.replica_status()
    assert status["Auto_Position"] == 0
    assert _threads(status) == ("Yes", "Yes")
    assert status["Last_Error"] == ""
    assert pair.a.value("COUNT(*) FROM bypassed.t") == 5
    assert pair.b.value("COUNT(*) FROM bypassed.t") == 2


def test_position_bypass_then_errant_97(pair97: Pair) -> None:
    _check_position_bypass(pair97)
    fault = faults.errant_transaction(pair97)
    assert fault.errant.startswith(pair97.b.value("@@GLOBAL.server_uuid"))
    assert _executed(pair97.b, fault.errant)
    assert _none_executed(pair97.a, fault.errant)
    assert _threads(pair97.a.replica_status()) == ("No", "No")
    assert _threads(pair97.b.replica_status()) == ("Yes", "Yes")


def test_position_bypass_56(pair56: Pair) -> None:
    _check_position_bypass(pair56)


def test_errant_transaction_on_star(star97: Topology) -> None:
    fault = faults.errant_transaction(star97, on="replica1", transaction_count=2)
    assert fault.errant.endswith(":1-4")
    star97.settle()
    for name in ("source", "replica2"):
        assert _none_executed(star97[name], fault.errant)
    assert _threads(star97["replica1"].replica_status()) == ("Yes", "Yes")


def _check_lost_tail(pair: Pair, *, errno: int, text: str) -> None:
    fault = faults.lost_tail_crash(pair)
    assert fault.lost.startswith(pair.a.value("@@GLOBAL.server_uuid"))
    assert _executed(pair.b, fault.lost)
    assert _none_executed(pair.a, fault.lost)
    status = pair.b.replica_status()
    assert status["Last_IO_Errno"] == errno
    assert text in status["Last_IO_Error"]
    assert _threads(status) == ("No", "Yes")
    # The server does not get them back from its peer, and uses the numbers again: the trap.
    assert _threads(pair.a.replica_status()) == ("Yes", "Yes")
    assert _none_executed(pair.a, fault.lost)
    pair.a.execute("INSERT INTO lost.t () VALUES ()")
    first_lost = "-".join(fault.lost.split("-")[:-1])
    assert _executed(pair.a, first_lost)


def test_lost_tail_crash_97(pair97: Pair) -> None:
    _check_lost_tail(pair97, errno=13114, text="more GTIDs than the source has")


def test_lost_tail_crash_56(pair56: Pair) -> None:
    _check_lost_tail(pair56, errno=1236, text="more GTIDs than the")


def _check_purge(pair: Pair, errno: int) -> None:
    fault = faults.purge_under_stopped_replica(pair)
    status = pair.b.replica_status()
    assert status["Last_IO_Errno"] == errno
    assert "purged" in status["Last_IO_Error"]
    assert _threads(status) == ("No", "Yes")
    assert _none_executed(pair.b, fault.purged)
    assert pair.a.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_purged)", [fault.purged]) == [(1,)]


def test_purge_under_stopped_replica_97(pair97: Pair) -> None:
    _check_purge(pair97, 13114)


def test_purge_under_stopped_replica_56(pair56: Pair) -> None:
    _check_purge(pair56, 1236)


def test_failing_create_view_56(pair56: Pair) -> None:
    fault = faults.failing_create_view(pair56)
    status = pair56.b.replica_status()
    assert status["Last_SQL_Errno"] == 0
    assert "error code=1050" in status["Last_SQL_Error"]
    assert _threads(status) == ("Yes", "No")
    assert _executed(pair56.a, fault.failed)
    assert _executed(pair56.b, fault.failed)


def _check_tail_gap(pair: Pair) -> None:
    with faults.tail_gap(pair) as fault:
        assert _none_executed(pair.b, fault.held)
        assert _executed(pair.b, fault.applied)
        assert fault.held in pair.b.value("@@GLOBAL.gtid_owned")
        assert _threads(pair.b.replica_status()) == ("Yes", "Yes")
    assert _executed(pair.b, fault.held)


def test_tail_gap_97_which_has_no_failing_create_view(pair97: Pair) -> None:
    _check_tail_gap(pair97)
    with pytest.raises(faults.FaultNotProduced, match="does not log a statement that failed"):
        faults.failing_create_view(pair97)


def test_tail_gap_56(pair56: Pair) -> None:
    _check_tail_gap(pair56)


def test_hung_server_says_nothing_and_comes_back(mysql97: Server) -> None:
    uuid = mysql97.value("@@GLOBAL.server_uuid")
    with faults.hung_server(mysql97), ExitStack() as stack:
        with pytest.raises(pymysql.err.OperationalError, match="timed out"):
            stack.enter_context(mysql97.connect(timeout_seconds_max=1.0))
        assert mysql97.running
    assert mysql97.value("@@GLOBAL.server_uuid") == uuid


def _check_duplicate_uuid(pair: Pair) -> None:
    fault = faults_identity.duplicate_server_uuid(pair)
    assert pair.a.value("@@GLOBAL.server_uuid") == fault.server_uuid
    assert pair.b.value("@@GLOBAL.server_uuid") == fault.server_uuid
    status = pair.b.replica_status()
    assert "equal MySQL server UUIDs" in status["Last_IO_Error"]
    assert status["Replica_IO_Running"] == "No"


def test_duplicate_server_uuid_97(pair97: Pair) -> None:
    _check_duplicate_uuid(pair97)


def test_duplicate_server_uuid_56(pair56: Pair) -> None:
    _check_duplicate_uuid(pair56)
