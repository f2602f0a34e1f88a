"""The distribution of tests over processes: groups, order and number (pytest-xdist).

1. A file's tests share servers, and the tests of Spark share a session: each group runs in one
   process, and neither is started twice.
2. What takes longest begins first: a few groups that are named here, then the others by what their
   tests cost. Groups of few and long tests used to come last, when only one process had work left.
3. Tests of real servers wait more than they compute: one process more than there are processors.
   With two more they took longer: servers and JVMs have threads of their own.
4. All collected tests stay until the end. Each full garbage collection would look through them
   again: 8 % of the processor time of tests without servers, and 12 % of that of collecting. What
   tests make themselves is looked through less often as well, which is another 9 %.

pytest-xdist 3.8 has --dist loadgroup for groups. From pytest 9.2 on it groups nothing: it writes
the group into Item._nodeid, which nothing reads any more. So the group is taken from the name here.
"""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

SPARK = (
    "tests/gtid_audit/test_content_engines_live.py",
    "tests/gtid_audit/test_content_group_live.py",
    "tests/gtid_audit/test_engines.py",
    "tests/gtid_audit/test_results_command.py",
    "tests/gtid_audit/test_stored_runs.py",
    "tests/spark_audit/",
)
OWN_CLUSTER = "tests/spark_audit/test_cluster.py"  # it has no use for the session
# Few tests that take long, in the order in which they begin. Other groups come by what they cost.
FIRST = (
    "spark",
    "tests/compose/test_demo.py",
    OWN_CLUSTER,
    "tests/repair/test_row_sql_live.py",
    "tests/gtid_audit/test_binlog_schema_killed.py",
    "tests/repair/test_planner_exhaustive.py",
)
# What a test costs on average, measured over the suite: with real servers, with the mark `long`
# and without servers, and all others.
MYSQL_MILLISECONDS = 1_000
LONG_MILLISECONDS = 1_500
OTHER_MILLISECONDS = 20
# Objects that are made before the collector runs: 700 in Python itself.
COLLECTED_EACH = 50_000


def group_of(nodeid: str) -> str:
    """Return the name of what has to run in one process with this test."""
    file = nodeid.partition("::")[0]
    return "spark" if file.startswith(SPARK) and file != OWN_CLUSTER else file


def cost_of(item: pytest.Item) -> int:
    """Return how many milliseconds of processor time a test takes, roughly."""
    if item.get_closest_marker("mysql"):
        return MYSQL_MILLISECONDS
    return LONG_MILLISECONDS if item.get_closest_marker("long") else OTHER_MILLISECONDS


@pytest.hookimpl(trylast=True)  # behind what other plugins and -m leave out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    costs: Counter[str] = Counter()
    for item in items:
        costs[group_of(item.nodeid)] += cost_of(item)

    def rank(item: pytest.Item) -> tuple[int, int]:
        group = group_of(item.nodeid)
        return (FIRST.index(group) if group in FIRST else len(FIRST), -costs[group])

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_EACH, *gc.get_threshold()[1:])


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    processors = len(os.sched_getaffinity(0))
    return processors if config.option.numprocesses == "logical" else processors + 1


@pytest.hookimpl(optionalhook=True)  # there is nothing to distribute without pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # the library has no types
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
