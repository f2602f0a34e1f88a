"""How the servers of a plan were named: on the command line, in its own command, in the journal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.plan_servers import PlanServers
from gtid_audit.tasks.plan_again import PlanRequest, command_line
from repair.applying.written_plan import WrittenPlan, read_plan
from repair.render import PLAN, render_files
from tests.repair.script_cases import full_plan, steps

DSNS = ("mysql://audit@db1/?ssl=required", "mysql://audit@db2/?ssl=required")
FLAGS = ["--ask-password", "--timeout=5", "--content", "--accepted=plan-0"]


def plan(command: str) -> WrittenPlan:
    made = replace(full_plan(steps()), command=command)
    return read_plan(render_files(made)[PLAN])


def made_by(*, pair: bool, out: Path | None) -> WrittenPlan:
    wanted = PlanRequest({"E1": "inject_empty"}, only=("f-1",))
    if pair:
        return plan(command_line(DSNS, None, None, wanted, flags=FLAGS, out=out))
    return plan(command_line((), Path("fleet.yaml"), "orders", wanted, flags=(), out=out))


@pytest.mark.parametrize("out", [None, Path("plan-1")])
def test_the_servers_of_a_plan_are_those_of_its_command(out: Path | None) -> None:
    assert PlanServers.of_plan(made_by(pair=True, out=out)) == PlanServers(DSNS, ask=True)
    assert PlanServers.of_plan(made_by(pair=False, out=out)) == PlanServers(
        fleet="fleet.yaml", cluster="orders"
    )


@pytest.mark.parametrize(
    "named",
    [
        PlanServers(DSNS),
        PlanServers(DSNS, admin="admin.cnf", ask=True),
        PlanServers(("db1:3306",)),
        PlanServers(fleet="fleet.yaml", cluster="orders", admin="~/admin.cnf"),
    ],
)
def test_what_the_journal_keeps_names_the_same_servers(named: PlanServers) -> None:
    assert PlanServers.of_words(named.words) == named


def test_servers_that_were_named_replace_those_of_the_plan() -> None:
    made = made_by(pair=True, out=None)
    assert PlanServers(admin="a.cnf").or_of_plan(made) == PlanServers(DSNS, admin="a.cnf", ask=True)
    named = PlanServers(fleet="other.yaml", cluster="c")
    assert named.or_of_plan(made) is named


def test_a_procedure_may_be_resumed_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = PlanServers(fleet="fleet.yaml", cluster="c", admin="admin.cnf").from_anywhere()
    assert (named.fleet, named.admin) == (f"{tmp_path}/fleet.yaml", f"{tmp_path}/admin.cnf")
    assert PlanServers(admin="~/admin.cnf").from_anywhere().admin == "~/admin.cnf"
    assert PlanServers(DSNS).from_anywhere() == PlanServers(DSNS)


@pytest.mark.parametrize(
    "command", ["gtid-audit repair plan --pair a", "gtid-audit repair plan --fleet"]
)
def test_a_command_that_was_cut_is_wrong_usage(command: str) -> None:
    with pytest.raises(UsageProblem, match="has no value"):
        PlanServers.of_plan(plan(command))


def test_a_plan_that_names_no_server_needs_dsns() -> None:
    made = plan("")
    with pytest.raises(UsageProblem, match="give a DSN for each"):
        PlanServers.of_plan(made).targets(made)
    with pytest.raises(UsageProblem, match="used together"):
        PlanServers(fleet="fleet.yaml").targets(made)
