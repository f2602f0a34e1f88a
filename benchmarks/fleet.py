"""Writes stored snapshots of a realistic fleet, of any size, in flat memory.

    python -m benchmarks.fleet --pairs 1000000 --out DIR [--seed 7] [--uuids 2-6] [--holes 0-5] …

1. What is written is a run as the product writes it (topology/adapters/parquet.py), in several
   files: the same columns, clusters in order of name, the rows of a cluster together in one row
   group, `_SUCCESS` last.
2. Healthy clusters give no finding. The others are of the kinds of benchmarks/generate/kinds.py.
3. The rows depend on the parameters and the seed alone, not on files, row groups or processes.
"""

import argparse
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import read_metadata

from benchmarks.generate.kinds import HEALTHY, KINDS, draw_numbers, kinds_from
from benchmarks.generate.numbers import GeneratedFleet
from benchmarks.generate.rows import table_of
from topology.adapters.parquet import parquet_writer
from topology.adapters.run_directory import LocalStorage, RunName, complete_draft
from topology.adapters.stored_runs import RECORD
from topology.documents.run_record import RunRecord

CLUSTERS_PER_ROW_GROUP = 5_000
CLUSTERS_PER_FILE = 250_000

_ABOUT = "Write stored snapshots of a realistic fleet, of any size, in flat memory."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_fleet(
    directory: Path,
    fleet: GeneratedFleet,
    *,
    processes: int = 1,
    clusters_per_row_group: int = CLUSTERS_PER_ROW_GROUP,
    clusters_per_file: int = CLUSTERS_PER_FILE,
) -> Path:
    """Write one run of the fleet below `directory` and return the run's directory.

    One row group is in memory at once, in each process: about 10 KB for each of its clusters.
    Raises FileExistsError if the run is there already.
    """
    directory.mkdir(parents=True, exist_ok=True)
    hidden = directory / f"_writing-fleet-{fleet.pairs}-{fleet.seed}"
    hidden.mkdir()
    try:
        firsts = range(0, fleet.pairs, clusters_per_file)
        write = partial(
            _write_file,
            hidden,
            fleet,
            clusters_per_row_group=clusters_per_row_group,
            clusters_per_file=clusters_per_file,
        )
        if processes == 1:
            ended = max(map(write, firsts))
        else:
            with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
                ended = max(pool.map(write, firsts))
        rows = {file.name: read_metadata(file).num_rows for file in hidden.glob("*.parquet")}
        storage = LocalStorage()
        complete_draft(storage, str(hidden), {RECORD: RunRecord(fleet.pairs, rows).to_text()})
        run = directory / RunName.at(_EPOCH + timedelta(microseconds=ended)).path
        if run.exists():
            raise FileExistsError(f"{run}: there is such a run already")
        storage.rename(str(hidden), str(run))
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return run


def _write_file(
    hidden: Path,
    fleet: GeneratedFleet,
    begun: int,
    *,
    clusters_per_row_group: int,
    clusters_per_file: int,
) -> int:
    """Write the clusters from number `begun` on; return the microsecond of the last reading."""
    path = hidden / f"part-{begun // clusters_per_file:05}.parquet"
    end = min(begun + clusters_per_file, fleet.pairs)
    ended = 0
    with parquet_writer(path) as writer:
        for first in range(begun, end, clusters_per_row_group):
            table = rows_from(fleet, first=first, count=min(clusters_per_row_group, end - first))
            writer.write_table(table, row_group_size=table.num_rows)
            ended = max(ended, pc.max(table["read_ended"]).value)
    return ended


def rows_from(fleet: GeneratedFleet, *, first: int, count: int) -> pa.Table:
    """Return the rows of some clusters of a fleet, with the columns of SNAPSHOT_SCHEMA."""
    numbers, _ = draw_numbers(fleet, first=first, count=count)
    return table_of(numbers)


def kinds_of(fleet: GeneratedFleet) -> tuple[int, ...]:
    """Count the healthy clusters, and then those of each row of KINDS."""
    counts = np.zeros(len(KINDS) + 1, dtype=np.int64)
    for first in range(0, fleet.pairs, CLUSTERS_PER_FILE):
        count = min(CLUSTERS_PER_FILE, fleet.pairs - first)
        counts += np.bincount(
            kinds_from(fleet, first=first, count=count) - HEALTHY, minlength=len(counts)
        )
    return tuple(counts.tolist())


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a fleet and say what is in it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=_ABOUT)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, help="directory of stored snapshots")
    parser.add_argument("--processes", type=int, default=1)
    defaults = GeneratedFleet(pairs=1)
    for parameter in fields(GeneratedFleet)[1:]:
        default = getattr(defaults, parameter.name)
        parser.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            type=_range if isinstance(default, tuple) else type(default),
            default=default,
            metavar=_shown(default),
        )
    given = vars(parser.parse_args(arguments))
    out, processes = given.pop("out"), given.pop("processes")
    try:
        fleet = GeneratedFleet(**given)
    except ValueError as error:
        parser.error(str(error))
    print(write_fleet(out, fleet, processes=processes))
    names = ["healthy", *(f"{kind.name}: {kind.code or 'unknown'}" for kind in KINDS)]
    for name, count in zip(names, kinds_of(fleet), strict=True):
        print(f"{count:>12,} {name}")


def _range(text: str) -> tuple[int, int]:
    """Read `2-6`."""
    low, high = text.split("-")
    return int(low), int(high)


def _shown(default: object) -> str:
    return "-".join(map(str, default)) if isinstance(default, tuple) else str(default)


if __name__ == "__main__":
    main()
