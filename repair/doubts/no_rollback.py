"""Tables with a nontransactional engine: rows under an explicit GTID cannot be written there.

The server commits each statement on such a table as its own transaction, and the first one takes
the GTID. The server refuses the second (1837, seen on 5.6.24 and 9.7.4), and a second run of the
script finds the GTID executed. The other rows would be permanently missing under equal GTID sets.
"""

from collections.abc import Iterable

from repair.content.created_tables import is_new
from repair.content.transaction_content import TransactionContent
from repair.sql.replay import Replayed


def takes_gtid_with_first_row(
    content: TransactionContent, server: str, redone: Iterable[Replayed]
) -> str:
    """Return which tables of the transactions cannot be written under their GTIDs; "" if none.

    A table that the transactions create gets the engine that it has where they were read.
    """
    touched = {(table.schema, table.table) for each in redone for table in each.tables}
    here = content.no_rollback_on.get(server, ())
    origin = content.no_rollback_on.get(content.read_from or "", ())
    created = (each for each in origin if is_new(each[0], each[1], content.created))
    found = sorted({each for each in (*here, *created) if each[:2] in touched})
    if not found:
        return ""
    named = ", ".join(f"{schema}.{table} ({engine})" for schema, table, engine in found)
    return (
        f"{named} on {server} has an engine without transactions: the first row would use up the"
        " GTID, and later rows could not be written under it"
    )
