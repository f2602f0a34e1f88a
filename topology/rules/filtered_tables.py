"""A3: a filter of the channel that concerns the table of an error.

An applier that stops at a table for a filtered channel often stops because of the filter:

* The filter leaves the table out. Its DDL and rows are not applied, and another table that needs it
  (a foreign key, a view, a statement on both) fails.
* A database-level filter lets its rows through. Rows count by the schema of their table, and DDL
  by the default database of the session. So `USE other; CREATE TABLE app.t …` is left out by
  Replicate_Do_DB = app, and the rows of app.t fail with 1146 (manual, "Evaluation of
  Database-Level Replication and Binary Logging Options"; seen on 9.7.4 and 5.6.24).
* A table-level filter lets the table through, and leaves out those that it refers to.

Only errors about definitions and rows count: a filter does not fill a disk.
"""

from typing import Final

from topology.catalogue.definition_errors import DEFINITION_NUMBERS
from topology.catalogue.explanations import explain_error
from topology.readings.quoted_tables import quoted_tables, tables_of_foreign_key
from topology.readings.replication_filters import FilterEffect, ReplicationFilters, Table
from topology.readings.snapshot import ChannelSnapshot

_ABOUT_TABLES: Final = frozenset(
    DEFINITION_NUMBERS[each] for each in (1146, 1050, 1677, 1406, 1452)
)
_LEFT_OUT: Final = (
    " A filter of the channel leaves out the changes of table {table} ({filters}): {replica} may"
    " not have its DDL and its rows."
)
_BY_DATABASE: Final = (
    " A filter of the channel ({filters}) applies the rows of table {table}, and decides about DDL"
    " by the default database of the session: DDL on it with another default database may be"
    " missing on {replica}."
)
_BY_TABLE: Final = (
    " A filter of the channel applies the changes of table {table} ({filters}), and leaves out"
    " others that this table may refer to."
)


def filters_behind(channel: ChannelSnapshot, replica: str, *, errno: int, text: str) -> str:
    """Return the sentence about the filter that concerns the table of an error; "" for none."""
    found = explain_error(errno, text)
    if not channel.filters or found is None or found.title not in _ABOUT_TABLES:
        return ""
    filters = ReplicationFilters.of(_columns(channel))
    effects = [
        (filters.effect_on(table), table)
        for table in (*tables_of_foreign_key(text), *quoted_tables(text))
    ]
    # A table that is left out explains more than one that is let through.
    effects.sort(key=lambda effect: not effect[0].leaves_out)
    return next((_sentence(channel, replica, *each) for each in effects if each[0].names), "")


def _sentence(channel: ChannelSnapshot, replica: str, effect: FilterEffect, table: Table) -> str:
    template = _LEFT_OUT
    if not effect.leaves_out:
        template = _BY_DATABASE if effect.is_by_database else _BY_TABLE
    shown = [f"{column}={text}" for column, text in _columns(channel) if effect.has(column)]
    return template.format(table=".".join(table), filters=", ".join(shown), replica=replica)


def _columns(channel: ChannelSnapshot) -> list[tuple[str, str]]:
    """Return the filters as columns of SHOW REPLICA STATUS and their lists."""
    pairs = (each.partition("=") for each in channel.filters)
    return [(column, text) for column, _, text in pairs]
