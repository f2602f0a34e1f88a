"""Translates what a server or the driver answers instead of data: errors, and malformed responses.

1. PyMySQL raises one class of errors for two things. Codes from 2000 to 2999 are its own: the
   connection failed. All others are the server's: it executed or rejected the statement.
2. A proxy may return other columns, OK instead of rows, or NULL where MySQL never returns NULL.
   Reading such a response fails with the same exceptions as a defect of gtid-audit (KeyError,
   IndexError, None has no …). So all code that reads a response runs within `read_answer`, and no
   other code does.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql

from binlog.errors import DumpBroken, StatementRefused, UnexpectedAnswer
from gtid import GtidError

_CLIENT_ERRORS = range(2000, 3000)


def server_error(error: pymysql.MySQLError) -> tuple[int, str] | None:
    """Return the number and text of the server's error, or None for an error of the connection."""
    code = error.args[0] if error.args else 0
    if isinstance(code, int) and code and code not in _CLIENT_ERRORS:
        return code, str(error.args[-1])
    return None


def broken(error: pymysql.MySQLError | OSError) -> DumpBroken:
    """Return the error for a connection that failed or was lost."""
    text = error.args[-1] if isinstance(error, pymysql.MySQLError) and error.args else error
    return DumpBroken(f"the connection broke: {text}")


@contextmanager
def statements_refused() -> Iterator[None]:
    """Provide a context for statements. Raises StatementRefused, DumpBroken."""
    try:
        yield
    except pymysql.MySQLError as error:
        if (refused := server_error(error)) is not None:
            code, text = refused
            raise StatementRefused(code=code, text=text) from error
        raise broken(error) from error
    except OSError as error:
        raise broken(error) from error


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


def server_words(error: Exception) -> str:
    """Return an error for a report: number and text of a server's or driver's, else its text.

    Only numbers of MySQL are called "error …": an errno is not one, nor is what else an exception
    may have as its first argument.
    """
    if isinstance(error, pymysql.MySQLError) and len(error.args) > 1:
        return f"error {error.args[0]}: {error.args[1]}"
    return str(error)
