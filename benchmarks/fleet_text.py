"""B11: a fleet file of 10,000 pairs, from its text to servers with their accounts.

The peer is plain yaml.CSafeLoader on the same text in the same run: it makes values only, without
the check of a key, a place, or an account.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml

from benchmarks.measuring import Line, Options, Section, duel, evaluated
from topology.adapters.inventory.fleet_file import load_fleet

PAIRS = 10_000
GOAL_SECONDS = 1.0
ENVIRONMENT = {"FLEET_PASSWORD": "of the fleet"}

_NOTE = (
    "Processor seconds: these runs shared two processors with other long computations. With a"
    " problem in the file it is read a second time, through nodes, for the lines."
)


def fleet_of_pairs(_options: Options) -> Section:
    """Measure reading a fleet file beside libyaml's loader."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fleet.yaml")
        lines = tuple(
            _measured(file, name, text)
            for name, text in (("block style", block_text(PAIRS)), ("DSNs", dsn_text(PAIRS)))
        )
    return Section("a fleet file of 10,000 pairs", lines, (_NOTE,))


def _measured(file: Path, name: str, text: str) -> Line:
    file.write_text(text)
    ours = partial(_processor_seconds, partial(_load, file))
    peer = partial(_processor_seconds, partial(yaml.load, text, Loader=yaml.CSafeLoader))
    found = duel(ours, peer, runs=5)
    return Line(
        f"{PAIRS:,} pairs, {name}, {len(text) / 1e6:.1f} MB",
        f"{found.our_seconds:.2f} s",
        f"yaml.CSafeLoader, values only: {found.peer_seconds:.2f} s",
        f"{found.ratio:.2f}",
        evaluated("≤ 1 s", reached=found.our_seconds <= GOAL_SECONDS),
    )


def _load(file: Path) -> None:
    fleet = load_fleet(file, environment=ENVIRONMENT, warn=print)
    assert len(fleet.clusters) == PAIRS, "all of it was read"


def _processor_seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


_DEFAULTS = "defaults: {user: audit, password: {env: FLEET_PASSWORD}}\nclusters:\n"


def block_text(pairs: int) -> str:
    """Return a fleet file with host and port of each server."""
    return _DEFAULTS + "".join(
        f"  - name: pair{number:05}\n    servers:\n"
        + "".join(
            f"      - name: {side}\n        host: db{number:05}{side}.example.com\n"
            "        port: 3306\n"
            for side in "ab"
        )
        for number in range(pairs)
    )


def dsn_text(pairs: int) -> str:
    """Return a fleet file with a DSN for each server."""
    return _DEFAULTS + "".join(
        f"  - name: pair{number:05}\n    servers:\n"
        + "".join(
            f"      - {{name: {side}, dsn: 'mysql://db{number:05}{side}.example.com/?ssl=required'}}\n"
            for side in "ab"
        )
        for number in range(pairs)
    )
