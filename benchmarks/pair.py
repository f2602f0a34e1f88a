"""B6: one pair of live servers audited, process start to exit, with contents where that is due."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.generate.filled_pair import LARGE, SMALL, Fill, bytes_of_logs, filled_pair
from benchmarks.measuring import Line, Options, Section, duel, evaluated, seconds_of
from benchmarks.peers import modern
from compose.native import load, shapes

GOAL_SECONDS = 0.5
CONTENT_GOAL_SECONDS = 1.0
LOG_BYTES = 10_000_000_000
_GIB = 1 << 30
# (a description, the size of a file in bytes, the kind of transactions in the last one)
LOGS = (
    ("in files of 1 GiB", _GIB, LARGE),
    ("in files of 100 MiB", 100 << 20, LARGE),
    (f"in files of 1 GiB, the last of transactions of {SMALL.transaction_bytes} B", _GIB, SMALL),
)
OWN_AFTER_START = 8  # the first four are compared
_WORST_PLACE = (
    "Contents: one server was killed in the middle of writes and started again, and has written"
    " since. On the other one what is compared lies at the end of a full file, the worst place: the"
    " server reads through the file before it sends anything."
)
_PROGRAM = Path(sys.executable).with_name("gtid-audit")


def audit_of_a_pair(options: Options) -> Section:
    """Measure `gtid-audit pair`, first as it is, then with gigabytes of logs to look into."""
    with shapes.pair(modern()) as pair:
        quiet = _measured(pair, options)
        with load.write_load([pair.a, pair.b]):
            busy = _measured(pair, options, " under full write load on both servers")
    contents = [
        line
        for name, file_bytes, last in LOGS
        for line in _with_contents(options, name, file_bytes, last)
    ]
    return Section(
        "one pair of live servers",
        (quiet, busy, *contents),
        (_WORST_PLACE,),
    )


def _measured(pair: shapes.Pair, options: Options, how: str = "") -> Line:
    def ours() -> float:
        return _seconds_of_audit(pair)

    def peer() -> float:
        return seconds_of(
            lambda: [
                server.client("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
                for server in (pair.a, pair.b)
            ]
        )

    result = duel(ours, peer, runs=options.runs)
    return Line(
        f"audit a pair, process start to exit{how}",
        f"{result.our_seconds:.3f} s",
        f"two runs of the mysql client: {result.peer_seconds:.3f} s",
        f"{result.ratio:.2f}",
        evaluated("≤ 0.5 s", reached=result.our_seconds <= GOAL_SECONDS) if not how else "",
    )


def _with_contents(options: Options, name: str, file_bytes: int, last: Fill) -> Iterator[Line]:
    with filled_pair(log_bytes=LOG_BYTES, file_bytes=file_bytes, last=last) as pair:
        _crash_while_writing(pair)
        pair.a.execute(*["INSERT INTO bench.t (a) VALUES (1)"] * OWN_AFTER_START)
        pair.settle()
        gigabytes = min(map(bytes_of_logs, (pair.a, pair.b))) / 1e9
        for options_given, how in (((), "on its own"), (("--content",), "after every start")):
            result = duel(
                partial(_seconds_of_audit, pair, *options_given),
                partial(_seconds_of_audit, pair, "--no-content"),
                runs=options.runs,
            )
            yield Line(
                f"the same with {gigabytes:.1f} GB of logs on each, {name}:"
                f" contents compared {how}",
                f"{result.our_seconds:.3f} s",
                f"with --no-content: {result.peer_seconds:.3f} s",
                f"{result.ratio:.2f}",
                evaluated("≤ 1 s", reached=result.our_seconds <= CONTENT_GOAL_SECONDS),
            )


def _crash_while_writing(pair: shapes.Pair) -> None:
    """Kill the first server under load, and start it again."""
    with suppress(load.LoadEnded), load.write_load([pair.a]):
        pair.a.kill()
    pair.a.start()
    pair.settle()


def _seconds_of_audit(pair: shapes.Pair, *options: str) -> float:
    """Run one audit; what it is measured by has to be well, and to have compared what it should."""
    command = [str(_PROGRAM), "pair", pair.a.dsn, pair.b.dsn, "--json", *options]
    done: list[subprocess.CompletedProcess[bytes]] = []
    seconds = seconds_of(
        lambda: done.append(subprocess.run(command, capture_output=True, check=True))
    )
    document: dict[str, Any] = json.loads(done[0].stdout)
    assert (document["contents"] is not None) == ("--no-content" not in options)
    return seconds
