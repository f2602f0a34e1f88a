"""Reads what a plan needs to know of objects that differ, on both servers of a pair.

The answers about parts come after the definitions. The caller reads the definitions once more
afterwards: if they are the same, the answers are about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.cursors import Cursor

from binlog.adapters.set_statements import EXECUTED
from binlog.quoting import quote_identifier
from gtid import GtidSet
from repair.content.definition_parts import DifferingDefinition, bytes_of, questions_of
from repair.strategies.added_columns import value_condition
from topology.adapters.connection import connect
from topology.definitions.drift_classes import DriftClass
from topology.definitions.schema_objects import ObjectKind

if TYPE_CHECKING:
    from topology.adapters.connection import Connection
    from topology.definitions.object_drift import ObjectDrift
    from topology.readings.target import ServerTarget
    from topology.readings.version import ServerVersion

# Tables of the source whose rows are read for values in an added column: all of one is scanned.
SCANNED_BYTES_MAX: Final = 256 << 20


def read_parts(
    drifts: Iterable[ObjectDrift],
    source: ServerTarget,
    replica: ServerTarget,
    *,
    older: ServerVersion,
    seconds_max: float,
) -> tuple[DifferingDefinition, ...]:
    """Return the objects with what both servers answered; `seconds_max` limits each answer.

    An object about which a server did not answer has the reason.
    """
    wanted = tuple(drifts)
    try:
        with (
            closing(connect(source, timeout_seconds_max=seconds_max)) as ours,
            closing(connect(replica, timeout_seconds_max=seconds_max)) as theirs,
        ):
            limit = f"/*!50708 SET SESSION max_execution_time = {round(seconds_max * 1000)} */"
            _answer(ours, limit)
            _answer(theirs, limit)
            return tuple(_read(each, ours, theirs, older) for each in wanted)
    except (pymysql.MySQLError, OSError) as error:
        return tuple(DifferingDefinition(each, unread=f"not read: {error}") for each in wanted)


def refuses_writes(target: ServerTarget, *, seconds_max: float) -> bool:
    """Return whether super_read_only is ON; it does not exist before 5.7.8.

    False if the server does not answer: the script checks it again.
    """
    try:
        with closing(connect(target, timeout_seconds_max=seconds_max)) as connection:
            [row] = _answer(connection, "SELECT /*!50708 @@GLOBAL.super_read_only + */ 0")
    except (pymysql.MySQLError, OSError):
        return False
    return bool(row[0])


def _read(
    drift: ObjectDrift, ours: Connection, theirs: Connection, older: ServerVersion
) -> DifferingDefinition:
    questions = questions_of(drift, older)
    if not questions:
        return DifferingDefinition(drift)
    try:
        answers = [_one_row(each, questions) for each in (ours, theirs)]
        sizes = [_one_row(each, (bytes_of(drift.key),))[0] for each in (ours, theirs)]
    except pymysql.MySQLError as error:
        return DifferingDefinition(drift, unread=f"not read: {error.args[-1]}")
    has_values, rows_at = None, GtidSet()
    columns = [each for each in drift.changes if each.drift_class is DriftClass.COLUMN_FEWER]
    if columns and sizes[0] is not None and int(sizes[0]) <= SCANNED_BYTES_MAX:
        has_values, rows_at = _values(drift, ours)
    return DifferingDefinition(
        drift,
        answers={
            question: (source, replica)
            for question, source, replica in zip(questions, *answers, strict=True)
        },
        data_bytes=None if sizes[1] is None else int(sizes[1]),
        has_values=has_values,
        rows_at=rows_at,
    )


def _values(drift: ObjectDrift, source: Connection) -> tuple[bool | None, GtidSet]:
    """Return whether a row of the source has a value in an added column, and since which set.

    The set is read first: the rows contain all of it.
    """
    assert drift.key.kind is ObjectKind.TABLE, "views have no columns of their own"
    conditions = [
        value_condition(quote_identifier(each.name), each.source.raw)
        for each in drift.changes
        if each.drift_class is DriftClass.COLUMN_FEWER and each.source is not None
    ]
    table = f"{quote_identifier(drift.key.schema)}.{quote_identifier(drift.key.name)}"
    exists = f"EXISTS (SELECT 1 FROM {table} WHERE {' OR '.join(conditions)})"  # noqa: S608
    try:
        [executed] = _one_row(source, (EXECUTED,))
        [found] = _one_row(source, (exists,))
    except pymysql.MySQLError:
        return None, GtidSet()
    return bool(int(found or 0)), GtidSet.parse(executed or "")


def _one_row(connection: Connection, expressions: Iterable[str]) -> list[str | None]:
    [row] = _answer(connection, f"SELECT {', '.join(expressions)}")
    return [None if each is None else _text(each) for each in row]


def _text(value: object) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _answer(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())
