"""What a reading keeps of the facts that a server of some vendor showed, live or pasted.

1. The vendor follows from the first statement. The settings may show another one, as Aurora's.
2. An Aurora reader answers with sets, but they are not those of a replica: it reads the volume of
   its writer, and applies no log. Its sets are not kept.
3. Each fact that the server did not give gets the vendor's reason (vendor_reasons.py).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pymysql
from pymysql.constants import ER

from topology.adapters.answered_rows import only_row, rows_of, text_of
from topology.adapters.connection import Connection
from topology.adapters.reading_statements import LOG_RETENTION, VERSION
from topology.adapters.vendor_reasons import with_vendor_reason
from topology.readings.dialect import SETTINGS
from topology.readings.snapshot import ServerSnapshot, UnreadFact, UnreadReason
from topology.readings.vendors import (
    BASEDIR,
    INNODB_READ_ONLY,
    LOG_RETENTION_HOURS,
    NO_GTIDS,
    READER,
    VENDOR_SETTINGS,
    Vendor,
    is_reader_of_volume,
    row_of,
    vendor_by_settings,
    vendor_of,
)
from topology.readings.version import ServerVersion

_OLDEST: Final = ServerVersion(5, 6, 0)

Setting: TypeAlias = tuple[str, str]
_NOT_SHOWN: Final = frozenset(
    {ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.NO_SUCH_TABLE}
)

# Our name of each setting that is read, with its names in all versions.
SETTINGS_READ: Final[Mapping[str, tuple[str, ...]]] = {
    **SETTINGS,
    **{name: (name,) for name in VENDOR_SETTINGS},
}


def vendor_of_row(row: Mapping[str, Any]) -> Vendor:
    """Return the vendor by the answer to VERSION. A pasted one may be without the basedir."""
    return vendor_of(
        version_text=str(row["version"]),
        version_comment=str(row["version_comment"]),
        settings={BASEDIR: str(row.get(BASEDIR) or "")},
    )


def version_texts_of(row: Mapping[str, Any]) -> tuple[str, Vendor]:
    """Return the text of the version and the vendor, by the answer to VERSION."""
    return str(row["version"]), vendor_of_row(row)


def read_version(connection: Connection) -> tuple[str, Vendor]:
    """Return the text of a server's version, and its vendor. Raises as `rows_of`."""
    return version_texts_of(only_row(rows_of(connection, VERSION, "version"), VERSION))


def why_refused(vendor: Vendor | None, version: ServerVersion | None) -> str:
    """Return why a server is asked for no GTIDs, as the end of a sentence; "" if it is."""
    if version is not None and version < _OLDEST:
        return row_of(vendor).why_unevaluated or NO_GTIDS
    return row_of(vendor).why_unevaluated


def log_retention_of(connection: Connection, reading: ServerSnapshot) -> tuple[Setting, ...]:
    """Return for how long RDS and Aurora keep binary logs; nothing if the table is not shown.

    The value is a number of hours, or NULL: the service deletes a log as soon as it can. Without
    it, runway.py says why no time is known.
    """
    vendor = vendor_by_settings(reading.vendor, dict(reading.settings or ()))
    if LOG_RETENTION_HOURS not in row_of(vendor).log_settings:
        return ()
    try:
        rows = rows_of(connection, LOG_RETENTION, "value")
    except pymysql.MySQLError as error:
        if error.args[0] in _NOT_SHOWN:
            return ()
        raise
    return tuple((LOG_RETENTION_HOURS, text_of(row["value"]) or "NULL") for row in rows)


def as_vendor_gives(reading: ServerSnapshot) -> ServerSnapshot:
    """Return a reading with its final vendor, with what it gives, and with reasons for the rest."""
    settings = dict(reading.settings or ())
    vendor = vendor_by_settings(reading.vendor, settings)
    unread = {with_vendor_reason(vendor, each) for each in reading.unread}
    found = replace(reading, vendor=vendor)
    if reading.gtid_executed is not None and is_reader_of_volume(vendor, settings):
        is_shown = INNODB_READ_ONLY in settings
        detail = READER if is_shown else f"{INNODB_READ_ONLY} was not read: it may be {READER}"
        unread.add(UnreadFact("gtid_executed", UnreadReason.UNSUPPORTED, detail))
        found = replace(found, gtid_executed=None, gtid_purged=None, gtid_owned=None)
    return replace(found, unread=tuple(sorted(unread)))
