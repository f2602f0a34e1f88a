"""Which transaction explains an error, and which causes remain if none does. Pure.

How it works
------------
An applier fails because the replica is not what the source was when it committed the transaction.
Binary logs show four of the ways to that difference:

    the source's log           the replica                        the cause
    DDL, GTID 7                has not executed 7                 a change that is missing
    DDL, GTID 7                logged 7 as an empty transaction   a change that was left empty
    -                          logged DDL under a GTID that the   a change of its own
                               source has not executed
    -                          logged rows of the same table, so  rows of its own

The others leave nothing in a binary log: a session with sql_log_bin = 0, an incomplete restore, a
filter, and a log that was purged. So where none of the four is found, the result is a list of the
causes that remain, and never "no cause".

A cause is `proved` only if all of this holds, and `likely` otherwise:

* its effect is the one that the error reports: it removed the object that is missing, created the
  one that exists already, or is the source's statement that would have created or removed it;
* no later change of that table in the same log could have undone the effect;
* the statement cannot have done nothing: CREATE … IF NOT EXISTS, CREATE OR REPLACE and DROP … IF
  EXISTS are logged whether they had an effect or not;
* the search of that log came to its end;
* the replica logged it before the applier failed.

Rows are never proved here: the values are not compared with those that the applier failed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Final

from binlog.transactions import TransactionKind
from gtid import GtidSet
from topology.catalogue.findings import Grade
from topology.tracing.error_classes import ErrorClass, class_of, is_of_foreign_key
from topology.tracing.table_effects import EffectKind, TableEffect, member_in_text
from topology.tracing.trace_values import TableNow, TracedFailure, TracedTransaction

# The error of a thread has the time of a whole second.
_SLACK: Final = timedelta(seconds=1)
_OF_TABLES: Final = (
    ErrorClass.ABSENT,
    ErrorClass.PRESENT,
    ErrorClass.COLUMNS,
    ErrorClass.ROWS,
)
# What the replica's own change must have done, and what the source's change would have done.
_OWN_EFFECT: Final = {
    ErrorClass.ABSENT: EffectKind.REMOVES,
    ErrorClass.PRESENT: EffectKind.CREATES,
}
_SOURCE_EFFECT: Final = {
    ErrorClass.ABSENT: EffectKind.CREATES,
    ErrorClass.PRESENT: EffectKind.REMOVES,
}


class CauseKind(Enum):
    """How a transaction explains an error."""

    MISSING_CHANGE = "the replica has not executed a change of the source"
    EMPTIED_CHANGE = "the replica executed an empty transaction in place of a change"
    OWN_CHANGE = "the replica executed a change that the source has not executed"
    OWN_ROWS = "the replica executed changes of rows that the source has not executed"


@dataclass(frozen=True, slots=True)
class TraceCause:
    """One transaction that explains an error."""

    kind: CauseKind
    grade: Grade
    transaction: TracedTransaction
    is_conditional: bool = False  # the log does not show whether the statement had an effect


def causes_of(traced: TracedFailure, *, executed: GtidSet | None) -> tuple[TraceCause, ...]:
    """Return the transactions that explain a failure, the most certain ones first.

    `executed` is gtid_executed of the replica; None if it was not read.
    """
    error = class_of(traced.failure)
    if error not in _OF_TABLES or not traced.tables or executed is None:
        return ()
    found = [
        *_missing(traced, error, executed),
        *_emptied(traced),
        *_own(traced, error),
    ]
    order = (Grade.PROVED, Grade.LIKELY)
    return tuple(sorted(found, key=lambda cause: order.index(cause.grade)))


def remaining_causes(traced: TracedFailure, causes: tuple[TraceCause, ...]) -> tuple[str, ...]:
    """Return what else may explain the failure; nothing if a cause is proved."""
    error = class_of(traced.failure)
    if error not in _OF_TABLES or any(each.grade is Grade.PROVED for each in causes):
        return ()
    replica, source = traced.failure.replica, traced.source or "the source"
    what = "rows" if error is ErrorClass.ROWS else "a table"
    found = [f"a session on {replica} changed {what} with sql_log_bin = 0: no log has it"]
    if error in (ErrorClass.ABSENT, ErrorClass.PRESENT, ErrorClass.COLUMNS):
        found.append(f"a session on {source} changed a table with sql_log_bin = 0")
    found += _unsearched(traced)
    filters = traced.failure.channel.filters
    if filters:
        found.append(f"a filter of the channel on {replica}: {', '.join(filters)}")
    if is_of_foreign_key(traced.failure):
        found.append(
            f"{replica} changed the other table of the foreign key itself: its log was searched"
            " only for the table of the transaction"
        )
    if error is ErrorClass.ROWS:
        found.append(
            f"{replica} skipped an earlier transaction, or errors of one (gtid-audit pair)"
        )
    found.append(f"a backup or a dump was restored on {replica} incompletely")
    return tuple(found)


def differences_now(traced: TracedFailure) -> tuple[tuple[TableNow, TableNow], ...]:
    """Return the tables whose columns differ now: as on the source, and as on the replica."""
    of_replica = {
        each.table: each for each in traced.tables_now if each.server == traced.failure.replica
    }
    return tuple(
        (each, of_replica[each.table])
        for each in traced.tables_now
        if each.server == traced.source
        and each.table in of_replica
        and not each.why
        and not of_replica[each.table].why
        and each.columns != of_replica[each.table].columns
    )


def _unsearched(traced: TracedFailure) -> list[str]:
    found = []
    for search in traced.searches:
        if search.is_complete:
            continue
        if search.why:
            found.append(f"a statement in the logs of {search.server}: not read: {search.why}")
        elif search.is_from_first_log:
            found.append(f"a statement in a log that {search.server} has purged")
        else:
            found.append(
                f"a statement in a log of {search.server} before {search.first_file}:"
                " not searched (--search)"
            )
    extra = traced.extra
    if extra is None:
        replica = traced.failure.replica
        found.append(
            f"a transaction that only {replica} executed: the sets of its source were not read"
        )
    if extra is not None and extra.why:
        found.append(f"a transaction that only {extra.server} executed: not read: {extra.why}")
    if extra is not None and extra.purged:
        found.append(
            f"a transaction that only {extra.server} executed and has purged:"
            f" {extra.purged.shortened()}"
        )
    return found


def _missing(traced: TracedFailure, error: ErrorClass, executed: GtidSet) -> list[TraceCause]:
    """Return the source's changes before the failing transaction that the replica is missing."""
    changes = _changes_on(traced, traced.source)
    last = max((_order(each) for each in changes), default=None)
    return [
        TraceCause(
            CauseKind.MISSING_CHANGE,
            Grade.PROVED
            if _order(each) == last
            and _is_searched(traced, traced.source)
            and _is_effect(traced, each, _SOURCE_EFFECT.get(error))
            else Grade.LIKELY,
            each,
            _is_conditional(traced, each),
        )
        for each in changes
        if each.gtid and not each.gtid & executed
    ]


def _emptied(traced: TracedFailure) -> list[TraceCause]:
    """Return the source's changes that the replica logged without content."""
    empty = GtidSet.union_of(
        each.gtid for each in traced.replaced if each.kind == TransactionKind.EMPTY.value
    )
    return [
        TraceCause(CauseKind.EMPTIED_CHANGE, Grade.LIKELY, each, _is_conditional(traced, each))
        for each in _changes_on(traced, traced.source)
        if each.gtid & empty
    ]


def _own(traced: TracedFailure, error: ErrorClass) -> list[TraceCause]:
    """Return what only the replica executed, on the tables of the failure and before it."""
    extra = traced.extra
    if extra is None:
        return []
    changes = _changes_on(traced, traced.failure.replica)
    last = max((_order(each) for each in changes), default=None)
    found = []
    for each in extra.touching:
        if not _is_before(traced, each):
            continue
        if not each.effects:
            if error is ErrorClass.ROWS:
                found.append(TraceCause(CauseKind.OWN_ROWS, Grade.LIKELY, each))
            continue
        is_decisive = (
            _is_effect(traced, each, _OWN_EFFECT.get(error))
            and (last is None or last <= _order(each))
            and _is_searched(traced, traced.failure.replica)
            and each.happened_at is not None
            and traced.failed_at is not None
        )
        grade = Grade.PROVED if is_decisive else Grade.LIKELY
        is_conditional = _is_conditional(traced, each)
        found.append(TraceCause(CauseKind.OWN_CHANGE, grade, each, is_conditional))
    return found


def _changes_on(traced: TracedFailure, server: str) -> tuple[TracedTransaction, ...]:
    """Return the changes of the tables in one server's log, without the failing transaction."""
    failing = GtidSet.union_of(each.gtid for each in traced.transactions)
    return tuple(
        each
        for search in traced.searches
        if search.server == server
        for each in search.changes
        if not each.gtid & failing
    )


def _is_searched(traced: TracedFailure, server: str) -> bool:
    """Return whether the last logs of a server were searched to the end."""
    return any(each.server == server and not each.why for each in traced.searches)


def _is_effect(
    traced: TracedFailure, transaction: TracedTransaction, wanted: EffectKind | None
) -> bool:
    """Return whether a transaction did to a traced table, or to its column, what is wanted.

    The last effect counts: RENAME TABLE t TO old, new TO t leaves a table t. Names are compared
    with their letter case here, because t and T may be two tables.
    """
    if wanted is None:
        return False
    return any(
        each is not None and each.kind is wanted and not each.is_conditional
        for each in _last_effects(traced, transaction)
    )


def _is_conditional(traced: TracedFailure, transaction: TracedTransaction) -> bool:
    """Return whether what a transaction did to a traced table depends on IF [NOT] EXISTS."""
    found = _last_effects(traced, transaction)
    return any(each is not None and each.is_conditional for each in found)


def _last_effects(
    traced: TracedFailure, transaction: TracedTransaction
) -> list[TableEffect | None]:
    member = member_in_text(traced.failure.cause_text)
    return [
        _last_effect([each for each in transaction.effects if each.is_on(table)], member)
        for table in traced.tables
    ]


def _last_effect(effects: Sequence[TableEffect], member: str) -> TableEffect | None:
    """Return the last of some effects on a table; with `member`, on that column or key."""
    for effect in reversed(effects):
        if not member:
            return effect
        if member in effect.added:
            return replace(effect, kind=EffectKind.CREATES)
        if member in effect.removed:
            return replace(effect, kind=EffectKind.REMOVES)
    return None


def _is_before(traced: TracedFailure, transaction: TracedTransaction) -> bool:
    """Return whether the replica may have executed a transaction before the applier failed."""
    at, failed_at = transaction.happened_at, traced.failed_at
    return at is None or failed_at is None or at <= failed_at + _SLACK


def _order(transaction: TracedTransaction) -> tuple[int, int]:
    """Return the place in the log, to compare it with others of the same server."""
    number = transaction.file.rpartition(".")[2]
    return int(number) if number.isdigit() else 0, transaction.start
