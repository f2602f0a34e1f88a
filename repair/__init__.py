"""Makes a plan from findings: ordered steps, simulated, guarded, and written as SQL scripts.

This package decides and writes; it executes nothing. Only its adapters access servers and files.
"""

from repair.choices import UnknownChoice
from repair.content.failing_event import FailingEvent
from repair.model.strategy_case import LogEvidence
from repair.planner import plan_repair
from repair.repair_plan import NotPlanned, Plan
from repair.scripts.steps import Step

__all__ = [
    "FailingEvent",
    "LogEvidence",
    "NotPlanned",
    "Plan",
    "Step",
    "UnknownChoice",
    "plan_repair",
]
