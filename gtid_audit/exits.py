"""The exit statuses, as monitoring plugins use them, and the two kinds of failure.

0 to 3 are verdicts, and only verdicts. Wrong usage, configuration or operands end in 64
(sysexits.h, EX_USAGE). So does an output that cannot be written, which a monitoring system takes
for UNKNOWN; only a repair that had begun ends in 2 then. A defect of ours is 70 (EX_SOFTWARE). If
the reader of our output closed it, the status is 141 (what a shell shows for SIGPIPE); after an
interrupt it is 130.
"""

from collections.abc import Sequence
from typing import Final

from topology.adapters.inventory.problem import InventoryProblem
from topology.catalogue.findings import Verdict

OK: Final = 0
FALSE: Final = 1  # a predicate is false
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
    """The user's input is wrong: command line, file, operand, environment. Exit status 64.

    `problems` are shown one per line. None of them contains a secret.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems


class UnreadableInput(UsageProblem):
    """What the user named is there and cannot be used: a stored run that is damaged, say."""


# Both are shown line by line, with exit status USAGE.
USAGE_PROBLEMS: Final = (UsageProblem, InventoryProblem)


def status_of(verdict: Verdict) -> int:
    """Return the exit status of a verdict."""
    return _OF_VERDICT[verdict]
