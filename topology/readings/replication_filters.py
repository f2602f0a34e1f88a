"""Replication filters: whether they explain that a server did not apply changes of some tables.

1. The rules are those of the manual, "How Servers Evaluate Replication Filtering Rules": first the
   database-level options, then the table-level ones. Rows count by the schema of their table.
2. Binary log filters (binlog_do_db, binlog_ignore_db) omit changes from the log, not from the
   tables. In the log the two look the same, so they are an explanation as well.
3. Each channel has its own filters: a filter for another source explains nothing.
4. Pure: the input is the filters as SHOW REPLICA STATUS and SHOW BINARY LOG STATUS list them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from topology.readings.like_pattern import like_pattern

Table: TypeAlias = tuple[str, str]
"""Schema and table; of a statement whose tables are not known, the default schema and ''."""

# In nearly every statement, the name after one of these words is a table name.
_NAMED = re.compile(
    r"\b(?:TABLE(?:\s+IF(?:\s+NOT)?\s+EXISTS)?|INTO|UPDATE|FROM|VIEW|ON|JOIN)\s+"
    r"(?:(?P<schema>[\w$]+)\s*\.\s*)?(?P<table>[\w$]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FilterEffect:
    """What filters do with the changes of a table, and which of them decide it."""

    leaves_out: bool
    names: tuple[str, ...]  # of ReplicationFilters; () if no filter concerns the table

    @property
    def is_by_database(self) -> bool:
        """Return whether a database-level filter decides."""
        return any(name in ("do_db", "ignore_db") for name in self.names)

    def has(self, column: str) -> bool:
        """Return whether the filter of a column of SHOW REPLICA STATUS decides."""
        return _field_of(column) in self.names


def _field_of(column: str) -> str:
    return column.lower().removeprefix("replicate_").removeprefix("binlog_")


@dataclass(frozen=True, slots=True)
class ReplicationFilters:
    """The filters of one channel or log, by the names of their columns; each value is a list."""

    do_db: frozenset[str] = frozenset()
    ignore_db: frozenset[str] = frozenset()
    do_table: frozenset[str] = frozenset()
    ignore_table: frozenset[str] = frozenset()
    wild_do_table: frozenset[str] = frozenset()
    wild_ignore_table: frozenset[str] = frozenset()
    _patterns: dict[str, re.Pattern[str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, columns: Iterable[tuple[str, str]]) -> "ReplicationFilters":
        """Return the filters from columns such as ("Replicate_Ignore_DB", "a,b"); ignore others."""
        found: dict[str, frozenset[str]] = {}
        for column, text in columns:
            name = _field_of(column)
            if name in cls.__slots__ and not name.startswith("_"):
                items = frozenset(item.strip() for item in text.split(",") if item.strip())
                found[name] = found.get(name, frozenset()) | items
        return cls(**found)  # type: ignore[arg-type]

    def leave_out(self, table: Table) -> bool:
        """Return whether changes of a table are filtered out."""
        return self.effect_on(table).leaves_out

    def effect_on(self, table: Table) -> FilterEffect:
        """Return whether changes of a table are filtered out, and which filters decide that."""
        schema, name = table
        passed: tuple[str, ...] = ()
        if self.do_db:
            if schema not in self.do_db:
                return FilterEffect(leaves_out=True, names=("do_db",))
            passed = ("do_db",)
        elif self.ignore_db:
            if schema in self.ignore_db:
                return FilterEffect(leaves_out=True, names=("ignore_db",))
            passed = ("ignore_db",)
        if not name:
            return FilterEffect(leaves_out=False, names=passed)
        whole = f"{schema}.{name}"
        if whole in self.do_table:
            return FilterEffect(leaves_out=False, names=(*passed, "do_table"))
        if whole in self.ignore_table:
            return FilterEffect(leaves_out=True, names=("ignore_table",))
        if self._matches(self.wild_do_table, whole):
            return FilterEffect(leaves_out=False, names=(*passed, "wild_do_table"))
        if self._matches(self.wild_ignore_table, whole):
            return FilterEffect(leaves_out=True, names=("wild_ignore_table",))
        if self.do_table or self.wild_do_table:
            return FilterEffect(leaves_out=True, names=("do_table", "wild_do_table"))
        return FilterEffect(leaves_out=False, names=passed)

    def _matches(self, wild: frozenset[str], whole: str) -> bool:
        for text in wild:
            if text not in self._patterns:
                self._patterns[text] = like_pattern(text)
            if self._patterns[text].fullmatch(whole):
                return True
        return False


@dataclass(frozen=True, slots=True)
class ServerFilters:
    """The filters of one server: those of its binary log, and those of each channel."""

    binary_log: ReplicationFilters = ReplicationFilters()
    # By the server_uuid of the source; "" where the channel has never been connected.
    channels: tuple[tuple[str, ReplicationFilters], ...] = ()

    def explain(self, tables: Iterable[Table], source: UUID | None) -> bool:
        """Return whether the filters omit a source's changes of all these tables (at least one).

        If no channel comes from that source, any channel may have delivered the changes. Then each
        channel's filters must omit them.
        """
        direct = [each for uuid, each in self.channels if uuid and uuid == str(source)]
        ways = direct or [each for _, each in self.channels]
        found = list(tables)
        return bool(found) and all(
            self.binary_log.leave_out(table)
            or (bool(ways) and all(each.leave_out(table) for each in ways))
            for table in found
        )


def tables_named_in(sql: str, schema: str) -> frozenset[Table]:
    """Return the tables in a statement, as far as its text shows them; otherwise its schema."""
    plain = sql.replace("`", "")
    found = {(match["schema"] or schema, match["table"]) for match in _NAMED.finditer(plain)}
    return frozenset(found or {(schema, "")})
