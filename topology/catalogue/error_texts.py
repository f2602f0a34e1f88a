"""Error texts of servers that concern GTIDs, in every version, and error numbers.

1. A pattern matches a fragment that all versions of the text share. The terms changed in 8.0.26,
   and old and new terms may occur in one sentence.
2. The first row that matches is used, so texts that wrap another error come last.
3. This module holds texts only. The rules decide what an audit concludes from them.

Sources: sql/share messages of 5.6 to 9.7, sql/rpl_binlog_sender.cc, sql/rpl_replica.cc; the
reference manual's list of server errors.
"""

import re
from functools import lru_cache

from topology.catalogue.applier_errors import APPLIER_NUMBERS, APPLIER_TEXTS
from topology.catalogue.client_errors import CLIENT_NUMBERS, CLIENT_TEXTS
from topology.catalogue.error_row import ErrorText
from topology.catalogue.gtid_errors import GTID_NUMBERS, GTID_TEXTS
from topology.catalogue.logging_errors import LOGGING_NUMBERS, LOGGING_TEXTS
from topology.catalogue.receiver_errors import RECEIVER_NUMBERS, RECEIVER_TEXTS
from topology.catalogue.statement_errors import FAILS_HERE, FRAME_TEXTS

_SOURCE = r"(?:master|source)"
_REPLICA = r"(?:slave|replica)"

_PURGED = "the source has purged what the replica needs"
_NO_FILE = "the binary log file that the replica requests is gone"
# The title of the text with which a source disconnects a receiver when a second one has its UUID.
ANOTHER_REPLICA = "another replica has the same identity"
_NOT_CONNECTED = "the replica cannot connect"
_NOT_SECURE = "authentication needs a secure connection"
# The titles of texts that refuse a receiver before it requests any events.
REFUSED_ACCOUNT = frozenset({_NOT_CONNECTED, _NOT_SECURE})
# The titles of texts with which a source refuses to send what it has purged.
FOR_WANT_OF_LOGS = frozenset({_PURGED, _NO_FILE})
_WORKERS = "the workers of a parallel applier have stopped"
# The titles of texts that show only how an error is reported.
FRAMES = frozenset({_WORKERS, FAILS_HERE})
LOG_NOT_OPEN = "Binary log is not open"  # the source has no binary log, or has closed it

TEXTS: tuple[ErrorText, ...] = (
    ErrorText(
        _PURGED,
        rf"(?:{_SOURCE} has purged binary logs containing GTIDs|"
        rf"{_SOURCE} purged required binary logs|missing purged transactions are too long)",
        "P1",
        "The replica requested transactions that the source has purged with their binary logs.",
        (
            (
                "Do not skip them blindly: first find out which transactions they are, and whether"
                " another server has them."
            ),
            "`gtid-audit pair SOURCE REPLICA` lists them, and every donor that still has them.",
            (
                "Refetch them from a donor, or rebuild the replica. Commit an empty transaction"
                " only if you know that the replica already has the content."
            ),
        ),
    ),
    ErrorText(
        "the replica has more GTIDs than the source",
        rf"{_REPLICA} has more GTIDs than the {_SOURCE} has",
        "E3",
        "The replica has transactions with the source's own UUID that the source does not have. The"
        " source lost the end of its binary log, or was reset.",
        (
            (
                "Stop writes on the source before it reuses these GTIDs. After that the sets look"
                " equal and the data differs."
            ),
            (
                "If the replica's binary log has their content, redo the transactions on the"
                " source, or undo them on the replica."
            ),
        ),
    ),
    ErrorText(
        "the expected error did not happen",
        rf"caused different errors on {_SOURCE} and {_REPLICA}",
        "A1",
        "The statement failed half-way on the source, which logged it with its error code. On the"
        " replica it succeeds, or fails with another error.",
        (
            "An empty transaction does not help: the applier compares the error before the GTID.",
            (
                "In this order: move past the event by file position, with auto-position off; fill"
                " the hole; turn auto-position on again. `gtid-audit repair plan` writes these"
                " steps."
            ),
        ),
    ),
    *RECEIVER_TEXTS,
    *LOGGING_TEXTS,
    ErrorText(
        "source and replica have one server_uuid",
        r"equal MySQL server UUIDs",
        "C1",
        "Two servers have the same server_uuid, usually because a data directory was copied with"
        " its auto.cnf.",
        ("Stop the copy, remove auto.cnf from its data directory, and start it again.",),
    ),
    ErrorText(
        ANOTHER_REPLICA,
        rf"A {_REPLICA} with the same server_uuid/server_id",
        "C1",
        "Two receivers connect to the source with the same server_uuid or server_id, and the source"
        " disconnects one when the other connects. They belong to two replicas, or to two channels"
        " of one replica.",
        (
            "Assign one replica its own server_uuid (remove auto.cnf, restart) or server_id.",
            "If one replica has two channels to this source, remove one of them.",
        ),
    ),
    ErrorText(
        "source and replica have one server_id",
        r"equal (?:MySQL )?server[ _]ids",
        "C2",
        (
            "Two servers have the same server_id: the replica would drop the source's events as if"
            " they were its own."
        ),
        ("Set another server_id on one of them.",),
    ),
    ErrorText(
        "auto-position needs gtid_mode = ON on the source",
        rf"in AUTO_POSITION mode: the {_SOURCE} has GTID_MODE = ",
        "C4",
        "The receiver uses auto-position, and gtid_mode is not ON on its source.",
        ("Set gtid_mode = ON on the source, then start the receiver.",),
    ),
    ErrorText(
        "a receiver cannot use its source",
        r"^(?:13117|1593)$",  # a bare number: the text decides which error it is
        "A4",
        "The receiver stopped because source and replica have the same server_uuid or the same"
        " server_id, or because gtid_mode is not ON on the source of a channel with auto-position."
        " The error text shows which. An applier reports this number if it cannot open its relay"
        " log.",
        (
            (
                "Compare SELECT @@GLOBAL.server_uuid, @@GLOBAL.server_id, @@GLOBAL.gtid_mode on"
                " both servers."
            ),
            (
                "If the server_uuid is the same (C1): stop the copy, remove auto.cnf from its data"
                " directory, and start it again."
            ),
            (
                "If the server_id is the same (C2): set another server_id on one of them, also in"
                " its configuration file."
            ),
        ),
    ),
    ErrorText(
        _NO_FILE,
        r"Could not find first log file name in binary log index",
        "A4",
        "The channel runs by file position and requests a binary log that was purged, or that"
        " another server had.",
        (
            (
                "If both servers use GTIDs, turn auto-position on. Otherwise set the channel to a"
                " position that exists."
            ),
        ),
    ),
    ErrorText(
        "the position is after the end of the file",
        (
            rf"requested {_SOURCE} to start replication from (?:impossible position|position >"
            rf" file size)"
        ),
        "A4",
        "The replica has read past the present end of the source's binary log: the source lost that"
        " part in a crash.",
        (
            "Compare the sets first: the replica may have what the source lost (E3).",
            "Then turn auto-position on, or continue from the start of the next file.",
        ),
    ),
    ErrorText(
        "the source cannot read its own binary log",
        r"(?:bogus data in log event|log event entry exceeded max_allowed_packet|"
        r"Found invalid event in binary log|event read from binlog did not pass)",
        "A4",
        "The file is damaged at this position, an event is larger than the limit, or the position"
        " is in the middle of an event.",
        (
            (
                "Check the position and max_allowed_packet (replica_max_allowed_packet on the"
                " replica)."
            ),
            "If the file is damaged, refetch from another server.",
        ),
    ),
    ErrorText(
        "the source keeps no binary log",
        LOG_NOT_OPEN,
        "A4",
        "log_bin is off on the source, or the source closed its log after an error (A9).",
        ("Restart the source with its binary log on. Then rebuild the replica from it.",),
    ),
    ErrorText(
        "a binary log from before GTIDs",
        r"Found old binary log .*without GTIDs",
        "A4",
        "With auto-position, the replica requests transactions from before gtid_mode was ON.",
        (
            (
                "Rebuild the replica from a backup taken after that. Or use a file position until"
                " these files are purged."
            ),
        ),
    ),
    ErrorText(
        "duplicate key on the replica",
        r"(?:Duplicate entry .* for key|HA_ERR_FOUND_DUPP_KEY)",
        "A2",
        "The row already exists: a client wrote it on the replica, or its transaction ran twice.",
        (
            "Compare the row on both servers before you delete one.",
            "The usual cause is an errant transaction on the replica: audit the pair for E1.",
        ),
    ),
    ErrorText(
        "row not found on the replica",
        r"(?:Can't find record in|HA_ERR_KEY_NOT_FOUND)",
        "A2",
        (
            "The row to change or delete does not exist. The replica skipped a transaction, or a"
            " client wrote on it."
        ),
        ("Look for a hole (H1) first. Restore the row as the event expects it, then start.",),
    ),
    ErrorText(
        "the parallel applier has gaps",
        r"(?:when the (?:slave|replica) was stopped with an error or killed in MT[AS] mode|"
        r"MT[AS] recovery|SQL_AFTER_MTS_GAPS)",
        "A6",
        (
            "The workers stopped at different positions. The channel cannot be changed until they"
            " have applied the same transactions."
        ),
        (
            (
                "Run START REPLICA UNTIL SQL_AFTER_MTS_GAPS. After it has stopped, change the"
                " channel."
            ),
        ),
    ),
    ErrorText(
        "the applier cannot read its position",
        r"failed to initialize (?:relay log info|applier metadata) structure",
        "A6",
        "mysqld could not restore the position of its applier. Seen on 5.6.24 with"
        " relay_log_recovery = 1, after a crash that left gaps between parallel workers: every"
        " START REPLICA fails.",
        (
            (
                "If auto-position is on and the source has purged nothing that is missing: STOP"
                " REPLICA, RESET REPLICA, START REPLICA. The source also sends the gaps."
            ),
            (
                "If the channel runs by file position, do not run RESET REPLICA: it deletes the"
                " position. Restart mysqld once with relay_log_recovery = 0. It fills the gaps from"
                " its relay log."
            ),
        ),
    ),
    ErrorText(
        "the applier cannot start its threads",
        r"Failed during (?:slave|replica) (?:thread|workers?) initialization",
        "A3",
        "The applier or one of its workers ended before it applied anything. The error log of the"
        " replica has the reason: a global setting that its sessions inherit, such as"
        " transaction_read_only, or not enough threads or memory.",
        (
            "Read the end of the replica's error log.",
            "Compare its settings with those of a working replica: SHOW GLOBAL VARIABLES.",
        ),
    ),
    *APPLIER_TEXTS,
    ErrorText(
        "a GTID set that the server cannot read",
        r"Malformed GTID",
        "U3",
        "The text is not a GTID or a GTID set.",
        ("`gtid-audit sets canonical TEXT` shows the position of the error.",),
    ),
    *GTID_TEXTS,
    ErrorText(
        _NOT_CONNECTED,
        rf"error (?:re)?connecting to {_SOURCE}",
        "A4",
        (
            "The source is down, the network is interrupted, or the source refuses the replication"
            " account."
        ),
        ("Read the rest of the text: it contains the client's own error number.",),
    ),
    ErrorText(
        _NOT_SECURE,
        r"Authentication requires secure connection",
        "A4",
        "caching_sha2_password requires TLS or the server's public key.",
        ("Run CHANGE REPLICATION SOURCE TO GET_SOURCE_PUBLIC_KEY = 1, or configure TLS.",),
    ),
    *FRAME_TEXTS,
    # It may quote the error of the worker, which has a row above.
    ErrorText(
        _WORKERS,
        r"(?:(?:slave|replica) coordinator and worker threads are stopped|"
        r"Coordinator stopped because there were error\(s\) in the worker)",
        "A3",
        "The coordinator reports only that a worker stopped. Where the text does not quote the"
        " worker's own error, performance_schema has it; before 5.7 only the error log does.",
        (
            (
                "5.7 and later: run `gtid-audit explain` with the worker's error (SELECT * FROM"
                " performance_schema.replication_applier_status_by_worker)."
            ),
            (
                "Before 5.7: stop the replica, set slave_parallel_workers = 0, start it, and audit"
                " again."
            ),
        ),
    ),
    ErrorText(
        "the source refused to send",
        rf"Got fatal error 1236 from {_SOURCE}",
        "A4",
        "The receiver stopped because the source could not send what it requested. The text in"
        " quotes is the reason.",
        ("Run `gtid-audit explain` with the quoted text.",),
    ),
    *CLIENT_TEXTS,
)

# Error numbers on their own, with the row whose text belongs to each.
NUMBERS: dict[int, str] = {
    **APPLIER_NUMBERS,
    **GTID_NUMBERS,
    **LOGGING_NUMBERS,
    **RECEIVER_NUMBERS,
    **CLIENT_NUMBERS,
    1032: "row not found on the replica",
    1062: "duplicate key on the replica",
    1236: "the source refused to send",
    13114: "the source refused to send",
    13117: "a receiver cannot use its source",
    1593: "a receiver cannot use its source",
    1756: _WORKERS,
    **dict.fromkeys((1772, 1773, 1774), "a GTID set that the server cannot read"),
    1789: _PURGED,
    1802: "the parallel applier has gaps",
    **dict.fromkeys((1872, 13124), "the applier cannot read its position"),
    **dict.fromkeys((3002, 13113), "the expected error did not happen"),
    1885: "the replica has more GTIDs than the source",
    **dict.fromkeys(
        (1040, 1045, 1218, 1129, 1130, 2002, 2003, 2005, 2013, 2026, 2059), _NOT_CONNECTED
    ),
    2061: _NOT_SECURE,
}


# An audit looks up the row of one text many times, and most channels have no error.
@lru_cache(maxsize=128)
def row_of(text: str) -> ErrorText | None:
    """Return the first row that an error text matches, None if none does."""
    folded = " ".join(text.split())
    return next((row for row in TEXTS if re.search(row.pattern, folded, re.IGNORECASE)), None)
