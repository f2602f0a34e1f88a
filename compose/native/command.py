"""The command line of a server: small, fast, on loopback only, with GTIDs and binary logs on.

server_setup.py has the options whose names differ between versions. This module starts nothing.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from compose.native.installation import Installation
from compose.native.server_setup import dialect_of


@dataclass(frozen=True, slots=True)
class Settings:
    """The individual settings of one server.

    It is durable, like a source should be (C5); on a file system in memory that costs nothing.
    """

    bind_address: str = "127.0.0.1"
    sync_binlog: int = 1
    innodb_flush_log_at_trx_commit: int = 1
    auto_increment_offset: int = 1
    auto_increment_increment: int = 1
    extra: tuple[str, ...] = ()
    """Further mysqld options, ``--name=value``; they come last and so win."""


_SMALL = (
    "--innodb-buffer-pool-size=16M",
    "--innodb-doublewrite=OFF",
    "--innodb-read-io-threads=1",
    "--innodb-write-io-threads=1",
    "--innodb-use-native-aio=OFF",
    "--innodb-flush-method=nosync",
    "--key-buffer-size=16K",
    "--table-open-cache=200",
    "--table-definition-cache=400",
    "--max-connections=100",
    "--thread-cache-size=8",
    "--tmp-table-size=1M",
    "--max-heap-table-size=1M",
)


def server_command(
    installation: Installation,
    settings: Settings,
    *,
    datadir: Path,
    host: str,
    port: int,
    server_id: int,
) -> list[str]:
    """Return the command line that starts a server on its data directory."""
    return [
        *installation.mysqld,
        "--no-defaults",
        *installation.options,
        *user_option(),
        f"--datadir={datadir}",
        # When a 5.6 server starts, it deletes all temporary tables in its tmpdir. So not /tmp,
        # which has those of other servers (seen: error 6, "Error on delete of '/tmp/#sql_…'").
        f"--tmpdir={datadir}",
        f"--server-id={server_id}",
        f"--port={port}",
        f"--bind-address={settings.bind_address}",
        "--socket=mysql.sock",
        "--pid-file=mysqld.pid",
        f"--report-host={host}",
        f"--report-port={port}",
        "--skip-name-resolve",
        "--secure-file-priv=",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency",
        "--log-bin=binlog",
        "--relay-log=relay",
        f"--sync-binlog={settings.sync_binlog}",
        f"--innodb-flush-log-at-trx-commit={settings.innodb_flush_log_at_trx_commit}",
        f"--auto-increment-offset={settings.auto_increment_offset}",
        f"--auto-increment-increment={settings.auto_increment_increment}",
        *_SMALL,
        *dialect_of(installation.version).server_options,
        *settings.extra,
    ]


def user_option() -> list[str]:
    """Return the option without which mysqld refuses to run as root."""
    return [f"--user={pwd.getpwuid(0).pw_name}"] if os.geteuid() == 0 else []
