"""Reads the definition of a column: its type and attributes (grammar: field_def, sql/sql_yacc.yy).

The tables here list synonyms. An attribute that is not listed raises CannotFollow, because it may
affect the content of row events.
"""

from binlog.schema.changes import ColumnSpec, TypeSpec
from binlog.schema.charset_names import BINARY, charset_name, charset_of_collation
from binlog.schema.reader import WordReader
from binlog.schema.sql_words import WordKind
from binlog.schema.table_definitions import Generated

_INTEGERS = {
    **dict.fromkeys(("tinyint", "int1"), "tinyint"),
    **dict.fromkeys(("bool", "boolean"), "tinyint"),
    **dict.fromkeys(("smallint", "int2"), "smallint"),
    **dict.fromkeys(("mediumint", "int3", "middleint"), "mediumint"),
    **dict.fromkeys(("int", "integer", "int4"), "int"),
    **dict.fromkeys(("bigint", "int8"), "bigint"),
}
_DECIMALS = dict.fromkeys(("decimal", "dec", "numeric", "fixed"), "decimal")
_FLOATS = {"float": "float", "float4": "float", "double": "double", "float8": "double"}
# `real` is double, or float in sql_mode REAL_AS_FLOAT.
_REAL = "real"
_TEXTS = {each: each for each in ("tinytext", "text", "mediumtext", "longtext", "char", "varchar")}
_TEXTS |= {"character": "char", "varcharacter": "varchar", "long": "mediumtext"}
_NATIONAL = {"nchar": "char", "nvarchar": "varchar"}
_VARYING = {"char": "varchar"}
_OTHERS = {
    each: each
    for each in (
        *("date", "time", "datetime", "timestamp", "year", "bit", "json", "vector"),
        *("tinyblob", "blob", "mediumblob", "longblob", "binary", "varbinary"),
        *("geometry", "point", "linestring", "polygon"),
        *("multipoint", "multilinestring", "multipolygon", "geomcollection"),
    )
} | {"geometrycollection": "geomcollection"}
_LISTS = frozenset({"enum", "set"})
# The national character set (docs, "The National Character Set").
_NATIONAL_CHARSET = "utf8mb3"


def read_column(reader: WordReader, *, name: str, real_as_float: bool) -> ColumnSpec:
    """Read a column's definition after its name. Raises CannotFollow."""
    if reader.accept("serial"):
        serial = TypeSpec("bigint", is_unsigned=True)
        return _attributes(reader, name, serial, is_serial=True)
    return _attributes(reader, name, _read_type(reader, real_as_float=real_as_float))


def read_charset(reader: WordReader) -> str | None:
    """Read `CHARACTER SET x` in any spelling, without DEFAULT, if it comes next."""
    if not (
        reader.accept("character", "set")
        or reader.accept("char", "set")
        or reader.accept("charset")
    ):
        return None
    reader.accept("=")
    return charset_name(_charset_word(reader))


def read_collation(reader: WordReader) -> str | None:
    """Read `COLLATE x` if it comes next; return the character set of the collation."""
    if not reader.accept("collate"):
        return None
    reader.accept("=")
    return charset_of_collation(_charset_word(reader))


def _charset_word(reader: WordReader) -> str:
    if reader.comes("default"):
        raise reader.fail("expected the name of a character set")
    return reader.string() if reader.next.kind is WordKind.STRING else reader.name()


def _read_type(reader: WordReader, *, real_as_float: bool) -> TypeSpec:
    if reader.next.kind is not WordKind.BARE:
        raise reader.fail("expected a type")
    if reader.accept("national"):
        word = reader.take().text.lower()
        base = {"character": "char"}.get(word, word)
        if base not in ("char", "varchar"):
            raise reader.fail("expected CHAR or VARCHAR after NATIONAL")
        return _text_type(reader, base, charset=_NATIONAL_CHARSET)
    word = reader.take().text.lower()
    if word in _INTEGERS:
        _numbers(reader)
        return TypeSpec(_INTEGERS[word], is_unsigned=_signs(reader))
    if word in _DECIMALS:
        return TypeSpec("decimal", _numbers(reader), is_unsigned=_signs(reader))
    if word in _FLOATS or word == _REAL:
        if word == "double":
            reader.accept("precision")
        base = ("float" if real_as_float else "double") if word == _REAL else _FLOATS[word]
        return TypeSpec(base, _numbers(reader), is_unsigned=_signs(reader))
    if word in _NATIONAL:
        return _text_type(reader, _NATIONAL[word], charset=_NATIONAL_CHARSET)
    if word == "long" and reader.accept("varbinary"):
        return TypeSpec("mediumblob")
    if word in _TEXTS:
        if word == "long":
            _ = reader.accept("varchar") or reader.accept_any("char", "character")
            reader.accept("varying")
        return _text_type(reader, _TEXTS[word], charset=None)
    if word in _LISTS:
        members = _members(reader)
        return TypeSpec(word, members=members, charset=_text_charset(reader))
    if word in _OTHERS:
        return TypeSpec(_OTHERS[word], _numbers(reader))
    raise reader.fail(f"expected a type, not {word}")


def _text_type(reader: WordReader, base: str, *, charset: str | None) -> TypeSpec:
    if base in _VARYING and (
        reader.accept("varying") or (charset is not None and reader.accept("varchar"))
    ):
        base = _VARYING[base]
    numbers = _numbers(reader)
    said = _text_charset(reader)
    return TypeSpec(base, numbers, charset=charset or said)


def _numbers(reader: WordReader) -> tuple[int, ...]:
    if not reader.comes("("):
        return ()
    with reader.parentheses():
        return reader.listed(reader.number)


def _members(reader: WordReader) -> tuple[str, ...]:
    """Read the members of an ENUM or SET; MySQL removes their trailing spaces."""
    with reader.parentheses():
        return tuple(member.rstrip(" ") for member in reader.listed(reader.string))


def _signs(reader: WordReader) -> bool:
    """Read UNSIGNED, SIGNED, ZEROFILL; return whether the column is unsigned (also by ZEROFILL)."""
    said = set()
    while word := reader.accept_any("unsigned", "signed", "zerofill"):
        said.add(word)
    return bool(said & {"unsigned", "zerofill"})


def _text_charset(reader: WordReader) -> str | None:
    """Read opt_charset_with_opt_binary. BINARY selects a collation, not a character set."""
    charset: str | None = None
    while True:
        if found := read_charset(reader):
            charset = found
        elif reader.accept("ascii"):
            charset = "latin1"
        elif reader.accept("unicode"):
            charset = "ucs2"
        elif reader.accept("byte"):
            charset = BINARY
        elif not reader.accept("binary"):
            return charset


def _attributes(
    reader: WordReader, name: str, kind: TypeSpec, *, is_serial: bool = False
) -> ColumnSpec:
    """Read attributes up to a word that may follow a column."""
    nullable: bool | None = False if is_serial else None
    charset = kind.charset
    generated: Generated | None = None
    invisible = primary = reference = False
    unique = is_serial
    while not (reader.is_at_end or _ends_column(reader)):
        if reader.accept("not", "null") or reader.accept("auto_increment"):
            nullable = False
        elif reader.accept("null"):
            nullable = True
        elif reader.accept("serial", "default", "value"):
            nullable, unique = False, True
        elif reader.accept("primary", "key") or reader.accept("key"):
            primary = True
        elif reader.accept("unique"):
            reader.accept("key")
            unique = True
        elif word := reader.accept_any("visible", "invisible"):
            invisible = word == "invisible"
        elif reader.accept("generated", "always", "as") or reader.accept("as"):
            reader.skip_parentheses()
            generated = Generated.VIRTUAL
        elif generated and (word := reader.accept_any("virtual", "stored")):
            generated = Generated(word)
        elif collation := read_collation(reader):
            charset = charset or collation
        elif reader.accept("references"):
            _skip_reference(reader)
            reference = True
        else:
            _skip_attribute(reader)
    settled = TypeSpec(kind.base, kind.numbers, kind.members, kind.is_unsigned, charset)
    return ColumnSpec(name, settled, nullable, generated, invisible, primary, unique, reference)


def _ends_column(reader: WordReader) -> bool:
    return (
        reader.comes(",")
        or reader.comes(")")
        or any(reader.comes(word) for word in ("first", "after", "partition", "remove"))
    )


def _skip_attribute(reader: WordReader) -> None:
    """Skip an attribute that does not affect row events."""
    if reader.accept("default"):
        _skip_value(reader)
    elif reader.accept("on", "update"):
        reader.name()
        if reader.comes("("):
            reader.skip_parentheses()
    elif reader.accept("comment"):
        reader.string()
    elif reader.accept_any("column_format", "storage"):
        reader.name()
    elif reader.accept_any("engine_attribute", "secondary_engine_attribute"):
        reader.accept("=")
        reader.string()
    elif reader.accept("srid"):
        reader.number()
    elif reader.accept("not", "secondary"):
        return
    elif reader.accept("constraint"):
        if not reader.comes("check"):
            reader.name()
        _skip_check(reader)
    elif reader.comes("check"):
        _skip_check(reader)
    else:
        raise reader.fail("expected an attribute of a column")


def _skip_check(reader: WordReader) -> None:
    reader.expect("check")
    reader.skip_parentheses()
    _ = reader.accept("not", "enforced") or reader.accept("enforced")


def _skip_value(reader: WordReader) -> None:
    """Skip a DEFAULT value: (expression), signed number, text, NULL, now(6), _latin1'x'."""
    if reader.comes("("):
        reader.skip_parentheses()
        return
    reader.accept_any("-", "+")
    word = reader.take()
    if word.kind is WordKind.SYMBOL:
        raise reader.fail("expected a default value")
    if word.kind is WordKind.BARE and word.text.startswith("_"):
        reader.take()
    elif word.kind is WordKind.BARE and reader.comes("("):
        reader.skip_parentheses()
    while reader.next.kind is WordKind.STRING:  # 'a' 'b' is one text
        reader.take()


_ON = ("delete", "update")
_REFERENCE_ENDS = (("cascade",), ("restrict",), ("set", "null"), ("set", "default"))


def _skip_reference(reader: WordReader) -> None:
    reader.table_name()
    if reader.comes("("):
        reader.skip_parentheses()
    if reader.accept("match"):
        reader.name()
    while any(reader.comes("on", word) for word in _ON) and not reader.comes("on", "update", "now"):
        reader.take()
        reader.take()
        if not any(reader.accept(*end) for end in _REFERENCE_ENDS):
            reader.expect("no", "action")
