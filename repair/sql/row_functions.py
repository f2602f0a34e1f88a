"""Writes rows as SQL with one generated function for each layout of an image.

How it works
------------
What an image looks like is known but for its NULL bits: which values it has, where runs of fixed
size are, and behind which of them a text follows. A function is made for one value of the bits, so
that it decides nothing. For a BIGINT, a VARCHAR and a DATETIME(6) that are not NULL it is:

    def write(images, text, at, end, add, note):
        while at < end and images[at + 0] == 0:
            at += 1
            x0_0, x1_0, = unpack0(images, at)
            at += 9
            end1 = at + x1_0
            v1 = text[at:end1]
            note(v1)
            at = end1
            x2_0, x2_1, x2_2, = unpack6(images, at)
            at += 8
            v2 = (x2_1 << 16 | x2_2)
            if v2 >= 1000000: raise NotAlike
            add(f"{c0}{x0_0}{c1}{v1}{c2}{known2[x2_0]}{three[v2 // 1000]}{three[v2 % 1000]}{c3}")
        return at

1. The source consists of names and numbers that this file makes. Everything from a log (names of
   tables and columns, values) is a value in the namespace of the function, never source: c0, c1, …
   are the constants between the literals, such as "INSERT" and quotes.
2. `text` is the images as Latin-1: the same places, and ASCII is itself. A text goes to `note`. If
   all noted texts of an event are plain, they may be quoted as they are. If not, the event is
   written again by functions that quote each text, and so are the next _QUOTED_EVENTS events,
   because neighbours are alike.
3. A literal is written as by `value_texts.cell_writer`, whose functions write all that has no
   shorter way here, or raise NotAlike. A test compares both with the definition.
4. A function takes about as long to make as 100 rows to write. So the first rows of a table, and
   layouts above LAYOUTS_MAX, are left to the caller.

Bytes that do not fit give None, as in `split_images`, and so does a fraction above its digits
(IndexError).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from binlog.rows.charsets import UTF8, is_plain
from binlog.rows.images import NEWDECIMAL
from binlog.rows.split_images import cell_format
from binlog.rows.tables import INTEGERS, RowColumn
from binlog.rows.values import ReadValue
from repair.sql.value_texts import (
    DIGITS_TO_BYTES,
    WHOLE_BYTES,
    NotAlike,
    decimal_groups,
    is_moment,
    remembered,
    value_writer,
    whole_seconds,
)

LAYOUTS_MAX: Final = 64
ROWS_BEFORE_FUNCTIONS: Final = 100
_QUOTED_EVENTS: Final = 16
# Printable ASCII but the quote and the backslash. In some character sets a tilde is another one.
_PLAIN_UTF8 = bytes({*range(0x20, 0x7F)} - {*b"'\\"})
_PLAIN_ASCII = _PLAIN_UTF8.replace(b"~", b"")
_TWO_DIGITS = [f"{number:02d}" for number in range(100)]
_THREE_DIGITS = [f"{number:03d}" for number in range(1000)]
# The codes of `struct` for an unsigned number of so many bytes, and how its parts are joined.
_NUMBERS = {
    1: (("B",), "{0}"),
    2: (("H",), "{0}"),
    3: (("B", "H"), "({0} << 16 | {1})"),
    4: (("I",), "{0}"),
}

_Add: TypeAlias = "Callable[[str], object]"
# Writes the images from one place on that have its layout, and returns where another one begins.
_Write: TypeAlias = "Callable[[bytes, str, int, int, _Add, _Add], int]"


@dataclass(frozen=True, slots=True)
class RowPiece:
    """A part of a row's text: a constant and the literal of a column, or another constant for NULL.

    `place` is the place of the column among the logged ones.
    """

    place: int
    before: str
    if_null: str


@dataclass(frozen=True, slots=True)
class RowProgram:
    """How each row of a table and kind is written: its pieces, then `end`."""

    columns: tuple[RowColumn, ...]
    pieces: tuple[RowPiece, ...]
    end: str


class RowFunctions:
    """Writes the rows of events by a program. Keeps the functions that it makes."""

    def __init__(self, program: RowProgram, read_value: ReadValue) -> None:
        fields = [_field(column, read_value) for column in program.columns]
        self._plain = _Layouts(program, fields, quotes=False)
        self._quoting = _Layouts(program, fields, quotes=True)
        self._null_bytes = (len(fields) + 7) // 8
        texts = [column for column in program.columns if _is_text(column)]
        is_utf8 = all(column.charset in UTF8 for column in texts)
        self._plain_bytes = _PLAIN_UTF8 if is_utf8 else _PLAIN_ASCII
        self._quoted_left = 0

    def write(self, images: bytes) -> list[str] | None:
        """Return the text of each row in the order of the images; None if the caller must write it.

        Raises NotAlike.
        """
        if self._quoted_left:
            self._quoted_left -= 1
            return self._rows(images, self._quoting, [])
        noted: list[str] = []
        rows = self._rows(images, self._plain, noted)
        if rows is None or self._are_plain(noted):
            return rows
        self._quoted_left = _QUOTED_EVENTS
        return self._rows(images, self._quoting, noted)

    def _are_plain(self, texts: list[str]) -> bool:
        joined = "".join(texts)
        return joined.isascii() and not joined.encode().translate(None, self._plain_bytes)

    def _rows(self, images: bytes, layouts: _Layouts, noted: list[str]) -> list[str] | None:
        rows: list[str] = []
        at, end, null_bytes = 0, len(images), self._null_bytes
        text = images.decode("latin-1")
        try:
            while at < end:
                write = layouts[images[at : at + null_bytes]]
                at = write(images, text, at, end, rows.append, noted.append)
        except (struct.error, IndexError, _TooManyLayouts):
            return None
        return rows if at == end else None


class _TooManyLayouts(Exception):
    """No function is made for another layout."""


@dataclass(frozen=True, slots=True)
class _Field:
    """How the functions read and write a column.

    `codes` are the codes of `struct` of its items, and `order` is their byte order, "" for any. A
    value `behind_length` follows its length. `lines` and `literal` (a part of an f-string) have the
    items as {0}, {1}, …, and the number of the column as {at}. `values` are what they need, by
    names that get this number.
    """

    codes: tuple[str, ...]
    order: str
    literal: str
    lines: tuple[str, ...] = ()
    is_behind_length: bool = False
    is_text: bool = False
    values: tuple[tuple[str, object], ...] = ()


class _Layouts(dict[bytes, _Write]):
    """The functions of a program, by the NULL bits; they are made when they are needed."""

    def __init__(self, program: RowProgram, fields: Sequence[_Field], *, quotes: bool) -> None:
        super().__init__()
        self._program = program
        self._fields = fields
        self._quotes = quotes

    def __missing__(self, nulls: bytes) -> _Write:
        if len(self) >= LAYOUTS_MAX:
            raise _TooManyLayouts
        known = [not nulls[at >> 3] >> (at & 7) & 1 for at in range(len(self._fields))]
        source = _Source(quotes=self._quotes)
        literals = [
            source.read(at, each) if known[at] else () for at, each in enumerate(self._fields)
        ]
        source.unpack()
        for piece in self._program.pieces:
            if known[piece.place]:
                source.write(piece.before, *literals[piece.place])
            else:
                source.write(piece.if_null)
        source.write(self._program.end)
        self[nulls] = made = source.function(nulls)
        return made


@dataclass(slots=True)
class _Source:
    """The lines of a function, and the values in its namespace.

    Values of fixed size that follow each other wait in `_run` until something else follows.
    """

    quotes: bool
    _values: dict[str, object] = field(
        default_factory=lambda: {"NotAlike": NotAlike, "two": _TWO_DIGITS, "three": _THREE_DIGITS}
    )
    _lines: list[str] = field(default_factory=list)
    _run: list[tuple[str, str]] = field(default_factory=list)  # a code and a name
    _order: str = ""
    _after: list[str] = field(default_factory=list)
    _text: str = ""
    _constant: str = ""

    def read(self, at: int, each: _Field) -> tuple[str, str, str]:
        """Add the lines that read a column, and return its literal with constants around it."""
        if each.order and self._order and each.order != self._order:
            self.unpack()
        self._order = self._order or each.order
        names = tuple(f"x{at}_{number}" for number in range(len(each.codes)))
        self._run += zip(each.codes, names, strict=True)
        self._values |= {f"{name}{at}": value for name, value in each.values}
        if not each.is_behind_length:
            self._after += [line.format(*names, at=at) for line in each.lines]
            return "", each.literal.format(*names, at=at), ""
        self.unpack()
        [size] = names
        if each.codes == ("3s",):
            size = f"int.from_bytes({size}, 'little')"
        self._lines.append(f"end{at} = at + {size}")
        if each.is_text and not self.quotes:
            self._lines += [f"v{at} = text[at:end{at}]", f"note(v{at})", f"at = end{at}"]
            return "'", f"{{v{at}}}", "'"
        self._lines += [f"v{at} = known{at}[images[at:end{at}]]", f"at = end{at}"]
        return "", f"{{v{at}}}", ""

    def unpack(self) -> None:
        """End a run."""
        if self._run:
            codes, names = zip(*self._run, strict=True)
            number = len(self._lines)
            reader = struct.Struct((self._order or "<") + "".join(codes))
            self._values[f"unpack{number}"] = reader.unpack_from
            self._lines.append(f"{', '.join(names)}, = unpack{number}(images, at)")
            self._lines.append(f"at += {reader.size}")
        self._lines += self._after
        self._run, self._order, self._after = [], "", []

    def write(self, before: str, quote: str = "", literal: str = "", behind: str = "") -> None:
        """Add a constant and a literal to the text. Constants that meet are joined."""
        self._constant += before + quote
        if literal:
            self._text += self._named_constant() + literal
            self._constant = behind

    def _named_constant(self) -> str:
        name = f"c{len(self._values)}"
        self._values[name] = self._constant
        return f"{{{name}}}"

    def function(self, nulls: bytes) -> _Write:
        """Compile the function."""
        bits = (
            f" and images[{f'at + {at}' if at else 'at'}] == {byte}"
            for at, byte in enumerate(nulls)
        )
        lines = (
            "def write(images, text, at, end, add, note):",
            f"    while at < end{''.join(bits)}:",
            f"        at += {len(nulls)}",
            *(f"        {line}" for line in self._lines),
            f'        add(f"{self._text}{self._named_constant()}")',
            "    return at",
        )
        exec("\n".join(lines), self._values)  # noqa: S102 - see 1.
        return cast("_Write", self._values.pop("write"))


def _field(column: RowColumn, read_value: ReadValue) -> _Field:
    """Decide how a column is read and written. Raises MalformedBody."""
    code, has_length = cell_format(column)
    if column.type_code in INTEGERS and not code.endswith("s"):
        order = "" if code in "bB" else "<"
        lines = ("if {0} < 0: raise NotAlike",) if column.is_unsigned is None else ()
        return _Field((code,), order, "{{{0}}}", lines)
    if has_length:
        known = (("known", remembered(column, read_value)),)
        order = "" if code == "B" else "<"
        return _Field(
            (code,), order, "", is_behind_length=True, is_text=_is_text(column), values=known
        )
    if column.type_code == NEWDECIMAL:
        return _decimal(column, read_value)
    if is_moment(column) and column.metadata:
        return _moment(column)
    known = (("known", remembered(column, read_value)),)
    return _Field((code,), "", "{{v{at}}}", ("v{at} = known{at}[{0}]",), values=known)


def _is_text(column: RowColumn) -> bool:
    """Return whether printable ASCII is itself in the column."""
    _, has_length = cell_format(column)
    is_ascii = column.charset in UTF8 or is_plain(b"a", column.charset)
    return has_length and column.is_string and is_ascii


def _decimal(column: RowColumn, read_value: ReadValue) -> _Field:
    """Write a DECIMAL that is not negative from its groups, see `value_texts`."""
    whole, fraction = decimal_groups(column)
    codes: list[str] = []
    groups: list[str] = []
    for digits in (*whole, *fraction):
        its_codes, number = _NUMBERS[DIGITS_TO_BYTES[digits]]
        names = [f"{{{len(codes) + at}}}" for at in range(len(its_codes))]
        groups.append(number.format(*names))
        codes += its_codes
    ends = [10**digits for digits in (*whole, *fraction)]
    top = 1 << (8 * DIGITS_TO_BYTES[(*whole, *fraction)[0]] - 1)
    checks = [f"{top} <= {groups[0]} < {top + ends[0]}"]
    checks += [f"{group} < {end}" for group, end in zip(groups[1:], ends[1:], strict=True)]
    groups[0] = f"({groups[0]} - {top})"
    text = f"{{{{{_joined(groups[: len(whole)], whole)}}}}}"
    if fraction:
        text += "." + _digits(_joined(groups[len(whole) :], fraction), sum(fraction))
    every = ", ".join(f"{{{at}}}" for at in range(len(codes)))
    line = f'v{{at}} = f"{text}" if {" and ".join(checks)} else write{{at}}(pack{{at}}({every}))'
    values = (
        ("write", value_writer(column, read_value)),
        ("pack", struct.Struct(">" + "".join(codes)).pack),
    )
    return _Field(tuple(codes), ">", "{{v{at}}}", (line,), values=values)


def _joined(groups: list[str], digits: list[int]) -> str:
    """Return the number of groups of so many digits."""
    number = "0"
    for group, count in zip(groups, digits, strict=True):
        number = group if number == "0" else f"({number} * {10**count} + {group})"
    return number


def _digits(number: str, digits: int) -> str:
    """Return the part of an f-string that writes exactly so many digits, doubled for `format`."""
    if digits == len("00"):
        return f"{{{{two[{number}]}}}}"
    if digits == len("000000"):
        return f"{{{{three[{number} // 1000]}}}}{{{{three[{number} % 1000]}}}}"
    return f"{{{{{number}:0{digits}d}}}}"


def _moment(column: RowColumn) -> _Field:
    """Write a DATETIME(n) or TIMESTAMP(n) from its whole seconds and its fraction."""
    digits = column.metadata
    codes, number = _NUMBERS[(digits + 1) // 2]
    lines = (
        f"v{{at}} = {number.format('{1}', '{2}')}",
        f"if v{{at}} >= {10 ** ((digits + 1) // 2 * 2)}: raise NotAlike",
    )
    shown = _digits("v{at} // 10" if digits % 2 else "v{at}", digits)
    known = (("known", whole_seconds(column)),)
    codes = (f"{WHOLE_BYTES[column.type_code]}s", *codes)
    return _Field(codes, ">", f"{{{{known{{at}}[{{0}}]}}}}{shown}'", lines, values=known)
