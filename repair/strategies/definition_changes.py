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

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from binlog.quoting import quote_identifier
from repair.content.definition_parts import (
    DefinitionPart,
    DifferingDefinition,
    collation_of,
    index_of,
    view_of,
)
from repair.model.actions import ChangeDefinition
from repair.strategies.changed_columns import changed_columns, in_order, is_of_columns
from repair.strategies.definition_scenarios import SCENARIOS, Handling
from repair.strategies.planned_definition import (
    UNCLEAR,
    DefinitionChange,
    Ends,
    action_of,
    by_hand,
    label_of,
    too_large,
)
from topology.definitions.canonical import Clause, ClauseKind
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.drift_classes import DriftClass
from topology.definitions.drift_statements import qualified
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.schema_objects import ObjectKind
from topology.readings.version import ServerVersion

_RENAMED: Final = ServerVersion(8, 0, 30)  # utf8_ collations are printed as utf8mb3_
_ONLINE: Final = "ALGORITHM=INPLACE, LOCK=NONE"


def changes_of(each: DifferingDefinition, ends: Ends) -> tuple[DefinitionChange, ...]:
    """Return what repairs one object, in order; a reason for each part that nothing repairs."""
    drift = each.drift
    if each.unread or drift.causes or drift.pending:
        return (by_hand(drift, each.unread or "; ".join(drift.causes)),)
    if drift.replica_key is not None:
        return (_by_class(drift, drift.classes[0]),)
    if any("\\" in change.source.raw for change in drift.changes if change.source is not None):
        return (by_hand(drift, "its definition contains a backslash"),)
    if drift.key.kind is ObjectKind.VIEW and drift.classes == (DriftClass.OTHER_FEWER,):
        return (_view(each, ends),)
    if drift.key.kind is not ObjectKind.TABLE or drift.source is None or drift.replica is None:
        return (_by_class(drift, drift.classes[0]),)
    if " ENGINE=InnoDB" not in _options(drift):
        return (by_hand(drift, "its engine is not InnoDB: the server would copy it"),)
    return tuple(_of_table(each, ends))


def _of_table(each: DifferingDefinition, ends: Ends) -> Iterator[DefinitionChange]:
    columns = in_order(each.drift, filter(is_of_columns, each.drift.changes))
    there = True
    if columns:
        found = changed_columns(each, columns, ends)
        there = found.action is not None
        yield found
    fewer = [change.name for change in columns if change.drift_class is DriftClass.COLUMN_FEWER]
    for change in each.drift.changes:
        if change in columns:
            continue
        wanted = "" if change.source is None else change.source.raw
        if not there and any(quote_identifier(name) in wanted for name in fewer):
            yield by_hand(each.drift, "it needs a column that is not added", change)
        elif change.drift_class in _INDEXES:
            yield _INDEXES[change.drift_class](each, change, ends)
        elif change.drift_class is DriftClass.CHARSET:
            yield _default_collation(each, change, ends)
        else:
            yield _by_class(each.drift, change.drift_class, change)


# -- indexes ---------------------------------------------------------------------------------------


def _index_fewer(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> DefinitionChange:
    own = change.source
    assert own is not None, "the source has it"
    why = _odd_index(own)
    if why or (why := too_large(each)):
        return by_hand(each.drift, why, change)
    clauses = f"ADD {own.raw}, {_ONLINE}"
    undo = f"ALTER TABLE {qualified(each.drift.key)} DROP INDEX {quote_identifier(own.name)}"
    action = _of_index(each, change, ends, clauses, undo=undo)
    if action is None:
        return by_hand(each.drift, UNCLEAR, change)
    label = label_of(each.drift, change)
    if own.raw.startswith("UNIQUE"):
        # What was committed before the source had the index, and is applied after this statement.
        why = (
            f"{ends.replica} may have transactions to apply that hold equal values for a moment"
            " (1062): let it catch up first"
        )
        if not ends.has_one_source:
            why = f"rows of other sources of {ends.replica} may have equal values"
        return DefinitionChange(label, Handling.SELECTED, action, why, why)
    return DefinitionChange(label, Handling.AUTOMATIC, action)


def _index_more(each: DifferingDefinition, change: ClauseChange, ends: Ends) -> DefinitionChange:
    clause = change.replica
    assert clause is not None, "the replica has it"
    if clause.name == "PRIMARY":
        return by_hand(each.drift, "it is the primary key", change)
    undo = f"ALTER TABLE {qualified(each.drift.key)} ADD {clause.raw}"
    clauses = f"DROP INDEX {quote_identifier(clause.name)}, {_ONLINE}"
    return _selected_index(each, change, ends, clauses, undo=undo)


def _index_different(
    each: DifferingDefinition, change: ClauseChange, ends: Ends
) -> DefinitionChange:
    own, other = change.source, change.replica
    assert own is not None, "both servers have it"
    assert other is not None, "both servers have it"
    why = _odd_index(own) or _odd_index(other) or too_large(each)
    if why:
        return by_hand(each.drift, why, change)
    name = quote_identifier(own.name)
    undo = f"ALTER TABLE {qualified(each.drift.key)} DROP INDEX {name}, ADD {other.raw}"
    clauses = f"DROP INDEX {quote_identifier(other.name)}, ADD {own.raw}, {_ONLINE}"
    return _selected_index(each, change, ends, clauses, undo=undo)


def _selected_index(
    each: DifferingDefinition, change: ClauseChange, ends: Ends, clauses: str, *, undo: str
) -> DefinitionChange:
    action = _of_index(each, change, ends, clauses, undo=undo)
    if action is None:
        return by_hand(each.drift, UNCLEAR, change)
    why = f"it may be intended: reports on {ends.replica} may use it"
    return DefinitionChange(label_of(each.drift, change), Handling.SELECTED, action, why, why)


def _of_index(
    each: DifferingDefinition, change: ClauseChange, ends: Ends, clauses: str, *, undo: str
) -> ChangeDefinition | None:
    question = index_of(each.drift.key, change.name, ends.older)
    part = (question, f"the index {quote_identifier(change.name)}")
    return action_of(each, ends, [change], clauses, part, undo=undo)


def _odd_index(index: Clause) -> str:
    """Return why the server may not add an index without copying the table; "" if it may."""
    if not index.raw.startswith(("KEY ", "UNIQUE KEY ")):
        return "a primary key, FULLTEXT or SPATIAL index rebuilds the table or blocks writes"
    return "it is an index of an expression" if "((" in index.raw else ""


_INDEXES: Final[
    Mapping[DriftClass, Callable[[DifferingDefinition, ClauseChange, Ends], DefinitionChange]]
] = {
    DriftClass.INDEX_FEWER: _index_fewer,
    DriftClass.INDEX_MORE: _index_more,
    DriftClass.INDEX_DIFFERENT: _index_different,
}


# -- the rest --------------------------------------------------------------------------------------


def _default_collation(
    each: DifferingDefinition, change: ClauseChange, ends: Ends
) -> DefinitionChange:
    assert each.drift.source is not None, "both servers have the table"
    if not ends.print_alike:
        return by_hand(each.drift, "the servers name collations differently", change)
    assert each.drift.replica is not None, "both servers have the table"
    wanted, old = (
        _collation(side.collation, ends.version) for side in (each.drift.source, each.drift.replica)
    )
    table = f"ALTER TABLE {qualified(each.drift.key)} DEFAULT COLLATE"
    part = (collation_of(each.drift.key), "the default collation")
    clauses = f"DEFAULT COLLATE {wanted}, ALGORITHM=INPLACE"
    action = action_of(each, ends, [change], clauses, part, undo=f"{table} {old}")
    if action is None:
        return by_hand(each.drift, UNCLEAR, change)
    return DefinitionChange(label_of(each.drift, change), Handling.AUTOMATIC, action)


def _collation(name: str, version: ServerVersion) -> str:
    return name if version >= _RENAMED else name.replace("utf8mb3_", "utf8_")


def _view(each: DifferingDefinition, ends: Ends) -> DefinitionChange:
    view = each.drift.source
    assert view is not None, "the source has it"
    if not ends.print_alike:
        return by_hand(each.drift, "the servers print views differently")
    session = {one.name: one.raw for one in view.of(ClauseKind.SESSION)}
    charset, collation = (session.get(one, "") for one in _SESSION)
    if "\\" in view.create:
        return by_hand(each.drift, "its definition contains a backslash")
    if charset != "utf8mb4" or not collation.isidentifier():
        return by_hand(each.drift, "it was not created by a session with utf8mb4")
    question = view_of(each.drift.key)
    goal, seen = each.answers.get(question, (None, None))
    if goal in {None, seen}:
        return by_hand(each.drift, UNCLEAR)
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
    return DefinitionChange(label_of(each.drift), Handling.AUTOMATIC, action)


_SESSION: Final = ("character_set_client", "collation_connection")


def _options(drift: ObjectDrift) -> str:
    assert drift.replica is not None, "both servers have the table"
    return " ".join(f" {each.raw}" for each in drift.replica.of(ClauseKind.OPTIONS))


def _by_class(
    drift: ObjectDrift, drift_class: DriftClass, *changes: ClauseChange
) -> DefinitionChange:
    return by_hand(drift, SCENARIOS[drift_class].user, *changes)
