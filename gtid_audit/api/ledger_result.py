"""`ledger`: one row for each transaction of binary or relay logs, from files or a live server."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gtid import GtidSet
from gtid.counted_nouns import counted
from gtid_audit.api.api_errors import UnreadableSource, translated
from gtid_audit.api.requested_servers import checked_seconds, target_of_dsn
from gtid_audit.api.result_frames import pandas_of
from gtid_audit.exits import UsageProblem
from gtid_audit.output import without_credentials
from topology.readings.target import Secret

if TYPE_CHECKING:
    import pandas as pd

    from binlog.errors import BinlogError
    from gtid_audit.operands.logs_from_operands import LogServer

# 101 bytes each, without details: 2 GB.
ROWS_MAX: Final = 20_000_000
_DSN: Final = "mysql:/"


@dataclass(frozen=True, slots=True)
class LedgerResult:
    """The transactions of some logs, in log order.

    `gtids` is the set of their GTIDs. `errors` has one for each file that was not read to its end;
    the transactions before the damage are in the table.
    """

    gtids: GtidSet
    errors: "tuple[BinlogError, ...]"
    _rows: Any = field(repr=False, compare=False)  # a pa.Table

    @property
    def is_complete(self) -> bool:
        """Return whether every file was read to its end."""
        return not self.errors

    def to_arrow(self) -> Any:  # noqa: ANN401 - pa.Table, of a package without types
        """Return a `pyarrow.Table` with one row for each transaction: docs/binlog.md."""
        return self._rows

    def to_pandas(self) -> "pd.DataFrame":
        """Return the same rows as a `pandas.DataFrame`. Raises MissingPackage (extra `pandas`)."""
        return pandas_of(self._rows)

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else counted(len(self.errors), "error")
        return f"<LedgerResult {counted(len(self), 'transaction')}, {state}>"


def ledger(
    *sources: str | Path,
    verify: bool = False,
    details: bool = False,
    digests: bool = False,
    password: str | None = None,
    timeout_seconds: float | None = None,
    rows_max: int = ROWS_MAX,
) -> LedgerResult:
    """Read logs into a table of one row for each transaction.

    Args:
        sources: files, directories, globs or index files; or the DSN of one server.
        verify: verify every checksum and every event position.
        details: add tables, row counts, and the text of DDL.
        digests: add a digest of each transaction's content.
        password: for a server without an option file. Without it, GTID_AUDIT_PASSWORD, then
            MYSQL_PWD of the environment.
        timeout_seconds: for one answer of the server, at most 3600. Default: 60.
        rows_max: of the table, which is in memory. `gtid-audit binlog scan --out` has no limit.

    Raises:
        InvalidRequest: a source does not exist, or there are more transactions than rows_max.
        MissingPackage: NumPy, Numba or PyArrow is not installed.
        UnreadableSource: the server does not answer, or does not report its logs.
    """
    with translated():
        from gtid_audit.optional_packages import require_columns

        require_columns()
        asked = _Asked(
            _source(sources, password), checked_seconds(timeout_seconds), verify, details, digests
        )
        return _scanned(asked, rows_max)


@dataclass(frozen=True, slots=True)
class _Asked:
    source: "LogServer | tuple[Path, ...]"
    seconds: float | None
    verify: bool
    details: bool
    digests: bool


def _source(
    sources: tuple[str | Path, ...], password: str | None
) -> "LogServer | tuple[Path, ...]":
    from gtid_audit.operands.logs_from_operands import (
        LogServer,
        one_source,
        read_log_operands,
    )

    texts = tuple(map(str, sources))
    servers = [text for text in texts if text.lower().startswith(_DSN)]
    if servers and len(texts) > 1:
        raise UsageProblem("a ledger is of one server, or of files: call ledger() for each")
    if servers:
        return LogServer(target_of_dsn(servers[0], None if password is None else Secret(password)))
    if password is not None:
        raise UsageProblem("password is for a server; none of the sources is one")
    return one_source(read_log_operands(texts))


def _scanned(asked: _Asked, rows_max: int) -> LedgerResult:
    import pyarrow as pa
    from pymysql import MySQLError

    from binlog.adapters.server_errors import server_words
    from binlog.errors import BinlogError
    from binlog.ledger.ledger_columns import LedgerRequest
    from gtid_audit.operands.logs_from_operands import SECONDS_DEFAULT
    from gtid_audit.output import Progress
    from gtid_audit.tasks.ledger_scan import scan

    wanted = LedgerRequest(verify=asked.verify, details=asked.details, digests=asked.digests)
    tables: list[Any] = [wanted.schema.empty_table()]
    seen = 0

    def keep(rows: Any) -> None:  # noqa: ANN401 - pa.Table, of a package without types
        nonlocal seen
        seen += rows.num_rows
        if seen > rows_max:
            raise UsageProblem(
                f"more than {rows_max:,} transactions (rows_max). Read fewer files, or write them"
                " to a file: gtid-audit binlog scan --out FILE.parquet"
            )
        tables.append(rows)

    try:
        summary = scan(
            asked.source,
            wanted,
            rows=[keep],
            line=Progress(is_shown=False),
            seconds_max=asked.seconds or SECONDS_DEFAULT,
        )
    except MySQLError as error:
        raise UnreadableSource(
            f"the server could not be read: {without_credentials(server_words(error))}"
        ) from error
    except (BinlogError, OSError) as error:
        raise UnreadableSource(without_credentials(str(error))) from error
    rows = pa.concat_tables(tables).unify_dictionaries()
    return LedgerResult(summary.gtids, tuple(summary.errors), rows)
