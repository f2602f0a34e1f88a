"""Reads and checks the `.option(…)` texts of the data source `mysql_binlog`.

1. option_texts.py has what all sources have in common.
2. The options that restrict transactions (`gtids`, `since`, `until`, `table`) are applied exactly,
   before rows reach Spark. A damaged file that was read is reported whatever the filter is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from binlog.ledger.ledger_columns import LedgerRequest
from gtid import GtidError, GtidSet
from spark_audit.adapters.option_texts import (
    Credentials,
    Readers,
    by_lower_name,
    credentials_in,
    number_to,
    read_options,
)
from spark_audit.ledger_schema import COLUMNS
from topology.adapters.inventory.dsn import parse_dsn
from topology.adapters.inventory.problem import InventoryProblem

TRANSACTIONS_MAX_DEFAULT: Final = 100_000
NUMBER_MAX: Final = 10**12
TIMEOUT_SECONDS_DEFAULT: Final = 60
TIMEOUT_SECONDS_MAX: Final = 86_400
BYTES_MAX_DEFAULT: Final = 256 * 1024**2

_ACCOUNT_IS_IN: Final = (
    "set it in the environment (GTID_AUDIT_PASSWORD) or in an option file"
    " (server = mysql://host/?option_file=…)"
)

OLDEST: Final = "oldest"
NOW: Final = "now"


@dataclass(frozen=True, slots=True)
class Table:
    """A table by schema and name, as the log records them."""

    schema: str
    table: str


@dataclass(frozen=True, slots=True)
class BinlogOptions:
    """The options of one `load()`."""

    paths: tuple[str, ...] = ()
    server: str | None = None  # a DSN
    verify: bool = False
    digests: bool = False
    details: bool = False
    columns: tuple[str, ...] | None = None
    gtids: GtidSet | None = None
    # Commit time in this log. Logs before 8.0.1 have none: then the clock of the origin counts.
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    table: Table | None = None
    pushdown: bool = False
    # For a live server.
    credentials: Credentials = Credentials.DRIVER
    start_at: str | GtidSet = OLDEST  # of a stream: OLDEST, NOW, or the set read before
    transactions_max: int = TRANSACTIONS_MAX_DEFAULT  # of one batch of a stream
    bytes_max: int = BYTES_MAX_DEFAULT  # in memory, for one transaction and for one event
    timeout_seconds_max: int = TIMEOUT_SECONDS_DEFAULT  # without any data from the server

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "BinlogOptions":
        """Read the options; names in any case, as Spark passes them. Raises InventoryProblem."""
        given = by_lower_name(options)
        paths = _paths(given.pop("path", None), given.pop("paths", None))
        values, problems = read_options(given, READERS, account_is_in=_ACCOUNT_IS_IN)
        if bool(paths) == ("server" in given):
            problems.append("expected either paths of logs or the option server, not both")
        if problems:
            raise InventoryProblem(*problems)
        return cls(paths=paths, **values)

    @property
    def request(self) -> LedgerRequest:
        """Return what the ledgers must contain, also to evaluate the conditions."""
        columns = set(self.columns or ())
        return LedgerRequest(
            verify=self.verify,
            digests=self.digests or "digest" in columns,
            details=self.details or self.table is not None or bool({"tables", "ddl"} & columns),
        )


def _paths(one: str | None, several: str | None) -> tuple[str, ...]:
    """Return the paths given to `load`; Spark passes a list as JSON. Raises InventoryProblem."""
    try:
        listed = json.loads(several) if several else []
    except json.JSONDecodeError:
        listed = None
    if not isinstance(listed, list):
        raise InventoryProblem("option paths: is reserved by Spark; pass a list to load(…)")
    return (*([one] if one else []), *map(str, listed))


def _flag(text: str) -> bool:
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError("expected true or false")
    return values[text.lower()]


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in COLUMNS.names]
    if unknown or len(set(names)) < len(names):
        raise ValueError(f"expected some of {', '.join(COLUMNS.names)}, each once")
    return names


def _gtids(text: str) -> GtidSet:
    try:
        return GtidSet.parse(text)
    except GtidError as problem:
        raise ValueError(str(problem)) from None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "expected a time such as 2026-01-02T12:00:00Z or 2026-01-02 12:00:00+01:00"
        ) from None
    # The session's time zone is not known here. A time without a zone is UTC.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _table(text: str) -> Table:
    schema, dot, table = text.partition(".")
    if not (schema and dot and table):
        raise ValueError("expected schema.table")
    return Table(schema, table)


def _server(text: str) -> str:
    try:
        parse_dsn(text)
    except InventoryProblem as problem:
        raise ValueError(str(problem)) from None
    return text


def _start_at(text: str) -> str | GtidSet:
    return text.lower() if text.lower() in (OLDEST, NOW) else _gtids(text)


READERS: Final[Readers] = {
    "server": _server,
    "verify": _flag,
    "digests": _flag,
    "details": _flag,
    "columns": _columns,
    "gtids": _gtids,
    "since": _moment,
    "until": _moment,
    "table": _table,
    "pushdown": _flag,
    "credentials": credentials_in,
    "start_at": _start_at,
    "transactions_max": number_to(NUMBER_MAX),
    "bytes_max": number_to(NUMBER_MAX),
    "timeout_seconds_max": number_to(TIMEOUT_SECONDS_MAX),
}
