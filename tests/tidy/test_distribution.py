"""Tests that share a Spark session are dealt to one process, and those of a file stay together."""

import re

from tests.distribution import FIRST, group_of
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
