"""GTID sets as operands: the text itself, `@file`, or `-` for standard input.

An operator who passes a file of hundreds of megabytes intends that. So the limits are wider than
those of the algebra, and only catch a wrong file. Measured with operands of 210 megabytes: reading
takes about 3 bytes of memory per byte of text, and the parsed set takes 16 bytes per interval.
"""

import sys
from pathlib import Path
from typing import BinaryIO, Final

from gtid import GtidError, GtidSet, MalformedText
from gtid_audit.exits import UsageProblem

STDIN: Final = "-"

OPERAND_BYTES_MAX: Final = 1024**3
OPERAND_INTERVALS_MAX: Final = 100_000_000  # 1.6 GB; 1 GiB of a server's text has 60 million
OPERAND_TSIDS_MAX: Final = 10_000_000

_PIECE_BYTES: Final = 8 * 1024**2


def read_operands(operands: tuple[str, ...]) -> tuple[GtidSet, ...]:
    """Parse GTID sets. Raises UsageProblem, which shows the position in the text."""
    if operands.count(STDIN) > 1:
        raise UsageProblem("only one operand can be '-': standard input is read once")
    return tuple(_read(operand, name) for name, operand in zip("AB", operands, strict=False))


def read_wanted(operand: str) -> GtidSet:
    """Parse a set to look for. Raises UsageProblem if it is empty, as an unset variable is."""
    [gtids] = read_operands((operand,))
    if not gtids:
        raise UsageProblem("SET is empty: there is nothing to look for (an unset variable?)")
    return gtids


def _read(operand: str, name: str) -> GtidSet:
    return parsed(*text_of(operand, name))


def parsed(text: str, where: str) -> GtidSet:
    """Parse a set. Raises UsageProblem, which shows `where` it is and the position."""
    try:
        return GtidSet.parse(
            text,
            text_bytes_max=OPERAND_BYTES_MAX,
            intervals_max=OPERAND_INTERVALS_MAX,
            tsids_max=OPERAND_TSIDS_MAX,
        )
    except GtidError as error:
        raise UsageProblem(f"{where}: {error}{_hint(text, error)}") from error


def text_of(operand: str, name: str) -> tuple[str, str]:
    """Return the text of an operand, and where it is from. Raises UsageProblem."""
    if operand == STDIN:
        return _content_of(sys.stdin.buffer, "standard input"), "standard input"
    if not operand.startswith("@"):
        return operand, f"operand {name}"
    path = Path(operand[1:]).expanduser()
    try:
        with path.open("rb") as file:
            return _content_of(file, str(path)), str(path)
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error


def _content_of(stream: BinaryIO, where: str) -> str:
    """Read a whole stream, piece by piece: the size of a pipe is not known in advance."""
    content = bytearray()
    while piece := stream.read(_PIECE_BYTES):
        content += piece
        if len(content) > OPERAND_BYTES_MAX:
            raise UsageProblem(f"{where}: more than the limit of {OPERAND_BYTES_MAX:,} bytes")
    try:
        return content.decode("ascii")
    except UnicodeDecodeError as error:
        raise UsageProblem(
            f"{where}: expected a GTID set, found byte {content[error.start]:#04x} at character"
            f" {error.start}"
        ) from error


def _hint(text: str, error: GtidError) -> str:
    r"""Return a hint for the most common error: in batch mode `mysql` prints line ends as `\n`."""
    if isinstance(error, MalformedText) and text.startswith(r"\n", error.text_position):
        return r"; 'mysql --batch' writes \n for a line end: add --raw"
    return ""
