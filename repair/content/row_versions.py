"""Rows that differ between two servers but should be equal, as they were read for a plan.

Pure: repair/adapters/affected_rows.py selects and reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from binlog.rows.tables import RowTable
from binlog.rows.values import Image, RowChange


@dataclass(frozen=True, slots=True)
class RowVersions:
    """One row of a table with a key, on both servers; None where it does not exist."""

    table: RowTable
    where: str  # the condition that finds it by its key
    source: Image | None
    replica: Image | None
    # The columns that differ, as text: name, the source's value, the replica's. None is NULL, or no
    # such row.
    differing: tuple[tuple[str, str | None, str | None], ...]

    def __post_init__(self) -> None:
        if not self.table.key:
            raise ValueError(f"{self.table.name}: a row without a key cannot be found again")
        if self.source is None and self.replica is None:
            raise ValueError(f"{self.table.name}: a row that exists on neither server")

    @property
    def change(self) -> RowChange:
        """Return the change that makes the replica's row equal to the source's."""
        return RowChange(before=self.replica, after=self.source)

    @property
    def reversed(self) -> RowVersions:
        """Return the row with its two versions exchanged: the replica's is to be written."""
        differing = tuple((name, ours, theirs) for name, theirs, ours in self.differing)
        return replace(self, source=self.replica, replica=self.source, differing=differing)

    @property
    def order(self) -> int:
        """Return the rank of its change: deleted rows first, so that unique key values are free."""
        if self.source is None:
            return 0
        return 2 if self.replica is None else 1


def by_table(rows: Iterable[RowVersions]) -> Iterator[tuple[RowVersions, ...]]:
    """Yield the rows of each table, in the order in which a script may change them."""

    def table(row: RowVersions) -> tuple[str, str]:
        return row.table.schema, row.table.table

    ordered = sorted(rows, key=lambda row: (*table(row), row.order))
    for _, of_table in groupby(ordered, key=table):
        yield tuple(of_table)


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of one finding: those that differ, how many do not, and what was not read."""

    rows: tuple[RowVersions, ...] = ()
    equal_count: int = 0
    unread: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether the transactions changed rows, and all of these were read."""
        return not self.unread and bool(self.rows or self.equal_count)

    @property
    def is_equal(self) -> bool:
        """Return whether all rows were read, and none differs."""
        return self.is_complete and not self.rows
