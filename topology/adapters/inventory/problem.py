"""What is wrong with an address, an account or a fleet file, in words for its author."""

from collections.abc import Sequence


class InventoryProblem(Exception):
    """Something the user gave is wrong: an address, an option file, a fleet file, the environment.

    `problems` are shown one per line; none of them holds a secret.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems
