"""What a script asks a server about a table before it writes rows: conditions for guards.

A server shows an account only what it may see: without the privilege TRIGGER a table seems to have
no triggers, and they fire all the same (Reference Manual, "The INFORMATION_SCHEMA TRIGGERS Table").
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from repair.guard import Guard
from topology.quoting import quote_identifier, quote_string

_HOST: Final = "SUBSTRING_INDEX(CURRENT_USER(), '@', -1)"
_USER: Final = f"LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH({_HOST}) - 1)"
# This account as the tables of privileges write it: 'user'@'host'.
_THIS_ACCOUNT: Final = f"CONCAT('''', {_USER}, '''@''', {_HOST}, '''')"


def none_in(view: str, condition: str) -> str:
    """Write that a view of the information schema has no such row."""
    return f"NOT {_some_in(view, condition)}"


def has_no_triggers(schema: str, table: str) -> str:
    """Write that nothing fires when rows of this table are written; see `sees_triggers`."""
    return none_in(
        "triggers",
        f"event_object_schema = {quote_string(schema)}"
        f" AND event_object_table = {quote_string(table)}",
    )


def is_transactional(schema: str, table: str) -> str:
    """Write that what a transaction did to this table can be rolled back."""
    return _some_in(
        "tables INNER JOIN information_schema.engines USING (engine)",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        " AND transactions = 'YES'",
    )


def rolls_back_if_there(schema: str, table: str) -> str:
    """Write that a table, if it is there, can roll back: its rows can share one GTID."""
    return none_in(
        "tables LEFT JOIN information_schema.engines USING (engine)",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        " AND IFNULL(transactions, 'NO') <> 'YES'",
    )


def carries_nothing(schema: str, table: str, rule: str) -> str:
    """Write that no foreign key changes other tables with a row of this table.

    `rule` is "delete_rule" or "update_rule".
    """
    return none_in(
        "referential_constraints",
        f"unique_constraint_schema = {quote_string(schema)}"
        f" AND referenced_table_name = {quote_string(table)}"
        f" AND {rule} IN ('CASCADE', 'SET NULL', 'SET DEFAULT')",
    )


def sees_triggers(schema: str, table: str) -> str:
    """Write that this account would be shown the triggers of a table.

    What it has by a role is not in these views: then the answer is no, and nothing is written.
    """
    return _is_granted("TRIGGER", schema, table)


def is_shown(schema: str, table: str) -> str:
    """Write that a table is there, and this account may know that it is."""
    return _some_in(
        "tables", f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
    )


def would_be_shown(schema: str, table: str) -> str:
    """Write that this account sees a table, or would see it: where it does not, there is none."""
    return f"{is_shown(schema, table)} OR {_is_granted('SELECT', schema, table)}"


def met_if_there(schema: str, table: str, condition: str) -> tuple[str, ...]:
    """Write what sets @met to a condition on a table's rows; to FALSE where there is no table.

    Only a statement that is prepared when it is needed may name a table that is not there (1146).
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

    A statement of each kind is prepared and never executed: PREPARE checks the privileges of the
    account, of its roles, and of columns (1142, seen on 5.6.24 and 9.7.4). A table that is not
    there, or not shown, passes: the script may create it, and `sees_triggers` comes first.
    """
    of_table = f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
    name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
    there = f"FROM information_schema.tables WHERE {of_table}"
    # Any column that may be set. It has to be named, and a script does not always know the columns.
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
    """Write that an ENUM or SET column begins with these members, in this order.

    `column_type` is as information_schema shows it, without the closing parenthesis: members that
    were added behind them change no number. A table or column that is not there passes.
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
    """Write that a table has these columns in this order, and no other; or that it is not there."""
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
    """Write that columns are as their conditions demand, which are about the same view.

    A table or column that is not there passes.
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
    """Write that an UPDATE which does not set these columns does not change them."""
    names = ", ".join(f"LOWER({quote_string(name)})" for name in columns)
    return none_in(
        "columns",
        f"table_schema = {quote_string(schema)} AND table_name = {quote_string(table)}"
        f" AND LOWER(column_name) IN ({names}) AND LOWER(extra) LIKE '%on update%'",
    )


def _some_in(view: str, condition: str) -> str:
    # Views are named here, and whatever a condition holds of others has gone through quote_string.
    return f"EXISTS (SELECT 1 FROM information_schema.{view} WHERE {condition})"  # noqa: S608
