"""Each rule is in the table: a rule that its module does not list would never be asked."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from inspect import getmembers, isfunction, signature
from types import ModuleType
from typing import Any

from topology import rules
from topology.facts.cluster_facts import ClusterFacts
from topology.rules import RULES

CODE = re.compile(r"\b[A-Z]\d+\b")


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


def test_a_module_of_rules_begins_with_their_codes() -> None:
    """So that a listing of the folder shows where a verdict is decided."""
    listed = {each.__module__ for each in RULES}
    for module in modules():
        if module.__name__ not in listed:
            continue
        first_line = (module.__doc__ or "").splitlines()[0]
        yielded = [
            re.match(r"Yield ((?:[A-Z]\d+(?:, | or | and )?)+)", each.__doc__ or "")
            for _, each in getmembers(module)
            if is_rule(each, module)
        ]
        assert all(yielded), module.__name__
        codes = {code for found in yielded if found for code in CODE.findall(found[1])}
        assert set(CODE.findall(first_line.partition(": ")[0])) == codes, module.__name__
