"""From findings to a plan: ordered steps, simulated, guarded, and written as SQL scripts.

This package decides and writes; it runs nothing. Only its adapters touch servers and files.
"""

from repair.case import LogEvidence
from repair.choices import UnknownChoice
from repair.evidence import FailingEvent
from repair.plan import NotPlanned, Plan
from repair.planner import plan_repair
from repair.steps import Step

__all__ = [
    "FailingEvent",
    "LogEvidence",
    "NotPlanned",
    "Plan",
    "Step",
    "UnknownChoice",
    "plan_repair",
]
