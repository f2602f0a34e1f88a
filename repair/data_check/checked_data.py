"""The result of a data check, and what is recorded of each part so that a check can go on. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from repair.data_check.part_comparison import RowDifference
from repair.data_check.part_queries import KeyValues
from topology.catalogue.findings import Verdict

ROWS_KEPT_MAX: Final = 100  # differing rows of a table that are listed


class PartState(Enum):
    """What is known of a part."""

    SAME = "same"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"


@dataclass(frozen=True, slots=True)
class UnlikeRow:
    """A row that differs, by its key as text."""

    key: KeyValues
    state: RowDifference


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """One part of a table that was compared."""

    schema: str
    table: str
    key: str  # the name of the key; "": the table has none, and this part is all of it
    upper: KeyValues | None  # None: the table's last part
    definition: str  # of the table when it was compared: another one makes the part worthless
    rows: int  # on the first server
    state: PartState
    different: int = 0  # rows
    listed: tuple[UnlikeRow, ...] = ()
    why: str = ""  # if it is unsettled, or what else is known of a difference


@dataclass(slots=True)
class CheckedTableResult:
    """A table: its parts together, or why it was not compared."""

    schema: str
    table: str
    key: str = ""
    rows: int = 0
    parts: int = 0
    different: int = 0
    listed: list[UnlikeRow] = field(default_factory=list)
    whys: list[str] = field(default_factory=list)
    unsettled: int = 0  # parts
    unread: str = ""
    note: str = ""  # what of its values is not compared
    missing_on: str = ""  # the name of the server that does not have the table
    is_whole: bool = False  # its last part was compared

    def add(self, part: CheckedPart) -> None:
        """Count one more part."""
        self.key, self.parts, self.rows = part.key, self.parts + 1, self.rows + part.rows
        self.is_whole = self.is_whole or part.upper is None
        if part.state is PartState.UNSETTLED:
            self.unsettled += 1
        self.different += part.different
        self.listed += part.listed[: ROWS_KEPT_MAX - len(self.listed)]
        if part.why and part.why not in self.whys:
            self.whys.append(part.why)

    @property
    def verdict(self) -> Verdict:
        """Return CRITICAL if rows differ, UNKNOWN if not all of them were compared, else OK."""
        if self.different or self.missing_on:
            return Verdict.CRITICAL
        if self.unread or self.unsettled or not self.is_whole:
            return Verdict.UNKNOWN
        return Verdict.OK


@dataclass(frozen=True, slots=True)
class CheckedData:
    """The result of a data check of two servers."""

    left: str
    right: str
    tables: Sequence[CheckedTableResult]
    unread: str = ""  # why nothing more was compared
    earlier_parts: int = 0  # that an earlier run compared
    apart: str = ""  # what one has not executed, if they were compared as they are

    @property
    def verdict(self) -> Verdict:
        """Return CRITICAL if rows differ, UNKNOWN if something was not compared, else OK.

        A check that compared no table at all is UNKNOWN.
        """
        of_tables = [each.verdict for each in self.tables]
        if Verdict.CRITICAL in of_tables:
            return Verdict.CRITICAL
        if self.unread or not of_tables or Verdict.UNKNOWN in of_tables:
            return Verdict.UNKNOWN
        return Verdict.OK
