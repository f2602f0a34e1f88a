"""Runs a command of the operator, and returns what it prints.

1. It is run without a shell, in its own session, with no input.
2. It costs its time limit at most: then it and its children in that session are killed.
3. Its output is read up to a limit. Of what it writes to its standard error, the last line is part
   of the reason for a failure; the caller hides secrets in it.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from topology.adapters.consumer_source import printable

_ERROR_BYTES_MAX: Final = 4_096
_SHOWN_CHARS: Final = 200
_PIECE_BYTES: Final = 64 * 1024


class CommandFailed(Exception):
    """A command that did not print its output, with the reason."""


def output_of(
    command: Sequence[str], *, directory: Path | None, seconds_max: float, bytes_max: int
) -> bytes:
    """Return what a command prints. Raises OSError, CommandFailed."""
    end = time.monotonic() + seconds_max
    with subprocess.Popen(  # noqa: S603 - the operator's own command, and no shell
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory,
        start_new_session=True,
    ) as process:
        try:
            output, said = _pipes_of(process, end, bytes_max)
            status = process.wait(timeout=max(end - time.monotonic(), 0.0))
        except (_Late, subprocess.TimeoutExpired):
            _kill(process)
            raise CommandFailed(f"no answer within {seconds_max:g} seconds") from None
        except BaseException:
            _kill(process)
            raise
    if status != 0:
        how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
        lines = said.decode(errors="backslashreplace").strip().splitlines()
        raise CommandFailed(how + (f": {printable(lines[-1])[:_SHOWN_CHARS]}" if lines else ""))
    return output


class _Late(Exception):
    """A command has not closed its output in time."""


def _pipes_of(
    process: "subprocess.Popen[bytes]", end: float, bytes_max: int
) -> tuple[bytes, bytes]:
    """Return what a command writes to its two outputs; of the second one, the last bytes."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, said = bytearray(), bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ, output)
        waiting.register(process.stderr, selectors.EVENT_READ, said)
        while waiting.get_map():
            left = end - time.monotonic()
            ready = waiting.select(left) if left > 0 else []
            if not ready:
                raise _Late
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE_BYTES)
                key.data.extend(piece)
                if not piece:
                    waiting.unregister(key.fileobj)
            del said[:-_ERROR_BYTES_MAX]
            if len(output) > bytes_max:
                raise CommandFailed(f"more than the limit of {bytes_max:,} bytes")
    return bytes(output), bytes(said)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a command that was not waited for, and its children in its session."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
