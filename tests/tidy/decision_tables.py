"""The tables and limits of the code that decides: codes, error numbers, versions, patterns, seconds.

`python -m tests.approve` writes decision_tables.txt. One element more or less changes a conclusion
or a plan, often only for a server in a rare state: so each table is read when it changes.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from importlib import import_module
from pathlib import Path

from tests.mutate.targets import ROOT, TARGETS, files_of
from topology.readings.version import ServerVersion

APPROVED = Path(__file__).with_name("decision_tables.txt")
_PLAIN = (bool, int, float, str, bytes, timedelta, ServerVersion, type(None))


def text() -> str:
    """Return every table, one a line, in the order of modules and names."""
    return "".join(f"{line}\n" for line in sorted(set(_lines())))


def _lines() -> Iterator[str]:
    for path in (path for target in TARGETS for path in files_of(target)):
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in _names(ast.parse((ROOT / path).read_text())):
            value = getattr(import_module(module), name)
            shown = _shown(value)
            if shown is not None and not isinstance(value, str):  # a message, not a decision
                yield f"{module}.{name} = {shown}"


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield what a module assigns to names that are constants."""
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        yield from (each.id for each in targets if isinstance(each, ast.Name) and each.id.isupper())


def _shown(value: object) -> str | None:
    """Return a value as text, sets and mappings in an order of their own; None if it is no table."""
    match value:
        case Enum():
            return value.name
        case re.Pattern():
            return f"{' '.join(str(value.pattern).split())!r} {re.RegexFlag(value.flags)!s}"
        case Mapping():
            pairs = [f"{_shown(key)}: {_row(each)}" for key, each in value.items()]
            return f"{{{', '.join(sorted(pairs))}}}"
        case AbstractSet():
            return f"{{{', '.join(sorted(str(_shown(each)) for each in value))}}}"
        case tuple() | list():
            return f"({', '.join(map(_row, value))})"
    if isinstance(value, type) or callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return str(value).replace("\n", "\\n") if isinstance(value, _PLAIN) else None


def _row(value: object) -> str:
    """Return an element of a table; of a row that is a class of its own, each field."""
    shown = _shown(value)
    if shown is not None or not is_dataclass(value):
        return str(shown)
    parts = (f"{each.name}={_shown(getattr(value, each.name))}" for each in fields(value))
    return f"{type(value).__name__}({', '.join(parts)})"
