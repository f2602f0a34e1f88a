"""Makes a plan from findings: ordered steps, simulated, guarded, and written as SQL scripts.

This package decides and writes; it executes nothing. Only its adapters access servers and files.
"""

from repair.choices import UnknownChoice
from repair.failing_event import FailingEvent
from repair.planner import plan_repair
from repair.repair_plan import NotPlanned, Plan
from repair.steps import Step
from repair.strategy_case import LogEvidence

__all__ = [
    "FailingEvent",
    "LogEvidence",
    "NotPlanned",
    "Plan",
    "Step",
    "UnknownChoice",
    "plan_repair",
]
