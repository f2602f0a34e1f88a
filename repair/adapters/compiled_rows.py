"""Compiles how the rows of a table are written (repair/sql/event_texts.py), with Numba.

1. Loading Numba takes about as long as writing 100,000 rows without it, and 80 MB of memory;
   compiling the kernels for the first time takes some seconds. So `compiler_for` uses them only for
   many bytes of log, and only where the extra `columns` is installed. The text is the same without
   them; a test compares both.
2. A program is compiled to numbers for one kernel; no code is generated.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from binlog.cursor import MalformedBody
from binlog.rows.charsets import UTF8, is_plain
from binlog.rows.images import (
    BIT,
    DATETIME2,
    ENUM,
    NEWDECIMAL,
    SET,
    STRING,
    TIME2,
    TIMESTAMP2,
    char_length,
)
from binlog.rows.split_images import cell_format
from binlog.rows.tables import INTEGERS, RowColumn
from binlog.schema.charset_names import BINARY
from repair.sql.event_texts import Compile, RowProgram, WriteImages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COMPILED_BYTES_MIN: Final = 16 * 1024**2
_DATE, _NEW_DATE, _YEAR = 10, 14, 13
_LENGTH_BYTES = {"B": 1, "H": 2, "3s": 3, "I": 4}
_INTEGER_BYTES = {"B": 1, "H": 2, "I": 4, "Q": 8}
_LAST_PLAIN, _LAST_ASCII = 0x7D, 0x7E
_DIGITS_MAX = 6


def compiler_for(log_bytes: int) -> Compile | None:
    """Return the compiler for so many bytes of log, if it saves time and can be used."""
    if log_bytes < COMPILED_BYTES_MIN or find_spec("numba") is None:
        return None
    return compiled


def compiled(program: RowProgram) -> WriteImages | None:
    """Compile a program; None if a column has a type that the kernel does not write.

    Also None if no statement has a column's value (it is generated): the kernel would not notice
    that it is damaged.
    """
    if {each.place for each in program.pieces} < {*range(len(program.columns))}:
        return None
    import numpy as np

    from binlog.kernels import row_text as kernel

    rows = []
    for column in program.columns:
        row = _column(column)
        if row is None:
            return None
        rows.append(row)
    constants = b""

    def placed(text: str) -> tuple[int, int]:
        nonlocal constants
        begin = len(constants)
        constants += text.encode()
        return begin, len(constants)

    pieces = [(each.place, *placed(each.before), *placed(each.if_null)) for each in program.pieces]
    joins = (*placed(program.end), *placed(program.between), int(program.is_backwards))
    literals = kernel.LITERAL_MAX * len(pieces)
    return _Writer(
        np.array(rows, np.int64),
        np.array(pieces, np.int64),
        np.frombuffer(constants, np.uint8),
        np.array(joins, np.int64),
        row_bytes=2 * len(constants) + literals,
        copies=max(sum(piece[0] == at for piece in pieces) for at in range(len(rows))),
    )


class _Writer:
    """A compiled program, and room for its results that grows with the events."""

    def __init__(
        self,
        columns: NDArray[np.int64],
        pieces: NDArray[np.int64],
        constants: NDArray[np.uint8],
        joins: NDArray[np.int64],
        *,
        row_bytes: int,
        copies: int,
    ) -> None:
        import numpy as np

        self._program = (columns, pieces, constants, joins)
        self._row_bytes = row_bytes
        self._copies = copies
        self._starts = np.empty(0, np.int64)
        self._text = np.empty(0, np.uint8)
        # A row of text in hexadecimal, with the zeros that fill it up.
        self._padding = 2 * int(columns[columns[:, 1] == _kernel_kind("BINARY"), 2].sum())

    def __call__(self, images: bytes) -> tuple[str, int] | None:
        """Return the text of the rows and their number; None if a value is not plain."""
        import numpy as np

        from binlog.kernels.row_text import find_rows, write_rows

        columns, pieces, constants, joins = self._program
        null_bytes = (len(columns) + 7) // 8
        if len(self._starts) * null_bytes < len(images):
            self._starts = np.empty(2 * len(images) // null_bytes + 1, np.int64)
        data = np.frombuffer(images, np.uint8)
        count = find_rows(data, columns, self._starts)
        if count <= 0:
            return None
        size = count * (self._row_bytes + self._copies * self._padding)
        size += 2 * self._copies * len(images)
        if len(self._text) < size:
            self._text = np.empty(2 * size, np.uint8)
        length = write_rows(
            data, self._starts, count, columns, pieces, constants, joins, self._text
        )
        if length < 0:
            return None
        return self._text[:length].tobytes().decode(), count


def _kernel_kind(name: str) -> int:
    from binlog.kernels import row_text

    kind: int = getattr(row_text, name)
    return kind


def _column(column: RowColumn) -> tuple[int, int, int, int] | None:
    """Return the numbers of a column for the kernel; None if it does not write the type."""
    from binlog.kernels import row_text as kernel

    kind, metadata = column.type_code, column.metadata
    try:
        code, has_length = cell_format(column)
    except MalformedBody:
        return None
    if has_length:
        texts = _text_kind(column)
        return None if texts is None else (-_LENGTH_BYTES[code], *texts)
    if kind in INTEGERS:
        width = 3 if code == "3s" else _INTEGER_BYTES[code.upper()]
        signs = (not column.is_unsigned, column.is_unsigned is None)
        return width, kernel.INTEGER, int(signs[0]), int(signs[1])
    width = int(code[:-1])
    if kind in (ENUM, SET):
        return width, kernel.UNSIGNED, int(kind == ENUM), 0
    if kind == NEWDECIMAL:
        precision, scale = metadata >> 8, metadata & 0xFF
        return width, kernel.DECIMAL, precision - scale, scale
    fractions = {DATETIME2: kernel.DATETIME, TIMESTAMP2: kernel.TIMESTAMP, TIME2: kernel.TIME}
    if kind in fractions and metadata <= _DIGITS_MAX:
        return width, fractions[kind], metadata, 0
    others = {_DATE: kernel.DATE, _NEW_DATE: kernel.DATE, _YEAR: kernel.YEAR, BIT: kernel.BIT}
    return (width, others[kind], 0, 0) if kind in others else None


def _text_kind(column: RowColumn) -> tuple[int, int, int] | None:
    from binlog.kernels import row_text as kernel

    if not column.is_string:
        return None
    if column.charset == BINARY:
        padded = char_length(column.metadata) if column.type_code == STRING else 0
        return kernel.BINARY, padded, 0
    if column.charset in UTF8:
        return kernel.TEXT, _LAST_ASCII, 0
    has_ascii = is_plain(b"a", column.charset or "ascii")
    return kernel.TEXT, _LAST_PLAIN if has_ascii else 0, 0
