"""The manual instruction of a strategy for one finding, as a plan shows it."""

from typing import Final

from repair.model.replication_model import Model
from repair.model.strategy_case import NOTHING_BESIDE, KnownBeside
from repair.strategies.blocking_sessions import BLOCKED, known_kill
from repair.strategies.instruction_context import Situation
from repair.strategies.strategy_registry import REPAIRS
from topology.catalogue.findings import Finding

_KILL: Final = "kill_blocker"


def by_hand(name: str, finding: Finding, model: Model, beside: KnownBeside = NOTHING_BESIDE) -> str:
    """Return the manual instruction for a strategy that has no script."""
    instruction = REPAIRS[name].instruction
    assert instruction is not None, f"{name} has a script"
    return instruction(Situation(finding, model, beside))


def also_by_hand(finding: Finding, model: Model, beside: KnownBeside) -> tuple[str, ...]:
    """Return what the operator can do besides the strategies of a finding.

    An applier that stands still without a visible lock (A8) may wait for a session by now.
    """
    if finding.code not in BLOCKED or any(each.name == _KILL for each in finding.strategies):
        return ()
    known = known_kill(Situation(finding, model, beside))
    return (f"{_KILL}: {known}",) if known else ()
