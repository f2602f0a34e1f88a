"""The few settings that change what an audit may conclude, where they are not harmless: one text.

Stored runs hold all settings of a server. Reading them for every cluster of a fleet takes longer
than the rest of the audit, so these few are stored separately. The text is "" for nearly every
server; otherwise, for example, `replica_exec_mode=IDEMPOTENT;replica_skip_errors=1062`.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

# Values with which the setting has no effect on conclusions, in upper case.
_HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "binary_log": frozenset(),  # listed only if the server closed it: see dialect.py
    "binlog_do_db": frozenset({""}),
    "binlog_ignore_db": frozenset({""}),
    "group_replication_group_name": frozenset({""}),
    "gtid_mode": frozenset({"ON"}),
    "log_bin": frozenset({"ON", "1"}),
    "log_replica_updates": frozenset({"ON", "1"}),
    "replica_exec_mode": frozenset({"STRICT"}),
    "replica_skip_errors": frozenset({"", "OFF"}),
    "replica_type_conversions": frozenset({"", "ALL_NON_LOSSY", "ALL_SIGNED", "ALL_UNSIGNED"}),
    "sql_replica_skip_counter": frozenset({"0"}),
    "wsrep_on": frozenset({"OFF"}),
}


def notable_settings_of(settings: Iterable[tuple[str, str]]) -> str:
    """Return the settings that are not harmless, in order of name."""
    return ";".join(
        f"{name}={value.replace(';', ',')}"  # a schema name may contain any character
        for name, value in sorted(settings)
        if name in _HARMLESS and value.upper() not in _HARMLESS[name]
    )


# Nearly every server has one of a few texts, and every rule looks up the values again.
@lru_cache(maxsize=1024)
def notable_values(text: str | None) -> Mapping[str, str]:
    """Return the values of `notable_settings_of`, by name."""
    parts = (part.partition("=") for part in (text or "").split(";"))
    return MappingProxyType({name: value for name, equals, value in parts if equals})
