"""In which form a server logs what is done again on it: with whole rows or without.

A redo is a second commit under one GTID. Where both logs have it in one form they show that the
work is the same; where the row images differ no log can, and every later audit reports E4.
"""

from collections.abc import Iterable

from binlog.rows.tables import RowTable
from binlog.rows.values import ABSENT, RowChange
from repair.model import ModelServer
from repair.transaction_content import TransactionContent


def is_cut(table: RowTable, row: RowChange) -> bool:
    """Return whether the log leaves columns of a row out, as no log of FULL images does."""
    images = (image for image in (row.before, row.after) if image is not None)
    written = [at for at, column in enumerate(table.columns) if not column.is_generated]
    return any(image[at] is ABSENT for image in images for at in written)


def would_be_cut(table: RowTable, row: RowChange) -> bool:
    """Return whether MINIMAL images would leave columns out of a row that is whole."""
    if row.before is None or is_cut(table, row):
        return False
    others: Iterable[int] = set(range(len(table.columns))) - set(table.key or ())
    return bool(others) and (table.key is not None or row.after is not None)


def logged_otherwise(content: TransactionContent, where: ModelServer) -> str:
    """Return why a redo would be reported as E4 for ever; empty if the logs will agree."""
    is_cut_here = where.row_image.upper() == "MINIMAL"
    if where.row_image.upper() == "FULL" and content.has_cut_rows:
        had = "without all columns (binlog_row_image MINIMAL or NOBLOB)"
    elif is_cut_here and content.has_whole_rows:
        had = "whole (binlog_row_image FULL)"
    else:
        return ""
    return (
        f"the log has rows {had}, and {where.name} would log them with {where.row_image.upper()}:"
        " no audit could compare the two commits, and each would report E4. Set binlog_row_image on"
        f" {where.name} as the transactions had it (SET GLOBAL), plan again, and set it back after"
        " the redo"
    )
