"""Reads the types that the text of a JSON document does not show, to compare documents by value.

1. The text of a number, a literal and most strings shows their type, so equal texts are equal
   values.
2. A date, a time or bytes are printed like a string ("base64:type15:AP8="). JSON_TYPE distinguishes
   them. It is queried for each member whose text may be one of these.
3. A document with too many of them is not compared, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pymysql.cursors import Cursor

from binlog.quoting import quote_identifier, quote_string
from repair.sql.row_literals import CannotRender

if TYPE_CHECKING:
    from pymysql.connections import Connection

MEMBERS_MAX: Final = 200
# How MySQL prints, in quotes, values that are not strings (Json_wrapper::to_string).
_NOT_A_STRING: Final = re.compile(
    r"base64:type\d+:.*|-?\d+:\d\d:\d\d(\.\d+)?|\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?",
    re.DOTALL,
)


def with_types(
    connection: Connection[Any], table: str, where: str, documents: dict[str, str]
) -> dict[str, str]:
    """Return documents of one row with the types that their texts do not show, by column.

    `table` is quoted. Raises CannotRender if there are too many.
    """
    found = dict(documents)
    for (name, path), type_ in unshown_types(connection, table, where, documents).items():
        found[name] += f", {path} is {type_}"
    return found


def unshown_types(
    connection: Connection[Any], table: str, where: str, documents: dict[str, str]
) -> dict[tuple[str, str], str]:
    """Return the JSON types that the texts of documents do not show, by column and path.

    `table` is quoted. Raises CannotRender if there are too many.
    """
    asked = [(name, path) for name, text in documents.items() for path in unshown_paths(text)]
    if not asked:
        return {}
    if len(asked) > MEMBERS_MAX:
        raise CannotRender(
            f"more than {MEMBERS_MAX} members of its JSON documents look like dates, times or"
            " bytes: they were not compared"
        )
    types = ", ".join(
        f"JSON_TYPE(JSON_EXTRACT({quote_identifier(name)}, {quote_string(path)}))"
        for name, path in asked
    )
    with connection.cursor(Cursor) as cursor:
        cursor.execute(f"SELECT {types} FROM {table} WHERE {where} LIMIT 1")  # noqa: S608 - quoted
        row = cursor.fetchone()
    return dict(zip(asked, row or (), strict=False))


def unshown_paths(text: str) -> list[str]:
    """Return the paths of members whose text may represent another type than a string."""
    return list(_paths(json.loads(text), "$"))


def _paths(value: object, path: str) -> Iterator[str]:
    match value:
        case str() if _NOT_A_STRING.fullmatch(value):
            yield path
        case dict():
            for key, member in value.items():
                yield from _paths(member, f"{path}.{json.dumps(key, ensure_ascii=False)}")
        case list():
            for at, member in enumerate(value):
                yield from _paths(member, f"{path}[{at}]")
