"""Reading a fleet file is not interrupted by collections that find nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from topology.adapters.inventory.collector_pause import collector_paused
from topology.adapters.inventory.fleet_file import parse_fleet
from topology.adapters.inventory.problem import InventoryProblem


@contextmanager
def collections_counted() -> Iterator[list[str]]:
    seen: list[str] = []

    def note(phase: str, _information: object) -> None:
        seen.append(phase)

    gc.collect()  # none is due
    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)


def of_pairs(count: int) -> str:
    server = "{{name: {0}, host: {0}{1}, user: u}}"
    return "clusters:\n" + "".join(
        f"- {{name: p{number}, servers: [{server.format('a', number)}, {server.format('b', number)}]}}\n"
        for number in range(count)
    )


@pytest.mark.long
def test_no_collection_runs_while_a_fleet_is_read() -> None:
    text = of_pairs(1000)
    with collections_counted() as seen:
        fleet = parse_fleet(text, name="f.yaml", environment={}, warn=pytest.fail)
    assert len(fleet.clusters) == 1000
    # Before, between and after the parts of the reading the collector runs. Without the pause it
    # ran more than 40 times.
    assert seen.count("start") <= 5
    assert gc.isenabled()


def test_a_problem_ends_the_pause() -> None:
    with pytest.raises(InventoryProblem):
        parse_fleet("clusters: 1", name="f.yaml", environment={}, warn=pytest.fail)
    assert gc.isenabled()


def test_a_collector_that_the_caller_stopped_stays_stopped() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
