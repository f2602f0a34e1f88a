"""Run the command line in a process that signals itself at one exact moment of its work.

    python -m tests.gtid_audit.crashing_command SIGNAL within|after NUMBER ARGUMENT...

That is within the transaction of the schema store that has this number, all of which is written and
nothing of it committed, or right after it.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from binlog.adapters.schema_store import SchemaStore
from gtid_audit.cli import main

WITHIN, AFTER = "within", "after"


def command(signal_: signal.Signals, moment: str, number: int, *arguments: str) -> list[str]:
    """Return what starts such a process."""
    given = (signal_.name, moment, str(number))
    return [sys.executable, "-m", "tests.gtid_audit.crashing_command", *given, *arguments]


def arm(signal_: signal.Signals, moment: str, number: int) -> None:
    """Have this process signal itself at that moment."""
    transaction, begun = SchemaStore._transaction, 0

    def end_if(now: str) -> None:
        if begun == number and now == moment:
            os.kill(os.getpid(), signal_)

    @contextmanager
    def signalling(self: SchemaStore) -> Iterator[None]:
        nonlocal begun
        begun += 1
        with transaction(self):
            yield
            end_if(WITHIN)
        end_if(AFTER)

    # In this process alone: every save goes through here, and nothing of the program knows of it.
    SchemaStore._transaction = signalling  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(signal.Signals[sys.argv[1]], sys.argv[2], int(sys.argv[3]))
    del sys.argv[1:4]
    main()
