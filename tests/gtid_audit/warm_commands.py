"""Processes of `gtid-audit` that have imported it already.

How it works: half a second of processor time, most of what a command costs on a small cluster, is
imports. Python's fork server is a process of its own, without threads and without pytest. It
imports the program once for each process of tests. Each command is a fork of it: a process with its
own environment, folder and standard streams, whose exit status is that of `main`.

What a fork cannot show is tested on programs that start from nothing (`run_program` in build.py):
what is imported when, variables that Python itself reads, and signals.
"""

import importlib
import io
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

from gtid_audit.cli import PROGRAM, main

_STREAMS = (
    ("stdin", os.O_RDONLY),
    ("stdout", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ("stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
)
# What commands import when they run. Libraries that start threads stay out: a fork has none.
_IMPORTED = ("gtid_audit.tasks", "gtid_audit.views", "topology.adapters", "repair.adapters")
_NOT_IMPORTED = "gtid_audit.tasks.ledger_scan"


def run_warm(
    arguments: Sequence[str], *, environment: Mapping[str, str], stdin: bytes, seconds_max: float
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a process of its own; raise TimeoutExpired if it takes longer."""
    with tempfile.TemporaryDirectory(prefix="command-") as folder:
        place = Path(folder)
        (place / "stdin").write_bytes(stdin)
        process = _context().Process(
            target=_run, args=(list(arguments), dict(environment), str(Path.cwd()), folder)
        )
        process.start()
        process.join(seconds_max)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
        process.close()
        command = [PROGRAM, *arguments]
        if status is None:
            raise subprocess.TimeoutExpired(command, seconds_max)
        printed = [(place / name).read_bytes() for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess(command, status, *printed)


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # read when the fork server starts, then not again
    return context


def _run(arguments: list[str], environment: dict[str, str], folder: str, streams: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (name, flags) in enumerate(_STREAMS):
        opened = os.open(Path(streams) / name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), encoding="utf-8")
        for number in (1, 2)
    )
    sys.argv = [PROGRAM, *arguments]
    main()


def _import_commands() -> None:
    for package in _IMPORTED:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            name = f"{package}.{module.name}"
            if name != _NOT_IMPORTED:
                importlib.import_module(name)


if "pytest" not in sys.modules:  # in the fork server
    _import_commands()
