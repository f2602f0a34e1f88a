"""Reads the files of an archive for `cover`: header and GTIDs of each, one file at a time.

A transaction whose end is not in the file does not count: a copy that was made while the server
wrote, or a cut file, has only a part of it.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from binlog.adapters.ledger_files import ledger_of_file
from binlog.ledger.ledger_sets import gtids_of
from binlog.locating.cover import ArchivedLog


def archived_logs(
    paths: Sequence[Path], *, say: Callable[[str], None] = lambda _: None
) -> Iterator[ArchivedLog]:
    """Yield what each file contains, in the given order. Raises OSError."""
    for number, path in enumerate(paths, start=1):
        say(f"{number:,} of {len(paths):,} files: {path.name}")
        ledger = ledger_of_file(path)
        yield ArchivedLog(
            path.name,
            None if ledger.head is None else ledger.head.previous_gtids,
            gtids_of(ledger.rows.filter(ledger.rows["is_complete"])),
            anonymous_count=ledger.rows["uuid"].null_count,
            error=ledger.error,
        )
