"""Tests that share a Spark session are dealt to one process, and those of a file stay together."""

import re

import pytest

from tests.distribution import FIRST, cost_of, group_of, pytest_collection_modifyitems
from tests.tidy.test_tidy import ROOT, tracked

USES_THE_SESSION = re.compile(r"^def .*\bspark: |^    spark: |usefixtures\(\"spark\"", re.MULTILINE)


def test_whoever_uses_the_session_is_in_its_group() -> None:
    tests = [name for name in tracked(".py") if re.search(r"^tests/.*/test_", name)]
    users = [name for name in tests if USES_THE_SESSION.search((ROOT / name).read_text())]
    assert len(users) > 10
    assert {group_of(f"{name}::test[a::b]") for name in users} == {"spark"}


def test_other_tests_go_with_their_file() -> None:
    name = "tests/gtid/test_gtid_text.py"
    assert group_of(f"{name}::test_one[::1-5]") == group_of(f"{name}::test_two") == name


def test_what_begins_first_is_there() -> None:
    assert all((ROOT / name).exists() for name in FIRST if name != "spark")


class Marked(pytest.Item):
    def runtest(self) -> None:
        raise NotImplementedError


def test_few_long_tests_begin_before_many_short_ones(request: pytest.FixtureRequest) -> None:
    short, long = (
        [
            Marked.from_parent(request.session, name=f"{number}", nodeid=f"tests/{file}::{number}")
            for number in range(count)
        ]
        for file, count in (("test_short.py", 20), ("test_long.py", 2))
    )
    for item in long:
        item.add_marker("long")
    assert cost_of(long[0]) > cost_of(short[0])
    items: list[pytest.Item] = [*short, *long]
    pytest_collection_modifyitems(items)
    assert items == [*long, *short]
