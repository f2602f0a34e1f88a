"""A real server's binary log and dump command as the oracle of the binary forms."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from compose.native import shapes
from gtid import Gtid, GtidSet, MalformedBinary
from gtid.binary import decode, encode

pytestmark = pytest.mark.mysql

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
C = "ffffffff-0000-4000-8000-00000000abcd"
UNTAGGED = GtidSet.parse(f"{A}:1-2:5,{C}:1")
TAGGED = GtidSet.parse(f"{A}:7:_:9223372036854775806:dba:1:3:{'x' * 32}:7")

MALFORMED_ENCODING = 1773
COM_BINLOG_DUMP_GTID = 0x1E
PREVIOUS_GTIDS, GTID, TAGGED_GTID = 35, 33, 42
HEADER_BYTES, CHECKSUM_BYTES, MAGIC_BYTES = 19, 4, 4
NON_BLOCKING = 1


@pytest.fixture(scope="module")
def server(installation97: Any) -> Iterator[Any]:
    """A server of its own, since it will have GTIDs of strangers in its log."""
    with shapes.single(installation97) as one:
        yield one


def commit(server: Any, gtid_set: GtidSet) -> None:
    """Commit one empty transaction for each GTID, then begin a new binary log file."""
    statements = [
        statement
        for gtid in gtid_set.gtids()
        for statement in (f"SET SESSION gtid_next = '{gtid}'", "BEGIN", "COMMIT")
    ]
    server.execute(*statements, "SET SESSION gtid_next = AUTOMATIC", "FLUSH BINARY LOGS")


def previous_gtids(server: Any) -> bytes:
    """The body of the Previous_gtids event in the newest binary log file."""
    newest = server.query("SHOW BINARY LOGS")[-1][0]
    folder = Path(server.value("@@GLOBAL.log_bin_basename")).parent
    log: bytes = (folder / newest).read_bytes()
    position = MAGIC_BYTES
    while position < len(log):
        kind, length = (
            log[position + 4],
            int.from_bytes(log[position + 9 : position + 13], "little"),
        )
        if kind == PREVIOUS_GTIDS:
            return log[position + HEADER_BYTES : position + length - CHECKSUM_BYTES]
        position += length
    raise AssertionError(f"no Previous_gtids event in {newest}")


def dumped_transactions(server: Any, encoded: bytes) -> int:
    """Ask for all transactions but the encoded ones, as a replica does, and count them."""
    command = struct.pack("<HIIQI", NON_BLOCKING, 424_242, 0, MAGIC_BYTES, len(encoded)) + encoded
    count = 0
    with server.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET @source_binlog_checksum = 'NONE'")
        connection._execute_command(COM_BINLOG_DUMP_GTID, command)
        while not (packet := connection._read_packet()).is_eof_packet():
            count += packet.get_all_data()[1 + 4] in (GTID, TAGGED_GTID)
    return count


def test_the_server_and_we_write_the_same_bytes(server: Any) -> None:
    own = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
    assert previous_gtids(server) == encode(own)
    commit(server, UNTAGGED)
    assert previous_gtids(server) == encode(own | UNTAGGED)
    commit(server, TAGGED)
    assert previous_gtids(server) == encode(own | UNTAGGED | TAGGED)
    assert decode(previous_gtids(server)) == GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def test_a_dump_leaves_out_exactly_what_we_encode(server: Any) -> None:
    commit(server, UNTAGGED | TAGGED)
    executed = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
    for known in (GtidSet(), UNTAGGED, TAGGED, executed, executed - GtidSet.of(executed.gtids())):
        assert dumped_transactions(server, encode(known)) == (executed - known).gtid_count
    one = GtidSet.of(Gtid.parse(f"{A}:dba:3"))
    assert dumped_transactions(server, encode(executed - one)) == 1


@pytest.mark.parametrize("cut", [1, 8, 20])
def test_a_dump_refuses_what_we_refuse(server: Any, cut: int) -> None:
    encoded = encode(TAGGED)[:-cut]
    with pytest.raises(MalformedBinary):
        decode(encoded)
    with pytest.raises(pymysql.err.MySQLError) as caught:
        dumped_transactions(server, encoded)
    assert caught.value.args[0] == MALFORMED_ENCODING
