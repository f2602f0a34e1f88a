"""`-m "not mysql"` starts no server and `-m "not spark"` no JVM: not even by fixtures' names."""

import os
import subprocess
import sys
from collections.abc import Sequence
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


def collected(*options: str, files: Sequence[str] = FILES) -> list[str]:
    """Return the tests of the files that pytest would run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "--collect-only", *options, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.long
def test_tests_on_real_servers_are_marked() -> None:
    without = collected("-m", "not mysql")
    assert [name for name in without if name.startswith("tests/repair/")] == [
        f"tests/repair/test_guards_live.py::{WITHOUT_SERVERS}"
    ]
    assert without[1:], "the readers in memory need no server"
    assert not [name for name in without if "[live" in name]


@pytest.mark.long
def test_tests_on_spark_are_marked() -> None:
    on_spark = [file for file in FILES if file.startswith("tests/spark")]
    assert collected("-m", "not slow", files=on_spark)
    assert collected("-m", "not spark", files=on_spark) == []


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
