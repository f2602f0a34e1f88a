"""Starts a process that goes on with a procedure after this one has ended."""

import os
import sys
from pathlib import Path

from repair.applying.procedures_applied import AppliedProcedure


def start_in_background(journal: Path, procedure: AppliedProcedure) -> Path:
    """Start `repair resume` for a procedure, and return the file of its events and errors.

    The process has its own session: Ctrl-C on this terminal does not reach it. What it needs is in
    the journal; a password that was typed is not.
    """
    log = journal.with_name(f"{journal.name}.{procedure.id}.log")
    command = [sys.executable, "-m", "gtid_audit", "repair", "resume", procedure.id, "--yes"]
    os.posix_spawn(
        sys.executable,
        [*command, "--journal", str(journal), "--json-lines"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return log
