"""The toy table as the product sees it: sim.t (k VARCHAR(40) PRIMARY KEY, v BIGINT).

tests/simulation/reality.py makes the same table on real servers.
"""

from __future__ import annotations

from binlog.rows.images import VARCHAR
from binlog.rows.tables import LONGLONG, Origin, RowColumn, RowTable
from binlog.rows.values import Image
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow
from tests.simulation.state import Key

TABLE = RowTable(
    schema="sim",
    table="t",
    columns=(
        RowColumn(VARCHAR, 160, name="k", charset="utf8mb4", is_generated=False),
        RowColumn(LONGLONG, 0, name="v", is_unsigned=False, is_generated=False),
    ),
    key=(0,),
    origin=Origin.DEFINITION,
)


def image(key: Key, value: int | None) -> Image | None:
    return None if value is None else (key.encode(), value)


def net_row(key: Key, before: int | None, after: int | None) -> NetRow:
    """Return what transactions change of a row, with the key of a row that they make and delete."""
    return NetRow(TABLE, image(key, before), image(key, after), ((key.encode(), 0),))


def key_of(row: RowVersions) -> Key:
    found = row.source if row.source is not None else row.replica
    assert found is not None, "a row is somewhere"
    return key_in(found)


def key_in(found: Image) -> Key:
    assert isinstance(found[0], bytes), "the key is text"
    return found[0].decode()


def value_of(found: Image | None) -> int | None:
    """Return the value of a row, or None where there is none."""
    if found is None:
        return None
    assert isinstance(found[1], int), "the value is a number"
    return found[1]
