"""Scripts that write on a read-only server: which are refused before their first change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.model.actions import Action, AppendPurged, InjectEmpty, RedoTransactions, StartChannel
from repair.model.replication_model import Model
from repair.scripts.procedure import Setting
from repair.scripts.procedures import make_step
from repair.scripts.steps import Step
from repair.sql.privileges import writes_when_read_only
from repair.sql.replay_script import Direction, script_lines
from tests.repair.build import NEW, OLD, channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_finding, redone, rows_written_on
from topology.readings.version import ServerVersion

WRITING: tuple[Action, ...] = (*rows_written_on("b"), RedoTransactions("b", redone("c:1")))
OTHERS: tuple[Action, ...] = (
    InjectEmpty("b", gtids("c:1")),
    StartChannel("b", ""),
    AppendPurged("b", gtids("c:1")),
)


def step_of(action: Action, *, version: ServerVersion = NEW, **settings: str) -> Step:
    servers: Model = model(
        server("a", "a:1-9", version=version),
        server("b", "a:1-3", channel("a", runs=False), version=version),
    )
    snapshot = snapshot_of(servers)
    seen = {
        each.name: replace(each, settings=(*(each.settings or ()), *settings.items()))
        for each in snapshot.last_read.values()
    }
    setting = Setting(servers["b"], servers, servers, seen)
    return make_step(action, setting, after=0, finding=a_finding("E1", "c:1"))


def conditions(step: Step, name: str) -> list[str]:
    return [
        each.condition
        for each in step.procedure.preconditions
        if f"@@GLOBAL.{name} = 0" in each.condition
    ]


@pytest.mark.parametrize("action", WRITING)
def test_a_script_that_writes_begins_only_on_a_server_that_accepts_it(action: Action) -> None:
    step = step_of(action, super_read_only="ON", read_only="ON")
    [condition] = conditions(step, "super_read_only")
    is_redo = isinstance(action, RedoTransactions)
    assert ("GTID_SUBSET" in condition) is is_redo, "a redo that is done passes"
    [condition] = conditions(step, "read_only")
    assert "'CONNECTION_ADMIN', 'SUPER'" in condition
    [text] = [
        each for each in step.procedure.warnings if each.startswith("super_read_only is ON on b")
    ]
    assert "`SET GLOBAL super_read_only = OFF`" in text
    assert not any("super_read_only =" in each for each in step.procedure.statements), (
        "never by itself"
    )
    assert step.privileges[-1] == "CONNECTION_ADMIN or SUPER while read_only is ON"


@pytest.mark.parametrize("action", WRITING)
def test_a_writable_server_needs_no_warning(action: Action) -> None:
    step = step_of(action, super_read_only="OFF", read_only="OFF")
    assert conditions(step, "super_read_only"), "it may be set before the script runs"
    assert not any(each.startswith("super_read_only is ON") for each in step.procedure.warnings)
    assert not any("while read_only" in each for each in step.privileges)


@pytest.mark.parametrize("action", OTHERS)
def test_what_a_read_only_server_accepts_is_not_refused(action: Action) -> None:
    step = step_of(action, super_read_only="ON", read_only="ON")
    assert conditions(step, "super_read_only") == conditions(step, "read_only") == []
    assert not any("super_read_only" in each for each in step.procedure.warnings)
    assert not any("while read_only" in each for each in step.privileges)


def test_before_5_7_8_there_is_only_read_only() -> None:
    for version, expected in ((OLD, 0), (ServerVersion(5, 7, 7), 0), (ServerVersion(5, 7, 8), 1)):
        step = step_of(WRITING[0], version=version)
        assert len(conditions(step, "super_read_only")) == expected
        assert len(conditions(step, "read_only")) == 1
        assert str(writes_when_read_only(version)) == "SUPER"


def test_a_script_for_any_server_checks_it_before_its_first_transaction() -> None:
    """`binlog show --redo`: 5.6 reads the condition as TRUE, because of its version comment."""
    lines = [*script_lines(Direction.REDO, redone("c:1"))]
    [asked] = [at for at, each in enumerate(lines) if "@@GLOBAL.super_read_only" in each]
    assert "TRUE /*!50708 AND NOT @@GLOBAL.super_read_only */" in lines[asked]
    first = next(at for at, each in enumerate(lines) if "1 of 1" in each)
    assert asked < first
