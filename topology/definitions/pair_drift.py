"""Compares the objects of a replica with those of its source, and evaluates each difference.

How it works
------------
Both sides are read in this order: the replica's sets, its definitions, its sets again; then the
same on the source. A transaction may explain a difference only if one reading includes its effect
and the other may not:

    executed by the source when its reading ended, or in the relay log of the replica, not executed
        by the replica when its reading began;
    executed by the replica when its reading ended, or in the relay log of the source, not executed
        by the source when its reading began, if a channel can bring it to the source, or the source
        receives it by another way;
    executed by neither of the two, and by a third server from which channels lead to one of them.

What waits in a relay log may be another transaction than its source logs now (a RESET).

If none of these transactions concerns the object (ddl_searches.py), the difference is `proved`: no
transaction that is on its way removes it. Otherwise it is `likely`, and the text names what
remains. What only a third server has leaves it S2: something was done by hand there that no log has
(gtid_audit/tasks/ddl_of_others.py). So one reading is enough, and statements that change a table
and change it back between two readings cannot deceive it.

An object that one side does not show may still be there, if the account cannot see all objects of
its kind (visibility.py). Then the difference is not reported; the kind is unknown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from topology.catalogue.findings import Grade, Severity
from topology.definitions.canonical import CanonicalDefinition, without_generated_key
from topology.definitions.compared_clauses import ClauseChange, changes_between
from topology.definitions.ddl_searches import OnTheWay
from topology.definitions.drift_classes import DriftClass
from topology.definitions.drift_statements import changing, creating, dropping, renaming
from topology.definitions.object_drift import (
    ObjectDrift,
    ObjectPair,
    PairDrift,
    PairFacts,
    ServerSide,
)
from topology.definitions.row_effects import (
    APPLIED,
    NO_SUCH_TABLE,
    RowConsequence,
    RowEffect,
    consequence_of,
)
from topology.definitions.schema_objects import ObjectKey, ObjectKind, ServerObjects
from topology.definitions.statement_order import in_order
from topology.definitions.trigger_statements import trigger_statements
from topology.definitions.visibility import needed_for
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.snapshot import UnreadFact, UnreadReason

_STOPS: Final = RowConsequence(
    RowEffect.STOPS, NO_SUCH_TABLE, "rows of this table stop the applier"
)


def differing(source: ServerObjects, replica: ServerObjects) -> tuple[ObjectPair, ...]:
    """Return the objects whose definitions must be read in full on both servers.

    These are the objects that one side does not show, and those whose digests differ. Objects of a
    schema that only one side has are left out: the schema is the difference.
    """
    folds = source.folds_names or replica.folds_names

    def name_of(key: ObjectKey) -> ObjectKey:
        return key.folded() if folds else key

    ours = {name_of(key): key for key in source.objects}
    theirs = {name_of(key): key for key in replica.objects}
    found = []
    for name in sorted(ours.keys() | theirs.keys(), key=lambda each: each.order):
        here, there = ours.get(name), theirs.get(name)
        schema = ObjectKey(ObjectKind.SCHEMA, name.schema)
        if here is not None and there is not None:
            if source.objects[here] != replica.objects[there]:
                found.append(ObjectPair(here, there))
        elif name.kind is ObjectKind.SCHEMA or (schema in ours) == (schema in theirs):
            key = here or there
            assert key is not None
            found.append(ObjectPair(key, key))
    return tuple(found)


def drift_between(
    source: ServerSide, replica: ServerSide, pairs: Iterable[ObjectPair], facts: PairFacts
) -> PairDrift:
    """Return the differences that are left after the definitions were read in full."""
    comparison = _Comparison(source, replica, facts)
    found = in_order(tuple(comparison.differences(pairs)))
    differences = tuple(_with_triggers(found, source, replica, facts))
    unknown = [
        *((source.server, fact) for fact in source.objects.unread),
        *((replica.server, fact) for fact in replica.objects.unread),
        *comparison.unknown,
    ]
    compared = len(source.objects.objects.keys() | replica.objects.objects.keys())
    return PairDrift(
        source.server, replica.server, differences, tuple(dict.fromkeys(unknown)), facts, compared
    )


def _with_triggers(
    differences: Sequence[ObjectDrift], source: ServerSide, replica: ServerSide, facts: PairFacts
) -> Iterator[ObjectDrift]:
    """Yield the differences with the SQL of triggers, which depend on each other."""
    scripts = dict(trigger_statements(differences, source, replica))
    waits = not facts.way.is_complete
    waits |= any(each.pending for each in differences if each.key in scripts)
    for each in differences:
        if each.key in scripts:
            script = scripts[each.key]
            yield replace(each, statements=_for_later(script) if waits else script)
        else:
            yield each


class _Comparison:
    """One pair while it is compared."""

    def __init__(self, source: ServerSide, replica: ServerSide, facts: PairFacts) -> None:
        self._source, self._replica, self._facts = source, replica, facts
        self.unknown: list[tuple[str, UnreadFact]] = []

    def differences(self, pairs: Iterable[ObjectPair]) -> Iterator[ObjectDrift]:
        only_source: list[ObjectKey] = []
        only_replica: list[ObjectKey] = []
        for pair in pairs:
            if not self._is_read(pair):
                continue
            ours = self._source.definitions[pair.source]
            theirs = self._replica.definitions[pair.replica]
            if ours is not None and theirs is not None:
                if (found := self._changed(pair)) is not None:
                    yield found
            elif ours is not None:
                if self._is_absent(self._replica, pair.replica):
                    only_source.append(pair.source)
            elif theirs is not None and self._is_absent(self._source, pair.source):
                only_replica.append(pair.replica)
        for key, replica_key in self._renamed(only_source, only_replica):
            only_source.remove(key)
            only_replica.remove(replica_key)
            yield self._renamed_table(key, replica_key)
        yield from map(self._fewer, only_source)
        yield from map(self._more, only_replica)

    def _is_read(self, pair: ObjectPair) -> bool:
        """Return whether both sides were read; note a side that was not."""
        is_read = True
        for side, key in ((self._source, pair.source), (self._replica, pair.replica)):
            if key not in side.definitions:
                is_read = False
                if not any(fact.fact == key.label for fact in side.objects.unread):
                    self._note(side, key.label, UnreadReason.ERROR, _NOT_READ)
        return is_read

    def _is_absent(self, side: ServerSide, key: ObjectKey) -> bool:
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

    def _changed(self, pair: ObjectPair) -> ObjectDrift | None:
        ours = self._source.definitions[pair.source]
        theirs = self._replica.definitions[pair.replica]
        assert ours is not None
        assert theirs is not None
        if without_generated_key(ours) == ours:
            theirs = without_generated_key(theirs)
        changes = changes_between(ours, theirs)
        if not changes:
            return None
        rows = APPLIED
        if pair.source.kind is ObjectKind.TABLE:
            rows = consequence_of(
                ours, theirs, schema=pair.source.schema, conversions=self._replica.conversions
            )
        return self._evaluated(
            pair.source,
            tuple(dict.fromkeys(each.drift_class for each in changes)),
            rows,
            changing(pair.replica, changes, ours, theirs, event_status=self._facts.event_status),
            changes=changes,
            replica_key=pair.replica if pair.replica != pair.source else None,
        )

    def _fewer(self, key: ObjectKey) -> ObjectDrift:
        definition = self._source.definitions.get(key)
        statements: tuple[str, ...] = ()
        if definition is not None:
            statements = creating(key, definition, event_status=self._facts.event_status)
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
        way = self._facts.way
        others = tuple(self._from_others(named, read))
        causes = (
            *self._causes(classes, pending.values(), is_filtered=is_filtered),
            *others,
            *self._from_unread(),
        )
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
            statements=_for_later(statements)
            if pending or others or not way.is_complete
            else statements,
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

    def _from_others(
        self, named: Iterable[ObjectKey], read: Iterable[CanonicalDefinition]
    ) -> Iterator[str]:
        """Yield what neither of the two may have executed, and a third server can bring."""
        keys, definitions = tuple(named), tuple(read)
        for server, way in self._facts.from_others:
            found = {ddl.gtid for key in keys for ddl in way.concerning(key, definitions)}
            for gtid in sorted(found, key=str):
                yield f"transaction {gtid} may change it, and is on its way from {server}"
            if not way.is_complete:
                yield (
                    f"transactions on their way from {server} were not all searched"
                    f" ({way.why_unread}): one may change it"
                )

    def _from_unread(self) -> Iterator[str]:
        if above := self._facts.unread_above:
            names = f"{self._source.server} or {self._replica.server}"
            yield (
                f"gtid-audit did not compare {', '.join(above)}, from which transactions can reach"
                f" {names}: DDL on its way from there may change it"
            )


def _for_later(statements: tuple[str, ...]) -> tuple[str, ...]:
    """Return statements as comments: DDL on its way would stop the applier after them."""
    lines = (line for each in statements for line in each.split("\n"))
    shown = tuple(line if line.startswith("-- ") else f"-- {line}" for line in lines)
    return (*_LATER, *shown) if shown else ()


_LATER: Final = (
    "-- Not now: DDL on its way may make this change, and would stop the applier after it.",
    "-- Let the applier run first, and compare again.",
)


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
