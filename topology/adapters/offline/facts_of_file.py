"""What was found in the pasted output of one server, and the facts that are unread. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from gtid import GtidError
from topology.adapters.offline.pasted_output import PastedOutput, PastedResult
from topology.adapters.offline.pasted_sets import PastedSetProblem
from topology.adapters.offline.recognised import PastedKind, kind_of, kind_of_statement
from topology.readings.snapshot import UnreadFact, UnreadReason

T = TypeVar("T")
_DENIED: Final = frozenset({1044, 1142, 1143, 1227, 1370})
_ERROR_CHARACTERS_MAX: Final = 200
# The fact that is unread if a statement of this kind is missing, refused or cut.
_FACTS: Final = {
    PastedKind.CHANNELS: "channels",
    PastedKind.WORKERS: "workers",
    PastedKind.PROCESSES: "workers",
    PastedKind.ROW_LOCKS: "workers",
    PastedKind.LOG_END: "log_end",
    PastedKind.BINARY_LOGS: "binary_logs",
    PastedKind.VARIABLES: "settings",
    PastedKind.SOURCES_OF_VALUES: "sources of settings",
    PastedKind.GROUP: "group",
    PastedKind.VALUES: "gtid_executed",
    PastedKind.UPTIME: "uptime_seconds",
}


@dataclass(frozen=True, slots=True)
class PastedFile:
    """One file with the output of one server, and when it was last written to."""

    name: str  # of the file, as it is shown
    server: str
    cluster: str
    saved_at: datetime


@dataclass(slots=True)
class FactsOfFile:
    """What was found in one file, by kind, and the facts that are unread."""

    output: PastedOutput
    unread: list[UnreadFact] = field(default_factory=list)

    def last(self, kind: PastedKind) -> tuple[int, PastedResult] | None:
        """Return the last result of a kind, with its number."""
        for at in reversed(range(len(self.output.results))):
            result = self.output.results[at]
            columns = result.table.columns
            found = kind_of(columns) if columns else kind_of_statement(result.statement)
            if found is kind:
                return at, result
        return None

    def note(self, fact: str, reason: UnreadReason, detail: str) -> None:
        """Note an unread fact, once."""
        unread = UnreadFact(fact, reason, detail)
        if unread not in self.unread:
            self.unread.append(unread)

    def missing(self, kind: PastedKind, statement: str, fact: str = "") -> None:
        """Note that a fact was not pasted, or why its statement was refused or is cut."""
        name = fact or _FACTS[kind]
        for table in self.output.cut:
            if kind_of(table.columns) is kind:
                detail = f"line {table.line}: the result is not complete: {table.cut}"
                self.note(name, UnreadReason.UNPARSEABLE, detail)
                return
        for refused in reversed(self.output.refused):
            if kind_of_statement(refused.statement) is kind:
                is_denied = refused.errno in _DENIED
                reason = UnreadReason.PRIVILEGE if is_denied else UnreadReason.ERROR
                text = refused.text[:_ERROR_CHARACTERS_MAX]
                self.note(name, reason, f"{refused.errno}: {text} (line {refused.line})")
                return
        self.note(name, UnreadReason.NOT_PASTED, f"run {statement}")

    def take(self, fact: str, line: int, read: Callable[[], T]) -> T | None:
        """Return a fact; note it with its line if it cannot be parsed. Raises PastedSetProblem."""
        try:
            return read()
        except GtidError as error:
            raise PastedSetProblem(line, f"{fact}: {error}") from error
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            self.note(fact, UnreadReason.UNPARSEABLE, f"line {line}: {error}")
            return None
