"""Converts a column as written to the resulting column: type defaults, character set, NULL.

Sources: Create_field::init and prepare_blob_field, sql/create_field.cc and sql/sql_table.cc. Each
rule was verified on 5.6.24 and 9.7.4.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from types import MappingProxyType

from binlog.schema.changes import ColumnSpec, TypeSpec
from binlog.schema.charset_names import BINARY, CHARACTER_BYTES_MAX
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import Column


class Timestamps(Enum):
    """Whether a TIMESTAMP without NULL or NOT NULL is nullable: explicit_defaults_for_timestamp."""

    NULLABLE = "nullable"  # ON, the default since 8.0
    NOT_NULL = "not null"  # OFF, the default before
    UNKNOWN = "unknown"


_TEXT_BYTES_MAX = (
    ("tiny", (1 << 8) - 1),
    ("", (1 << 16) - 1),
    ("medium", (1 << 24) - 1),
    ("long", (1 << 32) - 1),
)
_VARIABLE_BYTES_MAX = (1 << 16) - 1
# decimal(10,0), bit(1), char(1), binary(1), vector(2048).
_NUMBERS_DEFAULT: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"decimal": (10, 0), "bit": (1,), "char": (1,), "binary": (1,), "vector": (2048,)}
)
_BINARY_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "char": "binary",
        "varchar": "varbinary",
        "tinytext": "tinyblob",
        "text": "blob",
        "mediumtext": "mediumblob",
        "longtext": "longblob",
    }
)
_CHARACTER_TYPES = frozenset({*_BINARY_FORMS, "enum", "set"})
_TEMPORAL = frozenset({"time", "datetime", "timestamp"})
_FLOAT_PRECISION_MAX = 24


def settle(spec: ColumnSpec, table_charset: str | None, timestamps: Timestamps) -> Column:
    """Make the column. Raises CannotFollow if it needs a default that is unknown."""
    kind, charset = _with_charset(spec, table_charset)
    return Column(
        name=spec.name,
        type_text=_type_text(kind, charset),
        is_unsigned=kind.is_unsigned,
        charset=charset,
        members=kind.members,
        is_nullable=_is_nullable(spec, timestamps),
        is_generated=spec.is_generated,
        is_invisible=spec.is_invisible,
    )


def converted(column: Column, charset: str) -> Column:
    """Return a column after CONVERT TO CHARACTER SET. Raises CannotFollow.

    A text column keeps its length in characters. If necessary, its type becomes larger, never
    smaller (docs, "Changing the Character Set"). The server garbles members of ENUM and SET that
    are not ASCII (verified on 5.6.24 and 9.7.4), so these raise CannotFollow.
    """
    if column.charset is None or column.charset == charset:
        return column
    if BINARY in (charset, column.charset):
        raise CannotFollow(why=f"{column.name} is converted from or to binary")
    if not all(member.isascii() for member in column.members):
        raise CannotFollow(why=f"{column.name} is converted and has members that are not ASCII")
    text = column.type_text
    sizes = {f"{prefix}text": bytes_max for prefix, bytes_max in _TEXT_BYTES_MAX}
    if column.base_type in sizes:
        before, after = _bytes_max(column.charset), _bytes_max(charset)
        needed = min(sizes[text] // before * after, sizes["longtext"])
        text = _text_for(max(needed, sizes[text]), "text")
    elif column.base_type == "varchar":
        length = int(text.partition("(")[2].rstrip(")"))
        text = _variable(TypeSpec("varchar", (length,)), charset)
    return replace(column, type_text=text, charset=charset)


def _bytes_max(charset: str) -> int:
    if charset not in CHARACTER_BYTES_MAX:
        raise CannotFollow(why=f"an unknown character set: {charset}")
    return CHARACTER_BYTES_MAX[charset]


def _with_charset(spec: ColumnSpec, table_charset: str | None) -> tuple[TypeSpec, str | None]:
    kind = spec.type
    if kind.base not in _CHARACTER_TYPES:
        return kind, None
    charset = kind.charset or table_charset
    if charset is None:
        raise CannotFollow(
            why=f"{spec.name} takes its character set from the database, whose default is not known"
        )
    _bytes_max(charset)
    if charset == BINARY and kind.base in _BINARY_FORMS:
        return replace(kind, base=_BINARY_FORMS[kind.base]), None
    return kind, charset


def _is_nullable(spec: ColumnSpec, timestamps: Timestamps) -> bool:
    if spec.is_nullable is not None:
        return spec.is_nullable
    if spec.type.base != "timestamp" or spec.is_generated is not None:
        return True
    if timestamps is Timestamps.UNKNOWN:
        raise CannotFollow(
            why=f"{spec.name} is a TIMESTAMP without NULL or NOT NULL, and the setting"
            " explicit_defaults_for_timestamp it was created under is not known"
        )
    return timestamps is Timestamps.NULLABLE


def _type_text(kind: TypeSpec, charset: str | None) -> str:
    form = _FORMS.get(kind.base, _plain)
    return form(kind, charset) + (" unsigned" if kind.is_unsigned else "")


def _plain(kind: TypeSpec, _charset: str | None) -> str:
    return kind.base


def _numbered(kind: TypeSpec, _charset: str | None) -> str:
    numbers = kind.numbers or _NUMBERS_DEFAULT.get(kind.base, ())
    return f"{kind.base}({','.join(map(str, numbers))})" if numbers else kind.base


def _decimal(kind: TypeSpec, _charset: str | None) -> str:
    precision, scale = (*kind.numbers, *_NUMBERS_DEFAULT["decimal"][len(kind.numbers) :])
    return f"decimal({precision or 10},{scale})"


def _float(kind: TypeSpec, charset: str | None) -> str:
    if len(kind.numbers) == 1:
        is_double = kind.base == "double" or kind.numbers[0] > _FLOAT_PRECISION_MAX
        return "double" if is_double else "float"
    return _numbered(kind, charset)


def _variable(kind: TypeSpec, charset: str | None) -> str:
    """Write VARCHAR or VARBINARY; a length that is too large becomes TEXT or BLOB.

    The server does this outside strict mode.
    """
    if not kind.numbers:
        raise CannotFollow(why=f"a {kind.base} without a length")
    length = kind.numbers[0] * (_bytes_max(charset) if charset else 1)
    if length > _VARIABLE_BYTES_MAX:
        return _text_for(length, "text" if charset else "blob")
    return f"{kind.base}({kind.numbers[0]})"


def _text(kind: TypeSpec, charset: str | None) -> str:
    """Write TEXT(n) or BLOB(n): the smallest type for n characters."""
    if not kind.numbers or not kind.numbers[0]:
        return kind.base
    length = kind.numbers[0] * (_bytes_max(charset) if charset else 1)
    return _text_for(length, kind.base)


def _text_for(length: int, family: str) -> str:
    for prefix, bytes_max in _TEXT_BYTES_MAX:
        if length <= bytes_max:
            return prefix + family
    raise CannotFollow(why=f"a {family} of {length} bytes")


def _temporal(kind: TypeSpec, _charset: str | None) -> str:
    digits = kind.numbers[0] if kind.numbers else 0
    return f"{kind.base}({digits})" if digits else kind.base


def _listed(kind: TypeSpec, _charset: str | None) -> str:
    quoted = ("'" + each.replace("\\", "\\\\").replace("'", "''") + "'" for each in kind.members)
    return f"{kind.base}({','.join(quoted)})"


_FORMS: Mapping[str, Callable[[TypeSpec, str | None], str]] = MappingProxyType(
    {
        "decimal": _decimal,
        **dict.fromkeys(("float", "double"), _float),
        **dict.fromkeys(("varchar", "varbinary"), _variable),
        **dict.fromkeys(("text", "blob"), _text),
        **dict.fromkeys(("enum", "set"), _listed),
        **dict.fromkeys(_TEMPORAL, _temporal),
        **dict.fromkeys(("bit", "char", "binary", "vector"), _numbered),
    }
)
