"""Reads what servers hold now of the rows and tables that transactions change.

1. Rows are folded to their net change, and looked up by key (rows_in_place.py).
2. Definitions and engines of the tables are compared even if rows cannot be (tables_there.py).
3. A server whose rows cannot be read is UNREAD with the reason. The other questions leave it out:
   `rows_on` shows that nothing was compared there.
4. Nor are rows looked up where they may have other names (renamed_databases.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pymysql

from binlog.adapters.server_errors import server_words
from binlog.rows.values import Image
from gtid import GtidSet
from repair.adapters.collected_transactions import TRANSACTIONS_REPLAYED_MAX
from repair.adapters.logged_content import before_first, read_content
from repair.adapters.rows_in_place import ROWS_MAX, RowReader
from repair.adapters.table_engines import without_rollback
from repair.adapters.tables_there import TablesThere
from repair.content.content_questions import EXTRA, MISSING, STOPPED, available
from repair.content.row_versions import RowsRead
from repair.content.transaction_content import (
    NetRow,
    RowsOn,
    RowState,
    TransactionContent,
)
from repair.doubts.renamed_databases import renamed_between
from topology.readings.content_class import ContentClass

if TYPE_CHECKING:
    from typing import Any

    from pymysql.connections import Connection

    from repair.adapters.servers_to_read import ServersToRead
    from topology.catalogue.findings import Finding

# The transactions that are folded to show how rows came to be as they are.
LATER_READ_MAX: Final = TRANSACTIONS_REPLAYED_MAX


def with_states(
    read: TransactionContent, names: list[str], finding: Finding | None, servers: ServersToRead
) -> tuple[TransactionContent, RowsRead]:
    """Return transactions with the state of their rows on servers, and the rows that conflict.

    Both versions of conflicting rows are read if the finding's replica is missing the transactions.
    """
    renamed = {
        name: why
        for name in names
        if (why := renamed_between(read.read_from or name, name, servers.readings))
    }
    read, conflicting = _compared(
        read, [name for name in names if name not in renamed], finding, servers
    )
    unread = {name: RowsOn(RowState.UNREAD, why) for name, why in renamed.items()}
    read = replace(
        read, rows_on={**read.rows_on, **unread}, unlike_on={**read.unlike_on, **renamed}
    )
    compared = (*MISSING, *STOPPED)
    source = finding.source if finding is not None and finding.code in compared else None
    if source is None or source != read.read_from:
        return read, conflicting
    return _with_overtaken(read, source, servers), conflicting


def _compared(
    read: TransactionContent, names: list[str], finding: Finding | None, servers: ServersToRead
) -> tuple[TransactionContent, RowsRead]:
    unlike_on, otherwise_on = _unlike(read, names, servers)
    read = replace(
        read,
        unlike_on=unlike_on,
        otherwise_on=otherwise_on,
        no_rollback_on=_no_rollback(read, names, servers),
    )
    rows = read.rows if read.rows is not None else read.rows_beside_created
    kinds = (ContentClass.UNREAD,) if rows is not None else (ContentClass.DDL, ContentClass.UNREAD)
    ddl = read.of_class(*kinds)
    if rows is None or ddl:
        definitions = f"{ddl.shortened()} changes table definitions, or was not read"
        why = definitions if ddl else read.rows_unread
        unread = {name: RowsOn(RowState.UNREAD, why) for name in names}
        misfits = _in_part(read, names, servers)
        return replace(read, rows_on=unread, misfits_in_part=misfits), RowsRead()
    states: dict[str, RowsOn] = {}
    conflicting = RowsRead()
    for name in names:
        with ExitStack() as held:
            try:
                here = held.enter_context(closing(servers.connect(name)))
                reader = RowReader(here)
                states[name], off = reader.state_beside(rows, read.created)
                source = _source_of_missing(name, finding, servers)
                if off and source is not None:
                    there = held.enter_context(closing(servers.connect(source)))
                    read = replace(read, expected=reader.expected(off))
                    conflicting = reader.both(off, RowReader(there))
            except pymysql.MySQLError as error:
                states[name] = RowsOn(RowState.UNREAD, server_words(error))
            except OSError as error:
                states[name] = RowsOn(RowState.UNREAD, str(error))
    source = (finding.source or "") if finding and _is_of_source(finding, read, servers) else ""
    if source == read.read_from:
        states |= _like_source(source, rows, states, read.wanted, servers)
    return replace(read, rows_on=states), conflicting


def _is_of_source(finding: Finding, read: TransactionContent, servers: ServersToRead) -> bool:
    """Return whether rows are to be as the finding's source has them now.

    So are those at which an applier stopped, if its replica has executed the transactions since.
    """
    if finding.code in STOPPED:
        return read.wanted <= servers.executed(finding.replica or "")
    return finding.code in MISSING


def _source_of_missing(name: str, finding: Finding | None, servers: ServersToRead) -> str | None:
    """Return the finding's source, if its transactions are missing on this server."""
    if finding is None or finding.code in EXTRA or name != finding.replica:
        return None
    return finding.source if finding.source in servers.targets else None


def _like_source(
    source: str,
    rows: tuple[NetRow, ...],
    states: Mapping[str, RowsOn],
    wanted: GtidSet,
    servers: ServersToRead,
) -> dict[str, RowsOn]:
    """Return the servers on which rows, changed by later transactions, equal the source's now.

    Only for the source's own log: another server, even the origin, may have another transaction
    under the GTID. And only if that log shows how the source's rows came to be as they are: a row
    that was deleted there without a log looks like a later state, too.
    """
    changed = (RowState.CONFLICT, RowState.AS_BEFORE)
    if not rows:
        return {}  # DDL alone: no row shows whether the server has executed it
    if source not in states or states[source].state not in changed:
        return {}

    def is_like(_name: str, here: Connection[Any]) -> bool:
        with closing(servers.connect(source)) as there:
            equal, coming = RowReader(here).alike(rows, RowReader(there), but=wanted)
            return len(equal) == len(rows) and not coming

    others = [name for name, on in states.items() if name != source and on.state in changed]
    alike = servers.answers(others, is_like)
    now = _logged_since(source, rows, wanted, servers) if any(alike.values()) else None
    if now is None:
        return {}
    return {
        name: replace(states[name], is_like_source=True, now=now)
        for name in others
        if alike.get(name)
    }


def _with_overtaken(
    read: TransactionContent, source: str, servers: ServersToRead
) -> TransactionContent:
    """Return transactions with the rows of which each server and the source have a later version.

    Also where the state of all rows together is not known, as with images without all columns. A
    row that what is on its way changes may be equal by chance:

        source     INSERT row 2 (missing on the replica)    DELETE row 2 (on its way)
    """
    rows = read.rows if read.rows is not None else read.rows_beside_created
    if not rows or len(rows) > ROWS_MAX or read.of_class(ContentClass.UNREAD):
        return read
    if read.state_on(source).state is RowState.AS_AFTER:
        return read  # nothing has changed them since

    def later(_name: str, here: Connection[Any]) -> tuple[tuple[NetRow, ...], GtidSet]:
        with closing(servers.connect(source)) as there:
            reader = RowReader(here)
            equal, coming = reader.alike(rows, RowReader(there), but=read.wanted)
            return tuple(reader.not_after(equal)), coming

    names = [
        name
        for name, on in read.rows_on.items()
        if name != source and on.state is not RowState.AS_AFTER
        if not renamed_between(source, name, servers.readings)
    ]
    states = dict(read.rows_on)
    for name, (found, coming) in servers.answers(names, later).items():
        changed = _places(source, coming, servers) if found and coming else frozenset()
        if changed is not None:
            overtaken = tuple(row for row in found if row.place not in changed)
            states[name] = replace(states[name], overtaken=overtaken)
    return replace(read, rows_on=states)


def _places(
    source: str, gtids: GtidSet, servers: ServersToRead
) -> frozenset[tuple[str, str, Image]] | None:
    """Return the rows that transactions change; None if not all of them are known."""
    if gtids.gtid_count > LATER_READ_MAX:
        return None
    read = read_content(source, gtids, servers)
    if read.rows is None or read.of_class(ContentClass.DDL, ContentClass.UNREAD):
        return None
    return frozenset(row.place for row in read.rows)


def _logged_since(
    source: str, rows: tuple[NetRow, ...], wanted: GtidSet, servers: ServersToRead
) -> tuple[NetRow, ...] | None:
    """Return the rows as a source's log has left them, from these transactions on.

    None if its rows are not so, if a statement may have changed them, whose rows no log shows, if
    the log cannot be read, or if it has more than `LATER_READ_MAX` transactions.
    """
    since = available(servers.readings[source]) - before_first(wanted)
    if since.gtid_count > LATER_READ_MAX:
        return None
    read = read_content(source, since, servers)
    folded = read.rows if read.rows is not None else read.rows_beside_created
    places = {row.place for row in rows}
    last = [row for row in folded or read.rows_in_part if row.place in places]
    if len(last) < len(places):
        return None
    stand = servers.answers([source], lambda _name, there: RowReader(there).are_after(last))
    return tuple(last) if stand.get(source, False) else None


def _unlike(
    read: TransactionContent, names: list[str], servers: ServersToRead
) -> tuple[dict[str, str], dict[str, str]]:
    """Return how definitions differ, and what a redo would do differently, by server."""
    source = read.read_from
    if source is None or not (read.row_tables or read.ddl):
        return {}, {}
    arriving = {name: read.wanted - servers.executed(name) for name in names}

    def compared(name: str, here: Connection[Any]) -> tuple[str | None, str | None]:
        with closing(servers.connect(source)) as there:
            tables, others = TablesThere(here), TablesThere(there)
            return (
                tables.unlike(read, arriving[name], others),
                tables.redone_otherwise(read, others),
            )

    found = servers.answers((name for name in names if arriving[name]), compared)
    return (
        {name: why for name, (why, _) in found.items() if why is not None},
        {name: more for name, (_, more) in found.items() if more is not None},
    )


def _no_rollback(
    read: TransactionContent, names: list[str], servers: ServersToRead
) -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Return the tables without transactions, by server. The scripts check them again."""
    tables = {(table.schema, table.table) for table in read.row_tables}
    engines = servers.answers(
        names if tables else (), lambda _name, here: without_rollback(here, tables)
    )
    return {name: found for name, found in engines.items() if found}


def _in_part(read: TransactionContent, names: list[str], servers: ServersToRead) -> dict[str, str]:
    """Return the servers on which the comparable rows are not as before, with the reason."""
    states = servers.answers(
        names if read.rows_in_part else (),
        lambda _name, here: RowReader(here).state_of(read.rows_in_part)[0],
    )
    return {
        name: on.why or "the server has these rows already"
        for name, on in states.items()
        if on.state in (RowState.CONFLICT, RowState.AS_AFTER)
    }
