"""Changes of servers between the moment a repair is planned and the moment it runs.

Each function changes one server by the statements that an operator or an application would use. A
plan's scripts must notice the change, and must then change nothing.
"""

from compose.native.provision import REPLICATION_USER
from compose.native.server import Server

# An address without a server: the channel is configured, and never started.
FOREIGN_PORT = 3999


def point_channel_elsewhere(replica: Server) -> None:
    """Point the default channel at a server outside the topology, and do not start it."""
    replica.execute(
        replica.dialect.stop_replica,
        replica.dialect.change_source_to(
            host=replica.host, port=FOREIGN_PORT, user=REPLICATION_USER, auto_position=1
        ),
    )


def remove_channel(replica: Server) -> None:
    """Remove the default channel."""
    replica.execute(replica.dialect.stop_replica, replica.dialect.reset_replica)


def add_channel(replica: Server, source: Server) -> None:
    """Configure the default channel of a server that had none, and do not start it."""
    replica.execute(
        replica.dialect.change_source_to(
            host=source.host, port=source.port, user=REPLICATION_USER, auto_position=1
        )
    )


def switch_to_file_position(replica: Server) -> None:
    """Switch a stopped channel's auto-position off."""
    replica.execute(replica.dialect.stop_replica, replica.dialect.change_source_to(auto_position=0))


def occupy_row(replica: Server, table: str, key: int) -> None:
    """Insert a row that the next one from the source conflicts with (1062), without logging it."""
    replica.execute("SET SESSION sql_log_bin = 0", f"INSERT INTO {table} (id) VALUES ({key})")


def another_server_uuid(server: Server) -> None:
    """Let another server respond at a server's address: the same rows, another server_uuid."""
    server.stop()
    (server.datadir / "auto.cnf").unlink()
    server.start()
