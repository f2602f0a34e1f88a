"""Questions about the clauses of columns: what ADD COLUMN and MODIFY COLUMN would do to rows.

A clause is as SHOW CREATE TABLE printed it. Texts in quotes are blanked before it is searched.
"""

import re
from typing import Final

from topology.definitions.canonical import QUOTED, ClauseKind
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.drift_classes import DriftClass
from topology.definitions.object_drift import ObjectDrift

_ODD: Final = re.compile(
    r"\b(?:AUTO_INCREMENT|GENERATED|VIRTUAL|STORED|ON UPDATE|INVISIBLE|SRID)\b|/\*!", re.IGNORECASE
)
# Their text is rounded: another value has the same one, and the default itself may be another.
_APPROXIMATE: Final = re.compile(r"\S+\s+(?:float|double|real)\b", re.IGNORECASE)
_CONSTANT: Final = r"(?:NULL|b?'(?:[^'\\]|'')*')"
_DEFAULT: Final = re.compile(rf" DEFAULT {_CONSTANT}")
_COMMENT: Final = re.compile(r" COMMENT '(?:[^'\\]|'')*'")


def is_added_at_end(drift: ObjectDrift, change: ClauseChange) -> bool:
    """Return whether a column comes after all that the replica has, and rows get a constant.

    Only at the end of the table its values were dropped: elsewhere they went to another column. A
    default such as CURRENT_TIMESTAMP would be evaluated now.
    """
    assert drift.source is not None, "the source has the column"
    assert drift.replica is not None, "both servers have the table"
    ours = [each.name.casefold() for each in drift.source.of(ClauseKind.COLUMN)]
    count = len(drift.replica.of(ClauseKind.COLUMN))
    fewer = {
        each.name.casefold()
        for each in drift.changes
        if each.drift_class is DriftClass.COLUMN_FEWER
    }
    clause = change.source
    assert clause is not None, "the source has the column"
    return set(ours[count:]) == fewer and _is_constant(clause.raw)


def _is_constant(raw: str) -> bool:
    plain = _blanked(raw)
    if _ODD.search(plain) or (_APPROXIMATE.match(plain) and not _defaults_to_null(raw)):
        return False
    if _DEFAULT.search(_COMMENT.sub("", raw)) is not None:
        return True
    return " NOT NULL" not in plain and " DEFAULT " not in plain


def _defaults_to_null(raw: str) -> bool:
    """Return whether a column gets NULL by default: it names no constant, or NULL."""
    default = _DEFAULT.search(_COMMENT.sub("", raw))
    return default is None or default[0] == " DEFAULT NULL"


def only_default_or_comment(source: str, replica: str) -> bool:
    """Return whether two clauses differ in nothing but a constant default and the comment."""
    ours, theirs = (_COMMENT.sub("", _DEFAULT.sub("", each)) for each in (source, replica))
    return ours == theirs and not any(_ODD.search(_blanked(each)) for each in (source, replica))


def depends_on_time_zone(raw: str) -> bool:
    """Return whether a clause prints a time in the zone of the session that asked for it.

    Two servers with other zones print one default differently, and another session that takes the
    text back sets another default.
    """
    is_timestamp = re.match(r"\S+\s+timestamp\b", _blanked(raw), re.IGNORECASE) is not None
    return is_timestamp and not _defaults_to_null(raw)


def value_condition(name: str, raw: str) -> str:
    """Return the condition that a row has another value than the default in a column.

    `name` is quoted. Values are compared as bytes: a collation may take different ones for equal.
    """
    if _defaults_to_null(raw):
        return f"{name} IS NOT NULL"
    return f"NOT (CAST({name} AS BINARY) <=> CAST(DEFAULT({name}) AS BINARY))"


def _blanked(text: str) -> str:
    return re.sub(QUOTED, "''", text, flags=re.DOTALL)
