"""Finds the log files of an operand, and reads what their headers and footers contain.

1. For a directory or a pattern, only files that are named like a server's logs count: the name ends
   in a number. Index files and other files in the directory are ignored. A file that the operand
   names explicitly is always taken. A link to nothing or a pipe with such a name is refused: the
   result would be that of fewer logs.
2. Driver and executors must see the files under the same path. Addresses of other file systems
   (hdfs://, s3a://) are refused: a ledger needs memory-mapped files.
3. A few kilobytes at both ends of a file show which transactions it cannot contain. If they cannot
   be read, nothing is known about the file. It is then read as a whole, which reports the error.
"""

import glob
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from binlog.adapters.byte_ranges import CHUNK_BYTES, read_between
from binlog.decode import FIRST_POSITION, decode_event
from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.events import ChecksumAlgorithm, FormatDescription, Rotate
from binlog.header import HEADER_BYTES, parse_header
from binlog.scan import LogHead, read_head
from spark_audit.binlog_skipping import LogFacts
from topology.adapters.inventory.problem import InventoryProblem

FILES_MAX: Final = 1_000_000
# One task per file up to this number of files. With more files, small ones share a task.
TASKS_OF_ONE_FILE_MAX: Final = 256
TASK_BYTES: Final = 128 * 1024**2

_NUMBERED = re.compile(r".+\.[0-9]{6,}")  # sql/binlog.cc, generate_new_name: "%s.%06lu"
_PATTERN = re.compile(r"[*?\[]")
_HEAD_CHUNK_BYTES: Final = 16 * 1024
_HEAD_BYTES_MAX: Final = CHUNK_BYTES
_CHECKSUM_BYTES: Final = 4
_FLAG_RELAY_LOG: Final = 0x40  # LOG_EVENT_RELAY_LOG_F, sql/log_event.h
_POSITION_END: Final = 1 << 32


def files_of(places: Sequence[str]) -> tuple[str, ...]:
    """Return the files of the operands, each once, in order. Raises InventoryProblem."""
    problems = []
    found: set[str] = set()
    for place in places:
        try:
            meant = _files_at(_local(place))
        except ValueError as problem:
            problems.append(f"{place}: {problem}")
            continue
        if not meant:
            problems.append(f"{place}: contains no log files")
        found.update(meant)
    if len(found) > FILES_MAX:
        problems.append(f"more than {FILES_MAX:,} files")
    if problems:
        raise InventoryProblem(*problems)
    return tuple(sorted(found))


def tasks_of(files: Sequence[str]) -> list[tuple[str, ...]]:
    """Assign files to tasks: one file each, or, if there are many, small neighbours together."""
    if len(files) <= TASKS_OF_ONE_FILE_MAX:
        return [(file,) for file in files]
    tasks: list[tuple[str, ...]] = []
    held: list[str] = []
    held_bytes = 0
    for file in files:
        size = _bytes_of(file)
        if held and held_bytes + size > TASK_BYTES:
            tasks.append(tuple(held))
            held, held_bytes = [], 0
        held.append(file)
        held_bytes += size
    return [*tasks, tuple(held)]


def facts_of(files: Iterable[str]) -> dict[str, dict[str, LogFacts]]:
    """Return the facts from both ends of each readable file, by folder and name."""
    folders: dict[str, dict[str, LogFacts]] = {}
    for file in files:
        path = Path(file)
        try:
            facts = _facts_of(path)
        except (BinlogError, OSError):
            continue  # rule 3
        folders.setdefault(str(path.parent), {})[path.name] = facts
    return {folder: _with_ends(Path(folder), facts) for folder, facts in folders.items()}


# -- paths ----------------------------------------------------------------------------------------


def _local(place: str) -> str:
    address = urlsplit(place)
    if address.scheme in ("", "file"):
        return unquote(address.path) if address.scheme else place
    raise ValueError(
        f"{address.scheme}:// is not a file system that every machine has mounted; copy the files"
        " to one, or mount it"
    )


def _files_at(place: str) -> list[str]:
    path = Path(place).absolute()
    if path.is_file():
        return [str(path)]
    if path.is_dir():
        return [str(each) for each in path.iterdir() if _is_log(each)]
    if _PATTERN.search(place):
        return [name for name in glob.glob(str(path), recursive=True) if _is_log(Path(name))]  # noqa: PTH207 - Path.glob takes no absolute pattern
    raise ValueError("no such file or directory")


def _is_log(path: Path) -> bool:
    if _NUMBERED.fullmatch(path.name) is None or path.is_dir():
        return False
    if not path.is_file():
        raise ValueError(f"{path} is not a regular file, or a link to nothing")
    return True


def _bytes_of(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0  # the file is gone: the task that reads it reports the error


# -- the two ends ---------------------------------------------------------------------------------


def _facts_of(path: Path) -> LogFacts:
    """Read the events at the start of a file. Raises BinlogError, OSError."""
    chunks = read_between(path, 0, _HEAD_BYTES_MAX, chunk_bytes=_HEAD_CHUNK_BYTES)
    opening = next(chunks, b"")
    head: LogHead = read_head(chain([opening], chunks), file=path.name)
    first = parse_header(opening, FIRST_POSITION)
    return LogFacts(
        previous_gtids=head.previous_gtids,
        opened_at_seconds=first.timestamp_seconds,
        server_version=_version(head.description),
        is_opened_by_start=head.description.created_at_seconds != 0,
        is_relay_log=bool(first.flags & _FLAG_RELAY_LOG),
    )


def _version(description: FormatDescription) -> tuple[int, ...]:
    """Return the leading numbers of a version: (5, 6, 24) for 5.6.24-log."""
    found = re.match(r"([0-9]+)\.([0-9]+)\.([0-9]+)", description.server_version)
    return tuple(map(int, found.groups())) if found else ()


def _with_ends(folder: Path, facts: Mapping[str, LogFacts]) -> dict[str, LogFacts]:
    """Add, for each file whose last event is a ROTATE to the next of these files, that fact."""
    names = sorted(facts)
    followers = dict(pairwise(names))
    return {name: _with_end(folder, facts[name], name, followers.get(name)) for name in names}


def _with_end(folder: Path, facts: LogFacts, name: str, follower: str | None) -> LogFacts:
    if follower is None:
        return facts
    try:
        rotated_at_seconds = _rotated_to(folder / name, follower)
    except (BinlogError, OSError):
        return facts  # rule 3
    if rotated_at_seconds is None:
        return facts
    return replace(facts, rotates_to=follower, rotated_at_seconds=rotated_at_seconds)


def _rotated_to(path: Path, follower: str) -> int | None:
    """Return when the last event was written, if it is a ROTATE to that file; otherwise None.

    The file name determines the length of the event, and so its position, with or without a
    checksum. Raises CorruptBinlog, OSError.
    """
    body_bytes = 8 + len(follower.encode())  # Rotate_log_event: a position, and the name
    size = path.stat().st_size
    for checksum, more in ((ChecksumAlgorithm.CRC32, _CHECKSUM_BYTES), (ChecksumAlgorithm.NONE, 0)):
        length = HEADER_BYTES + body_bytes + more
        if size < FIRST_POSITION + length:
            continue
        raw = b"".join(read_between(path, size - length, size))
        header = parse_header(raw)
        is_it = (header.type_code, header.event_bytes) == (EventType.ROTATE, length)
        if not is_it or header.end_log_pos != size % _POSITION_END:
            continue
        event = decode_event(
            raw,
            file=path.name,
            start=size - length,
            end=size,
            description=None,
            checksum=checksum,
        )
        if isinstance(event.body, Rotate) and event.body.next_file == follower:
            return header.timestamp_seconds
    return None
