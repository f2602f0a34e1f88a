"""B8: the file and position of one GTID among 1,000 binary logs, in files and on a live server.

The peer is what other tools do: read the head of every file, from the newest back to the one.
"""

import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from benchmarks.generate.logs import write_logs
from benchmarks.measuring import Line, Options, Section, duel, evaluated, seconds_of
from benchmarks.peers import modern
from binlog.adapters.heads_files import locate_in_files
from binlog.adapters.heads_server import ServerHeads, locate_on_server
from binlog.adapters.previous_gtids import previous_gtids_of
from binlog.locating.places import Located
from compose.native import shapes
from compose.native.server import Server
from gtid import Gtid, GtidSet

FILES = 1_000
SERVER_FILES = 300
HEADS_MAX = 12
SEED = 8

_NOTE = (
    "Before a server sends the transaction that shows the position, it looks for the file itself,"
    " at heads from the newest back; that is the difference between its two lines."
)

Locate = Callable[[GtidSet], Located]


def one_gtid(options: Options) -> Section:
    """Count the heads that are read for one GTID, and measure beside reading all of them."""
    with tempfile.TemporaryDirectory() as folder:
        files = _among_files(Path(folder), options)
    with shapes.single(modern()) as server, _rotated(server, SERVER_FILES) as wanted:
        lines = (files, *_on_server(server, wanted, options))
    return Section("one GTID among many binary logs", lines, (_NOTE,))


def _among_files(folder: Path, options: Options) -> Line:
    paths, held = write_logs(folder, count=FILES, transactions=20)
    wanted = _draw(held, options.runs)
    locate: Locate = partial(locate_in_files, paths)

    def peer(gtids: GtidSet) -> int:
        for read, path in enumerate(reversed(paths), start=1):
            previous = previous_gtids_of(path)
            if previous is None or gtids.is_disjoint(previous):
                return read
        return len(paths)

    return _line(f"{FILES:,} files, position included", locate, peer, wanted)


def _on_server(server: Server, wanted: Sequence[GtidSet], options: Options) -> Iterator[Line]:
    arguments: dict[str, Any] = {"host": server.host, "port": server.port, "user": "root"}

    def peer(gtids: GtidSet) -> int:
        connection = pymysql.connect(**arguments, cursorclass=Cursor)
        with connection:
            heads = ServerHeads(connection)
            numbers = range(len(heads.facts.files) - 1, -1, -1)
            for read, number in enumerate(numbers, start=1):
                previous = heads.previous_gtids_of(number)
                if previous is None or gtids.is_disjoint(previous):
                    return read
        return len(numbers)

    for places_max, what in ((0, "file only"), (1, "position included")):
        locate: Locate = partial(
            locate_on_server, arguments, timeout_seconds_max=60, places_max=places_max
        )
        where = f"a live server's {SERVER_FILES:,} files, {what}"
        yield _line(where, locate, peer, wanted[: options.runs])


def _line(
    where: str, locate: Locate, peer: Callable[[GtidSet], int], wanted: Sequence[GtidSet]
) -> Line:
    """Take each GTID in turn; both look for the same one."""
    found = [locate(gtids) for gtids in wanted]
    assert all(each.found == gtids for each, gtids in zip(found, wanted, strict=True))
    heads = [each.heads_read for each in found]
    peers = [peer(gtids) for gtids in wanted]
    ours, theirs = iter([wanted[0], *wanted]), iter([wanted[0], *wanted])
    result = duel(
        lambda: seconds_of(partial(locate, next(ours))),
        lambda: seconds_of(partial(peer, next(theirs))),
        runs=len(wanted),
    )
    return Line(
        f"one GTID among {where}: at most {max(heads)} heads",
        f"{result.our_seconds * 1000:.1f} ms",
        f"heads from the newest back, file only: {result.peer_seconds * 1000:.1f} ms,"
        f" {statistics.median(peers):.0f} heads",
        f"{result.ratio:.2f}",
        evaluated(f"≤ {HEADS_MAX} heads", reached=max(heads) <= HEADS_MAX),
    )


def _draw(held: GtidSet, count: int) -> list[GtidSet]:
    """Draw GTIDs of a set with one interval, each time the same ones."""
    [(tsid, start, end)] = held.intervals()
    numbers = random.Random(SEED).sample(range(start, end), count)
    return [GtidSet.of(Gtid(tsid, number)) for number in numbers]


@contextmanager
def _rotated(server: Server, count: int) -> Iterator[list[GtidSet]]:
    """Have a server write many files; give GTIDs that it holds."""
    statements = ["CREATE DATABASE d", "CREATE TABLE d.t (a INT)"]
    statements += ["INSERT INTO d.t VALUES (1)", "FLUSH BINARY LOGS"] * (count - 1)
    server.execute("SET GLOBAL sync_binlog = 0", *statements)
    yield _draw(GtidSet.parse(server.value("@@GLOBAL.gtid_executed")), 64)
