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

from topology.applier_errors import APPLIER_NUMBERS, APPLIER_TEXTS
from topology.error_row import ErrorText

_SOURCE = r"(?:master|source)"
_REPLICA = r"(?:slave|replica)"

_PURGED = "the source has purged what the replica needs"
_NO_FILE = "the file the replica asks for is gone"
# The title of the text with which a source disconnects a receiver when a second one has its UUID.
ANOTHER_REPLICA = "another replica has the same identity"
_NOT_CONNECTED = "the replica cannot connect"
_NOT_SECURE = "authentication needs a secure connection"
# The titles of texts that refuse a receiver before it requests any events.
REFUSED_ACCOUNT = frozenset({_NOT_CONNECTED, _NOT_SECURE})
# The titles of texts with which a source refuses to send what it has purged.
FOR_WANT_OF_LOGS = frozenset({_PURGED, _NO_FILE})
LOG_NOT_OPEN = "Binary log is not open"  # the source has no binary log, or has closed it

TEXTS: tuple[ErrorText, ...] = (
    ErrorText(
        _PURGED,
        rf"(?:{_SOURCE} has purged binary logs containing GTIDs|"
        rf"{_SOURCE} purged required binary logs|missing purged transactions are too long)",
        "P1",
        (
            "The replica asked, by its GTID set, for transactions whose binary logs are gone"
            " from the source."
        ),
        (
            (
                "Do not skip blindly: first see which transactions, and whether another server"
                " has them."
            ),
            "gtid-audit pair SOURCE REPLICA names them and every donor that still has them.",
            (
                "Refetch from a donor, or rebuild the replica; an empty transaction is right"
                " only when"
                " the content is known to be there already."
            ),
        ),
    ),
    ErrorText(
        "the replica has more than the source",
        rf"{_REPLICA} has more GTIDs than the {_SOURCE} has",
        "E3",
        "The replica holds transactions of the source's own UUID that the source does not have: it"
        " lost the end of its binary log, or was reset.",
        (
            (
                "Stop writes on the source before it uses the numbers again; after that the sets"
                " look"
                " equal and the data differs."
            ),
            (
                "The replica's binary log still has the content: redo it on the source, or undo"
                " it on the"
                " replica."
            ),
        ),
    ),
    ErrorText(
        "the expected error did not happen",
        rf"caused different errors on {_SOURCE} and {_REPLICA}",
        "A1",
        "The statement failed half-way on the source and was logged with its error code; on the"
        " replica it succeeds, or fails otherwise.",
        (
            "An empty transaction does not help: the error code is compared before the GTID is.",
            (
                "Move past the event by file position, with auto-position off; then fill the"
                " hole; then"
                " turn auto-position on again, in this order. gtid-audit repair plan writes it out."
            ),
        ),
    ),
    ErrorText(
        "a transaction without a GTID",
        r"Cannot replicate anonymous transaction",
        "A4",
        "The source committed transactions without a GTID, while its gtid_mode was OFF or"
        " OFF_PERMISSIVE. Auto-position cannot fetch them.",
        (
            (
                "Do not only run START REPLICA: the source can begin at a later log file, and skip"
                " these transactions without an error. The GTID sets are equal then."
            ),
            (
                "Rebuild the replica from the source, or compare and repair the rows of every"
                " table that the source wrote meanwhile."
            ),
        ),
    ),
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
        "Two receivers give the source the same server_uuid or server_id, and push each other out:"
        " those of two replicas, or of two channels of one replica that have the same source.",
        (
            "Give one replica its own server_uuid (remove auto.cnf, restart) or server_id.",
            "Of two channels of one replica to one source, remove one.",
        ),
    ),
    ErrorText(
        "source and replica have one server_id",
        r"equal (?:MySQL )?server[ _]ids",
        "C2",
        (
            "Two servers have the same server_id: the replica would drop the source's events as"
            " its own."
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
        " server_id, or gtid_mode is not ON on the source of a channel with auto-position. The text"
        " of the error names which. An applier has this number where it cannot open its relay log.",
        (
            (
                "Compare SELECT @@GLOBAL.server_uuid, @@GLOBAL.server_id, @@GLOBAL.gtid_mode on"
                " both servers."
            ),
            (
                "The same server_uuid (C1): stop the copy, remove auto.cnf from its data directory,"
                " and start it again."
            ),
            (
                "The same server_id (C2): set another server_id on one of them, also in its"
                " configuration file."
            ),
        ),
    ),
    ErrorText(
        _NO_FILE,
        r"Could not find first log file name in binary log index",
        "A4",
        "A channel that runs by file position asks for a binary log that was purged, or that"
        " another"
        " server had.",
        (
            (
                "Turn auto-position on, if both servers use GTIDs; else point it at a position"
                " that exists."
            ),
        ),
    ),
    ErrorText(
        "the position is beyond the file's end",
        (
            rf"requested {_SOURCE} to start replication from (?:impossible position|position >"
            rf" file size)"
        ),
        "A4",
        "The source's binary log is shorter than the replica has already read: the source lost its"
        " end in a crash.",
        (
            "Compare the sets first: the replica may hold what the source lost (E3).",
            "Then turn auto-position on, or go on from the start of the next file.",
        ),
    ),
    ErrorText(
        "the source cannot read its own binary log",
        r"(?:bogus data in log event|log event entry exceeded max_allowed_packet|"
        r"Found invalid event in binary log|event read from binlog did not pass)",
        "A4",
        "The file is damaged at this place, an event is larger than the limit, or the"
        " position is in"
        " the middle of an event.",
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
        ("Turn the binary log on and restart; build the replica anew from the source.",),
    ),
    ErrorText(
        "a binary log from before GTIDs",
        r"Found old binary log .*without GTIDs",
        "A4",
        "Auto-position asks for transactions in files written before gtid_mode was ON.",
        (
            (
                "Build the replica from a backup taken since; or use a file position until they"
                " are purged."
            ),
        ),
    ),
    ErrorText(
        "duplicate key on the replica",
        r"(?:Duplicate entry .* for key|HA_ERR_FOUND_DUPP_KEY)",
        "A2",
        "The row is already there: it was written on the replica, or its transaction ran twice.",
        (
            "Compare the row on both servers before you delete one.",
            "An errant transaction on the replica is the usual cause: audit the pair for E1.",
        ),
    ),
    ErrorText(
        "row not found on the replica",
        r"(?:Can't find record in|HA_ERR_KEY_NOT_FOUND)",
        "A2",
        (
            "The row to change or delete is not there: a skipped transaction, or a write on the"
            " replica."
        ),
        ("Look for a hole (H1) first; put the row back as the event expects it, then start.",),
    ),
    ErrorText(
        "the parallel applier has gaps",
        r"(?:when the (?:slave|replica) was stopped with an error or killed in MTS mode|"
        r"MTS recovery|SQL_AFTER_MTS_GAPS)",
        "A6",
        (
            "The workers stopped at different places; the channel cannot be changed until they"
            " are level."
        ),
        ("START REPLICA UNTIL SQL_AFTER_MTS_GAPS, wait until it stops, then change the channel.",),
    ),
    ErrorText(
        "the applier cannot read where it was",
        r"failed to initialize (?:relay log info|applier metadata) structure",
        "A3",
        "mysqld could not restore the place of its applier. Seen on 5.6.24 with relay_log_recovery"
        " = 1, after a crash that left gaps between parallel workers: every START REPLICA fails.",
        (
            (
                "With auto-position on, and if the source has purged nothing that is missing: STOP"
                " REPLICA, RESET REPLICA, START REPLICA. The source sends the gaps as well."
            ),
            (
                "By file position do not run RESET REPLICA, which forgets the place: restart mysqld"
                " once with relay_log_recovery = 0. It fills the gaps from its relay log."
            ),
        ),
    ),
    ErrorText(
        "the workers of a parallel applier have stopped",
        r"(?:slave|replica) coordinator and worker threads are stopped",
        "A3",
        "The coordinator only says that a worker stopped; the worker's own text is in"
        " performance_schema, and before 5.7 in the error log only.",
        ("Before 5.7: stop the replica, set slave_parallel_workers = 0, start it, audit again.",),
    ),
    ErrorText(
        "the applier cannot start its threads",
        r"Failed during (?:slave|replica) (?:thread|workers?) initialization",
        "A3",
        "The applier or one of its workers ended before it applied anything. The error log of the"
        " replica has the reason: a setting for the whole server that its sessions inherit, as"
        " transaction_read_only, or threads and memory that it did not get.",
        (
            "Read the end of the replica's error log.",
            "Compare its settings with those of a replica that runs: SHOW GLOBAL VARIABLES.",
        ),
    ),
    *APPLIER_TEXTS,
    ErrorText(
        "a GTID set that the server cannot read",
        r"Malformed GTID set",
        "U3",
        "The text is not a GTID set.",
        ("gtid-audit sets canonical TEXT shows the place.",),
    ),
    ErrorText(
        "gtid_purged refused: the history is not empty",
        r"GTID_PURGED can only be set when @@GLOBAL.GTID_EXECUTED is empty",
        None,
        "Before 8.0, gtid_purged can be set only on a server without GTID history.",
        (
            (
                "RESET MASTER first deletes this server's binary logs: only when its data is"
                " known good."
            ),
        ),
    ),
    ErrorText(
        "gtid_purged refused",
        r"GTID_PURGED cannot be changed",
        None,
        "The new value must hold the old one, and what it adds must be neither executed nor owned.",
        ("Subtract what is executed already: gtid-audit sets subtract NEW EXECUTED.",),
    ),
    ErrorText(
        "a session still has an explicit GTID",
        r"@@SESSION.GTID_NEXT (?:is set to|cannot)|GTID_NEXT.*explicitly set",
        None,
        "After a transaction under an explicit gtid_next the session must say what comes next.",
        ("SET SESSION gtid_next = 'AUTOMATIC';",),
    ),
    ErrorText(
        _NOT_CONNECTED,
        rf"error (?:re)?connecting to {_SOURCE}",
        "A4",
        "The source is down, the network is cut, or the replication account is refused.",
        ("Read the rest of the text: it carries the client's own error number.",),
    ),
    ErrorText(
        _NOT_SECURE,
        r"Authentication requires secure connection",
        "A4",
        "caching_sha2_password wants TLS or the server's public key.",
        ("CHANGE REPLICATION SOURCE TO GET_SOURCE_PUBLIC_KEY = 1, or configure TLS.",),
    ),
    ErrorText(
        "the source refused to send",
        rf"Got fatal error 1236 from {_SOURCE}",
        "A4",
        "The receiver stopped because the source could not serve what it asked for; the reason is"
        " the text in quotes.",
        ("Explain the quoted text.",),
    ),
)

# Error numbers on their own, with the row whose text belongs to each.
NUMBERS: dict[int, str] = {
    **APPLIER_NUMBERS,
    1032: "row not found on the replica",
    1062: "duplicate key on the replica",
    1236: "the source refused to send",
    13114: "the source refused to send",
    13117: "a receiver cannot use its source",
    1593: "a receiver cannot use its source",
    1756: "the workers of a parallel applier have stopped",
    1772: "a GTID set that the server cannot read",
    1789: _PURGED,
    1802: "the parallel applier has gaps",
    1837: "a session still has an explicit GTID",
    1840: "gtid_purged refused: the history is not empty",
    1872: "the applier cannot read where it was",
    1885: "the replica has more than the source",
    **dict.fromkeys((1040, 1045, 1129, 1130, 2002, 2003, 2005, 2013, 2026, 2059), _NOT_CONNECTED),
    2061: _NOT_SECURE,
    3546: "gtid_purged refused",
}

# The GTID sets that a text may quote: a description of each, and the pattern that captures it.
QUOTED_SETS: tuple[tuple[str, str], ...] = (
    ("sent by the replica", rf"GTID set sent by the {_REPLICA} is '([^']*)'"),
    ("missing transactions", r"missing transactions are '([^']*)'"),
)


# An audit looks up the row of one text many times, and most channels have no error.
@lru_cache(maxsize=128)
def row_of(text: str) -> ErrorText | None:
    """Return the first row that an error text matches, None if none does."""
    folded = " ".join(text.split())
    return next((row for row in TEXTS if re.search(row.pattern, folded, re.IGNORECASE)), None)
