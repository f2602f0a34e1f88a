"""Compares two definitions of one object, clause by clause, and classes each difference.

1. Columns, keys and constraints are matched by name, ignoring case as MySQL does. Columns that only
   one side has are the same column, renamed, if both are at the same position and have the same
   text behind the name.
2. A column that both sides have at another position, apart from columns that only one side has, was
   moved.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from topology.definitions.canonical import CanonicalDefinition, Clause, ClauseKind
from topology.definitions.drift_classes import DriftClass
from topology.definitions.schema_objects import ObjectKind

_NAME: Final = re.compile(r"`(?:[^`]|``)*`")
_COLLATE: Final = re.compile(r" COLLATE (\w+)")
_TYPE: Final = re.compile(r"\s*(\w+(?:\((?:[^()']|'(?:[^']|'')*')*\))?(?: unsigned)?)")
_TABLE_COLLATE: Final = re.compile(r" ?\bCOLLATE=(\w+)")
_CLASSES: Final[Mapping[ClauseKind, tuple[DriftClass, DriftClass, DriftClass]]] = {
    ClauseKind.KEY: (DriftClass.INDEX_FEWER, DriftClass.INDEX_MORE, DriftClass.INDEX_DIFFERENT),
    ClauseKind.FOREIGN_KEY: (
        DriftClass.CONSTRAINT_FEWER,
        DriftClass.CONSTRAINT_MORE,
        DriftClass.CONSTRAINT_DIFFERENT,
    ),
    ClauseKind.CHECK: (
        DriftClass.CONSTRAINT_FEWER,
        DriftClass.CONSTRAINT_MORE,
        DriftClass.CONSTRAINT_DIFFERENT,
    ),
}


@dataclass(frozen=True, slots=True)
class ClauseChange:
    """One difference: its class, the clause of each side (None: absent), and what is before it.

    `after` is the column before it on the source; None if it is the first one.
    """

    drift_class: DriftClass
    source: Clause | None
    replica: Clause | None
    after: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the column, key or constraint; "" for the others."""
        clause = self.source or self.replica
        return clause.name if clause else ""


def changes_between(
    source: CanonicalDefinition, replica: CanonicalDefinition
) -> tuple[ClauseChange, ...]:
    """Return the differences of two definitions of one object, by class."""
    if source.kind is not ObjectKind.TABLE:
        return tuple(_of_text(source, replica))
    found = [*_columns(source, replica)]
    for kind, classes in _CLASSES.items():
        found += _named(source.of(kind), replica.of(kind), classes)
    found += _of_table(source, replica)
    order = list(DriftClass)
    return tuple(sorted(found, key=lambda each: (order.index(each.drift_class), each.name)))


def _of_text(source: CanonicalDefinition, replica: CanonicalDefinition) -> Iterator[ClauseChange]:
    different = (
        DriftClass.SCHEMA_DIFFERENT
        if source.kind is ObjectKind.SCHEMA
        else DriftClass.OTHER_DIFFERENT
    )
    for kind, drift_class in (
        (ClauseKind.BODY, different),
        (ClauseKind.DEFINER, DriftClass.DEFINER),
    ):
        ours, theirs = _only(source.of(kind)), _only(replica.of(kind))
        if _text(ours) != _text(theirs):
            yield ClauseChange(drift_class, ours, theirs)
    kind = ClauseKind.SESSION
    yield from _named(source.of(kind), replica.of(kind), (different, different, different))


def _columns(source: CanonicalDefinition, replica: CanonicalDefinition) -> Iterator[ClauseChange]:
    ours, theirs = source.of(ClauseKind.COLUMN), replica.of(ClauseKind.COLUMN)
    by_name = {each.name.casefold(): each for each in theirs}
    before = {
        each.name.casefold(): ours[at - 1].name if at else None for at, each in enumerate(ours)
    }
    own_names = before.keys()
    renamed = dict(_renamed(ours, theirs, own_names, by_name))
    new_names = {each.name.casefold() for each in renamed.values()}
    moved = _moved(ours, theirs)
    for column in ours:
        folded, after = column.name.casefold(), before[column.name.casefold()]
        if folded in renamed:
            yield ClauseChange(DriftClass.COLUMN_RENAMED, column, renamed[folded], after)
        elif folded not in by_name:
            yield ClauseChange(DriftClass.COLUMN_FEWER, column, None, after)
        else:
            other = by_name[folded]
            if folded in moved:
                yield ClauseChange(DriftClass.COLUMN_MOVED, column, other, after)
            if column.text != other.text:
                yield ClauseChange(_class_of(column, other), column, other, after)
    for column in theirs:
        if column.name.casefold() not in own_names and column.name.casefold() not in new_names:
            yield ClauseChange(DriftClass.COLUMN_MORE, None, column)


def _renamed(
    ours: tuple[Clause, ...],
    theirs: tuple[Clause, ...],
    own_names: Container[str],
    their_names: Container[str],
) -> Iterator[tuple[str, Clause]]:
    """Yield the columns that only have another name, by their folded name on the source."""
    for source, replica in zip(ours, theirs, strict=False):
        is_new = (
            source.name.casefold() not in their_names and replica.name.casefold() not in own_names
        )
        if is_new and _behind_name(source) == _behind_name(replica):
            yield source.name.casefold(), replica


def _moved(ours: tuple[Clause, ...], theirs: tuple[Clause, ...]) -> frozenset[str]:
    """Return the common columns whose order differs: those outside the longest common order."""
    first = [each.name.casefold() for each in ours]
    second = [each.name.casefold() for each in theirs]
    common = [name for name in second if name in set(first)]
    places = {name: at for at, name in enumerate(first)}
    kept = longest_ascending([places[name] for name in common])
    return frozenset(name for name in common if places[name] not in kept)


def longest_ascending(numbers: list[int]) -> set[int]:
    """Return the members of a longest ascending subsequence (patience sorting)."""
    ends: list[list[int]] = []  # ends[n]: an ascending sequence of n + 1 with the lowest end
    for number in numbers:
        at = next((at for at, each in enumerate(ends) if each[-1] > number), len(ends))
        ends[at : at + 1] = [[*(ends[at - 1] if at else []), number]]
    return set(ends[-1]) if ends else set()


def _class_of(source: Clause, replica: Clause) -> DriftClass:
    ours, theirs = _behind_name(source), _behind_name(replica)
    if _type(ours) != _type(theirs):
        return DriftClass.COLUMN_TYPE
    is_charset = _COLLATE.sub("", ours, count=1) == _COLLATE.sub("", theirs, count=1)
    return DriftClass.CHARSET if is_charset else DriftClass.COLUMN_ATTRIBUTE


def _type(text: str) -> str:
    found = _TYPE.match(text)
    return found[1].lower() if found else text


def _named(
    ours: tuple[Clause, ...],
    theirs: tuple[Clause, ...],
    classes: tuple[DriftClass, DriftClass, DriftClass],
) -> Iterator[ClauseChange]:
    fewer, more, different = classes
    by_name = {each.name.casefold(): each for each in theirs}
    for clause in ours:
        other = by_name.pop(clause.name.casefold(), None)
        if other is None:
            yield ClauseChange(fewer, clause, None)
        elif clause.text != other.text:
            yield ClauseChange(different, clause, other)
    for clause in by_name.values():
        yield ClauseChange(more, None, clause)


def _of_table(source: CanonicalDefinition, replica: CanonicalDefinition) -> Iterator[ClauseChange]:
    ours, theirs = _only(source.of(ClauseKind.OPTIONS)), _only(replica.of(ClauseKind.OPTIONS))
    if source.collation != replica.collation:
        yield ClauseChange(DriftClass.CHARSET, ours, theirs)
    if _TABLE_COLLATE.sub("", _text(ours)) != _TABLE_COLLATE.sub("", _text(theirs)):
        yield ClauseChange(DriftClass.OPTION, ours, theirs)
    kind = ClauseKind.PARTITIONS
    ours, theirs = _only(source.of(kind)), _only(replica.of(kind))
    if _text(ours) != _text(theirs):
        yield ClauseChange(DriftClass.PARTITIONS, ours, theirs)


def _behind_name(clause: Clause) -> str:
    return _NAME.sub("", clause.text, count=1)


def _only(clauses: tuple[Clause, ...]) -> Clause | None:
    return clauses[0] if clauses else None


def _text(clause: Clause | None) -> str:
    return clause.text if clause else ""
