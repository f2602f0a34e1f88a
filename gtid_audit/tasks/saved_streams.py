"""Writes what a plan leaves out as SQL, where it is too much for the plan's own text.

How it works
------------
1. A plan may say that the content of transactions is saved in a file that is streamed from the log
   of a server (StreamedContent). `check` reads these transactions and writes the SQL to a temporary
   file without a name, as `binlog show --redo` does: memory holds one event at a time. It returns
   why the SQL of some cannot be written. Then the plan is made again, and says what is not saved.
2. `parts` returns the content of the file when the directory of the plan is written. So a plan says
   "saved" only where the whole file exists: no server is asked again in between.
"""

from __future__ import annotations

import errno
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import IO, TYPE_CHECKING, Final

import pymysql

from binlog.errors import BinlogError
from binlog.schema.sql_words import CannotFollow
from gtid import GtidSetTooLarge
from gtid_audit.exits import UsageProblem
from repair.model.strategy_case import Saved, StreamedContent
from topology.readings.target import ServerTarget

if TYPE_CHECKING:
    from binlog.schema.table_definitions import TableDefinition
    from binlog.schema.table_history import Place, TableKey
    from gtid_audit.tasks.requested_transactions import RequestedTransactions
    from repair.adapters.tables_now import LoggedDefinitions

_PART_BYTES: Final = 1024**2


class _CannotWrite(Exception):
    """Why the SQL of transactions cannot be written, for the operator."""


class SavedStreams:
    """The files of saved content that are streamed, each written once."""

    def __init__(
        self,
        targets: Mapping[str, ServerTarget],
        *,
        seconds_max: float,  # for each answer of a server
        say: Callable[[str], None],
    ) -> None:
        self._targets = targets
        self._seconds_max = seconds_max
        self._say = say
        self._files: dict[StreamedContent, IO[bytes]] = {}
        self._held = ExitStack()
        weakref.finalize(self, self._held.close)

    def check(self, saved: Iterable[Saved]) -> dict[str, str]:
        """Write the files; return why some cannot be written, by the id of the finding.

        Raises UsageProblem: the disk of this machine is full.
        """
        problems: dict[str, str] = {}
        for each in saved:
            if not isinstance(each, StreamedContent) or each in self._files:
                continue
            self._say(f"saving {each.gtids.gtid_count:,} transactions of {each.read_from} as SQL")
            file = self._held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            try:
                self._write(each, file)
            except _CannotWrite as problem:
                problems[each.finding_id] = str(problem)
            except (pymysql.MySQLError, BinlogError, GtidSetTooLarge, OSError, UsageProblem) as why:
                _refuse_full_disk(each, why)
                problems[each.finding_id] = f"{each.read_from}: {why}"
            else:
                self._files[each] = file
        return problems

    def parts(self, saved: StreamedContent) -> Iterator[bytes]:
        """Yield the content of a file that `check` has written. Raises OSError."""
        file = self._files[saved]
        file.seek(0)
        while part := file.read(_PART_BYTES):
            yield part

    def _write(self, saved: StreamedContent, file: IO[bytes]) -> None:
        """Write the SQL of transactions. Raises _CannotWrite, and what reading a log raises."""
        from gtid_audit.operands.definition_sources import GivenDefinitions
        from gtid_audit.operands.logs_from_operands import LogServer
        from gtid_audit.tasks.requested_transactions import RequestedTransactions
        from repair.adapters.tables_now import Definitions, LogBehind, LoggedDefinitions

        source = LogServer(self._targets[saved.read_from])
        connect = source.connector(seconds_max=self._seconds_max)
        with closing(connect()) as connection:
            behind = LogBehind(connect, self._seconds_max)
            logged = LoggedDefinitions(Definitions(connection, self._say), behind, self._say)

            def tracked(key: TableKey, place: Place) -> TableDefinition:
                return _definition(logged, key, place)

            known = GivenDefinitions({}, tracked=tracked, say=self._say)
            _fill(file, RequestedTransactions(saved.gtids, source, self._seconds_max, known))


def _refuse_full_disk(saved: StreamedContent, problem: Exception) -> None:
    """Raise UsageProblem if only this machine keeps the content from being saved."""
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        raise UsageProblem(
            f"{saved.file_name}: no space is left in {tempfile.gettempdir()} for what the plan"
            " leaves out; set TMPDIR to a directory that has more"
        ) from problem


def _definition(logged: LoggedDefinitions, key: TableKey, place: Place) -> TableDefinition:
    """Return the definition of a table as a plan reads it. Raises CannotFollow: there is none."""
    found = logged.at(place.file, place.position)(key.schema, key.table)
    if found is None:
        why = logged.changed.get((key.schema, key.table), "its definition was not read")
        raise CannotFollow(why=f"{key.schema}.{key.table}: {why}")
    return found


def _fill(file: IO[bytes], run: RequestedTransactions) -> None:
    """Write the SQL of the transactions of a run. Raises _CannotWrite."""
    from gtid_audit.tasks.replay_output import fill
    from gtid_audit.tasks.scripted_transactions import ScriptedTransactions
    from repair.sql.replay_script import Direction, script_lines

    with closing(ScriptedTransactions(run, is_undo=False, keeps_gtids=False)) as transactions:
        if not transactions.problems and not run.missing:
            fill(file, script_lines(Direction.REDO, transactions))
        for label, why in transactions.problems:
            raise _CannotWrite(f"{label}: {why}")
    if run.missing:
        raise _CannotWrite(f"the server did not send {run.missing.shortened()}")
