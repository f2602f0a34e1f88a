"""The simulator notices each condition of the product that is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import switches
from tests.simulation.checking import check
from tests.simulation.history import parse

NOTICED = Path(__file__).parent / "noticed"


def test_every_switch_has_a_history() -> None:
    assert {path.stem for path in NOTICED.glob("*.txt")} == set(switches.SWITCHES)
    assert len(switches.SWITCHES) >= 15


@pytest.mark.parametrize("name", switches.SWITCHES)
def test_a_condition_that_is_switched_off_is_noticed(name: str) -> None:
    history = parse((NOTICED / f"{name}.txt").read_text())
    as_it_is = {each.kind for each in check(history)}
    with switches.off(name):
        without = {each.kind for each in check(history)}
    assert without - as_it_is, "no oracle notices it"
