"""Makes the ledger of files or of a server, piece after piece, and gives it to whoever wants rows.

1. Memory is that of one piece: one file's rows, or one batch of a server's.
2. What is damaged ends its own file, not the scan: rows before it are given, and the error is kept
   in the summary, with file and byte. A server that breaks off ends the scan the same way.
3. Rows go to a Parquet file under another name first: a file of the name asked for is a whole one.
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
from binlog.ledger.columns import FileLedger, ledger_schema
from gtid_audit import clock
from gtid_audit.exits import UsageProblem
from gtid_audit.ledger_summary import LedgerSummary
from gtid_audit.ledger_text import size_of
from gtid_audit.logs_from_operands import LogServer
from gtid_audit.output import Progress

_BAR_CELLS: Final = 30
_SAY_AGAIN_SECONDS: Final = 0.1
_PARTIAL: Final = ".partial"

Rows: TypeAlias = Callable[[pa.Table], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the ledger is to hold, and how carefully it is made."""

    verify: bool = False
    details: bool = False
    digests: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Return the columns."""
        return ledger_schema(digests=self.digests, details=self.details)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A file's ledger, or a part of it; `done_bytes` of all there is to read are read."""

    ledger: FileLedger
    name: str
    done_bytes: int


def scan(
    source: LogServer | Sequence[Path],
    wanted: Wanted,
    *,
    rows: Sequence[Rows],
    line: Progress,
    seconds_max: float,
) -> LedgerSummary:
    """Make the ledger; give each piece's rows to all of `rows`, and sum it up.

    Raises BinlogError where a server does not even say what it has.
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


def _of_files(paths: Sequence[Path], wanted: Wanted) -> tuple[int, Iterator[_Piece]]:
    sizes = [_size_of(path) for path in paths]

    def pieces() -> Iterator[_Piece]:
        done = 0
        for path, size in zip(paths, sizes, strict=True):
            done += size
            yield _Piece(_ledger_of(path, wanted), str(path), done)

    return sum(sizes), pieces()


def _ledger_of(path: Path, wanted: Wanted) -> FileLedger:
    """Make one file's ledger; a file that cannot be read has none, and an error."""
    try:
        return ledger_of_file(
            path, verify=wanted.verify, digests=wanted.digests, details=wanted.details
        )
    except OSError as error:
        unreadable = UnreadableBinlog(file=path.name, what=error.strerror or str(error))
        return FileLedger(path.name, None, wanted.schema.empty_table(), 0, unreadable)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # its ledger will say why


def _of_server(
    server: LogServer, wanted: Wanted, *, seconds_max: float, summary: LedgerSummary
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
            timeout_seconds_max=seconds_max,
            verify=wanted.verify,
            digests=wanted.digests,
            details=wanted.details,
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
    """How far it is, on the progress line: a bar, and what was found so far."""

    def __init__(self, line: Progress, total: int) -> None:
        self._line = line
        self._total = max(total, 1)
        self._said_at = clock.monotonic_seconds()  # what is over at once shows nothing

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
    """Provide what takes rows into a Parquet file; it has its name when all are in it.

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
        os.replace(partial, path)  # noqa: PTH105 - over what may be there
    finally:
        partial.unlink(missing_ok=True)


def same_names(paths: Sequence[Path]) -> list[str]:
    """Return the names that more than one of the files has."""
    counts = Counter(path.name for path in paths)
    return sorted(name for name, count in counts.items() if count > 1)
