"""Risky configuration, gaps in a server's own GTIDs, and early purges, on real servers.

The rules are those of faults.py. What a fault changes with SET GLOBAL ends with the topology.
"""

from compose.faults import await_status, commit, purge_until_gone
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for

LAST_NUMBER = 2**63 - 2


def relaxed_durability(server: Server) -> None:
    """Let a server lose committed transactions if its machine fails."""
    server.execute("SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 2")


def workers_out_of_order(replica: Server) -> None:
    """Let the workers of a replica commit in any order."""
    prefix = replica.dialect.words.replica_variable_prefix
    replica.execute(
        replica.dialect.stop_replica,
        f"SET GLOBAL {prefix}parallel_workers = 4",
        f"SET GLOBAL {prefix}preserve_commit_order = OFF",
        replica.dialect.start_replica,
    )


def short_retention(server: Server) -> None:
    """Keep binary logs for an hour."""
    server.execute("SET GLOBAL binlog_expire_logs_seconds = 3600")


def same_keys(pair: Pair) -> None:
    """Let both servers of a pair generate the same AUTO_INCREMENT values."""
    for server in (pair.a, pair.b):
        server.execute(
            "SET GLOBAL auto_increment_increment = 1", "SET GLOBAL auto_increment_offset = 1"
        )


def own_gap(server: Server, *, above: int = 5) -> str:
    """Commit an empty transaction by hand under a server's own UUID; return the gap below it."""
    uuid = server.value("@@server_uuid")
    before = commit(server, "CREATE DATABASE gap")
    number = int(before.rpartition(":")[2])
    by_hand(server, f"{uuid}:{number + above}")
    return f"{uuid}:{number + 1}-{number + above - 1}"


def by_hand(server: Server, *gtids: str) -> None:
    """Commit empty transactions under these GTIDs."""
    for gtid in gtids:
        server.execute(
            f"SET GTID_NEXT = '{gtid}'", "BEGIN", "COMMIT", "SET GTID_NEXT = 'AUTOMATIC'"
        )


def numbers_used_up(server: Server, *, left: int) -> None:
    """Leave a server that has executed nothing with a few numbers."""
    uuid = server.value("@@server_uuid")
    server.execute(
        server.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{uuid}:1-{LAST_NUMBER - left}'",
    )


def purged_under_stopped_applier(pair: Pair) -> str:
    """Let b receive a transaction, not apply it, and a purge it; return its GTID."""
    pair.settle()
    pair.b.execute(f"{pair.b.dialect.stop_replica} SQL_THREAD")
    gtid = commit(pair.a, "CREATE DATABASE only_in_the_relay_log")
    number = gtid.rpartition(":")[2]
    await_status(pair.b, lambda status: number in str(status["Retrieved_Gtid_Set"]))
    pair.a.execute("FLUSH BINARY LOGS")
    purge_until_gone(pair.a, gtid)
    return gtid


def purged_on_sibling(topology: Topology, *, replica: str, sibling: str) -> str:
    """Stop a replica, and let its sibling purge the next transaction; return its GTID."""
    topology.settle()
    stopped = topology[replica]
    stopped.execute(stopped.dialect.stop_replica)
    gtid = commit(topology["source"], "CREATE DATABASE purged_on_sibling")
    wait_for(topology[sibling], gtid)
    topology[sibling].execute("FLUSH BINARY LOGS")
    purge_until_gone(topology[sibling], gtid)
    return gtid
