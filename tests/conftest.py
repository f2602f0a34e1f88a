"""Fixtures of real servers, and the marks of what needs servers or Spark.

A missing provider skips by name and says what would bring it. A test without the mark `mysql` can
start no server, and one without the mark `spark` no JVM: `make quick` needs neither.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from compose.native import shapes
from compose.native.installation import Clients, Installation, ProviderMissing
from compose.native.provision import MODERN, OLD, provision, provision_clients
from compose.native.server import Server
from tests.documents import checked_documents
from tests.hypothesis_profiles import load_profile

load_profile()

# Every fixture that starts a server requests one of these.
_INSTALLATIONS = frozenset({"installation97", "installation56", "mysql_clients"})
# Fixtures that need Java, and what stands for it in a test without the mark.
_SPARK = frozenset({"spark", "spark_home"})
_NO_JAVA = "/this/test/needs/pytest.mark.spark"
# Servers of tests run in memory where there is enough of it: to remove the files of one server takes
# up to three seconds on a disk that still writes them (ext4, 9.7.4), and no test needs them later.
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES_MIN = 4 << 30  # three processes, each with up to six servers of 70 MB, and their logs
# The test that runs now; None outside of tests.
_running: list[pytest.Item] = []

Found = TypeVar("Found")


def pytest_configure() -> None:
    # No test depends on the files of the user who runs it.
    os.environ["GTID_AUDIT_DEFAULTS_FILE"] = ""
    os.environ["MYSQL_TEST_LOGIN_FILE"] = "/nonexistent"
    if "GTID_AUDIT_RUNS" not in os.environ and _memory_is_enough():
        runs = _MEMORY / f"gtid-audit-{os.geteuid()}"
        runs.mkdir(mode=0o700, exist_ok=True)
        if runs.lstat().st_uid == os.geteuid():
            os.environ["GTID_AUDIT_RUNS"] = str(runs)


def _memory_is_enough() -> bool:
    if not _MEMORY.is_dir():
        return False
    room = os.statvfs(_MEMORY)
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    return available is not None and (
        min(room.f_bavail * room.f_frsize, int(available[1]) * 1024) >= _MEMORY_BYTES_MIN
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function):
            names = fixtures_of(item)
            if names & _INSTALLATIONS:
                item.add_marker(pytest.mark.mysql)
            if names & _SPARK:
                item.add_marker(pytest.mark.spark)


def fixtures_of(item: pytest.Function) -> set[str]:
    """Return the fixtures of a test, and those that its parameters name.

    `item.fixturenames` holds what the fixtures request as arguments, at any depth. A fixture that
    is requested by `getfixturevalue` is not in it: then a parameter has the fixture's name.
    """
    names = set(item.fixturenames)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    waiting = [
        each
        for value in parameters.values()
        for each in (value if isinstance(value, tuple) else (value,))
        if isinstance(each, str)
    ]
    while waiting:
        name = waiting.pop()
        for fixture in item.session._fixturemanager.getfixturedefs(name, item) or ():
            new = set(fixture.argnames) | {name}
            waiting += new - names
            names |= new
    return names


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _running.append(item)
    try:
        with pytest.MonkeyPatch.context() as patch:
            if not item.get_closest_marker("mysql"):
                patch.setattr(Server, "start", _refused)
            if not item.get_closest_marker("spark"):
                patch.setenv("JAVA_HOME", _NO_JAVA)
            return (yield)
    finally:
        _running.remove(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.skipped and _NO_JAVA in str(report.longrepr):
        report.outcome = "failed"  # it must have the mark, not be skipped everywhere
    return report  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def _documents_follow_their_schemas() -> Iterator[None]:
    """Every document that a command prints while a test runs is compared with its JSON Schema."""
    with checked_documents():
        yield


def _refused(server: Server) -> None:
    raise AssertionError(f"a test that starts the server {server.name} needs @pytest.mark.mysql")


def _or_skip(provider: Callable[[], Found]) -> Found:
    for item in _running:
        # It would start servers in a run that asked for none: `-m "not mysql"`.
        assert item.get_closest_marker("mysql"), f"{item.nodeid} needs @pytest.mark.mysql"
    try:
        return provider()
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


@pytest.fixture(scope="session")
def installation97() -> Installation:
    return _or_skip(lambda: provision(MODERN))


@pytest.fixture(scope="session")
def native97(installation97: Installation) -> Installation:
    """The same server where a test reads its program's own files, or starts it by itself."""
    if installation97.image:
        pytest.skip("provider missing: a container hides the files of its program from this test")
    return installation97


@pytest.fixture(scope="session")
def installation56() -> Installation:
    return _or_skip(lambda: provision(OLD))


@pytest.fixture(scope="session")
def mysql_clients() -> Clients:
    return _or_skip(provision_clients)


def _entered(shape: AbstractContextManager[Found]) -> Iterator[Found]:
    with shape as topology:
        yield topology


@pytest.fixture(scope="session")
def mysql97(installation97: Installation) -> Iterator[Server]:
    """One server for the whole run: for questions and oracles, not for faults."""
    yield from _entered(shapes.single(installation97))


@pytest.fixture(scope="session")
def mysql56(installation56: Installation) -> Iterator[Server]:
    """One 5.6 server for the whole run: for questions and oracles, not for faults."""
    yield from _entered(shapes.single(installation56))


@pytest.fixture
def pair97(installation97: Installation) -> Iterator[shapes.Pair]:
    yield from _entered(shapes.pair(installation97))


@pytest.fixture
def pair56(installation56: Installation) -> Iterator[shapes.Pair]:
    yield from _entered(shapes.pair(installation56))


@pytest.fixture
def star97(installation97: Installation) -> Iterator[shapes.Topology]:
    yield from _entered(shapes.star(installation97))


@pytest.fixture
def chain97(installation97: Installation) -> Iterator[shapes.Topology]:
    yield from _entered(shapes.chain(installation97))
