"""Fewer cases for `make quick`: of a test with many cases, some.

As with Hypothesis, which tries a tenth of its examples there: most mistakes show in any few cases,
and waiting for all of them after each edit takes longer than it helps. `make test` runs all.

The cases are evenly spaced, with the first and the last. So the same ones run each time.
"""

from collections import defaultdict

import pytest

CASES = 6


def spaced(count: int, wanted: int) -> list[int]:
    """Return up to `wanted` of the numbers below `count`, evenly spaced, with both ends.

    Args:
        wanted: 2 or more.
    """
    if count <= wanted:
        return list(range(count))
    return [at * (count - 1) // (wanted - 1) for at in range(wanted)]


@pytest.hookimpl(trylast=True)  # behind -m, so that what it leaves out does not count
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = {each[at] for each in cases.values() for at in spaced(len(each), CASES)}
    left_out = [item for item in items if item not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in kept]
