"""The settings of one server, from the SHOW GLOBAL VARIABLES in its pasted output. Pure.

A live server answers for all settings at once, so a setting without a value does not exist there.
A file may have a few lines of the answer. Then a setting without a value is unread, unless its
version has no such setting (topology/readings/dialect.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from topology.adapters.offline.pasted_output import PastedResult, normal_statement
from topology.adapters.offline.recognised import PastedKind, kind_of
from topology.adapters.reading_statements import settings_statement
from topology.adapters.vendor_facts import SETTINGS_READ
from topology.readings.dialect import (
    BINARY_LOG_FILTERS,
    SETTINGS,
    SOURCES_OF_VALUES,
    dialect_of,
    settings_due,
)
from topology.readings.notable_settings import notable_settings_of
from topology.readings.version import ServerVersion

_COMPLETE: Final = frozenset(
    (
        PastedKind.VARIABLES.value,
        "SHOW GLOBAL VARIABLES",
        normal_statement(settings_statement()).upper(),
    )
)


@dataclass(frozen=True, slots=True)
class PastedSettings:
    """The settings that were shown, sorted by name, and what is missing."""

    settings: tuple[tuple[str, str], ...] | None  # None: none were shown, or one is malformed
    missing: tuple[str, ...] = ()
    has_no_sources: bool = False
    problems: tuple[str, ...] = ()


def settings_in(results: Sequence[PastedResult], version: ServerVersion | None) -> PastedSettings:
    """Return the settings of a server, from all results that show some."""
    values: dict[str, str] = {}
    extra: dict[str, str] = {}
    is_complete, has_sources, line = False, False, 0
    for result in results:
        table, statement = result.table, result.statement
        kind = kind_of(table.columns)
        if kind is PastedKind.VARIABLES:
            is_complete = is_complete or statement in _COMPLETE or statement.upper() in _COMPLETE
            for row in table.rows:
                values[(row["Variable_name"] or "").lower()] = row["Value"] or ""
            line = table.line
        elif kind is PastedKind.SOURCES_OF_VALUES:
            has_sources = True
            for row in table.rows:
                if row["name"] in SOURCES_OF_VALUES:
                    extra[SOURCES_OF_VALUES[row["name"]]] = row["source"] or ""
        elif kind is PastedKind.LOG_END:
            shown = table.rows[-1] if table.rows else {}
            extra |= {
                ours: text
                for column, ours in BINARY_LOG_FILTERS.items()
                if (text := shown.get(column))
            }
        elif statement == PastedKind.SOURCES_OF_VALUES.value:
            has_sources = True  # without rows, if performance_schema is OFF
    known = _ours(values)
    missing = () if is_complete else tuple(n for n in settings_due(version) if n not in known)
    needs_sources = version is not None and dialect_of(version).has_variables_info
    has_no_sources = needs_sources and not has_sources
    if not known:
        return PastedSettings(None, missing or tuple(SETTINGS), has_no_sources)
    settings = tuple(sorted({**known, **extra}.items()))
    try:
        notable_settings_of(settings)
    except ValueError as error:
        return PastedSettings(None, missing, has_no_sources, (f"line {line}: {error}",))
    return PastedSettings(settings, missing, has_no_sources)


def _ours(values: dict[str, str]) -> dict[str, str]:
    found = (
        (ours, next((values[name] for name in names if name in values), None))
        for ours, names in SETTINGS_READ.items()
    )
    return {ours: value for ours, value in found if value is not None}
