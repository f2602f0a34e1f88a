"""Runs one script on a server: the only code of gtid-audit that writes to one.

1. It sends what the `mysql` client would send, statement by statement (script_reader.py), and stops
   at the first error as the client does. Guards, idempotence and the behaviour when it is cut off
   anywhere are properties of the script, which the live tests prove with the client itself.
2. Each script has a connection of its own: what a script leaves in its session ends with it.
3. A repair holds a lock on every server that it concerns (GET_LOCK). The server releases it when
   the session ends: no crash leaves one behind, and repairs from other machines are excluded too.
"""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import pymysql

from binlog.adapters.server_errors import server_error, server_words
from repair.applying.script_reader import BrokenScript, ScriptReader
from topology.adapters.connection import Connection, connect
from topology.readings.target import ServerTarget

CONNECT_SECONDS_MAX: Final = 10.0
# A redone ALTER of a large table takes hours. TCP keepalive notices a server that is gone.
STATEMENT_SECONDS_MAX: Final = 7 * 24 * 3600.0
LOCK_NAME: Final = "gtid-audit repair"

_LOCK_SECONDS_IDLE: Final = 31_536_000  # the largest wait_timeout
# A server may need a moment to notice that the session of an ended process is gone.
_LOCK_SECONDS_WAITED: Final = 2
_NO_BACKSLASH_ESCAPES: Final = 0x200  # SERVER_STATUS_NO_BACKSLASH_ESCAPES (mysql_com.h)
_REFUSED_VALUE: Final = 1231  # how a guard stops a script (repair/sql/guard.py)
_GUARD_MESSAGE: Final = re.compile(r"can't be set to the value of '(.*)'$", re.DOTALL)


class ScriptStopped(Exception):
    """A script did not reach its end. The message has the server's words."""

    def __init__(self, statement: str, why: str, *, is_guard: bool, is_lost: bool = False) -> None:
        super().__init__(why)
        self.statement = statement
        self.is_guard = is_guard  # a condition of the script is false: the script is as intended
        self.is_lost = is_lost  # the connection ended: the statement may have been executed


class ServerBusy(Exception):
    """Another repair holds the lock of a server."""


def open_session(target: ServerTarget) -> Connection:
    """Open a connection whose statements may take long. Raises pymysql.MySQLError, OSError."""
    return connect(
        target,
        timeout_seconds_max=CONNECT_SECONDS_MAX,
        answer_seconds_max=STATEMENT_SECONDS_MAX,
        sends_batches=True,
    )


def run_script(connection: Connection, script: str, *, sending: Callable[[str], None]) -> str:
    """Run a script and return what its last SELECT returned, "" if there was none.

    `sending` is called with each statement before it is sent.

    Raises:
        ScriptStopped: a guard or another statement failed, or the connection was lost.
    """
    reader = ScriptReader(script)
    last, statement = "", ""
    try:
        while True:
            found = reader.next(backslash_escapes=_has_backslash_escapes(connection))
            if found is None:
                return last
            statement = found
            sending(statement)
            with connection.cursor() as cursor:
                cursor.execute(statement)
                row = cursor.fetchone()
                while cursor.nextset():  # a batch: each of its statements has an answer
                    row = cursor.fetchone()
            if row:
                last = str(next(iter(row.values())))
    except BrokenScript as error:
        raise ScriptStopped(statement, str(error), is_guard=False) from error
    except (pymysql.MySQLError, OSError) as error:
        raise _stopped(statement, error) from error


def _has_backslash_escapes(connection: Connection) -> bool:
    """Return whether a backslash escapes in the session's texts, as its last answer reports."""
    status: int = connection.server_status or 0  # type: ignore[attr-defined]  # not in the stubs
    return not status & _NO_BACKSLASH_ESCAPES


def _stopped(statement: str, error: pymysql.MySQLError | OSError) -> ScriptStopped:
    number = error.args[0] if error.args else 0
    text = str(error.args[-1]) if error.args else str(error)
    message = _GUARD_MESSAGE.search(text)
    if number == _REFUSED_VALUE and message is not None:
        return ScriptStopped(statement, message[1], is_guard=True)
    is_lost = isinstance(error, OSError) or server_error(error) is None
    return ScriptStopped(statement, server_words(error), is_guard=False, is_lost=is_lost)


class ServerLock:
    """The lock of one server, held over a connection of its own."""

    def __init__(self, target: ServerTarget) -> None:
        """Take the lock. Raises ServerBusy, pymysql.MySQLError, OSError."""
        self._connection = connect(target, timeout_seconds_max=CONNECT_SECONDS_MAX)
        try:
            self.server_uuid = str(self._value("@@GLOBAL.server_uuid")).lower()
            with self._connection.cursor() as cursor:
                cursor.execute(f"SET SESSION wait_timeout = {_LOCK_SECONDS_IDLE}")
            self._take()
        except BaseException:
            self._connection.close()
            raise

    @property
    def is_held(self) -> bool:
        """Return whether this session still has the lock."""
        try:
            return bool(self._value(f"IS_USED_LOCK('{LOCK_NAME}') <=> CONNECTION_ID()"))
        except (pymysql.MySQLError, OSError):
            return False

    def close(self) -> None:
        """Release the lock by ending its session."""
        if self._connection.open:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take(self) -> None:
        if self._value(f"GET_LOCK('{LOCK_NAME}', {_LOCK_SECONDS_WAITED})") == 1:
            return
        holder = self._value(f"IS_USED_LOCK('{LOCK_NAME}')")
        raise ServerBusy(
            f"another repair is at work there: its session is {holder}. If that process is gone and"
            f" the server has not noticed it yet, run KILL {holder}"
        )

    def _value(self, expression: str) -> object:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {expression} AS value")
            row = cursor.fetchone()
        assert row is not None, "a SELECT without a table has one row"
        return row["value"]
