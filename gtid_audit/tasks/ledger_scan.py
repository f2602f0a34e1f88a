"""Makes the ledger of files or of a server, piece by piece, and passes it to the consumers of rows.

1. Memory use is that of one piece: the rows of one file, or one batch of a server's rows.
2. Damage ends the reading of its own file, not the scan. The rows before it are passed on, and the
   summary has the error with file and byte. A connection that breaks ends the scan the same way.
3. Rows go to a temporary Parquet file first. A file with the requested name is always complete.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from binlog.adapters.heads_server import facts_of_server
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import FromPlace
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError, CorruptBinlog, UnexpectedAnswer, UnreadableBinlog
from binlog.ledger.ledger_columns import FileLedger, LedgerRequest
from binlog.ledger.ledger_summary import LedgerSummary
from gtid_audit import clock
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.logs_from_operands import LogServer
from gtid_audit.output import Progress
from gtid_audit.views.ledger_text import size_of

_BAR_CELLS: Final = 30
_SAY_AGAIN_SECONDS: Final = 0.1
_PARTIAL: Final = ".partial"

Rows: TypeAlias = Callable[[pa.Table], None]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A file's ledger, or a part of it. `done_bytes`: how much of the whole input was read."""

    ledger: FileLedger
    name: str
    done_bytes: int


def scan(
    source: LogServer | Sequence[Path],
    wanted: LedgerRequest,
    *,
    rows: Sequence[Rows],
    line: Progress,
    seconds_max: float,
) -> LedgerSummary:
    """Make the ledger, pass each piece's rows to all of `rows`, and return the summary.

    Raises BinlogError if a server does not report its logs.
    """
    summary = LedgerSummary()
    if isinstance(source, LogServer):
        total, pieces = _of_server(source, wanted, seconds_max=seconds_max, summary=summary)
    else:
        total, pieces = _of_files(source, wanted)
    shown = _Shown(line, total)
    for piece in pieces:
        summary.add(piece.ledger, file=piece.name)
        for take in rows:
            take(piece.ledger.rows)
        shown.say(piece, summary)
    return summary


def _of_files(paths: Sequence[Path], wanted: LedgerRequest) -> tuple[int, Iterator[_Piece]]:
    sizes = [_size_of(path) for path in paths]

    def pieces() -> Iterator[_Piece]:
        done = 0
        for path, size in zip(paths, sizes, strict=True):
            done += size
            yield _Piece(_ledger_of(path, wanted), str(path), done)

    return sum(sizes), pieces()


def _ledger_of(path: Path, wanted: LedgerRequest) -> FileLedger:
    """Make one file's ledger. If the file cannot be read, it is empty and has an error."""
    try:
        return ledger_of_file(path, wanted)
    except OSError as error:
        unreadable = UnreadableBinlog(file=path.name, what=error.strerror or str(error))
        return FileLedger(path.name, None, wanted.schema.empty_table(), 0, unreadable)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # its ledger will have the error


def _of_server(
    server: LogServer, wanted: LedgerRequest, *, seconds_max: float, summary: LedgerSummary
) -> tuple[int, Iterator[_Piece]]:
    connect = server.connector(seconds_max=seconds_max)
    facts = facts_of_server(connect)
    if not facts.files:
        raise UnexpectedAnswer(what="its binary logs", found="it lists none")
    before: dict[str, int] = {}
    total = 0
    for name, size in zip(facts.files, facts.sizes, strict=True):
        before[name] = total
        total += size

    def pieces() -> Iterator[_Piece]:
        batches = ledger_of_server(
            connect,
            FromPlace(facts.files[0], FIRST_POSITION),
            wanted,
            timeout_seconds_max=seconds_max,
        )
        last = FileLedger(facts.files[0], None, wanted.schema.empty_table(), FIRST_POSITION)
        try:
            for batch in batches:
                last = FileLedger(batch.file, None, batch.rows, batch.end)
                yield _Piece(last, batch.file, before.get(batch.file, total) + batch.end)
        except CorruptBinlog as error:
            nothing = wanted.schema.empty_table()
            summary.add(FileLedger(error.file, None, nothing, error.position, error))
        except BinlogError as error:
            nothing = wanted.schema.empty_table()
            summary.add(FileLedger(last.file, None, nothing, last.end, error))

    return total, pieces()


class _Shown:
    """The progress line: a bar, and what was found so far."""

    def __init__(self, line: Progress, total: int) -> None:
        self._line = line
        self._total = max(total, 1)
        self._said_at = clock.monotonic_seconds()  # a short scan shows nothing

    def say(self, piece: _Piece, summary: LedgerSummary) -> None:
        now = clock.monotonic_seconds()
        if now - self._said_at < _SAY_AGAIN_SECONDS:
            return
        self._said_at = now
        done = min(piece.done_bytes, self._total)
        filled = done * _BAR_CELLS // self._total
        bar = "█" * filled + "·" * (_BAR_CELLS - filled)
        self._line.say(
            f"{bar} {size_of(done)} of {size_of(self._total)}"
            f" · {summary.transactions:,} transactions · {Path(piece.name).name}"
        )


@contextmanager
def parquet_file(path: Path, schema: pa.Schema) -> Iterator[Rows]:
    """Provide a consumer that writes rows into a Parquet file, which is named when complete.

    Raises UsageProblem if it cannot be written.
    """
    partial = path.with_name(path.name + _PARTIAL)
    try:
        writer: Any = pq.ParquetWriter(partial, schema, compression="zstd")
    except OSError as error:
        raise UsageProblem(f"--out: {path}: {error.strerror or error}") from error
    try:
        with writer:
            yield writer.write_table
        os.replace(partial, path)  # noqa: PTH105 - replaces an existing file
    finally:
        partial.unlink(missing_ok=True)


def same_names(paths: Sequence[Path]) -> list[str]:
    """Return the names that more than one file has."""
    counts = Counter(path.name for path in paths)
    return sorted(name for name, count in counts.items() if count > 1)
