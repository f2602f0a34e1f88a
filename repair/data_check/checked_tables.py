"""The tables of a data check: their columns, and the key by which a table is read in parts.

Pure: rows of information_schema in, tables out.

1. A part of a table is a range of a unique key whose columns are NOT NULL. Only keys that every
   version orders alike are used: not ENUM, SET, FLOAT, DOUBLE or BIT, and no key on a part or an
   expression of a column. A table without such a key is one part.
2. A key of text is used only if both servers order it by the same collation: otherwise a range
   would have other rows on the other server.
3. A virtual column is not compared: no row stores it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Any, Final

# Schemas of the server itself: replication does not keep them alike.
SYSTEM_SCHEMAS: Final = (
    "information_schema", "mysql", "ndbinfo", "performance_schema", "sys",
)  # fmt: skip

# The form in which values are compared (part_queries.py): another one, another number.
_FORM: Final = 3

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TIMES: Final = frozenset({"date", "datetime", "time", "timestamp", "year"})
_TEXTS: Final = frozenset({"char", "varchar"})
_BYTES: Final = frozenset({"binary", "varbinary"})
_LARGE: Final = frozenset({"tinytext", "text", "mediumtext", "longtext", "json"})
_RAW: Final = frozenset(
    {
        "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "vector",
        "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
        "multipolygon", "geometrycollection", "geomcollection",
    }
)  # fmt: skip
_APPROXIMATE: Final = frozenset({"float", "double"})


class ValueKind(Enum):
    """How a column's value becomes text that is equal exactly if the values are."""

    PLAIN = "plain"  # the text that the server shows
    TEXT = "text"  # characters, as the bytes that are stored
    LARGE = "large"  # the same, of any length: its digest
    RAW = "raw"  # bytes
    APPROXIMATE = "approximate"  # the bits of a FLOAT or DOUBLE


class JsonForm(Enum):
    """What of a JSON document is compared beside its text."""

    TYPES = "types"  # the size of its binary form, and the types of its nodes
    SIZES = "sizes"  # the size of its binary form


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """A column that is compared."""

    name: str
    data_type: str  # as information_schema shows it, in lower case: "varchar"
    collation: str  # "" if it has none

    @property
    def kind(self) -> ValueKind:
        """Return how its values are compared."""
        if self.data_type in _LARGE:
            return ValueKind.LARGE
        if self.data_type in _RAW:
            return ValueKind.RAW
        if self.data_type in _APPROXIMATE:
            return ValueKind.APPROXIMATE
        return ValueKind.TEXT if self.collation else ValueKind.PLAIN

    @property
    def character_set(self) -> str:
        """Return the character set of its collation; "" if it has none."""
        return self.collation.partition("_")[0]

    @property
    def can_be_key(self) -> bool:
        """Return whether every version orders its values alike."""
        return self.data_type in _INTEGERS | _TIMES | _TEXTS | _BYTES | {"decimal"}


@dataclass(frozen=True, slots=True)
class ReadingKey:
    """A unique key of columns that are NOT NULL."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A table on one server."""

    schema: str
    name: str
    engine: str
    rows_about: int  # what the server estimates
    columns: tuple[CheckedColumn, ...]
    keys: tuple[ReadingKey, ...]  # PRIMARY first

    @property
    def place(self) -> tuple[str, str]:
        """Return schema and name."""
        return self.schema, self.name

    def column(self, name: str) -> CheckedColumn:
        """Return a column by name. Raises StopIteration if there is none."""
        return next(each for each in self.columns if each.name == name)


def tables_from(
    tables: Iterable[Mapping[str, Any]],
    columns: Iterable[Mapping[str, Any]],
    statistics: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], CheckedTable]:
    """Return tables by schema and name, from the rows of three views."""
    of_columns, of_keys = _by_table(columns), _by_table(statistics)
    found: dict[tuple[str, str], CheckedTable] = {}
    for row in tables:
        place = _place(row)
        shown = of_columns.get(place, [])
        found[place] = CheckedTable(
            *place,
            engine=str(row["engine"] or ""),
            rows_about=int(row["rows_about"] or 0),
            columns=tuple(_column(each) for each in shown if not _is_virtual(each)),
            keys=tuple(_keys(of_keys.get(place, []), shown)),
        )
    return found


def _by_table(
    rows: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return rows by table. The views may order `t` and `T` as one name, and mix their rows."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(_place(row), []).append(row)
    return found


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["schema_name"]), str(row["table_name"])


def _is_virtual(row: Mapping[str, Any]) -> bool:
    return "VIRTUAL GENERATED" in str(row["extra"]).upper()


def _column(row: Mapping[str, Any]) -> CheckedColumn:
    return CheckedColumn(
        str(row["column_name"]), str(row["data_type"]).lower(), str(row["collation"] or "")
    )


def _keys(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]]
) -> Iterable[ReadingKey]:
    """Yield the keys by which the table can be read in parts; PRIMARY first, then the shortest."""
    usable = {
        str(each["column_name"])
        for each in columns
        if each["is_nullable"] == "NO" and _column(each).can_be_key and not _is_virtual(each)
    }
    found: list[ReadingKey] = []
    for name, parts in groupby(rows, key=lambda row: str(row["index_name"])):
        members = [*parts]
        names = [str(each["column_name"] or "") for each in members]
        if all(name in usable for name in names) and not any(each["sub_part"] for each in members):
            found.append(ReadingKey(name, tuple(names)))
    return sorted(found, key=lambda key: (key.name != "PRIMARY", len(key.columns), key.name))


# -- the two servers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TablePair:
    """A table that both servers have, and how it is read."""

    left: CheckedTable
    right: CheckedTable
    key: ReadingKey | None  # None: in one part
    json_form: JsonForm = JsonForm.TYPES

    @property
    def note(self) -> str:
        """Return what is not compared of a value; "" if all is."""
        if self.json_form is JsonForm.TYPES or all(
            each.data_type != "json" for each in self.left.columns
        ):
            return ""
        return (
            "JSON: numbers of one text and size but other types (DECIMAL, DOUBLE; INTEGER, UNSIGNED"
            " INTEGER) count as equal: a server before 8.0.4 does not show the types"
        )


def definition_of(pair: TablePair) -> str:
    """Return a short text that differs if the columns of one of the two tables do.

    It differs as well if this version compares their values in another form than the record's.
    """
    columns = [
        (each.name, each.data_type, each.collation)
        for table in (pair.left, pair.right)
        for each in table.columns
    ]
    return hashlib.sha256(repr((_FORM, pair.json_form.value, columns)).encode()).hexdigest()[:16]


def common_form(left: JsonForm, right: JsonForm) -> JsonForm:
    """Return the form of JSON that both servers show."""
    return JsonForm.TYPES if (left, right) == (JsonForm.TYPES, JsonForm.TYPES) else JsonForm.SIZES


def common_key(left: CheckedTable, right: CheckedTable) -> ReadingKey | None:
    """Return the first key of the left table by which both servers order rows alike, or None."""
    for key in left.keys:
        alike = (
            left.column(name).collation == right.column(name).collation
            and left.column(name).data_type == right.column(name).data_type
            for name in key.columns
        )
        if any(each.columns == key.columns for each in right.keys) and all(alike):
            return key
    return None


# Their bytes are the same for the same characters.
_UNICODE: Final = frozenset({"utf8", "utf8mb3", "utf8mb4"})


def _characters(column: CheckedColumn) -> str:
    """Return a column's character set, the forms of UTF-8 as one."""
    return "utf8mb4" if column.character_set in _UNICODE else column.character_set


def unlike_columns(left: CheckedTable, right: CheckedTable) -> str:
    """Return why the columns of a table cannot be compared on the two servers; "" if they can."""
    here = {each.name: each for each in left.columns}
    there = {each.name: each for each in right.columns}
    if only := sorted(here.keys() ^ there.keys()):
        return f"only one of the servers has the column {', '.join(only)}"
    other = [
        f"{name} ({here[name].data_type} and {there[name].data_type})"
        for name in here
        if here[name].data_type != there[name].data_type
    ]
    if other:
        return f"columns have other types: {', '.join(other)}"
    unlike = [name for name in here if _characters(here[name]) != _characters(there[name])]
    # A conversion may make two characters one.
    return f"columns have other character sets: {', '.join(unlike)}" if unlike else ""
