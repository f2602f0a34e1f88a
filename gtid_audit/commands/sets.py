"""`gtid-audit sets`: the set calculator. Knows no servers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gtid import GtidSet, relate
from gtid_audit import exits
from gtid_audit.commands.options import AsJson
from gtid_audit.commands.quick import QuickCommand
from gtid_audit.operands import read_operands
from gtid_audit.output import write_json, write_line

Result = GtidSet | bool | int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one or two sets: its name, its definition, its help."""

    name: str
    compute: Callable[..., Result]
    help: str


OF_TWO = (
    Operation("subtract", lambda a, b: a - b, "A without B."),
    Operation("union", lambda a, b: a | b, "What is in A or B."),
    Operation("intersect", lambda a, b: a & b, "What is in both."),
    Operation("subset", lambda a, b: a <= b, "Is all of A in B? Exit status 0 or 1."),
    Operation("equal", lambda a, b: a == b, "Are they the same? Exit status 0 or 1."),
    Operation("disjoint", lambda a, b: a.is_disjoint(b), "Is nothing in both? Exit status 0 or 1."),
)
OF_ONE = (
    Operation("count", lambda a: a.gtid_count, "How many GTIDs A holds."),
    Operation("holes", lambda a: a.holes(), "What lacks between the first and last of each TSID."),
    Operation("canonical", lambda a: a, "A as MySQL writes it, on one line."),
)

_LABELS = {"only_a": "only A", "only_b": "only B", "both": "both"}

SetA = Annotated[str, typer.Argument(metavar="A", help="Text, @file, or - for standard input.")]
SetB = Annotated[str, typer.Argument(metavar="B", help="Likewise.")]


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Make the family."""
    family = typer.Typer(help="Calculate with GTID sets, offline.", **settings)
    for operation in OF_TWO:
        family.command(operation.name, cls=QuickCommand, help=operation.help)(_of_two(operation))
    for operation in OF_ONE:
        family.command(operation.name, cls=QuickCommand, help=operation.help)(_of_one(operation))
    family.command("diff", cls=QuickCommand)(diff)
    return family


def _of_two(operation: Operation) -> Callable[..., int]:
    def command(a: SetA, b: SetB, *, as_json: AsJson = False) -> int:
        return _answer(operation, operation.compute(*read_operands((a, b))), as_json=as_json)

    return command


def _of_one(operation: Operation) -> Callable[..., int]:
    def command(a: SetA, *, as_json: AsJson = False) -> int:
        return _answer(operation, operation.compute(*read_operands((a,))), as_json=as_json)

    return command


def diff(a: SetA, b: SetB, *, as_json: AsJson = False) -> int:
    """Show what only A has, what only B has, and how they lie to each other."""
    left, right = read_operands((a, b))
    parts = {"only_a": left - right, "only_b": right - left, "both": left & right}
    relation = relate(left, right).value
    if as_json:
        document: dict[str, Any] = {"operation": "diff", "relation": relation}
        document |= {name: _described(part) for name, part in parts.items()}
        write_json(document)
        return exits.OK
    write_line(f"relation  {relation}")
    for name, part in parts.items():
        write_line(f"{_LABELS[name]:<8}  {part.gtid_count:,}  {part}".rstrip())
    return exits.OK


def _answer(operation: Operation, result: Result, *, as_json: bool) -> int:
    if as_json:
        shown = _described(result) if isinstance(result, GtidSet) else result
        write_json({"operation": operation.name, "result": shown})
    elif isinstance(result, bool):
        write_line("true" if result else "false")
    else:
        write_line(str(result))
    return exits.FALSE if result is False else exits.OK


def _described(gtid_set: GtidSet) -> dict[str, Any]:
    return {
        "gtid_set": str(gtid_set),
        "gtid_count": gtid_set.gtid_count,
        "interval_count": gtid_set.interval_count,
        "tsid_count": gtid_set.tsid_count,
    }
