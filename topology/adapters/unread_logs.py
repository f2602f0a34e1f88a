"""The reasons why something of a server or of its logs could not be read, as unread facts."""

from typing import Final

import pymysql

from binlog.errors import BinlogError, DumpBroken, DumpRefused, DumpTimedOut, StatementRefused
from binlog.schema.sql_words import CannotFollow
from gtid import GtidError
from topology.adapters.unread import unread_fact
from topology.readings.snapshot import UnreadFact, UnreadReason

# What reading logs, definitions or answers may raise.
FAILED: Final = (BinlogError, GtidError, CannotFollow, pymysql.MySQLError, OSError)


class SearchTimeUp(BinlogError):
    """A search of logs was ended by its own limit; the server answered until then."""

    def __init__(self, *, seconds_max: float) -> None:
        super().__init__(f"the search was not complete after {seconds_max:g} s")
        self.seconds_max = seconds_max


def fact_not_read(fact: str, error: Exception) -> UnreadFact:
    """Return the unread fact of an error of a server, a connection or a log."""
    if isinstance(error, DumpRefused | StatementRefused):
        answer = pymysql.err.OperationalError(error.code, error.text)
        return unread_fact(fact, answer, timed_out=False)
    if isinstance(error, DumpTimedOut | SearchTimeUp):
        return UnreadFact(fact, UnreadReason.TIMEOUT, str(error))
    if isinstance(error, DumpBroken):
        return UnreadFact(fact, UnreadReason.UNREACHABLE, str(error))
    if isinstance(error, pymysql.MySQLError | OSError):
        return unread_fact(fact, error, timed_out=False)
    if isinstance(error, BinlogError):
        return UnreadFact(fact, UnreadReason.ERROR, str(error))
    return UnreadFact(fact, UnreadReason.UNPARSEABLE, str(error))
