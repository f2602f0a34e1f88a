"""Compares the objects of a replica with those of its source, and evaluates each difference.

How it works
------------
Both sides are read in this order: the replica's sets, its definitions, its sets again; then the
same on the source. A transaction may explain a difference only if one reading includes its effect
and the other may not:

    executed by the source when its reading ended, not by the replica when its reading began;
    executed by the replica when its reading ended, not by the source when its reading began,
        if a channel can bring it to the source.

If none of these transactions concerns the object (logged_ddl.py), the difference is `proved`: no
transaction that is on its way removes it. Otherwise it is `likely`, and the text names what
remains. So one reading is enough, and statements that change a table and change it back between two
readings cannot deceive it.

An object that one side does not show may still be there, if the account cannot see all objects of
its kind (visibility.py). Then the difference is not reported; the kind is unknown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from topology.catalogue.findings import Grade, Severity, Verdict, worst_verdict
from topology.definitions.canonical import CanonicalDefinition
from topology.definitions.compared_clauses import ClauseChange, changes_between
from topology.definitions.drift_classes import DriftClass
from topology.definitions.drift_statements import changing, creating, dropping, renaming
from topology.definitions.logged_ddl import LoggedDdl, OnTheWay
from topology.definitions.row_effects import (
    APPLIED,
    NO_SUCH_TABLE,
    RowConsequence,
    RowEffect,
    consequence_of,
)
from topology.definitions.schema_objects import ObjectKey, ObjectKind, ServerObjects
from topology.definitions.visibility import needed_for
from topology.readings.snapshot import UnreadFact, UnreadReason

_STOPS: Final = RowConsequence(
    RowEffect.STOPS, NO_SUCH_TABLE, "rows of this table stop the applier"
)


@dataclass(frozen=True, slots=True)
class ServerSide:
    """One side of a comparison: the objects, and the definitions of those that were read."""

    objects: ServerObjects
    definitions: Mapping[ObjectKey, CanonicalDefinition] = field(default_factory=dict)
    has_gtids: bool = True  # gtid_mode=ON: every change of a definition has a GTID
    conversions: str | None = None  # replica_type_conversions; None: not read

    @property
    def server(self) -> str:
        """Return the server's name."""
        return self.objects.server


@dataclass(frozen=True, slots=True)
class PairFacts:
    """What may explain differences of one pair."""

    way: OnTheWay
    # DDL that the replica has executed and the source has not.
    of_replica: tuple[LoggedDdl, ...] = ()
    # Schemas and tables whose changes a filter of the channel leaves out; None: not read.
    filtered: frozenset[ObjectKey] | None = frozenset()
    # Sources of the replica other than this one.
    other_sources: tuple[str, ...] = ()
    has_channel: bool = True


@dataclass(frozen=True, slots=True)
class ObjectDrift:
    """One object that differs, and what follows from it."""

    key: ObjectKey
    classes: tuple[DriftClass, ...]
    changes: tuple[ClauseChange, ...]
    source: CanonicalDefinition | None
    replica: CanonicalDefinition | None
    grade: Grade
    severity: Severity
    rows: RowConsequence
    statements: tuple[str, ...]
    causes: tuple[str, ...] = ()  # that remain, unless it is proved
    pending: tuple[LoggedDdl, ...] = ()  # DDL on its way that concerns the object
    made_by: tuple[LoggedDdl, ...] = ()  # DDL that only the replica has, and concerns the object
    replica_key: ObjectKey | None = None  # if its name differs
    contained: int = 0  # objects in a schema that one side does not have
    is_filtered: bool = False


@dataclass(frozen=True, slots=True)
class PairDrift:
    """The differences of one pair, and what is not known."""

    source: str
    replica: str
    differences: tuple[ObjectDrift, ...]
    unknown: tuple[tuple[str, UnreadFact], ...]
    facts: PairFacts
    compared_count: int

    @property
    def verdict(self) -> Verdict:
        """Return CRITICAL if rows stop or get wrong, UNKNOWN if a kind is not seen, else WARNING.

        A difference that a filter explains is no fault.
        """
        found = [_VERDICTS[each.severity] for each in self.differences]
        return worst_verdict([*found, *([Verdict.UNKNOWN] if self.unknown else [])])


_VERDICTS: Final = {
    Severity.INFO: Verdict.OK,
    Severity.WARNING: Verdict.WARNING,
    Severity.CRITICAL: Verdict.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class _Matched:
    """An object by its keys on both sides; None where it is absent."""

    source: ObjectKey | None
    replica: ObjectKey | None

    @property
    def key(self) -> ObjectKey:
        key = self.source or self.replica
        assert key is not None
        return key


def differing(
    source: ServerObjects, replica: ServerObjects
) -> tuple[set[ObjectKey], set[ObjectKey]]:
    """Return the keys whose definitions must be read in full, of the source and of the replica.

    These are the objects of one side only, and those whose digests differ. Objects of a schema that
    one side does not have at all are left out: the schema is the difference.
    """
    ours, theirs = set(), set()
    for each in _matched(source, replica):
        if each.source is not None:
            ours.add(each.source)
        if each.replica is not None:
            theirs.add(each.replica)
    return ours, theirs


def drift_between(source: ServerSide, replica: ServerSide, facts: PairFacts) -> PairDrift:
    """Return the differences that are left after the definitions were read in full."""
    comparison = _Comparison(source, replica, facts)
    differences = tuple(sorted(comparison.differences(), key=_place))
    unknown = [
        *((source.server, fact) for fact in source.objects.unread),
        *((replica.server, fact) for fact in replica.objects.unread),
        *comparison.unknown,
    ]
    compared = len(source.objects.objects.keys() | replica.objects.objects.keys())
    return PairDrift(
        source.server, replica.server, differences, tuple(dict.fromkeys(unknown)), facts, compared
    )


def _place(difference: ObjectDrift) -> tuple[int, tuple[str, int, str]]:
    order = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)
    return (order.index(difference.severity), difference.key.order)


def _matched(source: ServerObjects, replica: ServerObjects) -> Iterator[_Matched]:
    """Yield the objects that differ by their digests, or that one side does not have."""
    folds = source.folds_names or replica.folds_names

    def name_of(key: ObjectKey) -> ObjectKey:
        return key.folded() if folds else key

    ours = {name_of(key): key for key in source.objects}
    theirs = {name_of(key): key for key in replica.objects}
    for name in sorted(ours.keys() | theirs.keys(), key=lambda each: each.order):
        matched = _Matched(ours.get(name), theirs.get(name))
        if matched.source is not None and matched.replica is not None:
            if source.objects[matched.source] != replica.objects[matched.replica]:
                yield matched
            continue
        schema = ObjectKey(ObjectKind.SCHEMA, name.schema)
        if name.kind is ObjectKind.SCHEMA or (schema in ours) == (schema in theirs):
            yield matched


class _Comparison:
    """One pair while it is compared."""

    def __init__(self, source: ServerSide, replica: ServerSide, facts: PairFacts) -> None:
        self._source, self._replica, self._facts = source, replica, facts
        self.unknown: list[tuple[str, UnreadFact]] = []

    def differences(self) -> Iterator[ObjectDrift]:
        only_source: list[ObjectKey] = []
        only_replica: list[ObjectKey] = []
        for each in _matched(self._source.objects, self._replica.objects):
            if each.source is not None and each.replica is not None:
                if (found := self._changed(each.source, each.replica)) is not None:
                    yield found
            elif each.source is not None:
                if self._can_be_absent(self._replica, each.key):
                    only_source.append(each.source)
            elif self._can_be_absent(self._source, each.key):
                only_replica.append(each.key)
        for key, replica_key in self._renamed(only_source, only_replica):
            only_source.remove(key)
            only_replica.remove(replica_key)
            yield self._renamed_table(key, replica_key)
        yield from map(self._fewer, only_source)
        yield from map(self._more, only_replica)

    def _can_be_absent(self, side: ServerSide, key: ObjectKey) -> bool:
        """Return whether an object that a side does not show is certainly absent there."""
        if side.objects.visibility.shows(key.kind.value, key.schema):
            return True
        needed = needed_for(key.kind.value)
        self._note(
            side, f"{key.kind.value} {key}", UnreadReason.PRIVILEGE, _NOT_SHOWN.format(needed)
        )
        return False

    def _note(self, side: ServerSide, fact: str, reason: UnreadReason, detail: str) -> None:
        self.unknown.append((side.server, UnreadFact(fact, reason, detail)))

    def _changed(self, key: ObjectKey, replica_key: ObjectKey) -> ObjectDrift | None:
        ours = self._source.definitions.get(key)
        theirs = self._replica.definitions.get(replica_key)
        for side, definition in ((self._source, ours), (self._replica, theirs)):
            if definition is None:
                self._note(side, f"{key.kind.value} {key}", UnreadReason.ERROR, _NOT_READ)
        if ours is None or theirs is None:
            return None
        changes = changes_between(ours, theirs)
        if not changes:
            return None
        rows = APPLIED
        if key.kind is ObjectKind.TABLE:
            rows = consequence_of(
                ours, theirs, schema=key.schema, conversions=self._replica.conversions
            )
        return self._evaluated(
            key,
            tuple(dict.fromkeys(each.drift_class for each in changes)),
            rows,
            changing(key, changes, ours),
            changes=changes,
            replica_key=replica_key if replica_key != key else None,
        )

    def _fewer(self, key: ObjectKey) -> ObjectDrift:
        definition = self._source.definitions.get(key)
        statements = creating(key, definition) if definition is not None else ()
        contained = _contained(self._source.objects, key)
        has_rows = key.kind is ObjectKind.TABLE or contained > 0
        return self._evaluated(
            key,
            (_FEWER[key.kind],),
            _STOPS if has_rows else APPLIED,
            statements,
            contained=contained,
        )

    def _more(self, key: ObjectKey) -> ObjectDrift:
        contained = _contained(self._replica.objects, key)
        return self._evaluated(key, (_MORE[key.kind],), APPLIED, dropping(key), contained=contained)

    def _renamed_table(self, key: ObjectKey, replica_key: ObjectKey) -> ObjectDrift:
        return self._evaluated(
            key,
            (DriftClass.TABLE_RENAMED,),
            _STOPS,
            renaming(key, replica_key),
            replica_key=replica_key,
        )

    def _renamed(
        self, ours: Iterable[ObjectKey], theirs: Iterable[ObjectKey]
    ) -> list[tuple[ObjectKey, ObjectKey]]:
        """Return the tables of one side only that differ in nothing but their name.

        If several tables have the same definition, it is not known which one was renamed.
        """
        bodies = (_by_body(ours, self._source), _by_body(theirs, self._replica))
        both = bodies[0].keys() & bodies[1].keys()
        found = [(bodies[0][body], bodies[1][body]) for body in both]
        pairs = [(each[0], other[0]) for each, other in found if len(each) == len(other) == 1]
        return sorted(pairs, key=lambda pair: pair[0].order)

    def _evaluated(
        self,
        key: ObjectKey,
        classes: tuple[DriftClass, ...],
        rows: RowConsequence,
        statements: tuple[str, ...],
        *,
        changes: tuple[ClauseChange, ...] = (),
        replica_key: ObjectKey | None = None,
        contained: int = 0,
    ) -> ObjectDrift:
        ours = self._source.definitions.get(key)
        theirs = self._replica.definitions.get(replica_key or key)
        read = [each for each in (ours, theirs) if each is not None]
        named = [each for each in (key, replica_key) if each is not None]
        pending = {
            ddl.gtid: ddl for each in named for ddl in self._facts.way.concerning(each, read)
        }
        made_by = {
            ddl.gtid: ddl
            for each in named
            for ddl in OnTheWay(
                self._facts.way.gtids, self._facts.of_replica, is_complete=True
            ).concerning(each, read)
        }
        is_filtered = key in (self._facts.filtered or frozenset())
        causes = tuple(self._causes(classes, pending.values(), is_filtered=is_filtered))
        grade = Grade.LIKELY if causes else Grade.PROVED
        return ObjectDrift(
            key=key,
            classes=classes,
            changes=changes,
            source=ours,
            replica=theirs,
            grade=grade,
            severity=_severity(grade, rows, is_filtered=is_filtered),
            rows=rows,
            statements=statements,
            causes=causes,
            pending=tuple(pending.values()),
            made_by=tuple(made_by.values()),
            replica_key=replica_key,
            contained=contained,
            is_filtered=is_filtered,
        )

    def _causes(
        self, classes: tuple[DriftClass, ...], pending: Iterable[LoggedDdl], *, is_filtered: bool
    ) -> Iterator[str]:
        """Yield what may explain a difference without a fault."""
        facts, way = self._facts, self._facts.way
        if is_filtered:
            yield "a replication filter leaves out changes of this object"
        elif facts.filtered is None:
            yield "the replication filters were not read: one may leave out its changes"
        if not (self._source.has_gtids and self._replica.has_gtids):
            yield "gtid_mode is not ON: changes that are on their way are not known"
        elif not way.is_complete:
            yield (
                f"transactions that only one of the servers had executed were not all searched"
                f" ({way.why_unread}): one may change it"
            )
        for ddl in pending:
            yield f"transaction {ddl.gtid} may change it, and only one server had executed it"
        if facts.other_sources and classes[0] in _MORE_CLASSES:
            yield f"the replica has other sources: {', '.join(facts.other_sources)}"


def _severity(grade: Grade, rows: RowConsequence, *, is_filtered: bool) -> Severity:
    if is_filtered:
        return Severity.INFO
    is_critical = grade is Grade.PROVED and rows.is_severe
    return Severity.CRITICAL if is_critical else Severity.WARNING


def _contained(objects: ServerObjects, key: ObjectKey) -> int:
    if key.kind is not ObjectKind.SCHEMA:
        return 0
    return sum(each.schema == key.schema for each in objects.objects) - 1


def _by_body(keys: Iterable[ObjectKey], side: ServerSide) -> dict[str, list[ObjectKey]]:
    """Group tables by their definition without the table's name."""
    found: dict[str, list[ObjectKey]] = {}
    for key in keys:
        definition = side.definitions.get(key)
        if key.kind is ObjectKind.TABLE and definition is not None:
            body = "\n".join(definition.lines)
            # MySQL derives names of constraints from the table's: `t_ibfk_1`, `t_chk_1`.
            for suffix in ("_ibfk_", "_chk_"):
                body = body.replace(f"`{key.name}{suffix}", f"`{suffix}")
            found.setdefault(body, []).append(key)
    return found


_NOT_SHOWN: Final = "the account may not see it: GRANT {}"
_NOT_READ: Final = "its definition was not read"
_OTHER_KINDS: Final = (
    ObjectKind.VIEW,
    ObjectKind.PROCEDURE,
    ObjectKind.FUNCTION,
    ObjectKind.TRIGGER,
    ObjectKind.EVENT,
)
_FEWER: Final[Mapping[ObjectKind, DriftClass]] = {
    ObjectKind.SCHEMA: DriftClass.SCHEMA_FEWER,
    ObjectKind.TABLE: DriftClass.TABLE_FEWER,
    **dict.fromkeys(_OTHER_KINDS, DriftClass.OTHER_FEWER),
}
_MORE: Final[Mapping[ObjectKind, DriftClass]] = {
    ObjectKind.SCHEMA: DriftClass.SCHEMA_MORE,
    ObjectKind.TABLE: DriftClass.TABLE_MORE,
    **dict.fromkeys(_OTHER_KINDS, DriftClass.OTHER_MORE),
}
_MORE_CLASSES: Final = frozenset(_MORE.values())
