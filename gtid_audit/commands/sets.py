"""`gtid-audit sets`: the set calculator. It uses no servers.

A result that is a set is printed as MySQL prints it, on one line of any length: other programs read
it. `diff` and `holes --by-uuid` print a form for operators.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from gtid import GtidSet, relate
from gtid_audit import exits
from gtid_audit.commands.options import AsJson
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.operands.sets_from_operands import read_operands
from gtid_audit.output import progress, write, write_line
from topology.documents.document_version import versioned

Result = GtidSet | bool | int

_PIECE_CHARS: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one or two sets: its name, its function, its help."""

    name: str
    compute: Callable[..., Result]
    help: str


OF_TWO = (
    Operation("subtract", lambda a, b: a - b, "The GTIDs of A that are not in B."),
    Operation("union", lambda a, b: a | b, "The GTIDs that are in A or B."),
    Operation("intersect", lambda a, b: a & b, "The GTIDs that are in A and B."),
    Operation("subset", lambda a, b: a <= b, "Is A a subset of B? Exit status 0 or 1."),
    Operation("equal", lambda a, b: a == b, "Are A and B equal? Exit status 0 or 1."),
    Operation(
        "disjoint", lambda a, b: a.is_disjoint(b), "Are A and B disjoint? Exit status 0 or 1."
    ),
)
HOLES = Operation("holes", lambda a: a.holes(), "")
OF_ONE = (
    Operation("count", lambda a: a.gtid_count, "The number of GTIDs in A."),
    Operation("canonical", lambda a: a, "A as MySQL writes it, on one line."),
)

SetA = Annotated[
    str, typer.Argument(metavar="A", help="GTID set: text, @file, or - for standard input.")
]
SetB = Annotated[str, typer.Argument(metavar="B", help="The other GTID set.")]
ByUuid = Annotated[
    bool, typer.Option("--by-uuid", help="Show each UUID (and tag), with a picture.")
]


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(help="Calculate with GTID sets, offline.", **settings)
    for operation in OF_TWO:
        family.command(operation.name, cls=PlainCommand, help=operation.help)(_of_two(operation))
    for operation in OF_ONE:
        family.command(operation.name, cls=PlainCommand, help=operation.help)(_of_one(operation))
    family.command("holes", cls=PlainCommand)(holes)
    family.command("diff", cls=PlainCommand)(diff)
    return family


def _of_two(operation: Operation) -> Callable[..., int]:
    def command(a: SetA, b: SetB, *, as_json: AsJson = False) -> int:
        with _calculating():
            result = operation.compute(*read_operands((a, b)))
        return _answer(operation, result, as_json=as_json)

    return command


def _of_one(operation: Operation) -> Callable[..., int]:
    def command(a: SetA, *, as_json: AsJson = False) -> int:
        with _calculating():
            result = operation.compute(*read_operands((a,)))
        return _answer(operation, result, as_json=as_json)

    return command


def holes(a: SetA, *, by_uuid: ByUuid = False, as_json: AsJson = False) -> int:
    """Show the missing GTIDs between the first and the last of each UUID (and tag)."""
    with _calculating():
        [held] = read_operands((a,))
        found = HOLES.compute(held)
    if as_json or not by_uuid:
        return _answer(HOLES, found, as_json=as_json)
    from gtid_audit.views.sets_text import show_holes

    show_holes(held)
    return exits.OK


def diff(a: SetA, b: SetB, *, as_json: AsJson = False) -> int:
    """Show what only A has, what only B has, and how A and B are related."""
    with _calculating():
        left, right = read_operands((a, b))
    if as_json:
        parts = {"only_a": left - right, "only_b": right - left, "both": left & right}
        document: dict[str, Any] = {"operation": "diff", "relation": relate(left, right).value}
        document |= {name: _described(part) for name, part in parts.items()}
        _write_large_json(document)
        return exits.OK
    from gtid_audit.views.sets_text import show_difference

    show_difference(left, right)
    return exits.OK


@contextmanager
def _calculating() -> Iterator[None]:
    """Show progress, unless the operator types a set on this terminal."""
    if sys.stdin.isatty():
        yield
        return
    with progress("calculating"):
        yield


def _answer(operation: Operation, result: Result, *, as_json: bool) -> int:
    if as_json:
        shown = _described(result) if isinstance(result, GtidSet) else result
        _write_large_json({"operation": operation.name, "result": shown})
    elif isinstance(result, bool):
        write_line("true" if result else "false")
    else:
        write(str(result))  # the line end separately, to avoid a copy of a huge text
        write("\n")
    return exits.FALSE if result is False else exits.OK


def _described(gtid_set: GtidSet) -> dict[str, Any]:
    """Describe a set, and each of its TSIDs."""
    text = str(gtid_set)
    parts = [(tsid, gtid_set.from_tsid(tsid)) for tsid in gtid_set.tsids]
    return {
        "gtid_set": text,
        "gtid_count": gtid_set.gtid_count,
        "interval_count": gtid_set.interval_count,
        "tsid_count": gtid_set.tsid_count,
        "tsids": [
            {
                "uuid": str(tsid.uuid),
                "tag": tsid.tag,
                "gtid_set": text if len(parts) == 1 else str(part),
                "gtid_count": part.gtid_count,
                "interval_count": part.interval_count,
            }
            for tsid, part in parts
        ],
    }


def _write_large_json(document: dict[str, Any]) -> None:
    """Write the same as output.write_json, piece by piece: the sets may be huge."""
    pieces: list[str] = []
    size = 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(versioned(document)):
        pieces.append(piece)
        size += len(piece)
        if size >= _PIECE_CHARS:
            write("".join(pieces))
            pieces, size = [], 0
    write("".join([*pieces, "\n"]))
