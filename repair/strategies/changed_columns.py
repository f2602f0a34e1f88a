"""One ALTER TABLE for all columns of a table that differ: only together they are as on the source.

definition_changes.py has the causes that look the same, and why each is or is not repaired.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from binlog.quoting import quote_identifier
from repair.content.definition_parts import DifferingDefinition, columns_of
from repair.strategies.added_columns import (
    depends_on_time_zone,
    is_added_at_end,
    only_default_or_comment,
)
from repair.strategies.definition_scenarios import SCENARIOS, Handling
from repair.strategies.planned_definition import (
    UNCLEAR,
    DefinitionChange,
    Ends,
    action_of,
    by_hand,
    has_one_default,
    label_of,
    too_large,
)
from topology.definitions.canonical import Clause, ClauseKind
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.drift_classes import DriftClass
from topology.definitions.drift_statements import qualified
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.row_effects import NON_LOSSY, RowEffect, consequence_of
from topology.readings.version import ServerVersion

_COLUMN_CLASSES: Final = frozenset(
    {
        *(DriftClass.COLUMN_FEWER, DriftClass.COLUMN_MORE, DriftClass.COLUMN_RENAMED),
        *(DriftClass.COLUMN_MOVED, DriftClass.COLUMN_TYPE, DriftClass.COLUMN_ATTRIBUTE),
    }
)
_INSTANT: Final = ServerVersion(8, 0, 12)


def in_order(drift: ObjectDrift, changes: Iterable[ClauseChange]) -> list[ClauseChange]:
    """Return changes of columns in the order of the source: ADD COLUMN adds at the end."""
    assert drift.source is not None, "both servers have the table"
    places = {each.name: at for at, each in enumerate(drift.source.of(ClauseKind.COLUMN))}
    return sorted(changes, key=lambda each: places.get(each.name, len(places)))


def is_of_columns(change: ClauseChange) -> bool:
    """Return whether a change is about a column, and not about the default of its table."""
    clause = change.source or change.replica
    is_column = clause is not None and clause.kind is ClauseKind.COLUMN
    return is_column and change.drift_class in {*_COLUMN_CLASSES, DriftClass.CHARSET}


def changed_columns(
    each: DifferingDefinition, changes: list[ClauseChange], ends: Ends
) -> DefinitionChange:
    """Return one ALTER TABLE for all columns: only together they are as on the source."""
    drift = each.drift
    if not ends.print_alike:
        why = f"{ends.source} ({ends.source_version}) and {ends.replica} ({ends.version}) print"
        return by_hand(drift, f"{why} columns differently", *changes)
    if not _are_shown(each, ends):
        return by_hand(
            drift, "an account does not see all its columns, or some are hidden", *changes
        )
    found = [_column(each, change, ends) for change in changes]
    worst = max(found, key=lambda one: list(Handling).index(one.handling))
    if worst.handling is Handling.BY_HAND:
        return by_hand(drift, worst.why, *changes)
    algorithms = {one.algorithm for one in found}
    slowest = next(name for name in ("COPY", "INPLACE", "INSTANT") if name in algorithms)
    if slowest != "INSTANT" and (why := too_large(each)):
        return by_hand(drift, why, *changes)
    adds = any(change.drift_class is DriftClass.COLUMN_FEWER for change in changes)
    proved = worst.handling is Handling.AUTOMATIC
    action = action_of(
        each,
        ends,
        changes,
        f"{', '.join(one.clause for one in found)}, ALGORITHM={slowest}",
        (columns_of(drift.key, ends.older), "the columns"),
        undo=_undo_of_columns(drift, changes),
    )
    if action is None:
        return by_hand(drift, UNCLEAR, *changes)
    action = replace(
        action,
        rows_at=each.rows_at if adds and proved else None,
        blocks_writes=slowest == "COPY",
    )
    warning = "; ".join(dict.fromkeys(one.why for one in found if one.why))
    return DefinitionChange(label_of(drift, *changes), worst.handling, action, worst.why, warning)


def _are_shown(each: DifferingDefinition, ends: Ends) -> bool:
    """Return whether both answers are about as many columns as SHOW CREATE TABLE printed.

    A primary key that the server generates is in one of them only (show_gipk_in_create_table_…).
    """
    answers = each.answers.get(columns_of(each.drift.key, ends.older), (None, None))
    sides = (each.drift.source, each.drift.replica)
    return all(
        side is not None
        and answer is not None
        and answer.partition(":")[0] == str(len(side.of(ClauseKind.COLUMN)))
        for side, answer in zip(sides, answers, strict=True)
    )


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
    shown = [one.raw for one in (own, change.replica) if one is not None]
    if any(map(depends_on_time_zone, shown)):
        why = "the default of a TIMESTAMP means another time in a session with another time zone"
        return _Column(Handling.BY_HAND, why=why)
    if not has_one_default(each.drift):
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
