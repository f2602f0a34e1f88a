"""`reconcile` on real servers: what it applies by itself, and what it leaves to an operator."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compose import faults, faults_after_plan
from compose.native.shapes import Pair
from gtid_audit.cli import run
from repair.adapters.journal import Journal
from repair.applying.procedures_applied import AppliedProcedure, ProcedureState
from tests.repair.live import await_clean, examine, executed, rows, wait_until
from topology.catalogue.strategy_table import RECONCILABLE


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def fleet(pair: Pair, folder: Path, *permitted: str) -> Path:
    path = folder / "fleet.yaml"
    servers = "".join(
        f"\n      - {{name: {name}, host: {each.host}, port: {each.port}}}"
        for name, each in pair.servers.items()
    )
    path.write_text(
        f"defaults: {{user: root}}\npolicy: {{reconcile: [{', '.join(permitted)}]}}\n"
        f"clusters:\n  - name: orders\n    servers:{servers}\n"
    )
    return path


def reconciled(capsys: pytest.CaptureFixture[str], *words: str, status: int) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["reconcile", *words, "--json"]) == status
    [found] = json.loads(capsys.readouterr().out)["clusters"]
    assert isinstance(found, dict)
    page = (Path(__file__).parents[2] / "docs/json.md").read_text()
    listed = page.partition("`reconcile --json` writes")[2].partition("\n\n")[0]
    assert set(found) <= set(re.findall(r"`([a-z_]+)`", listed))
    return found


def ended(state: Path, procedure: str) -> AppliedProcedure:
    journal = Journal.at(state / "gtid-audit/journal.sqlite")
    over = (ProcedureState.DONE, ProcedureState.FAILED, ProcedureState.STOPPED)
    wait_until(lambda: journal.find(procedure).state in over)
    return journal.find(procedure)


def a_hole_that_may_be_fetched(pair: Pair) -> None:
    """Let b skip rows, and stop its applier: then the rows are as they were, and can be compared."""
    faults.position_bypass(pair)
    pair.b.execute(pair.b.dialect.stop_replica)


def test_what_the_policy_permits_is_applied(
    pair97: Pair, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_hole_that_may_be_fetched(pair97)
    file = fleet(pair97, state, "refetch", "auto_position_on", "start_channel")
    found = reconciled(capsys, "cluster", "orders", "--fleet", str(file), "--yes", status=0)
    assert (found["left"], found["kept"]) == ([], None)
    assert "refetch" in found["applied"]["strategies"]
    procedure = ended(state, found["applied"]["procedure"])
    assert procedure.state is ProcedureState.DONE, procedure.message
    await_clean(pair97)
    assert rows(pair97.a, "bypassed.t") == rows(pair97.b, "bypassed.t")
    again = reconciled(capsys, "cluster", "orders", "--fleet", str(file), "--yes", status=0)
    assert (again["findings"], again["applied"]) == ([], None)


@pytest.mark.parametrize("permitted", [(), ("inject_empty",)])
def test_what_it_does_not_permit_stays_a_plan(
    pair97: Pair, state: Path, permitted: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    a_hole_that_may_be_fetched(pair97)
    before = executed(pair97.b)
    file = fleet(pair97, state, *permitted)
    found = reconciled(capsys, "fleet", "--fleet", str(file), "--yes", status=1)
    assert found["applied"] is None
    assert found["findings"] == found["left"] != []
    assert "policy.reconcile does not list" in found["why_kept"]
    assert Path(found["kept"]["directory"], "RUNBOOK.md").exists()
    assert (executed(pair97.b), Journal.at(state / "gtid-audit/journal.sqlite").procedures()) == (
        before,
        (),
    )
    same = reconciled(capsys, "fleet", "--fleet", str(file), "--yes", status=1)
    assert same["kept"] == found["kept"], "the same plan in the same directory"
    assert run(["repair", "apply", found["kept"]["directory"], "--yes"]) == 0
    await_clean(pair97)


def test_without_yes_nothing_is_applied(
    pair97: Pair, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_hole_that_may_be_fetched(pair97)
    file = fleet(pair97, state, "refetch", "auto_position_on", "start_channel")
    found = reconciled(capsys, "cluster", "orders", "--fleet", str(file), status=1)
    assert (found["applied"], found["why_kept"]) == (None, "without --yes nothing is applied")
    assert found["kept"]["strategies"]
    assert run(["reconcile", "cluster", "orders", "--fleet", str(file)]) == 1
    assert f"gtid-audit repair apply {found['kept']['directory']}" in "".join(
        capsys.readouterr().out.split("\n")
    )


def test_data_is_never_left_out_by_a_policy(
    pair97: Pair, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """inject_empty is permitted; the errant transaction has rows, so that no plan takes it."""
    faults.errant_transaction(pair97)
    faults_after_plan.remove_channel(pair97.a)
    before = executed(pair97.a)
    file = fleet(pair97, state, "inject_empty", "refetch", "auto_position_on", "start_channel")
    found = reconciled(capsys, "cluster", "orders", "--fleet", str(file), "--yes", status=1)
    assert found["applied"] is None
    assert "E1" in examine(pair97).codes
    assert executed(pair97.a) == before


def test_a_plan_that_warns_is_for_an_operator(
    pair97: Pair, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The waiting rows have no key, so no comparison shows whether they are there already."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.keyless (v INT)")
    pair97.settle()
    b.execute(f"{b.dialect.stop_replica} SQL_THREAD")
    a.execute("INSERT INTO d.keyless VALUES (1)")
    file = fleet(pair97, state, "start_channel")
    wait_until(lambda: "A7" in examine(pair97).codes)
    found = reconciled(capsys, "cluster", "orders", "--fleet", str(file), "--yes", status=1)
    assert found["applied"] is None
    assert found["why_kept"].startswith("the plan warns: not all rows of ")
    assert found["kept"]["strategies"] == ["start_channel"]
    assert rows(b, "d.keyless") == []


def test_an_empty_errant_transaction_is_left_out(
    pair97: Pair, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults_after_plan.remove_channel(pair97.a)
    uuid = pair97.b.value("@@GLOBAL.server_uuid")
    pair97.b.execute(f"SET gtid_next = '{uuid}:1'", "BEGIN", "COMMIT")
    file = fleet(pair97, state, "inject_empty")
    found = reconciled(capsys, "server", "b", "--fleet", str(file), "--yes", status=0)
    assert found["applied"]["strategies"] == ["inject_empty"]
    assert ended(state, found["applied"]["procedure"]).state is ProcedureState.DONE
    assert executed(pair97.a) == executed(pair97.b)


def test_a_server_that_is_not_read_lets_nothing_be_applied(
    pair97: Pair, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_hole_that_may_be_fetched(pair97)
    file = fleet(pair97, state, "refetch", "auto_position_on", "start_channel")
    file.write_text(file.read_text() + "      - {name: c, host: 127.0.0.1, port: 1}\n")
    found = reconciled(capsys, "cluster", "orders", "--fleet", str(file), "--yes", status=3)
    assert (found["applied"], found["why_kept"]) == (None, "some facts were not read")
    assert any(each.startswith("c, ") for each in found["unread"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["cluster", "nowhere"], "no cluster with that name in the fleet file"),
        (["server", "x"], "x is a server of 0 clusters"),
        (["fleet", "x"], "reconcile needs: table SCHEMA.TABLE, database NAME, server NAME"),
        (["cluster"], "reconcile needs: table SCHEMA.TABLE, database NAME, server NAME"),
        (["cluster", "a", "--cluster", "a"], "--cluster is for reconcile table, database and"),
        (["table", "t", "--cluster", "a"], "expected schema.table, not 't'"),
        (["table", "d.t", "--cluster", "x"], "d.t is in one of 0 clusters"),
        (["database"], "reconcile needs: table SCHEMA.TABLE, database NAME, server NAME"),
        (["database", ""], "expected the name of a schema"),
        (
            ["database", "d", "mysql://u@h/"],
            "needs either --fleet FILE or, for a table or database",
        ),
        (["schema", "d"], "'schema' is not one of 'table', 'database', 'server', 'cluster'"),
    ],
)
def test_an_unknown_name_is_refused(
    words: list[str], why: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = state / "fleet.yaml"
    file.write_text("clusters: [{name: a, servers: [{name: b, host: h, user: u}]}]\n")
    assert run(["reconcile", *words, "--fleet", str(file)]) == 64
    assert why in capsys.readouterr().err


def test_a_policy_permits_only_what_loses_no_data(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = state / "fleet.yaml"
    file.write_text(
        "policy: {reconcile: [undo_on_replica]}\n"
        "clusters: [{name: a, servers: [{name: b, host: h, user: u}]}]\n"
    )
    assert run(["reconcile", "fleet", "--fleet", str(file)]) == 64
    assert (
        "is not one of auto_position_on, inject_empty, refetch, repair_definition, start_channel"
        in capsys.readouterr().err
    )


PAGE = (Path(__file__).parents[2] / "docs/reconcile.md").read_text()


def test_the_commands_and_the_policy_of_the_page(
    pair97: Pair,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each command runs as it is written, with the policy of the page; the pair has a hole."""
    monkeypatch.chdir(state)
    [policy] = re.findall(r"reconcile: \[(.*?)\]", PAGE)
    file = fleet(pair97, state, *policy.split(", "))
    file.write_text(file.read_text().replace("name: b,", "name: orders-2,"))
    Path("admin.cnf").write_text("[client]\nuser = root\n")
    Path("admin.cnf").chmod(0o600)
    assert set(policy.split(", ")) == set(RECONCILABLE)
    pair97.a.execute("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
    pair97.settle()
    a_hole_that_may_be_fetched(pair97)
    commands = re.findall(r"^gtid-audit (reconcile .*?)(?: +#.*)?$", PAGE, re.MULTILINE)
    assert [each.split()[1] for each in commands] == [
        *("cluster", "cluster", "server", "fleet", "database", "table")
    ]
    for command, status in zip(commands, (1, 0, 0, 0, 0, 0), strict=True):
        capsys.readouterr()
        assert run(command.split()) == status, command
        started = re.search(r"procedure (\S+) applies", capsys.readouterr().out)
        if started is not None:
            assert ended(state, started[1]).state is ProcedureState.DONE
    await_clean(pair97)
