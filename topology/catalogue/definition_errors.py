"""Errors that stop an applier because the replica's definitions or settings are not the source's.

applier_errors.py has the rules for these texts. No step is to skip the transaction.
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

_NOT_THERE: Final = "the object that the statement changes does not exist on the replica"
_THERE: Final = "the object that the statement creates already exists on the replica"
_NOT_CONVERTED: Final = "the column types differ on the replica"
_NO_FIT: Final = "a value does not fit the replica's column"
_BOUND: Final = "a constraint of the replica forbids the change"
_NOT_KNOWN: Final = "the replica does not support what the statement uses"
_NOT_DEFINED: Final = "the replica refuses the definition"
_ACCOUNT: Final = "the accounts differ on the replica"
_NOT_TRUSTED: Final = "the replica refuses to log the function"

DEFINITION_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        _NOT_CONVERTED,  # seen on 9.7.4
        r"(?:cannot be converted from type|Table definition on (?:master|source) and|"
        r"Can't create conversion table|one of which is a generated implicit primary key|"
        r"Column count doesn't match value count|doesn't have a default value)",
        "A3",
        "The table was altered on one of the two servers only.",
        (
            (
                "Compare the definitions on both servers: `gtid-audit schema drift SOURCE REPLICA`,"
                " or audit with `--definitions`, which reports them as S2."
                " With sql_log_bin = 0, alter the table on the replica to what it was on the source"
                " when the transaction was committed. Then run START REPLICA."
            ),
            (
                "Do not set replica_type_conversions = ALL_LOSSY: it truncates values without an"
                " error."
            ),
        ),
    ),
    ErrorText(
        _NO_FIT,
        r"(?:Data too long for column|Data truncated for column|Out of range value for column|"
        r"Incorrect \w+ value|Table has no partition for (?:value|some existing)|"
        r"Column '.*' cannot be null|Truncated incorrect|value is out of range in|Division by 0|"
        r"Invalid \S+ character string|Found a row (?:not|that does not) match|"
        r"Found a row in wrong partition|Conversion from collation .* impossible)",
        "A3",
        "The replica's column is smaller than the source's, or its sql_mode is stricter.",
        (
            (
                "Compare SHOW CREATE TABLE and sql_mode of both servers. Alter the table on the"
                " replica with sql_log_bin = 0. Then run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _BOUND,  # 3819 seen on 9.7.4
        r"(?:a foreign key constraint fails|Check constraint .* is violated|CHECK OPTION failed|"
        r"Foreign key constraint for table .* would lead to a duplicate entry)",
        "A3",
        "The replica does not have the parent row, or has child rows or a constraint that the"
        " source does not have.",
        (
            "On both servers, compare SHOW CREATE TABLE and the rows that the keys refer to.",
            "The usual cause is a skipped transaction (H1, H8) or a write on the replica (E1).",
        ),
    ),
    ErrorText(
        _THERE,  # seen on 9.7.4
        r"(?:(?:Table|View|Event|Function|Schema directory|File) '.*' already exists|"
        r"database exists|Tablespace (?:for table )?'.*' exists|Authorization ID .* already exists|"
        r"Duplicate check constraint name|Multiple primary key defined|"
        r"foreign server, .* you are trying to create already exists|"
        r"(?:PROCEDURE|FUNCTION) \S+ already exists|Trigger already exists|"
        r"Duplicate (?:column|key|partition) name|Duplicate foreign key constraint name)",
        "A3",
        "A client created it on the replica, or the transaction ran there before: a RESET, a"
        " gtid_purged that is too small, or a dump that was loaded without its GTID set.",
        (
            (
                "Check whether the replica also has the rows of the waiting transactions. If it"
                " does, the GTID history of the replica is wrong, not this transaction. Set its"
                " gtid_purged, or clone it."
            ),
            (
                "If the replica has only this object, compare both definitions (S2: `gtid-audit"
                " schema drift SOURCE REPLICA`) and rows before you decide."
            ),
        ),
    ),
    ErrorText(
        _NOT_THERE,  # 1146 seen on 9.7.4
        r"(?:Table '.*' doesn't exist|Unknown (?:table|database|column|partition)|Can't DROP|"
        r"Key column '.*' doesn't exist in table|Key '.*' doesn't exist in table|"
        r"Schema directory '.*' does not exist|references invalid table|"
        r"' is not (?:BASE TABLE|VIEW|SEQUENCE)|"
        r"Check constraint '.*' is not found|foreign server name you are trying to reference|"
        r"Can't find FULLTEXT index|Referenced trigger .* does not exist|has no index like the one|"
        r"Can't drop database|Unknown (?:VIEW|event)|does not exist on query|"
        r"(?:PROCEDURE|FUNCTION) \S+ does not exist|Trigger does not exist|"
        r"specified as a definer .* does not exist|on a not partitioned table|"
        r"Error in list of partitions)",
        "A3",
        "A client dropped or renamed it on the replica, or it was never created there: a filter, a"
        " skipped transaction, or a partial restore.",
        (
            "Do not skip it: the next transactions on the same table stop the applier again.",
            (
                "Find out what else is missing (H1, H8, S2, filters): `gtid-audit schema drift"
                " SOURCE REPLICA` shows each object. Then restore the table as it was at this"
                " transaction, or clone the replica."
            ),
        ),
    ),
    ErrorText(
        _NOT_KNOWN,
        r"(?:Unknown (?:collation|character set|storage engine|or incorrect time zone|locale)|"
        r"Plugin '.*' is not loaded|Storage engine for table .* is not loaded|"
        r"Can't load function|Can't open shared library|Can't find symbol|"
        r"Function '.*' is not defined|doesn't yet support|"
        r"command is not allowed with this MySQL version|feature is (?:disabled|not available);|"
        r"Storage engine .* is disabled|"
        r"(?:engine|table type|handler)\b.{0,40} doesn't (?:support|have this option)|"
        r"is not supported for this operation|"
        r"is not supported\. Reason|There's no spatial reference system)",
        "A3",
        "The replica runs an older version than its source, or does not have a plugin or the time"
        " zone tables.",
        (
            (
                "Load what is missing (mysql_tzinfo_to_sql, INSTALL PLUGIN), or upgrade the"
                " replica. Then run START REPLICA. Replicate only from older to newer versions."
            ),
        ),
    ),
    ErrorText(
        _NOT_DEFINED,
        r"(?:Row size too large|Specified key was too long|Invalid default value for|"
        r"can't have a default value|Cannot add foreign key constraint|"
        r"Failed to add the foreign key constr?aint|Failed to open the referenced table|"
        r"Column length too big for column|needed in a foreign key constraint|"
        r"This table type requires a primary key|"
        r"VALUES LESS THAN value must be strictly increasing|Cannot remove all partitions|"
        r"Can't create table '.*' \(|Index column size too large|Too many (?:columns|key)|"
        r"there can be only one (?:auto|TIMESTAMP) column|does not support the create option|"
        r"must include all columns in the table's partitioning function|"
        r"foreign key constraint '.*' are incompatible|referenced by a foreign key constraint|"
        r"(?:used|referenced) in a foreign key constraint|"
        r"used in key specification without a key length|"
        r"is not valid for CHARACTER SET|Table encryption differ from its database|"
        r"Invalid ON UPDATE clause|Failed to generate invisible primary key|"
        r"Maximum row versions reached)",
        "A3",
        "The source created or altered a table with a definition that the replica does not accept:"
        " its version, sql_mode, row format or engine differs, or the table already does.",
        (
            (
                "Compare SHOW CREATE TABLE on both servers, and sql_mode,"
                " innodb_default_row_format, innodb_strict_mode, default_storage_engine and"
                " explicit_defaults_for_timestamp."
            ),
            "Set on the replica what the source has. Then run START REPLICA.",
        ),
    ),
    ErrorText(
        _ACCOUNT,
        r"(?:Operation (?:CREATE|ALTER|DROP|RENAME) (?:USER|ROLE) failed|"
        r"Can't find any matching row in the user table|"
        r"password does not satisfy the current policy|You are not allowed to create a user|"
        r"There is no such grant defined|Unknown authorization ID|is not granted to|"
        r"Authorization ID .* does not exist|The password hash doesn't have the expected format|"
        r"contradict the password history policy)",
        "A3",
        "The source changed an account that the replica does not have, or has already, or whose"
        " password the policy of the replica refuses.",
        (
            (
                "Compare the account on both servers (SHOW CREATE USER). With sql_log_bin = 0,"
                " bring the replica to the state before this statement. Then run START REPLICA."
            ),
            (
                "If the policy refuses the password, set validate_password as on the source while"
                " the applier runs the statement."
            ),
        ),
    ),
    ErrorText(
        _NOT_TRUSTED,
        r"log_bin_trust_function_creators",
        "A3",
        "The source created a function that is not declared as DETERMINISTIC, NO SQL or READS SQL"
        " DATA. It permits that (log_bin_trust_function_creators), and the replica does not.",
        (
            (
                "Set log_bin_trust_function_creators on the replica as on the source, also in its"
                " configuration file. Then run START REPLICA."
            ),
        ),
    ),
)

DEFINITION_NUMBERS: Final[dict[int, str]] = {
    **dict.fromkeys((1058, 1136, 1364, 1535, 1677, 1678, 13146, 13964), _NOT_CONVERTED),
    **dict.fromkeys((1048, 1264, 1265, 1292, 1300, 1365, 1366, 1406, 1411), _NO_FIT),
    **dict.fromkeys((1525, 1526, 1591, 1690, 1737, 1748, 1863, 3673, 3988), _NO_FIT),
    **dict.fromkeys((1216, 1217, 1369, 1451, 1452, 1761, 1762, 3819), _BOUND),
    **dict.fromkeys((1007, 1050, 1060, 1061, 1068, 1086, 1125, 1304, 1359), _THERE),
    **dict.fromkeys((1476, 1517, 1537, 1813, 1826, 3163, 3678, 3822), _THERE),
    **dict.fromkeys((1008, 1049, 1051, 1054, 1072, 1082, 1091, 1109, 1146), _NOT_THERE),
    **dict.fromkeys((1176, 1191, 1305, 1347, 1356, 1360, 1449, 1477, 1505), _NOT_THERE),
    **dict.fromkeys((1507, 1539, 1735, 3011, 3679, 3821), _NOT_THERE),
    **dict.fromkeys((1031, 1115, 1122, 1126, 1127, 1128, 1148, 1163, 1164), _NOT_KNOWN),
    **dict.fromkeys((1178, 1214, 1235, 1273, 1286, 1289, 1298, 1464, 1524), _NOT_KNOWN),
    **dict.fromkeys((1649, 1845, 1846, 3003, 3110, 3161, 3167, 3548), _NOT_KNOWN),
    **dict.fromkeys((1005, 1067, 1069, 1070, 1071, 1074, 1075, 1101, 1117), _NOT_DEFINED),
    **dict.fromkeys((1118, 1170, 1173, 1215, 1253, 1293, 1294, 1478, 1493), _NOT_DEFINED),
    **dict.fromkeys((1503, 1508, 1553, 1701, 1709, 1821, 1822, 1823, 1824), _NOT_DEFINED),
    **dict.fromkeys((1825, 1828, 1829, 1830, 1832, 1833, 3730, 3734, 3780), _NOT_DEFINED),
    **dict.fromkeys((3826, 4092, 4108, 4109, 6125), _NOT_DEFINED),
    **dict.fromkeys((1133, 1141, 1147, 1396, 1403, 1410, 1819, 1827, 3162), _ACCOUNT),
    **dict.fromkeys((3523, 3530, 3638), _ACCOUNT),
    **dict.fromkeys((1418, 1419), _NOT_TRUSTED),
}
