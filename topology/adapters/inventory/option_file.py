r"""Reads option files, in the syntax of ~/.my.cnf.

It follows mysys/my_default.cc (Reference Manual, "Using Option Files"):

1. `#` or `;` begins a comment line; an unquoted `#` ends any line. `[group]`, `name`, `name=value`;
   blanks around each are ignored; dashes and underscores in names are equivalent.
2. A value may be in quotes of either kind. `\b \t \n \r \\ \s \" \'` are escapes; before any other
   character the backslash stays.
3. `!include FILE` and `!includedir DIRECTORY` (its *.cnf, in order of name), ten deep at most.
4. The last line of a name takes precedence; of two requested groups, the later one.

No message repeats a line: it may contain a password.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

GROUPS_DEFAULT: Final = ("client", "gtid-audit")
DEPTH_MAX: Final = 10
FILE_BYTES_MAX: Final = 1 << 20

_GROUP = re.compile(r"\[\s*([^\]]+?)\s*\]")
_DIRECTIVE = re.compile(r"!(includedir|include)\s+(.+)")
_ESCAPES: Final = {
    "b": "\b", "t": "\t", "n": "\n", "r": "\r", "\\": "\\", "s": " ", '"': '"', "'": "'",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(.)")


class OptionFileProblem(Exception):
    """A file that cannot be read, or a line that has none of these forms, and its location."""


@dataclass(slots=True)
class OptionFile:
    """The options of the requested groups, and the names of all groups."""

    values: dict[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()


def read_option_file(path: Path, *, groups: Sequence[str]) -> OptionFile:
    """Read a file and what it includes. Raises OptionFileProblem."""
    sections: dict[str, dict[str, str]] = {}
    _read(path, sections, depth=0)
    result = OptionFile(groups=tuple(sections))
    for group in groups:
        result.values.update(sections.get(group, {}))
    return result


def _read(path: Path, sections: dict[str, dict[str, str]], *, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise OptionFileProblem(f"{path}: includes are nested more than {DEPTH_MAX} levels deep")
    current: dict[str, str] | None = None
    for number, line in enumerate(_lines(path), start=1):
        where = f"{path}, line {number}"
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        if text[0] == "!":
            for included in _included(text, where=where, beside=path.parent):
                _read(included, sections, depth=depth + 1)
            continue
        text = _without_comment(text).strip()
        if text[0] == "[":
            group = _GROUP.fullmatch(text)
            if group is None:
                raise OptionFileProblem(f"{where}: expected [group]")
            current = sections.setdefault(group[1], {})
            continue
        if current is None:
            raise OptionFileProblem(f"{where}: an option before the first [group]")
        name, equals, value = text.partition("=")
        key = name.strip().replace("_", "-").removeprefix("loose-")
        if not equals:
            if key == "password":
                raise OptionFileProblem(
                    f"{where}: 'password' without a value would ask for it interactively; use"
                    " --ask-password"
                )
            current[key] = ""
        else:
            current[key] = _value(value.strip())


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise OptionFileProblem(f"{path}: {error.strerror or error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise OptionFileProblem(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        raise OptionFileProblem(f"{path}: not UTF-8") from None


def _included(text: str, *, where: str, beside: Path) -> list[Path]:
    directive = _DIRECTIVE.fullmatch(text)
    if directive is None:
        raise OptionFileProblem(f"{where}: expected !include FILE or !includedir DIRECTORY")
    target = beside / Path(directive[2].strip()).expanduser()
    if directive[1] == "include":
        return [target]
    if not target.is_dir():
        raise OptionFileProblem(f"{where}: {target} is not a directory")
    return sorted(target.glob("*.cnf"))


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
