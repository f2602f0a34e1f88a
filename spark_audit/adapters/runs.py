"""Finds the complete runs below a directory, of snapshots or of results.

How it works
------------
    directory/day=2026-01-01/run=20260101T235959.000000Z/…
                                                         _SUCCESS
              day=2026-01-02/run=20260102T120011.000000Z/…
                                                         _SUCCESS
                             run=20260102T180000.000000Z/…           (no _SUCCESS)

A run is one reading of a fleet. Its name is the time at which the last reading in it ended. The
results of that run have the same name, below `audits/` (results.py).

1. A run without `_SUCCESS` does not exist for readers: it is being written, or its writer died.
2. Names are UTC with a fixed width, so text order is time order. Only the name decides which run is
   later.
3. `day=…` is derived from the name. A run below another day is ignored, because a listing by day
   would find it at the wrong time.
4. Other names in the directory (`audits`, `_writing-…`) are ignored.

`runs_newest_first` lists the days from the newest to the oldest, and each day only when the caller
needs it. Above it yields 20260102T120011 and then 20260101T235959. So the latest run costs two
listings, however many years are stored.

Why not simpler: file modification times change when an archive is copied or restored. A file with
the name of the latest run would be a second place to keep correct after each crash, copy and
deletion.
"""

from collections.abc import Iterator

from spark_audit.adapters.storage import Storage
from topology.adapters.run_directory import COMPLETE, RunName, is_day, is_run


def runs_newest_first(storage: Storage, directory: str) -> Iterator[RunName]:
    """Yield the complete runs below a directory, newest first; list only as far as needed."""
    for day in reversed(storage.names_in(directory)):
        if not is_day(day):
            continue
        for name in reversed(storage.names_in(f"{directory}/{day}")):
            if is_run(name) and storage.exists(f"{directory}/{day}/{name}/{COMPLETE}"):
                run = RunName(name)
                if run.path == f"{day}/{name}":  # rule 3
                    yield run


def latest_before(storage: Storage, directory: str, run: RunName) -> RunName | None:
    """Return the latest complete run with an earlier time than `run`."""
    return next((each for each in runs_newest_first(storage, directory) if each < run), None)
