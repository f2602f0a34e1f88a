"""Reads the files of an archive for `cover`: header and GTIDs of each, one file at a time.

1. Every checksum is verified: a transaction with damaged bytes is not there. The ledger of a
   damaged file ends before the damage, and has the error.
2. A transaction whose end is not in the file does not count: a copy that was made while the server
   wrote, or a cut file, has only a part of it.
3. A file that has GTIDs of another one is read a second time, and the transactions are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from binlog.adapters.ledger_files import ledger_of_file
from binlog.decode import MAGIC
from binlog.events import ChecksumAlgorithm
from binlog.header import HEADER_BYTES, parse_header
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_sets import gtids_of, rows_in
from binlog.locating.cover import ArchivedLog
from binlog.locating.histories import LogOrigin, RepeatedGtids
from binlog.transactions import TransactionKind
from gtid import GtidSet

if TYPE_CHECKING:
    import pyarrow as pa

_VERIFIED: Final = LedgerRequest(verify=True)
_KEY: Final = ["uuid", "tag", "gno"]
_COMPARED: Final = ["original_commit_at", "logged_at", "bytes"]


def archived_logs(
    paths: Sequence[Path], *, say: Callable[[str], None] = lambda _: None
) -> Iterator[ArchivedLog]:
    """Yield what each file contains, in the given order. Raises OSError."""
    for number, path in enumerate(paths, start=1):
        say(f"{number:,} of {len(paths):,} files: {path.name}")
        ledger = ledger_of_file(path, _VERIFIED)
        head = ledger.head
        yield ArchivedLog(
            path.name,
            None if head is None else head.previous_gtids,
            gtids_of(ledger.rows.filter(ledger.rows["is_complete"])),
            anonymous_count=ledger.rows["uuid"].null_count,
            error=ledger.error,
            origin=_origin_of(path),
            has_checksums=head is None or head.description.checksum is ChecksumAlgorithm.CRC32,
        )


def repeated_gtids(
    paths: Sequence[Path],
    logs: Sequence[ArchivedLog],
    *,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[RepeatedGtids, ...]:
    """Return the GTIDs that two of the files have. Raises OSError."""
    seen, found = GtidSet(), []
    for number, log in enumerate(logs):
        common = log.gtids & seen
        seen |= log.gtids
        if not common:
            continue
        say(f"comparing {log.file}")
        rows = _rows_of(paths[number], common)
        for other in range(number):
            gtids = logs[other].gtids & common
            if gtids:
                is_of_one_server = logs[other].origin.server_id == log.origin.server_id
                same, different = _compared(
                    _rows_of(paths[other], gtids), rows, is_of_one_server=is_of_one_server
                )
                found.append(RepeatedGtids((other, number), same, different))
    return tuple(found)


def _origin_of(path: Path) -> LogOrigin:
    """Return who wrote a file: of a relay log, its first event is of the receiver's server."""
    with path.open("rb") as file:
        first = file.read(len(MAGIC) + HEADER_BYTES)
    if len(first) < len(MAGIC) + HEADER_BYTES:
        return LogOrigin()
    header = parse_header(first, len(MAGIC))
    return LogOrigin(header.server_id, header.timestamp_seconds, header.is_of_relay_log)


def _rows_of(path: Path, wanted: GtidSet) -> pa.Table:
    """Return the complete transactions of a file that are in a set, without null in their key."""
    rows = ledger_of_file(path).rows
    rows = rows.filter(rows["is_complete"])
    rows = rows.filter(rows_in(rows, wanted))
    # A view change is logged by each member of a group for itself, under one GTID.
    rows = rows.filter(pc.not_equal(rows["kind"].cast("string"), TransactionKind.OTHER.value))
    rows = rows.select([*_KEY, *_COMPARED])
    for name in ("uuid", "tag"):
        column = pc.fill_null(rows[name].cast("string"), "")
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _compared(left: pa.Table, right: pa.Table, *, is_of_one_server: bool) -> tuple[GtidSet, ...]:
    """Return the GTIDs of one transaction in both tables, and those of two transactions.

    The commit time on the origin has microseconds and is the same in every log (8.0.1 and later).
    Without it, the time of the first event decides, in the files of one server: in a replica's log
    it may be that of another event of the transaction.
    """
    both = left.join(right, _KEY, join_type="inner", right_suffix="_right")
    for name in ("uuid", "tag"):
        at = both.column_names.index(name)
        both = both.set_column(at, name, pc.dictionary_encode(both[name]))
    equal = {name: pc.equal(both[name], both[f"{name}_right"]) for name in _COMPARED}
    same, different = equal["original_commit_at"], pc.invert(equal["original_commit_at"])
    if is_of_one_server:
        is_copy = pc.and_(equal["logged_at"], equal["bytes"])
        same = pc.coalesce(same, is_copy)
        different = pc.coalesce(different, pc.invert(equal["logged_at"]))
    return tuple(
        gtids_of(both.filter(pc.fill_null(each, fill_value=False))) for each in (same, different)
    )
