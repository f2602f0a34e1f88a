"""Each rule is in the table: a rule that its module does not list would never be asked."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from inspect import getmembers, isfunction, signature
from types import ModuleType
from typing import Any

from topology import rules
from topology.facts import ClusterFacts
from topology.rules import RULES


def modules() -> Iterator[ModuleType]:
    for each in pkgutil.iter_modules(rules.__path__):
        yield importlib.import_module(f"topology.rules.{each.name}")


def is_rule(found: Any, module: ModuleType) -> bool:
    """Return whether a function takes the facts of a cluster alone, and yields findings."""
    if not isfunction(found) or found.__module__ != module.__name__ or found.__name__[0] == "_":
        return False
    taken = signature(found)
    types = [each.annotation for each in taken.parameters.values()]
    return types == [ClusterFacts] and "Finding]" in str(taken.return_annotation)


def test_every_rule_is_listed_once() -> None:
    written = [
        each for module in modules() for _, each in getmembers(module) if is_rule(each, module)
    ]
    assert len(written) > 30
    assert sorted(written, key=str) == sorted(RULES, key=str)
