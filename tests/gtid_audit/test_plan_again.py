"""A plan says how it was made: its choices, its command line; planned again it is the same."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.audited_cluster import AuditedCluster
from gtid_audit.tasks.plan_again import PlanRequest, command_line, repeatable, wanted_by, wanted_of
from gtid_audit.tasks.planning import make_plan
from repair import Plan
from repair.render import render_files
from tests.gtid_audit.build import holed
from tests.repair.live import executed, rows
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.readings.snapshot import ThreadState
from topology.readings.target import ServerTarget


def planned(wanted: PlanRequest, *sockets: str, command: str = "") -> Plan:
    snapshot = holed()
    read = AuditedCluster(snapshot, audit_cluster(snapshot), ())
    plan = make_plan(
        read, choices=wanted.choices, finding_ids=wanted.only, say=lambda _text: None
    ).plan
    targets = [
        ServerTarget(name, "localhost", 3306, "root", unix_socket=f"/run/{name}/my sql.sock")
        for name in sockets
    ]
    return repeatable(plan, wanted, command, targets)


def test_choices_and_command_are_in_every_text() -> None:
    wanted = PlanRequest({"H1": "inject_empty"})
    plan = planned(wanted, command="gtid-audit repair plan --pair a b --again p")
    files = render_files(plan)
    written = json.loads(files["plan.json"])
    assert written["choices"] == {"H1": "inject_empty"}
    assert written["command"] == "gtid-audit repair plan --pair a b --again p"
    assert "## Choices made\n\n* H1: inject_empty\n" in files["RUNBOOK.md"]
    assert "gtid-audit repair plan --pair a b --again p" in files["RUNBOOK.md"]
    assert planned(wanted).id != planned(PlanRequest()).id


def test_what_was_asked_is_read_back(tmp_path: Path) -> None:
    wanted = PlanRequest({"H1": "inject_empty"}, None)
    (tmp_path / "plan.json").write_text(render_files(planned(wanted))["plan.json"])
    read = wanted_by(tmp_path)
    assert (read.choices, read.only) == (wanted.choices, wanted.only)
    assert read.left_out == {"inject_empty": GtidSet.parse(f"{A}:51-53")}
    audit = audit_cluster(holed())
    [finding] = [each for each in audit.findings if each.code == "H1"]
    earlier = PlanRequest(
        {"H1": "inject_empty", "E1": "inject_empty", "gone": "refetch"}, ("gone",)
    )
    assert earlier.still(audit) == PlanRequest({"H1": "inject_empty"}, ())
    by_id = PlanRequest({finding.id: "refetch"}, (finding.id,))
    assert by_id.still(audit) == by_id
    assert earlier.and_typed({"H1": "refetch"}, [finding.id]) == PlanRequest(
        {**earlier.choices, "H1": "refetch"}, (finding.id,)
    )


def test_a_choice_goes_on_for_the_same_gtids_under_another_code() -> None:
    """Appended to gtid_purged of b, what was E1 between b and c is E2 between a and b."""
    errant, gtids = f"{A}:1-100,{B}:1", GtidSet.parse(f"{B}:1")
    audit = audit_cluster(
        a_cluster(
            "chain",
            a_server("a", A, f"{A}:1-100"),
            a_server("b", B, errant, gtid_purged=gtids, channels=(a_channel("a", A),)),
        )
    )
    [finding] = [each for each in audit.findings if each.code == "E2"]
    going_on = PlanRequest({"gone": "gtid_purged_append"}, None, {"gtid_purged_append": gtids})
    assert going_on.still(audit).choices == {finding.id: "gtid_purged_append"}
    for typed in (finding.id, "E2"):
        assert going_on.still(audit, [typed]).choices == {}
    for left_out in (
        {"gtid_purged_append": GtidSet.parse(f"{A}:1")},
        {"redo_on_source": gtids},  # not an answer to E2
    ):
        assert PlanRequest({}, None, left_out).still(audit).choices == {}
    by_code = PlanRequest({"E2": "inject_empty"}, None, {"gtid_purged_append": gtids})
    assert by_code.still(audit).choices == {"E2": "inject_empty"}


def test_only_what_was_selected_goes_on() -> None:
    written = planned(PlanRequest({"H1": "inject_empty"})).as_json()
    assert wanted_of(written).left_out == {"inject_empty": GtidSet.parse(f"{A}:51-53")}
    assert wanted_of({**written, "choices": {}}).left_out == {}


def test_a_choice_to_leave_out_does_not_reach_what_came_later() -> None:
    """An errant write after the plan joins the finding: the operator has not seen it."""
    errant = (f"{A}:1-9,{B}:1", f"{A}:1-9,{B}:1-2")
    first, later = (
        audit_cluster(
            a_cluster(
                "pair",
                a_server("a", A, f"{A}:1-9"),
                a_server("b", B, executed, channels=(a_channel("a", A),)),
            )
        )
        for executed in errant
    )
    [finding] = first.findings
    assert [each.id for each in later.findings] == [finding.id]
    for key in (finding.id, "E1"):
        made = PlanRequest({key: "inject_empty"}, named={finding.id: finding.gtid_set})
        assert made.still(first).choices == {key: "inject_empty"}
        assert made.still(later).choices == {}
        assert made.still(later).and_typed({key: "inject_empty"}, None).choices == made.choices
    beside = replace(later.findings[0], channel="other")
    both = replace(later, findings=(later.findings[0], beside))
    made = PlanRequest({"E1": "inject_empty"}, named={finding.id: finding.gtid_set})
    assert made.still(both).choices == {beside.id: "inject_empty"}, "it is new, and of that code"


def test_what_a_choice_was_made_for_is_read_back() -> None:
    written = planned(PlanRequest({"H1": "inject_empty"})).as_json()
    [answered] = written["answered"]
    named = {answered["finding_id"]: GtidSet.parse(f"{A}:51-53")}
    assert wanted_of(written).named == named
    assert wanted_of({**written, "choices": {}}).named == {}
    refetched = planned(PlanRequest({"H1": "refetch"})).as_json()
    assert wanted_of(refetched).named == {}, "it loses nothing"
    del answered["gtids"]  # as an earlier version wrote it
    assert wanted_of(written).named == {}


def refused(text: str = "Replica has more GTIDs than the source has") -> ClusterAudit:
    """A receiver stands with the text of a refusal, and its GTIDs fit by now."""
    stands = a_channel("a", A, receiver=ThreadState.STOPPED, receiver_errno=13114)
    below = a_server("b", B, f"{A}:1-9", channels=(replace(stands, receiver_error=text),))
    return audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1-9"), below))


def test_the_start_that_an_earlier_plan_ended_with_is_selected() -> None:
    audit = refused()
    [finding] = [each for each in audit.findings if each.code == "A4"]
    start = {finding.id: "start_channel"}
    compared = (("b", "a"),)
    for code, pairs, expected in (
        ("P1", (), start),
        ("E3", compared, start),
        ("E3", (), {}),  # the source may have given the GTIDs to others
        ("E3", (("a", "c"),), {}),
    ):
        ended = PlanRequest({code: "inject_empty"}, started={("b", ""): code})
        assert ended.still(audit, (), pairs).choices == expected
        assert ended.still(audit, ("A4",), pairs).choices == {}
    elsewhere = PlanRequest(started={("a", ""): "P1", ("b", "other"): "P1"})
    assert elsewhere.still(audit, (), compared).choices == {}
    differs = replace(finding, code="E4", source="a", replica="b")
    for strategies, expected in ((finding.strategies, {}), ((), start)):
        found = replace(audit, findings=(finding, replace(differs, strategies=strategies)))
        ended = PlanRequest(started={("b", ""): "E3"})
        assert ended.still(found, (), compared).choices == expected


def test_only_starts_of_selected_strategies_are_read_back() -> None:
    step = {"number": 2, "change": {"type": "StartChannel", "server": "b", "channel": "x"}}
    other = {"number": 1, "change": {"type": "StopChannel", "server": "a", "channel": ""}}
    done = {"finding_id": "f", "code": "E3", "strategy": "redo_on_source", "steps": [1, 2]}
    asked = {"choices": {"E3": "redo_on_source"}, "only_findings": None}
    written: dict[str, Any] = {**asked, "steps": [other, step], "answered": [done]}
    assert wanted_of(written).started == {("b", "x"): "E3"}
    assert wanted_of({**written, "choices": {}}).started == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"choices": 1, "only_findings": null}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    if text:
        (tmp_path / "plan.json").write_text(text)
    with pytest.raises(UsageProblem):
        wanted_by(tmp_path)


def test_the_command_line_is_whole() -> None:
    wanted = PlanRequest({"H1": "refetch", "E1": "inject_empty"}, ("f-1",))
    spelled = command_line(
        (), Path("my fleet.yaml"), "c1", wanted, flags=["--no-content"], out=None
    )
    assert shlex.split(spelled)[3:] == [
        *("--fleet", "my fleet.yaml", "--cluster", "c1", "--no-content"),
        *("--strategy=E1=inject_empty", "--strategy=H1=refetch", "--finding=f-1"),
    ]
    short = command_line(("a", "b"), None, None, wanted, flags=[], out=Path("plan 1"))
    assert shlex.split(short)[3:] == ["--pair", "a", "b", "--again", "plan 1"]
    three = command_line(("a", "b", "c"), None, None, wanted, flags=[], out=Path("plan"))
    assert shlex.split(three)[3:] == ["a", "b", "c", "--again", "plan"]


def test_a_server_reached_by_a_socket_is_repaired_by_it() -> None:
    plan = planned(PlanRequest({"H1": "inject_empty"}), "b")
    files = render_files(plan)
    line = "mysql --host=localhost --socket='/run/b/my sql.sock' --protocol=SOCKET < 01-b.sql"
    assert line in files["RUNBOOK.md"]
    assert line in files["01-b.sql"].replace("\n--    ", " ")
    assert "--port" not in files["01-b.sql"]
    assert json.loads(files["plan.json"])["steps"][0]["unix_socket"] == "/run/b/my sql.sock"
    assert plan.id != planned(PlanRequest({"H1": "inject_empty"})).id


def ways_of(runbook: str) -> list[list[str]]:
    """Return the command lines of a runbook, without the redirection."""
    lines = [
        line for line in runbook.splitlines() if line.startswith("mysql --host=localhost --socket=")
    ]
    return [shlex.split(line.partition(" < ")[0])[1:] for line in lines]


def test_stopped_after_a_step_the_printed_command_reaches_the_same_end(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both servers by socket; the commands are run as the runbook has them."""
    a, b = pair97.a, pair97.b
    fault = faults.position_bypass(pair97)
    dsns = [f"mysql://root@/?unix_socket={server.socket_path}" for server in (a, b)]
    folder = tmp_path / "plan"
    first = ["repair", "plan", "--pair", *dsns, "--strategy", "H1=inject_empty"]
    first.append("--no-content")  # what was declared unneeded differs, of course
    assert run([*first, "--out", str(folder)]) == 0
    plan_id = json.loads((folder / "plan.json").read_text())["id"]
    assert run([*first, "--out", str(folder)]) == 0, "the same plan, from a later reading"
    assert json.loads((folder / "plan.json").read_text())["id"] == plan_id
    runbook = (folder / "RUNBOOK.md").read_text()
    step, *_later = ways_of(runbook)
    assert step == ["--host=localhost", f"--socket={b.socket_path}", "--protocol=SOCKET"]
    done = b.client(next(iter(sorted(folder.glob("01-*.sql")))), *step)
    assert done.returncode == 0, done.stderr
    [again] = [line for line in runbook.splitlines() if line.startswith("gtid-audit repair plan")]
    assert f"--no-content --again {folder}" in again
    capsys.readouterr()
    assert run([*shlex.split(again)[1:], "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [each["action"] for each in plan["steps"]] == ["AutoPositionOn"]
    assert run([*shlex.split(again)[1:], "--out", str(tmp_path / "second")]) == 0
    # First what the source must still have, there; then the switch.
    second = sorted((tmp_path / "second").glob("*.sql"))
    ways = ways_of((tmp_path / "second" / "RUNBOOK.md").read_text())
    for server, script, way in zip((a, b), second, ways, strict=True):
        assert f"--socket={server.socket_path}" in way
        done = server.client(script, *way)
        assert done.returncode == 0, done.stderr
    assert executed(a) == executed(b)
    assert b.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", [fault.skipped])[0][0]
    assert len(rows(b, "bypassed.t")) == len(rows(a, "bypassed.t")) - 3


def test_two_ways_for_one_code_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    dsns = ["mysql://root@127.0.0.1:1/", "mysql://root@127.0.0.1:2/"]
    ways = ["--strategy", "H1=refetch", "--strategy", "h1=inject_empty"]
    assert run(["repair", "plan", "--pair", *dsns, *ways]) == 64
    assert "H1 has two strategies, refetch and inject_empty" in capsys.readouterr().err
