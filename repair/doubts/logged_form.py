"""The form in which a server logs what a redo executes: with complete rows or without.

A redo is a second commit under one GTID. If both logs have it in one form, they show that the
changes are the same. If the row images differ, no log can show it, and every later audit reports
E4.
"""

import re
from collections.abc import Iterable

from binlog.rows.json_values import JsonDocument
from binlog.rows.tables import RowTable
from binlog.rows.values import ABSENT, RowChange
from repair.content.transaction_content import TransactionContent
from repair.model.replication_model import ModelServer
from topology.readings.replication_filters import ReplicationFilters

# The client 9.7 adds a space after a comment that text follows directly, and sees its own commands
# in statements of several lines.
_REWRITTEN = re.compile(r"\*/(?!\s|$)|^\s*(?:delimiter|\\)", re.IGNORECASE | re.MULTILINE)


def is_cut(table: RowTable, row: RowChange) -> bool:
    """Return whether the log omits columns of a row, which a log of FULL images never does."""
    images = (image for image in (row.before, row.after) if image is not None)
    written = [at for at, column in enumerate(table.columns) if not column.is_generated]
    return any(image[at] is ABSENT for image in images for at in written)


def would_be_cut(table: RowTable, row: RowChange) -> bool:
    """Return whether MINIMAL images would omit columns of a row that is complete."""
    if row.before is None or is_cut(table, row):
        return False
    others: Iterable[int] = set(range(len(table.columns))) - set(table.key or ())
    return bool(others) and (table.key is not None or row.after is not None)


def is_loose(row: RowChange) -> bool:
    """Return whether a row wrote a JSON document whose bytes differ when it is written again."""
    before = row.before or (ABSENT,) * len(row.after or ())
    return any(
        isinstance(new, JsonDocument) and not new.is_reproducible and new != old
        for old, new in zip(before, row.after or (), strict=False)
    )


def is_rewritten(sql: str) -> bool:
    """Return whether the mysql client may send a statement with other text than a script has."""
    return _REWRITTEN.search(sql) is not None


def left_out_of_log(content: TransactionContent, where: ModelServer) -> str:
    """Return why a redo would reach no other server (binary log filters); "" if it would.

    For rows, the schema of the table decides; for a statement, the default database.
    """
    filters = ReplicationFilters.of(where.log_filters)
    tables = {(each.schema, each.table) for each in content.row_tables}
    lost = sorted(
        f"{schema}.{name}" for schema, name in tables if filters.leave_out((schema, name))
    )
    if not where.log_filters or not (lost or content.statements):
        return ""
    what = ", ".join(lost) or "the schema of its statements, perhaps"
    options = ", ".join(f"{option} = {value}" for option, value in where.log_filters)
    return (
        f"{where.name} does not log {what} ({options}): a redo there would reach no other server,"
        " although its GTIDs would count as executed everywhere. Remove the option, restart"
        f" {where.name}, and plan again"
    )


def logged_otherwise(content: TransactionContent, where: ModelServer) -> str:
    """Return why a redo would be reported as E4 permanently; "" if the logs will be equal.

    PARTIAL_JSON gives every UPDATE another event, also for tables without JSON (seen on 9.7.4).
    """
    is_other = content.has_plain_updates if where.logs_partial_json else content.has_partial_updates
    if is_other:
        had, here = ("", "PARTIAL_JSON") if where.logs_partial_json else ("PARTIAL_JSON", "")
        return (
            f"the log has updates with binlog_row_value_options = '{had}', and {where.name} would"
            f" log them with '{here}': no audit could compare the two commits, and each would"
            f" report E4. Run `SET GLOBAL binlog_row_value_options = '{had}'` on {where.name}, plan"
            " again, and set it back after the redo"
        )
    if content.has_loose_documents:
        return (
            "the log has a JSON document that was changed in place (JSON_SET, JSON_REPLACE,"
            " JSON_REMOVE) and has unused bytes, or that contains a DECIMAL or TIMESTAMP of a"
            f" column. {where.name} would log equal values with other bytes: each later audit would"
            " report E4. `gtid-audit binlog show SET SERVER --redo --keep-gtids`"
            " (SERVER is the DSN of one that has them) writes the redo script anyway"
        )
    if content.has_rewritten_statements:
        return (
            "the log has a statement of which the mysql client would send another text (text"
            " directly after a comment, or a line that begins with DELIMITER): each later audit"
            f" would report E4. Execute it on {where.name} with a program that sends it unchanged"
            " (SET gtid_next first)"
        )
    is_cut_here = where.row_image.upper() == "MINIMAL"
    if where.row_image.upper() == "FULL" and content.has_cut_rows:
        had = "without all columns (binlog_row_image MINIMAL or NOBLOB)"
    elif is_cut_here and content.has_whole_rows:
        had = "with all columns (binlog_row_image FULL)"
    else:
        return ""
    return (
        f"the log has rows {had}, and {where.name} would log them with {where.row_image.upper()}:"
        " no audit could compare the two commits, and each would report E4. Set binlog_row_image on"
        f" {where.name} as the transactions had it (SET GLOBAL), plan again, and set it back after"
        " the redo"
    )
