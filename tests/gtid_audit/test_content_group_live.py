"""GTIDs that a group used twice, on real servers: the UUID is the group's, not a member's."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from compose.faults_group import bootstrapped_from_behind, restarted_from_the_wrong_member
from compose.native.groups import group_and_replica
from compose.native.installation import Installation
from compose.native.shapes import Topology
from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.tasks.cluster_contents import look_at_contents
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Severity
from topology.questions.contents_to_compare import bootstraps_due


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_group_restarted_from_the_wrong_member_is_reported(
    installation97: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command that compares contents, and by both engines."""
    fleet, runs = str(tmp_path / "fleet.yaml"), str(tmp_path / "runs")
    with restarted_from_the_wrong_member(installation97) as fault:
        rows = [
            server.query("SELECT note FROM grouped.t ORDER BY id")
            for server in (fault.first, fault.second)
        ]
        assert rows[0] != rows[1]
        executed = [
            server.value("@@GLOBAL.gtid_executed") for server in (fault.first, fault.second)
        ]
        assert executed[0] == executed[1]
        servers = [
            f"  - {{name: {server.name}, host: {server.host}, port: {server.port}, user: root}}\n"
            for server in (fault.first, fault.second)
        ]
        Path(fleet).write_text(f"clusters:\n- name: group\n  servers:\n{''.join(servers)}")
        assert run(["snapshot", "--fleet", fleet, "--out", runs]) == 0
        dsns = fault.first.dsn, fault.second.dsn
        for command in (
            ("pair", *dsns),
            ("binlog", "compare", *dsns),
            ("audit", "--fleet", fleet, "--engine", "local"),
            ("audit", "--fleet", fleet, "--engine", "spark"),
            ("audit", "--fleet", fleet, "--snapshots", runs, "--engine", "local"),
            ("audit", "--fleet", fleet, "--snapshots", runs, "--engine", "spark"),
        ):
            capsys.readouterr()
            status = run([*command, "--json"])
            found = json.loads(capsys.readouterr().out)
            [finding] = [each for each in found["findings"] if each["code"] == "E4"]
            assert (status, finding["severity"], finding["grade"]) == (2, "critical", "proved")
            assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.reused)


@pytest.mark.slow
def test_a_group_bootstrapped_from_behind_is_reported_although_no_server_restarted(
    installation97: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """The servers have run for longer than the last look: only the group's view shows its age."""
    with group_and_replica(installation97, members=("m1", "m2")) as group:
        healthy = run(["pair", group["m1"].dsn, group["m2"].dsn, "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (healthy, found["verdict"]) == (0, "OK")
        fault = bootstrapped_from_behind(group, first="m1", second="m2")
        executed = [
            server.value("@@GLOBAL.gtid_executed") for server in (fault.first, fault.second)
        ]
        assert executed[0] == executed[1]
        targets = targets_of(Topology({"m1": fault.first, "m2": fault.second}))
        snapshot = collect_cluster("live", targets)
        old = replace(
            snapshot,
            first=tuple(replace(each, uptime_seconds=10**6) for each in snapshot.first),
            last=tuple(replace(each, uptime_seconds=10**6) for each in snapshot.last),
        )
        looked = look_at_contents(old, targets, None, say=lambda _text: None)
        audit = audit_cluster(old.with_contents(looked.reading))
        [finding] = [each for each in audit.findings if each.code == "E4"]
        assert (finding.severity, finding.grade) == (Severity.CRITICAL, Grade.PROVED)
        assert finding.gtid_set == GtidSet.parse(fault.reused)
        assert not looked.look_again
        # A look that was made since is not made again.
        later = max(each.read_ended for each in old.last) + timedelta(days=2)
        looks = {each.server_uuid: later for each in old.last_read.values()}
        aged = replace(old, last=tuple(replace(each, server_clock=later) for each in old.last))
        assert bootstraps_due(aged, None, looks) == ()
        assert bootstraps_due(old, False) == ()
        assert bootstraps_due(aged, True)
