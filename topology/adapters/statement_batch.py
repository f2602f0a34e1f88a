"""Sends several statements as one text, and returns the answer to each.

How it works
------------
A round trip over TLS costs both sides more than most answers do, and a reading has ten. The server
executes the statements of a text one after the other, and begins none before the one ahead of it
has ended. So the order of the statements, which is part of the proof of a reading (mysql.py), is
that of the text.

    sent        UPTIME;STATUS;WORKERS;LOG
    received    rows, more follow | rows, more follow | error          the server stops there
    rows(UPTIME), rows(STATUS)    the first two answers
    rows(WORKERS)                 asked again on its own: the error is that of the statement itself,
                                  or of a server that rejects several statements
    rows(LOG)                     asked on its own: it comes after WORKERS, as before

Each answer has the time limit and the bytes of an answer to a single statement. An answer is read
when it is asked for, so a connection that is lost is lost while reading that fact.

Invariant: answers are assigned by their number. Each but the last says that more follow. If one
says otherwise, a proxy has answered in its own way: that answer is not used, and the rest is asked
statement by statement. An answer after the last one is an error of the protocol.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import pymysql

from topology.adapters.answered_rows import Row, expected_rows, rows_of
from topology.adapters.connection import Connection
from topology.adapters.connection_errors import MalformedAnswer


class StatementBatch:
    """Statements that are sent together, once the first of them is asked for."""

    def __init__(self, connection: Connection, statements: Sequence[str]) -> None:
        self._connection = connection
        self._cursor: Any = None
        self._due = deque(statements)
        # Answers that came before those that were asked for: columns and rows, by statement.
        self._early: dict[str, tuple[list[str], list[Row]]] = {}

    def rows(self, statement: str, *expected: str) -> list[Row]:
        """Return the rows of the answer, as rows_of does, also to a statement of no batch."""
        while self._due and statement not in self._early:
            # Another statement must not be sent before the server has answered these.
            self._receive()
        if statement in self._early:
            columns, rows = self._early.pop(statement)
            return expected_rows(columns, rows, *expected)
        return rows_of(self._connection, statement, *expected)

    def _receive(self) -> None:
        """Receive the next answer. If there is none, nothing is due any more."""
        statement = self._due.popleft()
        try:
            if self._cursor is None:
                self._cursor = self._connection.cursor()
                self._cursor.execute(";".join((statement, *self._due)))
            else:
                self._cursor.nextset()
        except pymysql.MySQLError as error:
            # Imported for an error only: `pair` starts without the modules that read logs.
            from binlog.adapters.server_errors import server_error

            if server_error(error) is None:
                raise
            self._due.clear()
            return
        follows = bool(self._connection.has_more_results)  # type: ignore[attr-defined]
        if follows and not self._due:
            raise MalformedAnswer(ValueError("more results than statements"))
        if self._due and not follows:
            self._due.clear()
            return
        columns = [column[0] for column in self._cursor.description or ()]
        self._early[statement] = columns, list(self._cursor.fetchall())
