"""The errors with which a receiver or an applier of 5.6 to 9.7 can stop, and what each one is.

Written by hand, from the servers' message files and from the texts in their programs. It is not
derived from the tables of `explain`. test_server_messages_live.py takes the texts from the servers.

The frames are those of sql/log_event.cc, sql/rpl_replica.cc and sql/rpl_rli_pdb.cc.
"""

from typing import Final

_WORKER: Final = (
    "Coordinator stopped because there were error(s) in the worker(s). The most recent failure"
    " being: Worker 1 failed executing transaction 'x' at source log b.2, end_log_pos 9; "
)
_STATEMENT: Final = "Error '{text}' on query. Default database: 'd'. Query: 'q'"
_ROW: Final = (
    "Could not execute Update_rows event on table d.t; {text}, Error_code: {number}; handler error"
    " HA_ERR; the event's source log b.2, end_log_pos 9"
)
# How a thread reports an error: a statement, a row, what it says itself, a connection.
STATEMENT, ROW, ITSELF, CONNECTING = "statement", "row", "itself", "connecting"
FRAMES: Final = {
    STATEMENT: (_STATEMENT, _WORKER + _STATEMENT),
    ROW: (_ROW, "Error executing row event: '{text}'", _WORKER + _ROW),
    ITSELF: ("{text}",),
    CONNECTING: (
        "{text}",
        (
            "Error connecting to source 'r@h:1'. This was attempt 3/86400, with a delay of 1"
            " seconds between attempts. Message: {text}"
        ),
    ),
}

# (frame, numbers, title, code of the finding)
STOPPING: Final[tuple[tuple[str, tuple[int, ...], str, str | None], ...]] = (
    # -- definitions and rows
    (STATEMENT, (1058, 1136, 1364), "the column types differ on the replica", "A3"),
    (ROW, (1535, 1677, 1678, 13146, 13964), "the column types differ on the replica", "A3"),
    (
        STATEMENT,
        (
            *(1048, 1264, 1265, 1292, 1300, 1365, 1366, 1406, 1411, 1525, 1526, 1591, 1690),
            *(1737, 1748, 1863, 3673, 3988),
        ),
        "a value does not fit the replica's column",
        "A3",
    ),
    (
        ROW,
        (1216, 1217, 1369, 1451, 1452, 1761, 1762, 3819),
        "a constraint of the replica forbids the change",
        "A3",
    ),
    (
        STATEMENT,
        (
            *(1007, 1050, 1060, 1061, 1068, 1086, 1125, 1304, 1359, 1476, 1517, 1537, 1813, 1826),
            *(3163, 3678, 3822),
        ),
        "the object that the statement creates already exists on the replica",
        "A3",
    ),
    (
        STATEMENT,
        (
            *(1008, 1049, 1051, 1054, 1072, 1082, 1091, 1109, 1146, 1176, 1191, 1305, 1347, 1356),
            *(1360, 1449, 1477, 1505, 1507, 1539, 1735, 3011, 3679, 3821),
        ),
        "the object that the statement changes does not exist on the replica",
        "A3",
    ),
    (
        STATEMENT,
        (
            *(1031, 1115, 1122, 1126, 1127, 1128, 1148, 1163, 1164, 1178, 1214, 1235, 1273, 1286),
            *(1289, 1298, 1464, 1524, 1649, 1845, 1846, 3003, 3110, 3161, 3167, 3548),
        ),
        "the replica does not support what the statement uses",
        "A3",
    ),
    (
        STATEMENT,
        (
            *(1005, 1067, 1069, 1070, 1071, 1074, 1075, 1101, 1117, 1118, 1170, 1173, 1215, 1253),
            *(1293, 1294, 1478, 1493, 1503, 1508, 1553, 1701, 1709, 1821, 1822, 1823, 1824, 1825),
            *(1828, 1829, 1830, 1832, 1833, 3730, 3734, 3780, 3826, 4092, 4108, 4109, 6125),
        ),
        "the replica refuses the definition",
        "A3",
    ),
    (
        STATEMENT,
        (1133, 1141, 1147, 1396, 1403, 1410, 1819, 1827, 3162, 3523, 3530, 3638),
        "the accounts differ on the replica",
        "A3",
    ),
    (STATEMENT, (1418, 1419), "the replica refuses to log the function", "A3"),
    (ROW, (1032,), "row not found on the replica", "A2"),
    (ROW, (1062,), "duplicate key on the replica", "A2"),
    # -- one statement or row
    (ITSELF, (3001,), "the source executed a statement only in part", "A3"),
    (ITSELF, (3002, 13113), "the expected error did not happen", "A1"),
    (STATEMENT, (1064, 1149), "the replica cannot parse the statement", "A3"),
    (STATEMENT, (1175,), "the replica refuses statements without a key", "A3"),
    (
        STATEMENT,
        (1642, 1643, 1644),
        "a trigger or a routine of the replica refuses the change",
        "A3",
    ),
    (ROW, (1610, 3649), "the applier cannot decode the rows of an event", "A3"),
    (ROW, (3648,), "the JSON document on the replica is another one", "A3"),
    (ITSELF, (3725, 11267), "DDL failed on both servers, and only one of them undid it", "S2"),
    (STATEMENT, (1397,), "the applier finds no such prepared XA transaction", "A3"),
    (STATEMENT, (1440,), "the XA transaction is prepared already", "A3"),
    (
        STATEMENT,
        (1398, 1399, 1400, 1401, 1402, 3197),
        "the XA transaction is in another state on the replica",
        "A3",
    ),
    (
        STATEMENT,
        (1785, 1786, 1787, 1884, 3091, 3748, 3775),
        "the statement cannot have one GTID",
        "C4",
    ),
    # -- what the replica permits
    (ROW, (1044, 1142, 1143, 1227, 1370, 3630, 3631), "the applier is missing a privilege", "A3"),
    (
        ITSELF,
        (3926, 3927, 3928, 4117, 13494, 13495, 13496, 13497),
        "the account of PRIVILEGE_CHECKS_USER cannot apply",
        "A3",
    ),
    (ITSELF, (3944, 13507, 13508), "the channel refuses a statement", "A3"),
    (STATEMENT, (3750,), "the replica refuses a table without a primary key", "A3"),
    (
        ROW,
        (*range(1661, 1668), 1536, 1844),
        "the replica cannot log what it applies in its binlog_format",
        "A3",
    ),
    (ROW, (3098, 3635), "the table does not meet the requirements of Group Replication", "A3"),
    (ROW, (3797, 3798, 3799), "the group did not confirm the transaction", "A3"),
    (ITSELF, (3100,), "a plugin refused the transaction", "A4"),
    # -- what the replica has not got
    (
        ROW,
        (1021, 1114, 1878, 3019, 3675, 13132, 13133),
        "no space is left on the replica",
        "A3",
    ),
    (
        ROW,
        (1037, 1038, 1041, 1206, 1257, 3015, 3044, 3170, 3985, 13131),
        "the replica is out of memory",
        "A3",
    ),
    (
        STATEMENT,
        (1119, 1153, 1162, 1197, 1436, 1456, 1705, 1799, 1864, 13125),
        "the transaction is larger than the replica permits",
        "A3",
    ),
    (ROW, (1205, 1213, 1613, 1614, 1689, 3572), "the applier waited too long for a lock", "A3"),
    (ROW, (1053, 1317, 3024, 3169), "a replication thread was interrupted", "A3"),
    (ROW, (1034, 1035, 1194, 1195), "a table of the replica is damaged", "A3"),
    (
        ROW,
        (1712, 1812, 1814, 1817, 1874, 1877, 1881, 3510),
        "a table or a tablespace of InnoDB is damaged on the replica",
        "A3",
    ),
    (
        ROW,
        (1030, 1180, 1296, 1297, 1810, 1811, 1815),
        "the storage engine of the replica reports an error",
        "A3",
    ),
    (ROW, (1534,), "the replica cannot add a row to its binary log", "A3"),
    (ROW, (1026, 1598), "the server cannot write its binary log", None),
    (ITSELF, (1775,), "the server has used up the numbers of its server_uuid", "H7"),
    # -- the applier itself
    (ITSELF, (1594, 13121, 13807), "the relay log cannot be read", "A3"),
    (ITSELF, (1743, 1744, 13115), "an event is damaged", "A4"),
    (ITSELF, (1590, 13119), "the source could not log everything that it executed", "A3"),
    (ITSELF, (1753, 1755), "the parallel applier cannot schedule an event", "A3"),
    (ITSELF, (1803,), "the parallel applier could not recover its gaps", "A6"),
    (ITSELF, (1802,), "the parallel applier has gaps", "A6"),
    (ITSELF, (1872, 13124), "the applier cannot read its position", "A6"),
    (ITSELF, (3030,), "a worker stopped because another one did", "A3"),
    (ITSELF, (13145,), "init_replica of the replica fails", "A3"),
    (ITSELF, (1804, 3881), "the replica cannot store the position of a thread", "A3"),
    (ITSELF, (1135, 1202, 4012), "the replica cannot create a thread", "A7"),
    (ITSELF, (1596, 13116, 13510), "a thread got events that it does not expect", "A4"),
    (
        ITSELF,
        (1201, 1371, 1380, 1794, 1871, 13123),
        "the server cannot read its replication configuration",
        None,
    ),
    # -- the receiver
    (CONNECTING, (3032, 6400), "the source is in offline mode", "A4"),
    (CONNECTING, (3159,), "the source requires TLS", "A4"),
    (
        CONNECTING,
        (1203, 1226, 1862, 3118, 3955),
        "the source does not let the replication account in",
        "A4",
    ),
    (ITSELF, (1218,), "the replica cannot connect", "A4"),
    (ITSELF, (1597, 13120), "the source did not answer what a receiver asks first", "A4"),
    (ITSELF, (1595, 13122), "the receiver cannot write what it was sent", "A4"),
    (ITSELF, (1623, 13118), "the source stands before what the receiver has read", "A4"),
    (ITSELF, (1789,), "the source has purged what the replica needs", "P1"),
    (ITSELF, (1885,), "the replica has more GTIDs than the source", "E3"),
    (ITSELF, (1236, 13114), "the source refused to send", "A4"),
    (ITSELF, (3113, 3114, 13148, 13149), "a transaction without a GTID", "A4"),
    (ITSELF, (1784, 3115, 13150), "a transaction with a GTID, and gtid_mode is OFF", "A4"),
    (
        ITSELF,
        (3112, 4013, 4071, 13690, 13702, 13805),
        "the setting of the channel needs gtid_mode = ON",
        "C4",
    ),
    (
        ITSELF,
        (4020, 4040, 13691, 13754),
        "the UUID for anonymous transactions is one of the group",
        None,
    ),
    (ITSELF, (13660,), "no other source is left for the channel", "A4"),
    (ITSELF, (1866,), "a log has GTIDs without the set of the logs before it", "A4"),
    (
        ITSELF,
        (*range(3784, 3795), 3801, *range(3806, 3812)),
        "the key of an encrypted log is missing",
        "A4",
    ),
)

# Texts that are only in the program: (its beginning or a part of it, what follows, title, code).
# The part is looked for in mysqld of 9.7.4, or with the old words in that of 5.6.24.
IN_PROGRAM: Final[tuple[tuple[str, str, str | None], ...]] = (
    ("Invalid (empty) username when attempting to connect to the", "the channel has no user", "A4"),
    (
        "different values for the COLLATION_SERVER global variable",
        "the source is older than MySQL 5.0",
        "C14",
    ),
    ("Failed to open relay log file:", "the relay log cannot be read", "A3"),
    ("Could not find relay log file.", "the relay log cannot be read", "A3"),
    (
        "different values for the TIME_ZONE global variable",
        "the source is older than MySQL 5.0",
        "C14",
    ),
    ("have equal MySQL server ids; these ids", "source and replica have one server_id", "C2"),
    ("have equal MySQL server UUIDs; these UUIDs", "source and replica have one server_uuid", "C1"),
    (
        "fatal error is encountered when it try to get the value of SERVER_ID variable",
        "the source did not answer what a receiver asks first",
        "A4",
    ),
    ("could not queue event from source", "the receiver cannot write what it was sent", "A4"),
    ("Failed to run 'after_queue_event' hook", "a plugin refused the transaction", "A4"),
    (
        "Could not find first log during relay log initialization",
        "the relay log cannot be read",
        "A3",
    ),
    (
        "It was not possible to update the positions of the relay log information",
        "the replica cannot store the position of a thread",
        "A3",
    ),
    ("Can't execute init_slave query", "init_replica of the replica fails", "A3"),
    ("Failed during replica workers initialization", "the applier cannot start its threads", "A3"),
    ("Failed during slave thread initialization", "the applier cannot start its threads", "A3"),
    (
        "The slave coordinator and worker threads are stopped, possibly leaving data in inconsistent",
        "the workers of a parallel applier have stopped",
        "A3",
    ),
    (
        "retried transaction %lu time(s) in vain, giving up",
        "the applier waited too long for a lock",
        "A3",
    ),
    (
        "Query partially completed on the master (error on master: %d) and was aborted",
        "the source executed a statement only in part",
        "A3",
    ),
    (
        "Query caused different errors on master and slave",
        "the expected error did not happen",
        "A1",
    ),
    (
        "Error in Xid_log_event: Commit could not be completed, '%s'",
        "the applier fails at what the source executed",
        "A3",
    ),
    (
        "Error in %s event: could not create file '%s'",
        "the applier cannot use its file of a LOAD DATA",
        "A3",
    ),
    (
        "Error in %s event: write to '%s' failed",
        "the applier cannot use its file of a LOAD DATA",
        "A3",
    ),
    (
        "Error '%s' running LOAD DATA INFILE on table '%s'",
        "the applier fails at what the source executed",
        "A3",
    ),
    ("Error '%s' on opening tables", "the applier fails at what the source executed", "A3"),
    (
        "is not recognized by the format description event currently in use",
        "a thread got events that it does not expect",
        "A4",
    ),
    ("Received oversized rotate event", "a thread got events that it does not expect", "A4"),
    ("Event crc check failed", "an event is damaged", "A4"),
    ("Found invalid event in binary log", "the source cannot read its own binary log", "A4"),
    (
        "log event entry exceeded max_allowed_packet",
        "the source cannot read its own binary log",
        "A4",
    ),
    ("Binary log is not open", "the source keeps no binary log", "A4"),
    (
        "Could not find first log file name in binary log index file",
        "the binary log file that the replica requests is gone",
        "A4",
    ),
)

# Messages about replication with which no thread stops: parts of their symbols, by the reason.
OF_NO_THREAD: Final[dict[str, str]] = {
    # A note or a warning to the client that runs an unsafe statement, or in the error log.
    "warning": r"UNSAFE|WARN|INSECURE|IGNORED|GREATER_THAN|UPDATED_DBS|WAS_CHANGED|SUGGEST"
    r"|XA_REPLICATION_FILTERS|MISSING_SKIP|PARTIAL|USING_ASSIGN",
    # The answer to CHANGE REPLICATION SOURCE, START, STOP or RESET REPLICA: no thread runs then.
    "administration": r"CHANGE_RE?PL?|CHANGE_SOURCE|HEARTBEAT_VALUE|UNTIL_COND|WAS_(?:NOT_)?RUNNING"
    r"|CHANNEL|DELAY_VALUE|SECURE_REPLICA|RESET_SOURCE|ASYNC_RECONNECT|COMBINE_ANONYMOUS"
    r"|AFTER_OR_BEFORE|UNTIL_SQL|REQUIRE_ROW_FORMAT|IGNORE_SERVER_IDS|WILD_TABLE_FILTER"
    r"|PRESERVE_COMMIT_ORDER|MUST_STOP|REPLICA_CHANNEL|STOP_REPLICA_|RPL_INFO|SAME_UUID"
    r"|ANONYMOUS_TO_GTID_AND|TRANSACTIONS_REQUIRES_GTID|PRIVILEGE_CHECKS_USER_CANNOT",
    # A statement of a client about its own session or server.
    "client": r"SWITCH|PURGE|GROUP_REPLICATION|GRP_RPL|PASSWORD|RESOURCE_GROUP|BINLOG_STATEMENT"
    r"|NO_BINLOG_ERROR|TARGET_BINLOG|BINLOG_CLOSED|EXPIRE_LOG|GTID_NEXT|SKIP_COUNTER"
    r"|OWNING_(?:A_)?GTID|GTID_MODE|GTID_CONSISTENCY|LOCKED_BACKUP|EXECUTED_TABLE|XA_TEMP"
    r"|XA_CANT_CREATE|KEY_ROTATION_(?!FAIL)|CANNOT_ROTATE|MALFORMED_GTID|NO_BINARY_LOGGING"
    r"|AUTO_POSITION|REPLICA_NOT_RUNNING|BAD_REPLICA|BY_REPLICATION_THREAD|ANONYMOUS_USER"
    r"|HAS_NO_LOG|IS_REPLICATION|ROLES_TO_ANONYMOUS|CONSISTENCY_NOT_ALLOWED|FAILED_ROUTINE",
    # Used by no code of these versions, or only inside of it.
    "unused": r"^ER_SOURCE(?:_NET_\w+)?$|QUERY_ON_MASTER|SILENT_RETRY|MTA_INCONSISTENT"
    r"|BINLOG_FATAL_ERROR",
    # Not about replication.
    "other": r"FOREIGN|SRS|_LH_|REGEXP|LANGUAGE|BULK|VECTOR|_NDB",
}
