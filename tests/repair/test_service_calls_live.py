"""Scripts for a server of RDS, run by an account that may only call the service's procedures.

The server prints what one of RDS prints, and has procedures that do what those of RDS do, as their
published definitions show. The service itself was not tested.
"""

from pathlib import Path

import pytest

from compose.native.installation import Installation
from compose.native.shapes import Topology
from repair.render import render_files
from repair.repair_plan import Plan
from tests.repair.live import await_clean, examine, wait_until
from tests.topology.test_vendors_live import like_rds

pytestmark = pytest.mark.mysql

# One of the two threads that runs alone is BROKEN for RDS: it starts no channel then.
_STATE = (
    "(SELECT IF(COUNT(*) = 0, 'NONE', IF(MAX(r.SERVICE_STATE = 'ON' AND a.SERVICE_STATE = 'ON'),"
    " 'ON', IF(MAX(r.SERVICE_STATE = 'OFF' AND a.SERVICE_STATE = 'OFF'), 'OFF', 'BROKEN')))"
    " FROM performance_schema.replication_connection_status r"
    " JOIN performance_schema.replication_applier_status a USING (CHANNEL_NAME)"
    " WHERE CHANNEL_NAME = '')"
)
_REFUSE = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = "
PROCEDURES = (
    (
        "CREATE PROCEDURE mysql.rds_skip_transaction_with_gtid(IN gtid TEXT) BEGIN"
        " DECLARE logging BOOLEAN DEFAULT @@sql_log_bin; SET @@sql_log_bin = OFF;"
        " SET GTID_NEXT = gtid; START TRANSACTION; COMMIT; SET GTID_NEXT = 'AUTOMATIC';"
        " SELECT 'skipped' AS Message; SET @@sql_log_bin = logging; END"
    ),
    (
        "CREATE PROCEDURE mysql.rds_start_replication() BEGIN"
        f" IF {_STATE} <> 'OFF' THEN {_REFUSE} 'may be running already'; END IF;"
        " START REPLICA; SELECT 'started' AS Message; END"
    ),
    (
        "CREATE PROCEDURE mysql.rds_stop_replication() BEGIN"
        f" IF {_STATE} = 'OFF' THEN {_REFUSE} 'is stopped already'; END IF;"
        " STOP REPLICA; SELECT 'stopped' AS Message; END"
    ),
    (
        "CREATE PROCEDURE mysql.rds_set_source_auto_position(IN mode TINYINT) BEGIN"
        " STOP REPLICA; SET @cmd = CONCAT('CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = ',"
        " mode); PREPARE s FROM @cmd; EXECUTE s; DEALLOCATE PREPARE s; START REPLICA;"
        " SELECT 'switched' AS Message; END"
    ),
    (
        "CREATE PROCEDURE mysql.rds_set_external_source_gtid_purged(IN server_uuid VARCHAR(36),"
        " IN start_pos BIGINT, IN end_pos BIGINT) BEGIN IF EXISTS (SELECT 1 FROM"
        " performance_schema.replication_connection_status r JOIN"
        " performance_schema.replication_applier_status a USING (CHANNEL_NAME) WHERE"
        f" 'ON' IN (r.SERVICE_STATE, a.SERVICE_STATE)) THEN {_REFUSE} 'already running'; END IF;"
        f" IF server_uuid = @@GLOBAL.server_uuid THEN {_REFUSE} 'of this instance'; END IF;"
        " SET GLOBAL gtid_purged = CONCAT('+', server_uuid, ':', start_pos, '-', end_pos); END"
    ),
)
ADMIN = (
    "CREATE USER admin@'%' IDENTIFIED BY ''",
    "GRANT SELECT, PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO admin@'%'",
    "GRANT EXECUTE ON mysql.* TO admin@'%'",
)


def prepared(topology: Topology) -> None:
    for server in topology.servers.values():
        server.execute("SET sql_log_bin = 0", *PROCEDURES, *ADMIN)


def run_as_admin(topology: Topology, plan: Plan) -> None:
    files = render_files(plan)
    for step in plan.steps:
        checks = [(each.server, step.check_name(each)) for each in step.checks]
        for server, name in (*checks, (step.server, step.file_name)):
            done = topology[server].client(files[name], "--user=admin")
            assert done.returncode == 0, f"{name}: {done.stderr}\n{done.stdout}"


def test_an_account_of_rds_repairs_with_its_procedures(
    native97: Installation, tmp_path: Path
) -> None:
    with like_rds(native97, tmp_path) as topology:
        a, b = topology["a"], topology["b"]
        prepared(topology)
        own = f"{b.value('@@GLOBAL.server_uuid')}:1"
        b.execute(f"SET GTID_NEXT = '{own}'", "BEGIN", "COMMIT")
        plan = examine(topology).plan()
        assert [step.server for step in plan.steps] == ["a"]
        run_as_admin(topology, plan)
        run_as_admin(topology, plan)  # a finished script changes nothing, and does not fail
        await_clean(topology)

        b.execute("STOP REPLICA SQL_THREAD")
        a.execute("CREATE DATABASE d", "CREATE TABLE d.t (i INT PRIMARY KEY)")
        wait_until(lambda: b.replica_status()["Retrieved_Gtid_Set"] != "")
        plan = examine(topology).plan({"A7": "start_channel"})
        assert [type(step.effect).__name__ for step in plan.steps] == ["StartChannel"]
        run_as_admin(topology, plan)
        run_as_admin(topology, plan)
        await_clean(topology)
        assert [name for (name,) in b.query("SHOW TABLES IN d")] == ["t"]

        b.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0")
        b.execute("START REPLICA")
        topology.settle()
        plan = examine(topology).plan({"C3": "auto_position_on"})
        assert [type(step.effect).__name__ for step in plan.steps] == ["AutoPositionOn"]
        run_as_admin(topology, plan)
        await_clean(topology)
        assert b.replica_status()["Auto_Position"] == 1

        for number in (2, 4):
            b.execute(f"SET GTID_NEXT = '{own[:-1]}{number}'", "BEGIN", "COMMIT")
        plan = examine(topology).plan({"E1": "gtid_purged_append"})
        [step] = plan.steps
        assert (
            step.server,
            str(step.procedure.statements).count("rds_set_external_source_gtid"),
        ) == ("a", 2)
        run_as_admin(topology, plan)
        run_as_admin(topology, plan)
        assert any("An audit reports them as E4" in each for each in plan.warnings)
        await_clean(topology, announced={"E4"})
