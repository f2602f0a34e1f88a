"""Splits the images of a row event into the bytes of their values, many rows at a time.

How it works
------------
`binlog.rows.values` reads one value after the other, with the exact error of each. That takes some
100 µs a row. Here a row takes about 2 µs, because the layout of an image is decided once for each
set of NULLs and not once for each value:

    image   = NULL bits of the logged columns, then the values of the columns that are not NULL
    steps   = for one value of the NULL bits: runs of values of fixed size; a run may end with the
              length of the value that follows it

A table (BIGINT, INT, VARCHAR(60), VARCHAR(200), DECIMAL(12,2)) has these steps:

    no NULLs           <QiB (B is the length of the VARCHAR(60)), <H, <6s
    VARCHAR(200) NULL  <QiB and a None behind the text, <6s

`struct` reads a whole run at once. A value is an integer if its type is TINYINT, SMALLINT,
INT or BIGINT, and signed unless it is known to be unsigned. Otherwise it is bytes, without its
length. NULL is None.

What this file does not do: it finds no errors. If the bytes do not fit, the result is None, and the
caller reads the event with `binlog.rows.values`, which raises the error with its place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from binlog.cursor import Cursor
from binlog.rows.images import (
    BLOB,
    GEOMETRY,
    JSON,
    LONG_BLOB,
    MEDIUM_BLOB,
    ONE_BYTE_LENGTH_MAX,
    STRING,
    TINY_BLOB,
    VARCHAR,
    VECTOR,
    char_length,
    skip_value,
)
from binlog.rows.tables import LONG, LONGLONG, SHORT, TINY, RowColumn

# An integer, the bytes of a value, or None for NULL.
Cell: TypeAlias = "int | bytes | None"
# The cells of one image, one for each logged column.
Cells: TypeAlias = "list[Cell]"

_INTEGER_CODES = {TINY: "bB", SHORT: "hH", LONG: "iI", LONGLONG: "qQ"}
_BEHIND_LENGTH = frozenset({TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, JSON, GEOMETRY, VECTOR})
_LENGTH_CODES = {1: "B", 2: "H", 3: "3s", 4: "I"}
# No value of fixed size is longer: a CHAR has a length before it.
_FIXED_BYTES_MAX: Final = 1024
# One plan is for one value of the NULL bits; a table of many nullable columns may have many.
_PLANS_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class _Step:
    """A run of values: `unpack` reads `size` bytes, the last item is a length if `has_length`.

    `nulls` are the NULLs of the columns directly behind the run.
    """

    unpack: Callable[[bytes, int], tuple[Any, ...]]
    size: int
    has_length: bool
    nulls: tuple[None, ...]


_Plan: TypeAlias = "tuple[tuple[None, ...], tuple[_Step, ...]]"


@dataclass(slots=True)
class ImageSplitter:
    """Splits images in which the given columns are logged. Plans are made when they are needed."""

    columns: Sequence[RowColumn]
    _formats: tuple[tuple[str, bool], ...] = field(init=False)
    _plans: dict[bytes, _Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._formats = tuple(map(cell_format, self.columns))

    def split(self, images: bytes) -> list[Cells] | None:
        """Return the cells of each image; None if the bytes are not whole images."""
        rows: list[Cells] = []
        at, end, null_bytes = 0, len(images), (len(self.columns) + 7) // 8
        plans = self._plans
        try:
            while at < end:
                nulls = images[at : at + null_bytes]
                at += null_bytes
                leading, steps = plans.get(nulls) or self._plan(nulls)
                row: Cells = [*leading]
                for step in steps:
                    cells = step.unpack(images, at)
                    at += step.size
                    if step.has_length:
                        length = cells[-1]
                        if length.__class__ is bytes:
                            length = int.from_bytes(length, "little")
                        row += cells[:-1]
                        row.append(images[at : at + length])
                        at += length
                    else:
                        row += cells
                    row += step.nulls
                rows.append(row)
        except struct.error:
            return None
        return rows if at == end and null_bytes else None

    def _plan(self, nulls: bytes) -> _Plan:
        """Decide the steps for one value of the NULL bits, and keep them."""
        leading = 0
        runs: list[_Run] = []
        for at, (code, has_length) in enumerate(self._formats):
            if nulls[at >> 3] >> (at & 7) & 1:
                if runs:
                    runs[-1].nulls += 1
                else:
                    leading += 1
                continue
            if not runs or runs[-1].has_length or runs[-1].nulls:
                runs.append(_Run())
            runs[-1].code += code
            runs[-1].has_length = has_length
        plan = ((None,) * leading, tuple(run.step() for run in runs))
        if len(self._plans) >= _PLANS_MAX:
            self._plans.clear()
        self._plans[nulls] = plan
        return plan


@dataclass(slots=True)
class _Run:
    """A step under construction."""

    code: str = ""
    has_length: bool = False
    nulls: int = 0

    def step(self) -> _Step:
        reader = struct.Struct("<" + self.code)
        return _Step(reader.unpack_from, reader.size, self.has_length, (None,) * self.nulls)


def cell_format(column: RowColumn) -> tuple[str, bool]:
    """Return the code of `struct` that reads a column, and whether that is a length before it.

    The sizes are those of `binlog.rows.images`. Raises MalformedBody for a type that it rejects.
    """
    kind, metadata = column.type_code, column.metadata
    if kind in _INTEGER_CODES:
        return _INTEGER_CODES[kind][bool(column.is_unsigned)], False
    if kind in _BEHIND_LENGTH and metadata in _LENGTH_CODES:
        return _LENGTH_CODES[metadata], True
    if kind in (VARCHAR, STRING):
        length_max = metadata if kind == VARCHAR else char_length(metadata)
        return ("H" if length_max > ONE_BYTE_LENGTH_MAX else "B"), True
    cursor = Cursor(bytes(_FIXED_BYTES_MAX))
    skip_value(cursor, kind, metadata)
    return f"{cursor.at}s", False
