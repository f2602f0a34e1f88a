"""The steps of options.py on real servers: see reality.py.

A server that is killed and started without its binary log forgets the GTIDs of transactions that
changed no row (seen on 9.7.4), so that one begins a new log before.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

from compose.native.server import Server as RealServer
from tests.simulation import definitions
from tests.simulation import replication as act
from tests.simulation.reality import (
    Twins,
    at,
    real,
    row_statement,
    start_again,
    status_of,
    table_of,
    threads,
)


def _restart_with(both: Twins, name: str, *options: str) -> None:
    """Restart a server with more options. It is killed: replicas find it gone, not half there."""
    here = both.real(name)
    here.settings = replace(here.settings, extra=(*here.settings.extra, *options))
    if here.replica_status():
        here.execute(here.dialect.stop_replica)  # the applier saves its place
    here.kill()
    start_again(both, name)


def _prefix(here: RealServer) -> str:
    return here.dialect.words.replica_variable_prefix


@real("log-replica-updates-off")
def _log_replica_updates_off(both: Twins, name: str) -> None:
    _restart_with(both, name, "--log-replica-updates=OFF")


@real("log-bin-off")
def _log_bin_off(both: Twins, name: str) -> None:
    both.real(name).execute("FLUSH BINARY LOGS")  # the GTIDs are saved outside them
    _restart_with(both, name, "--skip-log-bin")


@real("lose-log")
def _lose_log(both: Twins, name: str, number: int) -> None:
    here = both.real(name)
    file = f"binlog.{number:06}"
    if here.replica_status():
        here.execute(here.dialect.stop_replica)  # the applier saves its place
    here.stop()  # killed, it would search the last log that it has
    index = here.datadir / "binlog.index"
    kept = [line for line in index.read_text().splitlines() if file not in line]
    index.write_text("".join(f"{line}\n" for line in kept))
    (here.datadir / file).unlink()
    start_again(both, name)


@real("relay-log-recovery-off")
def _relay_log_recovery_off(both: Twins, name: str) -> None:
    here = both.real(name)  # it takes effect with the next restart
    here.settings = replace(here.settings, extra=(*here.settings.extra, "--relay-log-recovery=OFF"))


@real("skip-errors")
def _skip_errors(both: Twins, name: str) -> None:
    option = f"--{_prefix(both.real(name)).rstrip('_')}-skip-errors=all"
    _restart_with(both, name, option)


@real("gtid-mode-on-permissive")
def _on_permissive(both: Twins, name: str) -> None:
    both.real(name).execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")


@real("gtid-mode-on")
def _on(both: Twins, name: str) -> None:
    both.real(name).execute("SET GLOBAL gtid_mode = ON")


@real("skip-counter")
def _skip_counter(both: Twins, name: str, channel: str) -> None:
    here = both.real(name)
    here.execute(
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        threads(here, "applier", start=False, channel=channel),
        "SET GLOBAL sql_replica_skip_counter = 1",
        threads(here, "applier", start=True, channel=channel),
    )


@real("idempotent")
def _idempotent(both: Twins, name: str) -> None:
    here = both.real(name)
    here.execute(f"SET GLOBAL {_prefix(here)}exec_mode = IDEMPOTENT")
    for channel in both.world[name].channels:
        if not channel.is_reset:
            here.execute(
                threads(here, "applier", start=False, channel=channel.name),
                threads(here, "applier", start=True, channel=channel.name),
            )


@real("write-statement")
def _write_statement(both: Twins, name: str, kind: str, key: str, where: str) -> None:
    value = both.world.works
    text = f"UPDATE {table_of(key)} SET v = {value} WHERE k = '{key}'"
    if kind == "insert":
        from_where = f"FROM {table_of(where)} WHERE k = '{where}'"
        text = f"INSERT INTO {table_of(key)} SELECT '{key}', {value} {from_where}"
    both.real(name).execute("SET binlog_format = 'STATEMENT'", text)


@real("drop-table")
def _drop_table(both: Twins, name: str) -> None:
    both.real(name).execute("DROP TABLE sim.made")


@real(definitions.ALTER)
def _alter_table(both: Twins, name: str) -> None:
    both.real(name).execute(_altered(both, name))


def _altered(both: Twins, name: str) -> str:
    length = definitions.length_of(both.world[name].rows[act.TABLE])
    return f"ALTER TABLE sim.made MODIFY v VARCHAR({length})"


@real(definitions.UNLOGGED)
def _table_unlogged(both: Twins, name: str, kind: str) -> None:
    text = "DROP TABLE sim.made"
    if kind == "create":
        text = "CREATE TABLE sim.made (id INT PRIMARY KEY, v VARCHAR(100))"
    elif kind == "alter":
        text = _altered(both, name)
    both.real(name).execute("SET sql_log_bin = 0", text)


_VIEW = "CREATE VIEW sim.seen AS SELECT 1"


@real("create-view")
def _create_view(both: Twins, name: str) -> None:
    last = both.world[name].files[-1].entries[-1:]
    if last and last[0].failed_on_source:
        with pytest.raises(pymysql.err.MySQLError, match="1050"):
            both.real(name).execute(_VIEW)
    else:
        both.real(name).execute(_VIEW)


@real("view-unlogged")
def _view_unlogged(both: Twins, name: str) -> None:
    is_there = act.VIEW in both.world[name].rows
    text = _VIEW if is_there else "DROP VIEW sim.seen"
    both.real(name).execute("SET sql_log_bin = 0", text)


@real("write-by-hand-tagged")
def _write_by_hand_tagged(  # noqa: PLR0917 - the words of a step
    both: Twins, name: str, uuid: str, number: int, kind: str, key: str
) -> None:
    begin = f"SET gtid_next = '{both.gtid((uuid, 'dba', number))}'"
    if kind == "empty":
        both.real(name).execute(begin, "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")
    else:
        text = row_statement(both.world, kind, key)
        both.real(name).execute(begin, text, "SET gtid_next = 'AUTOMATIC'")


# -- steps of steps.py and faults.py that need more than a statement ------------------------------


@real("source-delay")
def _source_delay(both: Twins, name: str, channel: str, seconds: int) -> None:
    here = both.real(name)
    receives = status_of(here, channel)["Replica_IO_Running"] != "No"
    stopped = "applier" if here.version >= act.MODERN else "both"
    here.execute(
        threads(here, stopped, start=False, channel=channel),
        f"{here.dialect.words.change_source} {_option(here)}DELAY = {seconds}{at(channel)}",
        threads(here, "both" if receives else "applier", start=True, channel=channel),
    )


def _option(here: RealServer) -> str:
    return here.dialect.words.option_prefix


@real("filter")
def _filter(both: Twins, name: str, channel: str, _key: str) -> None:
    here, path = both.real(name), both.world[name].channel(channel)
    assert path is not None, "the step applied"
    ignored = ", ".join(table_of(key) for key in sorted(path.ignored_keys))
    here.execute(
        threads(here, "applier", start=False, channel=channel),
        f"CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = ({ignored}){at(channel)}",
        threads(here, "applier", start=True, channel=channel),
    )


@real("same-server-uuid")
def _same_server_uuid(both: Twins, name: str, _other: str) -> None:
    here = both.real(name)
    if status_of(here, "") or both.world[name].channels:
        here.execute(here.dialect.stop_replica)
    here.kill()
    uuid = both.uuids[both.world[name].uuid]
    (here.datadir / "auto.cnf").write_text(f"[auto]\nserver-uuid={uuid}\n")
    start_again(both, name)


@real("relay-log-position")
def _relay_log_position(both: Twins, name: str, channel: str, place: int) -> None:
    here, path = both.real(name), both.world[name].channel(channel)
    assert path is not None, "the step applied"
    here.execute(here.dialect.stop_replica + at(channel))
    begins, end = _relay_places(here, channel)
    kept = begins[len(begins) - len(path.relay) :]
    file, position = [*kept, end][place]
    prefix = _option(here)
    here.execute(
        f"{here.dialect.words.change_source} RELAY_LOG_FILE = '{file}', RELAY_LOG_POS = {position},"
        f" {prefix}AUTO_POSITION = 0{at(channel)}",
        here.dialect.start_replica + at(channel),
    )


def _relay_places(here: RealServer, channel: str) -> tuple[list[tuple[str, int]], tuple[str, int]]:
    """Return where each transaction in the relay logs begins, and their end."""
    base = f"relay-{channel}" if channel else "relay"
    files = [Path(line).name for line in (here.datadir / f"{base}.index").read_text().split()]
    begins: list[tuple[str, int]] = []
    end = (files[-1], 4)
    for file in files:
        rows = here.query(f"SHOW RELAYLOG EVENTS IN '{file}'{at(channel)}")
        begins += [(file, int(row[1])) for row in rows if str(row[2]).lower().startswith("gtid")]
        if rows:
            # The last column but one is a place in the source's log: the file's own end is on disk.
            end = (file, (here.datadir / file).stat().st_size)
    return begins, end
