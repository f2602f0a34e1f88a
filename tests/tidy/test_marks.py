"""`-m "not mysql"` starts no server and `-m "not spark"` no JVM: not even by fixtures' names."""

import os
import subprocess
import sys
from typing import cast

import pytest

from compose.native.server import Server
from spark_audit.adapters.java import JavaMissing, require_java
from tests.tidy.test_tidy import ROOT

# Their servers come by an argument, by the parameters of a fixture, by those of a test, by a tuple.
FILES = (
    "tests/repair/test_sets_live.py",
    "tests/repair/test_guards_live.py",
    "tests/repair/test_bypass_live.py",
    "tests/repair/test_row_sql_live.py",
    "tests/topology/test_readers.py",
    "tests/spark_audit/test_sources.py",
    "tests/spark_audit/test_binlog_source.py",
)
WITHOUT_SERVERS = "test_a_longer_message_is_cut_where_it_can_be_seen"
PRINTED = """
import pytest
class Marks:
    def pytest_collection_modifyitems(self, items):
        for item in items:
            print("test", item.nodeid, *sorted({each.name for each in item.iter_markers()}))
pytest.main(["-q", "-n0", "--collect-only", *__import__("sys").argv[1:]], plugins=[Marks()])
"""


@pytest.fixture(scope="module")
def marks() -> dict[str, set[str]]:
    """Return the marks of each test of the files, which `-m` selects by."""
    done = subprocess.run(
        [sys.executable, "-c", PRINTED, *FILES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("test ")]
    # An id may have spaces, and a mark has none: the marks are those that pytest knows.
    named = (line.removeprefix("test ").split(" ") for line in lines)
    return {" ".join(words): {*words} & {"mysql", "spark", "slow"} for words in named}


@pytest.mark.long
def test_tests_on_real_servers_are_marked(marks: dict[str, set[str]]) -> None:
    without = [name for name, found in marks.items() if "mysql" not in found]
    of_repair = [name.split(" ")[0] for name in without if name.startswith("tests/repair/")]
    assert of_repair == [f"tests/repair/test_guards_live.py::{WITHOUT_SERVERS}"]
    assert len(without) > len(of_repair), "the readers in memory need no server"
    assert not [name for name in without if "[live" in name]


@pytest.mark.long
def test_tests_on_spark_are_marked(marks: dict[str, set[str]]) -> None:
    on_spark = [found for name, found in marks.items() if name.startswith("tests/spark")]
    assert [found for found in on_spark if "slow" not in found]
    assert all("spark" in found for found in on_spark)


def test_a_test_without_the_marks_gets_no_server_and_no_java() -> None:
    with pytest.raises(AssertionError, match=r"needs @pytest\.mark\.mysql"):
        Server.start(cast("Server", type("Named", (), {"name": "a"})()))
    with pytest.raises(JavaMissing, match=r"pytest\.mark\.spark"):
        require_java(os.environ)


def test_a_test_without_the_mark_may_not_start_servers(request: pytest.FixtureRequest) -> None:
    [conftest] = [
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(ROOT / "tests/conftest.py")
    ]
    with pytest.raises(AssertionError, match=r"needs @pytest\.mark\.mysql"):
        conftest._or_skip(lambda: None)


def test_a_skip_for_the_java_that_the_mark_withholds_is_a_failure(
    request: pytest.FixtureRequest,
) -> None:
    """Without the hook a Spark test that has no mark would be skipped on every machine."""

    def reported(reason: str) -> pytest.TestReport:
        call = pytest.CallInfo.from_call(lambda: pytest.skip(reason), when="call")
        report: pytest.TestReport = request.node.ihook.pytest_runtest_makereport(
            item=request.node, call=call
        )
        return report

    with pytest.raises(JavaMissing) as withheld:
        require_java(os.environ)
    assert reported(f"provider missing: {withheld.value}").failed
    assert reported("provider missing: npm").skipped, "other skips stay skips"
    with pytest.raises(JavaMissing) as missing:
        require_java({"PATH": ""})
    assert reported(f"provider missing: {missing.value}").skipped, "no Java on this machine"
