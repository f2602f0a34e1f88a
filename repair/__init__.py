"""Makes a plan from findings: ordered steps, simulated, guarded, and written as SQL scripts.

This package decides and writes; it executes nothing. Only its adapters access servers and files.

The names below are imported when they are used: `binlog show --redo` needs `repair.sql` alone, and
the planner takes a quarter of a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repair.choices import UnknownChoice
    from repair.content.failing_event import FailingEvent
    from repair.model.strategy_case import LogEvidence
    from repair.planner import plan_repair
    from repair.repair_plan import NotPlanned, Plan
    from repair.scripts.steps import Step

_MODULES = {
    "FailingEvent": "repair.content.failing_event",
    "LogEvidence": "repair.model.strategy_case",
    "NotPlanned": "repair.repair_plan",
    "Plan": "repair.repair_plan",
    "Step": "repair.scripts.steps",
    "UnknownChoice": "repair.choices",
    "plan_repair": "repair.planner",
}

__all__ = [
    "FailingEvent",
    "LogEvidence",
    "NotPlanned",
    "Plan",
    "Step",
    "UnknownChoice",
    "plan_repair",
]


def __getattr__(name: str) -> object:
    """Import the module of a name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
