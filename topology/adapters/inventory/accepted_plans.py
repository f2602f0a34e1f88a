"""Reads the plans whose outcome a policy accepts: plan.json, or the directory that contains it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from topology.adapters.inventory.problem import InventoryProblem
from topology.facts.accepted import (
    APPLIED_FILE,
    AcceptedRepair,
    NotAPlan,
    accepted_from_plan,
    applied_by_from_text,
)

_PLAN: Final = "plan.json"
_BYTES_MAX: Final = 256 << 20
_Read = TypeVar("_Read")


def read_accepted(paths: Iterable[Path]) -> tuple[AcceptedRepair, ...]:
    """Read plans, in order. Raises InventoryProblem that lists every unreadable plan."""
    found, problems = [], []
    for path in paths:
        try:
            found.append(read_accepted_plan(path))
        except InventoryProblem as problem:
            problems.append(str(problem))
    if problems:
        raise InventoryProblem(*problems)
    return tuple(found)


def read_accepted_plan(path: Path) -> AcceptedRepair:
    """Read one plan, and who applied it. Raises InventoryProblem."""
    file = path / _PLAN if path.is_dir() else path
    repair = _parsed(file, accepted_from_plan)
    record = file.with_name(APPLIED_FILE)
    if not record.exists():
        return repair
    by = _parsed(record, lambda text: applied_by_from_text(text, repair.plan_id))
    return replace(repair, applied_by=by)


def _parsed(file: Path, parse: Callable[[str], _Read]) -> _Read:
    """Read a file and parse its text. Raises InventoryProblem."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_BYTES_MAX + 1)
    except OSError as error:
        raise InventoryProblem(f"{file}: {error.strerror or error}") from error
    if len(content) > _BYTES_MAX:
        raise InventoryProblem(f"{file}: larger than {_BYTES_MAX:,} bytes")
    try:
        return parse(content.decode())
    except (NotAPlan, UnicodeDecodeError) as problem:
        what = str(problem) if isinstance(problem, NotAPlan) else "not UTF-8"
        raise InventoryProblem(f"{file}: {what}") from problem
