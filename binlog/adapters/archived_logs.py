"""Reads the files of an archive for `cover`: header and GTIDs of each, one file at a time.

1. Every checksum is verified: a transaction with damaged bytes is not there. The ledger of a
   damaged file ends before the damage, and has the error.
2. A transaction whose end is not in the file does not count: a copy that was made while the server
   wrote, or a cut file, has only a part of it. In relay logs the end may be in a later file: then
   it counts in the file where it begins (split_transactions.py).
3. A file that has GTIDs of another one is read a second time, and the transactions are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.split_transactions import ReadFile, Unfinished, with_split_transactions
from binlog.decode import MAGIC
from binlog.events import ChecksumAlgorithm
from binlog.header import HEADER_BYTES, parse_header
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_sets import gtids_of, rows_in
from binlog.locating.cover import ArchivedLog
from binlog.locating.histories import LogOrigin, RepeatedGtids
from binlog.transactions import TransactionKind
from gtid import GtidSet

_VERIFIED: Final = LedgerRequest(verify=True)
_KEY: Final = ["uuid", "tag", "gno"]
_COMPARED: Final = ["original_commit_at", "logged_at", "bytes"]


def archived_logs(
    paths: Sequence[Path], *, say: Callable[[str], None] = lambda _: None
) -> tuple[ArchivedLog, ...]:
    """Return what each file contains, in the given order. Raises OSError."""
    files = []
    for number, path in enumerate(paths, start=1):
        say(f"{number:,} of {len(paths):,} files: {path.name}")
        files.append(_read(path))
    return with_split_transactions(files)


def _read(path: Path) -> ReadFile:
    """Return what one file contains, without the others."""
    ledger = ledger_of_file(path, _VERIFIED)
    head, rows, origin = ledger.head, ledger.rows, _origin_of(path)
    is_open = rows.num_rows > 0 and not rows["is_complete"][-1].as_py()
    log = ArchivedLog(
        path.name,
        None if head is None else head.previous_gtids,
        gtids_of(rows.filter(rows["is_complete"])),
        anonymous_count=rows["uuid"].null_count,
        error=ledger.error,
        origin=origin,
        has_checksums=head is None or head.description.checksum is ChecksumAlgorithm.CRC32,
        ends_in_transaction=is_open,
    )
    if head is None or not origin.is_relay_log:
        return ReadFile(path, log)
    unfinished = None
    if is_open and ledger.error is None and rows["uuid"][-1].is_valid:
        [gtid] = gtids_of(rows.slice(rows.num_rows - 1)).gtids()
        unfinished = Unfinished(gtid, rows["start"][-1].as_py(), head.description)
    starts = rows.filter(pc.is_null(rows["uuid"]))["start"].to_pylist()
    return ReadFile(path, log, unfinished, tuple(starts))


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
        rows = _rows_of(paths[number], common, log.parts)
        for other in range(number):
            old = logs[other]
            gtids = old.gtids & common
            if gtids:
                others = _rows_of(paths[other], gtids, old.parts)
                if old.origin == log.origin:  # copies of one file, perhaps
                    same, different = _compared(others, rows, is_of_one_server=True)
                else:
                    is_of_one_server = old.origin.server_id == log.origin.server_id
                    same, different = _compared(
                        _without_view_changes(others),
                        _without_view_changes(rows),
                        is_of_one_server=is_of_one_server,
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


def _rows_of(path: Path, wanted: GtidSet, parts: GtidSet) -> pa.Table:
    """Return the transactions of a file that are in a set, without null in their key.

    They are complete, or whole over several relay logs (`parts`): then the row is that of the part.
    """
    rows = ledger_of_file(path).rows
    rows = rows.filter(rows_in(rows, wanted))
    rows = rows.filter(pc.or_(rows["is_complete"], pa.array(rows_in(rows, parts))))
    rows = rows.select([*_KEY, *_COMPARED, "is_complete", "kind"])
    for name in ("uuid", "tag"):
        column = pc.fill_null(rows[name].cast("string"), "")
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _without_view_changes(rows: pa.Table) -> pa.Table:
    """Leave out what each member of a group logs for itself, under one GTID."""
    return rows.filter(pc.not_equal(rows["kind"].cast("string"), TransactionKind.OTHER.value))


def _compared(left: pa.Table, right: pa.Table, *, is_of_one_server: bool) -> tuple[GtidSet, ...]:
    """Return the GTIDs of one transaction in both tables, and those of two transactions.

    The commit time on the origin has microseconds and is the same in every log (8.0.1 and later).
    Without it, the time of the first event decides, in the files of one server: in a replica's log
    it may be that of another event of the transaction. The size of a part shows nothing.
    """
    both = left.join(right, _KEY, join_type="inner", right_suffix="_right")
    for name in ("uuid", "tag"):
        at = both.column_names.index(name)
        both = both.set_column(at, name, pc.dictionary_encode(both[name]))
    equal = {name: pc.equal(both[name], both[f"{name}_right"]) for name in _COMPARED}
    same, different = equal["original_commit_at"], pc.invert(equal["original_commit_at"])
    if is_of_one_server:
        is_whole = pc.and_(both["is_complete"], both["is_complete_right"])
        is_copy = pc.and_(equal["logged_at"], pc.or_(equal["bytes"], pc.invert(is_whole)))
        same = pc.coalesce(same, is_copy)
        different = pc.coalesce(different, pc.invert(equal["logged_at"]))
    return tuple(
        gtids_of(both.filter(pc.fill_null(each, fill_value=False))) for each in (same, different)
    )
