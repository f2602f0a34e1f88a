"""The sets of one server from its pasted output, in the order in which they were read. Pure.

How it works
------------
gtid-audit reads gtid_owned, then gtid_purged, then gtid_executed (adapters/mysql.py): a transaction
that commits meanwhile is in one of them. A person executes statements in any order, minutes apart.
Each value has its place in the file: the number of the result, and the column or row in it. So

1. gtid_executed is the newest one in the file, also that of SHOW REPLICA STATUS and SHOW BINARY LOG
   STATUS. It must contain every earlier one: a set that shrinks belongs to another server, or to a
   server that was reset in between.
2. gtid_owned must be before it. If it is after the newest gtid_executed, a transaction may have
   left the one and not be in the other, and gtid_owned does not count as read.
3. The end of the log holds what was executed before it was read. If the newest gtid_executed was
   read after it and has more, the end does not count as read.

Only global values count. A session has a gtid_owned of its own, and before 8.0 a gtid_executed of
its own, which is empty (5.6.24).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gtid import GtidError, GtidSet
from topology.adapters.offline.pasted_output import PastedOutput, PastedResult
from topology.adapters.offline.recognised import (
    EXECUTED_COLUMN,
    PastedKind,
    is_global,
    kind_of,
    variable_of,
)
from topology.readings.version import ServerVersion

_SESSION_HAS_NONE: Final = ServerVersion(8, 0, 0)  # @@SESSION.gtid_executed was removed
_AT_ITS_END: Final = 1 << 30  # a status has its set behind all columns of a SELECT


class PastedSetProblem(Exception):
    """A set in a file is malformed, or two of them are not of one server. Has the line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True, order=True)
class PastedValue:
    """A value with its place: the number of the result, and of the column or row in it."""

    result: int
    part: int
    line: int
    text: str
    is_global: bool

    @property
    def place(self) -> tuple[int, int]:
        """Return what orders values by the time of reading."""
        return self.result, self.part


def values_in(results: Sequence[PastedResult], name: str) -> Iterator[PastedValue]:
    """Yield the values of a variable, in the order of reading. NULL is none."""
    for at, result in enumerate(results):
        table = result.table
        kind = kind_of(table.columns)
        if kind is PastedKind.VARIABLES:
            for part, row in enumerate(table.rows):
                text = row["Value"]
                if (row["Variable_name"] or "").lower() == name and text is not None:
                    yield PastedValue(at, part, table.line, text, is_global(result.statement))
        if kind is not PastedKind.VALUES:
            continue  # the members of a group also have a server_uuid
        for part, column in enumerate(table.columns):
            variable = variable_of(column)
            text = table.rows[0][column] if table.rows else None
            if variable is not None and variable[0] == name and text is not None:
                yield PastedValue(at, part, table.line, text, variable[1])


def last_value(results: Sequence[PastedResult], name: str) -> PastedValue | None:
    """Return the last value of a variable."""
    return next(iter(reversed([*values_in(results, name)])), None)


def check_whole(text: str, name: str, *, line: int) -> None:
    """Raise PastedSetProblem if lines are missing at the end of a set: it would parse without."""
    if text.rstrip().endswith(","):
        raise PastedSetProblem(line, f"{name} ends with a comma: the rest of it is missing")


def parse_set(value: PastedValue, name: str) -> GtidSet:
    """Parse a set. Raises PastedSetProblem."""
    check_whole(value.text, name, line=value.line)
    try:
        return GtidSet.parse(value.text)
    except GtidError as error:
        raise PastedSetProblem(value.line, f"{name}: {error}") from error


@dataclass(frozen=True, slots=True)
class ExecutedSet:
    """gtid_executed, and when it was read."""

    value: PastedValue
    gtids: GtidSet


def executed_in(output: PastedOutput, version: ServerVersion | None) -> ExecutedSet | None:
    """Return the newest gtid_executed. Raises PastedSetProblem.

    The set in the header of a dump counts if there is no other one: the server had executed it.
    """
    newest: ExecutedSet | None = None
    for value in sorted(_executed(output, version)):
        found = ExecutedSet(value, parse_set(value, "gtid_executed"))
        if newest is not None and not newest.gtids <= found.gtids:
            gone = (newest.gtids - found.gtids).shortened()
            raise PastedSetProblem(
                value.line,
                f"gtid_executed does not contain {gone}, and did on line {newest.value.line}: the"
                " output is of two servers, or the server was reset in between",
            )
        newest = found
    if newest is None and output.dumped:
        dumped = output.dumped[-1]
        value = PastedValue(-1, 0, dumped.line, dumped.text, is_global=True)
        return ExecutedSet(value, parse_set(value, "GTID_PURGED of the dump"))
    return newest


def _executed(output: PastedOutput, version: ServerVersion | None) -> Iterator[PastedValue]:
    session_too = version is not None and version >= _SESSION_HAS_NONE
    for value in values_in(output.results, "gtid_executed"):
        if value.is_global or session_too:
            yield value
    for at, result in enumerate(output.results):
        if kind_of(result.table.columns) not in (PastedKind.CHANNELS, PastedKind.LOG_END):
            continue
        for number, row in enumerate(result.table.rows):
            text = row.get(EXECUTED_COLUMN)
            if text is not None:
                part = _AT_ITS_END + number
                yield PastedValue(at, part, result.table.line, text, is_global=True)


def owned_in(output: PastedOutput, executed: ExecutedSet | None) -> PastedValue | None:
    """Return the last gtid_owned that was read before the newest gtid_executed."""
    found = [each for each in values_in(output.results, "gtid_owned") if each.is_global]
    if executed is not None:
        found = [each for each in found if each.place < executed.value.place]
    return found[-1] if found else None


def is_before_end(executed: ExecutedSet | None, *, at: int, status_set: str | None) -> bool:
    """Return whether everything executed lies before an end of the log, read as result `at`.

    `status_set` is the set of the same row. Raises PastedSetProblem.
    """
    if executed is None or executed.value.result <= at:
        return True
    if status_set is None:
        return False
    value = PastedValue(at, _AT_ITS_END, executed.value.line, status_set, is_global=True)
    return executed.gtids <= parse_set(value, EXECUTED_COLUMN)
