"""The errors of the Python interface, and the translation of our own errors into them.

No message contains a password: those that the commands print do not, and texts of other programs
are stripped of what looks like an account.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gtid_audit.exits import USAGE_PROBLEMS, UnreadableInput
from gtid_audit.optional_packages import MissingExtra
from gtid_audit.output import without_credentials


class GtidAuditError(Exception):
    """The root of the errors of this interface. `problems`: one text for each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems


class InvalidRequest(GtidAuditError, ValueError):
    """The arguments are wrong: an address, an account, a fleet file, a limit.

    A fleet file has all of its problems in `problems`, in order of their lines.
    """


class MissingPackage(GtidAuditError, ImportError):
    """A package is not installed. The text has the command that installs the smallest extra."""


class UnreadableSource(GtidAuditError):
    """A stored run, a log or a server of logs could not be read."""


class GtidAuditWarning(UserWarning):
    """What the commands print on standard error: an option file that every user can read, say."""


def warn_caller(text: str) -> None:
    """Issue a GtidAuditWarning."""
    warnings.warn(text, GtidAuditWarning, stacklevel=2)


def say_nothing(_text: str) -> None:
    """Ignore a text about progress."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise a GtidAuditError for each of our own errors that is raised inside."""
    try:
        yield
    except MissingExtra as problem:
        raise MissingPackage(*problem.problems) from None
    except UnreadableInput as problem:
        raise UnreadableSource(*_public(problem.problems)) from problem
    except USAGE_PROBLEMS as problem:
        raise InvalidRequest(*_public(problem.problems)) from None


def _public(problems: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(without_credentials, problems))
