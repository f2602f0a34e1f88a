"""Fixtures of real servers. A missing provider skips by name and says what would bring it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

import pytest

from compose.native import shapes
from compose.native.installation import Clients, Installation, ProviderMissing
from compose.native.provision import MODERN, OLD, provision, provision_clients
from compose.native.server import Server

_SERVER_FIXTURES = frozenset(
    {"installation97", "installation56", "mysql_clients", "mysql97", "mysql56"}
    | {"pair97", "pair56", "star97", "chain97"}
)

Found = TypeVar("Found")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.mysql)


def _or_skip(provider: Callable[[], Found]) -> Found:
    try:
        return provider()
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


@pytest.fixture(scope="session")
def installation97() -> Installation:
    return _or_skip(lambda: provision(MODERN))


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
