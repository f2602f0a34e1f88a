"""Plans for servers of managed services: procedures where an account may not run the statement."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gtid import GtidSet
from repair import plan_repair
from repair.model.actions import Action, AutoPositionOn, InjectEmpty, ResetAndPurge, StopChannel
from repair.model.replication_model import Model
from repair.repair_plan import Plan
from repair.scripts.called_sets import RANGES_MAX, ranges_added, takes_ranges
from repair.scripts.procedure import Setting
from repair.scripts.procedures import describe
from repair.scripts.simulated_actions import withheld_by_service
from repair.sql.privileges import StatementKind, withheld_from
from repair.sql.service_calls import service_calls
from tests.repair.build import UUIDS, channel, evidence_of, gtids, model, server, snapshot_of
from topology.audit_cluster import audit_cluster
from topology.readings.vendors import VENDORS, Vendor
from topology.readings.version import ServerVersion

LATEST = ServerVersion(8, 4, 0)
EIGHT = ServerVersion(8, 0, 35)
FIVE_SEVEN = ServerVersion(5, 7, 44)
EXTRA = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:1"  # of b, empty


def pair(vendor: Vendor, version: ServerVersion = LATEST, *, runs: bool = True) -> Model:
    """Return a and its replica b, which has a transaction of its own."""
    a = server("a", "a:1-3", version=version)
    b = server("b", "a:1-3 b:1" if runs else "a:1-2", channel("a", runs=runs), version=version)
    return model(*(replace(each, vendor=vendor) for each in (a, b)))


def planned(servers: Model, **choices: str) -> Plan:
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot)
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence_of(audit))


def scripts(plan: Plan) -> str:
    return "\n".join(line for step in plan.steps for line in step.procedure.statements)


def reasons(plan: Plan) -> str:
    refused = [f"{each.strategy}: {each.why}" for each in plan.not_chosen]
    return "\n".join([*refused, *(str(each) for each in plan.not_planned)])


def test_an_empty_transaction_on_rds_is_a_call_of_its_procedure() -> None:
    plan = planned(pair(Vendor.RDS))
    [step] = plan.steps
    assert (step.server, type(step.effect)) == ("a", InjectEmpty)
    text = scripts(plan)
    assert "CALL mysql.rds_skip_transaction_with_gtid(''" in text
    assert "gtid_next" not in text, "no account of RDS may set it"
    assert "EXECUTE on the service's procedures in mysql" in step.privileges
    assert any("calls procedures of RDS" in each for each in step.procedure.warnings)
    assert not any("REPLICATION_APPLIER" in each.condition for each in step.procedure.preconditions)


def test_a_call_is_not_made_for_what_is_executed() -> None:
    [line] = [each for each in scripts(planned(pair(Vendor.RDS))).splitlines() if "CALL" in each]
    assert line.startswith("SET @todo = IF(@go AND NOT GTID_SUBSET('")


@pytest.mark.parametrize(
    ("vendor", "version", "start"),
    [
        (Vendor.RDS, LATEST, "CALL mysql.rds_start_replication()"),
        (Vendor.AURORA, EIGHT, "CALL mysql.rds_start_replication()"),
        (Vendor.AZURE, EIGHT, "CALL mysql.az_replication_start()"),
        (Vendor.CLOUD_SQL, EIGHT, "CALL mysql.startReplication()"),
    ],
)
def test_a_channel_is_started_by_a_procedure(
    vendor: Vendor, version: ServerVersion, start: str
) -> None:
    text = scripts(planned(pair(vendor, version, runs=False)))
    assert f"'{start}'" in text
    assert "START REPLICA" not in text
    stop = service_calls(vendor, version)
    assert stop is not None
    half = next(line for line in text.splitlines() if stop.stopping("", alone=True) in line)
    assert "SERVICE_STATE <> 'OFF'" in half, "only if one of the threads runs"


def test_an_account_that_may_set_gtid_next_calls_nothing() -> None:
    """Azure and Cloud SQL grant REPLICATION_APPLIER since 8.0.18, but no 5.7 has it."""
    assert "SET SESSION gtid_next" in scripts(planned(pair(Vendor.AZURE, EIGHT)))
    old = scripts(planned(pair(Vendor.AZURE, FIVE_SEVEN)))
    assert "CALL mysql.az_replication_skip_gtid_transaction(" in old


def test_what_no_account_may_do_is_refused_with_the_reason() -> None:
    plan = planned(pair(Vendor.RDS, EIGHT), E1="gtid_purged_append")
    assert not plan.steps
    assert "RDS gives no account SYSTEM_VARIABLES_ADMIN or SUPER" in reasons(plan)
    aurora = planned(pair(Vendor.AURORA, EIGHT), E1="gtid_purged_append")
    assert "CONCAT('CALL mysql.rds_gtid_purged(''+', @missing, ''')')" in scripts(aurora)
    ours = planned(pair(Vendor.MYSQL), E1="gtid_purged_append")
    assert "CONCAT('SET GLOBAL gtid_purged = ''+', @missing, '''')" in scripts(ours)


@pytest.mark.parametrize("version", [ServerVersion(8, 0, 37), LATEST])
def test_rds_adds_a_range_to_gtid_purged(version: ServerVersion) -> None:
    plan = planned(pair(Vendor.RDS, version), E1="gtid_purged_append")
    [step] = plan.steps
    uuid = str(UUIDS["b"])
    called = f"CALL mysql.rds_set_external_source_gtid_purged(''{uuid}'', 1, 1)"
    [line] = [each for each in step.procedure.statements if "CALL" in each]
    assert line == (
        f"SET @todo = IF(@go AND NOT GTID_SUBSET('{uuid}:1-1', @@GLOBAL.gtid_executed),"
        f" '{called}', 'DO 0');"
    )
    assert any("a channel runs" in each.message for each in step.procedure.preconditions)
    assert "EXECUTE on the service's procedures in mysql" in step.privileges
    assert any("calls procedures of RDS" in each for each in step.procedure.warnings)


def test_what_the_procedure_of_rds_refuses_is_not_planned() -> None:
    calls = service_calls(Vendor.RDS, LATEST)
    assert calls is not None
    server_a, server_b = server("a", "a:1-3"), server("b", "b:1", channel("a"))
    assert takes_ranges(calls, server_a, gtids("b:1-2 b:5"))
    assert not takes_ranges(calls, server_b, gtids("a:1")), "its channel runs"
    assert not takes_ranges(calls, server_a, gtids("a:9")), "its own server_uuid"
    assert not takes_ranges(calls, server_a, GtidSet.parse(f"{UUIDS['b']}:tag:1"))
    many = GtidSet.parse(
        str(UUIDS["b"]) + "".join(f":{2 * each + 1}" for each in range(RANGES_MAX + 1))
    )
    assert not takes_ranges(calls, server_a, many)
    assert not takes_ranges(service_calls(Vendor.RDS, EIGHT), server_a, gtids("b:1"))
    ends = [each[-20:] for each in ranges_added(calls, gtids("b:1-2 b:5")) if "CALL" in each]
    assert ends == ["'', 1, 2)', 'DO 0');", "'', 5, 5)', 'DO 0');"]


def setting(servers: Model, name: str) -> Setting:
    snapshot = snapshot_of(servers)
    seen: Mapping[str, object] = {each.name: each for each in snapshot.last}
    return Setting(servers[name], before=servers, after=servers, seen=seen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "vendor", "named", "refused"),
    [
        (StopChannel("b", ""), Vendor.RDS, "", False),
        (StopChannel("b", "x"), Vendor.RDS, "x", False),
        (StopChannel("b", "x"), Vendor.AZURE, "x", True),
        (AutoPositionOn("b", "", filled=gtids("")), Vendor.RDS, "", False),
        (AutoPositionOn("b", "", filled=gtids("")), Vendor.AZURE, "", True),
        (AutoPositionOn("b", "", filled=gtids("")), Vendor.HEATWAVE, "", False),
        (AutoPositionOn("b", "", filled=gtids("")), Vendor.MYSQL, "", False),
        (ResetAndPurge("b", gtids("a:9"), gtids("a:1-3"), ()), Vendor.RDS, "", True),
    ],
)
def test_an_action_without_a_procedure_is_withheld(
    action: Action, vendor: Vendor, named: str, refused: bool
) -> None:
    servers = model(
        replace(server("a", "a:1-3"), vendor=vendor),
        replace(server("b", "a:1-3", channel("a", name=named)), vendor=vendor),
    )
    assert bool(withheld_by_service(action, setting(servers, "b"))) is refused


def test_a_channel_beside_others_is_named_in_its_script() -> None:
    """Without a name a procedure may stop and start every channel of the server."""
    text = {}
    for names in (("",), ("", "other")):
        channels = [channel("a", name=name) for name in names]
        servers = model(
            replace(server("a", "a:1-3"), vendor=Vendor.RDS),
            replace(server("b", "a:1-3", *channels), vendor=Vendor.RDS),
        )
        text[names] = "\n".join(describe(StopChannel("b", ""), setting(servers, "b")).statements)
    assert "CALL mysql.rds_stop_replication()" in text[("",)]
    assert "CALL mysql.rds_stop_replication_for_channel(''''" in text["", "other"]
    assert "rds_stop_replication()" not in text["", "other"]


def test_each_service_with_procedures_withholds_the_privilege_for_which_it_has_them() -> None:
    for row in VENDORS:
        calls = service_calls(row.vendor, LATEST)
        missing = withheld_from((StatementKind.STEER_CHANNEL,), LATEST, row.withheld)
        assert (calls is not None) is (missing is not None), row.vendor
    assert service_calls(Vendor.RDS, ServerVersion(5, 6, 51)) is None
    assert service_calls(None, LATEST) is None


@pytest.mark.parametrize(
    ("version", "switch", "has_channels"),
    [
        ((8, 4, 0), "rds_set_source_auto_position(1)", True),
        ((8, 0, 35), "rds_set_master_auto_position(1)", True),
        ((8, 0, 34), "rds_set_master_auto_position(1)", False),
        ((5, 7, 44), "rds_set_master_auto_position(1)", True),
        ((5, 7, 43), "rds_set_master_auto_position(1)", False),
    ],
)
def test_the_procedures_of_rds_depend_on_the_version(
    version: tuple[int, int, int], switch: str, has_channels: bool
) -> None:
    calls = service_calls(Vendor.RDS, ServerVersion(*version))
    assert calls is not None
    assert calls.switching("", alone=True) == f"CALL mysql.{switch}"
    assert calls.steers("a", switches=True, alone=True) is has_channels
    assert calls.steers("", switches=True, alone=False) is has_channels
    if has_channels:
        call = "CALL mysql.rds_set_source_auto_position_for_channel"
        assert calls.switching("a", alone=True) == f"{call}(1, 'a')"
        assert calls.switching("", alone=False) == f"{call}(1, '')", "and no other channel"
