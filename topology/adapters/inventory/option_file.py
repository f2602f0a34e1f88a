r"""Reads option files, in the syntax of ~/.my.cnf, as lines that keep their place.

It follows mysys/my_default.cc of 9.7 (Reference Manual, "Using Option Files"). The tests compare it
with `my_print_defaults`:

1. `#` or `;` begins a comment line; an unquoted `#` ends any line. `[group]`, `name`, `name=value`;
   blanks around name and value are ignored; dashes and underscores in names are equivalent. What
   follows `]` is ignored, and a blank behind `[` belongs to the name of the group.
2. A value may be in quotes of either kind. `\b \t \n \r \\ \s \" \'` are escapes; before any other
   character the backslash stays.
3. `!include FILE` and `!includedir DIRECTORY` (its *.cnf, in order of name), ten deep at most. A
   relative path begins at the file that includes; the client begins at its working directory.
4. The last line of a name takes precedence, in whichever of the requested groups it is.

Where the client cuts a line, skips a file or ignores a directive, this module raises. No message
repeats a line: it may contain a password.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEPTH_MAX: Final = 10
FILE_BYTES_MAX: Final = 1 << 20
FILES_MAX: Final = 1_000  # with all that are included
LINE_BYTES_MAX: Final = 4094  # the client cuts a longer line (search_default_file_with_ext)

_BLANKS: Final = " \t\r\v\f"
_DIRECTIVE = re.compile(r"!\s*(includedir|include)\s+(.+)", re.DOTALL)
_ESCAPES: Final = {
    "b": "\b", "t": "\t", "n": "\n", "r": "\r", "\\": "\\", "s": " ", '"': '"', "'": "'",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class OptionFileProblem(Exception):
    """A file that cannot be read, or a line that has none of these forms, and its location."""


@dataclass(frozen=True, slots=True)
class OptionLine:
    """One option: its group, its name with dashes, its value (None without `=`), its place."""

    group: str
    name: str
    value: str | None
    place: str


@dataclass(frozen=True, slots=True)
class OptionFile:
    """The options of all groups in the order of their lines, and the names of all groups."""

    lines: tuple[OptionLine, ...]
    groups: tuple[str, ...]

    def lines_of(self, groups: Collection[str]) -> tuple[OptionLine, ...]:
        """Return the options of some groups, in the order of their lines."""
        return tuple(line for line in self.lines if line.group in groups)


# Looks at a file before it is read, and raises if it must not be.
Check = Callable[[Path], None]


def read_option_file(path: Path, *, check: Check) -> OptionFile:
    """Read a file and what it includes; `check` sees each. Raises OptionFileProblem."""
    reading = _Reading(check)
    lines = tuple(reading.lines(path, depth=0))
    return OptionFile(lines, tuple(reading.groups))


def options_in(
    lines: Iterable[str], *, places: Callable[[int], str], has_comments: bool
) -> OptionFile:
    """Return the options of lines without directives; `places` names the line of a number.

    Raises OptionFileProblem.
    """
    groups: dict[str, None] = {}
    found: list[OptionLine] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip(_BLANKS + "\n")
        if text and text[0] not in "#;":
            found += _of_line(text, places(number), groups, has_comments=has_comments)
    return OptionFile(tuple(found), tuple(groups))


class _Reading:
    """The groups and the number of files so far."""

    def __init__(self, check: Check) -> None:
        self.groups: dict[str, None] = {}
        self._check = check
        self._file_count = 0

    def lines(self, path: Path, *, depth: int) -> Iterator[OptionLine]:
        """Yield the options of a file and of those that it includes."""
        if depth > DEPTH_MAX:
            raise OptionFileProblem(
                f"{path}: includes are nested more than {DEPTH_MAX} levels deep"
            )
        self._file_count += 1
        if self._file_count > FILES_MAX:
            raise OptionFileProblem(f"{path}: more than {FILES_MAX:,} files are included")
        self._check(path)
        # A group of another file does not continue in this one.
        groups: dict[str, None] = {}
        for number, line in enumerate(_content(path), start=1):
            place = f"{path}, line {number}"
            text = line.strip(_BLANKS)
            if not text or text[0] in "#;":
                continue
            if text[0] == "!":
                for included in _included(text, place=place, beside=path.parent):
                    yield from self.lines(included, depth=depth + 1)
                continue
            yield from _of_line(text, place, groups, has_comments=True)
            self.groups.update(groups)


def _of_line(
    text: str, place: str, groups: dict[str, None], *, has_comments: bool
) -> Iterator[OptionLine]:
    """Yield the option of a line; the last key of `groups` is the group that it is in."""
    if text[0] == "[":
        name, bracket, _ = text[1:].partition("]")
        if not bracket:
            raise OptionFileProblem(f"{place}: expected [group]")
        groups.pop(name.rstrip(_BLANKS), None)
        groups[name.rstrip(_BLANKS)] = None
        return
    if not groups:
        raise OptionFileProblem(f"{place}: an option before the first [group]")
    if has_comments:
        text = _without_comment(text)
    name, equals, value = text.partition("=")
    key = name.strip(_BLANKS).replace("_", "-").removeprefix("loose-")
    yield OptionLine(
        next(reversed(groups)), key, _value(value.strip(_BLANKS)) if equals else None, place
    )


def _content(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise OptionFileProblem(f"{path}: {error.strerror or error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise OptionFileProblem(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_BYTES_MAX:
            raise OptionFileProblem(
                f"{path}, line {number}: longer than {LINE_BYTES_MAX:,} bytes, where MySQL cuts it"
            )
        if b"\0" in line:
            raise OptionFileProblem(f"{path}, line {number}: contains a NUL byte")
    # Other encodings are no problem in a comment: `text_of` refuses them in a value that is used.
    return [line.decode(errors="surrogateescape") for line in lines]


def text_of(line: OptionLine) -> str:
    """Return the value of an option, empty without one. Raises OptionFileProblem: not UTF-8."""
    value = line.value or ""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OptionFileProblem(f"{line.place}: not UTF-8") from None
    return value


def _included(text: str, *, place: str, beside: Path) -> list[Path]:
    directive = _DIRECTIVE.fullmatch(text)
    if directive is None:
        raise OptionFileProblem(f"{place}: expected !include FILE or !includedir DIRECTORY")
    try:
        target = beside / Path(directive[2].strip(_BLANKS)).expanduser()
    except RuntimeError:
        raise OptionFileProblem(f"{place}: no home directory is known to this process") from None
    if directive[1] == "include":
        return [target]
    try:
        return sorted(each for each in target.iterdir() if each.name.endswith(".cnf"))
    except OSError as error:
        raise OptionFileProblem(f"{place}: {target}: {error.strerror or error}") from error


def _without_comment(text: str) -> str:
    """Return a text without an unquoted `#` and what follows it (remove_end_comment there)."""
    quote = ""
    escaped = False
    for index, character in enumerate(text):
        if character in "'\"" and not escaped:
            if not quote:
                quote = character
            elif quote == character:
                quote = ""
        if not quote and character == "#":
            return text[:index]
        escaped = bool(quote) and character == "\\" and not escaped
    return text


def _value(text: str) -> str:
    if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]:
        text = text[1:-1]
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), text)
