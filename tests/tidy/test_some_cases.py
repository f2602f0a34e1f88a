"""`make quick` tries some cases of a test that has many, and every test."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.some_cases import CASES, pytest_collection_modifyitems, spaced


class _Item:
    """What the plugin knows of an item."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


@pytest.mark.parametrize(
    ("count", "wanted", "found"),
    [
        (0, 3, []),
        (1, 3, [0]),
        (3, 3, [0, 1, 2]),
        (4, 3, [0, 1, 3]),
        (101, 3, [0, 50, 100]),
        (101, 2, [0, 100]),
    ],
)
def test_they_are_spaced_evenly_with_both_ends(count: int, wanted: int, found: list[int]) -> None:
    assert spaced(count, wanted) == found


def test_a_test_of_few_cases_keeps_all_and_the_order_stays() -> None:
    names = [
        "tests/test_a.py::test_one",
        *(f"tests/test_a.py::test_many[{at}]" for at in range(100)),
        *(f"tests/test_a.py::TestClass::test_few[{at}]" for at in range(CASES)),
        *(f"tests/test_b.py::test_many[{at}]" for at in range(100)),
    ]
    items: list[Any] = [_Item(name) for name in names]
    left_out: list[Any] = []

    def deselected(items: list[Any]) -> None:
        left_out.extend(items)

    config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=deselected))
    pytest_collection_modifyitems(config, items)
    kept = [item.nodeid for item in items]
    assert len(kept) == 1 + 3 * CASES
    assert kept == [name for name in names if name in kept]
    assert {names[0], names[1], names[100], names[-100], names[-1]} <= {*kept}
    assert {*names[101 : 101 + CASES]} <= {*kept}
    assert {item.nodeid for item in left_out} == {*names} - {*kept}
