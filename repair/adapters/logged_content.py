"""Reads transactions from one server's binary logs, with the definitions of their tables."""

from contextlib import closing

import pymysql

from binlog.adapters.row_decoder import RowDecoder
from binlog.adapters.server_errors import server_words
from binlog.adapters.spooled import Spooled
from binlog.errors import BinlogError
from binlog.rows.values import rows_of_group
from gtid import GtidSet, GtidSetTooLarge
from repair.adapters.collected_transactions import BYTES_REPLAYED_MAX, Collected
from repair.adapters.servers_to_read import ServersToRead
from repair.adapters.tables_now import Definitions, LogBehind, LoggedDefinitions
from repair.content.transaction_content import TransactionContent
from topology.readings.content_class import ContentClass


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
