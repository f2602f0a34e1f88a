"""Decides, for one object that differs, which statements repair it on the replica.

Benign and malign causes that look the same:

* **DDL on its way.** The difference is gone once the applier gets there, and a statement that runs
  before it stops the applier (1060, 1061, 1050). Only a difference that is proved is repaired.
* **A change on the replica on purpose.** An index more, or another index, is normal for reports.
  An index fewer is not needed by anything: it is added.
* **Values that were lost.** Row events are applied by position. Without the last column the applier
  drops its values without an error, and ADD COLUMN would hide that. So the column is added by
  default only if no row of the source has another value than the default, and if the replica has
  executed nothing that is not in these rows (`ChangeDefinition.rows_at`). Both are needed: a later
  transaction may have written a value, and the replica may have dropped it.
* **A column that looks renamed.** DROP and ADD at one place look the same as CHANGE.
* **A type with more values.** Nothing is lost by the statement, but values may have been cut before
  (replica_type_conversions=ALL_LOSSY).
* **A column in another place, a table without its rows, a constraint, an object that acts by
  itself** (trigger, event): no statement can show that the rows are right.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from binlog.quoting import quote_identifier
from gtid import GtidSet
from repair.content.definition_parts import (
    DefinitionPart,
    DifferingDefinition,
    collation_of,
    columns_of,
    index_of,
    view_of,
)
from repair.model.actions import ChangeDefinition
from repair.strategies.added_columns import is_added_at_end, only_default_or_comment
from repair.strategies.definition_scenarios import SCENARIOS, Handling
from topology.definitions.canonical import Clause, ClauseKind
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.drift_classes import DriftClass
from topology.definitions.drift_statements import qualified
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.row_effects import NON_LOSSY, RowEffect, consequence_of
from topology.definitions.schema_objects import ObjectKind
from topology.readings.version import ServerVersion

# A table whose size allows a statement that reads or writes all of it, without an operator.
DATA_BYTES_MAX: Final = 1 << 30
_INSTANT: Final = ServerVersion(8, 0, 12)
_RENAMED: Final = ServerVersion(8, 0, 30)  # utf8_ collations are printed as utf8mb3_
_COLUMN_CLASSES: Final = frozenset(
    {
        *(DriftClass.COLUMN_FEWER, DriftClass.COLUMN_MORE, DriftClass.COLUMN_RENAMED),
        *(DriftClass.COLUMN_MOVED, DriftClass.COLUMN_TYPE, DriftClass.COLUMN_ATTRIBUTE),
    }
)
_ONLINE: Final = "ALGORITHM=INPLACE, LOCK=NONE"


@dataclass(frozen=True, slots=True)
class Ends:
    """The two servers of a difference, as far as statements depend on them."""

    source: str
    replica: str
    source_version: ServerVersion
    version: ServerVersion  # of the replica
    has_one_source: bool
    has_below: bool  # servers receive from the replica
    logs_rows: bool  # the source logs rows, not statements
    executed: GtidSet  # by the replica when it was read

    @property
    def older(self) -> ServerVersion:
        """Return the older version of the two."""
        return min(self.source_version, self.version)

    @property
    def print_alike(self) -> bool:
        """Return whether both servers print column types and collations in the same words."""
        ours, theirs = self.source_version, self.version
        return (ours.major, ours.minor) == (theirs.major, theirs.minor)


@dataclass(frozen=True, slots=True)
class Change:
    """One statement, or the reason why there is none."""

    label: str  # the object, and what differs
    handling: Handling
    action: ChangeDefinition | None = None
    why: str = ""  # why it is not automatic
    warning: str = ""  # what the operator must know if it is selected

    @property
    def is_of_table(self) -> bool:
        """Return whether it is about a table."""
        return self.label.startswith(f"{ObjectKind.TABLE.value} ")


def changes_of(each: DifferingDefinition, ends: Ends) -> tuple[Change, ...]:
    """Return what repairs one object, in order; a reason for each part that nothing repairs."""
    drift = each.drift
    if each.unread or drift.causes or drift.pending:
        return (_by_hand(drift, each.unread or "; ".join(drift.causes)),)
    if drift.replica_key is not None:
        return (_by_class(drift, drift.classes[0]),)
    if any("\\" in change.source.raw for change in drift.changes if change.source is not None):
        return (_by_hand(drift, "its definition contains a backslash"),)
    if drift.key.kind is ObjectKind.VIEW and drift.classes == (DriftClass.OTHER_FEWER,):
        return (_view(each, ends),)
    if drift.key.kind is not ObjectKind.TABLE or drift.source is None or drift.replica is None:
        return (_by_class(drift, drift.classes[0]),)
    if " ENGINE=InnoDB" not in _options(drift):
        return (_by_hand(drift, "its engine is not InnoDB: the server would copy it"),)
    return tuple(_of_table(each, ends))


def _of_table(each: DifferingDefinition, ends: Ends) -> Iterator[Change]:
    columns = _in_order(each.drift, filter(_is_of_columns, each.drift.changes))
    there = True
    if columns:
        found = _columns(each, columns, ends)
        there = found.action is not None
        yield found
    fewer = [change.name for change in columns if change.drift_class is DriftClass.COLUMN_FEWER]
    for change in each.drift.changes:
        if change in columns:
            continue
        wanted = "" if change.source is None else change.source.raw
        if not there and any(quote_identifier(name) in wanted for name in fewer):
            yield _by_hand(each.drift, "it needs a column that is not added", change)
        elif change.drift_class in _INDEXES:
            yield _INDEXES[change.drift_class](each, change, ends)
        elif change.drift_class is DriftClass.CHARSET:
            yield _default_collation(each, change, ends)
        else:
            yield _by_class(each.drift, change.drift_class, change)


def _in_order(drift: ObjectDrift, changes: Iterable[ClauseChange]) -> list[ClauseChange]:
    """Return changes of columns in the order of the source: ADD COLUMN adds at the end."""
    assert drift.source is not None, "both servers have the table"
    places = {each.name: at for at, each in enumerate(drift.source.of(ClauseKind.COLUMN))}
    return sorted(changes, key=lambda each: places.get(each.name, len(places)))


def _is_of_columns(change: ClauseChange) -> bool:
    clause = change.source or change.replica
    is_column = clause is not None and clause.kind is ClauseKind.COLUMN
    return is_column and change.drift_class in {*_COLUMN_CLASSES, DriftClass.CHARSET}


# -- columns: one statement for all of a table -----------------------------------------------------


def _columns(each: DifferingDefinition, changes: list[ClauseChange], ends: Ends) -> Change:
    """Return one ALTER TABLE for all columns: only together they are as on the source."""
    drift = each.drift
    if not ends.print_alike:
        why = f"{ends.source} ({ends.source_version}) and {ends.replica} ({ends.version}) print"
        return _by_hand(drift, f"{why} columns differently", *changes)
    found = [_column(each, change, ends) for change in changes]
    worst = max(found, key=lambda one: list(Handling).index(one.handling))
    if worst.handling is Handling.BY_HAND:
        return _by_hand(drift, worst.why, *changes)
    algorithms = {one.algorithm for one in found}
    slowest = next(name for name in ("COPY", "INPLACE", "INSTANT") if name in algorithms)
    if slowest != "INSTANT" and (why := _too_large(each)):
        return _by_hand(drift, why, *changes)
    adds = any(change.drift_class is DriftClass.COLUMN_FEWER for change in changes)
    proved = worst.handling is Handling.AUTOMATIC
    action = _action(
        each,
        ends,
        changes,
        f"{', '.join(one.clause for one in found)}, ALGORITHM={slowest}",
        (columns_of(drift.key, ends.older), "the columns"),
        undo=_undo_of_columns(drift, changes),
    )
    if action is None:
        return _by_hand(drift, _UNCLEAR, *changes)
    action = replace(
        action,
        rows_at=each.rows_at if adds and proved else None,
        blocks_writes=slowest == "COPY",
    )
    warning = "; ".join(dict.fromkeys(one.why for one in found if one.why))
    return Change(_label(drift, *changes), worst.handling, action, worst.why, warning)


@dataclass(frozen=True, slots=True)
class _Column:
    """The clause of ALTER TABLE for one column, and who decides."""

    handling: Handling
    clause: str = ""
    algorithm: str = "INSTANT"
    why: str = ""


def _column(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> _Column:
    instant = "INSTANT" if ends.version >= _INSTANT else "INPLACE"
    own = change.source
    if own is None or change.drift_class in {DriftClass.COLUMN_MORE, DriftClass.COLUMN_MOVED}:
        return _Column(Handling.BY_HAND, why=SCENARIOS[change.drift_class].user)
    if not _has_one_default(each.drift):
        return _Column(Handling.BY_HAND, why="the default character sets of the tables differ")
    if change.drift_class is DriftClass.COLUMN_FEWER:
        return _added(each, change, own, ends, algorithm=instant)
    assert change.replica is not None, "both servers have the column"
    old = quote_identifier(change.replica.name)
    if change.drift_class is DriftClass.COLUMN_ATTRIBUTE:
        if not only_default_or_comment(own.raw, change.replica.raw):
            return _Column(Handling.BY_HAND, why="more differs than its default and its comment")
        return _Column(Handling.AUTOMATIC, f"MODIFY COLUMN {own.raw}", instant)
    if change.drift_class is DriftClass.COLUMN_RENAMED:
        why = f"{old} may be another column: compare the values of {quote_identifier(own.name)}"
        return _Column(Handling.SELECTED, f"CHANGE COLUMN {old} {own.raw}", "INPLACE", why)
    if change.drift_class is not DriftClass.COLUMN_TYPE or not _keeps_values(each.drift):
        why = "the statement may change values, or refuse some"
        return _Column(Handling.BY_HAND, why=why)
    why = f"values of {old} may have been cut before: compare the rows"
    return _Column(Handling.SELECTED, f"MODIFY COLUMN {own.raw}", "COPY", why)


def _added(
    each: DifferingDefinition, change: ClauseChange, own: Clause, ends: Ends, *, algorithm: str
) -> _Column:
    name = quote_identifier(own.name)
    if not is_added_at_end(each.drift, change):
        why = f"{name} is not the last column, or existing rows would get no constant"
        return _Column(Handling.BY_HAND, why=why)
    clause = f"ADD COLUMN {own.raw}"
    why = next(_doubts_of_added(each, name, ends), "")
    handling = Handling.SELECTED if why else Handling.AUTOMATIC
    return _Column(handling, clause, algorithm, why)


def _doubts_of_added(each: DifferingDefinition, name: str, ends: Ends) -> Iterator[str]:
    """Yield why values of an added column may be missing on the replica."""
    assert each.drift.source is not None, "the column is there"
    compare = f"compare the values of {name} on both servers afterwards"
    if each.has_values is None:
        yield f"the rows of {ends.source} were not read: {compare}"
    elif each.has_values:
        yield f"rows of {ends.source} have values in {name}: {compare}"
    elif own := ends.executed - each.rows_at:
        yield f"{ends.source} has not executed {own.shortened()} of {ends.replica}: {compare}"
    if not any(one.name == "PRIMARY" for one in each.drift.source.of(ClauseKind.KEY)):
        yield f"the table has no primary key, so that rows are found by their values: {compare}"
    if not ends.has_one_source:
        yield f"{ends.replica} has other sources: {compare}"
    if not ends.logs_rows:
        yield f"{ends.source} logs statements, which may have used {name}: {compare}"
    if ends.has_below:
        yield f"servers below {ends.replica} do not get the column: plan for them afterwards"


def _keeps_values(drift: ObjectDrift) -> bool:
    """Return whether every value of the replica fits the source's columns."""
    assert drift.source is not None, "both servers have the table"
    assert drift.replica is not None, "both servers have the table"
    found = consequence_of(
        drift.replica, drift.source, schema=drift.key.schema, conversions=NON_LOSSY
    )
    return found.effect in {RowEffect.APPLIED, RowEffect.CONVERTED}


def _undo_of_columns(drift: ObjectDrift, changes: Iterable[ClauseChange]) -> str:
    parts = []
    for change in changes:
        if change.replica is None:
            parts.append(f"DROP COLUMN {quote_identifier(change.name)}")
        elif change.source is not None:
            name = quote_identifier(change.source.name)
            parts.append(f"CHANGE COLUMN {name} {change.replica.raw}")
    return f"ALTER TABLE {qualified(drift.key)} {', '.join(parts)}"


# -- indexes ---------------------------------------------------------------------------------------


def _index_fewer(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> Change:
    own = change.source
    assert own is not None, "the source has it"
    why = _odd_index(own)
    if why or (why := _too_large(each)):
        return _by_hand(each.drift, why, change)
    clauses = f"ADD {own.raw}, {_ONLINE}"
    undo = f"ALTER TABLE {qualified(each.drift.key)} DROP INDEX {quote_identifier(own.name)}"
    action = _of_index(each, change, ends, clauses, undo=undo)
    if action is None:
        return _by_hand(each.drift, _UNCLEAR, change)
    label = _label(each.drift, change)
    if own.raw.startswith("UNIQUE") and not ends.has_one_source:
        why = f"rows of other sources of {ends.replica} may have equal values"
        return Change(label, Handling.SELECTED, action, why, why)
    return Change(label, Handling.AUTOMATIC, action)


def _index_more(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> Change:
    clause = change.replica
    assert clause is not None, "the replica has it"
    if clause.name == "PRIMARY":
        return _by_hand(each.drift, "it is the primary key", change)
    undo = f"ALTER TABLE {qualified(each.drift.key)} ADD {clause.raw}"
    clauses = f"DROP INDEX {quote_identifier(clause.name)}, {_ONLINE}"
    return _selected_index(each, change, ends, clauses, undo=undo)


def _index_different(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> Change:
    own, other = change.source, change.replica
    assert own is not None, "both servers have it"
    assert other is not None, "both servers have it"
    why = _odd_index(own) or _odd_index(other) or _too_large(each)
    if why:
        return _by_hand(each.drift, why, change)
    name = quote_identifier(own.name)
    undo = f"ALTER TABLE {qualified(each.drift.key)} DROP INDEX {name}, ADD {other.raw}"
    clauses = f"DROP INDEX {quote_identifier(other.name)}, ADD {own.raw}, {_ONLINE}"
    return _selected_index(each, change, ends, clauses, undo=undo)


def _selected_index(
    each: DifferingDefinition, change: ClauseChange, ends: Ends, clauses: str, *, undo: str
) -> Change:
    action = _of_index(each, change, ends, clauses, undo=undo)
    if action is None:
        return _by_hand(each.drift, _UNCLEAR, change)
    why = f"it may be intended: reports on {ends.replica} may use it"
    return Change(_label(each.drift, change), Handling.SELECTED, action, why, why)


def _of_index(
    each: DifferingDefinition, change: ClauseChange, ends: Ends, clauses: str, *, undo: str
) -> ChangeDefinition | None:
    question = index_of(each.drift.key, change.name, ends.older)
    part = (question, f"the index {quote_identifier(change.name)}")
    return _action(each, ends, [change], clauses, part, undo=undo)


def _odd_index(index: Clause) -> str:
    """Return why the server may not add an index without copying the table; "" if it may."""
    if not index.raw.startswith(("KEY ", "UNIQUE KEY ")):
        return "a primary key, FULLTEXT or SPATIAL index rebuilds the table or blocks writes"
    return "it is an index of an expression" if "((" in index.raw else ""


_INDEXES: Final[
    Mapping[DriftClass, Callable[[DifferingDefinition, ClauseChange, Ends], Change]]
] = {
    DriftClass.INDEX_FEWER: _index_fewer,
    DriftClass.INDEX_MORE: _index_more,
    DriftClass.INDEX_DIFFERENT: _index_different,
}


# -- the rest --------------------------------------------------------------------------------------


def _default_collation(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> Change:
    assert each.drift.source is not None, "both servers have the table"
    if not ends.print_alike:
        return _by_hand(each.drift, "the servers name collations differently", change)
    assert each.drift.replica is not None, "both servers have the table"
    wanted, old = (
        _collation(side.collation, ends.version) for side in (each.drift.source, each.drift.replica)
    )
    table = f"ALTER TABLE {qualified(each.drift.key)} DEFAULT COLLATE"
    part = (collation_of(each.drift.key), "the default collation")
    clauses = f"DEFAULT COLLATE {wanted}, ALGORITHM=INPLACE"
    action = _action(each, ends, [change], clauses, part, undo=f"{table} {old}")
    if action is None:
        return _by_hand(each.drift, _UNCLEAR, change)
    return Change(_label(each.drift, change), Handling.AUTOMATIC, action)


def _collation(name: str, version: ServerVersion) -> str:
    return name if version >= _RENAMED else name.replace("utf8mb3_", "utf8_")


def _view(each: DifferingDefinition, ends: Ends) -> Change:
    view = each.drift.source
    assert view is not None, "the source has it"
    if not ends.print_alike:
        return _by_hand(each.drift, "the servers print views differently")
    session = {one.name: one.raw for one in view.of(ClauseKind.SESSION)}
    charset, collation = (session.get(one, "") for one in _SESSION)
    if charset != "utf8mb4" or not collation.isidentifier() or "\\" in view.create:
        return _by_hand(each.drift, "it was not created by a session with utf8mb4")
    question = view_of(each.drift.key)
    goal, seen = each.answers.get(question, (None, None))
    if goal in {None, seen}:
        return _by_hand(each.drift, _UNCLEAR)
    action = ChangeDefinition(
        server=ends.replica,
        source=ends.source,
        schema=each.drift.key.schema,
        name=each.drift.key.name,
        title=f"create {each.drift.key.label}",
        statement=view.create,
        parts=(DefinitionPart("the view", question, seen, goal),),
        undo=f"DROP VIEW {qualified(each.drift.key)}",
        session=(f"SET SESSION collation_connection = {collation};",),
    )
    return Change(_label(each.drift), Handling.AUTOMATIC, action)


_SESSION: Final = ("character_set_client", "collation_connection")
_UNCLEAR: Final = "the servers answer alike about it, or did not answer: the goal cannot be checked"


def _action(
    each: DifferingDefinition,
    ends: Ends,
    changes: Iterable[ClauseChange],
    clauses: str,
    part: tuple[str, str],
    *,
    undo: str,
) -> ChangeDefinition | None:
    """Return the action; None if the answers of the two servers do not show the difference."""
    question, name = part
    goal, seen = each.answers.get(question, (None, None))
    if goal is None or seen is None or goal == seen:
        return None
    return ChangeDefinition(
        server=ends.replica,
        source=ends.source,
        schema=each.drift.key.schema,
        name=each.drift.key.name,
        title=f"change {_label(each.drift, *changes)}",
        statement=f"ALTER TABLE {qualified(each.drift.key)} {clauses}",
        parts=(DefinitionPart(name, question, seen, goal),),
        undo=undo,
        data_bytes=each.data_bytes or 0,
    )


def _too_large(each: DifferingDefinition) -> str:
    if each.data_bytes is None:
        return "its size was not read"
    if each.data_bytes > DATA_BYTES_MAX:
        return f"the table has {each.data_bytes >> 20:,} MiB: plan the time and the space by hand"
    return ""


def _has_one_default(drift: ObjectDrift) -> bool:
    """Return whether a clause without a character set means the same on both servers."""
    assert drift.source is not None, "both servers have the table"
    assert drift.replica is not None, "both servers have the table"
    return drift.source.collation == drift.replica.collation


def _options(drift: ObjectDrift) -> str:
    assert drift.replica is not None, "both servers have the table"
    return " ".join(f" {each.raw}" for each in drift.replica.of(ClauseKind.OPTIONS))


def _by_class(drift: ObjectDrift, drift_class: DriftClass, *changes: ClauseChange) -> Change:
    return _by_hand(drift, SCENARIOS[drift_class].user, *changes)


def _by_hand(drift: ObjectDrift, why: str, *changes: ClauseChange) -> Change:
    return Change(_label(drift, *changes), Handling.BY_HAND, why=why)


def _label(drift: ObjectDrift, *changes: ClauseChange) -> str:
    if not changes:
        return f"{drift.key.label} ({', '.join(drift.class_words)})"
    what = ", ".join(
        each.drift_class.value + (f" {quote_identifier(each.name)}" if each.name else "")
        for each in changes
    )
    return f"{drift.key.label} ({what})"
