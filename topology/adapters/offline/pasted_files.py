"""Reads a directory with pasted output: one file for each server, or two for two readings.

1. `db1.txt` is the only reading of db1. `db1.first.txt` and `db1.second.txt` are its first and its
   second reading. The extension may be any other one, or be absent.
2. All first readings must have ended before any second one began: so differences that only timing
   explains disappear (adapters/collect.py). The names state the order, and the times in
   the files must agree with it. A server with one reading: topology/readings/read_once.py.
3. A file that cannot be used is an error with its name and line (InventoryProblem), never left
   out. Hidden files, whose names begin with a dot, are.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.offline.facts_of_file import PastedFile
from topology.adapters.offline.pasted_facts import clock_in, reading_of
from topology.adapters.offline.pasted_output import parse_output
from topology.adapters.offline.pasted_sets import PastedSetProblem
from topology.readings.read_once import as_last_reading
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

# A set of a million intervals is about 20 MB of text. Output of one server is parsed in memory.
FILE_BYTES_MAX: Final = 64 << 20
FILES_MAX: Final = 1_000  # of one cluster
_NAME: Final = re.compile(
    r"(?P<server>.+?)(?:\.(?P<round>first|second))?(?:\.(?!first$|second$)[A-Za-z]\w{0,9})?"
)
_ONLY, _FIRST, _SECOND = "", "first", "second"
_PROCESS: Final = ("hostname", "port", "datadir")


@dataclass(frozen=True, slots=True)
class _Pasted:
    """One file and its reading."""

    file: str
    reading: ServerSnapshot
    clock: datetime | None  # of the server


def read_pasted(directory: Path, *, cluster: str) -> ClusterSnapshot:
    """Return what the files of a directory show. Raises InventoryProblem with every problem."""
    problems: list[str] = []
    found: dict[str, dict[str, _Pasted]] = defaultdict(dict)
    for path in _files(directory):
        named = _NAME.fullmatch(path.name)
        assert named is not None, "every name has a first character"
        server, which = named["server"], named["round"] or _ONLY
        if which in found[server]:
            problems.append(f"{path}: {found[server][which].file} is also {_words(which)} {server}")
            continue
        try:
            found[server][which] = _read(path, server=server, which=which, cluster=cluster)
        except InventoryProblem as problem:
            problems.extend(problem.problems)
    if problems:
        raise InventoryProblem(*problems)
    problems.extend(_wrong_rounds(found))
    problems.extend(_one_server_twice(found))
    problems.extend(_wrong_order(found))
    if problems:
        raise InventoryProblem(*problems)
    first, last = [], []
    for server in sorted(found):
        files = found[server]
        early = files.get(_FIRST) or files[_ONLY]
        first.append(early.reading)
        late = files.get(_SECOND)
        last.append(as_last_reading(early.reading) if late is None else late.reading)
    return ClusterSnapshot(cluster, tuple(first), tuple(last))


def _files(directory: Path) -> list[Path]:
    """Return the files, in order of name. Raises InventoryProblem."""
    try:
        paths = sorted(each for each in directory.iterdir() if not each.name.startswith("."))
        folders = [each for each in paths if not each.is_file()]
    except OSError as error:
        raise InventoryProblem(f"{directory}: {error.strerror or error}") from error
    if folders:
        raise InventoryProblem(*(f"{each}: not a file" for each in folders))
    if not paths:
        raise InventoryProblem(f"{directory}: no files; expected one for each server, as db1.txt")
    if len(paths) > FILES_MAX:
        raise InventoryProblem(f"{directory}: {len(paths):,} files; the maximum is {FILES_MAX:,}")
    return paths


def _read(path: Path, *, server: str, which: str, cluster: str) -> _Pasted:
    try:
        with path.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        saved_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise InventoryProblem(f"{path}: {error.strerror or error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise InventoryProblem(f"{path}: larger than {FILE_BYTES_MAX:,} bytes")
    output = parse_output(_decoded(content))
    if output.is_empty:
        raise InventoryProblem(
            f"{path}: nothing in it was recognised; expected output of the mysql client, lines of"
            " an error log, or the header of a dump"
        )
    source = PastedFile(path.name, server, cluster, saved_at)
    try:
        reading = reading_of(output, source, phase=2 if which == _SECOND else 1)
    except PastedSetProblem as problem:
        raise InventoryProblem(f"{path}:{problem.line}: {problem}") from problem
    try:
        clock = clock_in(output)
    except ValueError:
        clock = None  # the reading has it as unread
    return _Pasted(str(path), reading, clock)


def _decoded(content: bytes) -> str:
    """Return the text. PowerShell writes UTF-16; messages may be in any character set."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def _words(which: str) -> str:
    return {_ONLY: "the output of"}.get(which, f"the {which} reading of")


def _wrong_rounds(found: Mapping[str, Mapping[str, _Pasted]]) -> Iterator[str]:
    """Yield the servers whose files do not make one or two readings."""
    for server, files in sorted(found.items()):
        if _ONLY in files and len(files) > 1:
            others = ", ".join(files[which].file for which in (_FIRST, _SECOND) if which in files)
            yield (
                f"{files[_ONLY].file}: {others} is there too: name them {server}.first and"
                f" {server}.second"
            )
        elif _SECOND in files and _FIRST not in files:
            yield f"{files[_SECOND].file}: there is no first reading, {server}.first"
        elif _SECOND in files:
            yield from _not_later(files[_FIRST], files[_SECOND])


def _not_later(first: _Pasted, second: _Pasted) -> Iterator[str]:
    if first.reading.server_uuid != second.reading.server_uuid:
        yield (
            f"{second.file}: server_uuid {second.reading.server_uuid};"
            f" {first.file} has {first.reading.server_uuid}"
        )
    if first.clock is None or second.clock is None:
        yield (
            f"{second.file}: nothing shows that it is later than {first.file}; run SELECT"
            " UTC_TIMESTAMP(6) AS server_clock in both"
        )
    elif second.clock <= first.clock:
        yield f"{second.file}: the server's clock shows no later time than in {first.file}"


def _one_server_twice(found: Mapping[str, Mapping[str, _Pasted]]) -> Iterator[str]:
    """Yield the files of one server under two names. A copied auto.cnf is another case: C1."""
    by_uuid: dict[object, list[_Pasted]] = defaultdict(list)
    for _, files in sorted(found.items()):
        one = next(iter(files.values()))
        if one.reading.server_uuid is not None:
            by_uuid[one.reading.server_uuid].append(one)
    for uuid, pasted in by_uuid.items():
        for other in pasted[1:]:
            if not _are_two(pasted[0].reading, other.reading):
                yield (
                    f"{other.file}: server_uuid {uuid} is also in {pasted[0].file}; for a second"
                    " reading, name the files NAME.first and NAME.second"
                )


def _are_two(one: ServerSnapshot, other: ServerSnapshot) -> bool:
    """Return whether the settings show two servers with one server_uuid."""
    places = [tuple(each.setting(name) for name in _PROCESS) for each in (one, other)]
    return None not in (*places[0], *places[1]) and places[0] != places[1]


def _wrong_order(found: Mapping[str, Mapping[str, _Pasted]]) -> Iterator[str]:
    """Yield the second readings that began before the last of the first ones had ended."""
    early = [files.get(_FIRST) or files.get(_ONLY) for _, files in sorted(found.items())]
    firsts = [each for each in early if each is not None]
    if not firsts:
        return
    latest = max(firsts, key=lambda each: each.reading.read_ended)
    for _, files in sorted(found.items()):
        second = files.get(_SECOND)
        if second is not None and second.reading.read_started < latest.reading.read_ended:
            yield (
                f"{second.file}: taken at {_moment(second.reading.read_started)}, before"
                f" {latest.file} ({_moment(latest.reading.read_ended)}); take all first readings,"
                " then all second ones"
            )


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
