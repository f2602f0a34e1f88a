"""Log operands: a file, a directory, an index, a glob, or the DSN of a server.

1. A file of a name precedes a server: `db1:3306` and `audit@db1` may be files.
2. A directory is read by its index if it has one (the server's own list, in the server's order).
   Otherwise its numbered files are read, in the order of their numbers. Of a replica's data
   directory the binary logs are read, not the relay logs. Of an archive whose old logs are
   compressed, the others are read, and a warning says what is left out. A log that is a pipe or a
   link to nothing is refused: the result would be that of fewer logs.
3. This module decides whether a file exists; a missing one is a UsageProblem (exit status 64). The
   code that reads a file finds out whether its bytes are a log.
4. A server is looked up (account, password, TLS) as for `pair`. No connection is made yet.
5. If reading fails later, because of the bytes, the server or the network, the error is reported
   and the status is UNKNOWN: `said_if_unread`.
"""

import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.output import warn, without_credentials
from topology.adapters.inventory.dsn import EXPECTED, is_dsn
from topology.catalogue.findings import Verdict
from topology.readings.target import ServerTarget

if TYPE_CHECKING:
    from pymysql.connections import Connection

INDEX_BYTES_MAX: Final = 64 * 1024**2
FILES_MAX: Final = 1_000_000

# Perhaps a DSN whose scheme is missing or mistyped: no message may show its password.
_LIKE_AN_ACCOUNT: Final = re.compile(r":.*@", re.DOTALL)
# Log file names end in a number of six digits, or more above 999999 (MYSQL_BIN_LOG::new_file_impl).
_NUMBERED: Final = re.compile(r"(?P<base>.+)\.(?P<number>[0-9]{6,})", re.DOTALL)
_INDEX_SUFFIX: Final = ".index"
_COMPRESSED: Final = frozenset({".bz2", ".gz", ".lz4", ".lzo", ".xz", ".zip", ".zst"})
_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),  # also <(…) in a shell
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
SECONDS_DEFAULT: Final = 60.0


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Files in log order. `operand` is the text that the user typed."""

    operand: str
    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        assert self.paths, "an operand without files is a UsageProblem"

    @property
    def name(self) -> str:
        """Return the name for reports."""
        return self.operand


@dataclass(frozen=True, slots=True)
class LogServer:
    """A server whose logs are to be read."""

    target: ServerTarget

    @property
    def name(self) -> str:
        """Return the name for reports: the address, without account."""
        return self.target.name

    def connector(self, *, seconds_max: float = SECONDS_DEFAULT) -> "Callable[[], Connection[Any]]":
        """Return a function that makes a connection; each wait takes at most `seconds_max`.

        The function raises UnsupportedServer for a server without MySQL's GTIDs.
        """

        def connect() -> "Connection[Any]":
            from topology.adapters.gtid_server import connect_for_logs

            return connect_for_logs(self.target, timeout_seconds_max=seconds_max)

        return connect


LogOperand: TypeAlias = LogFiles | LogServer


def read_log_operands(texts: Sequence[str], *, ask: bool = False) -> tuple[LogOperand, ...]:
    """Resolve each text to files or a server. With `ask`, prompt for the password once.

    Raises UsageProblem, InventoryProblem (both end in exit status 64).
    """
    if not texts:
        raise UsageProblem("expected a file, a directory, a glob, or user@host:port")
    target_of = _accounts(ask=ask) if any(map(_is_server, texts)) else None
    if ask and target_of is None:
        raise UsageProblem("--ask-password: none of the logs is on a server")
    found: list[LogOperand] = []
    for text in texts:
        if target_of is not None and _is_server(text):
            found.append(LogServer(target_of(text)))
        else:
            found.append(LogFiles(text, _files_of(text)))
    return tuple(found)


def read_log_operand(text: str, *, ask: bool = False) -> LogOperand:
    """Resolve one text to files or a server. Raises UsageProblem, InventoryProblem."""
    [found] = read_log_operands((text,), ask=ask)
    return found


def paths_of(operands: Iterable[LogOperand]) -> tuple[Path, ...]:
    """Return the files of the operands, each once. A server among them is refused.

    Raises UsageProblem.
    """
    paths: list[Path] = []
    for operand in operands:
        if isinstance(operand, LogServer):
            raise UsageProblem(f"{operand.name}: a server cannot be read together with files")
        paths += operand.paths
    return tuple(dict.fromkeys(paths))


def one_source(operands: Sequence[LogOperand]) -> LogServer | tuple[Path, ...]:
    """Return the only server, or all the files. Raises UsageProblem for a mixture."""
    servers = [operand for operand in operands if isinstance(operand, LogServer)]
    if len(servers) > 1:
        raise UsageProblem("more than one server: give one server, or files")
    if servers and len(operands) == 1:
        return servers[0]
    return paths_of(operands)


def said_if_unread(work: Callable[[], int]) -> int:
    """Run a command's work. If reading fails, report the error and return UNKNOWN (3)."""
    from binlog.errors import BinlogError

    try:
        return work()
    except BinlogError as error:
        warn(str(error))
    except _server_error() as error:  # evaluated for an error only
        from binlog.adapters.server_errors import server_words

        warn(f"the server could not be read: {without_credentials(server_words(error))}")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        warn(f"{place}{error.strerror or error}")
    return exits.status_of(Verdict.UNKNOWN)


def _server_error() -> type[Exception]:
    """Return the class of a server's errors. Importing it takes as long as reading 10 MB of log."""
    from pymysql import MySQLError

    return MySQLError


def order_of(path: Path) -> tuple[str, int, str]:
    """Return the sort key of a file: base name, then number, as the server counts them."""
    numbered = _NUMBERED.fullmatch(path.name)
    if numbered is None:
        return (str(path), 0, "")
    return (str(path.with_name(numbered["base"])), int(numbered["number"]), path.name)


def _accounts(*, ask: bool) -> Callable[[str], ServerTarget]:
    from gtid_audit.operands.user_accounts import accounts_of_user

    return accounts_of_user(ask=ask).target


def _is_server(text: str) -> bool:
    """Return whether an operand is a server. A Unix socket is one too."""
    path = Path(text)
    return path.is_socket() if _exists(path) else is_dsn(text)


def _files_of(text: str) -> tuple[Path, ...]:
    if not text:
        raise UsageProblem("expected a file, a directory, a glob or a DSN, found an empty operand")
    path = Path(text).expanduser()
    if _LIKE_AN_ACCOUNT.search(text) and not _exists(path):
        raise UsageProblem(
            f"an operand with ':' and '@' is neither a file nor a DSN; {EXPECTED} (not shown: the"
            " operand may contain a password)"
        )
    try:
        if path.is_dir():
            return _files_in(path)
        if path.exists():
            _require_regular(path, text)
            return _listed_in(path) if path.suffix == _INDEX_SUFFIX else (path,)
        if has_magic(text):
            return _matching(text, pattern=str(path))
    except OSError as error:
        raise UsageProblem(f"{text}: {error.strerror or error}") from error
    raise UsageProblem(f"{text}: no such file or directory")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the name is too long for a file
        return False


def _require_regular(path: Path, text: str) -> None:
    """Refuse what is not seekable, or not readable twice; opening a FIFO may wait forever."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for is_one, name in _KINDS if is_one(mode)), "something else")
        raise UsageProblem(
            f"{text}: {kind}, not a regular file; copy its content into a regular file first"
        )


def _matching(text: str, *, pattern: str) -> tuple[Path, ...]:
    matches = glob(pattern, recursive=True)  # noqa: PTH207 - the pattern may be absolute
    found = [path for path in map(Path, matches) if _may_be_a_log(path)]
    # The index is in the same directory as the files it lists, and `binlog.*` means the files.
    logs = [path for path in found if path.suffix != _INDEX_SUFFIX]
    if not logs:
        raise UsageProblem(f"{text}: no file matches")
    for path in logs:
        _require_log(path)
    return _sorted(text, logs)


def _files_in(folder: Path) -> tuple[Path, ...]:
    entries = list(filter(_may_be_a_log, folder.iterdir()))
    indexes = {path: _entries_of(path) for path in sorted(entries) if path.suffix == _INDEX_SUFFIX}
    if indexes:
        chosen = _without_relay_logs(indexes)
        if len(chosen) > 1:
            names = ", ".join(map(str, chosen))
            raise UsageProblem(f"{folder}: more than one index file; select one of them: {names}")
        return _listed_in(chosen[0])
    numbered: dict[str, list[Path]] = {}
    for path in sorted(filter(_is_numbered, entries), key=order_of):
        numbered.setdefault(order_of(path)[0], []).append(path)
    compressed = [path for path in entries if _is_compressed(path)]
    if not numbered:
        raise UsageProblem(
            f"{folder}: contains neither an index file nor files like binlog.000001"
            + (f"; decompress {_in_words(compressed)} first" if compressed else "")
        )
    bases = _without_relay_logs(numbered)
    if len(bases) > 1:
        names = ", ".join(f"{base}.*" for base in bases)
        raise UsageProblem(
            f"{folder}: logs of more than one base name; select one with a glob: {names}"
        )
    paths = numbered[bases[0]]
    for path in paths:
        _require_log(path)
    left_out = [
        path
        for path in compressed
        if path.with_suffix("") not in paths and order_of(path.with_suffix(""))[0] == bases[0]
    ]
    if left_out:
        warn(f"{folder}: {_in_words(left_out)} not read: decompress what is to be read as well")
    return _bounded(str(folder), paths)


def _may_be_a_log(path: Path) -> bool:
    return path.is_file() or (_is_numbered(path) and not path.is_dir())


def _require_log(path: Path) -> None:
    """Refuse a log of a directory that cannot be read: without it, less would be said."""
    if not path.exists():
        raise UsageProblem(f"{path}: a link to {path.readlink()}, which does not exist")
    _require_regular(path, str(path))


def _is_compressed(path: Path) -> bool:
    return path.suffix in _COMPRESSED and _is_numbered(path.with_suffix(""))


def _in_words(paths: Sequence[Path]) -> str:
    """Return the first of some compressed logs, and how many more there are."""
    first, *more = sorted(paths, key=lambda path: order_of(path.with_suffix("")))
    return f"{first.name} and {len(more):,} more compressed logs" if more else first.name


_Key = TypeVar("_Key")


def _without_relay_logs(logs: Mapping[_Key, Sequence[Path]]) -> list[_Key]:
    """Return the keys of binary logs; all keys if there is one, or if none is of a binary log.

    A replica's data directory has both, and the receiver marks the first event of each relay log.
    Logs whose first event cannot be read, such as encrypted ones, count as binary logs: an operator
    must then select one.
    """
    if len(logs) == 1:
        return list(logs)
    return [key for key, paths in logs.items() if not _are_relay_logs(paths)] or list(logs)


def _are_relay_logs(paths: Sequence[Path]) -> bool:
    """Return whether the first of the files that exists shows a relay log."""
    from binlog.decode import MAGIC
    from binlog.header import HEADER_BYTES, parse_header

    first = next((path for path in paths if path.is_file()), None)
    if first is None:
        return False
    with first.open("rb") as file:
        content = file.read(len(MAGIC) + HEADER_BYTES)
    if len(content) < len(MAGIC) + HEADER_BYTES or not content.startswith(MAGIC):
        return False
    return parse_header(content, len(MAGIC)).is_of_relay_log


def _is_numbered(path: Path) -> bool:
    return _NUMBERED.fullmatch(path.name) is not None


def _listed_in(index: Path) -> tuple[Path, ...]:
    """Return the files that an index lists; all of them must exist."""
    paths = _entries_of(index)
    missing = [path for path in paths if not path.is_file()]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UsageProblem(
            f"{index}: lists {missing[0].name}{more}, which cannot be found; select the existing"
            " files with a glob"
        )
    if not paths:
        raise UsageProblem(f"{index}: lists no file")
    return _bounded(str(index), paths)


def _entries_of(index: Path) -> list[Path]:
    """Read an index: one path per line, relative to the server's data directory or absolute.

    A copied index has paths of another machine, so a file of that name beside it takes precedence.
    """
    with index.open("rb") as file:
        content = file.read(INDEX_BYTES_MAX + 1)
    if len(content) > INDEX_BYTES_MAX:
        raise UsageProblem(
            f"{index}: larger than the limit of {INDEX_BYTES_MAX:,} bytes for an index file"
        )
    paths: list[Path] = []
    for line in content.splitlines():
        if not line.strip():
            continue
        listed = Path(line.decode("utf-8", errors="surrogateescape"))
        beside = index.parent / listed.name
        paths.append(beside if beside.is_file() else index.parent / listed)
    return paths


def _sorted(text: str, paths: list[Path]) -> tuple[Path, ...]:
    return _bounded(text, sorted(paths, key=order_of))


def _bounded(text: str, paths: list[Path]) -> tuple[Path, ...]:
    if len(paths) > FILES_MAX:
        raise UsageProblem(f"{text}: {len(paths):,} files, more than the limit of {FILES_MAX:,}")
    return tuple(paths)
