"""What may be said in `.option(…)` to the data source `mysql_binlog`, read and checked.

1. All problems are reported at once. No option takes a password, and no message repeats a value:
   options stand in plans, in Spark's web pages and in event logs.
2. What restricts transactions (`gtids`, `since`, `until`, `table`) is answered exactly, before rows
   reach Spark. Damage is told of every file that was read, whatever is asked for.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from gtid import GtidError, GtidSet
from spark_audit.adapters.source_options import Credentials
from spark_audit.binlog_schema import COLUMNS
from topology.adapters.inventory.dsn import parse_dsn
from topology.adapters.inventory.problem import InventoryProblem

TRANSACTIONS_MAX_DEFAULT: Final = 100_000
NUMBER_MAX: Final = 10**12
TIMEOUT_SECONDS_DEFAULT: Final = 60
TIMEOUT_SECONDS_MAX: Final = 86_400
BYTES_MAX_DEFAULT: Final = 256 * 1024**2

OLDEST: Final = "oldest"
NOW: Final = "now"


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its two names, as the log has them."""

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
    # Committed in this log; by the origin's clock where the log has no commit times (before 8.0.1).
    since: datetime | None = None
    until: datetime | None = None  # not included
    table: Table | None = None
    pushdown: bool = False
    # Of a server.
    credentials: Credentials = Credentials.DRIVER
    start_at: str | GtidSet = OLDEST  # of a stream: OLDEST, NOW, or what has been read already
    transactions_max: int = TRANSACTIONS_MAX_DEFAULT  # of one batch of a stream
    bytes_max: int = BYTES_MAX_DEFAULT  # of one transaction
    timeout_seconds_max: int = TIMEOUT_SECONDS_DEFAULT  # of one silence

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "BinlogOptions":
        """Read options; names in any case, as Spark has them. Raises InventoryProblem."""
        given = {name.lower(): value for name, value in options.items()}
        paths = _paths(given.pop("path", None), given.pop("paths", None))
        problems = [_unknown(name) for name in sorted(given.keys() - READERS.keys())]
        if bool(paths) == ("server" in given):
            problems.append("expected either paths of logs, or the option server, and not both")
        values: dict[str, Any] = {"paths": paths}  # each reader gives the type of its field
        for name in sorted(given.keys() & READERS.keys()):
            try:
                values[name] = READERS[name](given[name])
            except ValueError as expected:
                problems.append(f"option {name}: {expected}")
        if problems:
            raise InventoryProblem(*problems)
        return cls(**values)

    @property
    def reads_digests(self) -> bool:
        """Tell whether digests must be made."""
        return self.digests or "digest" in (self.columns or ())

    @property
    def reads_details(self) -> bool:
        """Tell whether tables and statements must be read."""
        named = {"tables", "ddl"} & set(self.columns or ())
        return self.details or self.table is not None or bool(named)


def _paths(one: str | None, several: str | None) -> tuple[str, ...]:
    """Return what was given to `load`: Spark hands on a list as JSON."""
    listed = json.loads(several) if several else []
    return (*([one] if one else []), *map(str, listed))


def _flag(text: str) -> bool:
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError("expected true or false")
    return values[text.lower()]


def _number(limit: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        fits = text.isascii() and text.isdigit() and len(text) <= len(str(limit))
        if not fits or not 1 <= int(text) <= limit:
            raise ValueError(f"expected a number from 1 to {limit:,}")
        return int(text)

    return read


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
    # A session's time zone is not ours to see; without a zone the time is UTC.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _table(text: str) -> Table:
    schema, dot, table = text.partition(".")
    if not (schema and dot and table):
        raise ValueError("expected schema.table")
    return Table(schema, table)


def _credentials(text: str) -> Credentials:
    try:
        return Credentials(text.lower())
    except ValueError:
        raise ValueError("expected driver or executor") from None


def _server(text: str) -> str:
    try:
        parse_dsn(text)
    except InventoryProblem as problem:
        raise ValueError(str(problem)) from None
    return text


def _start_at(text: str) -> str | GtidSet:
    return text.lower() if text.lower() in (OLDEST, NOW) else _gtids(text)


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
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
    "credentials": _credentials,
    "start_at": _start_at,
    "transactions_max": _number(NUMBER_MAX),
    "bytes_max": _number(NUMBER_MAX),
    "timeout_seconds_max": _number(TIMEOUT_SECONDS_MAX),
}


def _unknown(name: str) -> str:
    if any(word in name for word in ("pass", "pwd", "secret")):
        return (
            f"option {name}: a password is no option, for options can be read in plans and in"
            " Spark's web pages; give it by the environment (GTID_AUDIT_PASSWORD) or an option"
            " file (server = mysql://host/?option_file=…)"
        )
    near = get_close_matches(name, READERS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(READERS)}"
    return f"option {name}: unknown; {hint}"
