"""The statements that read definitions: digests of all of them, and the text of some.

1. A server computes one digest for each part of each table: its options, columns, indexes, foreign
   keys, check constraints and partitions. That takes few statements, and few bytes on the network.
   Measured with 10,000 tables of 10 columns on 9.7.4: docs/schema-drift.md.
2. The digest is SHA2: 9.7 has no MD5 and no SHA1 function (classic_hashing is a component there).
3. GROUP_CONCAT cuts its text at group_concat_max_len or max_allowed_packet, whichever is less. So
   each row also has the bytes of the whole text. Where they do not fit, the digest is not used.
4. Nothing here reads statistics: information_schema_stats_expiry does not matter.
5. The session is in UTC. SHOW CREATE TABLE, and information_schema before 8.0, print the default of
   a TIMESTAMP in the zone of the session that asks. 8.0 and later show it in information_schema in
   the zone of the session that set it: equal texts may be two moments, and two texts one. Such a
   table is read in full. Seen on 9.7.4 and 5.6.24. Limits of partitions, literals in expressions
   and times of events do not depend on the session that asks.
6. All values are ours, or quoted. Columns are those of 5.6; later ones are added by version.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from binlog.adapters.shown_definitions import show_create_table
from binlog.quoting import quote_identifier, quote_string
from topology.definitions.schema_objects import SYSTEM_SCHEMAS, ObjectKey, ObjectKind
from topology.readings.version import ServerVersion

GROUP_BYTES_MAX: Final = 1024**2
GRANTS: Final = "SHOW GRANTS"
SETTINGS: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('lower_case_table_names', 'gtid_mode',"
    " 'slave_type_conversions', 'replica_type_conversions', 'partial_revokes',"
    " 'max_allowed_packet', 'server_uuid')"
)
DEFAULT_COLLATIONS: Final = (
    "SELECT CHARACTER_SET_NAME AS charset, COLLATION_NAME AS collation"
    " FROM information_schema.COLLATIONS WHERE IS_DEFAULT = 'Yes'"
)
_GENERATED: Final = ServerVersion(5, 7, 6)
_CHECKS: Final = ServerVersion(8, 0, 16)
_DICTIONARY: Final = ServerVersion(8, 0, 0)  # of data: what information_schema shows is stored
# A TIMESTAMP whose default is a moment. '0000-00-00 00:00:00' is the same text in every zone.
_MOMENT: Final = (
    "DATA_TYPE = 'timestamp' AND COALESCE(COLUMN_DEFAULT, '') LIKE '____-__-__ %'"
    " AND COLUMN_DEFAULT NOT LIKE '0000-%'"
)
_EXPRESSIONS: Final = ServerVersion(8, 0, 13)
_VISIBLE: Final = ServerVersion(8, 0, 0)
_COLUMN: Final = (
    "ORDINAL_POSITION",
    "COLUMN_NAME",
    "COLUMN_TYPE",
    "IS_NULLABLE",
    "COLUMN_DEFAULT",
    "COLLATION_NAME",
    "EXTRA",
    "COLUMN_COMMENT",
)
_INDEX: Final = (
    "INDEX_NAME",
    "SEQ_IN_INDEX",
    "NON_UNIQUE",
    "COLUMN_NAME",
    "COLLATION",
    "SUB_PART",
    "INDEX_TYPE",
    "INDEX_COMMENT",
)
_PARTITION: Final = (
    "PARTITION_ORDINAL_POSITION",
    "PARTITION_NAME",
    "SUBPARTITION_ORDINAL_POSITION",
    "SUBPARTITION_NAME",
    "PARTITION_METHOD",
    "SUBPARTITION_METHOD",
    "PARTITION_EXPRESSION",
    "SUBPARTITION_EXPRESSION",
    "PARTITION_DESCRIPTION",
    "PARTITION_COMMENT",
)
_ROUTINE: Final = (
    "DTD_IDENTIFIER",
    "ROUTINE_DEFINITION",
    "IS_DETERMINISTIC",
    "SQL_DATA_ACCESS",
    "SECURITY_TYPE",
    "SQL_MODE",
    "ROUTINE_COMMENT",
    "DEFINER",
    "CHARACTER_SET_CLIENT",
    "COLLATION_CONNECTION",
)
_PARAMETER: Final = ("ORDINAL_POSITION", "PARAMETER_MODE", "PARAMETER_NAME", "DTD_IDENTIFIER")
_TRIGGER: Final = (
    "EVENT_OBJECT_TABLE",
    "EVENT_MANIPULATION",
    "ACTION_TIMING",
    "ACTION_STATEMENT",
    "SQL_MODE",
    "DEFINER",
    "CHARACTER_SET_CLIENT",
    "COLLATION_CONNECTION",
)
_EVENT: Final = (
    "EVENT_TYPE",
    "EVENT_DEFINITION",
    "EXECUTE_AT",
    "INTERVAL_VALUE",
    "INTERVAL_FIELD",
    "STARTS",
    "ENDS",
    "ON_COMPLETION",
    # Not STATUS: an applier disables every event, also one that the source has disabled.
    "TIME_ZONE",
    "SQL_MODE",
    "EVENT_COMMENT",
    "DEFINER",
    "CHARACTER_SET_CLIENT",
    "COLLATION_CONNECTION",
)
_VIEW: Final = (
    "VIEW_DEFINITION",
    "CHECK_OPTION",
    "SECURITY_TYPE",
    "DEFINER",
    "CHARACTER_SET_CLIENT",
    "COLLATION_CONNECTION",
)
_FOREIGN_KEY: Final = (
    "k.CONSTRAINT_NAME",
    "k.ORDINAL_POSITION",
    "k.COLUMN_NAME",
    "k.REFERENCED_TABLE_SCHEMA",
    "k.REFERENCED_TABLE_NAME",
    "k.REFERENCED_COLUMN_NAME",
    "r.MATCH_OPTION",
    "r.UPDATE_RULE",
    "r.DELETE_RULE",
)
_FOREIGN_KEYS: Final = (
    "information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r"
    " ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME"
    " AND r.TABLE_NAME = k.TABLE_NAME"
)
_CHECK_TABLES: Final = (
    "information_schema.TABLE_CONSTRAINTS t JOIN information_schema.CHECK_CONSTRAINTS c"
    " ON c.CONSTRAINT_SCHEMA = t.CONSTRAINT_SCHEMA AND c.CONSTRAINT_NAME = t.CONSTRAINT_NAME"
)
SHOWN_AS: Final = {
    ObjectKind.SCHEMA: "Create Database",
    ObjectKind.TABLE: "Create Table",
    ObjectKind.VIEW: "Create View",
    ObjectKind.PROCEDURE: "Create Procedure",
    ObjectKind.FUNCTION: "Create Function",
    ObjectKind.TRIGGER: "SQL Original Statement",
    ObjectKind.EVENT: "Create Event",
}
# The columns of SHOW CREATE with the settings of the session that created the object.
SESSION_COLUMNS: Final = ("sql_mode", "time_zone", "character_set_client", "collation_connection")


@dataclass(frozen=True, slots=True)
class DigestQuery:
    """One statement: rows of (schema_name, name, kind, parts, bytes, digest, is_hidden).

    `is_grouped`: the digest is that of a GROUP_CONCAT, which may have been cut. `is_hidden`: a part
    of the definition is in no table of information_schema, so that it must be read in full.
    """

    part: str
    statement: str
    is_grouped: bool = False


def limits_statement(seconds_max: float) -> str:
    """Return what sets the session's zone and limits: the length of GROUP_CONCAT, and a time.

    A client that gives up does not end its statement. max_execution_time does (5.7.8 and later).
    """
    milliseconds = max(1, round(seconds_max * 1000))
    return (
        f"SET SESSION time_zone = '+00:00', group_concat_max_len = {GROUP_BYTES_MAX}"
        f" /*!50708 , max_execution_time = {milliseconds} */"
    )


def digest_queries(version: ServerVersion, schemas: Sequence[str]) -> tuple[DigestQuery, ...]:
    """Return the statements that read a digest of every definition; `schemas`: only of these."""
    trigger = _TRIGGER + (("ACTION_ORDER",) if version >= _GENERATED else ())
    is_in = _chosen(schemas)
    queries = [
        _single("schema", "SCHEMATA", "SCHEMA_NAME", "''", _SCHEMA, is_in("SCHEMA_NAME")),
        *_of_tables(version, is_in),
        _single("view", "VIEWS", "TABLE_SCHEMA", "TABLE_NAME", _VIEW, is_in("TABLE_SCHEMA")),
        _single(
            "LOWER(ROUTINE_TYPE)",
            "ROUTINES",
            "ROUTINE_SCHEMA",
            "ROUTINE_NAME",
            _ROUTINE,
            is_in("ROUTINE_SCHEMA"),
        ),
        _parameters(is_in("SPECIFIC_SCHEMA")),
        _single(
            "trigger",
            "TRIGGERS",
            "TRIGGER_SCHEMA",
            "TRIGGER_NAME",
            trigger,
            is_in("TRIGGER_SCHEMA"),
        ),
        _single("event", "EVENTS", "EVENT_SCHEMA", "EVENT_NAME", _EVENT, is_in("EVENT_SCHEMA")),
    ]
    return tuple(queries)


def _of_tables(version: ServerVersion, is_in: Callable[[str], str]) -> list[DigestQuery]:
    """Return the statements about tables and their parts."""
    column = _COLUMN + (("GENERATION_EXPRESSION",) if version >= _GENERATED else ())
    column += ("SRS_ID",) if version >= _VISIBLE else ()
    index = _INDEX + (("IS_VISIBLE",) if version >= _VISIBLE else ())
    index += ("EXPRESSION",) if version >= _EXPRESSIONS else ()
    queries = [
        _single(
            "table",
            "TABLES",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            ("ENGINE", "TABLE_COLLATION", "CREATE_OPTIONS", "TABLE_COMMENT"),
            f"TABLE_TYPE = 'BASE TABLE' AND {is_in('TABLE_SCHEMA')}",
            hidden="ENGINE = 'MRG_MYISAM'",  # UNION, INSERT_METHOD
        ),
        _grouped(
            "columns",
            "information_schema.COLUMNS",
            column,
            1,
            is_in("TABLE_SCHEMA"),
            hidden=_MOMENT if version >= _DICTIONARY else "0",
        ),
        _grouped(
            "indexes",
            "information_schema.STATISTICS",
            index,
            2,
            is_in("TABLE_SCHEMA"),
            hidden="INDEX_TYPE = 'FULLTEXT'",  # WITH PARSER
        ),
        _grouped(
            "foreign keys",
            _FOREIGN_KEYS,
            _FOREIGN_KEY,
            2,
            f"k.REFERENCED_TABLE_NAME IS NOT NULL AND {is_in('k.TABLE_SCHEMA')}",
            alias="k.",
        ),
        _grouped(
            "partitions",
            "information_schema.PARTITIONS",
            _PARTITION,
            4,
            f"PARTITION_NAME IS NOT NULL AND {is_in('TABLE_SCHEMA')}",
            # ALGORITHM of KEY
            hidden="CONCAT_WS(' ', PARTITION_METHOD, SUBPARTITION_METHOD) LIKE '%KEY%'",
        ),
    ]
    if version >= _CHECKS:
        queries.append(
            _grouped(
                "checks",
                _CHECK_TABLES,
                ("t.CONSTRAINT_NAME", "c.CHECK_CLAUSE", "t.ENFORCED"),
                1,
                f"t.CONSTRAINT_TYPE = 'CHECK' AND {is_in('t.TABLE_SCHEMA')}",
                alias="t.",
            )
        )
    return queries


def show_create(key: ObjectKey) -> str:
    """Return the statement that shows one definition."""
    if key.kind is ObjectKind.SCHEMA:
        return f"SHOW CREATE DATABASE {quote_identifier(key.schema)}"
    if key.kind is ObjectKind.TABLE:
        return show_create_table(key.schema, key.name)
    named = f"{quote_identifier(key.schema)}.{quote_identifier(key.name)}"
    return f"SHOW CREATE {key.kind.value.upper()} {named}"


def triggers_beside(key: ObjectKey) -> str:
    """Return the statement that reads the triggers of one trigger's table, timing and event.

    SHOW CREATE TRIGGER shows no order. Several triggers of one event need 5.7.2 or later.
    """
    same = " AND ".join(
        f"o.{each} = t.{each}"
        for each in (
            *("EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE"),
            *("EVENT_MANIPULATION", "ACTION_TIMING"),
        )
    )
    return (
        "SELECT o.TRIGGER_NAME AS name, o.ACTION_ORDER AS place"  # noqa: S608 - quoted
        f" FROM information_schema.TRIGGERS t JOIN information_schema.TRIGGERS o ON {same}"
        f" WHERE t.TRIGGER_SCHEMA = {quote_string(key.schema)}"
        f" AND t.TRIGGER_NAME = {quote_string(key.name)}"
    )


def orders_triggers(version: ServerVersion) -> bool:
    """Return whether a table may have several triggers of one event."""
    return version >= _GENERATED


_SCHEMA: Final = ("DEFAULT_CHARACTER_SET_NAME", "DEFAULT_COLLATION_NAME")


def _chosen(schemas: Sequence[str]) -> Callable[[str], str]:
    if schemas:
        listed = ", ".join(map(quote_string, schemas))
        return lambda column: f"{column} IN ({listed})"
    listed = ", ".join(map(quote_string, SYSTEM_SCHEMAS))
    return lambda column: f"{column} NOT IN ({listed})"


def _text(columns: Iterable[str]) -> str:
    """Return an expression with the values of columns as one text; NULL is not a text."""
    return f"CONCAT_WS('|', {', '.join(f'QUOTE({each})' for each in columns)})"


def _single(  # noqa: PLR0917 - one line for each statement
    kind: str,
    table: str,
    schema: str,
    name: str,
    columns: Iterable[str],
    where: str,
    *,
    hidden: str = "0",
) -> DigestQuery:
    shown = kind if "(" in kind else quote_string(kind)
    text = _text(columns)
    return DigestQuery(
        kind,
        f"SELECT {schema} AS schema_name, {name} AS name, {shown} AS kind, 1 AS parts,"  # noqa: S608
        f" LENGTH({text}) AS bytes, SHA2({text}, 256) AS digest, {hidden} AS is_hidden"
        f" FROM information_schema.{table} WHERE {where}",
    )


def _grouped(
    part: str,
    tables: str,
    columns: Sequence[str],
    order: int,
    where: str,
    *,
    alias: str = "",
    hidden: str = "0",
) -> DigestQuery:
    """Return a digest of several rows for each table; the first `order` columns order them."""
    text = _text(columns)
    ordered = ", ".join(columns[:order])
    return DigestQuery(
        part,
        f"SELECT {alias}TABLE_SCHEMA AS schema_name, {alias}TABLE_NAME AS name, 'table' AS kind,"  # noqa: S608
        f" COUNT(*) AS parts, SUM(LENGTH({text})) AS bytes,"
        f" SHA2(GROUP_CONCAT({text} ORDER BY {ordered}), 256) AS digest,"
        f" MAX({hidden}) AS is_hidden"
        f" FROM {tables} WHERE {where} GROUP BY {alias}TABLE_SCHEMA, {alias}TABLE_NAME",
        is_grouped=True,
    )


def _parameters(where: str) -> DigestQuery:
    text = _text(_PARAMETER)
    return DigestQuery(
        "parameters",
        "SELECT SPECIFIC_SCHEMA AS schema_name, SPECIFIC_NAME AS name,"  # noqa: S608
        " LOWER(ROUTINE_TYPE) AS kind, COUNT(*) AS parts,"
        f" SUM(LENGTH({text})) AS bytes,"
        f" SHA2(GROUP_CONCAT({text} ORDER BY ORDINAL_POSITION), 256) AS digest, 0 AS is_hidden"
        f" FROM information_schema.PARAMETERS WHERE {where}"
        " GROUP BY SPECIFIC_SCHEMA, SPECIFIC_NAME, ROUTINE_TYPE",
        is_grouped=True,
    )
