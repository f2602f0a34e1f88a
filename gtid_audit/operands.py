"""GTID sets as somebody types them: the text itself, `@file`, or `-` for standard input."""

import sys
from pathlib import Path
from typing import Final

from gtid import TEXT_BYTES_MAX, GtidError, GtidSet
from gtid_audit.exits import UsageProblem

STDIN: Final = "-"


def read_operands(operands: tuple[str, ...]) -> tuple[GtidSet, ...]:
    """Read GTID sets. Raises UsageProblem, which shows the place in the text."""
    if operands.count(STDIN) > 1:
        raise UsageProblem("only one operand can be '-': standard input is read once")
    return tuple(_read(operand, name) for name, operand in zip("AB", operands, strict=False))


def _read(operand: str, name: str) -> GtidSet:
    text, where = _text_of(operand, name)
    try:
        return GtidSet.parse(text)
    except GtidError as error:
        raise UsageProblem(f"{where}: {error}") from error


def _text_of(operand: str, name: str) -> tuple[str, str]:
    if operand == STDIN:
        return _decoded(sys.stdin.buffer.read(TEXT_BYTES_MAX + 1), "standard input")
    if not operand.startswith("@"):
        return operand, f"operand {name}"
    path = Path(operand[1:]).expanduser()
    try:
        with path.open("rb") as file:
            return _decoded(file.read(TEXT_BYTES_MAX + 1), str(path))
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error


def _decoded(content: bytes, where: str) -> tuple[str, str]:
    try:
        return content.decode("ascii"), where
    except UnicodeDecodeError as error:
        raise UsageProblem(
            f"{where}: expected a GTID set, found byte {content[error.start]:#04x} at character"
            f" {error.start}"
        ) from error
