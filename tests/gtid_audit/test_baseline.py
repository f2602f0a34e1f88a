"""`--write-baseline`: what is written, what must be edited, and that the entries then work."""

import re
from pathlib import Path

import pytest
import yaml

from gtid_audit.cli import run
from gtid_audit.exits import USAGE
from gtid_audit.views.baseline import baseline_text, not_acceptable
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.report_text import show_report
from tests.definitions import a_compared_pair, a_reading, an_object
from tests.gtid_audit.build import half_read, healthy, holed
from topology.adapters.inventory.fleet_file import load_roster
from topology.adapters.inventory.problem import InventoryProblem
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.policy import Policy

SERVERS = "    servers: [{name: a, host: 10.0.0.1}, {name: b, host: 10.0.0.2}]\n"


def baseline(policy: Policy | None = None) -> str:
    snapshots = (holed("hole\u0085: é"), half_read("half"), healthy("well"))
    return baseline_text(
        report_of(Engine.LOCAL, [audit_cluster(each, policy) for each in snapshots])
    )


def fleet_of(tmp_path: Path, text: str) -> Path:
    """Make a fleet file of a baseline: the same clusters, with servers."""
    file = tmp_path / "fleet.yaml"
    with_servers = re.sub(r"(  - name: .*\n)", rf"\1{SERVERS}", text)
    file.write_text(f"defaults: {{user: auditor}}\n{with_servers}")
    return file


def test_it_has_each_finding_above_info_and_is_refused_until_it_is_edited(tmp_path: Path) -> None:
    text = baseline()
    document = yaml.safe_load(text)
    [cluster] = document["clusters"]
    assert cluster["name"] == "hole\u0085: é"
    [entry] = cluster["accepted_findings"]
    assert (entry["code"], entry["severity"]) == ("H1", "critical")
    assert (entry["reason"], entry["expires"]) == ("", "")
    assert '# Not read completely, so it may have more findings: "half"' in text
    with pytest.raises(InventoryProblem) as refused:
        load_roster(
            fleet_of(tmp_path, text.replace("\\N", " ").replace("\\x85", " ")), environment={}
        )
    said = "\n".join(refused.value.problems)
    assert "reason: is empty; write why" in said
    assert "expires: " in said


def test_it_has_no_entry_that_the_fleet_file_refuses() -> None:
    """S2 is about objects: an entry would also cover the next one that differs."""
    drifted = healthy("pair").with_definitions(a_reading(a_compared_pair(differing=(an_object(),))))
    report = report_of(Engine.LOCAL, [audit_cluster(drifted)])
    assert [each.code for each in report.findings] == ["S2"]
    assert yaml.safe_load(baseline_text(report)) == {"clusters": []}
    assert [each.code for each in not_acceptable(report)] == ["S2"]
    assert "# Not here, because no entry can accept it: S2.\n" in baseline_text(report)
    assert "Not here" not in baseline()


def test_after_the_edit_the_entries_are_accepted_and_what_they_explained_appears(
    tmp_path: Path,
) -> None:
    plain = holed("pair")
    policy, codes = Policy(), []
    for _ in range(2):
        report = report_of(Engine.LOCAL, [audit_cluster(plain, policy)])
        text = baseline_text(report)
        text = text.replace('reason: ""', "reason: known").replace(
            'expires: ""', "expires: 2026-02-01"
        )
        found = load_roster(fleet_of(tmp_path, text), environment={}).policy.accepted_findings
        codes.append([each.code for each in found])
        policy = Policy(accepted_findings=(*policy.accepted_findings, *found))
    assert codes == [["H1"], ["C3"]]
    assert audit_cluster(plain, policy).verdict is Verdict.OK
    empty = baseline_text(report_of(Engine.LOCAL, [audit_cluster(plain, policy)]))
    assert yaml.safe_load(empty) == {"clusters": []}


def test_accepted_findings_are_shown_for_one_cluster_and_for_many(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = baseline_text(report_of(Engine.LOCAL, [audit_cluster(holed("pair"))]))
    text = text.replace('reason: ""', "reason: known gap").replace('""', '"2026-02-01"')
    policy = load_roster(fleet_of(tmp_path, text), environment={}).policy
    for names in (("pair",), ("pair", "well")):
        snapshots = [holed("pair"), healthy("well")][: len(names)]
        show_report(report_of(Engine.LOCAL, [audit_cluster(each, policy) for each in snapshots]))
        shown = " ".join(capsys.readouterr().out.split())
        assert "Accepted, and so only info: 1 finding" in shown
        assert "Accepted by 2026-02-01 until 2026-02-01, 2026-02-01: known gap." in shown
        # With many clusters, the table of clusters has the code too.
        assert shown.count("H1") == len(names)


def test_it_overwrites_nothing_and_is_for_live_fleets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fleet = fleet_of(tmp_path, "clusters:\n  - name: pair\n")
    there = tmp_path / "there.yaml"
    there.write_text("mine")
    cases = {
        ("--fleet", str(fleet), "--write-baseline", str(there)): "overwrites none",
        ("--fleet", str(fleet), "--write-baseline", str(tmp_path / "x/y")): "no such directory",
        ("--fleet", str(fleet), "--engine", "spark", "--write-baseline", "n"): "--engine local",
        ("--fleet", str(fleet), "--engine", "spark", "--history", "n"): "--engine local",
        ("--snapshots", str(tmp_path), "--write-baseline", "n"): "not for --snapshots",
        ("--snapshots", str(tmp_path), "--history", "n"): "--history is for live servers",
        ("mysql://u@127.0.0.1:1", "--write-baseline", "n"): "is for fleets",
    }
    for arguments, said in cases.items():
        assert run(("audit", *arguments)) == USAGE, arguments
        assert said in capsys.readouterr().err
    assert there.read_text() == "mine"
    assert not (tmp_path / "n").exists()
