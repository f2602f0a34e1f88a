r"""Reads one result as the mysql client prints it: with \G, in a box, or separated by tabs. Pure.

How it works
------------
A result may be surrounded by anything, and values have line ends: a GTID set has one after each
UUID. So each form needs a rule for where a value continues.

* \G: the client aligns the colons of a row. A line is a field if its colon is at the place of the
  first one. If an editor removed the spaces in front, no second colon is there. Then a line is a
  field if gtid-audit reads a column of its name, or if its name looks like a column. Any other line
  continues the value before it, until something that ends a result.
* A box: the client counts a line end as one character when it pads a cell. So the lines of a row,
  joined, are as long as its border, and the border shows where each cell ends. A row that an editor
  has shortened is split at its bars instead, if that gives the right number of cells.
* Tabs: the client escapes line ends, and with --raw it does not. Then lines are joined until the
  row has all of its cells. A cell that ends with a comma is the beginning of a set.

A result that ends early is reported with its first line: it is never taken for a shorter one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Final, TypeAlias

PastedRow: TypeAlias = Mapping[str, str | None]

ROW_HEAD: Final = re.compile(r"\*{5,} *(?P<number>\d{1,9})\. row *\*{5,}")
BORDER: Final = re.compile(r"\+(?:-+\+)+")
_FIELD: Final = re.compile(r"(?P<name> *[A-Za-z_@][\w@.()]*):(?: (?P<value>.*))?")
_LIKE_A_COLUMN: Final = re.compile(r"[A-Z]\w*_\w+")
_NEAR_LINES: Final = 8  # enough for the second field of a row, or for the end of a row with one
_ROW_LINES_MAX: Final = 10_000  # a set has a line for each UUID
_ESCAPES: Final = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
_ESCAPED: Final = re.compile(r"\\([nt0\\])")
_NULL: Final = "NULL"


@dataclass(frozen=True, slots=True)
class PastedTable:
    """One result: its columns and rows, and the line on which it begins. NULL is None."""

    line: int
    columns: tuple[str, ...]
    rows: tuple[PastedRow, ...]
    cut: str = ""  # why it is not complete; empty if it is


@dataclass(slots=True)
class PastedLines:
    """The lines of a file, and the place up to which they were read."""

    texts: Sequence[str]
    at: int = 0

    @property
    def number(self) -> int:
        """Return the number of the current line, counted from 1."""
        return self.at + 1

    @property
    def current(self) -> str | None:
        """Return the current line; None after the last one."""
        return self.texts[self.at] if self.at < len(self.texts) else None


def read_vertical(
    lines: PastedLines, *, is_end: Callable[[str], bool], is_known: Callable[[str], bool]
) -> PastedTable:
    r"""Read a result with \G; the current line is the head of its first row.

    `is_end`: the line ends any result. `is_known`: gtid-audit reads a column of this name.
    """
    begun = lines.number
    rows: list[dict[str, str | None]] = []
    while (line := lines.current) is not None:
        head = ROW_HEAD.fullmatch(line.strip())
        if head is None or (rows and head["number"] == "1"):
            break
        lines.at += 1
        rows.append(_vertical_row(lines, is_end=is_end, is_known=is_known))
    columns = tuple(rows[0]) if rows else ()
    is_cut = not columns or any(tuple(row) != columns for row in rows)
    cut = "its rows do not have the same columns" if is_cut else ""
    return PastedTable(begun, columns, tuple(rows), cut)


def _vertical_row(
    lines: PastedLines, *, is_end: Callable[[str], bool], is_known: Callable[[str], bool]
) -> dict[str, str | None]:
    found: dict[str, list[str]] = {}
    colon, name, after_blank = _colon_of(lines, is_end=is_end), "", False
    while (line := lines.current) is not None and not is_end(line):
        field = _FIELD.fullmatch(line.rstrip())
        if field is not None and colon is not None and field.end("name") != colon:
            field = None
        elif field is not None and colon is None and found:
            is_column = is_known(field["name"].strip()) or _LIKE_A_COLUMN.fullmatch(field["name"])
            field = field if is_column else None
        if field is not None:
            name = field["name"].strip()
            found[name] = [field["value"] or ""]
        elif not line.strip():
            after_blank = True
            lines.at += 1
            continue
        elif not name or (after_blank and not found[name][-1].rstrip().endswith(",")):
            break  # a set that ends with a comma goes on, whatever is between its lines
        else:
            found[name].append(line)
        after_blank = False
        lines.at += 1
    return {each: _value("\n".join(parts)) for each, parts in found.items()}


def _colon_of(lines: PastedLines, *, is_end: Callable[[str], bool]) -> int | None:
    """Return the place of the colons of a row; None if they are not aligned."""
    near = lines.texts[lines.at : lines.at + _NEAR_LINES]
    near = [*takewhile(lambda line: not is_end(line), near)]
    ends = [field.end("name") for each in near if (field := _FIELD.fullmatch(each.rstrip()))]
    is_aligned = len(ends) == 1 or ends[:1] == ends[1:2] or (near[:1] and near[0].startswith(" "))
    return ends[0] if ends and is_aligned else None


def read_box(lines: PastedLines, *, is_end: Callable[[str], bool]) -> PastedTable:
    """Read a result in a box; the current line is its upper border."""
    begun, border = lines.number, (lines.current or "").strip()
    lines.at += 1
    head, problem = _box_rows(lines, border, is_end=is_end)
    if problem or len(head) != 1:
        return PastedTable(begun, (), (), problem or "it has no row with the names of columns")
    rows, problem = _box_rows(lines, border, is_end=is_end)
    columns = tuple(head[0])
    cells = tuple(
        dict(zip(columns, map(_value, row), strict=True))
        for row in rows
        if len(row) == len(columns)
    )
    return PastedTable(begun, columns, cells, problem)


def _box_rows(
    lines: PastedLines, border: str, *, is_end: Callable[[str], bool]
) -> tuple[list[tuple[str, ...]], str]:
    """Return the rows up to the next border, which is consumed; and what is wrong with them."""
    rows: list[tuple[str, ...]] = []
    while (line := lines.current) is not None:
        if line.strip() == border:
            lines.at += 1
            return rows, ""
        if not line.strip():
            lines.at += 1
            continue
        begun = lines.number
        cells = _box_row(lines, border, is_end=is_end)
        if cells is None:
            return rows, f"the row of line {begun} is not complete"
        rows.append(cells)
    return rows, "its lower border is missing"


def _box_row(
    lines: PastedLines, border: str, *, is_end: Callable[[str], bool]
) -> tuple[str, ...] | None:
    bars = [at for at, each in enumerate(border) if each == "+"]
    line = (lines.current or "").lstrip()
    if not line.startswith("|"):
        return None
    parts, lines.at = [line], lines.at + 1
    while True:
        ends = parts[-1].rstrip().endswith("|")
        cells = _cells("\n".join(parts), bars) if ends else None
        if cells is not None:
            return cells
        more = lines.current
        if more is None or is_end(more) or more.startswith("|") or len(parts) == _ROW_LINES_MAX:
            return None
        parts.append(more)
        lines.at += 1


def _cells(text: str, bars: Sequence[int]) -> tuple[str, ...] | None:
    """Return the cells of a row; None if it goes on. `bars`: where the border has a `+`."""
    if len(text) == bars[-1] + 1 and all(text[at] == "|" for at in bars):
        return tuple(text[start + 1 : end].strip() for start, end in pairwise(bars))
    shortened = text.rstrip()
    parts = shortened.split("|")
    if shortened.endswith("|") and len(parts) == len(bars) + 1:
        return tuple(part.strip() for part in parts[1:-1])
    return None


def read_tabbed(lines: PastedLines, *, is_end: Callable[[str], bool]) -> PastedTable:
    """Read a result that is separated by tabs; the current line has the names of its columns."""
    begun = lines.number
    columns = tuple(part.strip() for part in (lines.current or "").split("\t"))
    lines.at += 1
    rows: list[PastedRow] = []
    while (line := lines.current) is not None and line.strip() and not is_end(line):
        if rows and len(columns) > 1 and "\t" not in line:
            break
        parts, tabs = [line], line.count("\t")
        lines.at += 1
        while (more := lines.current) is not None and not is_end(more) and more.strip():
            if tabs + 1 >= len(columns) and not parts[-1].rstrip().endswith(","):
                break
            parts.append(more)
            tabs += more.count("\t")
            lines.at += 1
        cells = "\n".join(parts).split("\t")
        if len(cells) != len(columns):
            return PastedTable(begun, columns, tuple(rows), "a row does not have all columns")
        rows.append(dict(zip(columns, map(_unescaped, cells), strict=True)))
    return PastedTable(begun, columns, tuple(rows))


def _unescaped(cell: str) -> str | None:
    return _value(_ESCAPED.sub(lambda found: _ESCAPES[found[1]], cell))


def _value(text: str) -> str | None:
    return None if text.strip() == _NULL else text.strip()
