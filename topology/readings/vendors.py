"""The vendors of servers: what each one's server prints, and what its service does not give.

One table, VENDORS. A vendor is added as a row: how its servers are recognised, what gtid-audit
cannot evaluate on them, the reasons why facts stay unread there, who deletes binary logs, and which
privileges no account has.

How it works
------------
Three things that any account may read show a vendor: @@version with @@version_comment, @@basedir,
and variables that only this vendor's server has. The first row that matches is the vendor. Rows of
other servers come first (MariaDB, Vitess): their texts also contain "MySQL". A server that matches
no row is MYSQL, as every server that Oracle or a distribution built.

    SELECT @@version, @@version_comment   before anything else: a server of another kind is not
                                          asked for GTIDs
    SHOW GLOBAL VARIABLES                 basedir and the variables of vendors, with the settings

RDS and Aurora print texts of MySQL ("8.0.35", "Source distribution"), so only the basedir and
aurora_version show them. Where a proxy hides both, such a server counts as MYSQL.

The rows are from what these servers print in public dumps, and from the vendors' manuals. None of
them was tested on the service itself. A reason is shown beside the server's own message, never in
place of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final


class Vendor(Enum):
    """The vendor of a server, as far as the server shows it."""

    MYSQL = "MySQL"
    PERCONA = "Percona"
    RDS = "RDS"
    AURORA = "Aurora"
    AZURE = "Azure"
    CLOUD_SQL = "Cloud SQL"
    HEATWAVE = "HeatWave"
    GALERA = "Galera"  # Percona XtraDB Cluster, MySQL with wsrep: not evaluated by this version
    MARIADB = "MariaDB"  # other GTIDs altogether: recognized so that it can be refused
    TIDB = "TiDB"
    VITESS = "Vitess"


@dataclass(frozen=True, slots=True)
class VendorRow:
    """What one vendor's servers print, and what they do not give."""

    vendor: Vendor
    texts: tuple[str, ...] = ()  # in @@version or @@version_comment, in lower case
    basedirs: tuple[str, ...] = ()  # in @@basedir, in lower case
    variables: tuple[str, ...] = ()  # of which no other vendor's server has one
    # What such a server is, if gtid-audit compares no sets of it; "" if it does.
    unevaluated: str = ""
    why_unevaluated: str = ""
    # By the name of a fact: why the service does not give it, or how it does.
    reasons: Mapping[str, str] = field(default_factory=dict)
    # How the service deletes binary logs; "" where MySQL's own settings decide. If one of these
    # settings is a number above 0, it decides.
    log_deletion: str = ""
    log_settings: tuple[str, ...] = ()
    # How its accounts change settings, as the end of a sentence; "" by SET GLOBAL and a file.
    configuration: str = ""
    # The privileges that the service gives none of its accounts.
    withheld: frozenset[str] = frozenset()


AURORA_VERSION: Final = "aurora_version"
INNODB_READ_ONLY: Final = "innodb_read_only"  # ON on an Aurora reader only
BASEDIR: Final = "basedir"
# Under our name, with the settings: what RDS and Aurora show in mysql.rds_configuration.
LOG_RETENTION_HOURS: Final = "binlog_retention_hours"

NO_GTIDS: Final = "has no MySQL GTIDs"
READER: Final = (
    "an Aurora reader: it reads the storage volume of its writer, has no binary log, and its sets"
    " are not those of a replica"
)
_RDS_HIDES_THREADS: Final = (
    "performance_schema is off by default: set it to 1 in the DB parameter group, and reboot the"
    " instance"
)
_RDS_LOG_FILE: Final = (
    "no account has access to files: download error/mysql-error.log with `aws rds"
    " download-db-log-file-portion`"
)
_RDS_CONFIGURES: Final = (
    "refuses SET GLOBAL, and no account has access to a configuration file: change the parameter in"
    " its {}"
)
_RDS_DELETES: Final = (
    "{} deletes a binary log as soon as it needs it no longer. It keeps logs only for 'binlog"
    " retention hours' (CALL mysql.rds_set_configuration), which gtid-audit reads from"
    " mysql.rds_configuration"
)
_AZURE_DELETES: Final = (
    "Azure deletes a binary log as soon as it needs it no longer while binlog_expire_logs_seconds"
    " is 0"
)

# "Master user account privileges" (RDS, Aurora), "MySQL user privileges" (Azure, Cloud SQL).
_WITHHELD: Final = frozenset(
    {"SUPER", "SYSTEM_VARIABLES_ADMIN", "SESSION_VARIABLES_ADMIN", "REPLICATION_SLAVE_ADMIN"}
)
_RDS_WITHHOLDS: Final = _WITHHELD | {"REPLICATION_APPLIER"}

_OFF: Final = frozenset({"OFF", "0"})

VENDORS: Final[tuple[VendorRow, ...]] = (
    VendorRow(
        Vendor.MARIADB,
        texts=("mariadb",),
        unevaluated="a MariaDB server",
        why_unevaluated=NO_GTIDS,
    ),
    VendorRow(
        Vendor.TIDB,
        texts=("tidb",),
        unevaluated="a TiDB server",
        why_unevaluated=f"{NO_GTIDS}, and no binary log that a replica reads",
    ),
    VendorRow(
        Vendor.VITESS,
        texts=("vitess", "planetscale"),
        unevaluated="a Vitess gateway",
        why_unevaluated="is a gateway: each statement may be answered by another MySQL server."
        " Audit the MySQL servers of its tablets",
    ),
    VendorRow(Vendor.GALERA, texts=("wsrep", "xtradb cluster", "galera")),
    VendorRow(Vendor.PERCONA, texts=("percona",)),
    VendorRow(
        Vendor.AURORA,
        texts=("aurora",),
        basedirs=("/rdsdbbin/oscar", "/rdsdbbin/aurora"),
        variables=(AURORA_VERSION,),
        reasons={
            "workers": _RDS_HIDES_THREADS,
            "metadata locks": _RDS_HIDES_THREADS,
            "error log": _RDS_LOG_FILE,
            "gtid_executed": "turn GTIDs on in the DB cluster parameter group (gtid-mode)",
        },
        configuration=_RDS_CONFIGURES.format("DB parameter group or DB cluster parameter group"),
        log_deletion=_RDS_DELETES.format("Aurora"),
        log_settings=(LOG_RETENTION_HOURS,),
        withheld=_RDS_WITHHOLDS,
    ),
    VendorRow(
        Vendor.RDS,
        basedirs=("/rdsdbbin/",),
        reasons={
            "workers": _RDS_HIDES_THREADS,
            "metadata locks": _RDS_HIDES_THREADS,
            "error log": _RDS_LOG_FILE,
            "gtid_executed": "turn GTIDs on in the DB parameter group (gtid-mode)",
        },
        configuration=_RDS_CONFIGURES.format("DB parameter group"),
        log_deletion=_RDS_DELETES.format("RDS"),
        log_settings=(LOG_RETENTION_HOURS,),
        withheld=_RDS_WITHHOLDS,
    ),
    VendorRow(
        Vendor.AZURE,
        texts=("-azure",),
        reasons={
            "gtid_executed": "turn GTIDs on with the server parameters enforce_gtid_consistency and"
            " gtid_mode, one step at a time",
            "error log": "no account has access to files: enable server logs, and download them",
        },
        configuration="refuses SET GLOBAL to most accounts: change the server parameter there",
        log_deletion=_AZURE_DELETES,
        log_settings=("binlog_expire_logs_seconds",),
        withheld=_WITHHELD,
    ),
    VendorRow(
        Vendor.CLOUD_SQL,
        texts=("-google", "(google)"),
        variables=("cloudsql_iam_authentication",),
        reasons={
            "workers": "set the flag performance_schema to on",
            "metadata locks": "set the flag performance_schema to on",
            "error log": "no account has access to files: read the log mysql.err in Cloud Logging",
        },
        configuration="refuses SET GLOBAL: change the database flag of the instance",
        log_deletion="Cloud SQL deletes binary logs by the instance's setting"
        " transactionLogRetentionDays",
        withheld=_WITHHELD,
    ),
    VendorRow(
        Vendor.HEATWAVE,
        texts=("mysql enterprise - cloud",),
        reasons={"error log": "no account has access to files"},
        configuration="refuses SET GLOBAL to most accounts: change the variable in the"
        " configuration of the DB system",
        withheld=frozenset({"SUPER"}),
    ),
)
_ROWS: Final[Mapping[Vendor, VendorRow]] = {row.vendor: row for row in VENDORS}
_UNKNOWN: Final = VendorRow(Vendor.MYSQL)

# Beside the settings of dialect.py: what shows a vendor, or what one of them shows.
VENDOR_SETTINGS: Final[tuple[str, ...]] = (
    BASEDIR,
    INNODB_READ_ONLY,
    *(name for row in VENDORS for name in row.variables),
)

_VARIABLES: Final = frozenset(name for row in VENDORS for name in row.variables)


def row_of(vendor: Vendor | None) -> VendorRow:
    """Return what is known of a vendor; nothing of MySQL's own servers, or of an unread vendor."""
    return _ROWS.get(vendor, _UNKNOWN) if vendor is not None else _UNKNOWN


def reason_of(vendor: Vendor | None, fact: str) -> str:
    """Return why a vendor's servers do not give a fact, or what makes them give it; or ""."""
    reason = row_of(vendor).reasons.get(fact, "")
    return f"{vendor.value}: {reason}" if vendor is not None and reason else ""


def vendor_of(
    *, version_text: str, version_comment: str, settings: Mapping[str, str] | None = None
) -> Vendor:
    """Return the vendor by `@@version`, `@@version_comment`, and settings if they are known."""
    both = f"{version_text} {version_comment}".lower()
    known = settings or {}
    return _vendor(both, known.get(BASEDIR, "").lower(), _VARIABLES.intersection(known))


@lru_cache(maxsize=1024)
def _vendor(both: str, basedir: str, variables: frozenset[str]) -> Vendor:
    return next(
        (row.vendor for row in VENDORS if _matches(row, both, basedir, variables)), Vendor.MYSQL
    )


def vendor_by_settings(vendor: Vendor | None, settings: Mapping[str, str]) -> Vendor | None:
    """Return the vendor after the settings were read: they show more of MySQL's own server."""
    if vendor not in (Vendor.MYSQL, Vendor.RDS):
        return vendor
    found = vendor_of(version_text="", version_comment="", settings=settings)
    return vendor if found is Vendor.MYSQL else found


def _matches(row: VendorRow, texts: str, basedir: str, variables: frozenset[str]) -> bool:
    return (
        any(word in texts for word in row.texts)
        or any(part in basedir for part in row.basedirs)
        or any(name in variables for name in row.variables)
    )


def is_reader_of_volume(vendor: Vendor | None, settings: Mapping[str, str]) -> bool:
    """Return whether a server is an Aurora reader: it reads its writer's volume, and no log.

    Its GTID sets are not those of a replica. A setting that was not read counts as a reader's.
    """
    return vendor is Vendor.AURORA and settings.get(INNODB_READ_ONLY, "").upper() not in _OFF
