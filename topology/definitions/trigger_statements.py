"""Writes the SQL of triggers that differ: all of one table, timing and event together, in order.

FOLLOWS names a trigger that must exist (4031). SQL for each trigger by itself drops one, and cannot
create it again if the other one is missing or comes later. So all that differ on one event are one
script, with these rules:

1. A trigger that the replica has with the same text stays, if it stays in the right order: the most
   of them that are in the order of the source.
2. The others are dropped, if they exist, and created directly after that, in the order of the
   source. Each FOLLOWS the one before it, which exists then. The first one PRECEDES the first that
   stays.
3. The script is in the block of the first trigger that it creates. The blocks of the others refer
   to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from topology.definitions.canonical import (
    CanonicalDefinition,
    ClauseKind,
    canonical_definition,
    with_order,
)
from topology.definitions.compared_clauses import longest_ascending
from topology.definitions.drift_statements import creating, dropping_again
from topology.definitions.object_drift import ObjectDrift, ServerSide
from topology.definitions.schema_objects import ObjectKey, ObjectKind


def trigger_statements(
    differences: Iterable[ObjectDrift], source: ServerSide, replica: ServerSide
) -> Iterator[tuple[ObjectKey, tuple[str, ...]]]:
    """Yield the SQL of each trigger that both servers have, or the source only."""
    groups: dict[tuple[str, tuple[str, ...]], list[ObjectDrift]] = {}
    for each in differences:
        if each.key.kind is ObjectKind.TRIGGER and each.source is not None:
            order = each.source.triggers or (each.key.name,)
            groups.setdefault((each.key.schema, order), []).append(each)
    for (schema, order), members in groups.items():
        keys = {each.key.name: each.key for each in members}
        script = _script(schema, order, keys, source, replica)
        first = next(iter(script), "")
        for name, key in keys.items():
            if name == first:
                yield key, tuple(line for each in script.values() for line in each)
            elif first:
                where = ObjectKey(ObjectKind.TRIGGER, schema, first)
                yield key, (f"-- The SQL of {where.label} sets this trigger and its place, too.",)
            else:
                yield key, ("-- Its place is right once the triggers are dropped that are more.",)


def _script(
    schema: str,
    order: tuple[str, ...],
    differing: Mapping[str, ObjectKey],
    source: ServerSide,
    replica: ServerSide,
) -> dict[str, tuple[str, ...]]:
    """Return the statements of each trigger that is created, in the order of the source."""
    there = [
        each.triggers for name in differing if (each := _of(replica, schema, name)) is not None
    ]
    existing = max(there, key=len, default=tuple(each for each in order if each not in differing))
    same = [
        name
        for name in existing
        if name in order and (name not in differing or _is_same(schema, name, source, replica))
    ]
    kept = {order[at] for at in longest_ascending([order.index(name) for name in same])}
    first_kept = next((name for name in order if name in kept), None)
    present = kept | {name for name in existing if name not in differing}
    found: dict[str, tuple[str, ...]] = {}
    for at, name in enumerate(order):
        definition = _of(source, schema, name)
        if name in kept or name not in differing or definition is None:
            continue
        before = [each for each in order[:at] if each in present or each in found]
        text = with_order(
            definition.create, follows=before[-1] if before else None, precedes=first_kept
        )
        key = differing[name]
        created = creating(key, replace(definition, create=text))
        at_drop = next(n for n, line in enumerate(created) if line.startswith("DELIMITER"))
        found[name] = (*created[:at_drop], dropping_again(key), *created[at_drop:])
    return found


def _of(side: ServerSide, schema: str, name: str) -> CanonicalDefinition | None:
    return side.definitions.get(ObjectKey(ObjectKind.TRIGGER, schema, name))


def _is_same(schema: str, name: str, source: ServerSide, replica: ServerSide) -> bool:
    """Return whether two triggers differ in nothing but their place."""
    ours, theirs = _of(source, schema, name), _of(replica, schema, name)
    if ours is None or theirs is None:
        return False
    return _placeless(ours) == _placeless(theirs)


def _placeless(definition: CanonicalDefinition) -> tuple[str, ...]:
    plain = canonical_definition(ObjectKind.TRIGGER, definition.create, {})
    return (*plain.lines, *(each.text for each in definition.of(ClauseKind.SESSION)))
