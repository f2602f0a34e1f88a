"""The statements and commands that replace a server's data by a copy of another one.

1. 8.0.17 and later: the clone plugin, between two servers that it permits. Before: mysqldump. A
   service gives its accounts neither: its own restore is named.
2. The binary logs and GTIDs of the server that is replaced end. Its server_uuid stays, also after
   CLONE INSTANCE (seen on 9.7.4): the clone has no auto.cnf, and the one of the server is kept. If
   the server's own GTIDs are not in the copy, the file must go.
3. The clone plugin copies InnoDB only: tables of other engines are empty afterwards, without an
   error (seen on 9.7.4).
4. mysqldump reads gtid_executed after its snapshot began. Only --source-data (--master-data) holds
   the lock between the two, before 8.0.32; without it the dump may count commits as executed whose
   rows it does not have (client/mysqldump.cc, main). It reads text as utf8 before 8.0 unless
   --default-character-set says otherwise: characters of four bytes would be lost.

Source: reference manual, "The Clone Plugin", "mysqldump"; done on 9.7.4 and 5.6.24
(tests/repair/test_copies_live.py).
"""

from typing import Final

from gtid import GtidSet
from repair.model.replication_model import ModelServer
from repair.strategies.instruction_context import in_order
from topology.readings.dialect import dialect_of
from topology.readings.vendors import Vendor, row_of
from topology.readings.version import ServerVersion

_CLONES: Final = ServerVersion(8, 0, 17)
_CLONES_OF_SERIES: Final = ServerVersion(8, 0, 37)  # other patch versions of the same series, too
_SOURCE_DATA: Final = ServerVersion(8, 0, 26)
_INSTALL: Final = "INSTALL PLUGIN clone SONAME 'mysql_clone.so'"
_LOAD_ACCOUNTS: Final = "FLUSH LOCAL PRIVILEGES"  # without LOCAL it is logged: an extra GTID
_WRITABLE: Final = (
    "where read_only is ON, the account also needs CONNECTION_ADMIN or SUPER, and super_read_only"
    " must be OFF"
)
_OTHER_ENGINES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_TYPE ="
    " 'BASE TABLE' AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema',"
    " 'performance_schema', 'sys')"
)


def can_clone(donor: ServerVersion, here: ServerVersion) -> bool:
    """Return whether CLONE INSTANCE permits these two versions."""
    if min(donor, here) < _CLONES:
        return False
    of_series = (donor.major, donor.minor) == (here.major, here.minor)
    return donor == here or (of_series and min(donor, here) >= _CLONES_OF_SERIES)


def copying(donor: ModelServer, here: ModelServer, *, own: GtidSet) -> str:
    """Return how to replace the data of `here` by a copy of `donor`, up to its channels.

    Args:
        donor: the server to copy.
        here: the server whose data is replaced.
        own: its own GTIDs that are not in the copy.
    """
    if any(row_of(each.vendor or Vendor.MYSQL).withheld for each in (donor, here)):
        return (
            f"restore {here.name} from a new snapshot or backup of {donor.name} with the tools of"
            " its service. The copy must include the GTID set"
        )
    copied = _cloned if can_clone(donor.version, here.version) else _dumped
    return f"{copied(donor, here)}. {_kept(here.name, own)}"


def _kept(here: str, own: GtidSet) -> str:
    """Return what becomes of the server_uuid. `own`: its own GTIDs that are not in the copy."""
    if own:
        return (
            f"{here} must get a new server_uuid: stop it, remove auto.cnf from its data directory,"
            " and start it. Let no client write to it before that"
        )
    return f"{here} keeps its server_uuid: its auto.cnf stays"


def _cloned(donor: ModelServer, here: ModelServer) -> str:
    words = dialect_of(here.version)
    clone = (
        f"CLONE INSTANCE FROM '(user of the clone)'@'(host of {donor.name})':(port of"
        f" {donor.name}) IDENTIFIED BY '(password of the clone)'"
    )
    valid = f"SET GLOBAL clone_valid_donor_list = '(host of {donor.name}):(port of {donor.name})'"
    return (
        f"on {donor.name} run {in_order(_OTHER_ENGINES)}: these tables would be empty in a clone,"
        " without an error. If it lists any, copy the data directory of the stopped server instead."
        f" On {donor.name} and on {here.name} run {in_order(_INSTALL)}, unless SHOW PLUGINS lists"
        f" clone. The account of the clone needs BACKUP_ADMIN on {donor.name}. Yours needs"
        f" CLONE_ADMIN, SYSTEM_VARIABLES_ADMIN and REPLICATION_SLAVE_ADMIN on {here.name}, and"
        f" INSERT on mysql.plugin for the plugin: {_WRITABLE}. Both servers need the same platform"
        " and innodb_page_size. Put"
        f" {words.skip_replica_start} into the configuration file of {here.name} until its channel"
        f" is set: a copy has the channels of {donor.name}. On {here.name} run"
        f" {in_order(words.stop_replica, valid, clone)}. This deletes all data, accounts and binary"
        f" logs of {here.name}, even if it fails later: then run it again. {here.name} restarts"
        " itself; with error 3707 it only stops: start it. Then it has gtid_executed of"
        f" {donor.name}, all of it in gtid_purged, and no binary log of before"
    )


def _dumped(donor: ModelServer, here: ModelServer) -> str:
    words = dialect_of(here.version)
    lock = "--source-data=2" if donor.version >= _SOURCE_DATA else "--master-data=2"
    dump = (
        f"mysqldump --host=(host of {donor.name}) --port=(port of {donor.name}) --all-databases"
        f" --triggers --routines --events --single-transaction {lock} --set-gtid-purged=ON"
        " --default-character-set=utf8mb4 --hex-blob --result-file=dump.sql"
    )
    load = (
        f"mysql --host=(host of {here.name}) --port=(port of {here.name})"
        " --default-character-set=utf8mb4 < dump.sql"
    )
    emptied = in_order(
        words.stop_replica,
        f"{words.reset_replica} ALL",
        "SET SESSION foreign_key_checks = 0, sql_log_bin = 0",  # its replicas keep theirs
        "DROP DATABASE (each of its databases)",
        words.reset_binary_logs_and_gtids,
    )
    upgrade = ""
    if (donor.version.major, donor.version.minor) != (here.version.major, here.version.minor):
        upgrade = (
            f". The dump has the system tables of {donor.version}: upgrade them to {here.version}"
            " (mysql_upgrade; from 8.0.16 a start with --upgrade=FORCE)"
        )
    return (
        f"run `{dump}`. It must end without an error; the last line of the file is -- Dump"
        f" completed. {lock} holds a read lock for the moment in which the dump begins: without it,"
        " the set may have transactions whose rows are not in the dump. Rows of tables other than"
        f" InnoDB are as in the dump only if no client writes to {donor.name}. Then on {here.name}"
        f" ({_WRITABLE}) run {emptied}, but do not drop mysql, information_schema,"
        " performance_schema or sys. The"
        f" reset deletes the binary logs of {here.name}. It must come before the load: the dump"
        f" sets gtid_purged, which {here.name} refuses while gtid_executed has these transactions"
        f" (before 8.0: any). Run `{load}`, and on {here.name} {in_order(_LOAD_ACCOUNTS)}: its"
        f" accounts are those of {donor.name} now{upgrade}"
    )
