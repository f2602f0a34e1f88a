"""Converts a response that no MySQL server sends into an error of the server.

A proxy may return other columns, OK instead of rows, or NULL where MySQL never returns NULL.
Reading such a response fails with the same exceptions as a defect of gtid-audit (KeyError,
IndexError, None has no …). So all code that reads a response runs within `read_answer`, and no
other code does.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from binlog.errors import UnexpectedAnswer
from gtid import GtidError

_OF_READING = (
    LookupError, ValueError, TypeError, AttributeError, ArithmeticError, GtidError
)  # fmt: skip


@contextmanager
def read_answer(what: str) -> Iterator[None]:
    """Provide a context to read a response; `what` describes it. Raises UnexpectedAnswer."""
    try:
        yield
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
        GtidError,
    ) as error:
        raise UnexpectedAnswer(what=what, found=f"{type(error).__name__}: {error}") from error
