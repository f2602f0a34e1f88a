"""Turns what a server answers, and no MySQL server would, into an error of the server's.

A proxy may answer with other columns, with OK instead of rows, or with NULL where no NULL can be.
Reading such an answer fails as a defect of ours would (KeyError, IndexError, None has no …): so
every reader of an answer does it within `read_answer`, and nothing else is done there.
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
    """Read the answer to a question, in words: "its settings". Raises UnexpectedAnswer."""
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
