"""The one place where a value becomes a piece of SQL text.

1. Code that writes a statement, here or in `repair`, quotes with this module; there is no second
   way.
2. The result is right for every `sql_mode` the server may be in: a string is written in hexadecimal
   when it holds a character whose escaping depends on NO_BACKSLASH_ESCAPES.
3. This module does not know what the statement does.
"""


def quote_string(value: str) -> str:
    """Return `value` as an SQL string literal.

    A backslash means itself or an escape depending on NO_BACKSLASH_ESCAPES, so a text with one, or
    with a control character, is written as a hexadecimal literal with its character set, which
    means the same in every mode.
    """
    if "\\" in value or not value.isprintable():
        return f"_utf8mb4 0x{value.encode().hex()}" if value else "''"
    return "'" + value.replace("'", "''") + "'"


def quote_channel(value: str) -> str:
    """Return a channel's name for FOR CHANNEL, in a session with NO_BACKSLASH_ESCAPES alone.

    The clause takes a string literal and no expression: the hexadecimal form of `quote_string` is a
    syntax error there (1064, seen on 9.7.4), and so a backslash has to mean itself.
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
    """Return `value` as an SQL number; refuses what is not exactly an integer."""
    if type(value) is not int:
        raise TypeError(f"not an integer: {value!r}")
    return str(value)
