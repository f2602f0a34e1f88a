"""Which scripts may be run again only directly after their checks; scripts and runbook say so."""

from dataclasses import replace

import pytest

from repair.model.actions import MakeRowsAlike
from repair.render import RUNBOOK, render_files, render_script
from tests.repair.build import gtids
from tests.repair.script_cases import plan_of, steps

STEPS = steps()
ONLY_AFTER_CHECKS = "Run it, and run it again, only directly after its checks"
AGAIN = "It is safe to run it again."


def header(name: str) -> str:
    text = render_script(plan_of(STEPS[name]), STEPS[name])
    return " ".join(line.removeprefix("--").strip() for line in text.splitlines())


@pytest.mark.parametrize("name", ["rows made alike", "rows undone", "rows that exchange values"])
def test_rows_that_are_set_back(name: str) -> None:
    assert ONLY_AFTER_CHECKS in header(name)
    assert AGAIN not in header(name)
    assert STEPS[name].procedure.if_stopped.endswith(
        "; run its checks, and then run the script again"
    )


def test_every_other_script() -> None:
    others = [name for name, each in STEPS.items() if not each.may_undo_later_writes]
    assert len(others) == len(STEPS) - 3
    for name in others:
        assert AGAIN in header(name), name
        assert ONLY_AFTER_CHECKS not in header(name), name
        assert "run its checks" not in STEPS[name].procedure.if_stopped, name


def test_the_runbook() -> None:
    runbook = render_files(plan_of(STEPS["rows undone"]))[RUNBOOK]
    assert "Run the checks of a step directly before it, and again before you run it" in runbook


def test_rows_of_a_failing_transaction_are_not_set_back_once_it_is_executed() -> None:
    step = STEPS["rows made alike"]
    assert isinstance(step.effect, MakeRowsAlike)
    until = replace(step.effect, until_executed=gtids("a:4"))
    assert not replace(step, effect=until).may_undo_later_writes
