"""The options of every command: --quiet, --no-color, --debug. `run` of cli.py resets them.

They are state of one process, because they concern how it writes, and not what it evaluates. No
core module reads them.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class GlobalOptions:
    """How this run writes."""

    is_debug: bool = False
    is_quiet: bool = False  # no progress, no hints, and of a verdict's text only the first line
    has_color: bool = True  # NO_COLOR of the environment is read where colours are written

    def reset(self) -> None:
        """Return to the defaults: a process may run several commands, one after another."""
        self.is_debug, self.is_quiet, self.has_color = False, False, True


GLOBAL_OPTIONS = GlobalOptions()
