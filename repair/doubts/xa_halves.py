"""XA transactions have two GTIDs: leaving out one of them blocks the other, or stops the applier.

The server logs XA PREPARE as one transaction, from XA START on. It logs XA COMMIT or XA ROLLBACK,
possibly much later, as another one (Reference Manual, "Restrictions on XA Transactions"; seen on
9.7.4).
"""

import re
from collections.abc import Iterator

from repair.content.transaction_content import TransactionContent

_PREPARES = re.compile(r"XA START\b", re.IGNORECASE)
_ENDS = re.compile(r"XA (?:COMMIT|ROLLBACK)\b", re.IGNORECASE)


def halves_left_out(content: TransactionContent, names: str) -> Iterator[str]:
    """Yield the consequences on servers where one half is left out, as warnings."""
    gtids = content.wanted.shortened()
    if any(map(_PREPARES.match, content.statements)):
        yield (
            f"{gtids} has an XA PREPARE. The XA COMMIT after it has its own GTID, and stops the"
            f" appliers of {names} with error 1397 unless it is left out as well"
        )
    if any(map(_ENDS.match, content.statements)):
        yield (
            f"{gtids} ends an XA transaction: where its XA PREPARE was executed, or is fetched"
            f" later, its rows stay locked on {names}. `XA RECOVER` shows it; end it with"
            " `SET sql_log_bin = 0` and `XA COMMIT` or `XA ROLLBACK`"
        )
