"""Queries of a script about a table before it writes rows: conditions for guards.

A server shows an account only what it may see. Without the TRIGGER privilege a table seems to have
no triggers, but they still fire (Reference Manual, "The INFORMATION_SCHEMA TRIGGERS Table").
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from binlog.quoting import quote_identifier, quote_string
from repair.sql.guard import Guard

_HOST: Final = "SUBSTRING_INDEX(CURRENT_USER(), '@', -1)"
_USER: Final = f"LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH({_HOST}) - 1)"
# The account of the session in the format of the privilege tables: 'user'@'host'.
_THIS_ACCOUNT: Final = f"CONCAT('''', {_USER}, '''@''', {_HOST}, '''')"


def none_in(view: str, condition: str) -> str:
    """Return the condition that a view of the information schema has no such row."""
    return f"NOT {_some_in(view, condition)}"


def has_no_triggers(schema: str, table: str) -> str:
    """Return the condition that no trigger fires on writes to this table; see `sees_triggers`."""
    return none_in(
        "triggers",
        f"event_object_schema = {quote_string(schema)}"
        f" AND event_object_table = {quote_string(table)}",
    )


def is_transactional(schema: str, table: str) -> str:
    """Return the condition that a transaction's changes of this table can be rolled back."""
    return _some_in(
        "tables INNER JOIN information_schema.engines USING (engine)",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        " AND transactions = 'YES'",
    )


def rolls_back_if_there(schema: str, table: str) -> str:
    """Return the condition that a table, if it exists, can roll back: its rows share one GTID."""
    return none_in(
        "tables LEFT JOIN information_schema.engines USING (engine)",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        " AND IFNULL(transactions, 'NO') <> 'YES'",
    )


def carries_nothing(schema: str, table: str, rule: str) -> str:
    """Return the condition that no foreign key changes other tables with a row of this table.

    `rule` is "delete_rule" or "update_rule".
    """
    return none_in(
        "referential_constraints",
        f"unique_constraint_schema = {quote_string(schema)}"
        f" AND referenced_table_name = {quote_string(table)}"
        f" AND {rule} IN ('CASCADE', 'SET NULL', 'SET DEFAULT')",
    )


def sees_triggers(schema: str, table: str) -> str:
    """Return the condition that this account can see the triggers of a table.

    These views do not show privileges of a role. In that case the condition is false, and the
    script writes nothing.
    """
    return _is_granted("TRIGGER", schema, table)


def is_shown(schema: str, table: str) -> str:
    """Return the condition that a table exists, and that this account may see it."""
    return _some_in(
        "tables", f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
    )


def would_be_shown(schema: str, table: str) -> str:
    """Return the condition that this account sees the table, or would see it if it existed."""
    return f"{is_shown(schema, table)} OR {_is_granted('SELECT', schema, table)}"


def met_if_there(schema: str, table: str, condition: str) -> tuple[str, ...]:
    """Return statements that set @met to a condition on a table's rows; FALSE without the table.

    Only a statement that is prepared on demand may refer to a table that does not exist (1146).
    """
    asked = quote_string(f"SET @met = {condition}")
    return (
        f"SET @tried = IF({is_shown(schema, table)}, {asked}, 'SET @met = FALSE');",
        "PREPARE tried FROM @tried;",
        "EXECUTE tried;",
    )


def _is_granted(privilege: str, schema: str, table: str) -> str:
    to_this = f"grantee = {_THIS_ACCOUNT} AND privilege_type = {quote_string(privilege)}"
    of_schema = f"{quote_string(schema)} LIKE table_schema"
    of_table = f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
    granted = (
        _some_in("user_privileges", to_this),
        _some_in("schema_privileges", f"{to_this} AND {of_schema}"),
        _some_in("table_privileges", f"{to_this} AND {of_table}"),
    )
    return f"({' OR '.join(granted)})"


def may_write(schema: str, table: str, *, server: str = "") -> Iterator[Guard]:
    """Yield the guards that this account may read and write the rows of a table.

    The script prepares a statement of each kind and never executes it. PREPARE checks the
    privileges of the account, of its roles, and of columns (1142, seen on 5.6.24 and 9.7.4). A
    table that does not exist, or is not visible, passes: the script may create it, and
    `sees_triggers` is checked first.
    """
    of_table = f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
    name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
    there = f"FROM information_schema.tables WHERE {of_table}"
    # Any column that may be set. UPDATE must list one, and a script does not always know the
    # columns.
    settable = (
        f"FROM information_schema.columns WHERE {of_table}"
        " AND extra NOT REGEXP '(VIRTUAL|STORED) GENERATED|INVISIBLE'"
    )
    update = quote_string(f"UPDATE {name} SET `")  # noqa: S608 - quoted
    statements = {
        "SELECT": (quote_string(f"SELECT 1 FROM {name} LIMIT 0"), there),  # noqa: S608 - quoted
        "INSERT": (quote_string(f"INSERT INTO {name} () VALUES ()"), there),  # noqa: S608 - quoted
        "UPDATE": (
            f"CONCAT({update}, REPLACE(column_name, '`', '``'), '` = NULL WHERE FALSE')",
            settable,
        ),
        "DELETE": (quote_string(f"DELETE FROM {name} WHERE FALSE"), there),  # noqa: S608 - quoted
    }
    who = f"{server}: this account" if server else "this account"
    for privilege, (statement, found) in statements.items():
        yield Guard(
            "@@SESSION.error_count = 0",
            f"{who} needs {privilege} on {schema}.{table}; grant it, then run this again; nothing"
            " was changed",
            tries=(
                f"SET @tried = IFNULL((SELECT {statement} {found} LIMIT 1), 'DO 0');",
                "PREPARE tried FROM @tried;",
            ),
        )


def has_members(schema: str, table: str, column: str, column_type: str) -> str:
    """Return the condition that an ENUM or SET column begins with these members, in this order.

    `column_type` is as information_schema shows it, without the closing parenthesis. Members that
    were appended change no number. A table or column that does not exist passes.
    """
    length = len(column_type)
    same = (
        f"CAST(LEFT(column_type, {length}) AS BINARY) = CAST({quote_string(column_type)} AS BINARY)"
        f" AND SUBSTRING(column_type, {length + 1}, 1) IN (',', ')')"
    )
    return none_in(
        "columns",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        f" AND column_name = {quote_string(column)} AND NOT ({same})",
    )


def has_columns(schema: str, table: str, columns: Sequence[str]) -> str:
    """Return the condition that a table has exactly these columns in order, or does not exist."""
    listed = ", ".join(
        f"({at}, LOWER({quote_string(name)}))" for at, name in enumerate(columns, start=1)
    )
    count = len(columns)
    return (
        f"(SELECT COUNT(*) IN (0, {count})"  # noqa: S608 - quoted
        f" AND IFNULL(SUM((ordinal_position, LOWER(column_name)) IN ({listed})), {count}) = {count}"
        f" FROM information_schema.columns WHERE table_schema = {quote_string(schema)}"
        f" AND table_name = {quote_string(table)})"
    )


def has_types(schema: str, table: str, types: Sequence[tuple[str, str]]) -> str:
    """Return the condition that columns meet their own conditions, all on the same view.

    A table or column that does not exist passes.
    """
    unlike = " OR ".join(
        f"LOWER(column_name) = LOWER({quote_string(name)}) AND NOT ({condition})"
        for name, condition in types
    )
    return none_in(
        "columns",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        f" AND ({unlike})",
    )


def leaves_as_they_are(schema: str, table: str, columns: Iterable[str]) -> str:
    """Return the condition that an UPDATE that does not set these columns does not change them."""
    names = ", ".join(f"LOWER({quote_string(name)})" for name in columns)
    return none_in(
        "columns",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        f" AND LOWER(column_name) IN ({names}) AND LOWER(extra) LIKE '%on update%'",
    )


def _some_in(view: str, condition: str) -> str:
    # The views are fixed here, and every external value in a condition has passed quote_string.
    return f"EXISTS (SELECT 1 FROM information_schema.{view} WHERE {condition})"  # noqa: S608
