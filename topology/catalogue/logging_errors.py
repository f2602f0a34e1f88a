"""Errors of servers that cannot log what they execute or apply, and of logs that cannot be read.

error_texts.py has the rules for all such texts. Sources: sql/share messages of 5.6 to 9.7;
THD::decide_logging_format and MYSQL_BIN_LOG::read_gtids_from_binlog in sql/binlog.cc (8.0).
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

_FORMAT: Final = "the replica cannot log what it applies in its binlog_format"
_ROW_NOT_LOGGED: Final = "the replica cannot add a row to its binary log"
NO_LOGGING: Final = "the server cannot write its binary log"
_WITHOUT_PREVIOUS: Final = "a log has GTIDs without the set of the logs before it"
_ENCRYPTED: Final = "the key of an encrypted log is missing"

LOGGING_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        _FORMAT,  # 1666 seen on 9.7.4 and 5.6.24
        r"(?:impossible to write to binary log since|must use row-based binary logging)",
        "A3",
        "The server logs what it applies, and its binlog_format or the engine of the table does not"
        " permit that. Most often the source sends rows, and binlog_format of the replica is"
        " STATEMENT.",
        (
            (
                "If the text has BINLOG_FORMAT = STATEMENT: on the replica run STOP REPLICA, SET"
                " GLOBAL binlog_format = ROW, START REPLICA, and write it into the configuration"
                " file. The applier then applies the same transaction."
            ),
            (
                "If it is about a storage engine: with sql_log_bin = 0, alter the table on the"
                " replica to the engine that it has on the source (S2: `gtid-audit schema drift"
                " SOURCE REPLICA`)."
            ),
        ),
    ),
    ErrorText(
        _ROW_NOT_LOGGED,
        r"Writing one row to the row-based binary log failed",
        "A3",
        "The server logs what it applies, and could not write the row to the cache of its binary"
        " log: no memory, or no space in tmpdir. The transaction was rolled back.",
        (
            (
                "Read the end of the error log of the replica, and free space or memory. Then run"
                " START REPLICA."
            ),
        ),
    ),
    ErrorText(
        NO_LOGGING,
        r"(?:Binary logging not possible|Error writing file '.*' \(|"
        r"You are not using binary logging)",
        None,
        "The binary log is off, or its disk is full or broken. With binlog_error_action ="
        " ABORT_SERVER mysqld ends here; with IGNORE_ERROR it goes on without a log, and replicas"
        " get nothing any more (A9).",
        (
            "Free space or repair the disk, then restart mysqld.",
            "If it went on without a log, rebuild its replicas: what it executed is in no log.",
        ),
    ),
    ErrorText(
        _WITHOUT_PREVIOUS,
        r"The binary log file '.*' is logically corrupted",
        "A4",
        "The server reads its logs from the start of each file: a file begins with the set of all"
        " GTIDs in the files before it. In this one a transaction comes first. The file was copied,"
        " shortened or written by another program, or its index lists the wrong file.",
        (
            (
                "The text names the file: a binary log of the server, or a relay log of the"
                " replica. `gtid-audit binlog scan FILE` shows how it begins."
            ),
            (
                "A relay log: STOP REPLICA, CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1,"
                " START REPLICA. This deletes the relay logs, so first compare what is missing with"
                " the binary logs of the source."
            ),
            "A binary log of the source: receive from another server that has the transactions.",
        ),
    ),
    ErrorText(
        _ENCRYPTED,
        r"(?:replication log encryption header|binary log encryption|binlog encryption|"
        r"(?<!rotate )binary log master key|fetch (?:.* )?key from .*keyring|"
        r"Can't find key from keyring|"
        r"Fetched an invalid key from keyring|Cannot get file password for encrypted|"
        r"Failed to (?:generate|store|remove) key, please check if keyring|"
        r"\bKey \S+ exists unexpected|Failed to encrypt content to write into binlog|"
        r"Failed to change binlog_encryption|Failed to rotate one or more binary or relay log)",
        "A4",
        "A binary log or relay log is encrypted, and the server cannot get or store the key: no"
        " keyring is loaded, or it is another one.",
        (
            (
                "Load the keyring component that the server had when it wrote the file, with the"
                " same keys. The source decrypts what it sends: a replica needs no key of it."
            ),
            (
                "If the keys of a relay log are lost and auto-position is on: STOP REPLICA, RESET"
                " REPLICA, START REPLICA. First compare what is missing with the binary logs of the"
                " source."
            ),
        ),
    ),
)

LOGGING_NUMBERS: Final[dict[int, str]] = {
    **dict.fromkeys((1536, *range(1661, 1668), 1844), _FORMAT),
    1534: _ROW_NOT_LOGGED,
    **dict.fromkeys((1026, 1381, 1598), NO_LOGGING),
    1866: _WITHOUT_PREVIOUS,
    **dict.fromkeys((*range(3784, 3795), 3801, *range(3806, 3812)), _ENCRYPTED),
}
