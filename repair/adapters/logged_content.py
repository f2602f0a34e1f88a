"""Reads transactions from one server's binary logs, with the definitions of their tables.

It also reads which statements follow them. A statement that is logged as one runs on each server
with the rows that this server has then:

    a     INSERT INTO t (rows, skipped on b)    UPDATE s SET total = (SELECT SUM(n) FROM t)
    b                                           the same statement: another total

To deliver, leave out or undo the INSERT corrects no total, and both logs have the same statement.
So a plan warns. Only logs of servers whose `binlog_format` is not ROW are read: with ROW, a session
must have asked for a statement, which is not looked for.
"""

from contextlib import closing
from dataclasses import replace
from typing import Final

import pymysql

from binlog.adapters.row_decoder import RowDecoder
from binlog.adapters.server_errors import server_words
from binlog.adapters.spooled import Spooled
from binlog.errors import BinlogError
from binlog.rows.values import rows_of_group
from binlog.transactions import Transaction, TransactionKind
from gtid import GtidSet, GtidSetTooLarge, Tsid
from repair.adapters.collected_transactions import BYTES_REPLAYED_MAX, Collected
from repair.adapters.servers_to_read import ServersToRead
from repair.adapters.tables_now import Definitions, LogBehind, LoggedDefinitions
from repair.content.content_questions import available
from repair.content.transaction_content import TransactionContent
from topology.readings.content_class import ContentClass

# Transactions behind those of a finding, whose statements are looked for.
SINCE_READ_MAX: Final = 2_000


def read_content(name: str, wanted: GtidSet, servers: ServersToRead) -> TransactionContent:
    """Read transactions from one server's binary logs; what cannot be read has the reason."""
    collected, unread = Collected(), ""
    decode = RowDecoder()
    try:
        with closing(servers.connect(name)) as connection:
            notes: list[str] = []
            behind = LogBehind(lambda: servers.connect(name), servers.seconds_max)
            logged = LoggedDefinitions(Definitions(connection, notes.append), behind, notes.append)
            for group in servers.logs(name).events_of(
                wanted, bytes_max=BYTES_REPLAYED_MAX, store=Spooled
            ):
                kind = collected.add(group.transaction)
                if kind in (ContentClass.DATA, ContentClass.DDL):
                    at = logged.at(group.transaction.file, group.rows_begin)
                    items = rows_of_group(group, decode, definition_of=at)
                    collected.keep(group, items, logged)
    except pymysql.MySQLError as error:
        unread = f"{name}: {server_words(error)}"
    except (BinlogError, GtidSetTooLarge, OSError) as error:
        unread = f"{name}: {error}"
    return collected.content(name, unread)


def with_statements_since(read: TransactionContent, servers: ServersToRead) -> TransactionContent:
    """Return transactions with the statements that their log has behind the first of them."""
    name, data = read.read_from, read.of_class(ContentClass.DATA)
    if name is None or not data:
        return read
    if servers.readings[name].setting("binlog_format") in (None, "ROW"):
        return read
    since = (
        available(servers.readings[name]) - before_first(data) - servers.logged_before(name, data)
    )
    try:
        found = servers.logs(name).transactions_of(since, transactions_max=SINCE_READ_MAX)
    except pymysql.MySQLError as error:
        return replace(read, unread_since=server_words(error))
    except (BinlogError, GtidSetTooLarge, OSError) as error:
        return replace(read, unread_since=str(error))
    begins = next((at for at, each in enumerate(found) if _is_of(each, data)), len(found))
    statements = (each.gtid for each in found[begins:] if _may_meet_rows(each))
    met = GtidSet.of(each for each in statements if each is not None) - read.wanted
    more = since.gtid_count > len(found)
    unread = f"only the first {SINCE_READ_MAX:,} transactions were read" if more else ""
    return replace(read, statements_since=met, unread_since=unread)


def before_first(gtids: GtidSet) -> GtidSet:
    """Return what the same origins committed before the first of these."""
    begins: dict[Tsid, int] = {}
    for tsid, begin, _ in gtids.intervals():
        begins.setdefault(tsid, begin)
    return GtidSet.from_intervals((tsid, 1, at) for tsid, at in begins.items() if at > 1)


def _is_of(transaction: Transaction, gtids: GtidSet) -> bool:
    return transaction.gtid is not None and transaction.gtid in gtids


def _may_meet_rows(transaction: Transaction) -> bool:
    """Return whether rows decide what a transaction does; of an INSERT, those of its triggers."""
    kinds = (TransactionKind.DML, TransactionKind.XA)
    return transaction.kind in kinds and bool(transaction.statements)
