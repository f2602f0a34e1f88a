"""Whether a column has the type that rows were logged with, as SQL on information_schema.columns.

The planner compares table definitions when it makes a plan (repair/adapters/tables_there.py). The
table may be altered before the script runs. A narrower column rounds, truncates or pads a value
without an error, and every later audit sees rows of another type as different content.
"""

from binlog.quoting import quote_string
from binlog.rows.images import (
    BIT,
    BLOB,
    ENUM,
    GEOMETRY,
    NEWDECIMAL,
    SET,
    STRING,
    VARCHAR,
    VECTOR,
    char_length,
)
from binlog.rows.tables import RowColumn
from binlog.schema.charset_names import charset_name
from binlog.schema.logged_types import (
    FRACTIONAL,
    GEOMETRIES,
    INTEGERS,
    LENGTH_BYTES,
    OF_OLD_TEMPORAL,
    PLAIN,
)

_BY_CODE = {code: name for name, code in {**INTEGERS, **PLAIN}.items()}
_FRACTIONAL_BY_CODE = {code: name for name, code in FRACTIONAL.items()}
_PREFIXES = {count: prefix for prefix, count in LENGTH_BYTES.items()}
# ENUM and SET: a separate query checks their members (table_questions.has_members).
_OTHERS = {ENUM: ("enum",), SET: ("set",), VECTOR: ("vector",), GEOMETRY: GEOMETRIES}


def has_type(column: RowColumn) -> str:
    """Return the condition that a column has a logged type; "" for an unknown type.

    Signs and character sets count if they are known; utf8 and utf8mb3 are two names for one.
    """
    of_type = _type_condition(column)
    if not of_type or not column.is_string or column.charset is None:
        return of_type
    charset = quote_string(charset_name(column.charset))
    here = "IFNULL(character_set_name, 'binary')"
    return f"{of_type} AND IF({here} = 'utf8', 'utf8mb3', {here}) = {charset}"


def _type_condition(column: RowColumn) -> str:
    code, metadata = column.type_code, column.metadata
    if code in INTEGERS.values() and column.is_unsigned is not None:
        sign = "LIKE" if column.is_unsigned else "NOT LIKE"
        return f"data_type = '{_BY_CODE[code]}' AND column_type {sign} '%unsigned%'"
    if code in _BY_CODE:
        return f"data_type = '{_BY_CODE[code]}'"
    if code in OF_OLD_TEMPORAL:
        return f"data_type = '{OF_OLD_TEMPORAL[code]}' AND IFNULL(datetime_precision, 0) = 0"
    if code in _FRACTIONAL_BY_CODE:
        return f"data_type = '{_FRACTIONAL_BY_CODE[code]}' AND datetime_precision = {metadata}"
    if code == NEWDECIMAL:
        size = f"numeric_precision = {metadata >> 8} AND numeric_scale = {metadata & 0xFF}"
        return f"data_type = 'decimal' AND {size}"
    if code == BIT:
        bits = (metadata >> 8) * 8 + (metadata & 0xFF)
        return f"data_type = 'bit' AND numeric_precision = {bits}"
    if code == VARCHAR:
        return f"data_type IN ('varchar', 'varbinary') AND character_octet_length = {metadata}"
    if code == STRING:
        length = char_length(metadata)
        return f"data_type IN ('char', 'binary') AND character_octet_length = {length}"
    if code == BLOB and metadata in _PREFIXES:
        prefix = _PREFIXES[metadata]
        return f"data_type IN ('{prefix}text', '{prefix}blob')"
    names = ", ".join(f"'{name}'" for name in _OTHERS.get(code, ()))
    return f"data_type IN ({names})" if names else ""
