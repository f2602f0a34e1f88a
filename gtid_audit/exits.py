"""How a run ends: exit status as monitoring plugins use it, and the two ways to fail.

0 to 3 are verdicts. Whatever is not a verdict must not look like one: wrong usage, configuration or
operands are 64 (sysexits.h, EX_USAGE), a defect of ours is 70 (EX_SOFTWARE), a reader of our output
who went away is 141 (what a shell shows for SIGPIPE), an interrupt is 130.
"""

from collections.abc import Sequence
from typing import Final

from topology.adapters.inventory.problem import InventoryProblem
from topology.findings import Verdict

OK: Final = 0
FALSE: Final = 1  # a predicate that does not hold
USAGE: Final = 64
DEFECT: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

_OF_VERDICT: Final = {
    Verdict.OK: 0,
    Verdict.WARNING: 1,
    Verdict.CRITICAL: 2,
    Verdict.UNKNOWN: 3,
}


class UsageProblem(Exception):
    """Something the user gave is wrong: command line, file, operand, environment. Exit status 64.

    `problems` are shown one per line; none of them holds a secret.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems


# Both are shown line by line, and end in USAGE.
USAGE_PROBLEMS: Final = (UsageProblem, InventoryProblem)


def status_of(verdict: Verdict) -> int:
    """Return the exit status of a verdict."""
    return _OF_VERDICT[verdict]
