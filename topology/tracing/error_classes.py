"""What an error that stopped a thread is about, by its text and by its number.

The text decides, because a number alone may have several meanings. A text that reports only that a
worker stopped is replaced by the error number beside it.
"""

from dataclasses import replace
from enum import Enum
from typing import Final

from topology.catalogue.definition_errors import DEFINITION_NUMBERS
from topology.catalogue.error_texts import NUMBERS
from topology.catalogue.explanations import READ_IT, Explanation, explain_error
from topology.tracing.stopped_threads import ReplicationThread, StoppedThread

_FOREIGN_KEY: Final = (1451, 1452)  # ER_ROW_IS_REFERENCED_2, ER_NO_REFERENCED_ROW_2


class ErrorClass(Enum):
    """What kind of difference between the servers would explain an error."""

    ABSENT = "an object is missing on the replica"
    PRESENT = "an object exists on the replica already"
    COLUMNS = "the definitions of a table differ"
    ROWS = "the rows of a table differ"
    OTHER = "neither definitions nor rows"


_OF_TITLE: Final = {
    DEFINITION_NUMBERS[1146]: ErrorClass.ABSENT,
    DEFINITION_NUMBERS[1050]: ErrorClass.PRESENT,
    DEFINITION_NUMBERS[1677]: ErrorClass.COLUMNS,
    DEFINITION_NUMBERS[1406]: ErrorClass.COLUMNS,
    DEFINITION_NUMBERS[1452]: ErrorClass.ROWS,
    NUMBERS[1062]: ErrorClass.ROWS,
    NUMBERS[1032]: ErrorClass.ROWS,
}


def meaning_of(failure: StoppedThread) -> Explanation | None:
    """Return what is known about the error; None if neither its text nor its number is known."""
    found = explain_error(failure.errno, failure.cause_text)
    if found is None:
        return None
    # Without the hint to read a quoted GTID: a trace has read it.
    advice = tuple(each for each in found.advice if not each.startswith(READ_IT))
    return replace(found, advice=advice)


def class_of(failure: StoppedThread) -> ErrorClass:
    """Return what would explain the error. A receiver's error is about no table."""
    meaning = meaning_of(failure)
    if meaning is None or failure.thread is ReplicationThread.RECEIVER:
        return ErrorClass.OTHER
    return _OF_TITLE.get(meaning.title, ErrorClass.OTHER)


def is_of_foreign_key(failure: StoppedThread) -> bool:
    """Return whether the error is about two tables: a foreign key refuses a row of one of them."""
    return failure.errno in _FOREIGN_KEY or "foreign key constraint fails" in failure.cause_text
