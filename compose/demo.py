"""The main job, once, on real servers: break, find, explain, repair, find nothing more.

Three dual-primary pairs are started. Into one goes a position bypass and a write on the wrong
server, into one (5.6) the CREATE VIEW that fails on the source only; one is healthy and under full
write load. The auditor is used as a user would use it: its own command, and the plain mysql client
for its scripts.

1. Exit status 0 means: every injected fault was found, nothing else was reported, every script ran,
   and the second audit was clean. Anything else is 1, with what differed.
2. Nothing is expected of the audit beyond what compose/faults.py says it injected.
3. Whatever ends the run, no process stays: the servers belong to a supervisor that ends with us.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from compose import faults
from compose.native import load, shapes
from compose.native.installation import Clients, ProviderMissing
from compose.native.processes import current_supervisor
from compose.native.provision import MODERN, OLD, provision, provision_clients
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet

SEVERE = ("warning", "critical")
SETTLE_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One injected fault, in the terms in which an audit should report it."""

    cluster: str
    code: str
    source: str
    replica: str
    gtid_set: str  # canonical; empty if the fault is not about a set


class DemoFailed(Exception):
    """The demonstration failed; the message states at which step."""


class Stage:
    """Prints the current step, with the time since the start."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self._begun:6.1f}s] {text}", flush=True)

    def head(self, text: str) -> None:
        """Print a heading."""
        print(flush=True)
        self.say(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration and return the exit status."""
    parser = argparse.ArgumentParser(prog="compose.demo", description=__doc__)
    parser.add_argument(
        "--pause",
        dest="pause_seconds",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="pause between two transactions of a load session (default: full load)",
    )
    pause_seconds: float = parser.parse_args(arguments).pause_seconds
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell starts background jobs with Ctrl-C ignored; this process must still react to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stage = Stage()
    try:
        with ExitStack() as stack:
            return _run(stage, stack, pause_seconds)
    except (DemoFailed, ProviderMissing, faults.FaultNotProduced) as failure:
        stage.head(f"FAILED: {failure}")
        return 1
    except KeyboardInterrupt:
        stage.head("interrupted; all servers were stopped")
        return 130


def _run(stage: Stage, stack: ExitStack, pause_seconds: float) -> int:
    stage.head("Servers: provisioning and starting three dual-primary pairs")
    clients = provision_clients(progress=stage.say)
    pairs = _start_pairs(stage, stack)
    folder = _work_folder()
    fleet = _write_fleet(folder, pairs)
    auditor = Auditor(stage, folder)

    stage.head("Faults: breaking two of the pairs")
    injected = _break(stage, pairs)

    stage.head("First audit: snapshot to Parquet, evaluated by Spark and again by the local engine")
    store = folder / "snapshots"
    with _under_load(stage, pairs["healthy"], clients, pause_seconds):
        auditor.run("snapshot", "--fleet", fleet, "--out", store, status=(0,))
    by_spark = auditor.json("audit", "--snapshots", store, "--engine", "spark", status=(2,))
    by_local = auditor.json("audit", "--snapshots", store, "--engine", "local", status=(2,))
    if json.dumps(by_spark["findings"]) != json.dumps(by_local["findings"]):
        raise DemoFailed("Spark and the local engine do not agree on the findings")
    auditor.run("audit", "--snapshots", store, "--engine", "local", status=(2,))
    _expect(by_spark, injected)
    stage.say(f"found exactly the {len(injected)} faults that were injected; both engines agree")

    for cluster in sorted({fault.cluster for fault in injected}):
        stage.head(f"Repair of {cluster}: plan, then the plain mysql client")
        plan = folder / f"plan-{cluster}"
        auditor.run(
            *("repair", "plan", "--fleet", fleet, "--cluster", cluster, "--out", plan), status=(0,)
        )
        _run_scripts(stage, clients, plan, pairs[cluster])
        pairs[cluster].settle(timeout_seconds_max=SETTLE_SECONDS_MAX)

    stage.head("Second audit: live, after the repair")
    with _under_load(stage, pairs["healthy"], clients, pause_seconds):
        auditor.run("audit", "--fleet", fleet, status=(0,))
        _expect(auditor.json("audit", "--fleet", fleet, status=(0,)), ())
    stage.head("Clean: every fault was found, explained and repaired, and nothing else was changed")
    return 0


def _start_pairs(stage: Stage, stack: ExitStack) -> dict[str, Pair]:
    modern, old = provision(MODERN, progress=stage.say), provision(OLD, progress=stage.say)
    wanted = {"healthy": modern, "legacy": old, "orders": modern}
    # The stacks belong to the caller before a server starts, so an interruption in between leaves
    # no server behind.
    stacks = {name: stack.enter_context(ExitStack()) for name in wanted}
    with ThreadPoolExecutor(max_workers=len(wanted)) as pool:
        starting = {
            name: pool.submit(stacks[name].enter_context, shapes.pair(installation))
            for name, installation in wanted.items()
        }
        pairs = {name: future.result() for name, future in starting.items()}
    for name, pair in pairs.items():
        stage.say(f"{name}: MySQL {pair.a.version_text}, ports {pair.a.port} and {pair.b.port}")
    return pairs


@contextmanager
def _under_load(stage: Stage, pair: Pair, clients: Clients, pause_seconds: float) -> Iterator[None]:
    """Write to both servers only while servers are being read.

    Evaluating stored snapshots reads no server; a write load would only take CPU time from it.
    """
    with load.write_load([pair.a, pair.b], clients=clients, pause_seconds=pause_seconds):
        before = [server.value("@@GLOBAL.gtid_executed") for server in (pair.a, pair.b)]
        yield
        after = [server.value("@@GLOBAL.gtid_executed") for server in (pair.a, pair.b)]
    counts = [
        (GtidSet.parse(later) - GtidSet.parse(earlier))
        .from_uuid(UUID(server.value("@@GLOBAL.server_uuid")))
        .gtid_count
        for server, earlier, later in zip((pair.a, pair.b), before, after, strict=True)
    ]
    stage.say(f"healthy: {counts[0]:,} and {counts[1]:,} transactions committed during the demo")
    if not all(counts):
        raise DemoFailed("the healthy pair was not under load on both sides")


def _break(stage: Stage, pairs: dict[str, Pair]) -> tuple[Fault, ...]:
    bypass = faults.position_bypass(pairs["orders"])
    stage.say(f"orders: b was moved past {bypass.skipped} by file position")
    errant = faults.errant_transaction(pairs["orders"])
    stage.say(f"orders: a's channel was stopped, and a client wrote {errant.errant} on b")
    view = faults.failing_create_view(pairs["legacy"])
    stage.say(f"legacy: a CREATE VIEW failed on a with 1050 and succeeds on b: {view.failed}")
    return (
        Fault("legacy", "A1", "a", "b", ""),
        Fault("orders", "E1", "a", "b", str(GtidSet.parse(errant.errant))),
        Fault("orders", "H1", "a", "b", str(GtidSet.parse(bypass.skipped))),
    )


def _expect(audit: dict[str, Any], faults_injected: Sequence[Fault]) -> None:
    found = sorted(
        Fault(
            finding["cluster"],
            finding["code"],
            finding["source"] or "",
            finding["replica"] or "",
            finding["gtid_set"],
        )
        for finding in audit["findings"]
        if finding["severity"] in SEVERE
    )
    if found != sorted(faults_injected) or audit["unknown"]:
        raise DemoFailed(
            f"injected {sorted(faults_injected)}, found {found}, not read: {audit['unknown']}"
        )


def _run_scripts(stage: Stage, clients: Clients, plan: Path, pair: Pair) -> None:
    scripts = sorted(plan.glob("[0-9][0-9]-*.sql"))
    if not scripts:
        raise DemoFailed(f"{plan.name} contains no script")
    for script in scripts:
        server = _server_of(script, pair)
        command = [
            *clients.command("mysql"),
            *(f"--host={server.host}", f"--port={server.port}", "--protocol=TCP", "--user=root"),
        ]
        with script.open("rb") as statements:
            done = subprocess.run(command, stdin=statements, capture_output=True, check=False)
        stage.say(f"mysql < {script.name} (on {server.name}): exit status {done.returncode}")
        if done.returncode:
            raise DemoFailed(f"{script.name}: {done.stderr.decode(errors='replace').strip()}")


def _server_of(script: Path, pair: Pair) -> Server:
    return pair[script.stem.rpartition("-")[2]]


class Auditor:
    """Runs the auditor's command, as a user would type it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self._stage = stage
        self._folder = folder
        self._program = Path(sys.executable).with_name("gtid-audit")

    def run(self, *arguments: object, status: tuple[int, ...]) -> None:
        """Run a command whose output goes to the terminal."""
        self._say(arguments)
        sys.stdout.flush()
        self._check(subprocess.run(self._command(arguments), check=False), status)

    def json(self, *arguments: object, status: tuple[int, ...]) -> dict[str, Any]:
        """Run a command with --json and return the document."""
        arguments = (*arguments, "--json")
        self._say(arguments)
        done = subprocess.run(self._command(arguments), stdout=subprocess.PIPE, check=False)
        self._check(done, status)
        document = json.loads(done.stdout)
        if not isinstance(document, dict):
            raise DemoFailed("the answer is not a JSON object")
        return document

    def _command(self, arguments: Sequence[object]) -> list[str]:
        return [str(self._program), *(str(argument) for argument in arguments)]

    def _say(self, arguments: Sequence[object]) -> None:
        shown = " ".join(str(argument) for argument in arguments)
        self._stage.say("$ gtid-audit " + shown.replace(f"{self._folder}/", ""))

    def _check(self, done: "subprocess.CompletedProcess[bytes]", status: tuple[int, ...]) -> None:
        if done.returncode not in status:
            raise DemoFailed(f"exit status {done.returncode}, expected {status}: {done.args[1:]}")


def _work_folder() -> Path:
    """Make a folder inside the run folder, which is removed however the run ends."""
    return Path(tempfile.mkdtemp(prefix="demo-", dir=current_supervisor().folder))


def _write_fleet(folder: Path, pairs: dict[str, Pair]) -> Path:
    lines = ["defaults:", "  user: root", "clusters:"]
    for cluster, pair in sorted(pairs.items()):
        lines += [f"  - name: {cluster}", "    servers:"]
        for name, server in pair.servers.items():
            lines.append(f"      - {{name: {name}, host: {server.host}, port: {server.port}}}")
    path = folder / "fleet.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
