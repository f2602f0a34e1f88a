"""Fuzzes one target, guided by coverage, for a time: `python -m tests.fuzz.run text 300`.

Instruments the scalar readers, not the kernels (their byte code is compiled). New inputs go to
.cache/fuzz; what breaks a property is written there too, shown, and ends the run. `distil` keeps of
them all the smallest that together reach what all reach.
"""

import sys
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parents[2]
CORPUS: Final = Path(__file__).with_name("corpus")
WORK: Final = ROOT / ".cache" / "fuzz"
_OF_SETS: Final = ("gtid.boundaries", "gtid.gtid_text", "gtid.binary", "gtid.gtid_set", "gtid.gtid")
INSTRUMENTED: Final[Mapping[str, tuple[str, ...]]] = {
    "text": _OF_SETS,
    "binary": _OF_SETS,
    "binlog": (
        "binlog.bodies",
        "binlog.cursor",
        "binlog.content.content_digest",
        "binlog.decode",
        "binlog.gtid_bodies",
        "binlog.ledger.ledger_contents",
        "binlog.ledger.ledger_details",
        "binlog.ledger.digests",
        "binlog.ledger.payloads",
        "binlog.ledger.events_in_memory",
        "binlog.ledger.ledger_window",
        "binlog.rows.images",
        "binlog.rows.tables",
        "binlog.rows.temporal",
        "binlog.rows.values",
        "binlog.scan",
        "binlog.table_metadata",
        "binlog.transactions",
    ),
}
TRACE_THEMSELVES: Final = frozenset({"binlog"})
KERNELS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": (),
    "binary": (),
    "binlog": (
        "binlog.kernels.counting",
        "binlog.kernels.digest",
        "binlog.kernels.heads",
        "binlog.kernels.row_ends",
        "binlog.kernels.verifying",
        "binlog.kernels.walking",
    ),
}
INPUT_BYTES_MAX: Final[Mapping[str, int]] = {"text": 400, "binary": 400, "binlog": 3000}

Step: TypeAlias = tuple[str, int, int, int]  # function, line, next line, how often (its bits)


def fuzz(target: str, *, seconds: int) -> None:
    """Run until the time is over or a property breaks; ends the process."""
    # It replaces import hooks, so it is nowhere else.
    import atheris  # type: ignore[import-untyped]

    for name in KERNELS[target]:  # atheris takes whole packages, and these are to be compiled
        import_module(name)
    with atheris.instrument_imports(include=list(INSTRUMENTED[target])):
        for name in INSTRUMENTED[target]:
            import_module(name)
    from tests.fuzz.properties import TARGETS

    (CORPUS / target).mkdir(exist_ok=True)
    known = [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]
    # Whatever is compiled or cached first is no input's memory, nor its time.
    TARGETS[target](max(known, key=len, default=b""))
    if target not in TRACE_THEMSELVES:
        tracemalloc.start()
    found = WORK / target
    found.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX[target]}",
        f"-artifact_prefix={WORK}/broken-{target}-",
        f"-dict={CORPUS.with_name(f'{target}.dict')}",
        "-print_final_stats=1",
        "-timeout=20",
    ]

    def kept(data: bytes) -> None:
        try:
            TARGETS[target](data)
        except Exception:  # the fuzzer itself may be ended before it writes
            (WORK / f"broken-{target}-{name_of(data)}").write_bytes(data)
            raise

    atheris.Setup([sys.argv[0], *options, str(found), str(CORPUS / target)], kept)
    atheris.Fuzz()


def distil(target: str) -> None:
    """Replace the corpus by the fewest small inputs that reach every step that any reaches."""
    from tests.fuzz.properties import TARGETS

    folders = (CORPUS / target, WORK / target)
    inputs = {file.read_bytes() for folder in folders for file in folder.glob("*")}
    reached: set[Step] = set()
    kept: list[bytes] = []
    for data in sorted(inputs, key=lambda each: (len(each), each)):
        steps = _steps(TARGETS[target], data, INSTRUMENTED[target])
        if not steps <= reached:
            reached |= steps
            kept.append(data)
    for file in (CORPUS / target).glob("*"):
        file.unlink()
    for data in kept:
        (CORPUS / target / name_of(data)).write_bytes(data)
    total = sum(map(len, kept))
    said = f"{target}: {len(kept)} of {len(inputs)} inputs, {total:,} bytes, {len(reached):,} steps"
    sys.stdout.write(f"{said}\n")


def name_of(data: bytes) -> str:
    """Name an input by its content."""
    return sha256(data).hexdigest()[:16]


def _steps(target: Any, data: bytes, instrumented: tuple[str, ...]) -> set[Step]:
    """Run a target; return every step from line to line within the instrumented files."""
    counts: Counter[tuple[str, int, int]] = Counter()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_globals.get("__name__") not in instrumented:
            return None
        name, last = frame.f_code.co_qualname, [0]

        def step(inner: FrameType, event: str, _: object) -> Any:
            here = inner.f_lineno if event == "line" else -inner.f_code.co_firstlineno
            counts[name, last[0], here] += 1
            last[0] = here
            return step

        return step(frame, event, None)

    sys.settrace(trace)
    try:
        target(data)
    finally:
        sys.settrace(None)
    # How often counts too, roughly: once, twice, a few times, many times.
    return {(*step, min(count.bit_length(), 6)) for step, count in counts.items()}


def main(arguments: list[str]) -> None:
    """Read the command line."""
    target, what = arguments
    if what == "distil":
        distil(target)
    else:
        fuzz(target, seconds=int(what))


if __name__ == "__main__":
    main(sys.argv[1:])
