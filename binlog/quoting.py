"""The only module that converts a value to SQL text.

1. Code that writes a statement, here or in `repair`, quotes only with this module.
2. The result is correct in every `sql_mode`: a string is written in hexadecimal if it contains a
   character whose escaping depends on NO_BACKSLASH_ESCAPES.
3. This module is independent of what the statement does.
"""


def quote_string(value: str) -> str:
    """Return `value` as an SQL string literal.

    Whether a backslash is literal or an escape depends on NO_BACKSLASH_ESCAPES. So a text with a
    backslash or a control character is written as a hexadecimal literal with its character set,
    which means the same in every mode.
    """
    if "\\" in value or not value.isprintable():
        return f"_utf8mb4 0x{value.encode().hex()}" if value else "''"
    return "'" + value.replace("'", "''") + "'"


def quote_channel(value: str) -> str:
    """Return a channel's name for FOR CHANNEL, in a session with NO_BACKSLASH_ESCAPES alone.

    The clause accepts a string literal and no expression. The hexadecimal form of `quote_string` is
    a syntax error there (1064, seen on 9.7.4), so a backslash must be literal.
    """
    return "'" + value.replace("'", "''") + "'"


def quote_identifier(name: str) -> str:
    """Return `name` as a quoted identifier.

    Raises:
        ValueError: the name is empty or holds a NUL, which no MySQL identifier may.
    """
    if not name or "\0" in name:
        raise ValueError(f"not an identifier: {name!r}")
    return "`" + name.replace("`", "``") + "`"


def quote_number(value: int) -> str:
    """Return `value` as an SQL number; reject any value that is not exactly an integer."""
    if type(value) is not int:
        raise TypeError(f"not an integer: {value!r}")
    return str(value)
