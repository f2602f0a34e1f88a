"""The few settings that change what an audit concludes or remarks on, where they are not harmless.

Stored runs hold all settings of a server. Reading them for every cluster of a fleet takes longer
than the rest of the audit, so these few are stored separately. The text is "" for nearly every
server; otherwise, for example, `replica_exec_mode=IDEMPOTENT;replica_skip_errors=1062`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from topology.readings.vendors import LOG_RETENTION_HOURS

# Values with which the setting has no effect on conclusions, in upper case.
_HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "binary_log": frozenset(),  # listed only if the server closed it: see dialect.py
    "binlog_do_db": frozenset({""}),
    "binlog_ignore_db": frozenset({""}),
    "group_replication_group_name": frozenset({""}),
    "gtid_mode": frozenset({"ON"}),
    "innodb_flush_log_at_trx_commit": frozenset({"1"}),
    "log_bin": frozenset({"ON", "1"}),
    "log_replica_updates": frozenset({"ON", "1"}),
    "offline_mode": frozenset({"OFF", "0"}),
    "replica_exec_mode": frozenset({"STRICT"}),
    "replica_skip_errors": frozenset({"", "OFF"}),
    "replica_type_conversions": frozenset({"", "ALL_NON_LOSSY", "ALL_SIGNED", "ALL_UNSIGNED"}),
    "sql_replica_skip_counter": frozenset({"0"}),
    "sync_binlog": frozenset({"1"}),
    "wsrep_on": frozenset({"OFF"}),
}

# Values that only several settings together have: each is absent where it is harmless.
COMMIT_ORDER: Final = "replica_preserve_commit_order"  # OFF, with more than one worker
AUTO_INCREMENT: Final = "auto_increment"  # "increment/offset" of a server that is writable
RETENTION_SECONDS: Final = "binlog_retention_seconds"  # below RETENTION_SECONDS_ENOUGH
RETENTION_SECONDS_ENOUGH: Final = 7 * 86_400

_OFF: Final = frozenset({"OFF", "0"})


def notable_settings_of(settings: Iterable[tuple[str, str]]) -> str:
    """Return the settings that are not harmless, in order of name."""
    values = dict(settings)
    notable = {
        name: value.replace(";", ",")  # a schema name may contain any character
        for name, value in values.items()
        if name in _HARMLESS and value.upper() not in _HARMLESS[name]
    }
    notable.update(_of_several(values))
    return ";".join(f"{name}={notable[name]}" for name in sorted(notable))


def _of_several(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what only several settings together show."""
    order = values.get("replica_preserve_commit_order", "OFF")  # before 5.7.5 there is none
    if order.upper() in _OFF and int(values.get("replica_parallel_workers") or 0) > 1:
        yield COMMIT_ORDER, order
    if values.get("read_only", "ON").upper() in _OFF and "auto_increment_increment" in values:
        offset = values.get("auto_increment_offset", "1")
        yield AUTO_INCREMENT, f"{values['auto_increment_increment']}/{offset}"
    kept = retention_seconds_of(values)
    if kept is not None and kept < RETENTION_SECONDS_ENOUGH:
        yield RETENTION_SECONDS, str(kept)


def retention_seconds_of(values: Mapping[str, str]) -> int | None:
    """Return for how long a server keeps its binary logs; None if for ever, or not known.

    On RDS and Aurora the service deletes them: its hours count, and no variable of MySQL.
    """
    if LOG_RETENTION_HOURS in values:
        hours = values[LOG_RETENTION_HOURS]
        return int(hours) * 3600 if hours.isdecimal() else None
    if values.get("binlog_expire_logs_auto_purge", "ON").upper() in _OFF:
        return None  # 8.0.29 and later
    seconds = int(values.get("binlog_expire_logs_seconds") or 0)
    days = int(values.get("expire_logs_days") or 0)  # 8.0: only if the seconds are 0
    return seconds or days * 86_400 or None


def may_ignore_errors(text: str | None) -> bool:
    """Return whether an applier may continue where a row is not as its event expects (C15).

    `text` is None if the settings were not read.
    """
    ignoring = {"replica_skip_errors", "replica_exec_mode"}
    return text is None or not ignoring.isdisjoint(notable_values(text))


# Nearly every server has one of a few texts, and every rule looks up the values again.
@lru_cache(maxsize=1024)
def notable_values(text: str | None) -> Mapping[str, str]:
    """Return the values of `notable_settings_of`, by name."""
    parts = (part.partition("=") for part in (text or "").split(";"))
    return MappingProxyType({name: value for name, equals, value in parts if equals})
