"""The error for an invalid address, account or fleet file, as text for its author."""

from collections.abc import Sequence


class InventoryProblem(Exception):
    """A user's input is wrong: an address, an option file, a fleet file, the environment.

    `problems` are shown one per line; none of them contains a secret.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems
