"""A small process that owns the servers, so that no server outlives the run that started it.

It reads one JSON request per line and replies with one line. It ends when its input closes, on
request, or when its parent has ended. At its end it kills every child and removes the run folder.
If it is killed itself, the kernel kills its children (PR_SET_PDEATHSIG).

Why a separate process: the kernel sends that signal when the *thread* that forked ends, not the
process. Code between fork and exec is also unsafe in a program with threads. This program has one
thread, so no thread of another program affects how long the servers live.

It runs as a script without site-packages, imports nothing of the project, and does not know MySQL.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PARENT_CHECK_SECONDS = 0.5

_libc = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: dlopen in a child may hang


class Ended(Exception):
    """The run has ended."""


def main(run_folder: Path, parent: int) -> None:
    """Serve requests until the run ends, then kill all children and remove the run folder."""
    for unheeded in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(unheeded, _nothing)  # not SIG_IGN, which the children would inherit
    signal.signal(signal.SIGTERM, _end)
    children: dict[int, subprocess.Popen[bytes]] = {}
    try:
        _serve(children, parent)
    except (Ended, BrokenPipeError):
        pass  # the run has ended either way; the code below cleans up
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for child in children.values():
            child.kill()  # SIGKILL also ends a stopped process
        for child in children.values():
            child.wait()
        shutil.rmtree(run_folder, ignore_errors=True)


def _serve(children: dict[int, subprocess.Popen[bytes]], parent: int) -> None:
    pending = b""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _PARENT_CHECK_SECONDS)
        if not readable:
            continue
        received = os.read(0, 65536)
        if not received:
            raise Ended
        *lines, pending = (pending + received).split(b"\n")
        for line in lines:
            request = json.loads(line)
            try:
                answer = _REQUESTS[request["do"]](children, request)
            except OSError as failure:
                answer = {"failure": str(failure)}
            os.write(1, json.dumps(answer).encode() + b"\n")
    raise Ended


def _nothing(*_arguments: object) -> None:
    pass


def _end(*_arguments: object) -> None:
    raise Ended


def _start(children: dict[int, subprocess.Popen[bytes]], request: dict[str, Any]) -> dict[str, Any]:
    supervisor = os.getpid()

    def die_with_supervisor() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:  # it died before prctl took effect
            os._exit(1)

    with Path(request["output"]).open("ab") as output:
        child = subprocess.Popen(
            request["command"],
            cwd=request["folder"],
            env=request["environment"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with_supervisor,  # noqa: PLW1509 - this program has one thread
        )
    children[child.pid] = child
    return {"pid": child.pid}


def _signal(
    children: dict[int, subprocess.Popen[bytes]], request: dict[str, Any]
) -> dict[str, Any]:
    """Signal a child. The pid of one that has ended is not reused, so no other process is hit."""
    children[request["pid"]].send_signal(request["signal"])
    return {}


def _status(
    children: dict[int, subprocess.Popen[bytes]], request: dict[str, Any]
) -> dict[str, Any]:
    return {"status": children[request["pid"]].poll()}


def _finish(
    _children: dict[int, subprocess.Popen[bytes]], _request: dict[str, Any]
) -> dict[str, Any]:
    raise Ended


_REQUESTS: dict[
    str, Callable[[dict[int, subprocess.Popen[bytes]], dict[str, Any]], dict[str, Any]]
] = {"start": _start, "signal": _signal, "status": _status, "finish": _finish}

if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
