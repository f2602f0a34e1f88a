"""What is made of the figures of fleet audits, and that a wrong finding is not measured in peace."""

from typing import Any

import pytest

from benchmarks.fleet import kinds_of
from benchmarks.fleet_audit import Figures
from benchmarks.generate.kinds import KINDS
from benchmarks.generate.numbers import GeneratedFleet

FLEET = GeneratedFleet(pairs=500, busy_rate=0.3, fault_rate=0.3)


def an_answer(first: float, second: float) -> dict[str, Any]:
    findings: dict[str, int] = {}
    for kind, count in zip(KINDS, kinds_of(FLEET)[1:], strict=True):
        if kind.code and count:
            findings[kind.code] = findings.get(kind.code, 0) + count
            if kind.beside is not None:
                findings[kind.beside] = findings.get(kind.beside, 0) + count
    return {
        "seconds": [first, second],
        "clusters": 500,
        "findings": findings,
        "peak_bytes": {"driver": [7], "worker": [5, 9, 1], "jvm": [3]},
    }


def test_medians_of_the_sessions_and_the_largest_process_count() -> None:
    answers = [an_answer(9.0, 2.0), an_answer(4.0, 3.0), an_answer(5.0, 8.0)]
    answers[1]["peak_bytes"]["jvm"] = [4, 2]
    assert Figures.of(FLEET, answers) == Figures(
        500, 5.0, 3.0, {"driver": 7, "worker": 9, "jvm": 4}
    )


@pytest.mark.parametrize(
    "wrong", [{"findings": {"E1": 1}}, {"clusters": 499}, {"findings": {}}], ids=str
)
def test_an_audit_that_found_something_else_is_no_figure(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        Figures.of(FLEET, [an_answer(1.0, 1.0) | wrong])
