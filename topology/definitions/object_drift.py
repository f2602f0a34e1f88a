"""One difference between the definitions of a source and its replica, and all those of a pair.

These are results: pair_drift.py makes them. The verdict of a pair is derived from them here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from topology.catalogue.findings import Grade, Severity, Verdict, worst_verdict
from topology.definitions.canonical import CanonicalDefinition, ClauseKind
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.ddl_searches import OnTheWay
from topology.definitions.drift_classes import (
    DriftClass,
    errors_of_classes,
    errors_of_constraint,
    words_of,
)
from topology.definitions.event_statements import EVENT_OF_UNKNOWN_ROLE
from topology.definitions.row_effects import RowConsequence, RowEffect
from topology.definitions.schema_objects import ObjectKey, ServerObjects
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.snapshot import UnreadFact


@dataclass(frozen=True, slots=True)
class ServerSide:
    """One side of a comparison: the objects, and the definitions of those that differ.

    `definitions` has None for an object that the server did not have when it was read in full. An
    object that is not a key there could not be read.
    """

    objects: ServerObjects
    definitions: Mapping[ObjectKey, CanonicalDefinition | None] = field(default_factory=dict)
    has_gtids: bool = True  # gtid_mode=ON: every change of a definition has a GTID
    conversions: str | None = None  # replica_type_conversions; None: not read

    @property
    def server(self) -> str:
        """Return the server's name."""
        return self.objects.server


@dataclass(frozen=True, slots=True)
class ObjectPair:
    """One object by its key on both sides. The keys differ at most in upper and lower case."""

    source: ObjectKey
    replica: ObjectKey


@dataclass(frozen=True, slots=True)
class PairFacts:
    """What may explain differences of one pair."""

    way: OnTheWay
    # By server: what neither of the two may have executed, and channels can bring from there.
    from_others: tuple[tuple[str, OnTheWay], ...] = ()
    # Servers that were not read, and whose transactions can reach one of the two.
    unread_above: tuple[str, ...] = ()
    # DDL that the replica has executed and the source has not.
    of_replica: tuple[LoggedDdl, ...] = ()
    # Schemas and tables whose changes a filter of the channel leaves out; None: not read.
    filtered: frozenset[ObjectKey] | None = frozenset()
    # Sources of the replica other than this one.
    other_sources: tuple[str, ...] = ()
    has_channel: bool = True
    # The status that SQL gives an event on the replica. DISABLE: its role is not known.
    event_status: str = EVENT_OF_UNKNOWN_ROLE


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

    @property
    def class_words(self) -> tuple[str, ...]:
        """Return the classes in words: `procedure fewer` for an object that is a procedure."""
        return tuple(words_of(each, self.key.kind) for each in self.classes)

    @property
    def errors(self) -> tuple[int, ...]:
        """Return the error numbers that the difference may lead to, in order."""
        found = errors_of_classes(self.classes, self.key.kind)
        for each in self.changes:
            clause = each.source or each.replica
            is_check = clause is not None and clause.kind is ClauseKind.CHECK
            found |= set(errors_of_constraint(each.drift_class, is_check=is_check))
        own = {self.rows.errno} if self.rows.errno is not None else set()
        return tuple(sorted(found | own))

    @property
    def rows_text(self) -> str:
        """Return in words what rows of the source do on the replica."""
        if self.rows.effect is RowEffect.APPLIED:
            return "row events of the source are applied"
        number = f" with {self.rows.errno}" if self.rows.errno is not None else ""
        why = f": {self.rows.why}" if self.rows.why else ""
        return f"{self.rows.effect.value}{number}{why}"


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
class ClusterDrift:
    """The differences of all pairs of a cluster, and what is not known of its servers."""

    cluster: str
    servers: tuple[str, ...]
    pairs: tuple[PairDrift, ...]
    unknown: tuple[tuple[str, UnreadFact], ...]

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict of the pairs; UNKNOWN if a server or a kind was not read."""
        unknown = [Verdict.UNKNOWN] if self.unknown else []
        return worst_verdict([*(each.verdict for each in self.pairs), *unknown])
