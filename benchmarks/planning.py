"""B10: planning 1,000 findings, and injecting 100,000 empty transactions.

1. Plans are made from models written as readings, so no server is needed: one cluster whose 1,000
   replicas have each a stopped channel, and 50 clusters of 20 such replicas. There is no peer.
2. The peer of an injection is one mysql client with `SET gtid_next; BEGIN; COMMIT` for each
   transaction. The script of a plan runs by the same client, and as `repair apply` runs it: each
   statement is in the journal before it is sent.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

from benchmarks.measuring import MEBIBYTE, Line, Options, Section, evaluated
from benchmarks.peers import modern
from compose.native import shapes
from compose.native.command import Settings
from compose.native.provision import provision_clients
from compose.native.server import Server
from gtid import GtidSet
from repair.adapters.journal import Journal
from repair.adapters.script_runner import open_session, run_script
from repair.applying.procedures_applied import EventKind
from repair.sql.script import empty_transactions
from topology.readings.hidden_passwords import without_secrets
from topology.readings.target import ServerTarget

FINDINGS = 1_000
CLUSTERS = 50
GOAL_SECONDS = 2.0
GOAL_RATIO = 1.1
INJECTED = 100_000
_INJECTED_DURABLY = 5_000  # each commit waits for the disk
_RUNS_MAX = 3
# Plans one cluster per argument, of so many replicas, in a process of its own.
_PLAN = (
    "import sys; from benchmarks.planning import plan_stars; plan_stars(*map(int, sys.argv[1:]))"
)


def planning_and_injecting(options: Options) -> Section:
    """Measure plans of many findings, and scripts of many empty transactions."""
    runs = min(options.runs, _RUNS_MAX)
    small = FINDINGS // CLUSTERS
    lines = [
        _planned(f"a plan of {FINDINGS:,} findings of one cluster", [FINDINGS], 1),
        _planned(f"{CLUSTERS} plans of {small} findings each", [small] * CLUSTERS, runs),
    ]
    for words, is_durable, count in (
        ("", 0, INJECTED),
        (", each commit durable (sync_binlog = 1)", 1, _INJECTED_DURABLY),
    ):
        lines += _injected(words, is_durable=is_durable, count=count, runs=runs)
    return Section("plans of many findings, and many empty transactions", tuple(lines), _NOTES)


_NOTES = (
    (
        "Plans: processor seconds of making them from the readings and their audit, and the peak"
        " memory of the process. In each cluster every replica is missing transactions of one"
        " source, because its channel is stopped. The rules evaluate steps that change one"
        " replica each together; tests compare that with an evaluation after each step."
    ),
    (
        "Empty transactions: elapsed seconds. The peer sends each statement alone; the script sends"
        " 25 transactions in one packet, and `repair apply` writes them to its journal before."
    ),
)


def plan_stars(*replicas: int) -> None:
    """Plan clusters with so many replicas of one source; print the seconds and the peak memory."""
    from repair import plan_repair
    from tests.repair import build
    from topology.audit_cluster import audit_cluster

    seconds = 0.0
    for count in replicas:
        names = [f"r{number:04}" for number in range(count)]
        build.UUIDS.update((name, UUID(int=(n + 1) << 64 | 0xABC)) for n, name in enumerate(names))
        stopped = build.channel("a", runs=False)
        servers = [build.server("a", "a:1-9"), *(build.server(n, "a:1-5", stopped) for n in names)]
        snapshot = build.snapshot_of(build.model(*servers))
        audit = audit_cluster(snapshot)
        evidence = build.evidence_of(audit)
        begun = time.process_time()
        plan = plan_repair(snapshot, audit, evidence=evidence)
        seconds += time.process_time() - begun
        assert len(plan.steps) == len(audit.findings) == count
    print(seconds)


def _planned(what: str, replicas: list[int], runs: int) -> Line:
    seconds, peaks = [], []
    for _ in range(runs):
        command = [sys.executable, "-c", _PLAN, *map(str, replicas)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None, "a pipe was requested"
            seconds.append(float(process.stdout.read()))
            _pid, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        peaks.append(usage.ru_maxrss * 1024 / MEBIBYTE)
    took = statistics.median(seconds)
    goal = evaluated(f"≤ {GOAL_SECONDS:.0f} s", reached=took <= GOAL_SECONDS)
    return Line(what, f"{took:.2f} s, peak {max(peaks):.0f} MiB", "none", "", goal)


def _injected(words: str, *, is_durable: int, count: int, runs: int) -> Iterator[Line]:
    settings = Settings(sync_binlog=is_durable, innodb_flush_log_at_trx_commit=is_durable)
    with (
        shapes.single(modern(), settings=settings) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        plain: list[float] = []
        ours: dict[str, list[float]] = {"the mysql client": [], "repair apply": []}
        ways: dict[str, Callable[[], float]] = {
            "the mysql client": lambda: _by_client(server, Path(folder), _script(count)),
            "repair apply": lambda: _by_apply(server, Path(folder), _script(count)),
        }
        for _ in range(runs):
            plain.append(_by_client(server, Path(folder), _plain(count)))
            for name, way in ways.items():
                ours[name].append(way())
    for name, seconds in ours.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, plain, strict=True))
        yield Line(
            f"{count:,} empty transactions by {name}{words}",
            f"{statistics.median(seconds):.1f} s",
            f"one client, one statement each: {statistics.median(plain):.1f} s",
            f"{ratio:.2f}",
            evaluated(f"≤ {GOAL_RATIO}", reached=ratio <= GOAL_RATIO),
        )


def _new(count: int) -> GtidSet:
    return GtidSet.parse(f"{uuid4()}:1-{count}")


def _plain(count: int) -> str:
    each = (f"SET gtid_next = '{gtid}';\nBEGIN;\nCOMMIT;\n" for gtid in _new(count).gtids())
    return "".join(each) + "SET gtid_next = 'AUTOMATIC';\n"


def _script(count: int) -> str:
    lines = (*empty_transactions(_new(count)), "SET SESSION gtid_next = 'AUTOMATIC';")
    return "\n".join(("SET @go = TRUE;", *lines, ""))


def _by_client(server: Server, folder: Path, script: str) -> float:
    path = folder / "script.sql"
    path.write_text(script)
    address = ("--user=root", f"--host={server.host}", f"--port={server.port}", "--protocol=TCP")
    command = [*provision_clients().command("mysql"), *address]
    before = _executed(server)
    begun = time.perf_counter()
    with path.open("rb") as text:
        subprocess.run(command, stdin=text, stdout=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - begun
    assert _executed(server) - before == script.count("BEGIN;")
    return took


def _by_apply(server: Server, folder: Path, script: str) -> float:
    journal = Journal.at(folder / "journal.sqlite")
    procedure = journal.begin(
        plan_id="plan",
        cluster="cluster",
        directory=folder,
        servers=("a",),
        operator="operator",
        scripts_total=1,
    )
    target = ServerTarget(name="a", host=server.host, port=server.port, user="root")
    before = _executed(server)
    with journal.at_work(procedure.id) as writer, closing(open_session(target)) as session:

        def sending(statement: str) -> None:
            writer.write(EventKind.SENT, without_secrets(statement), script=1, server="a")

        begun = time.perf_counter()
        run_script(session, script, sending=sending)
        took = time.perf_counter() - begun
    assert _executed(server) - before == script.count("BEGIN;")
    return took


def _executed(server: Server) -> int:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed")).gtid_count
