"""The manual instruction of a strategy for one finding, as a plan shows it."""

from repair.model.replication_model import Model
from repair.strategies.instruction_context import Situation
from repair.strategies.strategy_registry import REPAIRS
from topology.catalogue.findings import Finding


def by_hand(name: str, finding: Finding, model: Model) -> str:
    """Return the manual instruction for a strategy that has no script."""
    instruction = REPAIRS[name].instruction
    assert instruction is not None, f"{name} has a script"
    return instruction(Situation(finding, model))
