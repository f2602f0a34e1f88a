"""Rows that two servers should hold alike and do not, as they were read for a plan.

Pure: who reads them, and which they are, is gtid_audit/affected_rows.py's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from binlog.rows.tables import RowTable
from binlog.rows.values import Image, RowChange


@dataclass(frozen=True, slots=True)
class RowVersions:
    """One row of a table with a key, on both servers; None where it is not there."""

    table: RowTable
    where: str  # the condition that finds it by its key
    source: Image | None
    replica: Image | None
    # The columns in which they differ, as text: name, the source's value, the replica's. None is
    # NULL, or no such row.
    differing: tuple[tuple[str, str | None, str | None], ...]

    def __post_init__(self) -> None:
        if not self.table.key:
            raise ValueError(f"{self.table.name}: a row without a key cannot be found again")
        if self.source is None and self.replica is None:
            raise ValueError(f"{self.table.name}: a row that is nowhere")

    @property
    def change(self) -> RowChange:
        """Return what makes the replica's row like the source's."""
        return RowChange(before=self.replica, after=self.source)

    @property
    def order(self) -> int:
        """Rank what is done to it: what goes makes room for what comes, in unique keys."""
        if self.source is None:
            return 0
        return 2 if self.replica is None else 1


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows behind one finding: those that differ, how many do not, and what was not read."""

    rows: tuple[RowVersions, ...] = ()
    equal_count: int = 0
    unread: tuple[str, ...] = ()
