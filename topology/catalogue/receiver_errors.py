"""Error texts of receivers about what they were sent, in every version.

error_texts.py has the rules for all such texts.
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

NOT_QUEUED: Final = "the receiver cannot write what it was sent"
_ANONYMOUS: Final = "a transaction without a GTID"
_FIRST_QUERIES: Final = "the source did not answer what a receiver asks first"
_CHECKSUM: Final = "the replica does not know the checksum of the source"
_ENCRYPTED: Final = "the key of an encrypted log is missing"
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
        _ENCRYPTED,
        r"(?:replication log encryption header|binary log encryption|"
        r"binary log master key|fetch .* key from .*keyring)",
        "A4",
        "A binary log or relay log is encrypted, and the server does not have its key.",
        (
            (
                "Load the keyring component that the server had when it wrote the file, with the"
                " same keys. The source decrypts what it sends: a replica needs no key of it."
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
    13120: _FIRST_QUERIES,
    3787: _ENCRYPTED,
    13118: _HEARTBEAT,
    3032: _OFFLINE,
    3159: _TLS,
    3100: _HOOK,
}
