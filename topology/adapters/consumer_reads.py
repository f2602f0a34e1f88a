"""Reads the sets that consumers have stored: from a file, or from the output of a command.

1. A command is run by command_output.py, which limits its time and its output.
2. Each failure is the reason why the set is not known. Nothing is raised for what a consumer, a
   file or a command does.
3. Consumers are read at the same time, each in a daemon thread: a file system that hangs must not
   keep the process alive. What hangs in the first reading is not waited for again.
4. A place is shown as a path or as the name of a program. Arguments may contain secrets.
"""

import queue
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gtid import GtidSet
from topology.adapters.command_output import CommandFailed, output_of
from topology.adapters.consumer_source import ConsumerSource, printable
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.set_in_text import NoSetInText, set_in_text
from topology.readings.target import Secret

# A stored set has kilobytes. A dump can have any size, and its set is near its beginning.
STORED_BYTES_MAX: Final = 16 * 1024**2
_GRACE_SECONDS: Final = 0.5  # the reader's own time limit gives the better message


class UnreadConsumer(Exception):
    """The set of a consumer could not be read, with the reason."""


def read_first(
    sources: Sequence[ConsumerSource], *, seconds_max: float, secrets: Sequence[Secret] = ()
) -> dict[str, OfferedReading]:
    """Return the first reading of each consumer, by name.

    Never raises for what a consumer does. `secrets` are hidden in what a command says of itself.
    """
    found = _read_all(sources, seconds_max, secrets)
    ended = datetime.now(UTC)
    return {name: _reading(ended, each) for name, each in found.items()}


def read_last(
    sources: Sequence[ConsumerSource],
    first: Mapping[str, OfferedReading],
    *,
    seconds_max: float,
    secrets: Sequence[Secret] = (),
) -> tuple[ConsumerReading, ...]:
    """Return both readings of each consumer, in order of name.

    What could not be read at first is not read again: one reading proves nothing.
    """
    begun = datetime.now(UTC)
    again = [each for each in sources if not first[each.name].unread]
    found = _read_all(again, seconds_max, secrets)
    return tuple(
        ConsumerReading(
            name=source.name,
            server=source.server,
            place=source.place,
            is_fixed=source.gtid_set is not None,
            first=first[source.name],
            last=_reading(begun, found.get(source.name, first[source.name].unread)),
        )
        for source in sorted(sources, key=lambda each: each.name)
    )


def _reading(at: datetime, found: GtidSet | str) -> OfferedReading:
    return OfferedReading(at, None, found) if isinstance(found, str) else OfferedReading(at, found)


def _read_all(
    sources: Sequence[ConsumerSource], seconds_max: float, secrets: Sequence[Secret]
) -> dict[str, GtidSet | str]:
    """Return the set of each consumer, or why it could not be read."""
    answers: queue.SimpleQueue[tuple[str, GtidSet | str | BaseException]] = queue.SimpleQueue()

    def work(source: ConsumerSource) -> None:
        try:
            answers.put((source.name, _set_of(source, seconds_max)))
        except UnreadConsumer as problem:
            answers.put((source.name, str(problem)))
        except BaseException as error:  # noqa: BLE001 - passed to the caller, which reports it
            answers.put((source.name, error))

    for source in sources:
        name = f"reader of {source.name}"
        threading.Thread(target=work, args=(source,), name=name, daemon=True).start()
    end = time.monotonic() + seconds_max + _GRACE_SECONDS
    late = f"no answer within {seconds_max:g} seconds"
    found: dict[str, GtidSet | str] = {each.name: f"{each.place}: {late}" for each in sources}
    for _ in sources:
        try:
            name, answer = answers.get(timeout=max(end - time.monotonic(), 0.0))
        except queue.Empty:
            break
        if isinstance(answer, BaseException):
            if not isinstance(answer, Exception):
                raise answer
            answer = f"defect of the auditor: {type(answer).__name__}: {answer}"
        if isinstance(answer, str):
            for secret in secrets:
                answer = secret.hidden_in(answer)
        found[name] = answer
    return found


def _set_of(source: ConsumerSource, seconds_max: float) -> GtidSet:
    """Return the set of one consumer. Raises UnreadConsumer."""
    if source.gtid_set is not None:
        return source.gtid_set
    where = source.place
    try:
        if source.file is not None:
            content = _content_of(source.file)
        else:
            content = _output_of(source.command, source.directory, seconds_max)
    except OSError as error:
        raise UnreadConsumer(f"{where}: {error.strerror or error}") from error
    except UnreadConsumer as problem:
        raise UnreadConsumer(f"{where}: {problem}") from problem
    try:
        return set_in_text(content.decode(), where)
    except UnicodeDecodeError as error:
        raise UnreadConsumer(f"{where}: not UTF-8 at byte {error.start}") from error
    except NoSetInText as problem:
        raise UnreadConsumer(printable(str(problem))) from problem


def _content_of(file: Path) -> bytes:
    """Return the content of a file. Raises OSError, UnreadConsumer."""
    # Opening a pipe that no process writes to would wait for one.
    if not stat.S_ISREG(file.stat().st_mode):
        raise UnreadConsumer("not a regular file")
    with file.open("rb") as opened:
        content = opened.read(STORED_BYTES_MAX + 1)
    if len(content) > STORED_BYTES_MAX:
        raise UnreadConsumer(
            f"more than the limit of {STORED_BYTES_MAX:,} bytes; for a dump, use a command that"
            " prints its first lines"
        )
    return content


def _output_of(command: Sequence[str], directory: Path | None, seconds_max: float) -> bytes:
    """Return what a command prints. Raises OSError, UnreadConsumer."""
    try:
        return output_of(
            command, directory=directory, seconds_max=seconds_max, bytes_max=STORED_BYTES_MAX
        )
    except CommandFailed as failure:
        raise UnreadConsumer(str(failure)) from failure
