"""Brings MariaDB onto the machine, and runs one server of it: what such a server answers to us.

It comes from Debian's package, unpacked like that of MySQL (provision.py). The server begins with
an empty data directory and without grant tables: any account is root, from loopback only.

If it cannot be fetched, the tests that need it are skipped by name.
"""

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pymysql

from compose.native.apt import unpack_packages
from compose.native.cache import Progress, build_once, cache_root, silent
from compose.native.command import user_option
from compose.native.processes import current_supervisor
from compose.native.provision import loader_of
from compose.native.server import ServerFailed, free_port

_PACKAGES: Final = ("mariadb-server-core",)
_ADDRESS: Final = "127.0.0.1"
_START_SECONDS_MAX: Final = 60.0
_STOP_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.05


def provision_mariadb(*, progress: Progress = silent) -> Path:
    """Return the folder of the unpacked packages, fetching them on first use: 75 MB, 20 seconds.

    Raises ProviderMissing with what is missing.
    """

    def build(folder: Path) -> None:
        work = cache_root() / "download" / "apt-mariadb"
        unpack_packages(_PACKAGES, suite="sid", into=folder, work=work, progress=progress)
        shutil.rmtree(work)

    return build_once("mariadb-debian", build, progress=progress)


@contextmanager
def running_mariadb(prefix: Path) -> Iterator[str]:
    """Run a server with a binary log until the block ends; return its DSN. Raises ServerFailed."""
    supervisor = current_supervisor()
    port = free_port(_ADDRESS)
    folder = supervisor.folder / f"mariadb-{port}"
    datadir, log = folder / "data", folder / "error.log"
    datadir.mkdir(parents=True)
    command = [
        *loader_of(prefix),
        *(str(prefix / "usr" / "sbin" / "mariadbd"), "--no-defaults", f"--basedir={prefix}/usr"),
        f"--lc-messages-dir={prefix}/usr/share/mariadb",
        f"--character-sets-dir={prefix}/usr/share/mariadb/charsets",
        *(f"--datadir={datadir}", f"--tmpdir={datadir}", f"--port={port}"),
        *(f"--bind-address={_ADDRESS}", "--socket=mariadb.sock", "--server-id=1"),
        *("--log-bin=binlog", "--skip-grant-tables", "--skip-name-resolve"),
        *("--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", "--key-buffer-size=16K"),
        *user_option(),
    ]
    child = supervisor.start(command, folder=folder, output=log, environment={})
    try:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not _answers(port):
            if child.status() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"MariaDB did not start:\n{log.read_text(errors='replace')}")
            time.sleep(_POLL_SECONDS)
        yield f"mysql://root@{_ADDRESS}:{port}/"
    finally:
        child.send(signal.SIGKILL)
        child.wait(timeout_seconds_max=_STOP_SECONDS_MAX)
        shutil.rmtree(folder)


def _answers(port: int) -> bool:
    try:
        pymysql.connect(host=_ADDRESS, port=port, user="root", connect_timeout=2).close()
    except pymysql.MySQLError:
        return False
    return True
