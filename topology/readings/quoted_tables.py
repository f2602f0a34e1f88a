"""Which tables an error text of an applier quotes, with their schemas. Pure.

A name without a schema is about the default database that the same text has. A text that quotes no
table yields none. Texts seen on 9.7.4 and 5.6.24.
"""

import re
from typing import Final

from topology.readings.replication_filters import Table

_DEFAULT_DATABASE: Final = re.compile(r"Default database: '([^']*)'")
# Each group is a table as `schema.table` or `table`, or several of them, separated by commas.
_TABLES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"Could not execute \w+ event on table (\S+?);",
        r"Table '([^']+)' (?:doesn't exist|already exists)",
        r"Unknown table '([^']+)'",
        r"of table '([^']+)' cannot be converted",
        r"Unknown column '[^']+' in '([^' ]+\.[^' ]+)'",
    )
)
# … fails (`d`.`child`, CONSTRAINT `x` FOREIGN KEY (`p`) REFERENCES `parent` (`id`))
_FOREIGN_KEY: Final = re.compile(
    r"constraint fails \(`([^`]+)`\.`([^`]+)`, CONSTRAINT .*? REFERENCES (?:`([^`]+)`\.)?`([^`]+)`"
)


def quoted_tables(text: str) -> tuple[Table, ...]:
    """Return the tables that an error text is about."""
    default = _DEFAULT_DATABASE.search(text)
    schema = default[1] if default is not None else ""
    found = [
        _named(name, schema)
        for pattern in _TABLES
        for match in pattern.finditer(text)
        for name in match[1].split(",")
    ]
    return tuple(dict.fromkeys(table for table in found if table[0]))


def tables_of_foreign_key(text: str) -> tuple[Table, ...]:
    """Return the parent and the child table of the foreign key that an error text quotes."""
    found = _FOREIGN_KEY.search(text)
    if found is None:
        return ()
    return (found[3] or found[1], found[4]), (found[1], found[2])


def _named(name: str, schema: str) -> Table:
    before, dot, after = name.strip().partition(".")
    return (before, after) if dot else (schema, before)
