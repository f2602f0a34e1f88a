"""From findings to a plan: ordered steps, simulated, guarded, and written as SQL scripts.

This package decides and writes; it runs nothing. Only its adapters touch servers and files.
"""

from repair.evidence import FailingEvent
from repair.plan import NotPlanned, Plan
from repair.planner import UnknownChoice, plan_repair
from repair.steps import Step

__all__ = ["FailingEvent", "NotPlanned", "Plan", "Step", "UnknownChoice", "plan_repair"]
