"""A topology that is lent again is as good as a new one, or is one: see tests/server_pool.py."""

from dataclasses import replace

import pytest

from compose import faults, faults_logs
from compose.native.shapes import Pair, wait_for
from tests.server_pool import Stock, traits_of, undone


def processes(pair: Pair) -> list[int]:
    return [server.pid for server in pair.servers.values()]


def test_what_a_test_leaves_is_undone(pairs97: Stock[Pair]) -> None:
    with pairs97.lent() as pair:
        at_first, begun = [traits_of(each) for each in pair.servers.values()], processes(pair)
        faults.position_bypass(pair)
        faults.errant_transaction(pair)
        pair.a.execute("CREATE USER visitor@'%'", "GRANT RELOAD ON *.* TO visitor@'%'")
        pair.b.execute("SET GLOBAL max_connections = 7", "SET GLOBAL binlog_row_image = MINIMAL")
        pair.b.execute("SET GLOBAL sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'")
        pair.b.freeze()
    with pairs97.lent() as pair:
        assert processes(pair) == begun
        assert [traits_of(each) for each in pair.servers.values()] == at_first
        assert [each.value("@@GLOBAL.gtid_executed") for each in (pair.a, pair.b)] == ["", ""]
        assert pair.b.replica_status()["Auto_Position"] == 1
        for writer, reader in ((pair.a, pair.b), (pair.b, pair.a)):
            writer.execute("CREATE DATABASE IF NOT EXISTS d")
            wait_for(reader, writer.value("@@GLOBAL.gtid_executed"))


def test_what_cannot_be_undone_is_discarded(pairs56: Stock[Pair]) -> None:
    with pairs56.lent() as pair:
        begun = processes(pair)
        pair.a.execute("SET SESSION sql_log_bin = 0", "DROP USER replication@'127.0.0.1'")
    with pairs56.lent() as pair:
        assert not set(processes(pair)) & set(begun)
        begun = processes(pair)
        pair.b.kill()
    with pairs56.lent() as pair:
        assert not set(processes(pair)) & set(begun)
        pair.settle()


@pytest.mark.slow
def test_a_server_that_shows_what_was_set_is_discarded(pairs97: Stock[Pair]) -> None:
    with pairs97.lent() as pair:
        begun = processes(pair)
        own = pair.b.value("@@GLOBAL.server_id")
        pair.b.execute("SET GLOBAL server_id = 4711", f"SET GLOBAL server_id = {own}")
    with pairs97.lent() as pair:
        assert not set(processes(pair)) & set(begun)
        begun = processes(pair)
        pair.b.execute(f"SET GLOBAL gtid_purged = '{pair.a.value('@@GLOBAL.server_uuid')}:1'")
    with pairs97.lent() as pair:
        assert not set(processes(pair)) & set(begun), "its error log shows what was declared"


def test_a_server_that_closed_its_log_is_not_as_it_was(pairs97: Stock[Pair]) -> None:
    """Its receivers show "Yes" for a moment, before the source refuses them."""
    with pairs97.lent() as pair:
        at_first = traits_of(pair.b)
        faults_logs.log_closed(pair, server="b", replica="a", rows_count=0)
        assert not undone(pair.b, at_first)


@pytest.mark.slow
def test_what_no_variable_shows_is_discarded(pairs97: Stock[Pair]) -> None:
    with pairs97.lent() as pair:
        begun = processes(pair)
        pair.b.execute(
            pair.b.dialect.stop_replica, "CHANGE REPLICATION FILTER REPLICATE_DO_DB = (d)"
        )
    with pairs97.lent() as pair:
        assert not set(processes(pair)) & set(begun), "every new channel would get the filter"
        begun = processes(pair)
        pair.b.settings = replace(pair.b.settings, extra=("--binlog-ignore-db=d",))
    with pairs97.lent() as pair:
        assert not set(processes(pair)) & set(begun), "its next start would have the filter"
