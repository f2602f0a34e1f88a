"""The program in a process that kills itself at one moment of its work, as nobody could time it.

    python -m tests.gtid_audit.mortal within|after NUMBER ARGUMENT...

It ends within the transaction of the schema store that has this number, all of which is written and
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


def arm(moment: str, number: int) -> None:
    """Have this process end at that moment."""
    transaction, begun = SchemaStore._transaction, 0

    def end_if(now: str) -> None:
        if begun == number and now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def mortal(self: SchemaStore) -> Iterator[None]:
        nonlocal begun
        begun += 1
        with transaction(self):
            yield
            end_if(WITHIN)
        end_if(AFTER)

    SchemaStore._transaction = mortal  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    del sys.argv[1:3]
    main()
