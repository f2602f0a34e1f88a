"""S2 beside an applier of 5.6 at work: it may be at the DDL that no set lists any more."""

from typing import Any

import pytest

from compose.faults import await_status
from compose.faults_applier import await_received
from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from tests.gtid_audit.test_schema_audit_live import audit
from tests.gtid_audit.test_schema_drift_live import executed, not_logged

pytestmark = [pytest.mark.mysql, pytest.mark.slow]


def _has_received(status: dict[str, Any], gtids: str) -> bool:
    return GtidSet.parse(gtids) <= GtidSet.parse(str(status["Retrieved_Gtid_Set"]))


@pytest.mark.parametrize("comes_by_itself", [True, False])
def test_a_table_may_come_from_what_no_set_lists(pair56: Pair, *, comes_by_itself: bool) -> None:
    """a was reset, and the receiver of b connected again: neither has the last transaction."""
    a, b = pair56.a, pair56.b
    a.execute("STOP SLAVE", "RESET SLAVE ALL")
    a.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    wait_for(b, executed(a))
    with b.connect() as locking:
        locking.cursor().execute("FLUSH TABLES WITH READ LOCK")
        if comes_by_itself:
            a.execute("CREATE TABLE app.made (id INT PRIMARY KEY)")
        else:
            not_logged(a, "CREATE TABLE app.made (id INT PRIMARY KEY)")
            a.execute("INSERT INTO app.t VALUES (1)")
        last = executed(a)
        await_received(b, last)
        b.execute("STOP SLAVE IO_THREAD")
        a.execute("RESET MASTER")
        b.execute("START SLAVE IO_THREAD")
        await_status(b, lambda status: not _has_received(status, last))
        [drift] = [each for each in audit(a, b)["findings"] if each["code"] == "S2"]
        assert (drift["severity"], drift["grade"]) == ("warning", "likely")
        assert "5.6 does not list the last transaction" in drift["explanation"]
    await_status(b, lambda status: "has read all" in status["Replica_SQL_Running_State"])
    tables = [name for (name,) in b.query("SHOW TABLES IN app")]
    assert ("made" in tables) is comes_by_itself
    left = [each for each in audit(a, b)["findings"] if each["code"] == "S2"]
    assert bool(left) is not comes_by_itself
    assert not [each for each in left if "does not list the last" in each["explanation"]]
