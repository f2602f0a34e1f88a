"""Sorts differences so that the SQL of each one finds what it needs.

1. The most severe ones come first, then by schema, kind and name. But a view comes after the
   tables, views and functions that it uses, and a table after those that its foreign keys
   reference, if these differ, too: otherwise the server refuses the SQL (1146, 1305, 1824).
2. Tables that reference each other have no such order. They stay where they are.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from binlog.quoting import quote_identifier
from topology.catalogue.findings import Severity
from topology.definitions.canonical import ClauseKind
from topology.definitions.drift_statements import qualified
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.schema_objects import ObjectKey, ObjectKind

_SEVERITIES: Final = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)
_USED: Final = (ObjectKind.TABLE, ObjectKind.VIEW, ObjectKind.FUNCTION)
_NAME: Final = r"`(?:[^`]|``)+`"
_REFERENCED: Final = re.compile(rf" REFERENCES (?:({_NAME})\.)?({_NAME}) ")
# A view names the schema of a table, and not always that of a function (seen on 9.7.4).
_USES: Final = re.compile(rf"(?:({_NAME})\.({_NAME}))|({_NAME})(?=\()")


def in_order(differences: Sequence[ObjectDrift]) -> tuple[ObjectDrift, ...]:
    """Return differences in the order in which their SQL can be run."""
    first = sorted(differences, key=_place)
    by_name: dict[str, list[ObjectDrift]] = {}
    for each in first:
        if each.key.kind in _USED:
            by_name.setdefault(qualified(each.key), []).append(each)
    found: dict[ObjectKey, ObjectDrift] = {}
    begun: set[ObjectKey] = set()
    # A stack instead of recursion: views may use views to any depth.
    stack = [(each, False) for each in reversed(first)]
    while stack:
        each, is_ready = stack.pop()
        if is_ready:
            found.setdefault(each.key, each)
        elif each.key not in begun:
            begun.add(each.key)
            stack.append((each, True))
            needed = [one for name in _needed(each) for one in by_name.get(name, ())]
            stack += [(one, False) for one in sorted(needed, key=_place, reverse=True)]
    return tuple(found.values())


def _place(difference: ObjectDrift) -> tuple[int, tuple[str, int, str]]:
    return (_SEVERITIES.index(difference.severity), difference.key.order)


def _needed(difference: ObjectDrift) -> Iterator[str]:
    """Yield the quoted names, with their schemas, of what the source's definition uses."""
    if difference.source is None:
        return
    own = quote_identifier(difference.key.schema)
    if difference.key.kind is ObjectKind.VIEW:
        for schema, name, function in _USES.findall(difference.source.create):
            yield f"{schema or own}.{name or function}"
    for clause in difference.source.of(ClauseKind.FOREIGN_KEY):
        for schema, name in _REFERENCED.findall(clause.raw):
            yield f"{schema or own}.{name}"
