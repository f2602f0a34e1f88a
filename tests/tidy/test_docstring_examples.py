"""Every example in a docstring of the product gives what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if ">>>" in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0, "the example is where doctest does not look"
    assert failed == 0


def test_there_are_examples() -> None:
    assert "gtid.gtid_set" in MODULES
