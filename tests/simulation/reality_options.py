"""The steps of options.py on real servers: see reality.py.

A server that is killed and started without its binary log forgets the GTIDs of transactions that
changed no row (seen on 9.7.4), so that one is shut down in good order.
"""

from __future__ import annotations

from dataclasses import replace

from compose.native.server import Server as RealServer
from tests.simulation.reality import TABLE, Twins, real, row_statement, start_again, threads


def _restart_with(both: Twins, name: str, *options: str, in_order: bool = False) -> None:
    here = both.real(name)
    here.settings = replace(here.settings, extra=(*here.settings.extra, *options))
    if in_order:
        here.stop()
    else:
        here.kill()
    start_again(both, name)


def _prefix(here: RealServer) -> str:
    return here.dialect.words.replica_variable_prefix


@real("log-replica-updates-off")
def _log_replica_updates_off(both: Twins, name: str) -> None:
    _restart_with(both, name, "--log-replica-updates=OFF", in_order=True)


@real("log-bin-off")
def _log_bin_off(both: Twins, name: str) -> None:
    _restart_with(both, name, "--skip-log-bin", in_order=True)


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
def _skip_counter(both: Twins, name: str, _channel: str) -> None:
    here = both.real(name)
    here.execute(
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        threads(here, "applier", start=False),
        "SET GLOBAL sql_replica_skip_counter = 1",
        threads(here, "applier", start=True),
    )


@real("idempotent")
def _idempotent(both: Twins, name: str) -> None:
    here = both.real(name)
    here.execute(f"SET GLOBAL {_prefix(here)}exec_mode = IDEMPOTENT")
    if both.world[name].channels[0].is_reset:
        return
    here.execute(threads(here, "applier", start=False), threads(here, "applier", start=True))


@real("write-statement")
def _write_statement(both: Twins, name: str, kind: str, key: str, where: str) -> None:
    value = both.world.works
    text = f"UPDATE {TABLE} SET v = {value} WHERE k = '{key}'"
    if kind == "insert":
        text = f"INSERT INTO {TABLE} SELECT '{key}', {value} FROM {TABLE} WHERE k = '{where}'"
    both.real(name).execute("SET binlog_format = 'STATEMENT'", text)


@real("drop-table")
def _drop_table(both: Twins, name: str) -> None:
    both.real(name).execute("DROP TABLE sim.made")


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
