"""Reads a transaction from the relay log of a replica, as SHOW RELAYLOG EVENTS prints it.

It is the only copy that a client can read where the source is down or has purged the transaction.
The server prints statements as text, and the table of rows without their values.

The statement begins at the position of the applier, which an event boundary is, and is limited in
rows: the server holds a lock on its channels while it answers. The privilege is that of a dump.

Source: reference manual, "SHOW RELAYLOG EVENTS Statement"; the texts of `Info` seen on 9.7.4 and
5.6.24.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from binlog.quoting import quote_string
from binlog.transactions import TransactionKind
from gtid import GtidError, GtidSet
from topology.adapters.answered_rows import Row, rows_of, text_of
from topology.adapters.connection import Connection
from topology.adapters.transaction_summary import shortened_statement
from topology.readings.dialect import Dialect
from topology.readings.snapshot import ChannelSnapshot
from topology.tracing.table_effects import effects_of
from topology.tracing.trace_values import TracedTransaction

EVENTS_MAX: Final = 1_000
_SHOW: Final = "SHOW RELAYLOG EVENTS IN {file} FROM {position} LIMIT {events}"
_GTID: Final = re.compile(r"GTID_NEXT\s*=\s*'([^']+)'")
_TABLE: Final = re.compile(r"table_id: \d+ \((.*)\)", re.DOTALL)
_STATEMENT: Final = re.compile(
    r"(?:use `(?P<schema>(?:[^`]|``)+)`; )?(?P<sql>.*?)(?: /\* xid=\d+ \*/)?", re.DOTALL
)
_FRAMES: Final = frozenset({"BEGIN", "COMMIT"})
_WHY: Final = "from the relay log: the server prints no values of rows, and no commit time"


def relayed_transaction(
    connection: Connection,
    dialect: Dialect,
    server: str,
    channel: ChannelSnapshot,
    gtid: GtidSet,
) -> TracedTransaction | None:
    """Return a transaction of a channel's relay log; None if it is not in the part that is read.

    An empty `gtid` asks for the transaction at which the applier stands.
    """
    place = channel.relay_applied_to
    if place is None:
        return None
    statement = _SHOW.format(
        file=quote_string(place.file), position=place.position, events=EVENTS_MAX
    )
    name = dialect.for_channel(quote_string(channel.name) if channel.name else None)
    rows = rows_of(connection, f"{statement}{name}", "Event_type")
    for group in _groups(rows):
        found = _gtid_of(group[0])
        if found and (found == gtid or not gtid):
            return _transaction(server, found, group)
        if not gtid:
            return None
    return None


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the events of each transaction; an incomplete one at the limit is yielded, too."""
    group: list[Row] = []
    for row in rows:
        if _gtid_of(row):
            if group:
                yield group
            group = [row]
        elif group:
            group.append(row)
    if group:
        yield group


def _gtid_of(row: Row) -> GtidSet:
    """Return the GTID that an event assigns; empty for another event."""
    found = _GTID.search(text_of(row["Info"]))
    if found is None or not text_of(row["Event_type"]).lower().startswith("gtid"):
        return GtidSet()
    try:
        return GtidSet.parse(found[1])
    except GtidError:
        return GtidSet()  # ANONYMOUS


def _transaction(server: str, gtid: GtidSet, group: list[Row]) -> TracedTransaction:
    statements: list[tuple[str, str]] = []
    tables: list[str] = []
    for row in group:
        info, kind = text_of(row["Info"]), text_of(row["Event_type"])
        table = _TABLE.match(info)
        if kind == "Table_map" and table is not None:
            tables.append(f"rows of {table[1]}")
        elif kind == "Query" and info not in _FRAMES:
            parts = _STATEMENT.fullmatch(info)
            assert parts is not None, "the pattern matches every text"
            schema = (parts["schema"] or "").replace("``", "`")
            statements.append((schema, parts["sql"]))
    is_rows = bool(tables)
    return TracedTransaction(
        server=server,
        gtid=gtid,
        file=text_of(group[0]["Log_name"]),
        start=int(group[0]["Pos"]),
        end=int(group[-1]["Pos"]),
        committed_at=None,
        logged_at=None,
        server_id=int(group[0]["Server_id"]),
        kind=(TransactionKind.DML if is_rows else TransactionKind.DDL).value,
        tables=(),
        statements=tuple(shortened_statement(sql) for _, sql in statements),
        rows=tuple(dict.fromkeys(tables)),
        effects=tuple(
            effect for schema, sql in statements for effect in effects_of(sql, schema=schema)
        ),
        is_relayed=True,
        why=_WHY,
    )
