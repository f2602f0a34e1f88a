"""The role of each event type in the group of events that forms a transaction.

The rules are those of binlog.transactions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.event_types import (
    GTID_EVENTS,
    MARIADB_EVENTS,
    OPENING_EVENTS,
    ROWS_DELETED,
    ROWS_UPDATED,
    ROWS_WRITTEN,
)
from binlog.event_types import EventType as Type
from gtid.jit import inlined
from gtid.kernels.eight_bytes import load_byte

# The walk does not pass events with role FORMAT or higher on its own.
PLAIN, OPENING, HEAD, QUERY, MAP, ROWS, XID, PREPARE = range(8)
LOST, PAYLOAD, VIEW, BETWEEN, FORMAT, STRANGE, REFUSED = range(8, 15)

XID_EVENT: Final = int(Type.XID)
LOAD_QUERY: Final = int(Type.EXECUTE_LOAD_QUERY)
GTID, ANONYMOUS, TAGGED_GTID = map(int, GTID_EVENTS)

OF_TYPE = np.full(256, STRANGE, np.uint8)
OF_TYPE[[Type.START_V3, *MARIADB_EVENTS]] = REFUSED
OF_TYPE[[Type.LOAD, Type.CREATE_FILE, Type.EXEC_LOAD, Type.DELETE_FILE, Type.NEW_LOAD]] = PLAIN
OF_TYPE[[Type.IGNORABLE, Type.TRANSACTION_CONTEXT]] = PLAIN
OF_TYPE[list(OPENING_EVENTS)] = OPENING
OF_TYPE[list(GTID_EVENTS)] = HEAD
OF_TYPE[[Type.QUERY, Type.EXECUTE_LOAD_QUERY]] = QUERY
OF_TYPE[[*ROWS_WRITTEN, *ROWS_UPDATED, *ROWS_DELETED]] = ROWS
OF_TYPE[[Type.TABLE_MAP, Type.XID, Type.XA_PREPARE]] = MAP, XID, PREPARE
OF_TYPE[[Type.INCIDENT, Type.TRANSACTION_PAYLOAD, Type.VIEW_CHANGE]] = LOST, PAYLOAD, VIEW
OF_TYPE[Type.FORMAT_DESCRIPTION] = FORMAT
OF_TYPE[[Type.STOP, Type.ROTATE, Type.PREVIOUS_GTIDS]] = BETWEEN
OF_TYPE[[Type.HEARTBEAT, Type.HEARTBEAT_V2]] = BETWEEN

# A group begins with its GTID event or, without GTIDs, with one of the others.
OPENS, CLOSES = np.zeros((2, 15), np.bool_)
OPENS[[HEAD, OPENING, QUERY, MAP, LOST, PAYLOAD]] = True
CLOSES[[XID, PREPARE, LOST, PAYLOAD]] = True


@inlined
def role_of(event: int) -> int:
    """Return the role of the event that starts at an address."""
    return np.int64(OF_TYPE[load_byte(event + 4)])
