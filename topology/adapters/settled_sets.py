"""Reads what a server has executed and what its sessions are committing, in the order that proves.

`binlog/adapters/set_statements.py` (SETTLED_SETS) has the proof: what was visible to another
session at the time of the question is in one of the two.
"""

from binlog.adapters.set_statements import SETTLED_SETS
from gtid import GtidSet
from topology.adapters.answered_rows import Row, only_row, rows_of
from topology.adapters.connection import Connection
from topology.adapters.status import parse_owned


def read_settled(connection: Connection) -> tuple[GtidSet, GtidSet]:
    """Return the GTIDs that sessions own, and those executed.

    Raises pymysql.MySQLError and OSError, and one of UNEXPECTED (answered_rows.py).
    """
    return settled_in(rows_of(connection, SETTLED_SETS, "executed"))


def settled_in(rows: list[Row]) -> tuple[GtidSet, GtidSet]:
    """Return the two sets of an answer to SETTLED_SETS. Raises one of UNEXPECTED."""
    row = only_row(rows, SETTLED_SETS)
    return parse_owned(str(row["owned"])), GtidSet.parse(str(row["executed"]))
