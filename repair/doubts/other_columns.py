"""Whether a server's columns match the rows that a redo writes there.

Pure: the content includes the comparison (repair/adapters/tables_there.py). The script checks names
and order again (replay_script.py).
"""

from collections.abc import Iterator

from repair.content.transaction_content import TransactionContent
from repair.content.waiting_ddl import altered
from repair.model.replication_model import ModelServer


def other_columns(content: TransactionContent, where: ModelServer) -> str:
    """Return where columns would differ from the logged ones; "" if nothing shows that.

    A value may be rounded, truncated or padded there without an error, in any sql_mode. Downstream
    servers apply the rows by the positions of their columns.
    """
    why = content.unlike_on.get(where.name) or content.otherwise_on.get(where.name)
    return (
        f"redone on {where.name}, the rows may be different, or may not fit: {why}" if why else ""
    )


def columns_not_compared(content: TransactionContent, where: ModelServer) -> Iterator[str]:
    """Yield a warning about tables that the transactions themselves alter."""
    rows_of = {(table.schema, table.table) for table in content.row_tables}
    named = sorted(".".join(name) for name in altered(content.ddl) & rows_of)
    if named:
        yield (
            f"the transactions alter {', '.join(named)}, so the types of the columns were not"
            f" compared with those on {where.name}: compare the definitions first"
        )
