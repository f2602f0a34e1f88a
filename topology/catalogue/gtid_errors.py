"""Errors about gtid_mode, gtid_next, gtid_purged and GTID consistency, of receivers and clients.

error_texts.py has the rules for all such texts. Sources: sql/share messages of 5.6 to 9.7;
reference manual, "Restrictions on Replication with GTIDs", "Changing GTID Mode on Online Servers".
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

_MODES_DIFFER: Final = "source and replica have modes of GTIDs that do not fit"
_WITH_GTID: Final = "a transaction with a GTID, and gtid_mode is OFF"
_NEEDS_MODE: Final = "the setting of the channel needs gtid_mode = ON"
_NO_POSITION: Final = "auto-position and a file position exclude each other"
_ONE_STEP: Final = "gtid_mode cannot be changed like this"
_NOT_CONSISTENT: Final = "the statement cannot have one GTID"
_OWNS: Final = "the session owns a GTID"
_NEXT_AND_MODE: Final = "gtid_next does not fit gtid_mode"
_NEXT_AND_STATEMENT: Final = "the statement cannot run with an explicit GTID"
_NOT_COUNTED: Final = "sql_replica_skip_counter does not skip GTIDs"
_IN_USE: Final = "gtid_purged refused: transactions or a group are running"
_EXHAUSTED: Final = "the server has used up the numbers of its server_uuid"
_NOT_EMPTY: Final = "gtid_purged refused: the history is not empty"
_NOT_PURGED: Final = "gtid_purged refused"
_SAME_AS_GROUP: Final = "the UUID for anonymous transactions is one of the group"
_CHANGED: Final = "the GTID history of the server was changed"
_STILL_SET: Final = "a session still has an explicit GTID"

GTID_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        _MODES_DIFFER,
        r"cannot start because the (?:master|source) has GTID_MODE = ",
        "C4",
        "One of the two servers has gtid_mode = OFF and the other one ON, so no transaction could"
        " be replicated.",
        (
            "Compare SELECT @@GLOBAL.gtid_mode on both servers.",
            (
                "Change it on every server by one step at a time: OFF, OFF_PERMISSIVE,"
                " ON_PERMISSIVE, ON. Then start the receiver."
            ),
        ),
    ),
    ErrorText(
        _WITH_GTID,
        r"(?:Cannot replicate GTID-transaction when @@GLOBAL\.GTID_MODE = OFF|"
        r"Found a Gtid_log_event (?:or Previous_gtids_log_event )?when @@GLOBAL\.GTID_MODE = OFF)",
        "A4",
        "The source commits transactions with GTIDs, and gtid_mode of the replica is OFF.",
        (
            (
                "Set gtid_mode of the replica to OFF_PERMISSIVE, ON_PERMISSIVE and ON, one step at"
                " a time. Then start the channel."
            ),
        ),
    ),
    ErrorText(
        _NEEDS_MODE,
        r"(?:AUTO_POSITION = 1 (?:cannot|can only) be executed|"
        r"cannot start in AUTO_POSITION mode: this server uses|"
        r"Cannot .* when GTID_MODE = OFF\b|"
        r"(?:as this server uses @@GLOBAL\.|which is invalid when |executed because @@GLOBAL\.)"
        r"GTID_MODE <> ON|"
        r"SOURCE_CONNECTION_AUTO_FAILOVER = 1, but the server was started)",
        "C4",
        "Auto-position, GTID_ONLY and ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS need gtid_mode = ON on"
        " the replica.",
        (
            (
                "Set gtid_mode one step at a time: OFF_PERMISSIVE, ON_PERMISSIVE, ON. Write it into"
                " the configuration file as well. Then run the statement again."
            ),
        ),
    ),
    ErrorText(
        _NO_POSITION,
        r"cannot be set when (?:MASTER|SOURCE)_AUTO_POSITION is active",
        None,
        "With auto-position the source finds the position by the GTID set of the replica. A file"
        " position in the same channel would contradict it.",
        (
            "Leave out the file and the position.",
            (
                "If the channel must be moved by position, set SOURCE_AUTO_POSITION = 0 in the same"
                " statement. What the position leaves out stays missing (H1)."
            ),
        ),
    ),
    ErrorText(
        _ONE_STEP,
        r"(?:requires (?:@@GLOBAL\.)?ENFORCE_GTID_CONSISTENCY = |"
        r"requires -+log-bin and |"
        r"GTID_MODE can only (?:be )?changed? one step at a time|"
        r"GTID_MODE = \S+ is not allowed because|"
        r"Cannot set ENFORCE_GTID_CONSISTENCY)",
        "C4",
        "gtid_mode has four values in a fixed order, and each step has a condition on the settings"
        " or on the transactions that are running.",
        (
            (
                "First set enforce_gtid_consistency = WARN and read the error log. If there is no"
                " warning, set it to ON."
            ),
            (
                "Then on all servers, one step after the other: OFF_PERMISSIVE, ON_PERMISSIVE. Wait"
                " until SHOW GLOBAL STATUS LIKE 'Ongoing_anonymous_transaction_count' is 0 and all"
                " replicas have applied what has no GTID. Then set ON."
            ),
        ),
    ),
    ErrorText(
        _NOT_CONSISTENT,
        r"(?:violates? GTID consistency|"
        r"When @@GLOBAL\.ENFORCE_GTID_CONSISTENCY = 1|"
        r"needs to be written to the binary log as multiple statements|"
        r"DROP DATABASE failed; some tables may have been dropped)",
        "C4",
        "The statement would be logged as several transactions, or change transactional and other"
        " tables at once. A GTID stands for exactly one transaction.",
        (
            (
                "On the server that reports it: split the statement. Create the table first, then"
                " insert; change tables without transactions on their own; keep temporary tables"
                " out of transactions."
            ),
            (
                "If an applier reports it, the source runs without enforce_gtid_consistency. Set it"
                " to ON there. Convert the tables that are not InnoDB on the replica and on the"
                " source."
            ),
        ),
    ),
    ErrorText(
        _OWNS,
        r"cannot be changed by a client that owns a GTID|holds ownership of the GTID",
        None,
        "The session set gtid_next to a GTID and began a transaction that it has not ended.",
        ("Run COMMIT or ROLLBACK, then SET SESSION gtid_next = 'AUTOMATIC';",),
    ),
    ErrorText(
        _NEXT_AND_MODE,
        r"(?:GTID_NEXT(?:_LIST)? cannot be set to \S+ when|"
        r"GTID_NEXT_LIST cannot be set to a non-NULL value|"
        r"GTID_PURGED can only be set when @@GLOBAL\.GTID_MODE = ON)",
        None,
        "A session cannot use GTIDs while gtid_mode is OFF, and cannot leave them out while it is"
        " ON.",
        ("Compare SELECT @@GLOBAL.gtid_mode with what the script assumes.",),
    ),
    ErrorText(
        _NEXT_AND_STATEMENT,
        r"(?:statements with implicit commit inside a transaction when @@SESSION\.GTID_NEXT|"
        r"GTID_NEXT cannot change inside a transaction|"
        r"when @@SESSION\.GTID_NEXT == 'UUID:NUMBER')",
        None,
        "The session set gtid_next to a GTID. It can run one transaction, and no statement that"
        " ends it and begins another one.",
        (
            (
                "Give each statement that commits by itself (DDL, for example) its own GTID, or run"
                " it after SET SESSION gtid_next = 'AUTOMATIC'."
            ),
        ),
    ),
    ErrorText(
        _NOT_COUNTED,
        r"sql_(?:slave|replica)_skip_counter (?:can ?not be set|will only take effect)",
        None,
        "A server with gtid_mode = ON would receive the skipped transaction again.",
        (
            (
                "Do not skip before you know what the transaction contains: `gtid-audit binlog show"
                " GTID DSN`."
            ),
            (
                "To leave it out, commit an empty transaction with its GTID. `gtid-audit repair"
                " plan` writes that script, with guards."
            ),
        ),
    ),
    ErrorText(
        _IN_USE,
        r"(?:GTID_PURGED can only be set when there are no ongoing transactions|"
        r"Cannot update GTID_PURGED with the Group Replication plugin running)",
        None,
        "gtid_purged says that transactions need not be executed. That cannot change while some are"
        " running, or while the server is a member of a group.",
        (
            "Stop replication and end the transactions (SHOW PROCESSLIST), then set it.",
            "On a member of a group, run STOP GROUP_REPLICATION first.",
        ),
    ),
    ErrorText(
        _EXHAUSTED,
        r"Impossible to generate (?:GTID|Global Transaction Identifier): the integer",
        "H7",
        "A UUID has 9,223,372,036,854,775,806 numbers. A server reaches the last one only after a"
        " transaction with a very high number was committed by hand.",
        (
            (
                "Stop the server, remove auto.cnf from its data directory and start it again: it"
                " gets a new server_uuid."
            ),
            "`gtid-audit sets holes SET` shows the number that was made by hand.",
        ),
    ),
    ErrorText(
        _SAME_AS_GROUP,
        r"ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS *= *\S+ (?:where the UUID value|which)"
        r" is equal to",
        None,
        "The channel gives transactions without a GTID one of a fixed UUID, and that is the UUID of"
        " the group of this server. Two sources would then assign the same GTIDs.",
        (
            (
                "CHANGE REPLICATION SOURCE TO ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL or"
                " another UUID, then START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _NOT_EMPTY,
        r"GTID_PURGED can only be set when @@GLOBAL.GTID_EXECUTED is empty",
        None,
        "Before 8.0, gtid_purged can be set only on a server without GTID history.",
        (
            (
                "Run RESET MASTER first. It deletes this server's binary logs: do this only if you"
                " know that its data is correct."
            ),
        ),
    ),
    ErrorText(
        _NOT_PURGED,
        r"GTID_PURGED cannot be changed",
        None,
        "The new value must contain the old one. What it adds must be neither executed nor owned.",
        ("Subtract what is already executed: `gtid-audit sets subtract NEW EXECUTED`.",),
    ),
    ErrorText(
        _CHANGED,
        r"GTID_(?:PURGED|EXECUTED) was changed from",
        None,
        "A note in the error log: a client set gtid_purged, often with a dump. Since then it"
        " counts as executed what it has not executed itself, or the reverse.",
        (
            (
                "Find out who did it, and compare the rows of what was added. What was removed can"
                " be received and executed a second time."
            ),
        ),
    ),
    ErrorText(
        _STILL_SET,
        r"@@SESSION.GTID_NEXT (?:is set to|cannot|has the value)|GTID_NEXT.*explicitly set",
        None,
        "After a transaction with an explicit gtid_next, the session must set gtid_next again.",
        ("Run SET SESSION gtid_next = 'AUTOMATIC';",),
    ),
)

GTID_NUMBERS: Final[dict[int, str]] = {
    **dict.fromkeys((1784, 3115, 13150), _WITH_GTID),
    **dict.fromkeys((1777, 3062, 3112, 4013, 4015, 4071, 13690, 13702, 13805), _NEEDS_MODE),
    1776: _NO_POSITION,
    **dict.fromkeys((1779, 1780, 1788, 3111, 3116), _ONE_STEP),
    **dict.fromkeys((1785, 1786, 1787, 1884, 3091, 3748, 3775), _NOT_CONSISTENT),
    **dict.fromkeys((1790, 3138, 3173), _OWNS),
    **dict.fromkeys((1781, 1782, 1783, 1839, 6039, 6040), _NEXT_AND_MODE),
    **dict.fromkeys((1768, 1778, 4090), _NEXT_AND_STATEMENT),
    **dict.fromkeys((1858, 4016), _NOT_COUNTED),
    **dict.fromkeys((1841, 3911), _IN_USE),
    1775: _EXHAUSTED,
    **dict.fromkeys((4020, 4040, 13691, 13754), _SAME_AS_GROUP),
    1840: _NOT_EMPTY,
    3546: _NOT_PURGED,
    **dict.fromkeys((1842, 1843, 10916, 10917), _CHANGED),
    **dict.fromkeys((1767, 1837), _STILL_SET),
}
