"""How tests are dealt out to processes: a file's tests together, and those of Spark in one process.

A file's tests share servers, and the Spark tests one session: neither is started twice.

pytest-xdist 3.8 has --dist loadgroup for this, which from pytest 9.2 on groups nothing: it writes
the group into Item._nodeid, which nothing reads any more. So the scope is taken from the name here.
"""

from typing import Any

import pytest

SPARK = (
    "tests/gtid_audit/test_content_engines_live.py",
    "tests/gtid_audit/test_engines.py",
    "tests/gtid_audit/test_results_command.py",
    "tests/gtid_audit/test_stored_runs.py",
    "tests/spark_audit/",
)
OWN_CLUSTER = "tests/spark_audit/test_cluster.py"  # it has no use for the session


def group_of(nodeid: str) -> str:
    """Return the name of what has to run in one process with this test."""
    file = nodeid.partition("::")[0]
    return "spark" if file.startswith(SPARK) and file != OWN_CLUSTER else file


@pytest.hookimpl(optionalhook=True)  # there is nothing to deal out without pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
