"""The role of each event type in the group of events that forms a transaction.

The rules are those of binlog.transactions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import inlined
from gtid.kernels.eight_bytes import load_byte

# The walk does not pass events with role FORMAT or higher on its own.
PLAIN, OPENING, HEAD, QUERY, MAP, ROWS, XID, PREPARE = range(8)
LOST, PAYLOAD, VIEW, BETWEEN, FORMAT, STRANGE, REFUSED = range(8, 15)

XID_EVENT: Final = 16
LOAD_QUERY: Final = 18
GTID, ANONYMOUS, TAGGED_GTID = 33, 34, 42

_ROLES = np.full(256, STRANGE, np.uint8)
_ROLES[[1, *range(160, 172)]] = REFUSED  # before 5.0; MariaDB's
_ROLES[[6, 8, 10, 11, 12, 28, 36]] = PLAIN
_ROLES[[5, 9, 13, 14, 17, 29]] = OPENING  # written before the statement they belong to
_ROLES[[GTID, ANONYMOUS, TAGGED_GTID]] = HEAD
_ROLES[[2, LOAD_QUERY]] = QUERY
_ROLES[[23, 24, 25, 30, 31, 32, 39]] = ROWS
_ROLES[[19, XID_EVENT, 38]] = MAP, XID, PREPARE
_ROLES[[26, 40, 37, 15]] = LOST, PAYLOAD, VIEW, FORMAT
_ROLES[[3, 4, 27, 35, 41]] = BETWEEN

# A group begins with its GTID event or, without GTIDs, with one of the others.
OPENS, CLOSES = np.zeros((2, 15), np.bool_)
OPENS[[HEAD, OPENING, QUERY, MAP, LOST, PAYLOAD]] = True
CLOSES[[XID, PREPARE, LOST, PAYLOAD]] = True


@inlined
def role_of(event: int) -> int:
    """Return the role of the event that starts at an address."""
    return np.int64(_ROLES[load_byte(event + 4)])
