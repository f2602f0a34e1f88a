"""Error texts of receivers about what they were sent, in every version.

error_texts.py has the rules for all such texts.
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

NOT_QUEUED: Final = "the receiver cannot write what it was sent"
_ANONYMOUS: Final = "a transaction without a GTID"
_FIRST_QUERIES: Final = "the source did not answer what a receiver asks first"
_CHECKSUM: Final = "the replica does not know the checksum of the source"
_OLD_SOURCE: Final = "the source is older than MySQL 5.0"
_STRANGE: Final = "a thread got events that it does not expect"
_NO_OTHER_SOURCE: Final = "no other source is left for the channel"
_NO_USER: Final = "the channel has no user"
_ACCOUNT_STATE: Final = "the source does not let the replication account in"
_HEARTBEAT: Final = "the source stands before what the receiver has read"
_NOT_OF_THE_GROUP: Final = "the member has transactions that the group does not have"
_PACKET: Final = "an event is larger than the receiver permits"
_NAMESPACE: Final = "the network namespace of the channel is not there"
_OFFLINE: Final = "the source is in offline mode"
_TLS: Final = "the source requires TLS"
_HOOK: Final = "a plugin refused the transaction"

RECEIVER_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        _ANONYMOUS,
        r"Cannot replicate anonymous transaction",
        "A4",
        "The source committed transactions without a GTID, while its gtid_mode was OFF or"
        " OFF_PERMISSIVE. A channel with auto-position cannot receive them.",
        (
            (
                "Do not only run START REPLICA: the source can begin at a later log file, and skip"
                " these transactions without an error. Then the GTID sets are equal."
            ),
            (
                "While the source has their log: set gtid_mode = ON_PERMISSIVE on both servers, let"
                " the replica apply them by file position (SOURCE_AUTO_POSITION = 0, from the"
                " position of its applier), then set gtid_mode = ON and auto-position on again."
            ),
            (
                "Otherwise rebuild the replica from the source. Or compare and repair the rows of"
                " every table that the source wrote while gtid_mode was OFF or OFF_PERMISSIVE."
            ),
        ),
    ),
    ErrorText(
        NOT_QUEUED,
        r"Relay log write failure|could not queue event from (?:master|source)",
        "A4",
        "The receiver got an event that it cannot write to its relay log: the disk is full or"
        " refuses writes, the event is damaged, or it has no GTID and gtid_mode of the replica is"
        " ON.",
        (
            "Read the lines before this one in the error log of the replica: they have the cause.",
            (
                "If the event has no GTID, do not only run START REPLICA with auto-position: the"
                " source can skip it. Set gtid_mode = ON_PERMISSIVE on both servers, and let the"
                " replica apply it by file position first."
            ),
        ),
    ),
    ErrorText(
        _FIRST_QUERIES,
        r"(?:(?:Source|Master) command \S+ failed|Get (?:source|master) clock failed|"
        r"fatal error is encountered when it (?:try|tries|tried) to)",
        "A4",
        "The receiver is connected, and one of the questions with which it begins failed: the"
        " connection broke, or the account does not have REPLICATION SLAVE on the source.",
        (
            "Read the rest of the text: it contains the source's own error.",
            "On the source: SHOW GRANTS for the replication account. Then run START REPLICA.",
        ),
    ),
    ErrorText(
        _CHECKSUM,
        r"can ?not handle replication events with the checksum",
        "A4",
        "The source writes checksums that the version of the replica does not know.",
        ("Upgrade the replica. Replicate only from older to newer versions.",),
    ),
    ErrorText(
        _OLD_SOURCE,  # sql/rpl_slave.cc of 5.6 asks it only of a source of version 4
        r"different values for the (?:COLLATION_SERVER|TIME_ZONE) global variable|"
        r"reported unrecognized MySQL version",
        "C14",
        "A replica compares these settings only with a source of version 4, whose statements do not"
        " carry them. Such a source has no GTIDs.",
        ("Load a dump of the old server, and replicate only from supported versions.",),
    ),
    ErrorText(
        _STRANGE,
        r"(?:unexpected event sequence was detected|is not recognized by the format description|"
        r"Received oversized rotate event|Read invalid event from|"
        r"Failed to create (?:\w+_event|\S+$))",
        "A4",
        "What the source sent, or the relay log has, is no sequence of events that this version"
        " knows: a damaged event, a file that begins in the middle, or a program or a version that"
        " writes other events.",
        (
            (
                "If the source's file is sound (`gtid-audit binlog scan FILE`), and the source has"
                " purged nothing that is missing, receive it again:"
                " STOP REPLICA, CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, START"
                " REPLICA. This deletes the relay log."
            ),
            "If it happens again, compare the versions of both servers (C14).",
        ),
    ),
    ErrorText(
        _NO_OTHER_SOURCE,
        r"Failed to automatically re-connect to a different source",
        "A4",
        "The channel has SOURCE_CONNECTION_AUTO_FAILOVER = 1, its source is away, and the list of"
        " other sources is empty or was not read. The text has the reason and its fix.",
        (
            (
                "SELECT * FROM performance_schema.replication_asynchronous_connection_failover."
                " Add a source (asynchronous_connection_failover_add_source), or start the source."
            ),
        ),
    ),
    ErrorText(
        _NO_USER,  # seen on 9.7.4 and 5.6.24
        r"Invalid \(empty\) username when attempting to connect",
        "A4",
        "CHANGE REPLICATION SOURCE named no SOURCE_USER, or a START REPLICA USER = … named it, and"
        " that is kept only until the receiver stops.",
        (
            (
                "On the replica: CHANGE REPLICATION SOURCE TO SOURCE_USER = '…', SOURCE_PASSWORD ="
                " '…' FOR CHANNEL '…', then START REPLICA. Or give both in START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _ACCOUNT_STATE,
        r"(?:password has expired|Account is (?:locked|blocked)|has exceeded the '.*' resource|"
        r"already has more than 'max_user_connections')",
        "A4",
        "The source knows the replication account and does not let it in: its password has expired,"
        " it is locked, or it has a limit of connections or queries.",
        (
            (
                "On the source: SHOW CREATE USER for the account. ALTER USER … ACCOUNT UNLOCK,"
                " PASSWORD EXPIRE NEVER, or WITH MAX_USER_CONNECTIONS 0. The receiver then connects"
                " by itself, or run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _HEARTBEAT,
        r"Unexpected (?:source|master)'s heartbeat data",
        "A4",
        "The source reports a position that the receiver has already passed: the source's log was"
        " reset or replaced.",
        (
            (
                "Audit both servers before you run START REPLICA: the source may have lost or reset"
                " its history (E3, E6)."
            ),
        ),
    ),
    ErrorText(
        _NOT_OF_THE_GROUP,
        r"(?:transactions not present in the group|"
        r"more executed transactions than those present in the group)",
        "J3",
        "A server cannot join the group because it has transactions that no member has. A client"
        " wrote on it while it was not a member, or the group lost them.",
        (
            (
                "Do not remove them with RESET before you know what they contain: `gtid-audit"
                " binlog show SET DSN`."
            ),
            "`gtid-audit pair MEMBER SERVER` shows the set, and whether it contains data.",
        ),
    ),
    ErrorText(
        _PACKET,  # seen on 9.7.4 and 5.6.24
        r"packet bigger than '?(?:slave|replica)_max_allowed_packet",
        "A4",
        "The source sends an event that is larger than replica_max_allowed_packet"
        " (slave_max_allowed_packet before 8.0.26) of the replica.",
        (
            (
                "On the replica, raise it to at least the size of the event (at most 1 GiB, its"
                " default), also in its configuration file. Then run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _NAMESPACE,  # seen on 9.7.4
        r"failed to set network namespace",
        "A4",
        "The channel has NETWORK_NAMESPACE, and mysqld cannot enter it: the host has no such"
        " namespace, or mysqld has no CAP_SYS_ADMIN.",
        (
            (
                "On the replica's host, `ip netns list` shows the namespaces. Create it, or run"
                " CHANGE REPLICATION SOURCE TO NETWORK_NAMESPACE = '' for the channel."
            ),
        ),
    ),
    ErrorText(
        _OFFLINE,  # seen on 9.7.4
        r"server is currently in offline mode",
        "A4",
        "offline_mode is ON on the source: it refuses every account without CONNECTION_ADMIN (or"
        " SUPER). The receiver tries again by itself.",
        ("When the maintenance of the source is over: SET GLOBAL offline_mode = OFF there.",),
    ),
    ErrorText(
        _TLS,  # seen on 9.7.4
        r"Connections using insecure transport are prohibited",
        "A4",
        "require_secure_transport is ON on the source, and the channel does not use TLS.",
        (
            (
                "STOP REPLICA IO_THREAD, CHANGE REPLICATION SOURCE TO SOURCE_SSL = 1, START REPLICA"
                " IO_THREAD. The relay log stays only if the applier runs meanwhile."
            ),
        ),
    ),
    ErrorText(
        _HOOK,
        r"(?:Error on observer while running replication hook|Failed to run '\w+' hook)",
        "A4",
        "A plugin of the server refused or failed: semi-synchronous replication, Group Replication,"
        " or another one.",
        ("The line before it in the error log names the plugin and the reason.",),
    ),
)

RECEIVER_NUMBERS: Final[dict[int, str]] = {
    **dict.fromkeys((1595, 13122), NOT_QUEUED),
    **dict.fromkeys((3113, 3114, 13148, 13149), _ANONYMOUS),
    **dict.fromkeys((1597, 13120), _FIRST_QUERIES),
    **dict.fromkeys((1596, 13116, 13510), _STRANGE),
    13660: _NO_OTHER_SOURCE,
    **dict.fromkeys((1623, 13118), _HEARTBEAT),
    3032: _OFFLINE,
    6400: _OFFLINE,
    **dict.fromkeys((1203, 1226, 1862, 3118, 3955), _ACCOUNT_STATE),
    3159: _TLS,
    3100: _HOOK,
}
